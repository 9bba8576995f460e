//! Answers about a recorded MLX run: pure functions of a [`memviz_trace::Trace`].
//!
//! [`find_peaks`] says when memory was highest, [`live_at`] what was active then, [`top_lines`] which lines of the program
//! it belongs to, [`stack_totals`] which call stacks, and [`Summary`] puts these together for the end of a run. [`UserLines`] decides which frame of a stack is
//! "the line" that a user wants to read.
//!
//! A trace that contradicts itself is still answered: events that cannot be true are skipped and counted, and the summary
//! carries the first violation. Not here: files (`memviz-format`), text for terminals (`memviz-cli`).
//!
//! ```
//! use memviz_analyze::{find_peaks, find_peaks_in, live_at, top_lines};
//! use memviz_trace::{Action, Event, TraceBuilder};
//!
//! let mut builder = TraceBuilder::default();
//! builder.push(Event { action: Action::AllocNew, addr: 0x1000, size: 64, ..Event::default() });
//! builder.push(Event { action: Action::FreeActiveToOs, addr: 0x1000, size: 64, ..Event::default() });
//! let trace = builder.finish();
//! let peak = find_peaks(&trace).active;
//! assert_eq!((peak.after_events, peak.active_bytes), (1, 64));
//! let lines = top_lines(&trace, &live_at(&trace, peak.after_events));
//! assert_eq!(lines[0].bytes, 64);
//! ```

mod about;
mod advise;
mod agreement;
mod arrays;
mod at_peak;
mod cache;
mod calls;
mod compile;
mod diff;
mod ended;
mod evaluation;
mod flame;
mod groups;
mod growth;
mod held;
mod instant;
mod leaks;
mod lines;
mod loops;
mod model;
mod moved;
mod naming;
mod next;
mod peak;
mod pinned;
mod replay;
mod replayer;
mod retrace;
mod scenario;
mod simulate;
pub mod size;
mod summary;
mod timeline;
mod tree;
mod trend;
mod watch;
mod whatif;

pub use about::About;
pub use advise::{ADVISE_SCHEMA, Advice, Advise};
pub use agreement::{Agreement, Difference};
pub use arrays::NeedsArrays;
pub use at_peak::AtPeak;
pub use cache::{CACHE_SCHEMA, Cache, CacheLine, NearMiss, NearMissKind, NotReused, SizeClass};
pub use diff::{ChangedLine, ChangedPrimitive, Comparison, DIFF_SCHEMA, Diff, Side};
pub use ended::Ended;
pub use flame::{FlameOf, StackTotal, stack_totals};
pub use growth::{GROWTH_SCHEMA, Growth, GrowthOptions, LineGrowth, LoopGrowth, MOST_BUFFERS, StepAmount};
pub use held::{Amount, By, HELD_SCHEMA, Held, HeldGroup, HeldOptions, StackLine};
pub use instant::{Instant, nanos_from_text, step_range, step_ranges};
pub use leaks::{LEAKS_SCHEMA, LeakLine, Leaks};
pub use lines::{FrameClass, UserLines};
pub use loops::Every;
pub use naming::{LineNames, module_name};
pub use next::{Suggestion, suggest};
pub use peak::{
    LineKind, LineTotal, Live, Moment, Peaks, PrimitiveCount, find_peaks, find_peaks_in, live_at, moment_at, top_lines,
};
pub use pinned::{HeldLine, PINNED_SCHEMA, Pinned, PinnedByView, Waiting, WithoutArray, WithoutArrayKind};
pub use replay::{Blocks, Counted, OverTime, REPLAY_SCHEMA, Refusal, Replay, ReplayOptions, SweepPoint, Under, When};
pub use replayer::{ReplayedAt, Replayer};
pub use retrace::{Cause, RETRACE_SCHEMA, Retrace, TracedFunction, VaryingAxis};
pub use scenario::{ScenarioOptions, device_from_text};
pub use summary::{ActionTotal, Checked, DeviceView, EventCounts, Moves, Rest, SUMMARY_SCHEMA, Summary, Written};
pub use timeline::{Column, Timeline, timeline};
pub use tree::TreeRow;
pub use trend::{Trend, Verdict};
pub use whatif::{BytesAt, Choice, WhatIf, device_choices, policy_choices};
