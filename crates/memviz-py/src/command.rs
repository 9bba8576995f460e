//! The command line: parsed by `memviz-cli`, whose plans for `run` and `doctor` the Python package carries out.

use std::ffi::OsString;

use memviz_cli::{Outcome, Program, RunPlan};
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// Carries out `memviz ARGS…`; returns ("exit", {"code": n}), ("run", plan) or ("doctor", plan).
#[pyfunction]
pub fn command(py: Python<'_>, args: Vec<OsString>) -> PyResult<(&'static str, Bound<'_, PyDict>)> {
    let dict = PyDict::new(py);
    let name = match py.detach(|| memviz_cli::main_from(args)) {
        Outcome::Exit(code) => {
            dict.set_item("code", code)?;
            "exit"
        }
        Outcome::Run(plan) => {
            fill_run(&dict, plan)?;
            "run"
        }
        Outcome::Doctor(plan) => {
            dict.set_item("json", plan.json)?;
            "doctor"
        }
    };
    Ok((name, dict))
}

fn fill_run(dict: &Bound<'_, PyDict>, plan: RunPlan) -> PyResult<()> {
    let (kind, program) = match plan.what {
        Program::Script { path } => ("script", path.into_os_string()),
        Program::Module { name } => ("module", name.into()),
        Program::Code { text } => ("code", text.into()),
    };
    dict.set_item("kind", kind)?;
    dict.set_item("program", program)?;
    dict.set_item("args", plan.args)?;
    dict.set_item("output", plan.output.map(std::path::PathBuf::into_os_string))?;
    dict.set_item("max_entries", plan.max_entries)?;
    dict.set_item("min_size", plan.min_size)?;
    dict.set_item("level", plan.level.name())?;
    dict.set_item("depth", plan.depth)?;
    dict.set_item("native", plan.native)?;
    dict.set_item("context", plan.context.name())?;
    dict.set_item("quiet", plan.quiet)?;
    dict.set_item("view", plan.view)?;
    dict.set_item("json", plan.json)
}
