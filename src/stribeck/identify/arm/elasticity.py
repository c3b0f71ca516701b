"""Elasticity of the joints of an arm, from encoders on motors and links, beside the fit of its dynamics.

The torque that twists a transmission is that of the links, :mod:`stribeck.identify.common.transmission`. The fit tells both its instrument, the
torque of the links along the motion, and the rotor inertia, whose torque does not pass the transmission.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from stribeck.identify.arm.config import Protocol
from stribeck.identify.arm.consistent import ConsistentFit
from stribeck.identify.arm.friction.full_fit import FullFit
from stribeck.identify.arm.identify import Fit, arm_of
from stribeck.identify.arm.recordings import ArmRecording
from stribeck.identify.arm.signals import ZeroPhase, derivative, resample
from stribeck.identify.common.encoder_runs import FILTER, SHORTEST, EncoderRun
from stribeck.identify.common.transmission import Transmission, identify_transmission
from stribeck.model.arrays import Array
from stribeck.model.estimate import Estimate, estimates_to_json
from stribeck.model.joint import Drive

RATE = 250.0
"""Rate of the rows that are fitted [Hz]; faster samples are averaged."""


@dataclass(frozen=True, eq=False)
class Elasticity:
    """Elasticity of one joint.

    :param found: the transmission; ``None`` where it cannot be identified at all.
    :param reason: why the stiffness is not identifiable; empty if it is.
    :param rms: of the twist that is measured, and of the part that the model does not explain, by set of recordings [rad].
    """

    found: Transmission | None
    reason: str
    rms: dict[str, tuple[float, float]]

    def to_json(self) -> dict[str, Any]:
        """The entry of a joint in ``elasticity`` of ``--json``."""
        errors = {name: {"twist": twist, "error": error} for name, (twist, error) in self.rms.items()}
        if self.found is None:
            return {"stiffness": None, "reason": self.reason}
        return {
            **self.found.stiffness_to_json(),
            "estimates": estimates_to_json(self.found.estimates),
            "rms": errors,
            "left_out": self.found.left_out,
        }

    @property
    def estimates(self) -> dict[str, Estimate]:
        """Stiffness, backlash and damping for the file of drives, those that are identifiable."""
        if self.found is None:
            return {}
        named = {"stiffness": self.found.stiffness}
        named |= {name: self.found.estimates.get(name) for name in ("backlash", "damping")}
        return {f"transmission_{name}": one for name, one in named.items() if one is not None and one.known}

    @property
    def statement(self) -> str:
        """What the recordings do not tell, empty if they do."""
        return f"the stiffness of the transmission is not identifiable: {self.reason}" if self.reason else ""


def elastic_joints(
    fit: Fit, train: Sequence[ArmRecording], validation: Sequence[ArmRecording], protocol: Protocol
) -> dict[str, Elasticity]:
    """Elasticity of the joints that have encoders on both sides, by name; empty without any.

    :param fit: of the dynamics to the same recordings.
    """
    runs = {
        name: [one for run in part if (one := _encoder_run(run, fit, protocol)) is not None]
        for name, part in (("train", train), ("validation", validation))
    }
    found = {}
    for k, joint in enumerate(fit.machine.joints):
        usable = {name: [run for run in part if _moves(run, k)] for name, part in runs.items()}
        if usable["train"]:
            found[joint] = _of_joint(
                fit, {name: [_alone(run, k) for run in part] for name, part in usable.items()}, k
            )
    return found


def with_elasticity(drive: Drive, found: Elasticity) -> Drive:
    """The drive with what is known of its transmission among its estimates."""
    said = (found.statement,) if found.statement else ()
    return replace(drive, stated={**drive.stated, **found.estimates}, statements=(*drive.statements, *said))


def _of_joint(fit: Fit, runs: dict[str, list[EncoderRun]], k: int) -> Elasticity:
    if arm_of(fit) is None:
        reason = "the inertia of links and rotors is not known one by one: give the URDF, and choose the fits `consistent` or `full`"
        return Elasticity(None, reason, {})
    if fit.machine.arm is not None and fit.machine.arm.linear[k]:
        return Elasticity(None, "the joint is prismatic", {})
    coupled = [name for name, weights in fit.machine.couplings.items() if weights[k] != 0.0]
    if coupled:
        return Elasticity(None, f"the coupling {coupled[0]} also loads it", {})
    found = identify_transmission(runs["train"], 0)
    rms = {}
    for name, part in runs.items():
        if part:
            twist = np.concatenate([run.motor[:, 0] - run.link[:, 0] for run in part])
            left = twist - np.concatenate([found.model.predict(run, 0) for run in part])
            rms[name] = float(np.std(twist)), float(np.sqrt(np.mean(left**2)))
    return Elasticity(found, found.reason, rms)


def _moves(run: EncoderRun, k: int) -> bool:
    """Whether both encoders of a joint move."""
    return bool(np.ptp(run.motor[:, k]) > 0.0 and np.ptp(run.link[:, k]) > 0.0)


def _alone(run: EncoderRun, k: int) -> EncoderRun:
    load = None if run.load is None else run.load[:, [k]]
    parts = (run.motor[:, [k]], run.link[:, [k]], run.torque[:, [k]])
    return EncoderRun(run.name, run.dt, *parts, run.inertia[[k]], load)


def _encoder_run(run: ArmRecording, fit: Fit, protocol: Protocol) -> EncoderRun | None:
    """A recording on one grid; ``None`` if it is too short, or has no motor positions."""
    if run.name in protocol.rows:
        run = run.between(*protocol.rows[run.name])
    if run.motor is None:
        return None
    steps = np.diff(run.time)
    width = max(int(1.0 / RATE / float(np.median(steps)) + 1e-6), 1)
    time, position, effort = (_averaged(values, width) for values in (run.time, run.position, run.effort))
    motor = _averaged(run.motor, width)
    dt = float(np.median(np.diff(time)))
    if time[-1] - time[0] < SHORTEST + dt:
        return None
    grid = np.arange(time[0], time[-1], dt)
    delay = fit.choice.delay if isinstance(fit, FullFit) else 0.0
    link, motor = (resample(time, np.nan_to_num(values), grid) for values in (position, motor))
    return EncoderRun(
        run.name, dt, motor, link, resample(time + delay, effort, grid), _rotors(fit), _load(fit, link, dt)
    )


def _averaged(values: Array, width: int) -> Array:
    whole = len(values) // width * width
    return np.asarray(values[:whole].reshape(-1, width, *values.shape[1:]).mean(axis=1))


def _rotors(fit: Fit) -> Array:
    """Rotor inertia of each joint at its side [kg m²]."""
    if isinstance(fit, FullFit):
        return np.array([fit.values(joint)["armature"] for joint in fit.machine.joints])
    named = dict(zip(fit.names, fit.values, strict=True)) if isinstance(fit, ConsistentFit) else {}
    return np.array([float(named.get(f"Ia_{joint}", 0.0)) for joint in fit.machine.joints])


def _load(fit: Fit, link: Array, dt: float) -> Array | None:
    """Torque of the links along the motion (T, n) [N m]."""
    arm = arm_of(fit)
    if arm is None:
        return None
    rate = 1.0 / dt
    position = ZeroPhase(4, FILTER)(link, rate) if 0.45 * rate > FILTER else link
    velocity = derivative(position, dt)
    return arm.inverse_dynamics(position, velocity, derivative(velocity, dt))
