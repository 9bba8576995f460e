//! The code objects seen so far: numbered, and kept alive for ever.
//!
//! A freed code object's memory is reused at once, so an address is an identity only while it is retained. The price
//! is that code made on the fly (0.5 to 2 KB each) stays for the session; no frame, local or array is kept.
#![expect(unsafe_code, reason = "takes references to code objects")]

use std::collections::HashMap;

use rustc_hash::FxBuildHasher;

use crate::api::{Address, Api};
use crate::append_only::AppendOnly;

/// A distinct code object, numbered densely in order of first sight.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CodeId(pub u32);

impl CodeId {
    /// No code: the root, and frames that Python itself hides (entry shims, frames not yet begun).
    pub const NONE: CodeId = CodeId(u32::MAX);
}

static CODES: AppendOnly<Address> = AppendOnly::new();

/// The code object itself, for tests that compare identities.
#[doc(hidden)]
pub fn code_address(id: CodeId) -> Option<usize> {
    CODES.get(id.0)
}

/// Ids by address. Guarded by the GIL, on free-threaded builds by a lock.
pub(crate) struct Codes {
    ids: HashMap<Address, CodeId, FxBuildHasher>,
}

impl Codes {
    pub(crate) const fn new() -> Codes {
        Codes { ids: HashMap::with_hasher(FxBuildHasher) }
    }

    /// The id of a code object. On first sight it gets a reference that is never given back.
    ///
    /// # Safety
    /// `code` is a live Python object, and this thread holds the GIL (free-threaded: is attached).
    #[inline]
    pub(crate) unsafe fn intern(&mut self, code: Address, api: &Api) -> Option<CodeId> {
        if let Some(id) = self.ids.get(&code) {
            return Some(*id);
        }
        // SAFETY: the same contract.
        unsafe { self.add(code, api) }
    }

    #[cold]
    unsafe fn add(&mut self, code: Address, api: &Api) -> Option<CodeId> {
        if api.is_finalizing() {
            return None;
        }
        let id = CODES.push(code).map(CodeId)?;
        // SAFETY: alive and GIL held by contract. `Py_IncRef` runs no code, and is atomic where it must be.
        unsafe { (api.Py_IncRef)(code) };
        self.ids.insert(code, id);
        Some(id)
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.ids.capacity() * size_of::<(Address, CodeId)>() + CODES.memory_bytes()
    }
}
