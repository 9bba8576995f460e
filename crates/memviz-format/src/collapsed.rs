//! Collapsed stacks: a line per stack, `main (train.py:9);step (train.py:4) 1048576`, as flamegraph.pl, inferno and
//! speedscope read them. Sorted, so equal profiles give equal bytes.

use std::io::Write;

use crate::FormatError;
use crate::profile::{Measure, Profile};

/// Writes what `measure` says of every stack, outermost frame first or, `inverted`, innermost first.
///
/// # Errors
/// `out` fails.
pub fn write(profile: &Profile<'_>, measure: Measure, inverted: bool, out: &mut dyn Write) -> Result<(), FormatError> {
    for line in lines(profile, measure, inverted) {
        writeln!(out, "{line}").map_err(FormatError::Write)?;
    }
    out.flush().map_err(FormatError::Write)
}

/// The lines of [`write()`].
pub(crate) fn lines(profile: &Profile<'_>, measure: Measure, inverted: bool) -> Vec<String> {
    let named = profile.named(measure, inverted).into_iter();
    named
        .map(|(names, value)| format!("{} {value}", names.iter().map(|name| plain(name)).collect::<Vec<_>>().join(";")))
        .collect()
}

/// Semicolons separate frames and line ends separate stacks, so names can have neither.
fn plain(name: &str) -> String {
    let change = |letter: char| match letter {
        ';' => ':',
        letter if letter.is_control() => ' ',
        letter => letter,
    };
    name.chars().map(change).collect()
}
