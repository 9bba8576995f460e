//! Runs the scripts in `tests/python` (`run_all.py`) under every CPython that can be found, one process each.
//!
//! `MEMVIZ_PYTHONS` lists interpreters, separated by colons; the default is pyenv's 3.10 and later, and `python3`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

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

/// Interpreters by what they say of themselves, so that no installation is run twice.
fn pythons() -> BTreeMap<String, PathBuf> {
    let ask = "import sys; print(sys.version.split()[0], sys.base_prefix); sys.exit(sys.version_info < (3, 10))";
    let mut found = BTreeMap::new();
    for python in candidates() {
        let Ok(output) = Command::new(&python).args(["-c", ask]).output() else { continue };
        if output.status.success() {
            let name = String::from_utf8_lossy(&output.stdout).trim().to_owned();
            found.entry(name).or_insert(python);
        }
    }
    found
}

#[test]
fn captures_equal_the_public_walk_on_every_python() {
    let pythons = pythons();
    if pythons.is_empty() {
        println!("SKIP: NO PYTHON 3.10 OR LATER FOUND, NOTHING WAS TESTED; set MEMVIZ_PYTHONS to interpreters");
    }
    let mut failed = Vec::new();
    for (name, python) in &pythons {
        let output = Command::new(python)
            .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python/run_all.py"))
            .env("PYFRAMES_PROBE", probe_library())
            .env("PYFRAMES_SITE", Path::new(env!("CARGO_TARGET_TMPDIR")).join("site"))
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .output()
            .expect("it ran a moment ago");
        print!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        if !output.status.success() {
            failed.push(name);
        }
    }
    assert!(failed.is_empty(), "failed under {failed:?}, see above");
}
