"""Jobs of ``stribeck identify fleet``, each in its own process: read one servo's recordings, or fit one law to them."""

from __future__ import annotations

import os
import pickle
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import jax

from stribeck.api.servo import tasks_of
from stribeck.api.servo_notes import control_notes, supply_notes
from stribeck.cli.identify.servo.options import IdentifyServoOptions
from stribeck.cli.identify.servo.run import question_of
from stribeck.cli.inputs import recordings_of
from stribeck.errors import RecordingError, StribeckError
from stribeck.fleet.fits import Prepared, inputs_digest
from stribeck.identify.common.jobs import ABANDONED
from stribeck.identify.servo.drive import fitted_drive
from stribeck.identify.servo.identify import identify
from stribeck.identify.servo.selection import check_freed
from stribeck.identify.servo.task import FitTask
from stribeck.model.joint import Drive
from stribeck.model.log import Log
from stribeck.recordings.sources import check_names, files_digest


def prepare(options: IdentifyServoOptions, folders: Sequence[Path], laws: Sequence[str]) -> Prepared:
    """Read all readable recordings of a servo, and check its options.

    :raises StribeckError: if no recording can be read, or options contradict each other or the recordings.
    """
    recordings = files_digest(folders)
    left_out: list[str] = []
    notes: list[str] = []
    logs = _logs(options, folders, left_out, notes)
    tasks = tasks_of(question_of(options), logs, laws)
    notes += [*supply_notes(logs, tasks[0].actuator), *control_notes(logs, tasks[0].actuator)]
    return Prepared(
        tasks=pickle.dumps(dict(zip(laws, tasks, strict=True))),
        freed=tuple(options.free),
        inputs={law: inputs_digest(options.decisive, law, recordings) for law in laws},
        left_out=tuple(left_out),
        notes=tuple(notes),
    )


def fit_law(prepared: Prepared, law: str, compiled: Path | None) -> Drive:
    """Fit one law.

    :param compiled: folder in which processes share compiled programs.
    :raises StribeckError: if the fit fails.
    """
    if compiled is not None:
        _share_compiled(compiled)
    abandoned = ABANDONED.get()
    task: FitTask = pickle.loads(prepared.tasks)[law]  # noqa: S301 - written by this program
    try:
        if prepared.freed:
            check_freed(task, prepared.freed, stop=abandoned)
        file = fitted_drive(identify(task, stop=abandoned))
    except KeyboardInterrupt:
        raise StribeckError("abandoned: its result is no longer needed") from None
    assert file.provenance is not None  # noqa: S101 - set by every fit
    runs = replace(file.provenance.runs, inputs=prepared.inputs[law], unreadable=prepared.left_out)
    return replace(file, provenance=replace(file.provenance, runs=runs))


def _logs(
    options: IdentifyServoOptions, folders: Sequence[Path], left_out: list[str], notes: list[str]
) -> list[Log]:
    logs: list[Log] = []
    for folder in folders:
        here = replace(options, recordings=(folder,))
        before = len(left_out)
        try:
            logs += recordings_of(
                here, options.servo, notes.append, lambda error: left_out.append(str(error))
            )
        except RecordingError as error:
            if len(left_out) == before:
                left_out.append(str(error))
    if not logs:
        more = f" (and {len(left_out) - 1} more)" if len(left_out) > 1 else ""
        raise RecordingError(f"no recording can be used: {left_out[0]}{more}")
    check_names(logs, ", ".join(map(str, folders)))
    return logs


def _share_compiled(folder: Path) -> None:
    """Make JAX load programs compiled by another process, as for servos of one type with similar recordings.

    A cache folder configured by the user stays in use.
    """
    if "JAX_COMPILATION_CACHE_DIR" in os.environ:
        return
    jax.config.update("jax_compilation_cache_dir", str(folder))  # type: ignore[no-untyped-call]
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.1)  # type: ignore[no-untyped-call]
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", 0)  # type: ignore[no-untyped-call]
