//! What is read from images without a fault, on both machines.

use memviz_image::{
    FileImage, LoadedImage, Machine, ReadMemory, Slot, SlotAddr, SlotKind, SymbolTable, Unreadable, vtable_entries,
};

use crate::builder::{self, DATA_ADDR, DATA_BYTES, Image, Symbol, TEXT_ADDR, function, good};

const MACHINES: [Machine; 2] = [Machine::X86_64, Machine::Aarch64];

/// A file loaded at another address.
struct LoadedAt<'a>(FileImage<'a>, u64);

impl ReadMemory for LoadedAt<'_> {
    fn read(&self, addr: u64, into: &mut [u8]) -> Result<(), Unreadable> {
        let offset = addr.checked_sub(self.1).ok_or(Unreadable { addr, len: into.len() })?;
        self.0.read(offset, into)
    }
}

fn slot(offset: u64, kind: SlotKind, symbol: &str) -> Slot {
    Slot { addr: SlotAddr(DATA_ADDR + offset), kind, symbol: symbol.to_owned() }
}

fn slots_of(bytes: &[u8], wanted: &dyn Fn(&str) -> bool) -> Vec<Slot> {
    let file = FileImage::new(bytes).unwrap();
    let image = LoadedImage::from_dynamic(&file, 0, file.dynamic_addr().unwrap(), file.machine()).unwrap();
    image.slots(&file, wanted).unwrap()
}

#[test]
fn slots_of_every_kind_are_found_sorted_by_address() {
    for machine in MACHINES {
        let slots = slots_of(&good(machine).build(), &|name| name == "imported");
        assert_eq!(
            slots,
            [
                slot(0x18, SlotKind::JumpSlot, "imported"),
                slot(0x30, SlotKind::GlobDat, "imported"),
                slot(0x38, SlotKind::Absolute, "imported"),
            ]
        );
    }
}

#[test]
fn only_names_with_a_slot_are_asked_for() {
    let asked = std::cell::RefCell::new(Vec::new());
    let slots = slots_of(&good(Machine::X86_64).build(), &|name| {
        asked.borrow_mut().push(name.to_owned());
        false
    });
    assert!(slots.is_empty());
    // A pointer into a vtable, `_ZTV5Table + 16`, is no slot of the vtable's symbol.
    assert_eq!(asked.into_inner(), ["imported", "other", "first", "imported", "imported"]);
}

#[test]
fn the_addend_of_a_jump_slot_counts_on_aarch64_only() {
    for (machine, expected) in [(Machine::X86_64, 1), (Machine::Aarch64, 0)] {
        let mut image = good(machine);
        image.rela.clear();
        image.jmprel[0].addend = 8;
        assert_eq!(slots_of(&image.build(), &|name| name == "imported").len(), expected);
    }
}

#[test]
fn pointers_may_be_relocated_or_not_and_even_mixed() {
    let bias = 0x7f12_3456_7000;
    for machine in MACHINES {
        let plain = good(machine);
        let at_zero = slots_of(&plain.build(), &|_| true);
        let unrelocated = plain.build();
        let relocated = Image { pointer_bias: bias, ..plain.clone() }.build();
        let mixed = {
            let symtab = dynamic_value(&unrelocated, builder::DT_SYMTAB);
            Image { pointer_bias: bias, ..plain.clone() }.with(builder::DT_SYMTAB, symtab).build()
        };
        for dynamic in [&unrelocated, &relocated, &mixed] {
            // The file can only be laid out unrelocated; the dynamic section comes from the variant.
            let memory = Patched(LoadedAt(FileImage::new(&unrelocated).unwrap(), bias), bias + 232, &dynamic[232..488]);
            let image = LoadedImage::from_dynamic(&memory, bias, bias + 232, machine).unwrap();
            let mut slots = image.slots(&memory, &|_| true).unwrap();
            slots.iter_mut().for_each(|slot| slot.addr.0 -= bias);
            assert_eq!(slots, at_zero);
        }
    }
}

/// Other bytes over a part of some memory.
struct Patched<'a, M>(M, u64, &'a [u8]);

impl<M: ReadMemory> ReadMemory for Patched<'_, M> {
    fn read(&self, addr: u64, into: &mut [u8]) -> Result<(), Unreadable> {
        self.0.read(addr, into)?;
        for (byte_addr, byte) in (addr..).zip(into) {
            if let Some(patch) = byte_addr.checked_sub(self.1).and_then(|offset| self.2.get(offset as usize)) {
                *byte = *patch;
            }
        }
        Ok(())
    }
}

fn dynamic_value(bytes: &[u8], tag: u64) -> u64 {
    let entries = bytes[232..].as_chunks::<16>().0;
    let entry = entries.iter().find(|entry| entry[..8] == tag.to_le_bytes()).unwrap();
    u64::from_le_bytes(entry[8..].try_into().unwrap())
}

#[test]
fn a_jump_slot_that_both_tables_list_is_one_slot() {
    // Some linkers let DT_RELASZ cover DT_JMPREL, which then follows DT_RELA directly.
    let mut image = good(Machine::X86_64);
    image.rela.extend(image.jmprel.clone());
    assert_eq!(slots_of(&image.build(), &|name| name == "other"), [slot(0x20, SlotKind::JumpSlot, "other")]);
}

#[test]
fn an_image_without_relocations_has_no_slots() {
    let mut image = good(Machine::Aarch64);
    (image.jmprel, image.rela) = (Vec::new(), Vec::new());
    let bare = [builder::DT_JMPREL, builder::DT_RELA, builder::DT_SYMTAB, builder::DT_STRTAB];
    let image = bare.into_iter().fold(image, Image::without);
    assert!(slots_of(&image.build(), &|_| true).is_empty());
}

#[test]
fn a_vtable_ends_at_the_first_entry_that_is_not_code() {
    for machine in MACHINES {
        let bytes = good(machine).build();
        let file = FileImage::new(&bytes).unwrap();
        let entries = |max| vtable_entries(&file, DATA_ADDR + 0x40, max, &|addr| file.is_code(addr)).unwrap();
        assert_eq!(entries(16), [TEXT_ADDR, TEXT_ADDR + 0x20]);
        assert_eq!(entries(1), [TEXT_ADDR]);
        assert!(entries(0).is_empty());
        assert!(vtable_entries(&file, DATA_ADDR + 0x40, 16, &|addr| addr != TEXT_ADDR).unwrap().is_empty());
    }
}

#[test]
fn a_vtable_may_be_the_last_thing_in_memory() {
    let bytes = good(Machine::X86_64).build();
    let file = FileImage::new(&bytes).unwrap();
    let end = DATA_ADDR + 2 * DATA_BYTES;
    let memory = Patched(file.clone(), end - 8, &[1; 8]);
    assert_eq!(vtable_entries(&memory, end - 24, 16, &|_| true).unwrap(), [0x0101_0101_0101_0101]);
    assert!(vtable_entries(&memory, end - 16, 16, &|_| true).is_err());
}

#[test]
fn reads_see_zeros_after_the_file_and_relocated_words_in_part() {
    let mut image = good(Machine::X86_64);
    image.data.fill(0xaaaa_aaaa_aaaa_aaaa);
    let bytes = image.build();
    let file = FileImage::new(&bytes).unwrap();
    let mut whole = vec![0; 2 * DATA_BYTES as usize];
    file.read(DATA_ADDR, &mut whole).unwrap();
    assert_eq!(whole[0x40..0x48], [0xaa; 8]);
    assert_eq!(whole[0x48..0x50], 0x1234_u64.to_le_bytes());
    assert!(whole[DATA_BYTES as usize..].iter().all(|&byte| byte == 0));
    for start in 0x40..0x68 {
        for len in 0..24 {
            let mut part = vec![0; len];
            file.read(DATA_ADDR + start, &mut part).unwrap();
            assert_eq!(part, whole[start as usize..][..len]);
        }
    }
    assert_eq!(file.read(DATA_ADDR - 1, &mut [0; 2]), Err(Unreadable { addr: DATA_ADDR - 1, len: 2 }));
    assert_eq!(file.read(u64::MAX, &mut [0; 2]), Err(Unreadable { addr: u64::MAX, len: 2 }));
}

#[test]
fn symbols_answer_by_name_by_address_and_by_prefix() {
    let bias = 0x5000_0000;
    let table = SymbolTable::from_file(&good(Machine::X86_64).build(), &|_| true).unwrap();
    assert_eq!(table.len(), 8);
    assert!(!table.is_empty());
    assert_eq!(table.address_of("first", bias), Some(bias + TEXT_ADDR));
    assert_eq!(table.address_of("fir", bias), None);
    assert_eq!(table.address_of("imported", bias), None);
    assert_eq!(table.address_of("first", u64::MAX), None);
    assert_eq!(table.address_of("static", 0), Some(TEXT_ADDR + 0x90), "global before local");

    assert_eq!(table.name_at(bias + TEXT_ADDR, bias), Some("alias_of_first"));
    assert_eq!(table.names_at(bias + TEXT_ADDR, bias).collect::<Vec<_>>(), ["alias_of_first", "first"]);
    assert_eq!(table.name_at(bias + TEXT_ADDR + 1, bias), None);
    assert_eq!(table.name_at(bias - 1, bias), None);

    let names: Vec<_> = table.with_prefix("s").collect();
    assert_eq!(names, [("second", TEXT_ADDR + 0x20), ("static", TEXT_ADDR + 0x90), ("static", TEXT_ADDR + 0x80)]);
    assert_eq!(table.with_prefix("").count(), 8);
    assert_eq!(table.with_prefix("zz").count(), 0);
}

#[test]
fn the_symbol_around_an_address_is_the_innermost() {
    let table = SymbolTable::from_file(&good(Machine::Aarch64).build(), &|_| true).unwrap();
    let around = |offset| table.containing(0x100 + TEXT_ADDR + offset, 0x100);
    assert_eq!(around(0), Some(("alias_of_first", 0)));
    assert_eq!(around(0x1f), Some(("alias_of_first", 0x1f)));
    assert_eq!(around(0x20), Some(("second", 0)));
    assert_eq!(around(0x33), Some(("inner", 3)));
    assert_eq!(around(0x34), Some(("label", 0)), "a label has its own address");
    assert_eq!(around(0x35), Some(("inner", 5)), "and nothing after it");
    assert_eq!(around(0x40), Some(("second", 0x20)), "after `inner` the function goes on");
    assert_eq!(around(0x60), None);
    assert_eq!(table.containing(5, 100), None);
}

#[test]
fn only_wanted_names_that_are_places_are_kept() {
    let mut image = good(Machine::Aarch64);
    let strange =
        |name: &[u8], info, section| Symbol { name: name.into(), info, section, ..function("", TEXT_ADDR, 4) };
    image.symtab.extend([
        strange(b"$x", 0, 1),
        strange(b"$d.12", 0, 1),
        strange(b"file.cc", 4, 1),
        strange(b"section", 3, 1),
        strange(b"per_thread", 6, 1),
        strange(b"absolute", 0x11, 0xfff1),
        strange(b"common", 0x11, 0xfff2),
        strange(b"undefined", 0x12, 0),
        strange(b"\xff\xfe", 0x12, 1),
        strange(b"$xyz", 0x12, 1),
        strange(b"ifunc", 0x1a, 1),
    ]);
    let table = SymbolTable::from_file(&image.build(), &|name| !name.starts_with("_Z")).unwrap();
    let names: Vec<_> = table.with_prefix("").map(|(name, _)| name).collect();
    assert_eq!(names, ["$xyz", "alias_of_first", "first", "ifunc", "inner", "label", "second", "static", "static"]);
    assert_eq!(table.name_at(TEXT_ADDR, 0), Some("$xyz"));
}
