//! Traces made by a small caching allocator that is driven by numbers: equal numbers, equal trace, and always valid.
//!
//! For tests, the bench and the example `sample`.
#![allow(dead_code, reason = "each user takes a part")]

use memviz_trace::{
    Action, Base, Buffer, Checkpoint, CheckpointKind, Device, DeviceKind, Event, Frame, Header, Ledger, Mark, MarkKind,
    NO_STREAM, StackId, Thread, ThreadId, Trace, TraceBuilder, What, WhatId,
};

/// A trace under construction, and the allocator it describes.
pub struct Simulator {
    builder: TraceBuilder,
    active: Vec<Event>,
    cached: Vec<Event>,
    next_addr: u64,
    pub nanos: u64,
    pub whats: Vec<WhatId>,
    pub built: Vec<StackId>,
    pub triggered: Vec<StackId>,
    pub thread: ThreadId,
    pub device: Device,
}

impl Simulator {
    /// An allocator with buffers of before the recording, and tables with `stacks` stacks of `depth` frames.
    pub fn new(stacks: usize, depth: u32) -> Simulator {
        let mut builder = TraceBuilder::default();
        builder.trace.header = Header {
            mlx_version: "0.32.4".into(),
            backend: "cpu".into(),
            python_version: "3.11.7".into(),
            memviz_version: "0.1.0".into(),
            command: vec!["train.py".into(), "--größe=1".into()],
            pid: 4711,
            start_unix_micros: 1_796_072_053_566_425,
            walker: "raw frames (3.11)".into(),
            level: "buffers".into(),
            notes: vec!["made by the simulator".into()],
            ..Header::default()
        };
        let name = builder.intern("MainThread");
        let thread = builder.push_thread(Thread { native_id: 4711, name });
        let whats = whats(&mut builder);
        let built = (0..stacks).map(|number| stack(&mut builder, "model.py", number, depth)).collect();
        let triggered = (0..2).map(|number| stack(&mut builder, "train.py", number, 2)).collect();
        Simulator {
            builder,
            active: vec![],
            cached: vec![],
            next_addr: 0x7f3a_0000_0000,
            nanos: 0,
            whats,
            built,
            triggered,
            thread,
            device: Device::new(DeviceKind::Cpu, 0),
        }
    }

    /// Buffers and bytes that exist before the first event.
    pub fn begin(&mut self, sizes: &[(u64, bool)], base: Base) {
        self.builder.trace.base = base;
        for &(size, is_cached) in sizes {
            let event = self.event(Action::AllocNew, size, 0, size as usize);
            let event = Event { addr: self.take_addr(size), triggered: StackId(0), thread: ThreadId(0), ..event };
            self.builder.trace.start.push(Buffer { is_cached, ..Buffer::from_alloc(&event) });
            if is_cached { self.cached.push(event) } else { self.active.push(event) }
        }
    }

    fn take_addr(&mut self, size: u64) -> u64 {
        let addr = self.next_addr;
        self.next_addr += (size + 1).next_multiple_of(4096);
        addr
    }

    fn event(&mut self, action: Action, size: u64, slack: u32, pick: usize) -> Event {
        Event {
            time_nanos: self.nanos,
            size,
            slack,
            what: self.whats[pick % self.whats.len()],
            built: self.built[pick % self.built.len()],
            triggered: self.triggered[pick / 7 % self.triggered.len()],
            thread: self.thread,
            stream: if pick.is_multiple_of(11) { NO_STREAM } else { 0 },
            device: self.device,
            action,
            ..Event::default()
        }
    }

    /// Allocates: from the cache when it has a buffer of that size.
    pub fn alloc(&mut self, size: u64, slack: u32, pick: usize) {
        let found = self.cached.iter().position(|cached| cached.size == size);
        let action = match (found, pick % 97) {
            (Some(_), _) => Action::AllocReuse,
            (None, 96) => Action::AllocMakeBuffer,
            (None, _) => Action::AllocNew,
        };
        let mut event = self.event(action, size, slack.min(size as u32), pick);
        event.addr = match found {
            Some(at) => self.cached.swap_remove(at).addr,
            None => self.take_addr(size),
        };
        self.builder.push(event);
        self.active.push(event);
    }

    /// Frees an active buffer: to the cache, or to the operating system.
    pub fn free(&mut self, pick: usize, to_cache: bool) {
        if self.active.is_empty() {
            return;
        }
        let taken = self.active.swap_remove(pick % self.active.len());
        let action = match (taken.action, to_cache) {
            (Action::AllocMakeBuffer, _) => Action::Release,
            (_, true) => Action::FreeActiveToCache,
            (_, false) => Action::FreeActiveToOs,
        };
        let triggered = self.triggered[0];
        self.builder.push(Event { time_nanos: self.nanos, action, triggered, ..taken });
        if action == Action::FreeActiveToCache {
            self.cached.push(taken);
        }
    }

    /// Number of active buffers.
    pub fn active(&self) -> usize {
        self.active.len()
    }

    /// Gives a cached buffer back to the operating system.
    pub fn evict(&mut self, pick: usize) {
        if !self.cached.is_empty() {
            let taken = self.cached.swap_remove(pick % self.cached.len());
            let event = Event { time_nanos: self.nanos, action: Action::FreeCacheToOs, stream: NO_STREAM, ..taken };
            self.builder.push(event);
        }
    }

    /// A record that is not about one buffer.
    pub fn other(&mut self, action: Action, size: u64, pick: usize) {
        let event = self.event(action, size, 0, pick);
        self.builder.push(event);
    }

    /// The filter left out events that add up to nothing below zero.
    pub fn filtered_net(&mut self, active: i64, cached: i64) {
        self.builder.push(Event::filtered_net(self.nanos, active, cached));
    }

    fn index(&self) -> u64 {
        self.builder.trace.events.len() as u64
    }

    /// A mark before the next event.
    pub fn mark(&mut self, kind: MarkKind) {
        let mark = Mark { index: self.index(), time_nanos: self.nanos, thread: self.thread, kind };
        self.builder.trace.marks.push(mark);
    }

    /// Opens an annotation.
    pub fn annotate(&mut self, name: &str) {
        let name = self.builder.intern(name);
        self.mark(MarkKind::AnnotationBegin(name));
    }

    /// The next events come from another device.
    pub fn use_device(&mut self, kind: DeviceKind) {
        self.device = Device::new(kind, 0);
    }

    /// The trace, with a checkpoint at its end.
    pub fn finish(self) -> Trace {
        let index = self.index();
        let mut trace = self.builder.finish();
        let mut ledger = Ledger::at_start(&trace).expect("a valid start");
        trace.events.iter().for_each(|event| ledger.apply(event).expect("a valid event"));
        let totals = ledger.totals();
        trace.checkpoints.push(Checkpoint {
            index,
            time_nanos: self.nanos,
            kind: CheckpointKind::Stop,
            active: totals.active,
            cached: totals.cached,
            mlx_active: totals.active,
            mlx_cached: totals.cached,
            device: None,
        });
        trace
    }
}

fn whats(builder: &mut TraceBuilder) -> Vec<WhatId> {
    let dtype = builder.intern("float32");
    let names = [
        "Matmul",
        "Add",
        "",
        "Softmax",
        "Multiply",
        "Divide",
        "Exp",
        "Reduce",
        "Copy",
        "Gather",
        "Convolution",
        "Tanh",
    ];
    let mut ids: Vec<WhatId> = Vec::new();
    for (number, name) in names.into_iter().enumerate() {
        let primitive = builder.intern(name);
        let shape = (number % 5 != 4).then(|| vec![64 * number as i32, 256].into());
        ids.push(builder.intern_what(What { primitive, dtype, shape, is_temporary: name == "Convolution" }));
    }
    ids
}

fn stack(builder: &mut TraceBuilder, file: &str, number: usize, depth: u32) -> StackId {
    let path = builder.intern(&format!("/home/user/project/{file}"));
    let mut stack = StackId(0);
    for level in (0..depth).rev() {
        let is_innermost = level == 0;
        let function = builder.intern(&format!("layer_{level}"));
        let line = if is_innermost { 100 + number as u32 } else { 10 + level };
        let frame = Frame { file: path, function, line, column: 5, is_native: false };
        let frame = builder.trace.stacks.intern_frame(frame);
        stack = builder.trace.stacks.push(stack, frame);
    }
    stack
}

/// A training loop of `steps` steps with `layers` allocations each, all shapes of event among them.
pub fn training(steps: u64, layers: usize, devices: bool) -> Trace {
    let mut sim = Simulator::new(200, 12);
    sim.begin(
        &[(8 << 20, false), (4 << 20, false), (2 << 20, true), (1 << 20, true)],
        Base { active: 6 << 20, cached: 3 << 20 },
    );
    for step in 0..steps {
        if step > 0 {
            sim.mark(MarkKind::Step(step));
        }
        sim.annotate("forward");
        for layer in 0..layers {
            sim.nanos += 1_700;
            if devices {
                sim.use_device(if layer % 16 == 3 { DeviceKind::Gpu } else { DeviceKind::Cpu });
            }
            let size = (1 + layer as u64 % 24) << 16;
            sim.alloc(size, if layer.is_multiple_of(3) { 4096 } else { 0 }, layer);
            if layer % 4 == 3 {
                sim.nanos += 300;
                sim.free(layer * 7, true);
            }
        }
        sim.mark(MarkKind::AnnotationEnd);
        end_of_step(&mut sim, step, layers);
    }
    sim.finish()
}

fn end_of_step(sim: &mut Simulator, step: u64, layers: usize) {
    if step == 2 {
        sim.other(Action::Oom, 1 << 40, 5);
        sim.other(Action::Snapshot, 0, 5);
    }
    while sim.active() > layers / 8 + 1 {
        sim.nanos += 250;
        sim.free(sim.active() - 1, !sim.active().is_multiple_of(29));
    }
    for pick in 0..(step as usize % 3) * 4 {
        sim.nanos += 100;
        sim.evict(pick * 5);
    }
}
