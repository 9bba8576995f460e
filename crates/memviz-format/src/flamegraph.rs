//! Flame graphs as SVG, drawn by `inferno`: zoom and search work in any browser, without a network.

use std::io::Write;

use inferno::flamegraph::{Options, color};

use crate::FormatError;
use crate::collapsed;
use crate::profile::{Measure, Profile};

/// Draws `profile`; `inverted` grows from the innermost frames.
///
/// # Errors
/// `out` fails.
pub fn write(profile: &Profile<'_>, measure: Measure, inverted: bool, out: &mut dyn Write) -> Result<(), FormatError> {
    let mut options = Options::default();
    options.title = profile.title.clone();
    options.count_name = measure.name().to_owned();
    options.colors = color::Palette::Basic(color::BasicPalette::Mem);
    // Equal profiles give equal bytes, and a function has the same colour in two graphs.
    options.hash = true;
    options.reverse_stack_order = false;
    let mut lines = collapsed::lines(profile, measure, inverted);
    if lines.is_empty() {
        // inferno refuses to draw nothing.
        lines.push("nothing 1".to_owned());
    }
    inferno::flamegraph::from_lines(&mut options, lines.iter().map(String::as_str), &mut *out)
        .map_err(|error| FormatError::Write(std::io::Error::other(error)))?;
    out.flush().map_err(FormatError::Write)
}
