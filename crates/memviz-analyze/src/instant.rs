//! Moments as users name them: `start`, `last`, `peak`, a time since the recording started (`1.5s`, `200ms`), a step (`12`).
//!
//! Parsing needs no trace; [`Instant::resolve`] finds the position. A step is its end: the state before the next step begins.

use std::ops::Range;
use std::str::FromStr;

use memviz_trace::{MarkKind, Trace};

use crate::peak::find_peaks;

/// A moment of a run that a user named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Instant {
    /// Before the first event.
    Start,
    /// After the last event.
    Last,
    /// When most bytes were active.
    Peak,
    /// Nanoseconds since the recording started.
    Nanos(u64),
    /// A step of the marked loop.
    Step(u64),
}

impl FromStr for Instant {
    type Err = String;

    fn from_str(text: &str) -> Result<Instant, String> {
        match text {
            "start" => return Ok(Instant::Start),
            "last" => return Ok(Instant::Last),
            "peak" => return Ok(Instant::Peak),
            _ => {}
        }
        if let Ok(step) = text.parse::<u64>() {
            return Ok(Instant::Step(step));
        }
        nanos_from_text(text).map(Instant::Nanos)
    }
}

/// Nanoseconds of "1.5s", "200ms", "2min".
///
/// # Errors
/// A sentence for the user.
pub fn nanos_from_text(text: &str) -> Result<u64, String> {
    const UNITS: [(&str, f64); 5] = [("ms", 1e6), ("us", 1e3), ("µs", 1e3), ("min", 60e9), ("s", 1e9)];
    let expected =
        || format!("{text:?} is no moment: expected start, last, peak, a step (12) or a time (1.5s, 200ms, 2min)");
    let (number, factor) =
        UNITS.iter().find_map(|(unit, factor)| Some((text.strip_suffix(unit)?, factor))).ok_or_else(expected)?;
    let is_decimal = !number.is_empty() && number.chars().all(|letter| letter.is_ascii_digit() || letter == '.');
    let nanos = number.parse::<f64>().ok().filter(|_| is_decimal).map(|number| (number * factor).round());
    nanos.filter(|nanos| *nanos < u64::MAX as f64).map(|nanos| nanos as u64).ok_or_else(expected)
}

impl Instant {
    /// Number of events of `trace` up to that moment.
    ///
    /// # Errors
    /// A sentence for the user: a step that the trace does not have, a time after its end.
    pub fn resolve(self, trace: &Trace) -> Result<usize, String> {
        match self {
            Instant::Start => Ok(0),
            Instant::Last => Ok(trace.events.len()),
            Instant::Peak => Ok(find_peaks(trace).active.after_events),
            Instant::Nanos(nanos) => Ok(trace.events.partition_point(|event| event.time_nanos <= nanos)),
            Instant::Step(step) => step_range(trace, step).map(|range| range.end),
        }
    }
}

/// Events of a step, as positions.
///
/// # Errors
/// A sentence for the user when the trace has no such step.
pub fn step_range(trace: &Trace, step: u64) -> Result<Range<usize>, String> {
    let steps = step_ranges(trace);
    if let Some((_, range)) = steps.iter().find(|(number, _)| *number == step) {
        return Ok(range.clone());
    }
    Err(match (steps.first(), steps.last()) {
        (Some((first, _)), Some((last, _))) => format!("no step {step} in the recording: it has {first} to {last}"),
        _ => format!("no step {step}: the recording has no steps; mark them by mlx_memviz.step() at the end of each"),
    })
}

/// Every marked step with its events, in order. The first begins with the trace, the last is what follows the last mark.
pub fn step_ranges(trace: &Trace) -> Vec<(u64, Range<usize>)> {
    let mut steps = Vec::new();
    let mut begin = 0;
    let mut under_way = None;
    for mark in &trace.marks {
        let MarkKind::Step(next) = mark.kind else { continue };
        let end = (mark.index.saturating_sub(trace.first_index) as usize).clamp(begin, trace.events.len());
        steps.push((under_way.unwrap_or(next.saturating_sub(1)), begin..end));
        begin = end;
        under_way = Some(next);
    }
    steps.extend(under_way.filter(|_| begin < trace.events.len()).map(|step| (step, begin..trace.events.len())));
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_read() {
        let good = [
            ("start", Instant::Start),
            ("last", Instant::Last),
            ("peak", Instant::Peak),
            ("12", Instant::Step(12)),
            ("1.5s", Instant::Nanos(1_500_000_000)),
            ("200ms", Instant::Nanos(200_000_000)),
            ("2min", Instant::Nanos(120_000_000_000)),
        ];
        for (text, expected) in good {
            assert_eq!(text.parse(), Ok(expected), "{text}");
        }
        for bad in ["", "s", "-1s", "1e9s", "end", "infs", "nans", "99999999999999999999min", "1.2.3s"] {
            assert!(bad.parse::<Instant>().is_err(), "{bad}");
        }
    }
}
