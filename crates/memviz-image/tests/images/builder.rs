//! Builds small ELF images, right ones and, by way of overrides, wrong ones. The fuzz target starts from them too.
//!
//! Layout: headers, dynamic section, tables, symbols, strings and code in one executable segment whose addresses are
//! file offsets; data (slots and a vtable) in a second one at [`DATA_ADDR`], followed by zeros. Sections come last.

use memviz_image::Machine;

/// Start of the data segment.
pub const DATA_ADDR: u64 = 0x10_0000;
/// Bytes of the data segment that come from the file; as many zeros follow.
pub const DATA_BYTES: u64 = 0x200;
/// Start of the code, inside the first segment.
pub const TEXT_ADDR: u64 = 0x1000;
const TEXT_BYTES: u64 = 0x100;

pub const DT_NULL: u64 = 0;
pub const DT_PLTRELSZ: u64 = 2;
pub const DT_STRTAB: u64 = 5;
pub const DT_SYMTAB: u64 = 6;
pub const DT_RELA: u64 = 7;
pub const DT_RELASZ: u64 = 8;
pub const DT_RELAENT: u64 = 9;
pub const DT_STRSZ: u64 = 10;
pub const DT_SYMENT: u64 = 11;
pub const DT_PLTREL: u64 = 20;
pub const DT_JMPREL: u64 = 23;
/// The entries that hold an address.
pub const POINTERS: [u64; 4] = [DT_STRTAB, DT_SYMTAB, DT_RELA, DT_JMPREL];

/// Numbers of the relocation kinds of one machine.
pub struct Kinds {
    pub jump_slot: u32,
    pub glob_dat: u32,
    pub absolute: u32,
    pub relative: u32,
}

pub fn kinds(machine: Machine) -> Kinds {
    match machine {
        Machine::X86_64 => Kinds { jump_slot: 7, glob_dat: 6, absolute: 1, relative: 8 },
        Machine::Aarch64 => Kinds { jump_slot: 1026, glob_dat: 1025, absolute: 257, relative: 1027 },
    }
}

/// `Elf64_Sym`, with the name spelled out.
#[derive(Clone)]
pub struct Symbol {
    pub name: Vec<u8>,
    pub info: u8,
    pub section: u16,
    pub value: u64,
    pub size: u64,
}

/// A global function, defined in section 1.
pub fn function(name: &str, value: u64, size: u64) -> Symbol {
    Symbol { name: name.into(), info: 0x12, section: 1, value, size }
}

/// A name that another image defines.
pub fn import(name: &str) -> Symbol {
    Symbol { name: name.into(), info: 0x12, section: 0, value: 0, size: 0 }
}

/// `Elf64_Rela`.
#[derive(Clone, Copy)]
pub struct Rela {
    pub addr: u64,
    pub kind: u32,
    pub symbol: u32,
    pub addend: i64,
}

/// An image to be. `dynsym` and `symtab` get their null symbol by themselves, so the first of `dynsym` has index 1.
#[derive(Clone)]
pub struct Image {
    pub machine: Machine,
    pub dynsym: Vec<Symbol>,
    pub symtab: Vec<Symbol>,
    pub jmprel: Vec<Rela>,
    pub rela: Vec<Rela>,
    pub data: Vec<u64>,
    /// Values put in place of the right ones; `None` leaves the entry out.
    pub dynamic: Vec<(u64, Option<u64>)>,
    /// Added to the pointers of the dynamic section, as glibc does at load.
    pub pointer_bias: u64,
}

/// Slots of every kind for `imported`, a vtable of `first` and `second`, and a symbol table with more names.
pub fn good(machine: Machine) -> Image {
    let kinds = kinds(machine);
    let rela = |offset, kind, symbol, addend| Rela { addr: DATA_ADDR + offset, kind, symbol, addend };
    let local = |name: &str, value, size| Symbol { info: 0x02, ..function(name, value, size) };
    Image {
        machine,
        dynsym: vec![import("imported"), import("other"), function("first", TEXT_ADDR, 0x20), import("_ZTV5Table")],
        symtab: vec![
            function("first", TEXT_ADDR, 0x20),
            function("alias_of_first", TEXT_ADDR, 0x20),
            local("second", TEXT_ADDR + 0x20, 0x40),
            local("inner", TEXT_ADDR + 0x30, 0x10),
            local("label", TEXT_ADDR + 0x34, 0),
            local("static", TEXT_ADDR + 0x80, 8),
            function("static", TEXT_ADDR + 0x90, 8),
            Symbol { info: 0x11, ..function("_ZTV4Mine", DATA_ADDR + 0x40, 0x28) },
        ],
        jmprel: vec![rela(0x18, kinds.jump_slot, 1, 0), rela(0x20, kinds.jump_slot, 2, 0)],
        rela: vec![
            rela(0x48, kinds.relative, 0, 0x1234),
            rela(0x50, kinds.absolute, 3, 0),
            rela(0x58, kinds.relative, 0, TEXT_ADDR as i64 + 0x20),
            rela(0x30, kinds.glob_dat, 1, 0),
            rela(0x38, kinds.absolute, 1, 0),
            rela(0x70, kinds.absolute, 4, 16),
        ],
        data: vec![0; DATA_BYTES as usize / 8],
        dynamic: Vec::new(),
        pointer_bias: 0,
    }
}

impl Image {
    pub fn with(mut self, tag: u64, value: u64) -> Image {
        self.dynamic.push((tag, Some(value)));
        self
    }

    pub fn without(mut self, tag: u64) -> Image {
        self.dynamic.push((tag, None));
        self
    }

    /// The file.
    pub fn build(&self) -> Vec<u8> {
        let (dynsym, dynstr) = symbol_table(&self.dynsym);
        let (symtab, strtab) = symbol_table(&self.symtab);
        let (jmprel, rela) = (rela_table(&self.jmprel), rela_table(&self.rela));
        let mut file = vec![0; 64 + 3 * 56];
        let dynamic_addr = file.len() as u64;
        let jmprel_addr = dynamic_addr + 16 * 16;
        let rela_addr = jmprel_addr + jmprel.len() as u64;
        let dynsym_addr = rela_addr + rela.len() as u64;
        let dynstr_addr = dynsym_addr + dynsym.len() as u64;
        let entries = [
            (DT_JMPREL, jmprel_addr),
            (DT_PLTRELSZ, jmprel.len() as u64),
            (DT_PLTREL, DT_RELA),
            (DT_RELA, rela_addr),
            (DT_RELASZ, rela.len() as u64),
            (DT_RELAENT, 24),
            (DT_SYMTAB, dynsym_addr),
            (DT_SYMENT, 24),
            (DT_STRTAB, dynstr_addr),
            (DT_STRSZ, dynstr.len() as u64),
            (DT_NULL, 0),
        ];
        let mut dynamic = self.dynamic_section(&entries);
        dynamic.resize(16 * 16, 0);
        for part in [&dynamic, &jmprel, &rela, &dynsym, &dynstr] {
            file.extend(part);
        }
        assert!(file.len() as u64 <= TEXT_ADDR, "tables grew into the code");
        file.resize((TEXT_ADDR + TEXT_BYTES) as usize, 0xcc);
        let data_offset = file.len() as u64;
        file.extend(self.data.iter().flat_map(|word| word.to_le_bytes()));
        let data_end = file.len() as u64;
        let (symtab_offset, strtab_offset) = (data_end, data_end + symtab.len() as u64);
        file.extend(symtab.iter().chain(&strtab));
        let sections_offset = file.len() as u64;
        let sections = [
            [0; 8],
            [3, dynstr_addr, dynstr.len() as u64, 0, 0, 0, 0, 0],
            [11, dynsym_addr, dynsym.len() as u64, 1, 1, 8, 24, 0],
            [3, strtab_offset, strtab.len() as u64, 0, 0, 0, 0, 0],
            [2, symtab_offset, symtab.len() as u64, 3, 1, 8, 24, 0],
        ];
        file.extend(sections.iter().flat_map(section_header));
        let segments = [
            (1, 5, 0, 0, data_offset, data_offset),
            (1, 6, data_offset, DATA_ADDR, DATA_BYTES, 2 * DATA_BYTES),
            (2, 6, dynamic_addr, dynamic_addr, 16 * 16, 16 * 16),
        ];
        file[..64].copy_from_slice(&self.header(sections_offset, sections.len() as u16));
        let headers: Vec<u8> = segments.iter().flat_map(program_header).collect();
        file[64..64 + headers.len()].copy_from_slice(&headers);
        file
    }

    fn dynamic_section(&self, entries: &[(u64, u64)]) -> Vec<u8> {
        let mut section = Vec::new();
        for &(tag, value) in entries {
            let biased = if POINTERS.contains(&tag) { value + self.pointer_bias } else { value };
            let chosen = self.dynamic.iter().find(|(other, _)| *other == tag).map_or(Some(biased), |(_, value)| *value);
            let Some(value) = chosen else { continue };
            section.extend(tag.to_le_bytes());
            section.extend(value.to_le_bytes());
        }
        section
    }

    fn header(&self, sections_offset: u64, section_count: u16) -> [u8; 64] {
        let e_machine: u16 = match self.machine {
            Machine::X86_64 => 62,
            Machine::Aarch64 => 183,
        };
        let mut header = Vec::from(*b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0");
        header.extend([3_u16, e_machine].iter().flat_map(|half| half.to_le_bytes()));
        header.extend(1_u32.to_le_bytes());
        header.extend([0, 64, sections_offset].iter().flat_map(|word: &u64| word.to_le_bytes()));
        header.extend(0_u32.to_le_bytes());
        header.extend([64, 56, 3, 64, section_count, 0].iter().flat_map(|half: &u16| half.to_le_bytes()));
        header.try_into().expect("64 bytes")
    }
}

fn symbol_table(symbols: &[Symbol]) -> (Vec<u8>, Vec<u8>) {
    let (mut table, mut strings) = (vec![0; 24], vec![0]);
    for symbol in symbols {
        table.extend((strings.len() as u32).to_le_bytes());
        table.extend([symbol.info, 0]);
        table.extend(symbol.section.to_le_bytes());
        table.extend(symbol.value.to_le_bytes());
        table.extend(symbol.size.to_le_bytes());
        strings.extend(&symbol.name);
        strings.push(0);
    }
    (table, strings)
}

fn rela_table(relocations: &[Rela]) -> Vec<u8> {
    let words = |rela: &Rela| [rela.addr, u64::from(rela.symbol) << 32 | u64::from(rela.kind), rela.addend as u64];
    relocations.iter().flat_map(words).flat_map(u64::to_le_bytes).collect()
}

/// kind, offset, size, link, info, alignment, entry size; names, flags and addresses are not read.
fn section_header(&[kind, offset, size, link, info, align, entry, _]: &[u64; 8]) -> Vec<u8> {
    let mut header = Vec::new();
    header.extend([0, kind as u32].iter().flat_map(|half| half.to_le_bytes()));
    header.extend([0, 0, offset, size].iter().flat_map(|word| word.to_le_bytes()));
    header.extend([link as u32, info as u32].iter().flat_map(|half| half.to_le_bytes()));
    header.extend([align, entry].iter().flat_map(|word| word.to_le_bytes()));
    header
}

fn program_header(&(kind, flags, offset, addr, file_bytes, bytes): &(u32, u32, u64, u64, u64, u64)) -> Vec<u8> {
    let mut header = Vec::new();
    header.extend([kind, flags].iter().flat_map(|half| half.to_le_bytes()));
    header.extend([offset, addr, addr, file_bytes, bytes, 8].iter().flat_map(|word| word.to_le_bytes()));
    header
}
