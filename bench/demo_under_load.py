"""Runs `stribeck demo` several times, beside other work or slowed down, and compares what it records and identifies.

    python bench/demo_under_load.py --runs 20                 # on a quiet machine
    python bench/demo_under_load.py --runs 20 --beside 4      # beside four processes that do nothing but compute
    python bench/demo_under_load.py --runs 5 --share 0.25     # all of its processes stopped three quarters of the time
    python bench/demo_under_load.py --runs 5 --suspend 3      # each of its processes suspended for 3 s at a random time

Every run has the same seed. The recorded messages (topic, log time and bytes of each), the identified parameters and the
measured motions must be equal in all runs; the exit code is 1 if they are not, or if a run fails. ``--reference`` compares
with an earlier output folder too.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
from mcap.reader import make_reader

PERIOD = 0.05
"""Period at which processes are stopped and continued for ``--share`` [s]."""

LATEST = 30.0
"""A process is suspended at a random time up to this after its start [s]."""

COMPARED = ("parameters", "prediction_mae", "trajectory_error", "rest_counts", "lost_samples")
"""Keys of the summary that must be equal."""


def descendants(root: int) -> list[int]:
    """A process and all processes that it has started, directly or not."""
    parents = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                parents[int(entry.name)] = int(fields[1])
    found = [root]
    for one in found:
        found += [child for child, parent in parents.items() if parent == one]
    return found


def send(processes: list[int], number: signal.Signals) -> None:
    """Send a signal to processes that still exist."""
    for process in processes:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, number)


def hold_to(share: float, demo: subprocess.Popen[bytes]) -> None:
    """Let a program and its children run for a share of the time until it ends."""
    while demo.poll() is None:
        held = descendants(demo.pid)
        send(held, signal.SIGSTOP)
        time.sleep((1.0 - share) * PERIOD)
        send(held, signal.SIGCONT)
        time.sleep(share * PERIOD)


def suspend_each(duration: float, demo: subprocess.Popen[bytes], dice: np.random.Generator) -> int:
    """Suspend a program and each of its children once, at a random time of each; returns how many were suspended."""
    stop_at: dict[int, float] = {}
    continue_at: dict[int, float] = {}
    while demo.poll() is None:
        now = time.monotonic()
        for process in descendants(demo.pid):
            stop_at.setdefault(process, now + dice.uniform(0.0, LATEST))
            if process not in continue_at and now >= stop_at[process]:
                send([process], signal.SIGSTOP)
                continue_at[process] = now + duration
        over = [process for process, end in continue_at.items() if now >= end]
        send(over, signal.SIGCONT)
        continue_at |= dict.fromkeys(over, float("inf"))
        time.sleep(0.02)
    return len(continue_at)


def messages(output: Path) -> tuple[int, str]:
    """Number of all recorded messages, and a digest of their topics, log times and bytes."""
    digest, count = hashlib.sha256(), 0
    for bag in sorted(output.rglob("*.mcap")):
        digest.update(bag.name.encode())
        with bag.open("rb") as stream:
            for _, channel, message in make_reader(stream).iter_messages(log_time_order=False):
                digest.update(channel.topic.encode() + message.log_time.to_bytes(8, "little") + message.data)
                count += 1
    return count, digest.hexdigest()[:16]


def results(summary: Path) -> str:
    """Digest of the identified parameters and of the measured motions."""
    found = json.loads(summary.read_text())
    return hashlib.sha256(json.dumps([found[key] for key in COMPARED]).encode()).hexdigest()[:16]


def run(
    output: Path, options: argparse.Namespace, dice: np.random.Generator
) -> tuple[int, float, float, str]:
    """Run the demo once: its exit code, its duration and its processor time [s], and its last line."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    output.mkdir(parents=True, exist_ok=True)
    command = [
        sys.executable,
        "-m",
        "stribeck",
        "demo",
        "--output",
        str(output),
        "--json",
        str(output / "summary.json"),
    ]
    began = time.monotonic()
    with (output / "log.txt").open("wb") as log:
        demo = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
        try:
            if options.share < 1.0:
                hold_to(options.share, demo)
            elif options.suspend:
                suspend_each(options.suspend, demo, dice)
            code = demo.wait()
        finally:
            send(descendants(demo.pid), signal.SIGCONT)
            if demo.poll() is None:
                demo.send_signal(signal.SIGINT)
    lines = (output / "log.txt").read_text(errors="replace").replace("\r", "\n").split("\n")
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    processor = used.ru_utime + used.ru_stime - before.ru_utime - before.ru_stime
    return code, time.monotonic() - began, processor, next(line for line in reversed(lines) if line.strip())


def main() -> int:
    """Run, compare, print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--beside", type=int, default=0, help="processes that compute meanwhile")
    parser.add_argument("--share", type=float, default=1.0, help="share of the time in which the demo runs")
    parser.add_argument(
        "--suspend", type=float, default=0.0, help="suspend each of its processes for this time [s]"
    )
    parser.add_argument("--seed", type=int, default=0, help="of the random times")
    parser.add_argument("--output", type=Path, default=Path("build/demo_under_load"))
    parser.add_argument("--reference", type=Path, help="folder of an earlier run to compare with too")
    options = parser.parse_args()
    dice = np.random.default_rng(options.seed)
    seen: set[tuple[str, str]] = set()
    if options.reference:
        if not (options.reference / "summary.json").is_file():
            parser.error(
                f"--reference {options.reference} has no summary.json: give a folder that this program wrote, as build/demo_under_load/1"
            )
        seen.add((messages(options.reference)[1], results(options.reference / "summary.json")))
    failed = 0
    others = [subprocess.Popen(["yes"], stdout=subprocess.DEVNULL) for _ in range(options.beside)]
    print(
        f"{'run':>4} {'exit':>4} {'time [s]':>8} {'CPU [s]':>7} {'messages':>9}  {'digest':<16}  {'results':<16}  last line"
    )
    try:
        for number in range(1, options.runs + 1):
            output = options.output / str(number)
            code, duration, processor, line = run(output, options, dice)
            count, digest, found = 0, "", ""
            if code == 0:
                count, digest = messages(output)
                found = results(output / "summary.json")
                seen.add((digest, found))
            failed += code != 0
            print(
                f"{number:>4} {code:>4} {duration:>8.1f} {processor:>7.1f} {count:>9}  {digest:<16}  {found:<16}  {line}",
                flush=True,
            )
    finally:
        for other in others:
            other.kill()
    print(
        f"{options.runs - failed} of {options.runs} succeeded; {'equal' if len(seen) <= 1 else 'NOT EQUAL'}"
    )
    return int(failed > 0 or len(seen) > 1)


if __name__ == "__main__":
    sys.exit(main())
