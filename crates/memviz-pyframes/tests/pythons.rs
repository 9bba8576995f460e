//! Runs the scripts in `tests/python` under every CPython that can be found, one process each.
//!
//! `MEMVIZ_PYTHONS` lists interpreters, separated by colons; the default is pyenv's 3.10 and later, and `python3`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Scripts with their argument.
const SCRIPTS: [(&str, &str); 8] = [
    ("selftest.py", ""),
    ("traced.py", "trace"),
    ("traced.py", "profile"),
    ("traced.py", "monitoring"),
    ("churn.py", ""),
    ("gil.py", ""),
    ("unknown_version.py", ""),
    ("greenlets.py", ""),
];

/// Wrong tables of the probe, and the minor version for which each is right.
const LAYOUTS: [(&str, u32); 7] = [
    ("Like310", 10),
    ("Like311", 11),
    ("Like312", 12),
    ("Like313", 13),
    ("WildFrame", 0),
    ("WildPrevious", 0),
    ("Misaligned", 0),
];

fn scripts() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python")
}

/// The example that cargo built beside this test, which is `target/PROFILE/deps/pythons-HASH`.
fn probe_library() -> PathBuf {
    let test = std::env::current_exe().expect("a test knows where it is");
    let name = format!("{}pyframes_probe{}", std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX);
    let profile = test.ancestors().nth(2).expect("two folders above the test");
    let library = profile.join("examples").join(name);
    assert!(library.exists(), "build it with `cargo build -p memviz-pyframes --examples`: {}", library.display());
    library
}

fn candidates() -> Vec<PathBuf> {
    if let Some(listed) = std::env::var_os("MEMVIZ_PYTHONS") {
        return std::env::split_paths(&listed).collect();
    }
    let versions = std::fs::read_dir("/root/.pyenv/versions").into_iter().flatten().flatten();
    let mut pythons: Vec<_> = versions.map(|version| version.path().join("bin/python3")).collect();
    pythons.push("python3".into());
    pythons
}

/// Interpreters by what they say of themselves (so that no installation is run twice), with their minor version.
fn pythons() -> BTreeMap<String, (PathBuf, u32)> {
    let ask = "import sys; print(sys.version_info[1], sys.version.split()[0], sys.base_prefix)";
    let mut found = BTreeMap::new();
    for python in candidates() {
        let Ok(output) = Command::new(&python).args(["-c", ask]).output() else { continue };
        let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        let Some((minor, name)) = text.split_once(' ') else { continue };
        if let Ok(minor @ 10..) = minor.parse() {
            found.entry(name.to_owned()).or_insert((python, minor));
        }
    }
    found
}

/// Runs one script; an error holds everything it said.
fn run(python: &Path, script: &str, argument: &str) -> Result<String, String> {
    let output = Command::new(python)
        .arg(scripts().join(script))
        .args(Some(argument).filter(|argument| !argument.is_empty()))
        .env("PYFRAMES_PROBE", probe_library())
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .output()
        .map_err(|error| error.to_string())?;
    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).trim().to_owned();
    if output.status.success() { Ok(said) } else { Err(format!("{script} {argument}: {}\n{said}", output.status)) }
}

#[test]
fn captures_equal_the_public_walk_on_every_python() {
    let pythons = pythons();
    if pythons.is_empty() {
        println!("SKIP: NO PYTHON 3.10 OR LATER FOUND, NOTHING WAS TESTED; set MEMVIZ_PYTHONS to interpreters");
    }
    let mut failures = Vec::new();
    for (name, (python, minor)) in &pythons {
        println!("== {name}");
        let wrong = LAYOUTS.iter().filter(|(_, right_for)| right_for != minor);
        let wrong = wrong.map(|(layout, _)| ("wrong_layout.py", *layout));
        for (script, argument) in SCRIPTS.into_iter().chain(wrong) {
            match run(python, script, argument) {
                Ok(said) => println!("{script} {argument}: {}", said.replace('\n', "; ")),
                Err(said) => failures.push(format!("{name}: {said}")),
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}
