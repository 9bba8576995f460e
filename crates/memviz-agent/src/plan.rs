//! Which of MLX's functions are hooked, as data.
//!
//! This is the set for Linux, where libmlx calls its own exported functions through pointer slots. A platform without such
//! slots gets a second list; nothing else depends on how a hook is reached.

use std::ffi::c_void;

use memviz_trace::Level;

use crate::hooks::{alloc, array, cuda, eval};
use crate::mlx::backend::Kind;

/// A function that a hook stands in for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Function {
    /// `ArrayDesc::init`.
    Init,
    /// `~ArrayDesc`.
    Drop,
    /// The short `set_data`.
    SetDataShort,
    /// The long `set_data`.
    SetDataLong,
    /// The long `copy_shared_buffer`.
    CopySharedBuffer,
    /// `eval`.
    Eval,
    /// `async_eval`.
    AsyncEval,
    /// `PyEval_SaveThread`, called by MLX's extension.
    SaveThread,
    /// `Buffer::raw_ptr`, CUDA only.
    RawPtr,
    /// `__cxa_throw`, CUDA only.
    Throw,
}

/// Where a function's callers are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Callers {
    /// libmlx and every module linked to it; libmlx must have a slot, or its own calls would be missed.
    LibraryAndUsers,
    /// Modules linked to libmlx; libmlx itself need not call it through a slot.
    Users,
    /// libmlx, which must have a slot.
    Library,
}

/// One line of the plan.
#[derive(Clone, Copy, Debug)]
pub struct Planned {
    /// Function that is hooked.
    pub function: Function,
    /// Beginnings of its mangled name, one for each signature that a release had.
    pub prefixes: &'static [&'static str],
    /// The name is exactly the prefix.
    pub is_exact: bool,
    /// Where its callers are.
    pub callers: Callers,
    /// Lowest level that needs it.
    pub level: Level,
}

/// The plan. Mangled names: `mlx_abi.md` 1.4; a prefix ends where releases differ.
pub const PLAN: [Planned; 10] = [
    Planned {
        function: Function::Init,
        prefixes: &["_ZN3mlx4core5array9ArrayDesc4initEv"],
        is_exact: true,
        callers: Callers::LibraryAndUsers,
        level: Level::Buffers,
    },
    Planned {
        function: Function::Drop,
        prefixes: &["_ZN3mlx4core5array9ArrayDescD1Ev"],
        is_exact: true,
        callers: Callers::LibraryAndUsers,
        level: Level::Arrays,
    },
    Planned {
        function: Function::SetDataShort,
        prefixes: &[
            "_ZN3mlx4core5array8set_dataENS0_9allocator6BufferESt8function",
            "_ZN3mlx4core5array8set_dataENS0_9allocator4DataE\0",
        ],
        is_exact: false,
        callers: Callers::LibraryAndUsers,
        level: Level::Buffers,
    },
    Planned {
        function: Function::SetDataLong,
        prefixes: &[
            "_ZN3mlx4core5array8set_dataENS0_9allocator6BufferEm",
            "_ZN3mlx4core5array8set_dataENS0_9allocator4DataEm",
        ],
        is_exact: false,
        callers: Callers::LibraryAndUsers,
        level: Level::Buffers,
    },
    Planned {
        function: Function::CopySharedBuffer,
        prefixes: &["_ZN3mlx4core5array18copy_shared_bufferERKS1_RKNS0_11SmallVector"],
        is_exact: false,
        callers: Callers::LibraryAndUsers,
        level: Level::Arrays,
    },
    Planned {
        function: Function::Eval,
        prefixes: &["_ZN3mlx4core4evalESt6vectorINS0_5arrayESaIS2_EE"],
        is_exact: true,
        callers: Callers::LibraryAndUsers,
        level: Level::Buffers,
    },
    Planned {
        function: Function::AsyncEval,
        prefixes: &["_ZN3mlx4core10async_evalESt6vectorINS0_5arrayESaIS2_EE"],
        is_exact: true,
        callers: Callers::Users,
        level: Level::Buffers,
    },
    Planned {
        function: Function::SaveThread,
        prefixes: &["PyEval_SaveThread"],
        is_exact: true,
        callers: Callers::Users,
        level: Level::Buffers,
    },
    Planned {
        function: Function::RawPtr,
        prefixes: &["_ZN3mlx4core9allocator6Buffer7raw_ptrEv"],
        is_exact: true,
        callers: Callers::LibraryAndUsers,
        level: Level::Buffers,
    },
    Planned {
        function: Function::Throw,
        prefixes: &["__cxa_throw"],
        is_exact: true,
        callers: Callers::Library,
        level: Level::Buffers,
    },
];

impl Planned {
    /// Is `symbol` this function? A prefix that ends in NUL stands for the whole name.
    pub fn is_named(&self, symbol: &str) -> bool {
        self.prefixes.iter().any(|prefix| match prefix.strip_suffix('\0') {
            Some(whole) => symbol == whole,
            None if self.is_exact => symbol == *prefix,
            None => symbol.starts_with(prefix),
        })
    }

    /// Our function in its place for that allocator; `None` where the function is left alone.
    pub fn hook(&self, kind: Kind) -> Option<*const c_void> {
        Some(match (self.function, kind) {
            (Function::Init, _) => array::init as *const c_void,
            (Function::Drop, _) => array::drop_desc as *const c_void,
            (Function::SetDataShort, Kind::Cpu) => array::set_data_short as *const c_void,
            (Function::SetDataShort, Kind::Cuda) => cuda::set_data_short as *const c_void,
            (Function::SetDataLong, Kind::Cpu) => array::set_data_long as *const c_void,
            (Function::SetDataLong, Kind::Cuda) => cuda::set_data_long as *const c_void,
            (Function::CopySharedBuffer, _) => array::copy_shared_buffer as *const c_void,
            (Function::Eval, _) => eval::eval as *const c_void,
            (Function::AsyncEval, _) => eval::async_eval as *const c_void,
            (Function::SaveThread, _) => eval::save_thread as *const c_void,
            (Function::RawPtr, Kind::Cuda) => cuda::raw_ptr as *const c_void,
            (Function::Throw, Kind::Cuda) => cuda::throw as *const c_void,
            (Function::RawPtr | Function::Throw, Kind::Cpu) => return None,
        })
    }
}

/// Our malloc and free for an allocator's vtable.
pub fn allocator_hooks(kind: Kind) -> (*const c_void, *const c_void) {
    match kind {
        Kind::Cpu => (alloc::malloc as *const c_void, alloc::free as *const c_void),
        Kind::Cuda => (cuda::malloc as *const c_void, cuda::free as *const c_void),
    }
}

/// The line of the plan that a symbol belongs to.
pub fn planned(symbol: &str) -> Option<&'static Planned> {
    PLAN.iter().find(|planned| planned.is_named(symbol))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_signature_of_every_release_is_recognised() {
        let short = Some(Function::SetDataShort);
        let long = Some(Function::SetDataLong);
        let strides = "NS0_11SmallVectorIlLm10ESaIlEEENS1_5FlagsE";
        for (symbol, function) in [
            ("_ZN3mlx4core5array8set_dataENS0_9allocator6BufferESt8functionIFvS3_EE".to_owned(), short),
            ("_ZN3mlx4core5array8set_dataENS0_9allocator4DataE".to_owned(), short),
            (format!("_ZN3mlx4core5array8set_dataENS0_9allocator6BufferEm{strides}St8functionIFvS3_EE"), long),
            (format!("_ZN3mlx4core5array8set_dataENS0_9allocator6BufferEm{strides}lSt8functionIFvS3_EE"), long),
            (format!("_ZN3mlx4core5array8set_dataENS0_9allocator4DataEm{strides}l"), long),
            ("_ZN3mlx4core5array18copy_shared_bufferERKS1_".to_owned(), None),
            ("_ZN3mlx4core5array4evalEv".to_owned(), None),
        ] {
            assert_eq!(planned(&symbol).map(|planned| planned.function), function, "{symbol}");
        }
    }
}
