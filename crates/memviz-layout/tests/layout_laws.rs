//! Laws of pictures on random traces with caches, moves, filtered bytes and events that cannot be true: against naive answers,
//! whatever is shown adds up to what was active.

use memviz_analyze::{find_peaks, live_at};
use memviz_layout::{Axis, Bricks, By, Groups, Invalid, Layout, NEVER, Picture, Scene, Viewport, Window};
use memviz_trace::{
    Action, Base, Buffer, Checkpoint, DeviceMemory, Event, Ledger, Mark, MarkKind, StackId, ThreadId, Trace,
    TraceBuilder,
};
use proptest::prelude::*;

/// What happens, in numbers.
type Op = (u8, u64, usize);

fn ops() -> impl Strategy<Value = Vec<Op>> {
    prop::collection::vec((0..24_u8, 1..9_u64, 0..500_usize), 0..160)
}

/// A small allocator; numbers from 20 on do what no allocator does.
fn trace_of(start: &[(u64, bool)], base: u64, ops: &[Op]) -> Trace {
    let mut builder = TraceBuilder::default();
    let (mut active, mut cached) = (Vec::new(), Vec::new());
    let mut next_addr = 0x1000;
    let mut addr = || {
        next_addr += 0x1000;
        next_addr
    };
    builder.trace.base = Base { active: base, cached: 0 };
    for (nth, &(size, is_cached)) in start.iter().enumerate() {
        let event = Event { addr: addr(), size, time_nanos: (nth as u64 * 7) % 4, ..Event::default() };
        builder.trace.start.push(Buffer { is_cached, ..Buffer::from_alloc(&event) });
        if is_cached { cached.push(event) } else { active.push(event) }
    }
    let mut time_nanos = 5;
    for &(kind, size, pick) in ops {
        time_nanos += [0, 1, 10, 1000][pick % 4];
        let thread = ThreadId((pick % 3) as u16);
        let index = builder.trace.events.len() as u64;
        let mut mark = |kind| builder.trace.marks.push(Mark { index, time_nanos, thread, kind });
        match kind {
            0..=7 => {
                let event = Event { time_nanos, addr: addr(), size, thread, built: StackId(0), ..Event::default() };
                builder.push(event);
                active.push(event);
            }
            8 if !cached.is_empty() => {
                let event = Event { time_nanos, action: Action::AllocReuse, ..cached.swap_remove(pick % cached.len()) };
                builder.push(event);
                active.push(event);
            }
            9..=12 if !active.is_empty() => {
                let event: Event = active.swap_remove(pick % active.len());
                let action = if kind < 11 { Action::FreeActiveToCache } else { Action::FreeActiveToOs };
                builder.push(Event { time_nanos, action, ..event });
                if kind < 11 {
                    cached.push(event);
                }
            }
            13 | 14 if !active.is_empty() => {
                let at = pick % active.len();
                let event: Event = active[at];
                let moved = Event { time_nanos, flags: Event::MOVED, ..event };
                builder.push(Event { action: Action::FreeActiveToOs, ..moved });
                if kind == 14 {
                    builder.push(Event { time_nanos, action: Action::Snapshot, ..Event::default() });
                }
                active[at].addr = addr();
                builder.push(Event { action: Action::AllocNew, addr: active[at].addr, ..moved });
            }
            15 if !cached.is_empty() => {
                let event = cached.swap_remove(pick % cached.len());
                builder.push(Event { time_nanos, action: Action::FreeCacheToOs, ..event });
            }
            16 => mark(MarkKind::Step(pick as u64)),
            17 => mark(MarkKind::CacheLimit(size)),
            18 => mark(if pick % 2 == 0 {
                MarkKind::AnnotationEnd
            } else {
                MarkKind::AnnotationBegin(Default::default())
            }),
            19 => builder.push(Event::filtered_net(time_nanos, size as i64 - 4, 0)),
            20 => builder.push(Event { time_nanos, addr: 2, action: Action::Oom, ..Event::default() }),
            21 => builder.push(Event {
                time_nanos,
                addr: pick as u64,
                size,
                action: Action::FreeActiveToOs,
                ..Event::default()
            }),
            22 => builder.push(Event { time_nanos: 3, addr: 0x2000, size, flags: Event::MOVED, ..Event::default() }),
            _ => builder.push(Event { time_nanos, addr: 0x2000, size: 1 << 40, ..Event::default() }),
        }
    }
    builder.finish()
}

fn traces() -> impl Strategy<Value = Trace> {
    let start = prop::collection::vec((1..9_u64, any::<bool>()), 0..6);
    (start, 0..5_u64, ops()).prop_map(|(start, base, ops)| trace_of(&start, base, &ops))
}

/// Blocks alive at a moment by their lives alone, as number and size. Blocks on the move are told by the ledger.
fn naive_live(trace: &Trace, layout: &Layout, moment: u32) -> Vec<(u32, u64)> {
    let all = (0..layout.blocks()).map(|id| (id, layout.block(id).expect("below the number of blocks")));
    let alive = all.filter(|(_, block)| block.born <= moment && moment < block.died);
    let mut alive: Vec<(u32, u64)> = alive.map(|(id, block)| (id, block.size)).collect();
    let live = live_at(trace, moment as usize);
    let listed = live.buffers.len();
    if alive.len() > listed {
        // Exactly one may be on the move: the one whose move-free is the last without its second half.
        assert_eq!(alive.len(), listed + 1);
        let known = layout.live_blocks(moment);
        alive.retain(|(id, _)| known.contains(id));
    }
    alive
}

fn viewport(axis: Axis, (from, to): (f64, f64), columns: usize, (low, high): (f64, f64), rows: usize) -> Viewport {
    Viewport { window: Window { axis, from, to, columns }, low, high, rows, areas: false }
}

/// Parts of the axis, bytes and pixels.
fn views() -> impl Strategy<Value = (usize, f64, f64, usize, f64, f64, usize)> {
    (0..3_usize, 0.0..0.9_f64, 0.05..1.0_f64, 1..60_usize, -0.2..0.8_f64, 0.05..1.2_f64, 1..60_usize)
}

fn view_of(trace: &Trace, layout: &Layout, parts: (usize, f64, f64, usize, f64, f64, usize)) -> Viewport {
    let (axis, from, width, columns, low, height, rows) = parts;
    let axis = Some(Axis::ALL[axis]).filter(|axis| layout.bounds(trace, *axis).is_some()).unwrap_or(Axis::Event);
    let (first, last) = layout.bounds(trace, axis).expect("an axis with bounds");
    let width = (last - first).max(1.0) * width;
    let top = layout.peak_active().bytes.clamp(1, 1 << 40) as f64;
    let from = first + (last - first) * from;
    viewport(axis, (from, from + width), columns, (top * low, top * (low + height)), rows)
}

fn bricks_of(scene: &Scene) -> &Bricks {
    match &scene.picture {
        Picture::Bricks(bricks) => bricks,
        Picture::Areas(_) => panic!("bricks were asked for"),
    }
}

/// Place of each brick drawn in a column, with the bottom of its run in rows.
fn drawn_in(bricks: &Bricks, column: usize) -> Vec<(usize, f32)> {
    let runs = |at: usize| bricks.run[at] as usize..bricks.run[at + 1] as usize;
    let within = |run: &usize| (bricks.run_from[*run] as usize..bricks.run_to[*run] as usize).contains(&column);
    let found = (0..bricks.block.len()).map(|at| (at, runs(at).filter(within).collect::<Vec<usize>>()));
    let one = found.filter(|(_, runs)| !runs.is_empty()).map(|(at, runs)| {
        assert_eq!(runs.len(), 1, "runs of a brick do not overlap");
        (at, bricks.run_bottom[runs[0]])
    });
    one.collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn live_blocks_are_those_of_the_analysis(trace in traces()) {
        let layout = Layout::new(&trace);
        prop_assert_eq!(layout.events() as usize, trace.events.len());
        for moment in 0..=layout.events() {
            let live = live_at(&trace, moment as usize);
            let ids = layout.live_blocks(moment);
            prop_assert!(ids.is_sorted());
            let mut sizes: Vec<u64> = ids.iter().map(|&id| layout.block(id).unwrap().size).collect();
            let mut expected: Vec<u64> = live.buffers.iter().map(|buffer| buffer.size).collect();
            sizes.sort_unstable();
            expected.sort_unstable();
            prop_assert_eq!(sizes, expected);
            prop_assert_eq!(layout.totals_at(moment).active, live.active_bytes);
            let naive: Vec<u32> = naive_live(&trace, &layout, moment).into_iter().map(|(id, _)| id).collect();
            prop_assert_eq!(ids, naive);
        }
    }

    #[test]
    fn peaks_are_those_of_the_analysis(trace in traces()) {
        let layout = Layout::new(&trace);
        let peaks = find_peaks(&trace);
        let (active, reserved) = (layout.peak_active(), layout.peak_reserved());
        prop_assert_eq!((active.event as usize, active.bytes), (peaks.active.after_events, peaks.active.active_bytes));
        prop_assert_eq!((reserved.event as usize, reserved.bytes), (peaks.reserved.after_events, peaks.reserved.reserved_bytes()));
    }

    #[test]
    fn columns_add_up_and_show_their_highest_moment(trace in traces(), parts in views()) {
        let layout = Layout::new(&trace);
        let groups = Groups::new(&trace, &layout, By::Thread);
        let view = view_of(&trace, &layout, parts);
        let scene = layout.timeline(&trace, &groups, &view).unwrap();
        let bricks = bricks_of(&scene);
        let columns = layout.columns(&trace, &view.window).unwrap();
        for (column, (first, last)) in columns.into_iter().enumerate() {
            let drawn: f64 = drawn_in(bricks, column).iter().map(|(at, _)| bricks.size[*at]).sum();
            prop_assert_eq!(drawn + scene.rest[column] + scene.outside[column], scene.active[column]);
            let active = |moment| layout.totals_at(moment).active as f64;
            prop_assert_eq!(active(scene.moment[column]), scene.active[column]);
            prop_assert_eq!((first..=last).map(active).fold(0.0, f64::max), scene.active[column]);
            prop_assert_eq!((first..=last).map(active).fold(f64::MAX, f64::min), scene.lowest[column]);
        }
        prop_assert!(bricks.block.is_sorted_by(|a, b| a < b));
        prop_assert_eq!(bricks.run.len(), bricks.block.len() + 1);
    }

    #[test]
    fn bricks_lie_on_older_blocks(trace in traces(), parts in views()) {
        let layout = Layout::new(&trace);
        let groups = Groups::new(&trace, &layout, By::Step);
        let view = view_of(&trace, &layout, parts);
        let scene = layout.timeline(&trace, &groups, &view).unwrap();
        let bricks = bricks_of(&scene);
        let row = (view.high - view.low) / view.rows as f64;
        for (column, &moment) in scene.moment.iter().enumerate() {
            let mut bottom = 0;
            let mut expected = Vec::new();
            for (id, size) in naive_live(&trace, &layout, moment) {
                let is_inside = (bottom as f64) < view.high && (bottom + size) as f64 > view.low;
                if size as f64 >= row && is_inside {
                    expected.push((id, ((bottom as f64 - view.low) / row) as f32, size));
                }
                bottom += size;
            }
            let drawn = drawn_in(bricks, column);
            prop_assert_eq!(drawn.len(), expected.len());
            for ((at, bottom), (id, naive, size)) in drawn.iter().zip(&expected) {
                prop_assert_eq!(bricks.block[*at], *id);
                prop_assert_eq!(bricks.size[*at], *size as f64);
                prop_assert_eq!(groups.name(scene.groups[bricks.group[*at] as usize]), groups.name(groups.of(*id)));
                prop_assert!((bottom - naive).abs() < 0.25 + naive.abs() * 1e-6, "{} and {}", bottom, naive);
            }
        }
    }

    #[test]
    fn areas_add_up_by_group(trace in traces(), parts in views()) {
        let layout = Layout::new(&trace);
        let groups = Groups::new(&trace, &layout, By::Thread);
        let view = Viewport { areas: true, ..view_of(&trace, &layout, parts) };
        let scene = layout.timeline(&trace, &groups, &view).unwrap();
        let Picture::Areas(area) = &scene.picture else { panic!("areas were asked for") };
        let columns = scene.moment.len();
        for (column, &moment) in scene.moment.iter().enumerate() {
            let live = naive_live(&trace, &layout, moment);
            let mut sum = scene.rest[column];
            for (at, group) in scene.groups.iter().enumerate() {
                let naive: u64 = live.iter().filter(|(id, _)| groups.of(*id) == *group).map(|(_, size)| size).sum();
                prop_assert_eq!(area[at * columns + column], naive as f64);
                sum += area[at * columns + column];
            }
            prop_assert_eq!(sum, scene.active[column]);
        }
    }

    #[test]
    fn a_height_is_in_one_block(trace in traces(), pick in any::<prop::sample::Index>()) {
        let layout = Layout::new(&trace);
        let moment = pick.index(trace.events.len() + 1) as u32;
        let mut bottom = 0;
        for (id, size) in naive_live(&trace, &layout, moment) {
            for height in [bottom, bottom + size - 1] {
                prop_assert_eq!(layout.block_at(moment, height), Some(id));
            }
            bottom += size;
        }
        prop_assert_eq!(layout.block_at(moment, bottom), None);
    }

    #[test]
    fn axes_rise_and_come_back(trace in traces(), at in -0.1..1.1_f64) {
        let layout = Layout::new(&trace);
        for axis in Axis::ALL {
            let Some((first, last)) = layout.bounds(&trace, axis) else {
                prop_assert_eq!(layout.moment_of(&trace, axis, at), Err(Invalid::NoSteps));
                continue;
            };
            let positions: Vec<f64> =
                (0..=layout.events()).map(|moment| layout.position_of(&trace, axis, moment).unwrap()).collect();
            prop_assert!(positions.is_sorted(), "{:?}", positions);
            for &position in &positions {
                let back = layout.moment_of(&trace, axis, position).unwrap();
                prop_assert_eq!(positions[back as usize], position);
                prop_assert!(positions.get(back as usize + 1).is_none_or(|next| *next > position));
            }
            let at = first + (last - first) * at;
            let moment = layout.moment_of(&trace, axis, at).unwrap() as usize;
            prop_assert!(positions[moment] <= at || moment == 0);
            prop_assert!(positions.get(moment + 1).is_none_or(|next| *next > at));
        }
    }

    #[test]
    fn bands_hold_the_highest_sums(trace in traces(), parts in views()) {
        let layout = Layout::new(&trace);
        let window = view_of(&trace, &layout, parts).window;
        let bands = layout.bands(&trace, &window).unwrap();
        for (column, (first, last)) in layout.columns(&trace, &window).unwrap().into_iter().enumerate() {
            let totals = || (first..=last).map(|moment| layout.totals_at(moment));
            let most = |value: fn(memviz_trace::Totals) -> u64| totals().map(value).max().unwrap() as f64;
            prop_assert_eq!(bands.active[column], most(|totals| totals.active));
            prop_assert_eq!(bands.cached[column], most(|totals| totals.cached));
            prop_assert_eq!(bands.reserved[column], most(|totals| totals.reserved()));
        }
        for at in 0..bands.span_lane.len() {
            prop_assert!(bands.span_from[at] >= window.from && bands.span_to[at] <= window.to);
            prop_assert!((bands.span_lane[at] as usize) < bands.lanes.len());
            prop_assert!((bands.span_label[at] as usize) < bands.labels.len());
        }
    }

    #[test]
    fn what_a_range_bears_and_ends_is_what_it_changes(trace in traces(), a in any::<prop::sample::Index>(), b in any::<prop::sample::Index>()) {
        let layout = Layout::new(&trace);
        let (a, b) = (a.index(trace.events.len() + 1) as u32, b.index(trace.events.len() + 1) as u32);
        let range = a.min(b)..a.max(b);
        let born = layout.born_in(range.clone());
        let died: Vec<u32> = layout.died_in(range.clone()).collect();
        for id in 0..layout.blocks() {
            let block = layout.block(id).unwrap();
            let is_in = |moment| range.start < moment && moment <= range.end;
            prop_assert_eq!(born.contains(&id), is_in(block.born));
            prop_assert_eq!(died.contains(&id), block.died != NEVER && is_in(block.died));
            prop_assert!(block.alloc_event.is_none_or(|at| trace.events[at].action.is_alloc()));
            prop_assert!(block.free_event.is_none_or(|at| trace.events[at].action.is_free()));
        }
    }
}

/// Many events: lists of live blocks are written, chunks of sums are used.
fn long_trace(live: usize) -> Trace {
    let mut builder = TraceBuilder::default();
    let mut active = std::collections::VecDeque::new();
    let mut state: u64 = 9;
    for addr in 1..30_000_u64 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let event = Event { time_nanos: 10 * addr, addr, size: 1 + state % 4096, ..Event::default() };
        builder.push(event);
        active.push_back(event);
        let newest = state.is_multiple_of(3);
        if active.len() > live
            && let Some(event) = if newest { active.pop_back() } else { active.pop_front() }
        {
            builder.push(Event { time_nanos: 10 * addr + 5, action: Action::FreeActiveToOs, ..event });
        }
    }
    builder.finish()
}

#[test]
fn long_traces_agree_with_a_replay() {
    for live in [3, 300, 5000] {
        let trace = long_trace(live);
        let layout = Layout::new(&trace);
        let groups = Groups::new(&trace, &layout, By::Device);
        let end = trace.events.len() as f64;
        let top = layout.peak_active().bytes as f64;
        let view = viewport(Axis::Event, (end * 0.1, end * 0.9), 37, (top * 0.3, top * 0.35), 200);
        let scene = layout.timeline(&trace, &groups, &view).unwrap();
        let bricks = bricks_of(&scene);
        let row = (view.high - view.low) / view.rows as f64;
        for (column, &moment) in scene.moment.iter().enumerate() {
            let mut bottom = 0;
            let mut expected = Vec::new();
            for id in layout.live_blocks(moment) {
                let size = layout.block(id).unwrap().size;
                if size as f64 >= row && (bottom as f64) < view.high && (bottom + size) as f64 > view.low {
                    expected.push(id);
                }
                bottom += size;
            }
            let drawn: Vec<u32> = drawn_in(bricks, column).iter().map(|(at, _)| bricks.block[*at]).collect();
            assert_eq!(drawn, expected);
            assert_eq!(live_at(&trace, moment as usize).active_bytes as f64, scene.active[column]);
            let (first, last) = layout.columns(&trace, &view.window).unwrap()[column];
            let highest = (first..=last).map(|moment| layout.totals_at(moment).active).max().unwrap();
            assert_eq!(highest as f64, scene.active[column]);
            let first_highest = (first..=last).find(|&moment| layout.totals_at(moment).active == highest);
            assert_eq!(first_highest, Some(moment));
        }
    }
}

#[test]
fn a_moved_block_stays_one() {
    let event =
        |time_nanos, action, addr, flags| Event { time_nanos, action, addr, size: 64, flags, ..Event::default() };
    let mut builder = TraceBuilder::default();
    builder.push(event(1, Action::AllocNew, 0x1000, 0));
    builder.push(event(2, Action::FreeActiveToOs, 0x1000, Event::MOVED));
    builder.push(event(2, Action::AllocNew, 0x2000, Event::MOVED));
    builder.push(event(3, Action::FreeActiveToOs, 0x2000, 0));
    builder.push(event(4, Action::AllocNew, 0x2000, 0));
    let trace = builder.finish();
    let layout = Layout::new(&trace);
    let block = layout.block(0).unwrap();
    assert_eq!((layout.blocks(), block.born, block.died, block.free_event), (2, 1, 4, Some(3)));
    assert_eq!([1, 2, 3, 4].map(|moment| layout.live_blocks(moment).len()), [1, 0, 1, 0]);
    let tenants = layout.tenants(&trace, 1);
    assert_eq!((tenants.previous, tenants.next, tenants.count), (Some(0), None, 2));
}

#[test]
fn bands_tell_limits_steps_and_marks() {
    let event = |time_nanos, action, addr| Event { time_nanos, action, addr, size: 64, ..Event::default() };
    let mut builder = TraceBuilder::default();
    builder.trace.header.backend = "cpu".to_owned();
    builder.push(event(10, Action::AllocNew, 0x1000));
    builder.push(event(20, Action::FreeActiveToCache, 0x1000));
    builder.push(event(30, Action::FreeCacheToOs, 0x1000));
    builder.push(event(40, Action::Oom, 0));
    let mark = |index, time_nanos, kind| Mark { index, time_nanos, thread: ThreadId(0), kind };
    let name = builder.intern("forward");
    builder.trace.marks = vec![
        mark(0, 5, MarkKind::Step(0)),
        mark(1, 12, MarkKind::AnnotationBegin(name)),
        mark(1, 15, MarkKind::CacheLimit(4096)),
        mark(2, 25, MarkKind::Step(1)),
        mark(2, 28, MarkKind::AnnotationEnd),
    ];
    let device = Some(DeviceMemory { devices: 1, free: 10, total: 100, pool: 0 });
    builder.trace.checkpoints.push(Checkpoint { index: 3, time_nanos: 35, device, ..Checkpoint::default() });
    let trace = builder.finish();
    let layout = Layout::new(&trace);
    let bands = layout.bands(&trace, &Window { axis: Axis::Time, from: 0.0, to: 40.0, columns: 8 }).unwrap();
    assert!(bands.cache_limit[1].is_nan() && bands.cache_limit[2] == 4096.0, "{:?}", bands.cache_limit);
    assert!(bands.device_used[5].is_nan() && bands.device_used[6] == 90.0, "{:?}", bands.device_used);
    let kinds: Vec<(&str, f64)> = bands.marks.iter().map(|mark| (mark.kind, mark.at)).collect();
    assert_eq!(kinds, [("cache_limit", 15.0), ("clear_cache", 30.0), ("checkpoint", 35.0), ("oom", 40.0)]);
    let spans = |kind: &str| {
        let of_kind = (0..bands.span_lane.len()).filter(|&at| bands.lanes[bands.span_lane[at] as usize].kind == kind);
        let label = |at: usize| bands.labels[bands.span_label[at] as usize].as_str();
        of_kind.map(|at| (label(at), bands.span_from[at], bands.span_to[at])).collect::<Vec<_>>()
    };
    assert_eq!(spans("annotation"), [("forward", 12.0, 28.0)]);
    assert_eq!(spans("step"), [("step 0", 0.0, 20.0), ("step 1", 20.0, 40.0)]);
    assert_eq!(layout.steps(), Some((0, 1)));
    assert_eq!((layout.next_step(0), layout.previous_step(4), layout.next_step(2)), (Some(2), Some(2), None));
    let place = layout.place(&trace, 3);
    assert_eq!((place.nanos, place.step, place.step_number), (30, Some(1.5), Some(1)));
}

#[test]
fn impossible_viewports_are_refused() {
    let trace = Trace::default();
    let layout = Layout::new(&trace);
    let groups = Groups::new(&trace, &layout, By::Line);
    let good = viewport(Axis::Event, (0.0, 1.0), 1, (0.0, 1.0), 1);
    assert!(layout.timeline(&trace, &groups, &good).is_ok());
    let refused = |change: &dyn Fn(&mut Viewport)| {
        let mut view = good;
        change(&mut view);
        layout.timeline(&trace, &groups, &view).unwrap_err().to_string()
    };
    assert_eq!(refused(&|view| view.window.to = 0.0), "from is 0 and to is 0: expected from below to");
    assert_eq!(refused(&|view| view.high = f64::NAN), "high is NaN: expected a finite number");
    assert_eq!(refused(&|view| view.rows = 0), "rows is 0: expected 1 to 2048");
    assert_eq!(refused(&|view| view.window.columns = 4097), "columns is 4097: expected 1 to 4096");
    assert!(refused(&|view| view.window.axis = Axis::Step).starts_with("axis is step, but the recording has no steps"));
    for edges in [(-1e308, 1e308), (f64::NEG_INFINITY, 0.0)] {
        assert!(refused(&|view| (view.window.from, view.window.to) = edges).contains("expected a finite number"));
    }
}

#[test]
fn hostile_numbers_do_no_harm() {
    let mut builder = TraceBuilder::default();
    let alloc = |addr, size| Event { time_nanos: u64::MAX - addr, addr, size, ..Event::default() };
    builder.push(alloc(1, u64::MAX));
    builder.push(Event::filtered_net(0, i64::MIN, i64::MAX));
    builder.push(alloc(2, u64::MAX >> 2));
    builder.push(alloc(3, u64::MAX));
    builder.push(Event { thread: ThreadId(u16::MAX), ..alloc(4, 1) });
    for number in [u64::MAX, 0, u64::MAX, 7] {
        let mark = Mark { index: number, time_nanos: number, thread: ThreadId(9), kind: MarkKind::Step(number) };
        builder.trace.marks.push(mark);
    }
    let trace = builder.finish();
    assert!(Ledger::at_start(&trace).is_ok());
    let layout = Layout::new(&trace);
    for by in By::ALL {
        let groups = Groups::new(&trace, &layout, by);
        for axis in Axis::ALL {
            let (first, last) = layout.bounds(&trace, axis).unwrap();
            let mut view = viewport(axis, (first, last + 1e9), 100, (0.0, 1e18), 100);
            assert!(layout.timeline(&trace, &groups, &view).is_ok());
            view.areas = true;
            assert!(layout.timeline(&trace, &groups, &view).is_ok());
            assert!(layout.bands(&trace, &view.window).is_ok());
        }
    }
    assert_eq!(layout.block(NEVER), None);
    assert_eq!(layout.live_blocks(NEVER), layout.live_blocks(layout.events()));
}
