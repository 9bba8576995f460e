//! What was alive at the highest moments of a replay, by line of the program.
//!
//! A buffer counts with the bytes that were asked for, which no policy changes; what the policy adds to them is a row of its
//! own. `moment.active_bytes == Σ groups + rest + added_bytes`; a buffer that the policy refused is in none of them.

use memviz_trace::{Buffer, Trace};
use serde::Serialize;

use crate::calls::{CallKind, Calls};
use crate::groups::Groups;
use crate::held::{By, HeldGroup};
use crate::peak::Moment;
use crate::summary::Rest;

/// Rows.
const TOP: usize = 5;

/// What was alive at a moment of a replay.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct AtPeak {
    /// When.
    pub moment: Moment,
    /// Largest first; buffers that are not known one by one are a row too.
    pub groups: Vec<HeldGroup>,
    /// What `groups` leaves out.
    pub rest: Rest,
    /// What the policy adds to the bytes that were asked for: rounding, larger blocks, failed requests that stay counted.
    pub added_bytes: u64,
}

impl AtPeak {
    /// At `moment`; `refused` has the events up to each allocation that was refused.
    pub(crate) fn of(trace: &Trace, calls: &Calls, refused: &[u32], moment: Moment) -> AtPeak {
        let live = live(trace, calls, refused, moment.after_events);
        let asked: u64 = live.buffers.iter().fold(live.base, |sum, buffer| sum.saturating_add(buffer.size));
        let mut groups = Groups::new(trace, By::Line, &live.buffers);
        live.buffers.iter().for_each(|buffer| groups.add(buffer, false));
        let (groups, rest) = groups.finish(live.base, TOP);
        AtPeak { moment, groups, rest, added_bytes: moment.active_bytes.saturating_sub(asked) }
    }
}

/// Buffers with the bytes asked for, and bytes without one.
struct Live {
    buffers: Vec<Buffer>,
    base: u64,
}

fn live(trace: &Trace, calls: &Calls, refused: &[u32], after_events: usize) -> Live {
    let mut refused = refused.iter().copied().peekable();
    let mut slots: Vec<Option<Buffer>> = vec![None; calls.slots as usize];
    for (start, buffer) in calls.start.iter().zip(&trace.start).filter(|(start, _)| !start.is_cached) {
        slots[start.slot as usize] = Some(Buffer { size: start.requested, ..*buffer });
    }
    let mut base = calls.base;
    for call in calls.calls.iter().take_while(|call| call.after_events as usize <= after_events) {
        match call.kind {
            CallKind::Malloc | CallKind::Wrap => {
                let event = (call.after_events as usize).checked_sub(1).and_then(|at| trace.events.get(at));
                let is_refused = refused.next_if_eq(&call.after_events).is_some();
                let made = event.filter(|_| !is_refused && call.bytes > 0).map(Buffer::from_alloc);
                slots[call.slot as usize] = made.map(|buffer| Buffer { size: call.bytes, ..buffer });
            }
            CallKind::Free => slots[call.slot as usize] = None,
            CallKind::Failed => _ = refused.next_if_eq(&call.after_events),
            CallKind::Base => base = base.saturating_add_signed(call.bytes as i64),
            _ => {}
        }
    }
    Live { buffers: slots.into_iter().flatten().collect(), base }
}
