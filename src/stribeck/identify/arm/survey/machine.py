"""Survey of a machine: everything of its file that a URDF and recordings tell, each value with its reason."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil
from pathlib import Path
from typing import Any

import numpy as np

from stribeck.errors import ConfigError, RecordingError
from stribeck.files.commented_yaml import open_keys
from stribeck.identify.arm.config import FilterSettings, Protocol
from stribeck.identify.arm.model import ArmModel, load_arm
from stribeck.identify.arm.motion import ProcessedMotion, motion_of, segments
from stribeck.identify.arm.recordings import ArmRecording, check_finite, completed, run_of_tracks
from stribeck.identify.arm.signals import ZeroPhase, derivative, resample
from stribeck.identify.arm.survey.effort import EffortSurvey, effort_source, survey_effort
from stribeck.identify.arm.survey.joints import JointChoice, choose_joints
from stribeck.identify.arm.survey.reading import JointTracks, read_joint_tracks
from stribeck.identify.arm.survey.spectra import HIGHER, NOISE_SHARE, SHARE, Bandwidth, bandwidth_of
from stribeck.identify.arm.survey.tables import read_joint_table_tracks
from stribeck.identify.arm.survey.units import POSITIONS, VELOCITIES, UnitSurvey, source_of, survey_units
from stribeck.model.arrays import Array
from stribeck.recordings.bags.storage import is_bag
from stribeck.rigid.urdf import read_urdf

RECORDINGS = (".mcap", ".csv", ".txt", ".mat", ".npz")
"""Suffixes of recordings that can be surveyed; that of bags stands for their folders, too."""

ORDER = 4
"""Order of the filters."""

SLOW = 0.02
"""Threshold of moving rows, relative to the largest velocity of the slowest joint."""

NOISY = 5.0
"""Smallest threshold of moving rows, in standard deviations of the filtered velocity."""

AT_REST = 0.25
"""Rest velocity, relative to the threshold of moving rows, at most."""

FINER = 5.0
"""Smallest rate of the fitted rows, in multiples of the cut-off frequency."""

JITTER = 0.2
"""Largest spread of sampling intervals, relative to the median, that needs no resampling."""

STUCK = 0.1
"""Largest share of moving rows in which the joint stands still, as a filter shows it of motion that sticks and slips."""

HIGHER_THRESHOLD, FASTEST = 1.5, 0.2
"""Factor by which the threshold of moving rows is raised for such motion, up to this share of the slowest joint's largest velocity."""

LEFT = 0.1
"""Share of the moving rows that is left at least when the threshold is raised."""

AROUND, SLOWER = 0.1, 0.3
"""A joint stands still in a row if it travels less than this share of the threshold, so long before and after it [s]."""

DIGITS = 2


@dataclass(frozen=True)
class Finding:
    """One value of the machine's file.

    :param key: keys from the top of the file, separated by points.
    :param reason: what the value was found from.
    """

    key: str
    value: Any
    reason: str = ""


@dataclass(frozen=True)
class Survey:
    """What a URDF and recordings tell about a machine.

    :param findings: values of the machine's file, in its order.
    :param notes: lines about joints that are left out, and about what looks wrong.
    """

    joints: tuple[str, ...]
    findings: tuple[Finding, ...]
    notes: tuple[str, ...]

    @property
    def open_keys(self) -> tuple[str, ...]:
        """Keys whose value has to be filled in by hand."""
        return open_keys((found.key, found.value) for found in self.findings)

    def check_complete(self, path: str) -> None:
        """Refuse values that have to be filled in by hand.

        :raises ConfigError: with what was found about the first of them.
        """
        for key in self.open_keys:
            found = next(one for one in self.findings if key.startswith(one.key))
            raise ConfigError(
                f"{path}: enter a value for {key} ({found.reason}), then give this file as `machine`"
            )


def survey(urdf: Path, recordings: Sequence[Path]) -> Survey:
    """Find the values of a machine's file.

    :param recordings: bags, or tables of one format.
    :raises RecordingError: if no joint of the URDF moves in the recordings, or none of them has effort.
    """
    robot = read_urdf(urdf)
    bags = [_read(path, robot.movable) for path in recordings]
    choice = choose_joints(robot, bags)
    arm = load_arm(urdf, choice.joints)
    whole = [run_of_tracks(bag.path, bag.tracks, choice.joints) for bag in bags]
    for run in whole:
        check_finite(run)
    read = [completed(part) for run in whole for part in segments(run)]
    units = survey_units(read, arm)
    runs = [units.in_si(run) for run in read]
    rate, jitter = _rate(runs)
    width, quieter = _bandwidth(runs, rate)
    if quieter:
        runs = [replace(run, velocity=None) for run in runs]
    protocol = _protocol(runs, rate, jitter, width)
    motions = [
        motion_of(run, protocol) for run in runs if len(run.time) > 20 * protocol.every + 2 * protocol.drop
    ]
    effort = survey_effort(arm, motions)
    findings = (
        *_head(urdf, choice, arm),
        *_signals(bags, whole, units, effort, arm),
        *_processing(protocol, width, len(runs) - len(whole), quieter),
        *_limits(arm, motions),
    )
    notes = (*choice.notes, *units.notes, *_changes(arm, effort), *(note.text for note in effort.notes))
    return Survey(choice.joints, findings, notes)


def _changes(arm: ArmModel, effort: EffortSurvey) -> list[str]:
    """What of signs and efforts is not taken as it was recorded."""
    notes = ["efforts are taken as mN m"] if effort.kind == "millitorque" else []
    for what, signs in (("position", effort.position_signs), ("effort", effort.effort_signs)):
        turned = [joint for joint, sign in zip(arm.joints, signs, strict=True) if sign < 0.0]
        if turned:
            notes.append(
                f"the sign of the {what} of {', '.join(turned)} is opposite to that in the URDF, and is reversed"
            )
    return notes


def _read(path: Path, joints: Sequence[str]) -> JointTracks:
    return read_joint_tracks(path, joints) if is_bag(path) else read_joint_table_tracks(path, joints)


def _rate(runs: Sequence[ArmRecording]) -> tuple[float, bool]:
    """Sampling rate [Hz], and whether intervals vary so much that samples have to be interpolated."""
    steps = np.concatenate([np.diff(run.time) for run in runs])
    middle = float(np.median(steps))
    mean = float(np.mean(steps[steps < 3.0 * middle]))
    return 1.0 / mean, bool(np.ptp(steps) > JITTER * middle)


def _bandwidth(runs: Sequence[ArmRecording], rate: float) -> tuple[Bandwidth, str]:
    """Bandwidth of the motion, and why positions are differentiated although velocities were measured.

    Drives often report differences of coarse positions, filtered and sampled again, whose accelerations are noisier than
    those of the positions. The reason is empty if measured velocities are quieter, or there are none.
    """
    measured = bandwidth_of(runs, rate)
    if measured.order == 2:
        return measured, ""
    positions = bandwidth_of([replace(run, velocity=None) for run in runs], rate)
    cutoff = min(measured.cutoff, positions.cutoff)
    noise = [float(np.median(width.acceleration_noise(cutoff))) for width in (positions, measured)]
    if noise[0] >= noise[1]:
        return measured, ""
    return positions, (
        f"accelerations up to {cutoff:.2g} Hz are less noisy if computed from positions ({noise[0]:.2g}) than from measured velocities ({noise[1]:.2g})"
    )


def _protocol(runs: Sequence[ArmRecording], rate: float, jitter: bool, width: Bandwidth) -> Protocol:
    """Filters by the spectra, thresholds by the noise of the filtered velocities."""
    cutoff = _rounded(width.cutoff)
    speeds = np.max([np.abs(_velocity(run)).max(axis=0) for run in runs], axis=0)
    noise = float(width.velocity_noise(cutoff).max())
    filtering = FilterSettings(ORDER, cutoff)
    moving = max(SLOW * float(speeds.min()), NOISY * noise)
    share, first = smeared(runs, moving, rate, filtering)
    sticking = share > STUCK
    while share > STUCK and moving < FASTEST * float(speeds.min()):
        share, rows = smeared(runs, HIGHER_THRESHOLD * moving, rate, filtering)
        if rows < LEFT * first:
            break
        moving *= HIGHER_THRESHOLD
    return Protocol(
        moving=_rounded(moving),
        resample=_rounded(rate, 4) if jitter else None,
        position_filter=filtering,
        effort_filter=filtering,
        every=max(1, int(rate / (FINER * cutoff))),
        drop=ceil(rate / cutoff),
        rest=_rounded(min(max(NOISY * noise, 1e-4), AT_REST * moving)),
        fit="moving",
        sticking=sticking,
    )


def smeared(
    runs: Sequence[ArmRecording], moving: float, rate: float, filtering: FilterSettings
) -> tuple[float, int]:
    """Share of the rows that are faster than ``moving`` after the filter, in which the joint hardly travels, and their number."""
    low_pass, rows, still = ZeroPhase(**vars(filtering)), 0, 0
    half = max(1, round(AROUND * rate))
    for run in runs:
        grid = np.arange(run.time[0], run.time[-1], 1.0 / rate)
        if len(grid) < 2 * half + 20:
            continue
        position = resample(run.time, run.position, grid)
        speed = np.abs(derivative(low_pass(position, rate), 1.0 / rate))[half:-half]
        travelled = np.abs(position[2 * half :] - position[: -2 * half])
        rows += int(np.sum(speed > moving))
        still += int(np.sum((speed > moving) & (travelled < SLOWER * moving * 2.0 * half / rate)))
    return still / max(rows, 1), rows


def _velocity(run: ArmRecording) -> Array:
    return np.gradient(run.position, run.time, axis=0) if run.velocity is None else run.velocity


def _rounded(value: float, digits: int = DIGITS) -> float:
    return float(f"{value:.{digits}g}")


def _head(urdf: Path, choice: JointChoice, arm: ArmModel) -> list[Finding]:
    linear = arm.linear
    kinds = "all joints are prismatic" if linear.all() else "all joints are revolute, or some are"
    chosen = "; ".join(("joints of the URDF that move and have effort", *choice.notes))
    return [
        Finding("schema", 1),
        Finding("name", urdf.stem, "taken from the file name of the URDF"),
        Finding("units", "linear" if linear.all() else "rotary", kinds),
        Finding("urdf", str(urdf.resolve())),
        Finding("joints", list(choice.joints), chosen),
    ]


def _signals(
    bags: Sequence[JointTracks],
    runs: Sequence[ArmRecording],
    units: UnitSurvey,
    effort: EffortSurvey,
    arm: ArmModel,
) -> list[Finding]:
    key, linear, signs = "identification.recording", arm.linear, effort.position_signs
    seconds = ", ".join(f"{run.name} {run.time[-1] - run.time[0]:.1f} s" for run in runs)
    topics = sorted({bag.topic for bag in bags})
    if len(topics) > 1:
        raise RecordingError(
            f"joint states are published on several topics, {', '.join(topics)}: describe the recordings of each topic separately"
        )
    first = bags[0]
    for other in bags[1:]:
        if (other.format, other.sources) != (first.format, first.sources):
            raise RecordingError(
                f"{other.path} and {first.path} have different columns or formats: describe the recordings of each format separately"
            )

    def source(signal: str, conversion: dict[str, object]) -> dict[str, object]:
        return {**first.sources[signal].of(arm.joints), **conversion}

    turned = [joint for joint, sign in zip(arm.joints, signs, strict=True) if sign < 0.0]
    reason = units.position_reason
    if turned:
        reason += f"; {', '.join(turned)} turn in the opposite direction to the URDF, judged by the torques of its links"
    position = source_of(units.position, linear, POSITIONS, signs)
    place = f"joint states on {first.topic}" if first.topic else "tables"
    findings = [Finding(f"{key}.format", first.format, f"{place}: {seconds}")]
    if "time" in first.sources:
        findings.append(Finding(f"{key}.time", first.sources["time"].of(()), "by its name"))
    findings.append(Finding(f"{key}.position", source("position", position), reason))
    if units.velocity is not None:
        velocity = source_of(units.velocity, linear, VELOCITIES, signs)
        findings.append(Finding(f"{key}.velocity", source("velocity", velocity), units.velocity_reason))
    conversion, reason = effort_source(arm, effort)
    return [*findings, Finding(f"{key}.effort", source("effort", conversion), reason)]


def _processing(protocol: Protocol, width: Bandwidth, gaps: int, quieter: str) -> list[Finding]:
    motion = f"{width.motion.min():.3g} to {width.motion.max():.3g} Hz"
    cutoff = protocol.position_filter.cutoff if protocol.position_filter else 0.0
    noise = float(width.velocity_noise(cutoff).max())
    filtered = "the frequency above which torques were filtered before recording (no sign of such a filter was found)"
    if np.isfinite(np.median(width.torque)):
        filtered = f"{np.median(width.torque):.3g} Hz, above which torques were filtered before recording"
    kind = "measured" if width.order == 1 else "differentiated"
    interval = f"{width.rate:.4g} samples a second" + (
        f", {gaps} gaps, at which recordings are split" if gaps else ""
    )
    filtering = {"order": ORDER, "cutoff": cutoff}
    found: dict[str, tuple[Any, str]] = {}
    if protocol.resample is not None:
        reason = f"intervals between samples vary by more than {100.0 * JITTER:g} %"
        found["resample"] = protocol.resample, reason
    if quieter:
        found["velocity"] = "differentiated", quieter
    found["position_filter"] = (
        filtering,
        f"the lowest of three frequencies, each the median over the joints: (1) {HIGHER:g} times the bandwidth of the motion ({100.0 * SHARE:g} % of the "
        f"power of the velocities is below {motion}); (2) where noise reaches {100.0 * NOISE_SHARE:g} % of the accelerations, {width.clear.min():.3g} to "
        f"{width.clear.max():.3g} Hz; (3) {filtered}",
    )
    found["effort_filter"] = filtering, "same filter as for positions, so that phase and gain are equal"
    found["every"] = protocol.every, f"{interval}; {FINER:g} times the cut-off frequency is enough"
    found["drop"] = protocol.drop, "one period of the cut-off frequency at each end, where the filters settle"
    found["moving"] = (
        protocol.moving,
        f"{100.0 * SLOW:g} % of the largest velocity of the slowest joint, but at least {NOISY:g} times "
        f"the noise of {kind}, filtered velocities, {noise:.2g}",
    )
    reason = f"{NOISY:g} times the noise of the velocities, at most {AT_REST:g} times `moving`"
    found["rest"] = protocol.rest, reason
    found["fit"] = protocol.fit, "only rows with motion, as the friction of a joint at rest is not known"
    if protocol.sticking:
        reason = f"in more than {100.0 * STUCK:g} % of the rows that are above `moving` after filtering, joints are at rest; `moving` is raised"
        found["sticking"] = True, reason
    return [Finding(f"identification.protocol.{key}", *one) for key, one in found.items()]


def _limits(arm: ArmModel, motions: Sequence[ProcessedMotion]) -> list[Finding]:
    largest = np.max([np.abs(motion.states.acceleration).max(axis=0) for motion in motions], axis=0)
    values = [_rounded(value) for value in largest.tolist()]
    reason = "largest acceleration in the recordings, for `stribeck design trajectory`; all other limits are those of the URDF"
    return [Finding("limits.acceleration", values, reason)]
