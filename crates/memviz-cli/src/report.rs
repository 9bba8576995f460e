//! `memviz report FILE`: the summary of a recording, as `memviz run` prints it at its end.

use std::path::PathBuf;

use memviz_analyze::Summary;

use crate::answer::{Question, Report, to_json};
use crate::input::{Input, Source};
use crate::render::{self, Page};

const EXAMPLES: &str = "\
Examples:
  memviz report run.memviz          what used the memory at its peak, and which lines built it
  memviz report run.memviz --json   the same for a script
  memviz report snapshot.pickle     of a PyTorch memory snapshot";

/// Flags of `report`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ReportArgs {
    #[command(flatten)]
    input: Input,
}

impl Question for ReportArgs {
    fn files(&self) -> Vec<PathBuf> {
        vec![self.input.file.clone()]
    }

    fn wants_json(&self) -> bool {
        self.input.json
    }

    fn answer(&self, sources: &[Source]) -> anyhow::Result<Box<dyn Report>> {
        Ok(Box::new(Summary::new(&self.input.choose(sources)?.trace)))
    }
}

impl Report for Summary {
    fn json(&self) -> String {
        to_json(self)
    }

    fn draw(&self, page: &mut Page) {
        render::summary(page, self);
    }
}
