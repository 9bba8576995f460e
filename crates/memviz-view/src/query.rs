//! Parameters of a request: decoded, known, each given once, and within bounds.

use std::str::FromStr;

use crate::answer::Refusal;

/// Most columns or rows of a picture: more than any screen has.
const MOST_PIXELS: usize = 16_384;
/// Most words of a request, so that a long one costs nothing.
const MOST_WORDS: usize = 64;

/// The parameters of one request.
#[derive(Debug)]
pub(crate) struct Query {
    words: Vec<(String, String)>,
}

impl Query {
    /// Decodes `a=1&b=x%20y`; refuses names that `known` doesn't have and, unless in `many`, names given twice.
    pub(crate) fn new(text: &str, known: &[&str], many: &[&str]) -> Result<Query, Refusal> {
        let mut words: Vec<(String, String)> = Vec::new();
        for word in text.split('&').filter(|word| !word.is_empty()) {
            let (name, value) = word.split_once('=').unwrap_or((word, ""));
            let (name, value) = (decoded(name)?, decoded(value)?);
            if !known.contains(&name.as_str()) {
                let expected = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
                return Err(Refusal::bad(format!("unknown parameter {name:?}, expected {expected}: leave it out")));
            }
            if !many.contains(&name.as_str()) && words.iter().any(|(other, _)| *other == name) {
                return Err(Refusal::bad(format!("parameter {name:?} is there twice, expected once: leave one out")));
            }
            words.push((name, value));
            if words.len() > MOST_WORDS {
                return Err(Refusal::bad(format!("more than {MOST_WORDS} parameters: ask for less at once")));
            }
        }
        Ok(Query { words })
    }

    /// The value of `name`, if it is given.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.words.iter().find(|(other, _)| other == name).map(|(_, value)| value.as_str())
    }

    /// The value of `name`; an empty one counts as not given.
    pub(crate) fn filled(&self, name: &str) -> Option<&str> {
        self.get(name).filter(|value| !value.is_empty())
    }

    /// Every value of `name`, in order.
    pub(crate) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.words.iter().filter(move |(other, _)| other == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn need(&self, name: &str) -> Result<&str, Refusal> {
        self.get(name).ok_or_else(|| Refusal::bad(format!("parameter {name:?} is missing: add {name}=")))
    }

    /// A whole number.
    pub(crate) fn whole(&self, name: &str) -> Result<usize, Refusal> {
        parsed(name, self.need(name)?, "a whole number from 0")
    }

    /// A whole number that may be left out.
    pub(crate) fn maybe_whole(&self, name: &str) -> Result<Option<usize>, Refusal> {
        self.filled(name).map(|value| parsed(name, value, "a whole number from 0")).transpose()
    }

    /// Bytes that may be left out.
    pub(crate) fn maybe_bytes(&self, name: &str) -> Result<Option<u64>, Refusal> {
        self.filled(name).map(|value| parsed(name, value, "a number of bytes")).transpose()
    }

    /// A finite number.
    pub(crate) fn real(&self, name: &str) -> Result<f64, Refusal> {
        let value = self.need(name)?;
        let number: f64 = parsed(name, value, "a number")?;
        number.is_finite().then_some(number).ok_or_else(|| wrong(name, value, "a finite number"))
    }

    /// A number of columns or rows.
    pub(crate) fn pixels(&self, name: &str) -> Result<usize, Refusal> {
        let pixels = self.whole(name)?;
        let expected = || wrong(name, &pixels.to_string(), &format!("1 to {MOST_PIXELS}"));
        (1..=MOST_PIXELS).contains(&pixels).then_some(pixels).ok_or_else(expected)
    }

    /// Two numbers of which the first is less.
    pub(crate) fn span(&self, from: &str, to: &str) -> Result<(f64, f64), Refusal> {
        let (low, high) = (self.real(from)?, self.real(to)?);
        let is_span = low < high && (high - low).is_finite();
        is_span.then_some((low, high)).ok_or_else(|| wrong(to, self.get(to).unwrap_or(""), &format!("more than {low}")))
    }
}

fn parsed<T: FromStr>(name: &str, value: &str, expected: &str) -> Result<T, Refusal> {
    value.parse().map_err(|_| wrong(name, value, expected))
}

/// A value that a parameter can't have.
pub(crate) fn wrong(name: &str, value: &str, expected: &str) -> Refusal {
    Refusal::bad(format!("parameter {name:?} is {value:?}, expected {expected}"))
}

/// Undoes percent-encoding and `+`.
fn decoded(text: &str) -> Result<String, Refusal> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'+' => b' ',
            b'%' => {
                let digit = |byte: Option<u8>| byte.and_then(|byte| char::from(byte).to_digit(16));
                let (high, low) = (digit(rest.next()), digit(rest.next()));
                let code = high.zip(low).and_then(|(high, low)| u8::try_from(high * 16 + low).ok());
                code.ok_or_else(|| Refusal::bad(format!("{text:?} ends within a %XX: write % as %25")))?
            }
            byte => byte,
        });
    }
    String::from_utf8(bytes).map_err(|_| Refusal::bad(format!("{text:?} is not UTF-8: encode it as UTF-8")))
}

/// Encodes a value as `encodeURIComponent` does.
pub(crate) fn encoded(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.!~*'()".contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_decoded_and_bounded() {
        let query = Query::new(
            "text=a%20%C3%A4%26&from=-1.5e3&to=2&r=7&columns=0",
            &["text", "from", "to", "r", "columns"],
            &[],
        );
        let query = query.unwrap();
        assert_eq!(query.get("text"), Some("a ä&"));
        assert_eq!(query.span("from", "to"), Ok((-1500.0, 2.0)));
        assert_eq!(query.whole("r"), Ok(7));
        assert!(query.pixels("columns").unwrap_err().error.contains("1 to 16384"));
        assert_eq!(decoded(&encoded("a b/ä?&=%")), Ok("a b/ä?&=%".to_owned()));
    }

    #[test]
    fn what_is_not_expected_is_refused() {
        for text in ["b=1", "a=1&a=2", "a=%", "a=%g0", "a=%ff"] {
            assert_eq!(Query::new(text, &["a"], &[]).unwrap_err().status, 400, "{text}");
        }
        assert!(Query::new("a=1&a=2", &["a"], &["a"]).is_ok());
        let query = Query::new("a=nan&b=inf&c=-1", &["a", "b", "c"], &[]).unwrap();
        assert!(query.real("a").is_err() && query.real("b").is_err() && query.whole("c").is_err());
    }
}
