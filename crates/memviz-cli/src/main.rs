//! The binary of `cargo install`: reads recordings where there is no Python. To make one takes MLX in the same process, so
//! `run` and `doctor` point to the Python package.

use std::process::ExitCode;

use memviz_cli::{Outcome, main_from};

fn main() -> ExitCode {
    let subcommand = match main_from(std::env::args_os().collect()) {
        Outcome::Exit(code) => return ExitCode::from(u8::try_from(code).unwrap_or(2)),
        Outcome::Run(_) => "run",
        Outcome::Doctor(_) => "doctor",
    };
    eprintln!(
        "memviz: `memviz {subcommand}` needs MLX in its process and this binary has no Python; \
         install the Python package (`pip install mlx-memviz`), then use its `memviz {subcommand}`"
    );
    ExitCode::from(2)
}
