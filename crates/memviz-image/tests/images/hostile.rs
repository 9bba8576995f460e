//! Images that lie: each is refused with the reason, and quickly.

use memviz_image::{FileImage, ImageError, LoadedImage, Machine, ReadMemory, Slot, SymbolTable, Unreadable};

use crate::builder::{self, *};

/// Memory where everything can be read: the image's bytes at 0, zeros all around.
struct Endless<'a>(&'a [u8]);

impl ReadMemory for Endless<'_> {
    fn read(&self, addr: u64, into: &mut [u8]) -> Result<(), Unreadable> {
        let rest = usize::try_from(addr).ok().and_then(|addr| self.0.get(addr..)).unwrap_or(&[]);
        let len = rest.len().min(into.len());
        into[..len].copy_from_slice(&rest[..len]);
        into[len..].fill(0);
        Ok(())
    }
}

/// The file's first segment is at its own offsets, so its bytes are memory enough for every table.
fn slots(image: &Image) -> Result<Vec<Slot>, ImageError> {
    let bytes = image.build();
    let loaded = LoadedImage::from_dynamic(&Endless(&bytes), 0, 232, image.machine)?;
    loaded.slots(&Endless(&bytes), &|_| true)
}

fn refusal(image: &Image) -> String {
    slots(image).unwrap_err().to_string()
}

fn image() -> Image {
    builder::good(Machine::X86_64)
}

#[test]
fn absurd_sizes_are_refused_before_reading() {
    let huge = 1 << 60;
    assert_eq!(
        refusal(&image().with(DT_PLTRELSZ, huge)),
        "DT_PLTRELSZ: 1152921504606846976, more than the 100663296 that are read"
    );
    assert_eq!(
        refusal(&image().with(DT_RELASZ, u64::MAX)),
        "DT_RELASZ: 18446744073709551615, more than the 100663296 that are read"
    );
    assert_eq!(
        refusal(&image().with(DT_STRSZ, huge)),
        "DT_STRSZ: 1152921504606846976, more than the 268435456 that are read"
    );
}

#[test]
fn sizes_that_only_memory_disproves_are_refused() {
    for (tag, size_bytes) in [(DT_PLTRELSZ, 24 << 20), (DT_STRSZ, 200 << 20)] {
        let bytes = image().with(tag, size_bytes).build();
        let good = image().build();
        let end = FileImage::new(&good).unwrap();
        let memory = Ending(Endless(&bytes), end);
        let loaded = LoadedImage::from_dynamic(&memory, 0, 232, Machine::X86_64).unwrap();
        assert!(matches!(loaded.slots(&memory, &|_| true), Err(ImageError::Unreadable { .. })));
    }
}

/// Readable only where another memory is.
struct Ending<'a>(Endless<'a>, FileImage<'a>);

impl ReadMemory for Ending<'_> {
    fn read(&self, addr: u64, into: &mut [u8]) -> Result<(), Unreadable> {
        self.1.read(addr, into)?;
        self.0.read(addr, into)
    }
}

#[test]
fn the_largest_tables_are_read_in_no_time_and_hold_nothing() {
    assert_eq!(slots(&image().with(DT_JMPREL, 1 << 40).with(DT_PLTRELSZ, 24 << 22)).unwrap().len(), 3);
}

#[test]
fn wrong_formats_are_named() {
    assert_eq!(refusal(&image().with(DT_RELAENT, 16)), "DT_RELAENT is 16; expected 24");
    assert_eq!(refusal(&image().with(DT_SYMENT, 0)), "DT_SYMENT is 0; expected 24");
    assert_eq!(refusal(&image().with(DT_PLTREL, 17)), "DT_PLTREL is 17; expected 7");
    assert_eq!(refusal(&image().with(DT_RELASZ, 25)), "DT_RELASZ has 25 bytes; expected a multiple of 24");
    assert_eq!(refusal(&image().with(DT_PLTRELSZ, 1)), "DT_PLTRELSZ has 1 bytes; expected a multiple of 24");
}

#[test]
fn missing_partners_are_named() {
    assert_eq!(refusal(&image().without(DT_PLTRELSZ)), "DT_JMPREL without DT_PLTRELSZ in the dynamic section");
    assert_eq!(refusal(&image().without(DT_RELASZ)), "DT_RELA without DT_RELASZ in the dynamic section");
    assert_eq!(refusal(&image().without(DT_STRSZ)), "DT_STRTAB without DT_STRSZ in the dynamic section");
    assert_eq!(refusal(&image().without(DT_SYMTAB)), "relocations by symbol without DT_SYMTAB in the dynamic section");
    assert_eq!(refusal(&image().without(DT_STRTAB)), "relocations by symbol without DT_STRTAB in the dynamic section");
}

#[test]
fn addresses_may_not_leave_the_address_space() {
    assert_eq!(
        refusal(&image().with(DT_RELA, u64::MAX - 3)),
        "DT_RELASZ at 0xfffffffffffffffc + 0x90 leaves the address space"
    );
    let bytes = image().build();
    let result = LoadedImage::from_dynamic(&Endless(&bytes), u64::MAX - 8, 232, Machine::X86_64);
    assert!(matches!(result, Err(ImageError::OutOfAddressSpace { .. })), "{result:?}");

    let mut wild = image();
    wild.jmprel[0].addr = u64::MAX - 7;
    assert!(slots(&wild).is_err());
    // Only a kind that this crate has no use for may point anywhere.
    wild.jmprel[0].kind = 0;
    assert_eq!(slots(&wild).unwrap().len(), 4);
}

#[test]
fn symbol_and_string_indexes_are_checked() {
    let mut wild = image();
    wild.jmprel[1].symbol = u32::MAX;
    assert_eq!(
        refusal(&wild),
        "bytes of dynamic symbols (DT_SYMTAB): 103079215104, more than the 100663296 that are read"
    );
    assert_eq!(refusal(&image().with(DT_STRSZ, 10)), "a symbol's name starts at 10 in a string table of 10 bytes");
    assert_eq!(refusal(&image().with(DT_STRSZ, 20)), "the symbol name at 16 in the string table has no end");
    assert_eq!(refusal(&image().with(DT_STRSZ, 0)), "a symbol's name starts at 1 in a string table of 0 bytes");
}

#[test]
fn an_unaligned_slot_is_refused_only_if_it_is_wanted() {
    let mut wild = image();
    wild.rela[4].addr += 4;
    assert_eq!(refusal(&wild), "a slot at 0x10003c is not 8-byte aligned");
    let bytes = wild.build();
    let loaded = LoadedImage::from_dynamic(&Endless(&bytes), 0, 232, Machine::X86_64).unwrap();
    assert_eq!(loaded.slots(&Endless(&bytes), &|name| name == "other").unwrap().len(), 1);
}

#[test]
fn tables_that_overlap_or_contain_themselves_end() {
    // Every table is the dynamic section itself, or the relocations themselves.
    for base in [232, 232 + 256] {
        let image = POINTERS.into_iter().fold(image(), |image, tag| image.with(tag, base));
        let _ = slots(&image);
        let _ = FileImage::new(&image.build());
    }
}

#[test]
fn a_dynamic_section_without_end_is_refused() {
    struct Ones;
    impl ReadMemory for Ones {
        fn read(&self, _addr: u64, into: &mut [u8]) -> Result<(), Unreadable> {
            into.fill(1);
            Ok(())
        }
    }
    let error = LoadedImage::from_dynamic(&Ones, 0, 0x1000, Machine::X86_64).unwrap_err();
    assert_eq!(error.to_string(), "no DT_NULL in the first 1024 entries of the dynamic section");
    let error = LoadedImage::from_dynamic(&Ones, 0, u64::MAX - 100, Machine::X86_64).unwrap_err();
    assert!(matches!(error, ImageError::OutOfAddressSpace { .. }));
}

#[test]
fn many_names_in_one_long_string_are_left_out() {
    let mut image = image();
    image.symtab = (0..2000).map(|_| function("", TEXT_ADDR, 4)).collect();
    let mut bytes = image.build();
    // All 2000 names start at the same place and have no end within 4 KiB; the table ends in a zero byte.
    let strings = vec![b'a'; 1 << 20];
    let at = bytes.len() as u64;
    bytes.extend(strings);
    bytes.push(0);
    let sections = u64::from_le_bytes(bytes[40..48].try_into().unwrap()) as usize;
    bytes[sections + 3 * 64 + 24..][..8].copy_from_slice(&at.to_le_bytes());
    bytes[sections + 3 * 64 + 32..][..8].copy_from_slice(&((1_u64 << 20) + 1).to_le_bytes());
    let table = SymbolTable::from_file(&bytes, &|_| true).unwrap();
    assert_eq!(table.with_prefix("").collect::<Vec<_>>(), [("first", TEXT_ADDR)], "only that of .dynsym is left");
}

#[test]
fn every_truncation_of_a_good_file_gives_an_answer() {
    let bytes = image().build();
    for len in 0..bytes.len() {
        let cut = &bytes[..len];
        if let Ok(file) = FileImage::new(cut) {
            let _ = LoadedImage::from_dynamic(&file, 0, 232, file.machine()).map(|image| image.slots(&file, &|_| true));
        }
        assert!(SymbolTable::from_file(cut, &|_| true).is_err(), "the section table is at the end");
    }
    assert_eq!(FileImage::new(&bytes[..0x1000]).unwrap_err().to_string(), "cannot read a segment's part of the file");
    assert_eq!(
        FileImage::new(&bytes[..10]).unwrap_err().to_string(),
        "the header of the file cannot be parsed; expected 64-bit little endian ELF"
    );
}

#[test]
fn other_kinds_of_elf_are_refused() {
    for (at, value) in [(0, 0), (4, 1), (5, 2), (18, 3)] {
        let mut bytes = image().build();
        bytes[at] = value;
        assert!(FileImage::new(&bytes).is_err());
        assert!(SymbolTable::from_file(&bytes, &|_| true).is_err());
    }
}

#[test]
fn segments_may_not_overlap_or_leave_the_address_space() {
    let set = |header: usize, field: usize, value: u64| {
        let mut bytes = image().build();
        bytes[64 + 56 * header + field..][..8].copy_from_slice(&value.to_le_bytes());
        FileImage::new(&bytes).map(|_| ()).unwrap_err().to_string()
    };
    assert_eq!(set(1, 16, 0x800), "the segments at 0x0 and 0x800 overlap");
    assert_eq!(set(1, 40, u64::MAX), "a segment at 0x100000 + 0xffffffffffffffff leaves the address space");
    assert_eq!(set(0, 8, 1 << 60), "cannot read a segment's part of the file");
    // A segment of zeros of any size costs nothing.
    let mut bytes = image().build();
    bytes[64 + 56 + 40..][..8].copy_from_slice(&(1_u64 << 60).to_le_bytes());
    let file = FileImage::new(&bytes).unwrap();
    let mut word = [1; 8];
    file.read(1 << 59, &mut word).unwrap();
    assert_eq!(word, [0; 8]);
}

#[test]
fn a_symbol_at_the_last_address_contains_its_byte() {
    let mut image = image();
    image.symtab.extend([function("end", u64::MAX, 0), function("past", u64::MAX, 8)]);
    let symbols = SymbolTable::from_file(&image.build(), &|_| true).unwrap();
    assert_eq!(symbols.containing(u64::MAX, 0), Some(("end", 0)));
}
