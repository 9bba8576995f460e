//! A stack id written into the array it belongs to.
//!
//! From the moment an array is built until it takes a buffer, its stack must be found again, millions of times a second and
//! from any thread. A map by address costs a lock and a cache miss at birth, at `set_data` and at death. Instead the id is
//! stored in bytes of `ArrayDesc` that no one reads: the padding after `status` (4 bytes) and after `is_tracer` (6 of 7),
//! which `ci/check_layouts.py` proves to be padding for each release by compiling its header. A descriptor is never copied
//! (it lives in a `make_shared` block and is reached through it), so padding bytes stay as they are; the attach-time
//! self-test checks that as well.
//!
//! 48 bits of the ten bytes are a nonce of the recording, so memory that was never stamped reads as "no stack". A
//! descriptor that is built while the hooks are on is always stamped, also with 0, so that an old stamp in recycled memory
//! cannot be taken for its own.
#![expect(unsafe_code, reason = "reads and writes padding bytes of MLX's array descriptors")]

use std::sync::atomic::{AtomicU64, Ordering};

use crate::mlx::DescLayout;

static NONCE: AtomicU64 = AtomicU64::new(0);

/// Makes every stamp so far invalid.
pub fn renew(seed: u64) {
    // SplitMix64's finaliser: any seed that differs gives an unrelated nonce. 0 would be likely in fresh memory.
    let mut mixed = seed.wrapping_add(NONCE.load(Ordering::Relaxed)).wrapping_add(0x9E37_79B9_7F4A_7C15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    NONCE.store((mixed ^ (mixed >> 31)) | 1, Ordering::Relaxed);
}

/// Stores `id` in a descriptor.
///
/// # Safety
/// `desc` is an `ArrayDesc` with that layout, and this thread is its only user: it is being built.
#[inline]
pub unsafe fn write(desc: usize, layout: &DescLayout, id: u32) {
    let nonce = NONCE.load(Ordering::Relaxed);
    let (first, second) = (desc + layout.pad_after_status, desc + layout.pad_after_tracer);
    // SAFETY: by contract the addresses are padding inside the descriptor; the layout makes them 4-, 2- and 4-aligned.
    unsafe {
        *(first as *mut u32) = nonce as u32;
        *(second as *mut u16) = (nonce >> 32) as u16;
        *((second + 2) as *mut u32) = id;
    }
}

/// The id stored in a descriptor during this recording; `None` if it was built before.
///
/// # Safety
/// `desc` is a live `ArrayDesc` with that layout.
#[inline]
pub unsafe fn read(desc: usize, layout: &DescLayout) -> Option<u32> {
    let nonce = NONCE.load(Ordering::Relaxed);
    let (first, second) = (desc + layout.pad_after_status, desc + layout.pad_after_tracer);
    // SAFETY: as in `write`. Only the building thread writes there, before it publishes the array.
    let (low, high, id) = unsafe { (*(first as *const u32), *(second as *const u16), *((second + 2) as *const u32)) };
    (low == nonce as u32 && high == (nonce >> 32) as u16).then_some(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_is_read_back_until_renewed_and_touches_padding_only() {
        let layout = crate::mlx::layout("0.32.4").unwrap().desc;
        let mut block = [0xAAAA_AAAA_AAAA_AAAA_u64; 46];
        let at = block.as_mut_ptr() as usize;
        renew(1);
        // SAFETY: `block` is as large and as aligned as a descriptor.
        let (before, after) = unsafe {
            let before = read(at, &layout);
            write(at, &layout, 77);
            (before, read(at, &layout))
        };
        assert_eq!((before, after), (None, Some(77)));
        let bytes = block.map(u64::to_ne_bytes).concat();
        let touched: Vec<usize> = (0..368).filter(|&at| bytes[at] != 0xAA).collect();
        assert!(touched.iter().all(|at| (220..224).contains(at) || (266..272).contains(at)), "{touched:?}");
        renew(2);
        // SAFETY: as above.
        assert_eq!(unsafe { read(at, &layout) }, None);
    }
}
