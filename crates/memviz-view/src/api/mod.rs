//! The requests of `formats/view.md`, each a pure function of the recordings. One file per family.
//!
//! The server and the self-contained page both ask here, so both show the same numbers.

mod at;
mod bands;
mod block;
mod find;
mod flame;
mod moment;
mod names;
mod place;
mod range;
mod recordings;
mod report;
mod timeline;
mod whatif;

use std::sync::Arc;

use memviz_layout::{Axis, By, Invalid, Moment, Window};
use memviz_trace::Trace;

use crate::answer::{Answer, Refusal};
use crate::query::{Query, wrong};
use crate::store::{EntryState, Loaded, Store};

/// Answers the question of a subcommand, with its options, about named recordings: JSON, or a sentence for the user.
pub type Reports = fn(&str, &[String], &[(String, Arc<Trace>)]) -> Result<String, String>;

/// Answers requests about recordings.
#[derive(Clone, Debug)]
pub struct Api {
    store: Store,
    reports: Reports,
}

impl Api {
    /// Answers about `store`; `reports` gives the JSON of subcommands.
    pub fn new(store: Store, reports: Reports) -> Api {
        Api { store, reports }
    }

    /// The recordings.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Answers the request `path?query`, both as in an address below `/api/`. Never panics on a recording's content.
    pub fn answer(&self, path: &str, query: &str) -> Answer {
        let answer = match path {
            "recordings" => recordings::answer(self, query),
            "timeline" => timeline::answer(self, query),
            "bands" => bands::answer(self, query),
            "place" => place::answer(self, query),
            "at" => at::answer(self, query),
            "block" => block::answer(self, query),
            "moment" => moment::answer(self, query),
            "flame" => flame::answer(self, query),
            "range" => range::answer(self, query),
            "find" => find::answer(self, query),
            "report" => report::answer(self, query),
            "whatif" => whatif::answer(self, query),
            "whatif/choices" => whatif::choices(self, query),
            _ => Err(Refusal::new(
                404,
                format!("no request {path:?}, expected one of formats/view.md: check its spelling"),
            )),
        };
        answer.unwrap_or_else(Answer::from)
    }

    /// The recording that `r` names, when it can be asked.
    fn recording(&self, r: usize) -> Result<Arc<Loaded>, Refusal> {
        let mut entries = self.store.entries();
        let count = entries.len();
        if r >= count {
            let have = if count == 0 { "none".to_owned() } else { format!("0 to {}", count - 1) };
            return Err(Refusal::new(404, format!("no recording {r}, expected {have}: look at recordings")));
        }
        match entries.swap_remove(r).state {
            EntryState::Ready(loaded) => Ok(loaded),
            EntryState::Failed(error) => Err(Refusal::new(422, error)),
            EntryState::Reading(part) => {
                Err(Refusal::new(503, format!("recording {r} is being read, {:.0} % so far: ask again", part * 100.0)))
            }
        }
    }

    fn asked(&self, query: &Query) -> Result<Arc<Loaded>, Refusal> {
        self.recording(query.whole("r")?)
    }
}

impl From<Invalid> for Refusal {
    fn from(invalid: Invalid) -> Refusal {
        Refusal::bad(invalid.to_string())
    }
}

/// `axis`.
fn axis(query: &Query) -> Result<Axis, Refusal> {
    let name = query.need("axis")?;
    Axis::from_name(name).ok_or_else(|| wrong("axis", name, "time, event or step"))
}

/// `by`.
fn by(query: &Query) -> Result<By, Refusal> {
    let name = query.need("by")?;
    let names = || By::ALL.map(By::name).join(", ");
    By::from_name(name).ok_or_else(|| wrong("by", name, &format!("one of {}", names())))
}

/// `axis`, `from`, `to` and `columns`.
fn window(query: &Query) -> Result<Window, Refusal> {
    let (from, to) = query.span("from", "to")?;
    Ok(Window { axis: axis(query)?, from, to, columns: query.pixels("columns")? })
}

/// A moment of the recording.
fn moment(query: &Query, name: &str, loaded: &Loaded) -> Result<Moment, Refusal> {
    let most = loaded.layout().events();
    let value = query.whole(name)?;
    let within = Moment::try_from(value).ok().filter(|moment| *moment <= most);
    within.ok_or_else(|| wrong(name, &value.to_string(), &format!("a moment of the recording, 0 to {most}")))
}

/// A moment that may be left out.
fn maybe_moment(query: &Query, name: &str, loaded: &Loaded) -> Result<Option<Moment>, Refusal> {
    query.filled(name).map(|_| moment(query, name, loaded)).transpose()
}
