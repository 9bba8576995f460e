//! `report`: the JSON of a subcommand, by the function that the command line was built with.
//!
//! Options come from the page, so none of them may name a file.

use memviz_trace::Trace;
use std::sync::Arc;

use super::Api;
use crate::answer::{Answer, ContentType, Refusal};
use crate::clip;
use crate::query::{Query, wrong};

/// Reports that the page may ask for: none of them writes.
const COMMANDS: [&str; 10] =
    ["report", "peak", "growth", "leaks", "pinned", "retrace", "cache", "diff", "replay", "advise"];
/// Recordings that a report is about, at most.
const MOST_RECORDINGS: usize = 2;

pub(super) fn answer(api: &Api, query: &str) -> Result<Answer, Refusal> {
    let query = Query::new(query, &["command", "r", "option"], &["r", "option"])?;
    let command = query.need("command")?;
    if !COMMANDS.contains(&command) {
        return Err(wrong("command", command, &format!("one of {}", COMMANDS.join(", "))));
    }
    let options: Vec<String> = query.all("option").map(str::to_owned).collect();
    options.iter().try_for_each(|option| harmless(option))?;
    let about = recordings(api, &query)?;
    let json = (api.reports)(command, &options, &about).map_err(|error| Refusal::new(422, error))?;
    Ok(Answer { status: 200, content_type: ContentType::Json, body: clip::json(json).into_bytes() })
}

fn recordings(api: &Api, query: &Query) -> Result<Vec<(String, Arc<Trace>)>, Refusal> {
    let named: Vec<&str> = query.all("r").collect();
    if named.is_empty() || named.len() > MOST_RECORDINGS {
        return Err(wrong("r", &named.join(" "), "one recording, or two to compare"));
    }
    let one = |r: &str| {
        let r = r.parse().map_err(|_| wrong("r", r, "a whole number from 0"))?;
        api.recording(r).map(|loaded| (loaded.name().to_owned(), Arc::clone(loaded.trace())))
    };
    named.into_iter().map(one).collect()
}

/// No option may write a file. Short options all do; a negative number is none.
fn harmless(option: &str) -> Result<(), Refusal> {
    let mut letters = option.chars();
    let is_short =
        letters.next() == Some('-') && letters.next().is_some_and(|letter| letter != '-' && !letter.is_ascii_digit());
    if is_short || option.starts_with("--output") {
        return Err(wrong("option", option, "one that writes no file: run `memviz` in a terminal for that"));
    }
    Ok(())
}
