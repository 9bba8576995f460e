//! Writes an allocator's events into a `Trace`.

use std::time::Instant;

use memviz_trace::{Action, Device, DeviceKind, Event, Trace, TraceBuilder};
use rustc_hash::FxHashMap;

use crate::block::Block;
use crate::engine::Sink;

/// Collects events, without stacks: it knows the allocator only. Memory grows with every event, 48 bytes each.
#[derive(Debug)]
pub struct TraceRecorder {
    builder: TraceBuilder,
    start: Instant,
    device: Device,
    /// Slack of each block's present use, so that its free carries it too.
    slacks: FxHashMap<u64, u32>,
}

impl TraceRecorder {
    /// Begins now. `backend` is the name that the trace's header gets, "cpu", "cuda" or "metal".
    pub fn new(backend: &str) -> TraceRecorder {
        let mut builder = TraceBuilder::default();
        builder.trace.header.backend = backend.to_owned();
        let kind = if backend == "cpu" { DeviceKind::Cpu } else { DeviceKind::Gpu };
        TraceRecorder { builder, start: Instant::now(), device: Device::new(kind, 0), slacks: FxHashMap::default() }
    }

    /// The trace so far.
    pub fn finish(self) -> Trace {
        self.builder.finish()
    }

    fn slack(&mut self, action: Action, block: &Block, requested: u64) -> u32 {
        if action.is_alloc() {
            let slack = u32::try_from(block.size.saturating_sub(requested)).unwrap_or(u32::MAX);
            self.slacks.insert(block.addr, slack);
            return slack;
        }
        match action {
            Action::FreeActiveToCache => self.slacks.get(&block.addr).copied().unwrap_or(0),
            _ => self.slacks.remove(&block.addr).unwrap_or(0),
        }
    }
}

impl Sink for TraceRecorder {
    fn event(&mut self, action: Action, block: Block, requested: u64) {
        let time_nanos = u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let slack = self.slack(action, &block, requested);
        let (addr, size) = (block.addr, block.size);
        self.builder.push(Event { time_nanos, addr, size, slack, device: self.device, action, ..Event::default() });
    }
}
