//! Numbers as people read them.

/// "1,204,331".
pub(crate) fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.char_indices() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// "85 µs", "204 ms", "1.204 s", "2 min 03 s", "1 h 02 min".
pub(crate) fn duration(nanos: u64) -> String {
    let secs = nanos / 1_000_000_000;
    match nanos {
        0 => "0 s".to_owned(),
        1..1_000_000 => format!("{} µs", nanos / 1000),
        1_000_000..1_000_000_000 => format!("{} ms", nanos / 1_000_000),
        _ if secs < 60 => format!("{secs}.{:03} s", nanos / 1_000_000 % 1000),
        _ if secs < 3600 => format!("{} min {:02} s", secs / 60, secs % 60),
        _ => format!("{} h {:02} min", secs / 3600, secs / 60 % 60),
    }
}

/// "97.3%". Never "100.0%" for less than all, nor "0.0%" for more than nothing.
pub(crate) fn percent(share: f64) -> String {
    let tenths = (share * 1000.0).round();
    if share < 1.0 && tenths >= 1000.0 {
        ">99.9%".to_owned()
    } else if share > 0.0 && tenths < 1.0 {
        "<0.1%".to_owned()
    } else {
        format!("{:.1}%", tenths / 10.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_well() {
        assert_eq!([0, 999, 1000, 1_204_331].map(thousands), ["0", "999", "1,000", "1,204,331"]);
        let nanos = [0, 85_200, 204_000_000, 1_204_900_000, 123_000_000_000, 3_725_000_000_000];
        assert_eq!(nanos.map(duration), ["0 s", "85 µs", "204 ms", "1.204 s", "2 min 03 s", "1 h 02 min"]);
        let shares = [0.0, 0.00001, 0.5, 0.9731, 0.99999, 1.0];
        assert_eq!(shares.map(percent), ["0.0%", "<0.1%", "50.0%", "97.3%", ">99.9%", "100.0%"]);
    }
}
