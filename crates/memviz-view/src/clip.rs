//! Bounds of what an answer says: numbers that JavaScript holds exactly, and texts that a page can show.
//!
//! A recording is hostile input. Its sizes may be 2^64, its names megabytes long; neither may leave this crate as it is.

use std::borrow::Cow;

use serde_json::Value;

/// The largest integer of JavaScript that is exact, 2^53 - 1.
pub(crate) const MOST: u64 = (1 << 53) - 1;
/// Most characters of a text.
pub(crate) const MOST_CHARS: usize = 500;

/// A number that JavaScript holds exactly.
pub(crate) fn number(value: u64) -> u64 {
    value.min(MOST)
}

/// The same in an array of doubles.
pub(crate) fn float(value: u64) -> f64 {
    number(value) as f64
}

/// A number of things.
pub(crate) fn count(value: usize) -> u64 {
    number(value as u64)
}

/// A number of things in an array of u32.
pub(crate) fn short(value: usize) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}

/// `text`, cut with "…" when it is longer than a page shows.
pub(crate) fn text(text: &str) -> Cow<'_, str> {
    match text.char_indices().nth(MOST_CHARS) {
        None => Cow::Borrowed(text),
        Some((at, _)) => Cow::Owned(format!("{}…", &text[..at])),
    }
}

/// The same of a text that is kept.
pub(crate) fn owned(text: impl Into<String>) -> String {
    let whole = text.into();
    match self::text(&whole) {
        Cow::Borrowed(_) => whole,
        Cow::Owned(cut) => cut,
    }
}

/// JSON of a report within the bounds; the text itself when it is already.
pub(crate) fn json(text: String) -> String {
    let Ok(mut value) = serde_json::from_str::<Value>(&text) else { return text };
    if bound(&mut value) { value.to_string() } else { text }
}

/// Brings `value` within the bounds; true when something was out of them.
fn bound(value: &mut Value) -> bool {
    match value {
        Value::Number(number) => {
            let is_out = number.as_u64().is_some_and(|number| number > MOST);
            if is_out {
                *value = MOST.into();
            }
            is_out
        }
        Value::String(whole) => {
            let cut = match self::text(whole) {
                Cow::Owned(cut) => cut,
                Cow::Borrowed(_) => return false,
            };
            *whole = cut;
            true
        }
        Value::Array(items) => items.iter_mut().fold(false, |is_out, item| bound(item) | is_out),
        Value::Object(fields) => fields.values_mut().fold(false, |is_out, field| bound(field) | is_out),
        Value::Null | Value::Bool(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fits_stays_and_the_rest_is_cut() {
        let fits = "ä".repeat(MOST_CHARS);
        assert_eq!(text(&fits), fits);
        assert_eq!(text(&format!("{fits}b")), format!("{fits}…"));
        let report = r#"{"b": 1, "a": [9007199254740991]}"#;
        assert_eq!(json(report.to_owned()), report);
        assert_eq!(json(r#"{"a":[18446744073709551615]}"#.to_owned()), r#"{"a":[9007199254740991]}"#);
        assert_eq!(json(format!(r#"{{"a":"{fits}b"}}"#)), format!(r#"{{"a":"{fits}…"}}"#));
    }
}
