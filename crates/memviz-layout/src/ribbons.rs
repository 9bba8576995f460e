//! Spans in lanes, clipped to a window; those below a pixel are joined.
//!
//! The lanes of one kind are limited in number; the spans of all further ones share the last.

use rustc_hash::FxHashMap;

use crate::types::{Bands, Lane, Window};

/// Most lanes of a kind.
const MOST_LANES: usize = 64;

pub(crate) struct Ribbons {
    from: f64,
    to: f64,
    pixel: f64,
    /// Lanes by kind and number within it.
    lane_ids: FxHashMap<(&'static str, u64), usize>,
    lanes: Vec<Ribbon>,
    label_ids: FxHashMap<String, u32>,
    labels: Vec<String>,
}

struct Ribbon {
    lane: Lane,
    spans: Vec<Span>,
}

#[derive(Clone, Copy)]
struct Span {
    from: f64,
    to: f64,
    label: u32,
    count: u32,
}

impl Ribbons {
    pub(crate) fn new(window: &Window) -> Ribbons {
        Ribbons {
            from: window.from,
            to: window.to,
            pixel: (window.to - window.from) / window.columns as f64,
            lane_ids: FxHashMap::default(),
            lanes: Vec::new(),
            label_ids: FxHashMap::default(),
            labels: Vec::new(),
        }
    }

    /// Adds a span to the lane `id` of its kind, in order of time within a lane.
    pub(crate) fn add(
        &mut self,
        kind: &'static str,
        id: u64,
        name: impl Fn() -> String,
        (from, to): (f64, f64),
        label: impl Fn() -> String,
    ) {
        if to < self.from || from > self.to {
            return;
        }
        let pixel = self.pixel;
        let lane = self.lane(kind, id, name);
        let last = self.lanes[lane].spans.last_mut();
        let near = last.filter(|last| {
            to - from < pixel && last.to - last.from < pixel && to - last.from < pixel && from >= last.from
        });
        if let Some(last) = near {
            last.to = last.to.max(to);
            last.count = last.count.saturating_add(1);
            return;
        }
        let label = self.label(label());
        self.lanes[lane].spans.push(Span { from, to, label, count: 1 });
    }

    fn lane(&mut self, kind: &'static str, id: u64, name: impl Fn() -> String) -> usize {
        if let Some(lane) = self.lane_ids.get(&(kind, id)) {
            return *lane;
        }
        let of_kind = self.lanes.iter().filter(|ribbon| ribbon.lane.kind == kind).count();
        let (id, name) = if of_kind + 1 >= MOST_LANES { (u64::MAX, "others".to_owned()) } else { (id, name()) };
        if let Some(lane) = self.lane_ids.get(&(kind, id)) {
            return *lane;
        }
        self.lanes.push(Ribbon { lane: Lane { kind, name }, spans: Vec::new() });
        self.lane_ids.insert((kind, id), self.lanes.len() - 1);
        self.lanes.len() - 1
    }

    fn label(&mut self, text: String) -> u32 {
        let next = self.labels.len() as u32;
        let id = *self.label_ids.entry(text.clone()).or_insert(next);
        if id == next {
            self.labels.push(text);
        }
        id
    }

    /// Puts lanes, labels and spans in their place.
    pub(crate) fn write(self, bands: &mut Bands) {
        bands.labels = self.labels;
        for (lane, ribbon) in self.lanes.into_iter().enumerate() {
            bands.lanes.push(ribbon.lane);
            for span in ribbon.spans {
                bands.span_lane.push(lane as u32);
                bands.span_label.push(span.label);
                bands.span_from.push(span.from.max(self.from));
                bands.span_to.push(span.to.min(self.to));
                bands.span_count.push(span.count);
            }
        }
    }
}
