"""Opens a snapshot in PyTorch's MemoryViz page. Prints one JSON line; exit code 0 when the page is content, else 1.

usage: run.py PICKLE --out DIR [--expect-frame TEXT] [--expect-metadata TEXT]

Content means: no error on the console in any view of any device, blocks to click, and one block whose text has the frame
and whose metadata has the metadata asked for.
"""

import argparse
import json
import pathlib
import pickle
import re
import subprocess
import sys

import torch_files


def drive(options) -> dict:
    """Runs the browser; see page.mjs for what comes back."""
    command = ["node", str(torch_files.HERE / "page.mjs"), str(options.pickle), str(options.out)]
    command += [str(torch_files.page()), str(torch_files.modules()), torch_files.chromium(), options.expect_frame or ""]
    result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=options.timeout)
    if result.returncode:
        raise SystemExit(f"page.mjs failed: {result.stderr[-2000:]}")
    return json.loads(result.stdout)


def metadata_by_addr(path: pathlib.Path) -> dict:
    """Texts of every allocation and block, by address."""
    snapshot = pickle.loads(path.read_bytes())  # our own file: the caller made it
    texts = {}
    for entry in (entry for trace in snapshot["device_traces"] for entry in trace):
        texts.setdefault(entry["addr"], []).append(str(entry.get("user_metadata", "")))
    for block in (block for segment in snapshot["segments"] for block in segment["blocks"]):
        texts.setdefault(block["address"], []).append(str(block.get("user_metadata", "")))
    return texts


def problems(found: dict, options) -> list:
    """Everything that is wrong, one sentence each."""
    wrong = [f"{view['name']}: {error}" for view in found["views"] for error in view["errors"]] + found["errors"]
    clicked = [text for view in found["views"] for text in view.get("blocks", [])]
    if not found["views"]:
        wrong.append("the page shows no view")
    matching = [text for text in clicked if (options.expect_frame or "") in text]
    if options.expect_frame and not matching:
        wrong.append(f"none of {len(clicked)} blocks shows the frame {options.expect_frame!r}")
    if options.expect_metadata and not any(has_metadata(text, options) for text in matching):
        wrong.append(f"no block with that frame has the metadata {options.expect_metadata!r}")
    return wrong


def has_metadata(text: str, options) -> bool:
    if options.expect_metadata in text:
        return True
    addr = re.search(r"\bb([0-9a-f]+)_\d+", text)
    texts = options.metadata.get(int(addr[1], 16), []) if addr else []
    return any(options.expect_metadata in entry for entry in texts)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pickle", type=pathlib.Path)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--expect-frame")
    parser.add_argument("--expect-metadata")
    parser.add_argument("--timeout", type=int, default=300, help="seconds")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    options.metadata = metadata_by_addr(options.pickle) if options.expect_metadata else {}
    found = drive(options)
    wrong = problems(found, options)
    summary = [{key: value for key, value in view.items() if key != "blocks"} for view in found["views"]]
    print(json.dumps({"ok": not wrong, "problems": wrong, "load_ms": found["load_ms"], "views": summary}))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
