"""The fits of a fleet: check whether they are up to date, and compare them."""

from __future__ import annotations

import csv
import hashlib
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import stribeck
from stribeck.errors import ParameterFileError
from stribeck.files.drives import read_drive
from stribeck.model.actuator import Actuator
from stribeck.model.joint import Drive

SCHEMA = 1

LEFT_OUT = "left_out"
"""Key of the unreadable recordings in the same block."""

BEST_WITHIN = 1.02
"""The best law is the one with the fewest parameters among those whose error is within this ratio of the lowest."""


@dataclass(frozen=True, eq=False)
class Prepared:
    """One servo whose recordings and options were read and checked.

    :param tasks: pickled :class:`stribeck.identify.servo.task.FitTask` by law, so that they can be forwarded without JAX.
    :param freed: effect parameters that were freed.
    :param inputs: :func:`inputs_digest` of each law.
    :param left_out: unreadable recordings and the reasons.
    :param notes: warnings for the user.
    """

    tasks: bytes
    freed: tuple[str, ...]
    inputs: Mapping[str, str]
    left_out: tuple[str, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True)
class Fit:
    """One line of a fleet's summary.

    :param train, validation: mean absolute errors [rad].
    :param free: number of identified parameters.
    :param runs: number of fitted runs.
    :param failure: reason why the fit failed; empty if it succeeded.
    :param left_out: unreadable recordings and the reasons.
    """

    servo: str
    law: str
    params: str
    actuator: str = ""
    train: float | None = None
    validation: float | None = None
    free: int | None = None
    runs: int | None = None
    evaluations: int | None = None
    outcome: str = ""
    failure: str = ""
    left_out: tuple[str, ...] = ()

    @property
    def error(self) -> float:
        """Error used to compare laws [rad], on held-out runs if available."""
        error = self.train if self.validation is None else self.validation
        return float("inf") if error is None else error


def inputs_digest(options: Mapping[str, Any], law: str, recordings: str) -> str:
    """Digest of everything that determines a fit: recordings, options, law and software version.

    Files named in options (``signals``, ``actuator``, ``bench``) enter by content, not by path.

    :param recordings: see :func:`stribeck.recordings.sources.files_digest`.
    """
    named = {
        key: hashlib.sha256(Path(value).read_bytes()).hexdigest()
        for key, value in options.items()
        if key in ("signals", "actuator", "bench")
        and str(value).endswith((".yaml", ".yml"))
        and "=" not in str(value)
    }
    content = json.dumps(
        [stribeck.__version__, law, {**options, **named}, recordings], sort_keys=True, default=str
    )
    return "sha256:" + hashlib.sha256(content.encode()).hexdigest()


def up_to_date(path: Path, digest: str, actuator: Actuator | None) -> Drive | None:
    """The parameter file at ``path`` if it was fitted from these inputs, else ``None``."""
    if not path.is_file():
        return None
    try:
        file = read_drive(path, actuator)
    except ParameterFileError:  # damaged or of another format: the fit replaces it
        return None
    made_of = "" if file.provenance is None else file.provenance.runs.inputs
    return file if made_of == digest else None


def fit_of(servo: str, law: str, params: str, file: Drive) -> Fit:
    """Summary line of a parameter file written by a fleet fit."""
    provenance = file.provenance
    assert provenance is not None  # noqa: S101 - files of a fleet have one
    return Fit(
        servo=servo,
        law=law,
        params=params,
        actuator=file.actuator.name,
        train=file.loss.train,
        validation=file.loss.validation,
        free=len(file.bounds),
        runs=len(provenance.runs.train),
        evaluations=provenance.search.evaluations,
        outcome=provenance.search.outcome,
        left_out=provenance.runs.unreadable,
    )


def best_of(fits: Sequence[Fit]) -> Fit | None:
    """The best fit of one servo; see :data:`BEST_WITHIN`."""
    done = [fit for fit in fits if fit.train is not None]
    if not done:
        return None
    limit = BEST_WITHIN * min(fit.error for fit in done)
    return min((fit for fit in done if fit.error <= limit), key=lambda fit: (fit.free, fit.error))


def by_servo(fits: Sequence[Fit]) -> dict[str, list[Fit]]:
    """Fits grouped by servo, order preserved."""
    servos: dict[str, list[Fit]] = {}
    for fit in fits:
        servos.setdefault(fit.servo, []).append(fit)
    return servos


def left_out_of(fits: Sequence[Fit]) -> list[str]:
    """Unreadable recordings in one servo's fits."""
    return list(dict.fromkeys(reason for fit in fits for reason in fit.left_out))


def summary_json(fits: Sequence[Fit], complete: bool) -> str:
    """All fits as JSON; errors in rad.

    :param complete: whether every fit was attempted without interruption.
    """
    servos = by_servo(fits)
    best = {
        servo: best_fit.law if (best_fit := best_of(servo_fits)) else None
        for servo, servo_fits in servos.items()
    }
    left_out = {
        servo: reasons for servo, servo_fits in servos.items() if (reasons := left_out_of(servo_fits))
    }
    lines = [{key: value for key, value in asdict(fit).items() if key != LEFT_OUT} for fit in fits]
    content = {
        "schema": SCHEMA,
        "stribeck": stribeck.__version__,
        "complete": complete,
        "best": best,
        LEFT_OUT: left_out,
        "fits": lines,
    }
    return json.dumps(content, indent=1, allow_nan=False) + "\n"


def summary_csv(fits: Sequence[Fit]) -> str:
    """All fits as CSV; errors in rad, missing values empty."""
    text = io.StringIO()
    columns = [name for name in Fit.__dataclass_fields__ if name != LEFT_OUT]
    writer = csv.DictWriter(text, columns, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows(asdict(fit) for fit in fits)
    return text.getvalue()
