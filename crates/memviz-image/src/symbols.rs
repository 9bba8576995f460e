//! Symbols of an image's file: where a name is, and what is at an address.
//!
//! Reads section headers, so it needs the file: neither `.symtab` nor the headers are part of a loaded image. Addresses
//! inside are unbiased; each question says the bias, so one table serves any number of loads of the file.

use object::LittleEndian;
use object::elf::{self, FileHeader64, Sym64};
use object::read::elf::{FileHeader as _, SectionHeader as _, Sym as _};

use crate::error::ImageError;
use crate::machine::Machine;
use crate::names::Names;

/// Defined symbols of an image file, `.dynsym` and `.symtab` together.
///
/// `entries` is sorted by address, then name, without repetition; `by_name` holds the same entries sorted by name, global
/// before local, then by address. Names are one string: 18,000 small allocations cost more than the whole parse.
#[derive(Clone, Debug, Default)]
pub struct SymbolTable {
    names: String,
    entries: Vec<Entry>,
    by_name: Vec<u32>,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    addr: u64,
    /// Its last byte, not one past it: a damaged table may name the last byte of the address space. A symbol without size
    /// (assembler labels) has its first byte.
    last: u64,
    /// Largest `last` of this entry and all before it: where a search for an enclosing symbol can stop.
    max_last: u64,
    name_start: u32,
    name_end: u32,
    is_local: bool,
}

impl SymbolTable {
    /// Keeps the defined symbols whose name satisfies `wanted`, so that a CUDA library's 150,000 need not be stored.
    ///
    /// Left out are symbols that are not an address in the image (section and file names, thread-local and absolute
    /// symbols), aarch64's `$x` and `$d` marks, and names that are empty, not UTF-8 or longer than 4 KiB. A file without
    /// symbols gives an empty table.
    pub fn from_file(bytes: &[u8], wanted: &dyn Fn(&str) -> bool) -> Result<SymbolTable, ImageError> {
        let parse = |what| move |source| ImageError::Parse { what, source };
        let header = FileHeader64::<LittleEndian>::parse(bytes).map_err(parse("the header"))?;
        let endian = header.endian().map_err(parse("the header"))?;
        Machine::from_elf(header.e_machine(endian).0)?;
        let sections = header.section_headers(endian, bytes).map_err(parse("the section table"))?;
        let mut table = SymbolTable::default();
        // One of each at most, by specification: more of them would only multiply the work.
        for kind in [elf::SHT_SYMTAB, elf::SHT_DYNSYM] {
            let Some(section) = sections.iter().find(|section| section.sh_type(endian) == kind) else { continue };
            let symbols = section.data_as_array(endian, bytes).map_err(parse("the symbol table"))?;
            let strings = sections.get(section.sh_link(endian) as usize).map(|section| section.data(endian, bytes));
            table.add(symbols, strings.unwrap_or(Ok(&[])).map_err(parse("the string table"))?, wanted)?;
        }
        table.index();
        Ok(table)
    }

    fn add(
        &mut self,
        symbols: &[Sym64<LittleEndian>],
        strings: &[u8],
        wanted: &dyn Fn(&str) -> bool,
    ) -> Result<(), ImageError> {
        let mut names = Names::new(strings);
        for symbol in symbols.iter().filter(|symbol| is_place(symbol)) {
            let name = names.get(symbol.st_name(LittleEndian))?;
            let Some(name) = name.filter(|name| !is_mapping_mark(name) && wanted(name)) else { continue };
            let addr = symbol.st_value(LittleEndian);
            let name_start = self.names.len() as u32;
            self.names.push_str(name);
            self.entries.push(Entry {
                addr,
                last: addr.saturating_add(symbol.st_size(LittleEndian).saturating_sub(1)),
                max_last: 0,
                name_start,
                name_end: self.names.len() as u32,
                is_local: symbol.is_local(),
            });
        }
        Ok(())
    }

    fn index(&mut self) {
        let names = &self.names;
        self.entries.sort_unstable_by(|a, b| (a.addr, a.name(names)).cmp(&(b.addr, b.name(names))));
        self.entries.dedup_by(|a, b| (a.addr, a.name(names)) == (b.addr, b.name(names)));
        let mut max_last = 0;
        for entry in &mut self.entries {
            max_last = max_last.max(entry.last);
            entry.max_last = max_last;
        }
        let named = self.entries.iter().zip(0..);
        let mut named: Vec<_> = named.map(|(entry, index)| (entry.name(names), entry.is_local, index)).collect();
        named.sort_unstable();
        self.by_name = named.into_iter().map(|(_, _, index)| index).collect();
    }

    /// Where `name` is in an image loaded at `bias`. Of several (static functions of different source files) the global
    /// one, else the lowest.
    pub fn address_of(&self, name: &str, bias: u64) -> Option<u64> {
        let (_, addr) = self.named_from(name).next().filter(|(found, _)| *found == name)?;
        addr.checked_add(bias)
    }

    /// The symbol that starts exactly at `addr`. Of several (aliases, identical functions folded) the lexicographically
    /// first.
    pub fn name_at(&self, addr: u64, bias: u64) -> Option<&str> {
        self.names_at(addr, bias).next()
    }

    /// All symbols that start exactly at `addr`, sorted.
    pub fn names_at(&self, addr: u64, bias: u64) -> impl Iterator<Item = &str> + '_ {
        let found = addr.checked_sub(bias).map_or(&[][..], |addr| {
            let first = self.entries.partition_point(|entry| entry.addr < addr);
            let len = self.entries[first..].partition_point(|entry| entry.addr == addr);
            &self.entries[first..first + len]
        });
        found.iter().map(|entry| entry.name(&self.names))
    }

    /// The symbol that `addr` lies in, and how far in. Of several the one that starts last; of those with one start the
    /// lexicographically first.
    pub fn containing(&self, addr: u64, bias: u64) -> Option<(&str, u64)> {
        let addr = addr.checked_sub(bias)?;
        let until = self.entries.partition_point(|entry| entry.addr <= addr);
        let near = self.entries[..until].iter().rev().take_while(|entry| entry.max_last >= addr);
        let mut around = near.filter(|entry| entry.last >= addr);
        let innermost = around.next()?;
        let entry = around.take_while(|entry| entry.addr == innermost.addr).last().unwrap_or(innermost);
        Some((entry.name(&self.names), addr - entry.addr))
    }

    /// Names that begin with `prefix` and their unbiased addresses, sorted by name.
    pub fn with_prefix<'a>(&'a self, prefix: &'a str) -> impl Iterator<Item = (&'a str, u64)> + 'a {
        self.named_from(prefix).take_while(move |(name, _)| name.starts_with(prefix))
    }

    /// Number of symbols kept.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// No symbol was kept.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    fn named_from<'a>(&'a self, name: &str) -> impl Iterator<Item = (&'a str, u64)> + use<'a> {
        let entry = |&index: &u32| &self.entries[index as usize];
        let first = self.by_name.partition_point(|index| entry(index).name(&self.names) < name);
        self.by_name[first..].iter().map(move |index| (entry(index).name(&self.names), entry(index).addr))
    }
}

impl Entry {
    fn name<'a>(&self, names: &'a str) -> &'a str {
        &names[self.name_start as usize..self.name_end as usize]
    }
}

/// Defined, and its value is an address in the image.
fn is_place(symbol: &Sym64<LittleEndian>) -> bool {
    let kind = symbol.st_type();
    let section = symbol.st_shndx(LittleEndian);
    section != elf::SHN_UNDEF
        && section != elf::SHN_ABS
        && section != elf::SHN_COMMON
        && [elf::STT_NOTYPE, elf::STT_OBJECT, elf::STT_FUNC, elf::STT_GNU_IFUNC].contains(&kind)
}

/// `$x`, `$d`, `$x.7`: on aarch64 the linker keeps these to tell code from data. There are thousands, they are nobody's
/// name, and they would sort before the name of the function they start with.
fn is_mapping_mark(name: &str) -> bool {
    matches!(name.as_bytes(), [b'$', b'x' | b'd'] | [b'$', b'x' | b'd', b'.', ..])
}
