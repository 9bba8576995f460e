//! Which question to ask next about a run, and why.

use memviz_trace::Trace;
use serde::Serialize;

use crate::growth::{Growth, GrowthOptions};
use crate::held::{Held, HeldOptions};
use crate::size::text_from_bytes;
use crate::summary::Summary;
use crate::trend::Verdict;

/// Temporaries of one evaluation from this share of the peak on are worth a look.
const TEMPORARY_SHARE: f64 = 0.5;
/// What is left at the end from this share of the peak on is worth a look.
const LEFT_SHARE: f64 = 0.25;

/// A command and the reason for it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Suggestion {
    /// Subcommand of `memviz`, with its flags.
    pub command: &'static str,
    /// What it would explain.
    pub because: String,
}

/// The most telling first.
pub fn suggest(trace: &Trace, summary: &Summary) -> Vec<Suggestion> {
    let found = [growth(trace), temporaries(trace), left(summary)];
    found.into_iter().flatten().collect()
}

fn growth(trace: &Trace) -> Option<Suggestion> {
    let growth = Growth::new(trace, GrowthOptions { top: 1, ..GrowthOptions::default() }).ok()?;
    let main = growth.main_loop().filter(|main| main.verdict == Verdict::Grows && main.every != "time")?;
    let because = if main.bytes.verdict == Verdict::Grows {
        format!("active memory grows {} a step", text_from_bytes(main.bytes.slope.abs().round() as u64))
    } else {
        format!("{:.1} more buffers stay alive each step", main.buffers.slope)
    };
    Some(Suggestion { command: "growth", because })
}

fn temporaries(trace: &Trace) -> Option<Suggestion> {
    let held = Held::new(trace, HeldOptions::default()).ok()?;
    let share = held.temporary.bytes as f64 / held.total.bytes.max(1) as f64;
    let (temporary, total) = (text_from_bytes(held.temporary.bytes), text_from_bytes(held.total.bytes));
    let because = format!("{temporary} of {total} are temporaries of one evaluation");
    (share >= TEMPORARY_SHARE).then_some(Suggestion { command: "peak", because })
}

fn left(summary: &Summary) -> Option<Suggestion> {
    let (end, peak) = (summary.end.active_bytes, summary.peak_active.active_bytes);
    let because = format!("{} are still active at the end", text_from_bytes(end));
    (end as f64 >= LEFT_SHARE * peak as f64 && end > 0).then_some(Suggestion { command: "leaks", because })
}
