//! Text of call sites: file, function, line and column, asked of Python once recording is over.
//!
//! Measured: 30 to 220 ns a site for the line, some 8 us a code object for its columns.
#![expect(unsafe_code, reason = "calls CPython's C API with the GIL held")]

use std::collections::HashMap;
use std::ffi::{CStr, c_char};
use std::marker::PhantomData;

use rustc_hash::FxHashMap;

use crate::api::{Address, Api};
use crate::codes::{CodeId, code_address};

/// Where a call site is in the source. Empty strings and 0: not known.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Site {
    /// `co_filename`
    pub file: String,
    /// `co_qualname`, on 3.10 `co_name`
    pub function: String,
    /// Line, from 1.
    pub line: u32,
    /// Column in UTF-8 bytes, from 1 (3.11 and later).
    pub column: u32,
}

/// Resolves many sites, asking about each code object once.
pub struct Resolver {
    api: Option<&'static Api>,
    codes: FxHashMap<CodeId, CodeText>,
    sites: HashMap<(CodeId, i32), Site>,
    /// Not for other threads: the GIL is held by the one that made it.
    not_send: PhantomData<*const ()>,
}

#[derive(Default)]
struct CodeText {
    file: String,
    function: String,
    /// By code unit; empty where Python has no columns.
    columns: Vec<u32>,
}

impl Resolver {
    /// # Safety
    /// The GIL of the main interpreter is held by this thread whenever [`Resolver::site`] is called.
    pub unsafe fn new() -> Resolver {
        Resolver { api: Api::get(), codes: FxHashMap::default(), sites: HashMap::default(), not_send: PhantomData }
    }

    /// A call site. A pending exception stays pending.
    pub fn site(&mut self, code: CodeId, lasti: i32) -> Site {
        let (Some(api), Some(address)) = (self.api, code_address(code)) else { return Site::default() };
        if let Some(site) = self.sites.get(&(code, lasti)) {
            return site.clone();
        }
        // SAFETY: the GIL is held by the contract of `new`; code objects in the table are never freed.
        let site = unsafe {
            let _pending = PendingException::set_aside(api);
            let text = self.codes.entry(code).or_insert_with(|| code_text(api, address));
            let line = (api.PyCode_Addr2Line)(address, lasti);
            let unit = usize::try_from(lasti / 2).unwrap_or(usize::MAX);
            Site {
                file: text.file.clone(),
                function: text.function.clone(),
                line: u32::try_from(line).unwrap_or(0),
                column: text.columns.get(unit).copied().unwrap_or(0),
            }
        };
        self.sites.insert((code, lasti), site.clone());
        site
    }
}

/// One call site; [`Resolver`] is faster for many.
///
/// # Safety
/// The GIL of the main interpreter is held.
pub unsafe fn resolve_site(code: CodeId, lasti: i32) -> Site {
    // SAFETY: by contract, and the resolver does not outlive this call.
    unsafe { Resolver::new() }.site(code, lasti)
}

/// The exception that was pending when this was made, put back on drop.
struct PendingException<'a> {
    api: &'a Api,
    parts: [Address; 3],
}

impl<'a> PendingException<'a> {
    /// # Safety
    /// The GIL is held until the value is dropped.
    unsafe fn set_aside(api: &'a Api) -> Self {
        let [mut kind, mut value, mut traceback] = [0; 3];
        // SAFETY: by contract; the three are written with owned references or 0.
        unsafe { (api.PyErr_Fetch)(&mut kind, &mut value, &mut traceback) };
        PendingException { api, parts: [kind, value, traceback] }
    }
}

impl Drop for PendingException<'_> {
    fn drop(&mut self) {
        let [kind, value, traceback] = self.parts;
        // SAFETY: gives back the three references that were taken; GIL held by contract. It also drops what a failed
        // call of ours may have left.
        unsafe { (self.api.PyErr_Restore)(kind, value, traceback) };
    }
}

/// An owned reference, 0 for an error that is not of interest.
struct Owned<'a> {
    api: &'a Api,
    object: Address,
}

impl Drop for Owned<'_> {
    fn drop(&mut self) {
        if self.object != 0 {
            // SAFETY: the reference is ours, and the functions below hold the GIL by contract.
            unsafe { (self.api.Py_DecRef)(self.object) };
        }
    }
}

/// # Safety
/// The GIL is held; `code` is a live code object.
unsafe fn code_text(api: &Api, code: Address) -> CodeText {
    // SAFETY: by contract.
    unsafe {
        let text = |name: &CStr| utf8(api, &attribute(api, code, name));
        CodeText {
            file: text(c"co_filename").unwrap_or_default(),
            function: text(c"co_qualname").or_else(|| text(c"co_name")).unwrap_or_default(),
            columns: columns(api, code),
        }
    }
}

/// # Safety
/// The GIL is held; `object` is live or 0.
unsafe fn attribute<'a>(api: &'a Api, object: Address, name: &CStr) -> Owned<'a> {
    // SAFETY: by contract; a missing attribute is an exception, which is cleared.
    let found = unsafe { if object == 0 { 0 } else { (api.PyObject_GetAttrString)(object, name.as_ptr()) } };
    if found == 0 {
        // SAFETY: GIL held by contract.
        unsafe { (api.PyErr_Clear)() };
    }
    Owned { api, object: found }
}

/// # Safety
/// The GIL is held; the object is a `str` or 0.
unsafe fn utf8(api: &Api, string: &Owned<'_>) -> Option<String> {
    if string.object == 0 {
        return None;
    }
    let (mut start, mut size): (*mut c_char, isize) = (std::ptr::null_mut(), 0);
    // SAFETY: by contract. A path that is not UTF-8 holds surrogates, which go back to the bytes they stand for. The
    // bytes object outlives the slice, which is copied.
    unsafe {
        let encode = api.PyUnicode_AsEncodedString;
        let bytes = Owned { api, object: encode(string.object, c"utf-8".as_ptr(), c"surrogateescape".as_ptr()) };
        if bytes.object == 0 || (api.PyBytes_AsStringAndSize)(bytes.object, &mut start, &mut size) != 0 {
            (api.PyErr_Clear)();
            return None;
        }
        let slice = std::slice::from_raw_parts(start.cast::<u8>(), usize::try_from(size).ok()?);
        Some(String::from_utf8_lossy(slice).into_owned())
    }
}

/// Columns of every code unit: the third item of each tuple that `co_positions()` yields, which counts from 0.
///
/// # Safety
/// The GIL is held; `code` is a live code object.
unsafe fn columns(api: &Api, code: Address) -> Vec<u32> {
    let mut columns = Vec::new();
    // SAFETY: by contract. `PyTuple_GetItem` lends; `None` (no column) is no int, and the error is cleared.
    unsafe {
        let method = attribute(api, code, c"co_positions");
        if method.object == 0 {
            return columns;
        }
        let positions = Owned { api, object: (api.PyObject_CallObject)(method.object, 0) };
        loop {
            let next = if positions.object == 0 { 0 } else { (api.PyIter_Next)(positions.object) };
            let position = Owned { api, object: next };
            if position.object == 0 {
                break;
            }
            let start = (api.PyTuple_GetItem)(position.object, 2);
            let column = if start == 0 { -1 } else { (api.PyLong_AsLong)(start) };
            if column < 0 {
                (api.PyErr_Clear)();
            }
            columns.push(u32::try_from(column + 1).unwrap_or(0));
        }
        (api.PyErr_Clear)();
    }
    columns
}
