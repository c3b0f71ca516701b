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
from stribeck.files.parameter_file import ParameterFile, Provenance
from stribeck.model.law import law_named
from stribeck.model.log import Log
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


def provenance_of(
    law: str, fitted: Sequence[Log], held_out: Sequence[Log] = (), **changes: Any
) -> Provenance:
    """What a fit to these runs would say: every parameter within 1 %."""
    parameters = truth_of(BENCH, law)
    runs = (*fitted, *held_out)
    content: dict[str, Any] = {
        "units": {parameter.name: parameter.unit for parameter in parameters},
        "bounds": {parameter.name: (parameter.lower, parameter.upper) for parameter in parameters.free},
        "fixed": (),
        "intervals": {p.name: (p.value - 0.01 * abs(p.value), p.value + 0.01 * abs(p.value)) for p in parameters},
        "confidence": 0.95,
        "not_determined": {},
        "at_bounds": {},
        "statements": (),
        "loss": {"train_mae": None},
        "split": {
            "rule": "as told",
            "train": [log.name for log in fitted],
            "validation": [log.name for log in held_out],
        },
        "simulation": {"dt": 0.005, "integrator": "semi-implicit", "reset_period": None},
        "effects": (),
        "supply_voltage": None,
        "temperature": None,
        "data": {
            "fingerprint": fingerprint(runs),
            "runs": len(runs),
            "digests": {log.name: digest_of(log) for log in runs},
        },
        "search": {"method": "hybrid", "seed": 0, "evaluations": 4000, "outcome": "converged", "clusters": "runs"},
        "versions": {"stribeck": "0.1.0", "jax": "0.10"},
        "correlation": {"names": ("kt", "R"), "matrix": ((1.0, 0.97), (0.97, 1.0))},
        "minima": (
            {"error": 0.0100, "values": {"kt": 1.0, "R": 4.0}},
            {"error": 0.0101, "values": {"kt": 1.2, "R": 5.0}},
        ),
        "convergence": ((100, 0.08), (900, 0.02), (3900, 0.01)),
    }  # fmt: skip
    return Provenance(**{**content, **changes})


def file_of(law: str, provenance: Provenance | None, **values: float) -> ParameterFile:
    """A parameter file with the true values, or some others."""
    return ParameterFile(load_actuator(BENCH.actuator), law_named(law), values_of(law, **values), provenance)


def assessed(files: Mapping[str, ParameterFile], logs: Sequence[Log]) -> Assessment:
    """Files by label, held against recordings."""
    return assess([(label, Path(f"{label}.json"), file) for label, file in files.items()], logs)
