//! `segments`: the buffers that exist after the last event, one segment with one block each.

use memviz_trace::{Buffer, Device, StackId, Trace};

use super::entries::{Alive, stack_of, stream};
use super::pickler::{ListBatch, Pickler};
use super::scan::Scan;
use super::shared::Shared;
use super::words::Word;

const LARGE_BYTES: u64 = 1 << 20;
const BEFORE: &str = "memory from before the recording";

/// Writes the segments of real buffers, then those of memory that is not known buffer by buffer.
pub(super) fn write(
    pickler: &mut Pickler<'_>,
    list: &mut ListBatch,
    shared: &mut Shared<'_>,
    scan: &Scan,
    trace: &Trace,
    alive: &[Alive],
) {
    for Alive { buffer, home, .. } in alive {
        open(pickler, list, buffer, scan.first_list + home);
        block(pickler, buffer);
        shared.frames(pickler, stack_of(buffer.built, buffer.triggered));
        pickler.word(Word::UserMetadata);
        shared.owner_text(pickler, buffer.what, buffer.built);
        close(pickler);
    }
    let mut addr = scan.fake_addr;
    for (size, is_cached) in [(trace.base.active, false), (trace.base.cached, true)] {
        let size = size.min(1 << 61);
        if size > 0 {
            let buffer = Buffer { addr, size, is_cached, device: Device(0), ..Buffer::default() };
            open(pickler, list, &buffer, scan.first_list + scan.main);
            block(pickler, &buffer);
            own_frame(pickler, BEFORE);
            pickler.word(Word::UserMetadata);
            pickler.shared(if is_cached { "cached before the recording" } else { "active before the recording" });
            close(pickler);
            addr += size.next_multiple_of(4096);
        }
    }
}

fn open(pickler: &mut Pickler<'_>, list: &mut ListBatch, buffer: &Buffer, device: usize) {
    let if_active = |bytes| if buffer.is_cached { 0 } else { bytes };
    pickler.item(list);
    pickler.begin_dict();
    let numbers = [
        (Word::Device, device as u64),
        (Word::Address, buffer.addr),
        (Word::TotalSize, buffer.size),
        (Word::AllocatedSize, if_active(buffer.size)),
        (Word::ActiveSize, if_active(buffer.size)),
        (Word::RequestedSize, if_active(buffer.requested())),
    ];
    for (word, number) in numbers {
        pickler.word(word);
        pickler.bits(number);
    }
    pickler.word(Word::Stream);
    pickler.int(stream(buffer.stream));
    pickler.word(Word::SegmentType);
    pickler.word(if buffer.size < LARGE_BYTES { Word::Small } else { Word::Large });
    pickler.word(Word::SegmentPoolId);
    pickler.pool();
    pickler.word(Word::IsExpandable);
    pickler.bool(false);
    pickler.word(Word::Frames);
    pickler.list(std::iter::empty::<StackId>(), |_, _| {});
    pickler.word(Word::Blocks);
}

/// Opens the only block; the frame list, more keys and [`close`] follow.
fn block(pickler: &mut Pickler<'_>, buffer: &Buffer) {
    let mut list = pickler.begin_list();
    pickler.item(&mut list);
    pickler.begin_dict();
    for (word, number) in
        [(Word::Address, buffer.addr), (Word::Size, buffer.size), (Word::RequestedSize, buffer.requested())]
    {
        pickler.word(word);
        pickler.bits(number);
    }
    pickler.word(Word::State);
    pickler.word(if buffer.is_cached { Word::Inactive } else { Word::ActiveAllocated });
    pickler.word(Word::Frames);
}

/// Ends block dict, block list and segment dict.
fn close(pickler: &mut Pickler<'_>) {
    pickler.end_dict();
    pickler.byte(super::opcodes::APPENDS);
    pickler.end_dict();
}

/// A frame list that says what no stack can say.
pub(super) fn own_frame(pickler: &mut Pickler<'_>, text: &str) {
    pickler.list([text], |pickler, text| {
        pickler.begin_dict();
        pickler.word(Word::Name);
        pickler.shared(text);
        pickler.word(Word::Filename);
        pickler.shared("mlx_memviz");
        pickler.word(Word::Line);
        pickler.int(0);
        pickler.end_dict();
    });
}
