//! speedscope's own JSON (`www.speedscope.app/file-format-schema.json`): one sampled profile for each thing shown.
//!
//! A weight is bytes (unit "bytes") or buffers (unit "none"); the order of samples means nothing. Frames have file and line,
//! so speedscope can open them in an editor.

use std::io::Write;

use memviz_trace::FrameId;
use rustc_hash::FxHashMap;
use serde::Serialize;

use crate::FormatError;
use crate::profile::{Measure, Profile};

const SCHEMA: &str = "https://www.speedscope.app/file-format-schema.json";

#[derive(Serialize)]
struct File<'a> {
    #[serde(rename = "$schema")]
    schema: &'static str,
    name: &'a str,
    exporter: &'static str,
    #[serde(rename = "activeProfileIndex")]
    active: usize,
    shared: Shared,
    profiles: Vec<Sampled>,
}

#[derive(Serialize)]
struct Shared {
    frames: Vec<Frame>,
}

#[derive(Clone, PartialEq, Eq, Hash, Serialize)]
struct Frame {
    name: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    file: String,
    #[serde(skip_serializing_if = "is_zero")]
    line: u32,
}

fn is_zero(line: &u32) -> bool {
    *line == 0
}

#[derive(Serialize)]
struct Sampled {
    #[serde(rename = "type")]
    kind: &'static str,
    name: String,
    unit: &'static str,
    #[serde(rename = "startValue")]
    start_value: u64,
    #[serde(rename = "endValue")]
    end_value: u64,
    samples: Vec<Vec<usize>>,
    weights: Vec<u64>,
}

/// Writes the profiles, which belong to one trace, as one file. The first is shown first.
///
/// # Errors
/// `out` fails.
pub fn write(
    name: &str,
    profiles: &[(&Profile<'_>, Measure)],
    inverted: bool,
    out: &mut dyn Write,
) -> Result<(), FormatError> {
    let mut frames = Frames::default();
    let sampled = profiles.iter().map(|(profile, measure)| frames.sampled(profile, *measure, inverted)).collect();
    let exporter = concat!("mlx-memviz ", env!("CARGO_PKG_VERSION"));
    let shared = Shared { frames: frames.all };
    let file = File { schema: SCHEMA, name, exporter, active: 0, shared, profiles: sampled };
    serde_json::to_writer(&mut *out, &file).map_err(|error| FormatError::Write(error.into()))?;
    out.flush().map_err(FormatError::Write)
}

#[derive(Default)]
struct Frames {
    all: Vec<Frame>,
    ids: FxHashMap<Frame, usize>,
}

impl Frames {
    fn sampled(&mut self, profile: &Profile<'_>, measure: Measure, inverted: bool) -> Sampled {
        let sums: Vec<_> = profile.sums.iter().filter(|sum| measure.of(sum) > 0).collect();
        let stack = |sum: &&crate::profile::StackSum| {
            let mut ids: Vec<usize> = sum.frames.iter().map(|frame| self.frame(profile, *frame)).collect();
            if ids.is_empty() {
                ids.push(self.id(Frame { name: sum.label.to_owned(), file: String::new(), line: 0 }));
            }
            if inverted {
                ids.reverse();
            }
            ids
        };
        Sampled {
            kind: "sampled",
            name: format!("{} ({})", profile.title, measure.name()),
            unit: if measure == Measure::Bytes { "bytes" } else { "none" },
            start_value: 0,
            end_value: profile.total(measure),
            samples: sums.iter().map(stack).collect(),
            weights: sums.iter().map(|sum| measure.of(sum)).collect(),
        }
    }

    fn frame(&mut self, profile: &Profile<'_>, id: FrameId) -> usize {
        let frame = profile.trace.stacks.frame(id);
        let file = profile.trace.strings.get(frame.file).to_owned();
        self.id(Frame { name: profile.frame_name(id), file, line: frame.line })
    }

    fn id(&mut self, frame: Frame) -> usize {
        let next = self.all.len();
        let id = *self.ids.entry(frame.clone()).or_insert(next);
        if id == next {
            self.all.push(frame);
        }
        id
    }
}
