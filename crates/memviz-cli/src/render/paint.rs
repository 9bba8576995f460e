//! Colours, and the columns that text takes.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// What a piece of text is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Style {
    Plain,
    Bold,
    Dim,
    Accent,
    Good,
    Warn,
    Bad,
}

/// Colours text, or leaves it alone.
#[derive(Clone, Copy, Debug)]
pub(super) struct Paint {
    pub(super) color: bool,
}

impl Paint {
    pub(super) fn apply(self, style: Style, text: &str) -> String {
        let code = match style {
            Style::Plain => return text.to_owned(),
            _ if !self.color || text.is_empty() => return text.to_owned(),
            Style::Bold => "1",
            Style::Dim => "2",
            Style::Accent => "1;36",
            Style::Good => "32",
            Style::Warn => "33",
            Style::Bad => "1;31",
        };
        format!("\x1b[{code}m{text}\x1b[0m")
    }
}

/// `text` without control characters: names and paths of a recording must not steer the terminal.
pub(crate) fn clean(text: &str) -> String {
    text.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect()
}

/// Columns that `text` takes.
pub(super) fn columns_of(text: &str) -> usize {
    text.width()
}

/// `text` in at most `columns`, its end cut.
pub(super) fn cut_end(text: &str, columns: usize) -> String {
    if columns_of(text) <= columns {
        return text.to_owned();
    }
    let room = columns.saturating_sub(1);
    format!("{}…", &text[..prefix_len(text.char_indices(), room)])
}

/// `text` in at most `columns`, its start cut.
pub(super) fn cut_start(text: &str, columns: usize) -> String {
    if columns_of(text) <= columns {
        return text.to_owned();
    }
    let backwards = text.chars().rev().scan(0, |at, letter| {
        *at += letter.len_utf8();
        Some((*at - letter.len_utf8(), letter))
    });
    let kept = prefix_len(backwards, columns.saturating_sub(1));
    format!("…{}", &text[text.len() - kept..])
}

/// Bytes of the longest run of letters that fits.
fn prefix_len(letters: impl Iterator<Item = (usize, char)>, columns: usize) -> usize {
    let mut used = 0;
    let mut end = 0;
    for (at, letter) in letters {
        used += letter.width().unwrap_or(0);
        if used > columns {
            break;
        }
        end = at + letter.len_utf8();
    }
    end
}

/// `text` and blanks up to `columns`.
pub(super) fn padded(text: &str, columns: usize) -> String {
    format!("{text}{:1$}", "", columns.saturating_sub(columns_of(text)))
}

/// `text` that [`wrap`] keeps on one line: "48.0 MiB".
pub(crate) fn glued(text: &str) -> String {
    text.replace(' ', NO_BREAK)
}

const NO_BREAK: &str = "\u{a0}";

/// `text` broken at spaces; a word longer than a line stays whole. At least one line.
pub(super) fn wrap(text: &str, columns: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        let last = lines.len() - 1;
        let line = &mut lines[last];
        if line.is_empty() {
            line.push_str(word);
        } else if columns_of(line) + 1 + columns_of(word) <= columns {
            line.push(' ');
            line.push_str(word);
        } else {
            lines.push(word.to_owned());
        }
    }
    lines.into_iter().map(|line| line.replace(NO_BREAK, " ")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_cut_to_columns() {
        assert_eq!(cut_end("größe=1", 5), "größ…");
        assert_eq!(cut_start("größe=1", 4), "…e=1");
        assert_eq!(cut_end("模型训练", 5), "模型…");
        assert_eq!(cut_start("模型训练", 4), "…练");
        assert_eq!(cut_end("abc", 3), "abc");
        assert_eq!(padded("模", 4), "模  ");
        assert_eq!(wrap("a bb ccc", 4), ["a bb", "ccc"]);
        assert_eq!(wrap("", 4), [""]);
        assert_eq!(wrap(&format!("a {} d", glued("b c")), 3), ["a", "b c", "d"]);
        assert_eq!(clean("a\x1b[2Jb\nc"), "a [2Jb c");
    }
}
