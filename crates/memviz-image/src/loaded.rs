//! The slots of one loaded image: which words the dynamic linker fills with a symbol's address.

use crate::error::ImageError;
use crate::machine::{Machine, SlotKind};
use crate::memory::ReadMemory;
use crate::names::Names;
use crate::relocations::DynamicTables;

/// Absolute address of a slot: a word, 8-byte aligned, that holds a pointer.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct SlotAddr(pub u64);

/// A word that the dynamic linker fills with the address of `symbol`.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Slot {
    /// Where it is.
    pub addr: SlotAddr,
    /// When and how it is filled.
    pub kind: SlotKind,
    /// Name, as in the dynamic symbol table (mangled).
    pub symbol: String,
}

/// One loaded image seen through its dynamic section. Holds the places of its tables, not their contents.
#[derive(Clone, Debug)]
pub struct LoadedImage {
    tables: DynamicTables,
}

impl LoadedImage {
    /// `bias` is `dlpi_addr`, `dynamic_addr` the absolute address of `PT_DYNAMIC`.
    ///
    /// The section's pointers may be relocated (glibc) or not (musl, files); each one is told by comparing it with `bias`.
    pub fn from_dynamic(
        memory: &dyn ReadMemory,
        bias: u64,
        dynamic_addr: u64,
        machine: Machine,
    ) -> Result<LoadedImage, ImageError> {
        Ok(LoadedImage { tables: DynamicTables::read(memory, bias, dynamic_addr, machine)? })
    }

    /// Every slot (`DT_JMPREL` and `DT_RELA`) whose symbol name satisfies `wanted`, sorted by address.
    ///
    /// Left out are words that hold a symbol's address plus something, such as pointers into a vtable, and names that are
    /// empty, not UTF-8 or longer than 4 KiB.
    pub fn slots(&self, memory: &dyn ReadMemory, wanted: &dyn Fn(&str) -> bool) -> Result<Vec<Slot>, ImageError> {
        let mut relocations = self.tables.relocations(memory, false)?.symbols;
        relocations.retain(|relocation| relocation.addend == 0);
        let Some(last_index) = relocations.iter().map(|relocation| relocation.symbol_index).max() else {
            return Ok(Vec::new());
        };
        let symbols = self.tables.symbols(memory, last_index)?;
        let strings = self.tables.strings(memory)?;
        let mut names = Names::new(&strings);
        let mut slots = Vec::new();
        for relocation in relocations {
            let name = names.get(symbols[relocation.symbol_index as usize].name_offset)?;
            let Some(symbol) = name.filter(|name| wanted(name)) else { continue };
            if !relocation.addr.is_multiple_of(8) {
                return Err(ImageError::Unaligned { what: "a slot", addr: relocation.addr });
            }
            slots.push(Slot { addr: SlotAddr(relocation.addr), kind: relocation.kind, symbol: symbol.to_owned() });
        }
        // Some linkers count DT_JMPREL into DT_RELA as well: the same slot twice.
        slots.sort_by_key(|slot| slot.addr);
        slots.dedup();
        Ok(slots)
    }
}
