//! C++ frames between the hook and Python, on request.
//!
//! libmlx has no frame pointers, so frames are unwound by `.eh_frame` (framehop, whose rule cache makes a repeated stack of
//! eight frames cost about 0.1 µs). Unwinding stops at the first frame inside Python's own code: the Python stack says the
//! rest. A stack is a node of a tree whose root is the Python stack, so equal stacks share an id; ids have the top bit set.

use framehop::{CacheNative, ExplicitModuleSectionInfo, FrameAddress, Module, Unwinder, UnwinderNative};
use memviz_image::SymbolTable;
use object::{Object, ObjectSection};
use rustc_hash::FxHashMap;

use crate::linux::{self, Image};
use crate::lock::Lock;

/// Marks the id of a stack that ends in C++ frames.
const IS_NATIVE: u32 = 1 << 31;
/// Deeper than any stack of MLX seen between an operation and Python.
const MAX_FRAMES: usize = 64;

static NATIVE: Lock<Option<NativeStacks>> = Lock::new(None);

struct NativeStacks {
    unwinder: UnwinderNative<Vec<u8>, framehop::MustNotAllocateDuringUnwind>,
    cache: Box<CacheNative<framehop::MustNotAllocateDuringUnwind>>,
    /// Our own module: its frames are left out.
    own: Image,
    /// Python's modules: unwinding ends there.
    python: Vec<Image>,
    /// (caller, address): the caller is a Python stack or, with the top bit, another node.
    nodes: Vec<(u32, u64)>,
    ids: FxHashMap<(u32, u64), u32>,
}

/// Reads the unwind tables of every module that is loaded now.
pub fn prepare() {
    let images = linux::images();
    let holds = |image: &&Image, addr: u64| image.contains(addr);
    let own_addr = prepare as *const () as u64;
    let Some(own) = images.iter().find(|image| holds(image, own_addr)).cloned() else { return };
    let python_functions = [c"PyEval_SaveThread", c"PyObject_Call"];
    let python_addrs: Vec<u64> =
        python_functions.iter().filter_map(|name| linux::symbol(name)).map(|found| found as u64).collect();
    let is_python = |image: &&Image| python_addrs.iter().any(|&addr| image.contains(addr));
    let python = images.iter().filter(is_python).cloned().collect();
    let mut unwinder = UnwinderNative::new();
    for image in images.iter().filter(|image| !is_python(image)) {
        if let Some(module) = module_of(image) {
            unwinder.add_module(module);
        }
    }
    let mut native = NATIVE.lock();
    let (nodes, ids) = native.take().map(|old| (old.nodes, old.ids)).unwrap_or_default();
    *native = Some(NativeStacks { unwinder, cache: Box::new(CacheNative::new_in()), own, python, nodes, ids });
}

fn module_of(image: &Image) -> Option<Module<Vec<u8>>> {
    let bytes = std::fs::read(&image.path).ok()?;
    let file = object::File::parse(&*bytes).ok()?;
    let range =
        |name: &str| file.section_by_name(name).map(|section| section.address()..section.address() + section.size());
    let data = |name: &str| file.section_by_name(name).and_then(|section| Some(section.data().ok()?.to_vec()));
    let start = image.segments.iter().map(|(range, _)| range.start).min()?;
    let end = image.segments.iter().map(|(range, _)| range.end).max()?;
    let sections = ExplicitModuleSectionInfo {
        base_svma: 0,
        text_svma: range(".text"),
        eh_frame_svma: range(".eh_frame"),
        eh_frame: data(".eh_frame"),
        eh_frame_hdr_svma: range(".eh_frame_hdr"),
        eh_frame_hdr: data(".eh_frame_hdr"),
        got_svma: range(".got"),
        ..ExplicitModuleSectionInfo::default()
    };
    Some(Module::new(image.path.to_string_lossy().into_owned(), start..end, image.bias, sections))
}

/// The stack made of the Python stack `python` and the C++ frames that it called.
#[inline(never)]
pub fn capture(python: u32) -> u32 {
    let (ip, registers) = linux::unwind_registers();
    let mut guard = NATIVE.lock();
    let Some(native) = guard.as_mut() else { return python };
    let mut addrs = [0; MAX_FRAMES];
    let mut count = 0;
    let mut read = |addr| linux::read_own_stack(addr).ok_or(());
    let mut frames = native.unwinder.iter_frames(ip, registers, &mut native.cache, &mut read);
    while let Ok(Some(frame)) = frames.next() {
        let addr = match frame {
            FrameAddress::InstructionPointer(addr) => addr,
            // The call is the instruction before the return address.
            FrameAddress::ReturnAddress(addr) => addr.get() - 1,
        };
        if count == MAX_FRAMES || native.python.iter().any(|image| image.contains(addr)) {
            break;
        }
        if !native.own.contains(addr) {
            addrs[count] = addr;
            count += 1;
        }
    }
    addrs[..count].iter().rev().fold(python, |caller, &addr| native.push(caller, addr))
}

impl NativeStacks {
    fn push(&mut self, caller: u32, addr: u64) -> u32 {
        let next = IS_NATIVE | self.nodes.len() as u32;
        let id = *self.ids.entry((caller, addr)).or_insert(next);
        if id == next {
            self.nodes.push((caller, addr));
        }
        id
    }
}

/// Caller and address of the innermost C++ frame of a stack, or `None` if it ends in Python.
pub fn node(id: u32) -> Option<(u32, u64)> {
    if id & IS_NATIVE == 0 {
        return None;
    }
    NATIVE.lock().as_ref()?.nodes.get((id & !IS_NATIVE) as usize).copied()
}

/// Turns addresses into names, module by module, reading each symbol table once.
pub struct Symboliser {
    images: Vec<Image>,
    tables: FxHashMap<usize, Option<SymbolTable>>,
}

impl Symboliser {
    /// For the modules that are loaded now.
    pub fn new() -> Symboliser {
        Symboliser { images: linux::images(), tables: FxHashMap::default() }
    }

    /// (module, function) of an address; the function is the module's name and an offset where no symbol covers it.
    pub fn name(&mut self, addr: u64) -> (String, String) {
        let Some(at) = self.images.iter().position(|image| image.contains(addr)) else {
            return ("??".to_owned(), format!("{addr:#x}"));
        };
        let image = &self.images[at];
        let path = image.path.to_string_lossy().into_owned();
        let table = self.tables.entry(at).or_insert_with(|| {
            let bytes = std::fs::read(&image.path).ok()?;
            SymbolTable::from_file(&bytes, &|_| true).ok()
        });
        let name = table.as_ref().and_then(|table| table.containing(addr, image.bias)).map(|(name, _)| demangled(name));
        let file = image.path.file_name().unwrap_or_default().to_string_lossy();
        let name = name.unwrap_or_else(|| format!("{file}+{:#x}", addr.wrapping_sub(image.bias)));
        (path, name)
    }
}

fn demangled(name: &str) -> String {
    let options = cpp_demangle::DemangleOptions::new().no_params().no_return_type();
    let demangled = cpp_demangle::Symbol::new(name).ok().and_then(|symbol| symbol.demangle_with_options(&options).ok());
    demangled.unwrap_or_else(|| name.to_owned())
}
