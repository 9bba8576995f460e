//! Paths as short as they stay clear.

use std::path::Path;

/// Relative to `cwd` when below it.
pub(super) fn relative(path: &str, cwd: &Path) -> String {
    match Path::new(path).strip_prefix(cwd) {
        Ok(below) if !cwd.as_os_str().is_empty() && !below.as_os_str().is_empty() => below.display().to_string(),
        _ => path.to_owned(),
    }
}

/// Of a source file: relative to its package when installed, to the standard library, or to `cwd`.
pub(super) fn short(path: &str, cwd: &Path) -> String {
    installed(path).map_or_else(|| relative(path, cwd), str::to_owned)
}

/// "mlx_lm/models/llama.py" of "/…/site-packages/mlx_lm/models/llama.py", "runpy.py" of "/…/lib/python3.12/runpy.py".
fn installed(path: &str) -> Option<&str> {
    for folder in ["/site-packages/", "/dist-packages/"] {
        if let Some(at) = path.rfind(folder) {
            return Some(&path[at + folder.len()..]);
        }
    }
    let after = &path[path.rfind("/lib/python3.")? + "/lib/".len()..];
    after.split_once('/').map(|(_, below)| below)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_shortened() {
        let cwd = Path::new("/home/u/proj");
        let cases = [
            ("/home/u/proj/train.py", "train.py"),
            ("/home/u/proj/.venv/lib/python3.12/site-packages/mlx_lm/models/llama.py", "mlx_lm/models/llama.py"),
            ("/usr/lib/python3.12/json/decoder.py", "json/decoder.py"),
            ("/home/u/project/train.py", "/home/u/project/train.py"),
            ("train.py", "train.py"),
            ("<string>", "<string>"),
        ];
        for (path, expected) in cases {
            assert_eq!(short(path, cwd), expected);
        }
        assert_eq!(relative("/a", Path::new("")), "/a");
    }
}
