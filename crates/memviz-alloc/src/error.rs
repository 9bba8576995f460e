//! Why the allocator refused.

/// A refused call. Whatever is counted stays as before the call, but for blocks that were evicted to make room.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AllocError {
    /// The device has no buffers of that size.
    #[error("cannot allocate {requested} bytes: a buffer has at most {limit} bytes on this device")]
    TooLarge {
        /// Bytes asked for.
        requested: u64,
        /// Largest buffer, bytes.
        limit: u64,
    },
    /// The device manages no more buffers, and nothing is cached any more.
    #[error("cannot allocate {requested} bytes: {limit} buffers exist, which is the device's limit; free some first")]
    ResourceLimit {
        /// Bytes asked for.
        requested: u64,
        /// Most buffers that may exist.
        limit: u64,
    },
    /// The heap has no memory, after the cache gave back what the policy asks for.
    #[error("cannot allocate {requested} bytes: out of memory with {active} bytes active and {cached} cached")]
    OutOfMemory {
        /// Bytes asked for.
        requested: u64,
        /// Active bytes.
        active: u64,
        /// Bytes still cached.
        cached: u64,
    },
    /// `set_wired_limit` above what the device recommends to use.
    #[error("cannot wire {requested} bytes: the recommended working set is {limit} bytes; ask for that or less")]
    WiredLimit {
        /// Bytes asked for.
        requested: u64,
        /// Recommended working set, bytes.
        limit: u64,
    },
    /// A buffer of another allocator, or one that was freed.
    #[error("no active buffer at {addr:#x} in this allocator: free each buffer once, where it was allocated")]
    UnknownBuffer {
        /// Its address.
        addr: u64,
    },
    /// `free` of a wrapper or `release` of an own buffer.
    #[error("the buffer at {addr:#x} was made by {made_by}: give it back with {give_back}")]
    WrongCall {
        /// Its address.
        addr: u64,
        /// "malloc" or "make_buffer".
        made_by: &'static str,
        /// "free" or "release".
        give_back: &'static str,
    },
}
