"""`memviz run`: records a whole program, and stays out of its way.

The program sees its own `sys.argv`, `__main__`, `sys.path[0]`, standard input, signals and exit code. Recording starts when
it imports `mlx.core`, goes into a file as it happens, and ends after its own exit handlers have run. If MLX cannot be
recorded, a warning says why and the program runs all the same.
"""

from __future__ import annotations

import atexit
import builtins
import io
import os
import pathlib
import runpy
import signal
import subprocess
import sys
import types
import warnings

from mlx_memviz import _compat, _endings, _recording


class _Session:
    """The recording of this process's program, from its first import of MLX to its end."""

    def __init__(self, plan: dict):
        self._plan = plan
        self._pid = os.getpid()
        self._cwd = pathlib.Path.cwd()
        self._recording: _recording.Recording | None = None
        self._path: pathlib.Path | None = None
        self._is_done = False
        self._is_refused = False
        # What ended the program, as far as it is known before its exit handlers run.
        self.ending = _endings.Ending()

    def begin(self, _mx) -> None:
        if os.getpid() != self._pid or self._is_done:
            return
        options = {
            name: self._plan[name] for name in ("max_entries", "min_size", "context", "level", "depth", "native")
        }
        try:
            self._path = self._output()
            self._recording = _recording.Recording(self._path, options, ends_at_exit=False).start()
        except Exception as error:  # whatever it is, the program runs
            self._is_refused = True
            _say(f"not recording: {error}")

    def finish(self, ending: _endings.Ending | None = None) -> None:
        """Writes and prints, once, in the process that began it. Never raises: the program's end is its own."""
        if self._is_done or os.getpid() != self._pid:
            return
        self._is_done = True
        try:
            self._report(ending or self.ending)
        except Exception as error:
            _say(f"cannot write the recording: {error}")

    def _report(self, ending: _endings.Ending) -> None:
        recording = self._recording
        if recording is None:
            if not self._is_refused:
                _say("the program did not import mlx.core: nothing was recorded")
            return
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            recording._stop(ending)
        for warning in caught:
            _say(str(warning.message))
        written = [] if recording._path is None else [recording._path]
        if self._plan["quiet"]:
            return
        trace = recording.trace._inner
        if self._plan["json"]:
            print(trace.summary_json(written=written), file=sys.stderr)
        else:
            width, is_terminal = _terminal()
            print(trace.summary_text(width=width, color=is_terminal, written=written), end="", file=sys.stderr)

    def view(self) -> None:
        """Opens the recording in the viewer if that was asked for, until Ctrl-C. Never raises."""
        recording = self._recording
        if not self._plan["view"] or recording is None or recording._path is None or os.getpid() != self._pid:
            return
        # Ctrl-C is for the viewer, a process of its own, in which it means "done"; a handler is not inherited, SIG_IGN is.
        signal.signal(signal.SIGINT, lambda number, frame: None)
        try:
            subprocess.call([sys.executable, "-m", "mlx_memviz", "view", os.fspath(recording._path)])
        except Exception as error:
            _say(f"cannot open the viewer: {error}; run: memviz view {recording._path}")

    def end(self) -> None:
        """What happens after the program's own exit handlers."""
        self.finish()
        self.view()

    def _output(self) -> pathlib.Path:
        output = self._plan["output"]
        if output is None:
            stem = pathlib.Path(self._plan["program"]).stem if self._plan["kind"] == "script" else self._plan["program"]
            stem = stem if self._plan["kind"] != "code" and stem.strip("-") else "code"
            output = f"memviz-{stem}-{self._pid}.memviz"
        # The program may have changed its folder since.
        return self._cwd / output


def _say(text: str) -> None:
    print(f"memviz: {text}", file=sys.stderr, flush=True)


def _terminal() -> tuple[int, bool]:
    try:
        is_terminal = sys.stderr.isatty()
        width = os.get_terminal_size(sys.stderr.fileno()).columns if is_terminal else 100
    except (OSError, ValueError, io.UnsupportedOperation):
        return 100, False
    return max(width, 60), is_terminal and not os.environ.get("NO_COLOR")


def run(plan: dict) -> int:
    """Runs the program of `plan` and returns its exit code; ends the process by signal if the program would have."""
    if plan["output"] is not None:
        try:
            _recording._checked_path(plan["output"])
        except ValueError as error:
            _say(str(error))
            return 2
    session = _Session(plan)
    # Registered before any handler of the program, so run after all of them.
    atexit.register(session.end)
    _compat.when_loaded(session.begin)
    _finish_on_termination(session)
    sys.argv = [plan["program"] if plan["kind"] != "code" else "-c", *plan["args"]]
    try:
        _RUNNERS[plan["kind"]](plan["program"])
    except SystemExit:
        raise
    except KeyboardInterrupt as error:
        _print_exception(error)
        session.finish(_endings.of_exception(error))
        session.view()
        _end_by(signal.SIGINT)
    except BaseException as error:
        _print_exception(error)
        session.ending = _endings.of_exception(error)
        return 1
    return 0


def _finish_on_termination(session: _Session) -> None:
    """SIGTERM ends a Python program without its exit handlers; write first, then end the same way."""
    if signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        return

    def on_termination(number, frame):
        session.finish(_endings.of_signal("SIGTERM", frame))
        _end_by(number)

    signal.signal(signal.SIGTERM, on_termination)


def _end_by(number: int) -> None:
    """Ends this process by a signal, so that its parent sees what it would have seen without us."""
    sys.stdout.flush()
    sys.stderr.flush()
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)


def _print_exception(error: BaseException) -> None:
    """The traceback that Python would print: without our frames."""
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename.startswith(os.path.dirname(__file__)):
        trace = trace.tb_next
    error.__traceback__ = trace
    sys.excepthook(type(error), error, trace)


def _new_main(file: str | None) -> dict:
    """A fresh `__main__` module; returns its namespace."""
    module = types.ModuleType("__main__")
    if file is not None:
        module.__file__ = file
    module.__dict__["__builtins__"] = builtins
    sys.modules["__main__"] = module
    return module.__dict__


def _run_script(path: str) -> None:
    if path == "-":
        namespace = _new_main(None)
        sys.path.insert(0, "")
        exec(compile(sys.stdin.read(), "<stdin>", "exec"), namespace)
    elif os.path.isdir(path) or path.endswith((".zip", ".pyz")):
        runpy.run_path(path, run_name="__main__")
    else:
        try:
            with io.open_code(os.path.abspath(path)) as file:
                source = file.read()
        except OSError as error:
            _say(f"cannot open {path!r}: {error.strerror}")
            raise SystemExit(2) from None
        sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
        exec(compile(source, path, "exec"), _new_main(path))


def _run_module(name: str) -> None:
    sys.path.insert(0, os.getcwd())
    runpy.run_module(name, run_name="__main__", alter_sys=True)


def _run_code(text: str) -> None:
    sys.path.insert(0, "")
    exec(compile(text, "<string>", "exec"), _new_main(None))


_RUNNERS = {"script": _run_script, "module": _run_module, "code": _run_code}
