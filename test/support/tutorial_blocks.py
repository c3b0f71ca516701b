"""Executable blocks of tutorials."""

import os
import re
import subprocess
import sys
from pathlib import Path

from helpers import REPOSITORY


def blocks(page):
    """Language and text of fenced blocks of shell and Python; what is only indented is for other machines and not executed."""
    return re.findall(r"^```(sh|python)\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)


def executed(folder, language, text):
    """Run a block as a user of an activated environment would; processes in the background end with it."""
    shell = folder / "bin" / "stribeck"
    if not shell.exists():
        shell.parent.mkdir()
        shell.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m stribeck "$@"\n')
        shell.chmod(0o755)
    path = os.pathsep.join([str(shell.parent), str(Path(sys.executable).parent), os.environ["PATH"]])
    sources = f"{REPOSITORY / 'src'}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"
    environment = {**os.environ, "PATH": path, "PYTHONPATH": sources, "MPLBACKEND": "agg"}
    ended = "trap 'kill $(jobs -p) 2>/dev/null || true; wait || true' EXIT\n"
    command = (
        ["bash", "-euo", "pipefail", "-c", ended + text] if language == "sh" else [sys.executable, "-c", text]
    )
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, f"{text}\n{done.stdout[-1500:]}{done.stderr[-1500:]}"
    return done.stdout
