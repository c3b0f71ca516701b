"""Identification of the friction of one joint from tables of motion and torque."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Literal

from stribeck.api.choices import JOINT_TERMS, LAWS_OR_AUTO
from stribeck.api.fit import Fit
from stribeck.api.recordings import Given, as_recordings, paths_of, warn
from stribeck.api.stages import StageLine
from stribeck.errors import RecordingError, check_valid
from stribeck.files.actuators import load_actuator
from stribeck.files.drives import Drives
from stribeck.identify.joint.identify import JointResult
from stribeck.identify.joint.identify import identify_joint as identified
from stribeck.identify.joint.joint_file import ACTUATOR, joint_file
from stribeck.identify.joint.recording import Known, Recording, recording_of
from stribeck.recordings.tables.readers import find_tables
from stribeck.survey.joint_table import Column, parse_columns, read_joint_table

SETTABLE = ("kt", "inertia", "gravity")
"""What may be known of a joint: torque per current [N m/A], inertia [kg m²], torque of gravity at the horizontal link [N m]."""


def read_joint_recordings(
    paths: Sequence[Path],
    told: Mapping[str, Column | None],
    joint: str | None,
    known: Known,
    note: Callable[[str], None],
) -> list[Recording]:
    """The recordings of a joint; of several, those that cannot be used are left out with a note.

    :raises RecordingError: if none can be used.
    """
    found, refused = [], []
    for path in find_tables(paths):
        try:
            table = read_joint_table(path, told, joint)
            found.append(recording_of(table, known))
        except RecordingError as error:
            refused.append(error)
            continue
        for text in table.notes:
            note(text)
    if refused and not found:
        raise refused[0]
    for problem in refused:
        note(f"{problem}; this recording is not used")
    return found


def joint_result(
    paths: Sequence[Path],
    validate: Sequence[Path],
    *,
    law: str,
    terms: Sequence[str],
    columns: str,
    joint: str | None,
    fixed: Mapping[str, float],
    tell: Callable[[str], None],
    note: Callable[[str], None],
) -> JointResult:
    """Read and identify; see :func:`identify_joint`.

    :param columns: as text, ``position=q:deg,torque=i:A``.
    :param tell: receives the stages of the computation.
    :param note: receives what the user should know.
    """
    check_valid(fixed, SETTABLE, "fixed: unknown")
    told = parse_columns(columns)
    known = Known(fixed.get("kt"), fixed.get("inertia", 0.0), fixed.get("gravity", 0.0))
    excluded = ["inertia"] if "inertia" in fixed else []
    excluded += ["angle"] if "gravity" in fixed else []
    runs = read_joint_recordings(paths, told, joint, known, note)
    others = read_joint_recordings(validate, told, joint, known, note) if validate else []
    result = identified(runs, others, law, terms, excluded, tell)
    for notice in result.notices:
        note(notice.text)
    return result


def identify_joint(
    runs: Given,
    *,
    law: str | Literal["auto"] = "auto",
    terms: Iterable[str] = (),
    columns: Mapping[str, str] | None = None,
    joint: str | None = None,
    fixed: Mapping[str, float] | None = None,
    validate: Given | None = None,
    progress: bool = True,
) -> Fit:
    """Identify the friction of one joint from time, position and torque (or current).

    :param runs: tables (CSV, MAT, NPZ, Parquet) or bags.
    :param law: ``m1`` to ``m6``, or ``auto``: the law that predicts best what is left out.
    :param terms: terms that the law has in any case: ``presliding``, ``asymmetric``, ``temperature``, ``position``.
    :param columns: columns and units where names do not tell them: ``{"position": "q:deg", "torque": "i:A"}``; ``"none"`` leaves
        a signal out.
    :param joint: in tables of several joints that move, its name, or its number from 1 as text.
    :param fixed: what is known: ``kt`` [N m/A], ``inertia`` [kg m²], ``gravity`` (at the horizontal link) [N m]; 0 removes a part from the model.
    :param validate: recordings that are predicted only.
    :param progress: show the stages of the computation.
    :raises RecordingError: for recordings that cannot be used.
    :raises ConfigError: for arguments that are not valid.
    """
    check_valid(law, LAWS_OR_AUTO, "unknown friction law")
    terms = tuple(terms)
    check_valid(terms, JOINT_TERMS, "unknown terms")
    given = as_recordings(runs)
    with StageLine(not progress) as stages:
        result = joint_result(
            paths_of(given),
            paths_of(validate),
            law=law,
            terms=terms,
            columns=",".join(f"{signal}={where}" for signal, where in (columns or {}).items()),
            joint=joint,
            fixed=dict(fixed or {}),
            tell=stages.tell,
            note=warn,
        )
    drive = joint_file(result, load_actuator(ACTUATOR))
    structure = result.fit.structure
    title = ", ".join((structure.law.title, *structure.terms))
    return Fit(
        Drives({joint or "": drive}, provenance=drive.provenance), runs=given, result=result, title=title
    )
