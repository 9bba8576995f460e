//! The dynamic section's relocation, symbol and string tables, decoded and bounded.
//!
//! Entries with explicit addends only (`DT_RELA`, `DT_JMPREL`): the two machines use no other. `DT_RELR` holds relative
//! relocations alone, so no slot is missed by not reading it.

use crate::error::ImageError;
use crate::machine::{Action, Machine, SlotKind};
use crate::memory::{ReadMemory, Table, read_u64};

/// Real dynamic sections have 20 to 40 entries.
const MAX_DYNAMIC_ENTRIES: usize = 1024;
/// Bytes of one `Elf64_Rela` and, by coincidence, of one `Elf64_Sym`.
const ENTRY_BYTES: u64 = 24;
/// Four million entries. MLX's CUDA library has 25,000 relocations, but other libraries of the process are read too.
const MAX_TABLE_BYTES: u64 = ENTRY_BYTES << 22;
/// As for the names given out of it, see `names`.
const MAX_STRING_BYTES: u64 = 256 << 20;

const DT_PLTRELSZ: u64 = 2;
const DT_STRTAB: u64 = 5;
const DT_SYMTAB: u64 = 6;
const DT_RELA: u64 = 7;
const DT_RELASZ: u64 = 8;
const DT_RELAENT: u64 = 9;
const DT_STRSZ: u64 = 10;
const DT_SYMENT: u64 = 11;
const DT_PLTREL: u64 = 20;
const DT_JMPREL: u64 = 23;

/// The entries that matter, as found; the last one wins where a tag comes twice, as in glibc.
#[derive(Default)]
struct Entries {
    pltrelsz: Option<u64>,
    strtab: Option<u64>,
    symtab: Option<u64>,
    rela: Option<u64>,
    relasz: Option<u64>,
    relaent: Option<u64>,
    strsz: Option<u64>,
    syment: Option<u64>,
    pltrel: Option<u64>,
    jmprel: Option<u64>,
}

impl Entries {
    fn read(memory: &dyn ReadMemory, dynamic_addr: u64) -> Result<Entries, ImageError> {
        let what = "the dynamic section";
        let mut entries = Entries::default();
        for index in 0..MAX_DYNAMIC_ENTRIES as u64 {
            let addr = offset_addr(what, dynamic_addr, index * 16)?;
            let tag = read_u64(memory, addr, what)?;
            if tag == 0 {
                return Ok(entries);
            }
            let value = read_u64(memory, offset_addr(what, addr, 8)?, what)?;
            if let Some(place) = entries.place(tag) {
                *place = Some(value);
            }
        }
        Err(ImageError::NoDynamicEnd { limit: MAX_DYNAMIC_ENTRIES })
    }

    fn place(&mut self, tag: u64) -> Option<&mut Option<u64>> {
        Some(match tag {
            DT_PLTRELSZ => &mut self.pltrelsz,
            DT_STRTAB => &mut self.strtab,
            DT_SYMTAB => &mut self.symtab,
            DT_RELA => &mut self.rela,
            DT_RELASZ => &mut self.relasz,
            DT_RELAENT => &mut self.relaent,
            DT_STRSZ => &mut self.strsz,
            DT_SYMENT => &mut self.syment,
            DT_PLTREL => &mut self.pltrel,
            DT_JMPREL => &mut self.jmprel,
            _ => return None,
        })
    }
}

/// Where the tables of an image are.
#[derive(Clone, Debug)]
pub(crate) struct DynamicTables {
    bias: u64,
    machine: Machine,
    jmprel: Option<Table>,
    rela: Option<Table>,
    symtab_addr: Option<u64>,
    strtab: Option<Table>,
}

/// A relocation that stores a symbol's address plus `addend` at `addr`.
#[derive(Clone, Copy)]
pub(crate) struct SymbolRelocation {
    pub(crate) addr: u64,
    pub(crate) kind: SlotKind,
    pub(crate) symbol_index: u32,
    pub(crate) addend: i64,
}

/// All relocations of the kinds that matter, in the order of the tables.
#[derive(Default)]
pub(crate) struct Relocations {
    pub(crate) symbols: Vec<SymbolRelocation>,
    /// Address and value stored there. Only filled where asked for: live memory has them applied already.
    pub(crate) relative: Vec<(u64, u64)>,
}

/// An entry of the dynamic symbol table.
#[derive(Clone, Copy)]
pub(crate) struct DynamicSymbol {
    pub(crate) name_offset: u32,
    /// Unbiased; `None` if another image defines it.
    pub(crate) value: Option<u64>,
}

impl DynamicTables {
    pub(crate) fn read(
        memory: &dyn ReadMemory,
        bias: u64,
        dynamic_addr: u64,
        machine: Machine,
    ) -> Result<DynamicTables, ImageError> {
        let entries = Entries::read(memory, dynamic_addr)?;
        expect("DT_RELAENT", entries.relaent, ENTRY_BYTES)?;
        expect("DT_SYMENT", entries.syment, ENTRY_BYTES)?;
        if entries.jmprel.is_some() {
            expect("DT_PLTREL", entries.pltrel, DT_RELA)?;
        }
        let sized = |names, addr, size, limit| sized_table(names, bias, addr, size, limit);
        let jmprel = sized(("DT_JMPREL", "DT_PLTRELSZ"), entries.jmprel, entries.pltrelsz, MAX_TABLE_BYTES)?;
        let rela = sized(("DT_RELA", "DT_RELASZ"), entries.rela, entries.relasz, MAX_TABLE_BYTES)?;
        whole_entries("DT_PLTRELSZ", entries.pltrelsz.filter(|_| jmprel.is_some()))?;
        whole_entries("DT_RELASZ", entries.relasz.filter(|_| rela.is_some()))?;
        let strtab = sized(("DT_STRTAB", "DT_STRSZ"), entries.strtab, entries.strsz, MAX_STRING_BYTES)?;
        let symtab_addr = entries.symtab.map(|addr| absolute("DT_SYMTAB", bias, addr)).transpose()?;
        Ok(DynamicTables { bias, machine, jmprel, rela, symtab_addr, strtab })
    }

    pub(crate) fn relocations(&self, memory: &dyn ReadMemory, relative: bool) -> Result<Relocations, ImageError> {
        let mut found = Relocations::default();
        for table in [&self.jmprel, &self.rela].into_iter().flatten() {
            let mut outside = None;
            table.for_each_entry(memory, |entry| {
                if let Err(error) = self.decode(entry, relative, &mut found) {
                    outside.get_or_insert(error);
                }
            })?;
            outside.map_or(Ok(()), Err)?;
        }
        Ok(found)
    }

    /// `Elf64_Rela`: offset u64, kind u32, symbol u32, addend i64.
    fn decode(&self, entry: &[u8; 24], relative: bool, found: &mut Relocations) -> Result<(), ImageError> {
        let [offset, info, addend] = words(entry);
        let action = self.machine.action(info as u32);
        if action == Action::Other || (action == Action::Relative && !relative) {
            return Ok(());
        }
        let addr = offset_addr("a relocated word", self.bias, offset)?;
        offset_addr("the end of a relocated word", addr, 8)?;
        match action {
            Action::Symbol(kind) => found.symbols.push(SymbolRelocation {
                addr,
                kind,
                symbol_index: (info >> 32) as u32,
                addend: self.machine.addend(kind, addend as i64),
            }),
            Action::Relative => found.relative.push((addr, self.bias.wrapping_add(addend))),
            Action::Other => {}
        }
        Ok(())
    }

    /// The dynamic symbol table up to `last_index`. Nothing in the image says how many there are except its hash tables,
    /// and those need not be right either: what counts is which ones are used.
    pub(crate) fn symbols(&self, memory: &dyn ReadMemory, last_index: u32) -> Result<Vec<DynamicSymbol>, ImageError> {
        let missing = ImageError::MissingEntry { present: "relocations by symbol", missing: "DT_SYMTAB" };
        let addr = self.symtab_addr.ok_or(missing)?;
        let size_bytes = (u64::from(last_index) + 1) * ENTRY_BYTES;
        let table = Table::new("bytes of dynamic symbols (DT_SYMTAB)", addr, size_bytes, MAX_TABLE_BYTES)?;
        let mut symbols = Vec::new();
        table.for_each_entry(memory, |entry| symbols.push(DynamicSymbol::decode(entry)))?;
        Ok(symbols)
    }

    pub(crate) fn strings(&self, memory: &dyn ReadMemory) -> Result<Vec<u8>, ImageError> {
        let missing = ImageError::MissingEntry { present: "relocations by symbol", missing: "DT_STRTAB" };
        self.strtab.as_ref().ok_or(missing)?.read(memory)
    }
}

impl DynamicSymbol {
    /// `Elf64_Sym`: name u32, info u8, other u8, section u16, value u64, size u64.
    fn decode(entry: &[u8; 24]) -> DynamicSymbol {
        let [head, value, _size] = words(entry);
        let is_defined = (head >> 48) as u16 != 0;
        DynamicSymbol { name_offset: head as u32, value: is_defined.then_some(value) }
    }
}

fn words(entry: &[u8; 24]) -> [u64; 3] {
    let mut words = [0; 3];
    for (word, bytes) in words.iter_mut().zip(entry.as_chunks().0) {
        *word = u64::from_le_bytes(*bytes);
    }
    words
}

fn expect(entry: &'static str, found: Option<u64>, expected: u64) -> Result<(), ImageError> {
    match found {
        Some(found) if found != expected => Err(ImageError::WrongEntry { entry, found, expected }),
        _ => Ok(()),
    }
}

fn whole_entries(table: &'static str, size_bytes: Option<u64>) -> Result<(), ImageError> {
    match size_bytes {
        Some(size_bytes) if size_bytes % ENTRY_BYTES != 0 => {
            Err(ImageError::RaggedTable { table, size_bytes, entry_bytes: ENTRY_BYTES })
        }
        _ => Ok(()),
    }
}

fn sized_table(
    (addr_name, size_name): (&'static str, &'static str),
    bias: u64,
    addr: Option<u64>,
    size_bytes: Option<u64>,
    limit_bytes: u64,
) -> Result<Option<Table>, ImageError> {
    let Some(addr) = addr else { return Ok(None) };
    let missing = ImageError::MissingEntry { present: addr_name, missing: size_name };
    let size_bytes = size_bytes.ok_or(missing)?;
    Table::new(size_name, absolute(addr_name, bias, addr)?, size_bytes, limit_bytes).map(Some)
}

/// glibc replaces the pointers of a dynamic section by absolute ones at load; musl, some ports of glibc and files keep
/// offsets from the bias. No image reaches up to its own bias, so whatever is below it is an offset.
fn absolute(what: &'static str, bias: u64, pointer: u64) -> Result<u64, ImageError> {
    if pointer >= bias { Ok(pointer) } else { offset_addr(what, bias, pointer) }
}

fn offset_addr(what: &'static str, base: u64, offset: u64) -> Result<u64, ImageError> {
    base.checked_add(offset).ok_or(ImageError::OutOfAddressSpace { what, base, offset })
}
