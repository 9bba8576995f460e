//! Which moment a user means: "peak", "last", a step, a time.
//!
//! A step stands for its highest moment, a time for the state after the last event up to it.

use memviz_trace::Trace;

use crate::peak::{find_peaks, start_of};

/// A moment as users name it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum When {
    /// Most active bytes.
    #[default]
    Peak,
    /// After the last event.
    Last,
    /// Most active bytes within a step.
    Step(u64),
    /// Nanoseconds since the recording started.
    Nanos(u64),
}

impl std::str::FromStr for When {
    type Err = String;

    /// "peak", "last", "12" (a step), "12s", "1.5s", "300ms", "2m".
    fn from_str(text: &str) -> Result<When, String> {
        let text = text.trim();
        match text {
            "peak" => return Ok(When::Peak),
            "last" => return Ok(When::Last),
            _ => {}
        }
        if let Ok(step) = text.parse() {
            return Ok(When::Step(step));
        }
        let nanos = nanos_from_text(text);
        nanos
            .map(When::Nanos)
            .ok_or_else(|| "expected peak, last, a step such as 12, or a time such as 1.5s".to_owned())
    }
}

fn nanos_from_text(text: &str) -> Option<u64> {
    let unit_at = text.find(|letter: char| letter.is_ascii_alphabetic())?;
    let (number, unit) = text.split_at(unit_at);
    let factor = match unit {
        "us" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        "m" | "min" => 60e9,
        _ => return None,
    };
    let is_decimal = !number.is_empty() && number.chars().all(|letter| letter.is_ascii_digit() || letter == '.');
    let nanos = number.parse::<f64>().ok().filter(|_| is_decimal)? * factor;
    (nanos < u64::MAX as f64).then_some(nanos.round() as u64)
}

impl When {
    /// How many events of `trace` happened up to the moment.
    ///
    /// # Errors
    /// A sentence for the user: the trace has no such step.
    pub fn after_events(self, trace: &Trace) -> Result<usize, String> {
        match self {
            When::Peak => Ok(find_peaks(trace).active.after_events),
            When::Last => Ok(trace.events.len()),
            When::Nanos(nanos) => Ok(trace.events.partition_point(|event| event.time_nanos <= nanos)),
            When::Step(step) => highest_of_step(trace, step).ok_or_else(|| no_step(trace, step)),
        }
    }
}

fn highest_of_step(trace: &Trace, step: u64) -> Option<usize> {
    let mut ledger = start_of(trace);
    let mut marks = trace.mark_cursor();
    let mut highest = None;
    for (position, event) in trace.events.iter().enumerate() {
        marks.advance_to(trace.first_index + position as u64);
        let _skipped_like_everywhere = ledger.apply(event);
        let active = ledger.totals().active;
        if marks.step() == Some(step) && highest.is_none_or(|(most, _)| active > most) {
            highest = Some((active, position + 1));
        }
    }
    highest.map(|(_, after_events)| after_events)
}

fn no_step(trace: &Trace, step: u64) -> String {
    let mut marks = trace.mark_cursor();
    marks.advance_to(trace.first_index);
    let first = marks.step();
    marks.advance_to(u64::MAX);
    match (first, marks.step()) {
        (Some(first), Some(last)) => format!("no event in step {step}; the recording has steps {first} to {last}"),
        _ => format!("no step {step}: the recording has no steps; mark them with mlx_memviz.step()"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use memviz_trace::{Action, Event, Mark, MarkKind, ThreadId, TraceBuilder};

    #[test]
    fn moments_are_read() {
        let good = [
            ("peak", When::Peak),
            ("last", When::Last),
            ("12", When::Step(12)),
            ("12s", When::Nanos(12_000_000_000)),
            ("1.5ms", When::Nanos(1_500_000)),
            ("2m", When::Nanos(120_000_000_000)),
        ];
        for (text, when) in good {
            assert_eq!(text.parse(), Ok(when), "{text}");
        }
        for bad in ["", "s", "-1", "1.5", "1e3s", "5 parsecs", "99999999999999m"] {
            assert!(bad.parse::<When>().is_err(), "{bad}");
        }
    }

    #[test]
    fn moments_are_found() {
        let mut builder = TraceBuilder::default();
        for (at, (action, addr)) in
            [(Action::AllocNew, 1), (Action::AllocNew, 2), (Action::FreeActiveToOs, 1), (Action::FreeActiveToOs, 2)]
                .into_iter()
                .enumerate()
        {
            builder.push(Event { action, addr, size: 8, time_nanos: at as u64 * 10, ..Event::default() });
        }
        builder.trace.marks = vec![Mark { index: 2, time_nanos: 15, thread: ThreadId(0), kind: MarkKind::Step(1) }];
        let trace = builder.finish();
        let at = |when: When| when.after_events(&trace);
        assert_eq!(
            (at(When::Peak), at(When::Last), at(When::Nanos(10)), at(When::Nanos(9))),
            (Ok(2), Ok(4), Ok(2), Ok(1))
        );
        assert_eq!((at(When::Step(0)), at(When::Step(1))), (Ok(2), Ok(3)));
        assert!(at(When::Step(2)).unwrap_err().contains("steps 0 to 1"));
    }
}
