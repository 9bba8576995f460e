//! Why the agent does not attach.

use std::path::PathBuf;

use crate::mlx;

/// Attaching was refused. Nothing was patched, or everything was restored.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AttachError {
    /// No MLX in the process.
    #[error("mlx is not loaded in this process; import mlx.core first")]
    NotLoaded,
    /// No table for the release.
    #[error(
        "no layout table for mlx {found} (have {} to {}); nothing was patched. Run `memviz doctor` to see what was probed",
        mlx::SUPPORTED.0,
        mlx::SUPPORTED.1
    )]
    UnknownVersion {
        /// What `mlx.core.__version__` says.
        found: String,
    },
    /// The allocator is not one that is known.
    #[error(
        "the allocator of mlx {version} is not supported: found {found}, expected CommonAllocator (cpu), or CudaAllocator (cuda) of mlx {}; nothing was patched",
        mlx::backend::CUDA_RELEASES
    )]
    UnsupportedBackend {
        /// The release.
        version: String,
        /// Symbol of its malloc.
        found: String,
    },
    /// The allocator does not look as the release's should.
    #[error("the allocator of mlx {version} looks unlike the known ones: {what}; nothing was patched")]
    UnknownAllocator {
        /// The release.
        version: String,
        /// What is unlike.
        what: String,
    },
    /// A primitive's vtable has another order.
    #[error("the vtable of {class} has not eval_cpu, eval_gpu and name in slots 0, 1 and 5; nothing was patched")]
    UnknownClass {
        /// Mangled name of the vtable.
        class: String,
    },
    /// The library's symbol table lacks the primitives.
    #[error(
        "found {found} primitive classes in libmlx, expected over 100: is its symbol table stripped? nothing was patched"
    )]
    FewClasses {
        /// Classes found.
        found: usize,
    },
    /// A function is missing.
    #[error("libmlx has no {symbol}; nothing was patched")]
    MissingSymbol {
        /// Its name.
        symbol: String,
    },
    /// libmlx calls a function in a way that cannot be hooked.
    #[error("libmlx does not call {symbol} through a pointer slot; nothing was patched")]
    MissingSlot {
        /// Its name.
        symbol: String,
    },
    /// The library's file cannot be read.
    #[error("cannot read {}", path.display())]
    Unreadable {
        /// Its path.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// Not x86-64 or aarch64.
    #[error("this processor is not supported: expected x86-64 or aarch64")]
    UnknownMachine,
    /// An image is damaged or of an unknown kind.
    #[error("cannot read a loaded image")]
    Image(#[from] memviz_image::ImageError),
    /// A pointer could not be replaced; those replaced before were restored.
    #[error("cannot install the hooks; everything was restored")]
    Protect(#[from] crate::linux::ProtectError),
    /// Arrays do not look as the table says.
    #[error("mlx {version} failed the self-test at `{step}`: {what}; everything was restored")]
    SelfTest {
        /// The release.
        version: String,
        /// Which step.
        step: &'static str,
        /// Value seen and value expected.
        what: String,
    },
    /// A recording runs already.
    #[error("a recording is running already; stop it first")]
    AlreadyRecording,
    /// No recording runs.
    #[error("no recording is running; start one first")]
    NotRecording,
    /// The process is a fork of one that recorded.
    #[error("this process was forked from one that records; recording goes on in the parent only")]
    ForkedChild,
}
