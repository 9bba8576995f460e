//! A chart as SVG: two curves over one axis, a share (left) and bytes (right). No script, no fonts of its own.
//!
//! Needs points in order of `x`. Not here: what is drawn, and sizes as text (the caller gives its own).

use std::fmt::Write as _;
use std::io::Write;

use crate::FormatError;

const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 380.0;
const LEFT: f64 = 64.0;
const RIGHT: f64 = 90.0;
const TOP: f64 = 56.0;
const BOTTOM: f64 = 56.0;
const GRID_LINES: u32 = 4;
const SHARE_COLOR: &str = "#1f6fb4";
const BYTES_COLOR: &str = "#c8501e";

/// A point: where, the share (0 to 1), the bytes.
pub type Point = (u64, f64, u64);

/// What to draw.
pub struct Chart<'a> {
    /// Above all.
    pub title: &'a str,
    /// Below the axis.
    pub x_label: &'a str,
    /// Name of the left curve.
    pub share_label: &'a str,
    /// Name of the right curve.
    pub bytes_label: &'a str,
    /// In order.
    pub points: &'a [Point],
    /// Text of a number of bytes.
    pub text_from_bytes: fn(u64) -> String,
}

/// Draws.
///
/// # Errors
/// `out` fails.
pub fn write(chart: &Chart<'_>, out: &mut dyn Write) -> Result<(), FormatError> {
    let mut svg = String::new();
    // A `String` takes whatever is written.
    let _ = draw(chart, &mut svg);
    out.write_all(svg.as_bytes()).and_then(|()| out.flush()).map_err(FormatError::Write)
}

fn draw(chart: &Chart<'_>, svg: &mut String) -> std::fmt::Result {
    writeln!(
        svg,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" width=\"{WIDTH}\" \
         height=\"{HEIGHT}\" font-family=\"sans-serif\" font-size=\"12\">"
    )?;
    writeln!(svg, "<rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"#ffffff\"/>")?;
    text(svg, (LEFT, 20.0), ("start", "#222222"), chart.title)?;
    text(svg, (LEFT, 42.0), ("start", SHARE_COLOR), chart.share_label)?;
    text(svg, (WIDTH - RIGHT, 42.0), ("end", BYTES_COLOR), chart.bytes_label)?;
    let most = chart.points.iter().map(|point| point.2).max().unwrap_or(0);
    grid(chart, most, svg)?;
    let share = chart.points.iter().map(|&(x, share, _)| (x, share));
    curve(chart, share, SHARE_COLOR, svg)?;
    let bytes = chart.points.iter().map(|&(x, _, bytes)| (x, part(bytes, most)));
    curve(chart, bytes, BYTES_COLOR, svg)?;
    writeln!(svg, "</svg>")
}

fn part(of: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { of as f64 / whole as f64 }
}

fn grid(chart: &Chart<'_>, most: u64, svg: &mut String) -> std::fmt::Result {
    let (first, last) = ends(chart);
    for line in 0..=GRID_LINES {
        let share = f64::from(line) / f64::from(GRID_LINES);
        let (x, y) = place(share, share);
        let (end, bottom) = (WIDTH - RIGHT, HEIGHT - BOTTOM);
        writeln!(svg, "<path d=\"M{LEFT} {y:.1}H{end}M{x:.1} {bottom}v4\" stroke=\"#dddddd\" fill=\"none\"/>")?;
        text(svg, (LEFT - 8.0, y + 4.0), ("end", SHARE_COLOR), &format!("{:.0}%", share * 100.0))?;
        let bytes = (chart.text_from_bytes)((most as f64 * share) as u64);
        text(svg, (end + 8.0, y + 4.0), ("start", BYTES_COLOR), &bytes)?;
        let at = first + ((last - first) as f64 * share) as u64;
        text(svg, (x, bottom + 18.0), ("middle", "#222222"), &(chart.text_from_bytes)(at))?;
    }
    text(svg, (LEFT + (WIDTH - LEFT - RIGHT) / 2.0, HEIGHT - 14.0), ("middle", "#222222"), chart.x_label)
}

fn ends(chart: &Chart<'_>) -> (u64, u64) {
    let x = |point: Option<&Point>| point.map_or(0, |point| point.0);
    (x(chart.points.first()), x(chart.points.last()).max(x(chart.points.first())))
}

/// Where a point lies, both coordinates from 0 to 1.
fn place(x: f64, y: f64) -> (f64, f64) {
    (LEFT + x * (WIDTH - LEFT - RIGHT), TOP + (1.0 - y) * (HEIGHT - TOP - BOTTOM))
}

fn curve(
    chart: &Chart<'_>,
    points: impl Iterator<Item = (u64, f64)>,
    color: &str,
    svg: &mut String,
) -> std::fmt::Result {
    let (first, last) = ends(chart);
    write!(svg, "<polyline fill=\"none\" stroke=\"{color}\" stroke-width=\"2\" points=\"")?;
    for (x, y) in points {
        let (x, y) = place(part(x - first, last - first), y);
        write!(svg, "{x:.1},{y:.1} ")?;
    }
    writeln!(svg, "\"/>")
}

fn text(svg: &mut String, (x, y): (f64, f64), (anchor, color): (&str, &str), words: &str) -> std::fmt::Result {
    let words = words.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    writeln!(svg, "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" fill=\"{color}\">{words}</text>")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn curves_span_the_axes_and_words_are_escaped() {
        let points = [(0, 0.0, 0), (50, 0.5, 100), (100, 1.0, 200)];
        let chart = Chart {
            title: "a<b",
            x_label: "limit",
            share_label: "hits",
            bytes_label: "peak",
            points: &points,
            text_from_bytes: |bytes| format!("{bytes} B"),
        };
        let mut out = Vec::new();
        write(&chart, &mut out).unwrap();
        let svg = String::from_utf8(out).unwrap();
        let curve = "points=\"64.0,324.0 367.0,190.0 670.0,56.0 \"";
        assert_eq!(svg.matches(curve).count(), 2, "{svg}");
        assert!(svg.contains(">a&lt;b</text>") && svg.contains(">200 B</text>"), "{svg}");
        let empty = Chart { points: &[], ..chart };
        write(&empty, &mut Vec::new()).unwrap();
    }
}
