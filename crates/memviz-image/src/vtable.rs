//! Vtables of the Itanium C++ ABI, as far as a caller needs them: an array of function pointers.

use crate::error::ImageError;
use crate::memory::{ReadMemory, read_u64};

/// Offset-to-top and type_info come before the first function.
const HEADER_BYTES: u64 = 16;

/// The function addresses of the vtable whose symbol is at `vtable_symbol_addr`: at most `max`, ending before the first
/// entry that is null, is not code or cannot be read. The table itself has no end mark.
///
/// The memory must have its relocations applied: a live process has, [`FileImage`](crate::FileImage) has too.
pub fn vtable_entries(
    memory: &dyn ReadMemory,
    vtable_symbol_addr: u64,
    max: usize,
    is_code: &dyn Fn(u64) -> bool,
) -> Result<Vec<u64>, ImageError> {
    if !vtable_symbol_addr.is_multiple_of(8) {
        return Err(ImageError::Unaligned { what: "a vtable", addr: vtable_symbol_addr });
    }
    let mut entries = Vec::new();
    let mut offset = HEADER_BYTES;
    while entries.len() < max {
        let outside = ImageError::OutOfAddressSpace { what: "a vtable entry", base: vtable_symbol_addr, offset };
        let addr = vtable_symbol_addr.checked_add(offset).ok_or(outside)?;
        let entry = match read_u64(memory, addr, "a vtable entry") {
            Ok(entry) => entry,
            Err(error) if entries.is_empty() => return Err(error),
            Err(_) => break,
        };
        if entry == 0 || !is_code(entry) {
            break;
        }
        entries.push(entry);
        offset += 8;
    }
    Ok(entries)
}
