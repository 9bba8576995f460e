//! `memviz check FILE`: prove the equations of a recording, or print the first one that does not hold.

use memviz_trace::{CheckReport, Violation};
use serde::Serialize;

use crate::args::CheckArgs;
use crate::input;
use crate::render::thousands;
use crate::size::text_from_bytes;
use crate::{FINDING, OK, Streams};

/// Version of the JSON form.
const SCHEMA: u32 = 1;

/// Reads, checks, prints; returns the exit code.
pub(crate) fn run(args: &CheckArgs, streams: &mut Streams<'_>) -> anyhow::Result<i32> {
    let mut code = OK;
    for source in input::read(std::slice::from_ref(&args.file), streams.shows_progress)? {
        let result = source.trace.check();
        let text = if args.json { json(&result)? } else { text(&result) };
        writeln!(streams.out, "{text}")?;
        if result.is_err() {
            code = FINDING;
        }
    }
    streams.out.flush()?;
    Ok(code)
}

type Checked = Result<CheckReport, Violation>;

fn text(result: &Checked) -> String {
    match result {
        Ok(report) => format!(
            "ok: {} events, {}, peak active {}, peak reserved {}",
            thousands(report.events as u64),
            checkpoints(report.checkpoints),
            text_from_bytes(report.peak_active.bytes),
            text_from_bytes(report.peak_reserved.bytes),
        ),
        Err(violation) => format!("violated: {violation}"),
    }
}

fn checkpoints(count: usize) -> String {
    match count {
        0 => "no checkpoint to compare with MLX".to_owned(),
        1 => "1 checkpoint agrees with MLX".to_owned(),
        _ => format!("{} checkpoints agree with MLX", thousands(count as u64)),
    }
}

#[derive(Default, Serialize)]
struct Json {
    schema: u32,
    ok: bool,
    violation: Option<String>,
    report: Option<JsonReport>,
}

#[derive(Serialize)]
struct JsonReport {
    events: usize,
    checkpoints: usize,
    peak_active_bytes: u64,
    peak_active_after_events: usize,
    peak_reserved_bytes: u64,
    peak_reserved_after_events: usize,
    end_active_bytes: u64,
    end_cached_bytes: u64,
}

fn json(result: &Checked) -> serde_json::Result<String> {
    let violation = result.as_ref().err().map(Violation::to_string);
    let report = result.as_ref().ok().map(|report| JsonReport {
        events: report.events,
        checkpoints: report.checkpoints,
        peak_active_bytes: report.peak_active.bytes,
        peak_active_after_events: report.peak_active.after_events,
        peak_reserved_bytes: report.peak_reserved.bytes,
        peak_reserved_after_events: report.peak_reserved.after_events,
        end_active_bytes: report.end.active,
        end_cached_bytes: report.end.cached,
    });
    serde_json::to_string_pretty(&Json { schema: SCHEMA, ok: result.is_ok(), violation, report })
}
