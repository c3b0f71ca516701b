"""Parameter files and recordings for the tests of reports, made without a search."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from helpers import log_of
from recovery import Bench, truth_of, virtual_logs
from stribeck.evaluate.assessment import Assessment, assess
from stribeck.files.actuators import load_actuator
from stribeck.model.estimate import Estimate
from stribeck.model.joint import CorrelationMatrix, Drive
from stribeck.model.law import law_named
from stribeck.model.log import Log
from stribeck.model.provenance import Minimum, Provenance, Runs, SearchRecord, SimulationSettings
from stribeck.recordings.sources import digest_of, fingerprint
from virtual import Encoder

BENCH = Bench("mx106", (0.5, 1.5), 0.15, 0.05, (8.0, 32.0), 15.0)
STEP = 2.0 * np.pi / 4096.0


def logs_of(law: str = "m3") -> list[Log]:
    """Sixteen runs of a servo whose friction is known, with temperatures."""
    logs = virtual_logs(BENCH, truth_of(BENCH, law), law, Encoder(STEP, STEP))
    warmer = [
        replace(log, temperature=log_of(log.position.time, temperature=30.0 + k).temperature)
        for k, log in enumerate(logs)
    ]
    return [replace(log, name=f"{k:02d} {log.name}") for k, log in enumerate(warmer)]


def values_of(law: str, **changes: float) -> dict[str, float]:
    """The true values of the recordings."""
    return {**truth_of(BENCH, law).values(), **changes}


def stated_of(law: str, **changes: Estimate) -> dict[str, Estimate]:
    """Estimates of the true values, every parameter within 1 %."""
    return {
        p.name: Estimate(p.value, p.unit, "determined", (p.value - 0.01 * abs(p.value), p.value + 0.01 * abs(p.value)))
        for p in truth_of(BENCH, law)
    } | changes  # fmt: skip


def provenance_of(fitted: Sequence[Log], held_out: Sequence[Log] = (), **changes: Any) -> Provenance:
    """What a fit to these runs would say of its origin."""
    runs = (*fitted, *held_out)
    content: dict[str, Any] = {
        "runs": Runs(
            "as told",
            tuple(log.name for log in fitted),
            tuple(log.name for log in held_out),
            {log.name: digest_of(log) for log in runs},
            fingerprint(runs),
        ),
        "simulation": SimulationSettings(0.005, "semi-implicit"),
        "search": SearchRecord(
            "hybrid",
            0,
            4000,
            "converged",
            clusters="runs",
            minima=(Minimum(0.0100, {"kt": 1.0, "R": 4.0}), Minimum(0.0101, {"kt": 1.2, "R": 5.0})),
            convergence=((100, 0.08), (900, 0.02), (3900, 0.01)),
        ),
        "versions": {"stribeck": "0.1.0", "jax": "0.10"},
    }
    return Provenance(**{**content, **changes})


def file_of(law: str, provenance: Provenance | None, **changes: Any) -> Drive:
    """A drive with the true values, or some others (``values``), as a fit would state it."""
    values = values_of(law, **changes.pop("values", {}))
    known: dict[str, Any] = {}
    if provenance is not None:
        known = {
            "stated": stated_of(law),
            "bounds": {parameter.name: (parameter.lower, parameter.upper) for parameter in truth_of(BENCH, law).free},
            "correlation": CorrelationMatrix(("kt", "R"), ((1.0, 0.97), (0.97, 1.0))),
            "provenance": provenance,
        }  # fmt: skip
    return Drive(load_actuator(BENCH.actuator), law_named(law), values, **{**known, **changes})


def assessed(files: Mapping[str, Drive], logs: Sequence[Log]) -> Assessment:
    """Files by label, held against recordings."""
    return assess([(label, Path(f"{label}.json"), file) for label, file in files.items()], logs)
