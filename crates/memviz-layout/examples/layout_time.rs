//! Times layouts of a million events: making one, random viewports, bands, moments.
//!
//! `cargo run --profile dev-fast -p memviz-layout --example layout_time`

use std::hint::black_box;
use std::time::Instant;

use memviz_layout::{Axis, By, Groups, Layout, Viewport, Window};
use memviz_trace::{Action, Event, Frame, Mark, MarkKind, StackId, ThreadId, Trace, TraceBuilder};

const EVENTS: usize = 1_000_000;
const VIEWPORTS: usize = 200;

/// xorshift: equal numbers on every run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    fn part(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }
}

struct Maker {
    builder: TraceBuilder,
    stacks: Vec<StackId>,
    cached: Vec<Event>,
    next_addr: u64,
    nanos: u64,
}

impl Maker {
    fn new() -> Maker {
        let mut builder = TraceBuilder::default();
        let (file, function) = (builder.intern("/home/u/train.py"), builder.intern("step"));
        let stacks = (1..300).map(|line| {
            let frame = builder.trace.stacks.intern_frame(Frame { file, function, line, ..Frame::default() });
            builder.trace.stacks.push(StackId(0), frame)
        });
        let stacks = stacks.collect();
        Maker { builder, stacks, cached: Vec::new(), next_addr: 1 << 32, nanos: 0 }
    }

    fn events(&self) -> usize {
        self.builder.trace.events.len()
    }

    fn alloc(&mut self, random: &mut Random, size: u64) -> Event {
        self.nanos += 200 + random.below(2000);
        let built = self.stacks[random.below(self.stacks.len() as u64) as usize];
        let event = Event { time_nanos: self.nanos, size, built, triggered: self.stacks[0], ..Event::default() };
        let found = self.cached.iter().rev().take(64).position(|cached| cached.size == size);
        let event = match found {
            Some(at) => {
                let cached = self.cached.swap_remove(self.cached.len() - 1 - at);
                Event { action: Action::AllocReuse, addr: cached.addr, ..event }
            }
            None => {
                self.next_addr += 1 << 24;
                Event { addr: self.next_addr, ..event }
            }
        };
        self.builder.push(event);
        event
    }

    fn free(&mut self, event: Event) {
        self.nanos += 300;
        self.builder.push(Event { time_nanos: self.nanos, action: Action::FreeActiveToCache, ..event });
        self.cached.push(event);
    }

    fn step(&mut self, number: u64) {
        let (index, time_nanos) = (self.events() as u64, self.nanos);
        self.builder.trace.marks.push(Mark { index, time_nanos, thread: ThreadId(0), kind: MarkKind::Step(number) });
    }
}

/// Weights, activations of 150 layers that come and go, temporaries in between.
fn training() -> Trace {
    let (mut maker, mut random) = (Maker::new(), Random(7));
    let _weights: Vec<Event> = (0..400).map(|at| maker.alloc(&mut random, (1 + at % 16) << 20)).collect();
    let mut step = 0;
    while maker.events() < EVENTS {
        maker.step(step);
        step += 1;
        let mut activations = Vec::new();
        for layer in 0..150 {
            activations.push(maker.alloc(&mut random, (1 + layer % 7) << 20));
            for _ in 0..8 {
                let size = 1 << (9 + random.below(12));
                let temporary = maker.alloc(&mut random, size);
                maker.free(temporary);
            }
        }
        while let Some(activation) = activations.pop() {
            let gradient = maker.alloc(&mut random, activation.size);
            maker.free(activation);
            maker.free(gradient);
        }
    }
    maker.builder.finish()
}

/// `live` blocks, the oldest freed first: every free moves all bottoms.
fn fifo(live: usize) -> Trace {
    let (mut maker, mut random) = (Maker::new(), Random(7));
    let mut alive = std::collections::VecDeque::new();
    let mut step = 0;
    while maker.events() < EVENTS {
        if maker.events().is_multiple_of(10_000) {
            maker.step(step);
            step += 1;
        }
        let size = (1 + random.below(16)) << 16;
        alive.push_back(maker.alloc(&mut random, size));
        if alive.len() > live
            && let Some(oldest) = alive.pop_front()
        {
            maker.free(oldest);
        }
    }
    maker.builder.finish()
}

/// Lifetimes and sizes without any pattern.
fn random(live: usize) -> Trace {
    let (mut maker, mut random) = (Maker::new(), Random(7));
    let mut alive: Vec<Event> = Vec::new();
    while maker.events() < EVENTS {
        if alive.len() > live || (alive.len() > live / 2 && random.below(2) == 0) {
            let at = random.below(alive.len() as u64) as usize;
            let event = alive.swap_remove(at);
            maker.free(event);
        } else {
            let size = 256 << random.below(18);
            alive.push(maker.alloc(&mut random, size));
        }
    }
    maker.builder.finish()
}

fn viewport(layout: &Layout, trace: &Trace, random: &mut Random, areas: bool) -> Viewport {
    let axes: Vec<Axis> = Axis::ALL.into_iter().filter(|axis| layout.bounds(trace, *axis).is_some()).collect();
    let axis = axes[random.below(axes.len() as u64) as usize];
    let (first, last) = layout.bounds(trace, axis).unwrap_or((0.0, 1.0));
    // Half of all viewports show everything, the others a part on any scale.
    let scale = |random: &mut Random| if random.below(2) == 0 { 1.0 } else { 10_f64.powf(-4.0 * random.part()) };
    let (width, height) = (scale(random), scale(random));
    let from = first + (last - first) * (1.0 - width) * random.part();
    let top = layout.peak_active().bytes as f64;
    let low = top * (1.0 - height) * random.part();
    let window = Window { axis, from, to: from + (last - first) * width, columns: 1600 };
    Viewport { window, low, high: low + top * height, rows: 800, areas }
}

/// Milliseconds of `VIEWPORTS` calls: median, 95th percentile, most.
fn times(mut call: impl FnMut()) -> String {
    let mut millis: Vec<f64> = (0..VIEWPORTS).map(|_| millis(&mut call)).collect();
    millis.sort_by(f64::total_cmp);
    let at = |part: usize| millis[(VIEWPORTS - 1) * part / 100];
    format!("p50 {:6.2}  p95 {:6.2}  most {:6.2} ms", at(50), at(95), at(100))
}

fn millis(call: impl FnOnce()) -> f64 {
    let begin = Instant::now();
    call();
    begin.elapsed().as_secs_f64() * 1e3
}

fn measure(name: &str, trace: &Trace) {
    let mut made = None;
    let taken = millis(|| made = Some(Layout::new(trace)));
    let Some(layout) = made else { return };
    let bytes = layout.memory_bytes() as f64 / trace.events.len() as f64;
    println!("{name}: {} events, {} blocks", trace.events.len(), layout.blocks());
    println!("  layout         {taken:.0} ms, {bytes:.1} bytes an event");
    let mut groups = None;
    println!("  groups by line {:.0} ms", millis(|| groups = Some(Groups::new(trace, &layout, By::Line))));
    let Some(groups) = groups else { return };
    let mut random = Random(11);
    let counts = (0..20).filter_map(|_| {
        let view = viewport(&layout, trace, &mut random, false);
        match layout.timeline(trace, &groups, &view).ok()?.picture {
            memviz_layout::Picture::Bricks(bricks) => Some((bricks.block.len(), bricks.run_from.len())),
            memviz_layout::Picture::Areas(_) => None,
        }
    });
    let most = counts.max_by_key(|counts| counts.1).unwrap_or_default();
    println!("  most bricks and runs of a picture: {} and {}", most.0, most.1);
    for (what, areas) in [("bricks", false), ("areas", true)] {
        let mut random = Random(11);
        let all = times(|| {
            let view = viewport(&layout, trace, &mut random, areas);
            drop(black_box(layout.timeline(trace, &groups, &view)));
        });
        println!("  {what:14} {all}");
    }
    let mut random = Random(11);
    println!(
        "  bands          {}",
        times(|| {
            let view = viewport(&layout, trace, &mut random, false);
            drop(black_box(layout.bands(trace, &view.window)));
        })
    );
    println!("  live blocks    {}", times(|| drop(black_box(layout.live_blocks(random.below(EVENTS as u64) as u32)))));
    println!(
        "  tenants        {}",
        times(|| _ = black_box(layout.tenants(trace, random.below(layout.blocks().into()) as u32)))
    );
}

fn main() {
    measure("training", &training());
    measure("fifo, 1,000 live", &fifo(1000));
    measure("random, 3,000 live", &random(3000));
    measure("random, 50,000 live", &random(50_000));
}
