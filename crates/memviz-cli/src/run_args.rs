//! Flags of `memviz run`, and where they end.
//!
//! As with Python itself, our flags end at the script, at `-m module` or at `-c code`; all that follows belongs to the
//! program, things that look like our flags too. clap cannot stop at an option, so [`split`] finds that place first and clap
//! sees what is before it.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, CommandFactory};
use memviz_trace::{Context, Level};

use crate::args::Cli;
use crate::plan::{Program, RunPlan};
use crate::size::bytes_from_text;

const USAGE: &str = "memviz run [OPTIONS] SCRIPT [ARGS]...
       memviz run [OPTIONS] -m MODULE [ARGS]...
       memviz run [OPTIONS] -c CODE [ARGS]...";

const EXAMPLES: &str = "\
Exit code: the program's own. Everything after SCRIPT, MODULE or CODE belongs to the program.

Examples:
  memviz run train.py --epochs 1
  memviz run -o gen.memviz -m mlx_lm generate --model mlx-community/Qwen3-0.6B-4bit
  memviz run --view --min-size 1MiB train.py";

/// Flags before the program. `m` and `c` are here for the help: [`split`] takes them out before clap looks.
#[derive(Debug, Args)]
#[command(override_usage = USAGE, after_help = EXAMPLES)]
pub(crate) struct RunArgs {
    /// Run a module, as python -m does
    #[arg(short, value_name = "MODULE")]
    m: Option<String>,
    /// Run a text, as python -c does
    #[arg(short, value_name = "CODE")]
    c: Option<String>,
    /// Write the recording there [default: memviz-<script>-<pid>.memviz]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Keep the last N events, 0 for all; in a .memviz file, which keeps all: how many may wait for the disk
    #[arg(long, value_name = "N", default_value = "1000000", value_parser = count_from_text)]
    max_entries: u64,
    /// Do not keep events of smaller buffers, only their sums (4096, 4KiB, 1MB)
    #[arg(long, value_name = "SIZE", default_value = "0", value_parser = bytes_from_text)]
    min_size: u64,
    /// What to record
    #[arg(long, default_value = Level::Buffers.name(), value_parser = level_parser())]
    level: Level,
    /// Keep the innermost N frames of a stack, 0 for all
    #[arg(long, value_name = "N", default_value_t = 0)]
    depth: u32,
    /// Record stacks of machine code as well
    #[arg(long)]
    native: bool,
    /// Keep stacks of which events
    #[arg(long, default_value = Context::All.name(), value_parser = context_parser())]
    context: Context,
    /// Print no summary
    #[arg(short, long)]
    quiet: bool,
    /// When the program has ended, open its recording in the viewer, until Ctrl-C
    #[arg(long)]
    view: bool,
    /// Print the summary as JSON
    #[arg(long)]
    json: bool,
}

fn count_from_text(text: &str) -> Result<u64, std::num::ParseIntError> {
    text.replace('_', "").parse()
}

fn level_parser() -> impl TypedValueParser<Value = Level> {
    PossibleValuesParser::new(Level::ALL.map(Level::name))
        .map(|name| Level::ALL.into_iter().find(|level| level.name() == name).unwrap_or_default())
}

fn context_parser() -> impl TypedValueParser<Value = Context> {
    PossibleValuesParser::new(Context::ALL.map(Context::name))
        .map(|name| Context::ALL.into_iter().find(|context| context.name() == name).unwrap_or_default())
}

impl RunArgs {
    /// The plan for a program that [`split`] found.
    pub(crate) fn plan(self, (what, args): (Program, Vec<OsString>)) -> RunPlan {
        RunPlan {
            what,
            args,
            output: self.output,
            max_entries: self.max_entries,
            min_size: self.min_size,
            level: self.level,
            depth: self.depth,
            native: self.native,
            context: self.context,
            quiet: self.quiet,
            view: self.view,
            json: self.json,
        }
    }
}

/// Arguments of `memviz run` cut in two.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Split {
    /// Ours.
    pub(crate) flags: Vec<OsString>,
    /// The program and its arguments; `None` when it is missing.
    pub(crate) program: Option<(Program, Vec<OsString>)>,
}

/// Cuts `args` (those after the word `run`) where the program begins.
///
/// # Errors
/// A sentence for the user: the module or code is not UTF-8.
pub(crate) fn split(args: &[OsString]) -> Result<Split, String> {
    let mut at = 0;
    while let Some(arg) = args.get(at) {
        match kind_of(arg) {
            Kind::Flag { takes_next } => at += 1 + usize::from(takes_next),
            Kind::Script => return Ok(found(args, at, at + 1, script(arg))),
            Kind::Separator => {
                let path = args.get(at + 1).map(|path| script(path));
                return Ok(path.map_or_else(|| none(&args[..at]), |path| found(args, at, at + 2, path)));
            }
            Kind::Program { letter, glued, flags } => return cut_at_program(args, at, letter, glued, flags),
        }
    }
    Ok(none(args))
}

fn none(flags: &[OsString]) -> Split {
    Split { flags: flags.to_vec(), program: None }
}

fn found(args: &[OsString], flags_end: usize, rest: usize, program: Program) -> Split {
    let rest = args.get(rest..).unwrap_or_default().to_vec();
    Split { flags: args[..flags_end].to_vec(), program: Some((program, rest)) }
}

fn script(path: &OsStr) -> Program {
    Program::Script { path: path.into() }
}

/// `-m name`, `-mname` or, with our own short flags before it, `-qm name`.
fn cut_at_program(args: &[OsString], at: usize, letter: char, glued: String, flags: String) -> Result<Split, String> {
    if args[at].to_str().is_none() {
        return Err(format!("the value of -{letter} is not UTF-8"));
    }
    let (text, rest) = match (glued.is_empty(), args.get(at + 1)) {
        (false, _) => (glued, at + 1),
        (true, Some(next)) => {
            let text = next.to_str().ok_or_else(|| format!("the value of -{letter} is not UTF-8"))?;
            (text.to_owned(), at + 2)
        }
        // clap says what is missing.
        (true, None) => return Ok(none(args)),
    };
    let program = if letter == 'm' { Program::Module { name: text } } else { Program::Code { text } };
    let mut split = found(args, at, rest, program);
    if flags.len() > 1 {
        split.flags.push(flags.into());
    }
    Ok(split)
}

enum Kind {
    /// One of our flags, or one we do not have.
    Flag { takes_next: bool },
    /// Not a flag.
    Script,
    /// `--`: a script follows, whatever it looks like.
    Separator,
    /// `-m` or `-c`, with the text glued to it and the short flags before it.
    Program { letter: char, glued: String, flags: String },
}

fn kind_of(arg: &OsStr) -> Kind {
    let text = arg.to_string_lossy();
    if text == "--" {
        Kind::Separator
    } else if let Some(long) = text.strip_prefix("--") {
        Kind::Flag { takes_next: takes_value(|flag| flag.get_long() == Some(long)) }
    } else if let Some(letters) = text.strip_prefix('-').filter(|letters| !letters.is_empty()) {
        kind_of_short(letters)
    } else {
        Kind::Script
    }
}

fn kind_of_short(letters: &str) -> Kind {
    for (at, letter) in letters.char_indices() {
        let after = &letters[at + letter.len_utf8()..];
        if matches!(letter, 'm' | 'c') {
            return Kind::Program { letter, glued: after.to_owned(), flags: format!("-{}", &letters[..at]) };
        }
        if takes_value(|flag| flag.get_short() == Some(letter)) {
            return Kind::Flag { takes_next: after.is_empty() };
        }
    }
    Kind::Flag { takes_next: false }
}

/// Whether the flag of `run` that `is_it` picks takes a value.
fn takes_value(is_it: impl Fn(&clap::Arg) -> bool) -> bool {
    let cli = Cli::command();
    let run = cli.find_subcommand("run");
    run.is_some_and(|run| run.get_arguments().any(|flag| is_it(flag) && flag.get_action().takes_values()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(line: &[&str]) -> (String, Option<(Program, String)>) {
        let args: Vec<OsString> = line.iter().map(OsString::from).collect();
        let join = |words: Vec<OsString>| words.join(OsStr::new(" ")).into_string().unwrap();
        let split = split(&args).unwrap();
        (join(split.flags), split.program.map(|(program, args)| (program, join(args))))
    }

    fn is_split(line: &[&str], flags: &str, program: Program, args: &str) {
        assert_eq!(parts(line), (flags.to_owned(), Some((program, args.to_owned()))), "{line:?}");
    }

    fn module(name: &str) -> Program {
        Program::Module { name: name.into() }
    }

    #[test]
    fn everything_after_the_script_belongs_to_it() {
        let train = || script(OsStr::new("train.py"));
        is_split(&["train.py"], "", train(), "");
        is_split(&["train.py", "--json", "-m", "x", "--"], "", train(), "--json -m x --");
        is_split(&["-q", "-o", "a.pickle", "train.py", "-o", "b"], "-q -o a.pickle", train(), "-o b");
        is_split(&["--depth", "8", "--level=arrays", "train.py"], "--depth 8 --level=arrays", train(), "");
        is_split(&["-oa.pickle", "train.py"], "-oa.pickle", train(), "");
        is_split(&["-q", "--", "train.py", "--", "a"], "-q", train(), "-- a");
        is_split(&["--", "-m"], "", script(OsStr::new("-m")), "");
        is_split(&["-", "a"], "", script(OsStr::new("-")), "a");
    }

    #[test]
    fn modules_and_code_are_read_as_python_reads_them() {
        is_split(&["-m", "mlx_lm", "generate", "--json"], "", module("mlx_lm"), "generate --json");
        is_split(&["--json", "-m", "mlx_lm", "--json"], "--json", module("mlx_lm"), "--json");
        is_split(&["-mmlx_lm", "-q"], "", module("mlx_lm"), "-q");
        is_split(&["-qm", "mlx_lm", "-q"], "-q", module("mlx_lm"), "-q");
        is_split(&["-qo", "a", "-m", "b"], "-qo a", module("b"), "");
        is_split(&["-om", "-m", "b"], "-om", module("b"), "");
        is_split(&["-c", "import sys", "-m"], "", Program::Code { text: "import sys".into() }, "-m");
    }

    #[test]
    fn a_missing_program_is_seen() {
        for line in [&[][..], &["-q"], &["--depth", "8"], &["-m"], &["-o"], &["--"]] {
            assert_eq!(parts(line).1, None, "{line:?}");
        }
    }
}
