//! The viewer's server side: recordings being read, answers about them, a server on this machine, and the self-contained page.
//!
//! [`Store`] reads files in the background, [`Api`] answers the requests of `formats/view.md` as a pure function of what was
//! read, [`Server`] puts both behind a port of 127.0.0.1, and [`write_page`] packs the same answers into one HTML file.
//!
//! Not here: what is drawn where (`memviz-layout`), numbers of reports (`memviz-analyze`), flags (`memviz-cli`), pixels
//! (`viewer/`).

mod answer;
mod api;
mod assets;
mod clip;
mod frame;
mod page;
mod query;
mod server;
mod store;

pub use answer::{Answer, ContentType};
pub use api::{Api, Reports};
pub use page::{PageError, PageOptions, PageWritten, write_page};
pub use server::{Running, Server, Stop};
pub use store::{Input, Loaded, State, Store};
