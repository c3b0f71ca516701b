"""Runs programs one after another in one process, which imports their libraries once: calls as JSON on stdin, answers on stdout."""

import contextlib
import io
import json
import runpy
import sys
from pathlib import Path


def answer(path, words):
    """Exit code, output and errors of a program as its own process would give them."""
    out, err = io.StringIO(), io.StringIO()
    sys.argv, before = [path, *words], list(sys.path)
    sys.path.insert(0, str(Path(path).parent))
    code = 0
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            runpy.run_path(path, run_name="__main__")
        except SystemExit as end:
            code = end.code or 0
    sys.path[:] = before
    return code, out.getvalue(), err.getvalue()


def main():
    print(json.dumps([answer(path, words) for path, words in json.load(sys.stdin)]))


if __name__ == "__main__":
    main()
