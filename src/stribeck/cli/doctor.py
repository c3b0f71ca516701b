"""``stribeck doctor``: what is here, what is missing, and what is wrong in the ROS graph, with the line that mends it."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path

import numpy as np

import stribeck
from stribeck.cli.inputs import write_json
from stribeck.cli.options import Positive, declared, option
from stribeck.nodes.checks import Diagnosis, graph_findings, machine_findings

SIGNS = {"ok": "ok     ", "note": "note   ", "warning": "warning", "error": "ERROR  "}

NOT_CLEAN = 2


@declared
class DoctorOptions:
    """Options: how long to listen, and where to write."""

    seconds: Positive = option("how long to listen to the ROS graph (default: 4)", 4.0, "S")
    machine_only: bool = option("check this computer only, not the ROS graph")
    json: Path | None = option("write the findings as JSON")
    strict: bool = option("exit code 2 if there is an error")


def run(options: DoctorOptions) -> int:
    """Print the findings, with what mends each."""
    findings = []
    for finding in _findings(options):
        findings.append(finding)
        print(f"{SIGNS[finding.level]} {finding.subject}: {finding.text}", flush=True)
        if finding.fix:
            print(f"{'':8}fix: {finding.fix}", flush=True)
    if options.json is not None:
        write_json(options.json, {"findings": [asdict(finding) for finding in findings]})
    failed = options.strict and any(finding.level == "error" for finding in findings)
    return NOT_CLEAN if failed else 0


def _findings(options: DoctorOptions) -> Iterator[Diagnosis]:
    versions = f"Python {platform.python_version()}, numpy {np.__version__}, {platform.machine()}"
    yield Diagnosis("ok", f"Stribeck {stribeck.__version__}", f"{versions}, {os.cpu_count()} CPUs")
    yield from _extras()
    yield from machine_findings()
    if options.machine_only or find_spec("rclpy") is None:
        return
    try:
        from stribeck.nodes.survey import observe

        seen = observe(options.seconds)
    except (
        Exception
    ) as error:  # from rclpy or the middleware, built for another Python or distribution, for example
        text = f"cannot be used: {type(error).__name__}: {' '.join(str(error).split())}"
        yield Diagnosis(
            "error",
            "ROS 2",
            text,
            "use the Python version for which ROS was built, in a new shell in which no other environment is active",
        )
        return
    yield from graph_findings(seen)


def _extras() -> Iterator[Diagnosis]:
    from stribeck.api.extras import EXTRAS

    missing: dict[str, list[str]] = {}
    for module, extra in EXTRAS.items():
        if module != "rclpy" and find_spec(module) is None:
            missing.setdefault(extra, []).append(module)
    for extra, modules in missing.items():
        yield Diagnosis("note", "packages", f"no {', '.join(modules)}", f"pip install 'stribeck[{extra}]'")
