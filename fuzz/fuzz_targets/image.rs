//! Arbitrary and damaged ELF images: every question gets an answer or an error.
//!
//! The first byte chooses: even, the rest is a file; odd, the rest are patches (u16 offset, u64 value) to a good image,
//! so that the depths behind the headers are reached from the start without stored seeds.
#![no_main]

use libfuzzer_sys::fuzz_target;
use memviz_image::{FileImage, LoadedImage, Machine, ReadMemory, SymbolTable, Unreadable, vtable_entries};

#[path = "../../crates/memviz-image/tests/images/builder.rs"]
#[allow(dead_code, reason = "the tests of the crate use the rest of it")]
mod builder;

/// The bytes at 0, nothing else: tables may be anywhere in them, without program headers.
struct Flat<'a>(&'a [u8]);

impl ReadMemory for Flat<'_> {
    fn read(&self, addr: u64, into: &mut [u8]) -> Result<(), Unreadable> {
        let outside = Unreadable { addr, len: into.len() };
        let start = usize::try_from(addr).map_err(|_| outside)?;
        let end = start.checked_add(into.len()).ok_or(outside)?;
        into.copy_from_slice(self.0.get(start..end).ok_or(outside)?);
        Ok(())
    }
}

fuzz_target!(|data: &[u8]| {
    let Some((&mode, rest)) = data.split_first() else { return };
    let machine = if mode & 2 == 0 { Machine::X86_64 } else { Machine::Aarch64 };
    if mode & 1 == 0 { ask(rest, machine) } else { ask(&patched(machine, rest), machine) }
});

fn patched(machine: Machine, patches: &[u8]) -> Vec<u8> {
    let mut bytes = builder::good(machine).build();
    for patch in patches.as_chunks::<10>().0 {
        let [low, high, value @ ..] = *patch;
        let offset = usize::from(u16::from_le_bytes([low, high])) % (bytes.len() - 8);
        bytes[offset..offset + 8].copy_from_slice(&value);
    }
    bytes
}

fn ask(bytes: &[u8], machine: Machine) {
    ask_symbols(bytes);
    ask_loaded(&Flat(bytes), 0, 232, machine);
    let Ok(file) = FileImage::new(bytes) else { return };
    for bias in [0, 0x1000] {
        ask_loaded(&file, bias, file.dynamic_addr().unwrap_or(0), file.machine());
    }
    for addr in (0..0x400).step_by(8) {
        let entries = vtable_entries(&file, builder::DATA_ADDR + addr, 16, &|entry| file.is_code(entry));
        assert!(entries.map_or(0, |entries| entries.len()) <= 16);
    }
}

fn ask_loaded(memory: &dyn ReadMemory, bias: u64, dynamic_addr: u64, machine: Machine) {
    let Ok(image) = LoadedImage::from_dynamic(memory, bias, dynamic_addr, machine) else { return };
    let Ok(slots) = image.slots(memory, &|name| !name.starts_with('x')) else { return };
    assert!(slots.is_sorted_by_key(|slot| slot.addr));
    assert!(slots.iter().all(|slot| slot.addr.0 % 8 == 0 && !slot.symbol.starts_with('x')));
}

fn ask_symbols(bytes: &[u8]) {
    let Ok(symbols) = SymbolTable::from_file(bytes, &|_| true) else { return };
    for (name, addr) in symbols.with_prefix("") {
        assert!(symbols.names_at(addr, 0).any(|other| other == name));
        assert!(symbols.address_of(name, 0).is_some());
        assert_eq!(symbols.containing(addr, 0).map(|(_, offset)| offset), Some(0));
    }
}
