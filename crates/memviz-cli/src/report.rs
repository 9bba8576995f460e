//! `memviz report FILE`: the summary of a recording, as `memviz run` prints it at its end.

use memviz_analyze::{Suggestion, Summary, find_peaks, suggest};
use serde::Serialize;

use crate::answer::{Question, Report, to_json};
use crate::input::{Asked, Input, Source};
use crate::render::{self, Page, Place, Style, Table, clean, glued, size};
use crate::size::text_from_bytes;

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
    fn asked(&self) -> Asked {
        self.input.asked()
    }

    fn answer(&self, sources: &[Source]) -> anyhow::Result<Box<dyn Report>> {
        let chosen = self.input.choose(sources)?;
        let summary = Summary::new(&chosen.trace);
        let next = suggest(&chosen.trace, &summary);
        let ranks = if sources.len() > 1 { sources.iter().map(RankPeak::of).collect() } else { Vec::new() };
        let file = self.input.file.display().to_string();
        Ok(Box::new(Answer { summary, ranks, next, file }))
    }
}

/// The summary, and what only a report of files knows.
#[derive(Serialize)]
struct Answer {
    #[serde(flatten)]
    summary: Summary,
    /// Every process of a distributed run.
    ranks: Vec<RankPeak>,
    /// Questions to ask next.
    next: Vec<Suggestion>,
    /// As typed.
    #[serde(skip)]
    file: String,
}

#[derive(Serialize)]
struct RankPeak {
    rank: Option<u32>,
    label: String,
    peak_active_bytes: u64,
    peak_reserved_bytes: u64,
}

impl RankPeak {
    fn of(source: &Source) -> RankPeak {
        let peaks = find_peaks(&source.trace);
        RankPeak {
            rank: source.trace.header.rank,
            label: source.label.clone(),
            peak_active_bytes: peaks.active.active_bytes,
            peak_reserved_bytes: peaks.reserved.reserved_bytes(),
        }
    }

    fn name(&self) -> String {
        self.rank.map_or_else(|| clean(&self.label), |rank| format!("rank {rank}"))
    }
}

impl Report for Answer {
    fn json(&self) -> String {
        to_json(self)
    }

    fn draw(&self, page: &mut Page) {
        render::summary(page, &self.summary);
        self.draw_ranks(page);
        for Suggestion { command, because } in &self.next {
            let (command, file) = (glued(&format!("memviz {command}")), glued(&clean(&self.file)));
            page.labelled("Next", Style::Plain, &format!("{command} {file}: {because}"));
        }
    }
}

impl Answer {
    fn draw_ranks(&self, page: &mut Page) {
        let Some(highest) = self.ranks.iter().rev().max_by_key(|rank| rank.peak_active_bytes) else { return };
        let text = format!(
            "of {} processes {} has the highest peak, {}",
            self.ranks.len(),
            highest.name(),
            size(highest.peak_active_bytes)
        );
        page.blank();
        page.labelled("Ranks", Style::Plain, &text);
        let mut table = Table::new("Peaks of all processes", "process").bytes("active").bytes("reserved");
        for rank in &self.ranks {
            let cells = vec![text_from_bytes(rank.peak_active_bytes), text_from_bytes(rank.peak_reserved_bytes)];
            table.row(cells, Place::Words(rank.name()), Vec::new());
        }
        page.table(&table);
        page.blank();
    }
}
