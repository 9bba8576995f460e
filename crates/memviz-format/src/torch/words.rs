//! The fixed strings of a snapshot. Written first, so that each has a two-byte reference.

use super::opcodes as op;
use super::pickler::{Memo, Pickler};

macro_rules! words {
    ($($name:ident = $text:literal,)*) => {
        /// A string whose memo number is its position here.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(super) enum Word { $($name,)* }

        const TEXTS: &[&str] = &[$($text,)*];
    };
}

words! {
    Action = "action", Addr = "addr", Size = "size", Stream = "stream", TimeUs = "time_us", Frames = "frames",
    CompileContext = "compile_context", UserMetadata = "user_metadata", PoolId = "pool_id", Category = "category",
    DeviceFree = "device_free", NotApplicable = "N/A", Empty = "",
    Alloc = "alloc", FreeRequested = "free_requested", FreeCompleted = "free_completed",
    SegmentAlloc = "segment_alloc", SegmentFree = "segment_free", Oom = "oom", Snapshot = "snapshot",
    Name = "name", Filename = "filename", Line = "line",
    Device = "device", Address = "address", TotalSize = "total_size", AllocatedSize = "allocated_size",
    ActiveSize = "active_size", RequestedSize = "requested_size", SegmentType = "segment_type",
    SegmentPoolId = "segment_pool_id", IsExpandable = "is_expandable", Blocks = "blocks", State = "state",
    ActiveAllocated = "active_allocated", Inactive = "inactive", Small = "small", Large = "large",
    Stage = "stage", Start = "START", End = "END", Unknown = "unknown",
}

impl Word {
    pub(super) fn memo(self) -> Memo {
        Memo(self as u32)
    }
}

/// Writes every word and, last, the default pool as one list. Must come before anything else that is memoised.
pub(super) fn write_all(pickler: &mut Pickler<'_>) {
    let mut list = pickler.begin_list();
    for text in TEXTS {
        pickler.item(&mut list);
        pickler.shared(text);
    }
    pickler.item(&mut list);
    pickler.int(0);
    pickler.int(0);
    pickler.byte(op::TUPLE2);
    pickler.memoize();
    pickler.end_list(list);
}

impl Pickler<'_> {
    pub(super) fn word(&mut self, word: Word) {
        self.get(word.memo());
    }

    /// The pool of every segment: the default one.
    pub(super) fn pool(&mut self) {
        self.get(Memo(TEXTS.len() as u32));
    }
}
