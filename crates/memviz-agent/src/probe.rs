//! What the loaded MLX looks like: read and judged before anything is changed.
//!
//! Everything is found by name or by shape and compared with what the release's table expects; any doubt is an error, and
//! nothing was patched. The result is kept for the life of the process: MLX is never unloaded.
#![expect(unsafe_code, reason = "calls MLX's accessors for its allocator")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use memviz_image::{LoadedImage, Machine, SlotAddr, SymbolTable};

use crate::error::AttachError;
use crate::linux::{self, Image, OwnMemory};
use crate::lock::Lock;
use crate::mlx::backend::{self, BackEnd, Kind};
use crate::mlx::{self, Layout};
use crate::objects::{self, Allocator};
use crate::originals::{self, Originals, Ptr, function};
use crate::plan::{self, Callers, Function, PLAN};

/// A slot to be patched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HookSlot {
    /// Where the pointer is.
    pub addr: SlotAddr,
    /// What it points to now.
    pub function: Function,
}

/// The cache inside the allocator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheWords {
    /// Address of the pointer to the function that is called for the size of a buffer.
    pub invoke_size: SlotAddr,
    /// Address of the pointer to the function that is called to free a buffer.
    pub invoke_free: SlotAddr,
    /// Address of the list of cached buffers, most recent first.
    pub list_head: u64,
}

/// The allocator in use.
#[derive(Clone, Debug)]
pub struct AllocatorProbe {
    /// Address of the object; its first word is the vtable pointer.
    pub object: u64,
    /// Where that pointer points while nothing is installed.
    pub original_vtable: u64,
    /// Its table.
    pub table: BackEnd,
    /// The vtable as found, two words before the first function included.
    pub vtable: Vec<u64>,
    /// Position of malloc, free and size among the functions.
    pub malloc: usize,
    /// See `malloc`.
    pub free: usize,
    /// See `malloc`.
    pub size: usize,
    /// The cache, where the release has one.
    pub cache: Option<CacheWords>,
    /// Addresses of the pool of scalars; empty where there is none.
    pub scalar_pool: (u64, u64),
}

/// What was found.
#[derive(Clone, Debug)]
pub struct Probe {
    /// Release, as MLX says it.
    pub version: String,
    /// The release's numbers.
    pub layout: Layout,
    /// Path of libmlx.
    pub library: PathBuf,
    /// The allocator.
    pub allocator: AllocatorProbe,
    /// Primitive classes whose vtable has eval_cpu, eval_gpu and name where expected.
    pub primitive_classes: usize,
}

/// Looks at the loaded MLX, whose `mlx.core.__version__` is `version`.
///
/// # Errors
/// What is missing or unknown.
pub fn probe(version: &str) -> Result<Probe, AttachError> {
    let layout = mlx::layout(version).ok_or_else(|| AttachError::UnknownVersion { found: version.to_owned() })?;
    let images = linux::images();
    let library = find_library(&images)?;
    let bytes = std::fs::read(&library.path)
        .map_err(|source| AttachError::Unreadable { path: library.path.clone(), source })?;
    let symbols = SymbolTable::from_file(&bytes, &is_wanted)?;
    drop(bytes);
    let primitive_classes = check_primitives(library, &symbols)?;
    let allocator = probe_allocator(library, &symbols, version)?;
    set_originals(library, &symbols, &allocator)?;
    let free = symbols.address_of(DELETER, library.bias).unwrap_or(0);
    let (table, scalar_pool) = (allocator.table, allocator.scalar_pool);
    let cache_limit = table.cache_limit.map_or(0, |offset| allocator.object + offset as u64);
    objects::set_allocator(Allocator { table, scalar_pool, free, cache_limit });
    Ok(Probe { version: version.to_owned(), layout, library: library.path.clone(), allocator, primitive_classes })
}

/// `allocator::free(Buffer)`, the deleter of memory that MLX's allocator made, up to 0.32.3.
const DELETER: &str = "_ZN3mlx4core9allocator4freeENS1_6BufferE";

/// Names that are compared with what vtables and objects hold.
fn is_wanted(name: &str) -> bool {
    plan::planned(name).is_some()
        || name == DELETER
        || name.starts_with("_ZTVN3mlx4core")
        || name.starts_with("_ZNSt17_Function_handler")
        || (name.starts_with("_ZN")
            && ["Allocator", "eval_cpu", "eval_gpu", "4nameEv"].iter().any(|part| name.contains(part)))
}

/// The image that exports `ArrayDesc::init`. Not by path: releases before 0.26 ship a second copy that nobody loads.
fn find_library(images: &[Image]) -> Result<&Image, AttachError> {
    let is_libmlx = |image: &&Image| {
        let name = image.path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with("libmlx") && linux::symbol_of(&image.path, PLAN[0].prefixes[0]).is_some()
    };
    images.iter().find(is_libmlx).ok_or(AttachError::NotLoaded)
}

/// Address of an exported symbol of libmlx.
fn exported(library: &Path, symbol: &str) -> Result<u64, AttachError> {
    linux::symbol_of(library, symbol)
        .map(|found| found as u64)
        .ok_or_else(|| AttachError::MissingSymbol { symbol: symbol.to_owned() })
}

/// Every vtable whose slots 0 and 1 are `eval_cpu` and `eval_gpu` must have `name` in slot 5; there are over a hundred.
fn check_primitives(library: &Image, symbols: &SymbolTable) -> Result<usize, AttachError> {
    let mut classes = 0;
    for (class, unbiased) in symbols.with_prefix("_ZTVN3mlx4core") {
        let vtable = library.bias.wrapping_add(unbiased);
        let is_slot = |slot: usize, part: &str| {
            let entry = linux::read_u64(vtable + 16 + 8 * slot as u64);
            entry.is_some_and(|addr| symbols.names_at(addr, library.bias).any(|name| name.contains(part)))
        };
        if !is_slot(mlx::primitive::SLOT_EVAL_CPU, "eval_cpu") {
            continue;
        }
        if !is_slot(mlx::primitive::SLOT_EVAL_GPU, "eval_gpu") || !is_slot(mlx::primitive::SLOT_NAME, "4nameEv") {
            return Err(AttachError::UnknownClass { class: class.to_owned() });
        }
        classes += 1;
    }
    if classes < 100 { Err(AttachError::FewClasses { found: classes }) } else { Ok(classes) }
}

fn probe_allocator(library: &Image, symbols: &SymbolTable, version: &str) -> Result<AllocatorProbe, AttachError> {
    let accessor = exported(&library.path, "_ZN3mlx4core9allocator9allocatorEv")?;
    // SAFETY: `mlx::core::allocator::allocator()` takes nothing and returns a reference, that is, an address.
    let object = unsafe { function::<unsafe extern "C-unwind" fn() -> Ptr>(accessor)() } as u64;
    let doubt = |what: &str| AttachError::UnknownAllocator { version: version.to_owned(), what: what.to_owned() };
    let first = linux::read_u64(object).ok_or_else(|| doubt("the allocator object cannot be read"))?;
    let mut vtable = vec![
        linux::read_u64(first - 16).ok_or_else(|| doubt("its vtable cannot be read"))?,
        linux::read_u64(first - 8).ok_or_else(|| doubt("its vtable cannot be read"))?,
    ];
    let functions = (0..16).map_while(|slot| linux::read_u64(first + 8 * slot).filter(|&addr| library.is_code(addr)));
    vtable.extend(functions);
    let slot = |suffix: &str| {
        let is_it = |&addr: &u64| symbols.names_at(addr, library.bias).any(|name| name.contains(suffix));
        vtable[2..].iter().position(is_it).ok_or_else(|| doubt(&format!("its vtable has no {suffix}")))
    };
    let (malloc, free, size) = (slot("Allocator6mallocEm")?, slot("Allocator4freeE")?, slot("Allocator4sizeE")?);
    let class = symbols.names_at(vtable[2 + malloc], library.bias).next().unwrap_or_default();
    let unsupported = || AttachError::UnsupportedBackend { version: version.to_owned(), found: class.to_owned() };
    let table = backend::back_end(class, version).ok_or_else(unsupported)?;
    let cache = if table.has_cache {
        Some(find_cache(library, symbols, object).ok_or_else(|| doubt("no cache found in it"))?)
    } else {
        None
    };
    let scalar_pool = match table.scalar_pool {
        None => (0, 0),
        Some(offset) => {
            let begin = linux::read_u64(object + offset as u64).filter(|&addr| addr.is_multiple_of(256) && addr != 0);
            let begin = begin.ok_or_else(|| doubt("its pool of scalars is not where it should be"))?;
            (begin, begin + backend::SCALAR_POOL_BYTES)
        }
    };
    Ok(AllocatorProbe { object, original_vtable: first, table, vtable, malloc, free, size, cache, scalar_pool })
}

/// `BufferCache` keeps two `std::function`s side by side inside the allocator: words that point to the invokers of a
/// `size_t(…)` and, four words later, of a `void(…)`. Before them: list head, tail, pool size, page size.
fn find_cache(library: &Image, symbols: &SymbolTable, object: u64) -> Option<CacheWords> {
    let is_invoker = |word: u64, kind: &str| {
        let is_it = |name: &str| name.starts_with(kind) && name.contains("_M_invoke");
        linux::read_u64(object + 8 * word).is_some_and(|addr| symbols.names_at(addr, library.bias).any(is_it))
    };
    let at = (8..64).find(|&word| {
        is_invoker(word, "_ZNSt17_Function_handlerIFm") && is_invoker(word + 4, "_ZNSt17_Function_handlerIFv")
    })?;
    let addr = |word: u64| object + 8 * word;
    let page_size = linux::read_u64(addr(at - 4))?;
    page_size.is_power_of_two().then_some(CacheWords {
        invoke_size: SlotAddr(addr(at)),
        invoke_free: SlotAddr(addr(at + 4)),
        list_head: addr(at - 7),
    })
}

/// Finds the functions that hooks call. The names of the plan are exported by libmlx, in one signature each.
fn set_originals(library: &Image, symbols: &SymbolTable, allocator: &AllocatorProbe) -> Result<(), AttachError> {
    let names = exported_names(library, symbols);
    let named = |wanted: Function| {
        let name = names.get(&wanted).ok_or_else(|| AttachError::MissingSymbol { symbol: format!("{wanted:?}") })?;
        exported(&library.path, name)
    };
    let save_thread = linux::symbol(c"PyEval_SaveThread")
        .ok_or_else(|| AttachError::MissingSymbol { symbol: "PyEval_SaveThread".to_owned() })?;
    let is_cuda = allocator.table.kind == Kind::Cuda;
    let throw = linux::symbol_of(Path::new("libstdc++.so.6"), "__cxa_throw").filter(|_| is_cuda);
    if is_cuda && throw.is_none() {
        return Err(AttachError::MissingSymbol { symbol: "__cxa_throw".to_owned() });
    }
    let raw_ptr = if is_cuda { Some(named(Function::RawPtr)?) } else { None };
    let of_cache =
        |slot: fn(&CacheWords) -> SlotAddr| allocator.cache.as_ref().and_then(|cache| linux::read_u64(slot(cache).0));
    // SAFETY: each address is the function that its mangled name describes, whose type is the field's: see `originals`.
    let originals = unsafe {
        Originals {
            init: function(named(Function::Init)?),
            drop: function(named(Function::Drop)?),
            set_data_short: function(named(Function::SetDataShort)?),
            set_data_long: function(named(Function::SetDataLong)?),
            copy_shared_buffer: function(named(Function::CopySharedBuffer)?),
            eval: function(named(Function::Eval)?),
            async_eval: function(named(Function::AsyncEval)?),
            malloc: function(allocator.vtable[2 + allocator.malloc]),
            free: function(allocator.vtable[2 + allocator.free]),
            size: function(allocator.vtable[2 + allocator.size]),
            invoke_size: of_cache(|cache| cache.invoke_size).map(|addr| function(addr)),
            invoke_free: of_cache(|cache| cache.invoke_free).map(|addr| function(addr)),
            active_memory: function(exported(&library.path, "_ZN3mlx4core17get_active_memoryEv")?),
            cache_memory: function(exported(&library.path, "_ZN3mlx4core16get_cache_memoryEv")?),
            save_thread: function(save_thread as u64),
            raw_ptr: raw_ptr.map(|addr| function(addr)),
            throw: throw.map(|addr| function(addr as u64)),
        }
    };
    originals::set(originals);
    Ok(())
}

/// Names of the plan's functions as this release spells them. Parts that the compiler split off ("….cold") are not exported.
fn exported_names(library: &Image, symbols: &SymbolTable) -> BTreeMap<Function, String> {
    let named = |(name, _): (&str, u64)| Some((plan::planned(name)?.function, name.to_owned()));
    let is_exported = |(_, name): &(Function, String)| linux::symbol_of(&library.path, name).is_some();
    symbols.with_prefix("_Z").filter_map(named).filter(is_exported).collect()
}

/// Every slot of the plan in libmlx and in the modules linked to it. Looked for once, and again when modules were loaded.
///
/// # Errors
/// A slot that libmlx must have is missing: a call of its own would escape.
pub fn slots(probe: &Probe) -> Result<Vec<HookSlot>, AttachError> {
    static FOUND: Lock<Option<(u64, Vec<HookSlot>)>> = Lock::new(None);
    let mut known = FOUND.lock();
    let load_count = linux::load_count();
    if let Some((_, slots)) = known.as_ref().filter(|(count, _)| *count == load_count) {
        return Ok(slots.clone());
    }
    let slots = find_slots(&probe.library, probe.allocator.table.kind)?;
    *known = Some((load_count, slots.clone()));
    Ok(slots)
}

fn find_slots(library: &Path, kind: Kind) -> Result<Vec<HookSlot>, AttachError> {
    let machine = Machine::host().ok_or(AttachError::UnknownMachine)?;
    let mut found = Vec::new();
    for image in linux::images() {
        let is_library = image.path == library;
        let loaded = match LoadedImage::from_dynamic(&OwnMemory, image.bias, image.dynamic_addr, machine) {
            Ok(loaded) => loaded,
            Err(error) if is_library => return Err(error.into()),
            // Not an image that could call MLX: the vDSO, say.
            Err(_) => continue,
        };
        let is_wanted = |name: &str| plan::planned(name).is_some();
        let slots = match loaded.slots(&OwnMemory, &is_wanted) {
            Ok(slots) => slots,
            Err(error) if is_library => return Err(error.into()),
            Err(_) => continue,
        };
        // A module that merely imports PyEval_SaveThread is none of ours: it must call MLX as well.
        let uses_mlx = is_library || slots.iter().any(|slot| slot.symbol.starts_with("_ZN3mlx4core"));
        if !uses_mlx {
            continue;
        }
        for slot in slots {
            let Some(planned) = plan::planned(&slot.symbol) else { continue };
            let is_caller = match planned.callers {
                Callers::LibraryAndUsers => true,
                Callers::Users => !is_library,
                Callers::Library => is_library,
            };
            if is_caller && planned.hook(kind).is_some() {
                found.push(HookSlot { addr: slot.addr, function: planned.function });
            }
        }
        if is_library {
            let is_missing = |planned: &&plan::Planned| {
                planned.callers != Callers::Users
                    && planned.hook(kind).is_some()
                    && !found.iter().any(|slot: &HookSlot| slot.function == planned.function)
            };
            if let Some(missing) = PLAN.iter().find(is_missing) {
                return Err(AttachError::MissingSlot { symbol: missing.prefixes[0].trim_end_matches('\0').to_owned() });
            }
        }
    }
    Ok(found)
}
