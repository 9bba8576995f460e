//! Sizes, as users type and read them. `KiB`, `MiB`, `GiB`, `TiB` are powers of 1024; so are bare `K`, `M`, `G`, `T`; `KB`,
//! `MB`, `GB`, `TB` are powers of 1000.

/// Bytes of "4096", "4KiB", "1.5 GB".
///
/// # Errors
/// A sentence for the user, without the text itself.
pub fn bytes_from_text(text: &str) -> Result<u64, String> {
    let text = text.trim();
    let unit_at = text.find(|letter: char| letter.is_ascii_alphabetic()).unwrap_or(text.len());
    let (number, unit) = (text[..unit_at].trim_end().replace('_', ""), &text[unit_at..]);
    let factor = factor_of(unit).ok_or_else(|| format!("no unit {unit:?}; expected B, KiB, MiB, GiB, KB, MB or GB"))?;
    if let Ok(whole) = number.parse::<u64>() {
        return whole.checked_mul(factor).ok_or_else(|| "more than 2^64 bytes".to_owned());
    }
    let is_decimal = !number.is_empty() && number.chars().all(|letter| letter.is_ascii_digit() || letter == '.');
    let bytes = number.parse::<f64>().ok().filter(|_| is_decimal).map(|number| (number * factor as f64).round());
    match bytes {
        Some(bytes) if bytes < u64::MAX as f64 => Ok(bytes as u64),
        Some(_) => Err("more than 2^64 bytes".to_owned()),
        None => Err("expected a number with an optional unit, such as 4096 or 4KiB".to_owned()),
    }
}

fn factor_of(unit: &str) -> Option<u64> {
    let unit = unit.to_ascii_lowercase();
    let (base, power) = match unit.as_str() {
        "" | "b" => return Some(1),
        "kb" | "mb" | "gb" | "tb" => (1000_u64, &unit[..1]),
        "k" | "m" | "g" | "t" | "kib" | "mib" | "gib" | "tib" => (1024, &unit[..1]),
        _ => return None,
    };
    Some(base.pow(1 + "kmgt".find(power)? as u32))
}

/// "412.3 MiB": four digits at most, so that columns stay narrow.
pub fn text_from_bytes(bytes: u64) -> String {
    let mut value = bytes as f64;
    let mut units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"].iter();
    let mut unit = units.next().unwrap_or(&"B");
    // 1023.95 would print as 1024.0.
    while value >= 1023.95 {
        let Some(next) = units.next() else { break };
        value /= 1024.0;
        unit = next;
    }
    if *unit == "B" { format!("{bytes} B") } else { format!("{value:.1} {unit}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read() {
        let good = [
            ("0", 0),
            ("4096", 4096),
            ("1_000", 1000),
            ("4KiB", 4096),
            ("4k", 4096),
            (" 4 kib ", 4096),
            ("1MB", 1_000_000),
            ("1.5MiB", 1_572_864),
            ("2G", 2 << 30),
            ("12B", 12),
            ("1TB", 1_000_000_000_000),
            ("18446744073709551615", u64::MAX),
        ];
        for (text, bytes) in good {
            assert_eq!(bytes_from_text(text), Ok(bytes), "{text}");
        }
        for bad in ["", "KiB", "-1", "1e3", "4 pages", "nan", "inf", "1.2.3", "99999999999T", "1,5M"] {
            assert!(bytes_from_text(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn sizes_are_written() {
        let cases = [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1.0 KiB"),
            (1_048_575, "1.0 MiB"),
            (1_047_000, "1022.5 KiB"),
            (432_222_208, "412.2 MiB"),
            (u64::MAX, "16.0 EiB"),
        ];
        for (bytes, text) in cases {
            assert_eq!(text_from_bytes(bytes), text);
        }
    }
}
