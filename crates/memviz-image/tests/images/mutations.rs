//! Random damage to good images: always an answer, never a panic, never slow.

use std::time::{Duration, Instant};

use memviz_image::{FileImage, LoadedImage, Machine, SymbolTable, vtable_entries};
use proptest::prelude::*;

use crate::builder::good;

/// Asks an image everything that can be asked.
fn exercise(bytes: &[u8]) {
    if let Ok(symbols) = SymbolTable::from_file(bytes, &|_| true) {
        for (name, addr) in symbols.with_prefix("") {
            assert!(symbols.names_at(addr, 0).any(|other| other == name));
            assert!(symbols.address_of(name, 0).is_some());
            assert_eq!(symbols.containing(addr, 0).map(|(_, offset)| offset), Some(0));
        }
    }
    let Ok(file) = FileImage::new(bytes) else { return };
    let dynamic_addr = file.dynamic_addr().unwrap_or(232);
    for bias in [0, 0x1000] {
        let image = LoadedImage::from_dynamic(&file, bias, dynamic_addr, file.machine());
        if let Ok(slots) = image.and_then(|image| image.slots(&file, &|_| true)) {
            assert!(slots.is_sorted_by_key(|slot| slot.addr));
            assert!(slots.iter().all(|slot| slot.addr.0 % 8 == 0));
        }
    }
    for addr in (0..bytes.len() as u64).step_by(8) {
        let entries = vtable_entries(&file, addr, 8, &|addr| file.is_code(addr)).unwrap_or_default();
        assert!(entries.len() <= 8 && entries.iter().all(|&entry| file.is_code(entry)));
    }
}

/// Numbers where counts, sizes and addresses go wrong.
fn word() -> impl Strategy<Value = u64> {
    prop_oneof![
        any::<u64>(),
        0..0x3000_u64,
        (0..64_u32).prop_map(|shift| 1 << shift),
        (0..0x100_u64).prop_map(|below| u64::MAX - below),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn damaged_words(
        is_x86 in any::<bool>(),
        damage in prop::collection::vec((prop_oneof![0..160_usize, 0..0x300_usize], word()), 1..6),
    ) {
        let mut bytes = good(if is_x86 { Machine::X86_64 } else { Machine::Aarch64 }).build();
        for (index, value) in damage {
            if let Some(word) = bytes.as_chunks_mut::<8>().0.get_mut(index) {
                *word = value.to_le_bytes();
            }
        }
        let start = Instant::now();
        exercise(&bytes);
        prop_assert!(start.elapsed() < Duration::from_secs(10));
    }

    #[test]
    fn damaged_bytes(
        cut in 0..0x2000_usize,
        damage in prop::collection::vec((0..0x1400_usize, any::<u8>()), 0..40),
    ) {
        let mut bytes = good(Machine::X86_64).build();
        for (at, value) in damage {
            if let Some(byte) = bytes.get_mut(at) {
                *byte = value;
            }
        }
        bytes.truncate(cut);
        exercise(&bytes);
    }
}
