//! The stock MLX wheels: the slots, symbols and vtables that the agent builds on are where they are said to be.
//!
//! Reads the folders in `MEMVIZ_MLX_LIBS` (colon separated; `ci/fetch_wheels.py` fetches the wheels and prints the value).
#![expect(clippy::unwrap_used, reason = "helpers of tests; clippy only knows the test functions")]

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use memviz_image::{FileImage, LoadedImage, Slot, SlotKind, SymbolTable, vtable_entries};

/// What every libmlx.so calls through its own PLT, by beginning and end of the mangled name.
const SLOTS: [(&str, &str, &[&str]); 6] = [
    ("ArrayDesc::init", "_ZN3mlx4core5array9ArrayDesc4initEv", &[""]),
    ("~ArrayDesc", "_ZN3mlx4core5array9ArrayDescD1Ev", &[""]),
    ("set_data, short", "_ZN3mlx4core5array8set_dataENS0_9allocator", &["6BufferESt8functionIFvS3_EE", "4DataE"]),
    (
        "set_data, long",
        "_ZN3mlx4core5array8set_dataENS0_9allocator",
        &["5FlagsESt8functionIFvS3_EE", "5FlagsElSt8functionIFvS3_EE", "5FlagsEl"],
    ),
    ("copy_shared_buffer, long", "_ZN3mlx4core5array18copy_shared_buffer", &["5FlagsEmm", "5FlagsEml"]),
    ("eval", "_ZN3mlx4core4evalESt6vector", &["E"]),
];

/// On the CPU and with CUDA.
const ALLOCATOR_VTABLES: [&str; 2] =
    ["_ZTVN3mlx4core9allocator15CommonAllocatorE", "_ZTVN3mlx4core2cu13CudaAllocatorE"];
const NEW_ALLOCATOR: [&str; 7] = ["mallocEm", "freeENS", "sizeENS", "make_bufferEPvm", "releaseENS", "D1Ev", "D0Ev"];
const OLD_ALLOCATOR: [&str; 5] = ["mallocEm", "freeENS", "sizeENS", "D1Ev", "D0Ev"];

fn libraries(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display())) {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() {
            libraries(&path, found);
        } else if name == "libmlx.so" || (name.starts_with("core.") && name.ends_with(".so")) {
            found.push(path);
        }
    }
}

struct Library {
    path: PathBuf,
    bytes: Vec<u8>,
}

impl Library {
    fn slots(&self, wanted: &dyn Fn(&str) -> bool) -> Vec<Slot> {
        let file = FileImage::new(&self.bytes).unwrap();
        let dynamic_addr = file.dynamic_addr().unwrap();
        let image = LoadedImage::from_dynamic(&file, 0, dynamic_addr, file.machine()).unwrap();
        let start = Instant::now();
        let slots = image.slots(&file, wanted).unwrap();
        println!("  slots: {} in {:?}", slots.len(), start.elapsed());
        slots
    }

    fn jump_slots(&self, what: &str, prefix: &str, endings: &[&str]) -> usize {
        let is_it =
            |name: &str| name.strip_prefix(prefix).is_some_and(|rest| endings.iter().any(|end| rest.ends_with(end)));
        let slots = self.slots(&is_it);
        assert!(
            slots.iter().all(|slot| slot.kind == SlotKind::JumpSlot),
            "{what} in {}: {slots:?}",
            self.path.display()
        );
        slots.len()
    }

    fn check_libmlx(&self) {
        for (what, prefix, endings) in SLOTS {
            let count = self.jump_slots(what, prefix, endings);
            assert_eq!(count, 1, "{what} in {}", self.path.display());
        }
        let start = Instant::now();
        let symbols = SymbolTable::from_file(&self.bytes, &|name| name.starts_with("_Z")).unwrap();
        println!("  symbols: {} in {:?}", symbols.len(), start.elapsed());
        assert!(symbols.len() > 10_000, "{}", symbols.len());
        let file = FileImage::new(&self.bytes).unwrap();
        self.check_allocator(&file, &symbols);
        self.check_primitives(&file, &symbols);
    }

    fn check_allocator(&self, file: &FileImage, symbols: &SymbolTable) {
        let vtable = ALLOCATOR_VTABLES.iter().find_map(|name| symbols.address_of(name, 0)).unwrap();
        let entries = vtable_entries(file, vtable, 32, &|addr| file.is_code(addr)).unwrap();
        let expected = if entries.len() == 5 { &OLD_ALLOCATOR[..] } else { &NEW_ALLOCATOR[..] };
        for (index, part) in expected.iter().enumerate() {
            let names: Vec<_> = symbols.names_at(entries[index], 0).collect();
            let is_it = |name: &&str| name.contains("llocator") && name.contains(part);
            assert!(names.iter().any(is_it), "slot {index} of {}: {names:?}, not {part}", self.path.display());
        }
        // The last one; what follows is another object's header.
        assert_eq!(entries.len(), expected.len(), "{}", self.path.display());
    }

    fn check_primitives(&self, file: &FileImage, symbols: &SymbolTable) {
        let mut count = 0;
        for (name, vtable) in symbols.with_prefix("_ZTVN3mlx4core") {
            let entries = vtable_entries(file, vtable, 6, &|addr| file.is_code(addr)).unwrap();
            let has = |index: usize, method: &str| {
                entries.get(index).is_some_and(|&entry| symbols.names_at(entry, 0).any(|name| name.contains(method)))
            };
            if !has(0, "8eval_cpuERKSt6vector") {
                continue;
            }
            count += 1;
            assert!(has(1, "8eval_gpuERKSt6vector"), "{name}: slot 1 in {}", self.path.display());
            assert!(has(5, "4nameEv"), "{name}: slot 5 in {}", self.path.display());
        }
        println!("  primitives: {count}");
        assert!(count >= 120, "{count} primitives in {}", self.path.display());
    }

    fn check_core(&self) {
        for (what, prefix, endings) in [SLOTS[1], SLOTS[2], SLOTS[5]] {
            let count = self.jump_slots(what, prefix, endings);
            assert_eq!(count, 1, "{what} in {}", self.path.display());
        }
        // nanobind copies the pointer at import. On aarch64 the same name has a jump slot as well.
        let memory = self.slots(&|name| name == "_ZN3mlx4core16get_cache_memoryEv");
        assert!(memory.iter().any(|slot| slot.kind == SlotKind::GlobDat), "{memory:?}");
        let symbols = SymbolTable::from_file(&self.bytes, &|name| name.starts_with("PyInit_")).unwrap();
        assert_eq!(symbols.with_prefix("PyInit_").map(|(name, _)| name).collect::<Vec<_>>(), ["PyInit_core"]);
    }
}

#[test]
fn stock_wheels_are_as_the_agent_expects() {
    let Some(folders) = std::env::var_os("MEMVIZ_MLX_LIBS") else {
        println!("SKIPPED, NO MLX WHEEL WAS LOOKED AT: MEMVIZ_MLX_LIBS is not set.");
        println!("export MEMVIZ_MLX_LIBS=\"$(python3 ci/fetch_wheels.py ~/.cache/memviz-wheels)\" and run again.");
        return;
    };
    let mut paths = Vec::new();
    std::env::split_paths(&folders).for_each(|folder| libraries(&folder, &mut paths));
    paths.sort();
    let (mut libmlx, mut core) = (0, 0);
    for path in paths {
        println!("{}", path.display());
        let library = Library { bytes: fs::read(&path).unwrap(), path };
        if library.path.ends_with("libmlx.so") {
            library.check_libmlx();
            libmlx += 1;
        } else {
            library.check_core();
            core += 1;
        }
    }
    println!("{libmlx} libmlx.so and {core} core.*.so looked at");
    assert!(libmlx > 0, "no libmlx.so under {folders:?}");
}
