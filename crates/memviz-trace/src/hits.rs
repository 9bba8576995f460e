//! Hits and misses of MLX's cache: what counts as one, and the rate. The recorder counts with it while a program runs, reports
//! over a trace's events.

use crate::event::{Action, Event};

/// Allocations that the cache served, and those that came new.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hits {
    /// `AllocReuse`.
    pub hits: u64,
    /// `AllocNew`, but for a buffer whose memory moved: nobody asked for it.
    pub misses: u64,
}

impl Hits {
    /// Counts an event if it is one of the two.
    #[inline]
    pub fn note(&mut self, event: &Event) {
        match event.action {
            Action::AllocReuse => self.hits += 1,
            Action::AllocNew if !event.is_move() => self.misses += 1,
            _ => {}
        }
    }

    /// Of some events.
    pub fn of<'e>(events: impl IntoIterator<Item = &'e Event>) -> Hits {
        events.into_iter().fold(Hits::default(), |mut hits, event| {
            hits.note(event);
            hits
        })
    }

    /// Hits by allocations, from 0 to 1; `None` without allocations.
    pub fn rate(self) -> Option<f64> {
        let all = self.hits + self.misses;
        (all > 0).then(|| self.hits as f64 / all as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moves_are_no_misses() {
        let event = |action, flags| Event { action, flags, ..Event::default() };
        let events = [
            event(Action::AllocNew, 0),
            event(Action::AllocNew, Event::MOVED),
            event(Action::AllocReuse, 0),
            event(Action::FreeActiveToCache, 0),
        ];
        let hits = Hits::of(&events);
        assert_eq!((hits, hits.rate()), (Hits { hits: 1, misses: 1 }, Some(0.5)));
        assert_eq!(Hits::default().rate(), None);
    }
}
