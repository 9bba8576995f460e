//! This process: its own slots, through /proc/self/mem (reading a file is safe code).
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "helpers of tests; clippy only knows the test functions")]

use std::fs::{self, File};
use std::os::unix::fs::FileExt;

use memviz_image::{FileImage, LoadedImage, Machine, ReadMemory, SymbolTable, Unreadable};

struct OwnMemory(File);

impl ReadMemory for OwnMemory {
    fn read(&self, addr: u64, into: &mut [u8]) -> Result<(), Unreadable> {
        self.0.read_exact_at(into, addr).map_err(|_| Unreadable { addr, len: into.len() })
    }
}

/// A line of /proc/self/maps that has a path.
struct Mapping {
    start: u64,
    end: u64,
    offset: u64,
    path: String,
}

fn mappings() -> Vec<Mapping> {
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    let hex = |text: &str| u64::from_str_radix(text, 16).unwrap();
    let parse = |line: &str| {
        let fields: Vec<_> = line.split_whitespace().collect();
        let (start, end) = fields[0].split_once('-')?;
        Some(Mapping { start: hex(start), end: hex(end), offset: hex(fields[2]), path: fields.get(5)?.to_string() })
    };
    maps.lines().filter_map(parse).collect()
}

/// Path and bias of the image whose file name begins with `name`: position-independent, so its first segment is at 0.
fn loaded<'a>(mappings: &'a [Mapping], name: &str) -> Option<(&'a str, u64)> {
    let is_it = |mapping: &&Mapping| mapping.path.rsplit('/').next().is_some_and(|file| file.starts_with(name));
    mappings.iter().find(|mapping| is_it(mapping) && mapping.offset == 0).map(|first| (&*first.path, first.start))
}

#[test]
fn own_slots_hold_pointers_into_libc() {
    let Some(machine) = Machine::host() else {
        return println!("SKIPPED: no table of relocation kinds for {}", std::env::consts::ARCH);
    };
    let mappings = mappings();
    let Some((libc_path, libc_bias)) = loaded(&mappings, "libc.so.6") else {
        return println!("SKIPPED: this process has no libc.so.6 (a static musl build?)");
    };
    let own_path = std::env::current_exe().unwrap();
    let (_, bias) = loaded(&mappings, own_path.file_name().unwrap().to_str().unwrap()).unwrap();
    let file_bytes = fs::read(&own_path).unwrap();
    let file = FileImage::new(&file_bytes).unwrap();
    assert_eq!(file.machine(), machine);

    let memory = OwnMemory(File::open("/proc/self/mem").unwrap());
    let dynamic_addr = bias + file.dynamic_addr().unwrap();
    let image = LoadedImage::from_dynamic(&memory, bias, dynamic_addr, machine).unwrap();
    let names = ["write", "malloc", "free", "mmap64"];
    let slots = image.slots(&memory, &|name| names.contains(&name)).unwrap();
    let mut found: Vec<_> = slots.iter().map(|slot| slot.symbol.as_str()).collect();
    found.sort_unstable();
    found.dedup();
    assert!(["free", "malloc", "write"].iter().all(|name| found.contains(name)), "{found:?}");

    let libc_symbols = SymbolTable::from_file(&fs::read(libc_path).unwrap(), &|_| true).unwrap();
    for slot in &slots {
        let mut word = [0; 8];
        memory.read(slot.addr.0, &mut word).unwrap();
        let target = u64::from_le_bytes(word);
        let mapping = mappings.iter().find(|mapping| (mapping.start..mapping.end).contains(&target)).unwrap();
        assert_eq!(mapping.path, libc_path, "{slot:?} holds {target:#x}");
        // glibc's symbols have their version in the name if the file has a .symtab: `malloc@@GLIBC_2.2.5`.
        let is_name = |name: &str| name.split('@').next() == Some(&slot.symbol);
        assert!(libc_symbols.names_at(target, libc_bias).any(is_name), "{slot:?} holds {target:#x}");
    }

    // Seen from the file, the same slots at the same places.
    let in_file = LoadedImage::from_dynamic(&file, 0, file.dynamic_addr().unwrap(), machine).unwrap();
    let mut from_file = in_file.slots(&file, &|name| names.contains(&name)).unwrap();
    from_file.iter_mut().for_each(|slot| slot.addr.0 += bias);
    assert_eq!(from_file, slots);
}
