//! The stock CUDA wheels hold what the back end table says: slots, classes, and offsets read out of their machine code.
//!
//! Reads the folders in `MEMVIZ_CUDA_LIBS` (colon separated; each has a libmlx.so and lies in a folder like "mlx-cuda-13-0.32.4"), which
//! `ci/fetch_wheels.py --cuda` fetches: 90 MB a wheel, so this belongs to the soak.
#![expect(clippy::unwrap_used, reason = "helpers of tests; clippy only knows the test functions")]

use std::path::Path;

use memviz_agent::mlx::backend::{BackEnd, Kind, SCALAR_POOL_BYTES, back_end};
use memviz_agent::plan::{Callers, PLAN, planned};
use memviz_image::{FileImage, LoadedImage, ReadMemory, SymbolTable};

const MALLOC: &str = "_ZN3mlx4core2cu13CudaAllocator6mallocEm";
/// The function that looks whether a buffer is of the pool of scalars, by the name it has had.
const FREE: [&str; 2] = [
    "_ZN3mlx4core2cu13CudaAllocator16free_cuda_bufferEPNS1_10CudaBufferE",
    "_ZN3mlx4core2cu13CudaAllocator9cuda_freeEPNS1_10CudaBufferE",
];
const DELETER: &str = "_ZN3mlx4core9allocator4freeENS1_6BufferE";

/// Instructions that name the pool, up to its offset in the allocator: `sub disp32(%rdi),%rax`, `sub disp32(%rdi),%rsi`,
/// `lea disp32(%rdi),%r12`.
const POOL_CODE: [&[u8]; 3] = [&[0x48, 0x2b, 0x87], &[0x48, 0x2b, 0xb7], &[0x4c, 0x8d, 0xa7]];
/// `movslq 16(%rsi),%rax` and `movslq 16(%rbp),%rax`, and the comparison of that word: how the device is read.
const DEVICE_CODE: [&[u8]; 2] = [&[0x48, 0x63, 0x46, 0x10], &[0x48, 0x63, 0x45, 0x10]];

fn position(code: &[u8], pattern: &[u8]) -> Option<usize> {
    code.windows(pattern.len()).position(|window| window == pattern)
}

fn offset_after(code: &[u8], patterns: &[&[u8]]) -> Option<usize> {
    let at = patterns.iter().filter_map(|pattern| Some(position(code, pattern)? + pattern.len())).min()?;
    Some(u32::from_le_bytes(code[at..at + 4].try_into().unwrap()) as usize)
}

fn check(folder: &Path) {
    let names = folder.ancestors().filter_map(|part| part.file_name()?.to_str());
    let name = names.into_iter().find(|part| part.starts_with("mlx-cuda")).unwrap().to_owned();
    let version = name.rsplit_once('-').unwrap().1;
    let Some(table) = back_end(MALLOC, version) else {
        println!("{name}: refused");
        return;
    };
    assert_eq!(table.kind, Kind::Cuda);
    let bytes = std::fs::read(folder.join("libmlx.so")).unwrap();
    let file = FileImage::new(&bytes).unwrap();
    let loaded = LoadedImage::from_dynamic(&file, 0, file.dynamic_addr().unwrap(), file.machine()).unwrap();
    let slots = loaded.slots(&file, &|symbol| planned(symbol).is_some()).unwrap();
    for line in PLAN.iter().filter(|line| line.callers != Callers::Users) {
        assert!(line.hook(Kind::Cuda).is_some());
        let found = slots.iter().filter(|slot| line.is_named(&slot.symbol)).count();
        assert_eq!(found, 1, "{:?} in {name}", line.function);
    }
    let symbols = SymbolTable::from_file(&bytes, &|symbol| symbol.starts_with("_ZN3mlx4core")).unwrap();
    assert!(symbols.address_of(MALLOC, 0).is_some(), "{name}");
    // 0.32.4 passes a `Data` instead of a deleter.
    assert_eq!(symbols.address_of(DELETER, 0).is_some(), version != "0.32.4", "{name}");
    check_code(&name, table, &file, &symbols);
}

fn check_code(name: &str, table: BackEnd, file: &FileImage<'_>, symbols: &SymbolTable) {
    let addr = FREE.iter().find_map(|symbol| symbols.address_of(symbol, 0)).unwrap();
    let mut code = [0; 160];
    file.read(addr, &mut code).unwrap();
    // The pool begins with the address of its places, 24 bytes each, then that of its memory, 8 bytes each.
    assert_eq!(offset_after(&code, &POOL_CODE).map(|pool| pool + 8), table.scalar_pool, "{name}");
    assert!(DEVICE_CODE.iter().any(|pattern| position(&code, pattern).is_some()) == table.buffer.device.is_some());
    let places = SCALAR_POOL_BYTES / 8;
    let last_place = ((places - 1) * 24) as u32;
    let in_pool = symbols.address_of("_ZN3mlx4core2cu13SmallSizePool7in_poolEPNS1_10CudaBufferE", 0).unwrap();
    let mut code = [0; 48];
    file.read(in_pool, &mut code).unwrap();
    let limits = [last_place, last_place + 23, last_place + 24].map(u32::to_le_bytes);
    assert!(limits.iter().any(|limit| position(&code, limit).is_some()), "{name}: the pool has another length");
}

#[test]
fn every_wheel_holds_what_its_table_says() {
    let Some(folders) = std::env::var_os("MEMVIZ_CUDA_LIBS") else {
        println!("SKIPPED, NO CUDA WHEEL WAS LOOKED AT: MEMVIZ_CUDA_LIBS is not set.");
        println!(
            "export MEMVIZ_CUDA_LIBS=\"$(python3 ci/fetch_wheels.py --cuda ~/.cache/memviz-wheels)\" and run again."
        );
        return;
    };
    for folder in std::env::split_paths(&folders) {
        check(&folder);
    }
}
