r"""Position servos whose goals act late: error of tracking and of holding with the goal moved against friction, per that without.

    python bench/position_servos.py [--declared] [--loaded] [--json FILE]

Each joint is :math:`J\ddot q = K(\theta_d(t - T) - q) - D\dot q - F`, F LuGre friction, as of hobby arms: states at 50 to 200 Hz, T of 80 or 140 ms from a goal to
the motor, damping ratios from 0.1, friction 0.3 to 2 times that of the file, encoder of 12 bit at the motor. Goals make moves with rests and follow a slow
sine. Errors are to the goal T earlier, which a servo without friction follows up to its own dynamics.

With ``--loaded`` the joints carry a weight and their friction grows with the torque of the gear, as in law M3. A model of the weight, also one that is
20 % wrong, moves the goals with and without friction compensation, and tells the compensation the load.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from plants.control import jerk_step
from plants.friction import FloatArray, FrictionValues, LuGre
from stribeck.files.actuators import load_actuator
from stribeck.live.compensator import Compensator
from stribeck.live.friction import JointModel
from stribeck.live.settings import Settings, Timing
from stribeck.model.bench import Pendulum
from stribeck.model.joint_map import JointMap
from stribeck.model.law import law_named
from stribeck.rigid.dynamics import IndependentJoints

INERTIA, COULOMB, VISCOUS, STIFFNESS = 0.004, 0.08, 0.02, 7.0
"""[kg m²], as identified [N m, N m s/rad], and of the servo's loop [N m/rad]."""

SCALES, LATENCIES, DAMPINGS, RATES = (0.3, 0.5, 1.0, 1.5, 2.0), (0.08, 0.14), (0.1, 0.3, 0.8), (50, 100, 200)
RESOLUTION = 2.0 * np.pi / 4096
INNER = 5e-4
SECONDS = 16.0
GRAVITY = 9.80665


class Load(NamedTuple):
    """Weight of each joint, and friction that grows with the torque of its gear.

    :param weight: largest torque of gravity [N m].
    :param hangs: position of the goal's start from where it hangs [rad].
    :param share: growth of the friction with the difference of motor and external torque [1].
    :param model: torque of gravity of the model over the true one [1].
    :param told: whether the compensation has the model, beside the controller.
    """

    weight: float = 0.3
    hangs: float = 0.6
    share: float = 0.15
    model: float = 1.0
    told: bool = True


UNLOADED = Load(weight=0.0, share=0.0, told=False)


def path(t: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Goal, and whether it has rested for half a second: moves to and fro, then a slow sine."""
    total, rests = np.zeros_like(t), np.ones_like(t)
    sign = 1.0
    for begin in (1.0, 3.0, 5.0, 7.0):
        total += sign * 0.4 * jerk_step((t - begin) / 1.0)[0]
        rests[(t >= begin) & (t < begin + 1.6)] = 0.0
        sign = -sign
    sine = (t >= 9.0) & (t < 15.0)
    total += np.where(sine, 0.15 * (1.0 - np.cos(2.0 * np.pi * (t - 9.0) / 3.0)), 0.0)
    rests[(t >= 9.0) & (t < 15.6)] = 0.0
    return total, rests


def conditions() -> list[tuple[float, float, float]]:
    """Friction scale, latency and damping ratio of each joint."""
    return list(product(SCALES, LATENCIES, DAMPINGS))


def simulated(
    rate: int, compensated: bool, declared: bool, load: Load = UNLOADED
) -> tuple[FloatArray, FloatArray]:
    """Errors of tracking, and of holding 0.6 s after the goal came to rest: root mean squares (n,) [rad]."""
    scale, latency, damping = (np.array(column) for column in zip(*conditions(), strict=True))
    n, dt = len(scale), 1.0 / rate
    zero = np.zeros(n)
    friction = LuGre(
        FrictionValues(
            coulomb=COULOMB * scale, stiction=1.25 * COULOMB * scale, viscous=VISCOUS * scale, stribeck_velocity=zero + 0.1,
            presliding=zero + 2e-3, inertia=zero + INERTIA, asymmetry=zero, ripple=zero, ripple_wave=zero, load_share=load.share * scale,
        )
    )  # fmt: skip
    drag = 2.0 * damping * np.sqrt(STIFFNESS * INERTIA)
    engines = _engines(latency, declared, load) if compensated else []
    steps, inner = round(SECONDS / dt), round(dt / INNER)
    times: FloatArray = np.arange(steps) * dt
    goals, rests = path(times)
    sent = np.zeros((steps, n))
    q, v = np.zeros(n), np.zeros(n)
    squares, held = np.zeros(n), np.zeros(n)
    count, still = 0, np.zeros(n)
    for k, time in enumerate(times.tolist()):
        seen = np.round(q / RESOLUTION) * RESOLUTION
        weight = load.model * load.weight * np.sin(goals[k] + load.hangs)
        sent[k] = goals[k] + weight / STIFFNESS
        for lanes, engine in engines:
            goal = np.full(len(lanes), goals[k])
            engine.on_command(time, time, None, goal, (), np.full(len(lanes), weight))
            engine.on_state(time, time, engine.names, seen[lanes], (), ())
            output = engine.output(time)
            sent[k, lanes] = sent[k, lanes] if output is None else output.values
        for part in range(inner):
            at = ((time + part * INNER - latency) / dt).astype(int)
            goal = np.where(at >= 0, sent[np.maximum(at, 0), np.arange(n)], 0.0)
            pull, motor = -load.weight * np.sin(q + load.hangs), STIFFNESS * (goal - q) - drag * v
            if load.share:
                friction.modulate(q, motor - pull)
            force = motor + pull - friction.torque(v, INNER)
            v = v + force / INERTIA * INNER
            q = q + v * INNER
        late = np.maximum(((time + dt - latency) / dt).astype(int), 0)
        error = goals[late] - q
        squares, count = squares + error**2, count + 1
        rest = rests[late] > 0.0
        held, still = held + rest * error**2, still + rest
    return np.sqrt(squares / count), np.sqrt(held / still)


def _engines(latency: FloatArray, declared: bool, load: Load) -> list[tuple[Any, Compensator]]:
    """A compensator for the joints of each latency, and which they are."""
    values = {"ratio": 1.0, "armature": INERTIA, "friction_base": COULOMB, "friction_viscous": VISCOUS}
    if load.share:
        values["load_friction_base"] = load.share
    servo = replace(load_actuator("torque_joint"), resolution=RESOLUTION)
    law = law_named("m3" if load.share else "m1")
    found = []
    for delay in LATENCIES:
        lanes = np.flatnonzero(latency == delay)
        joints = [JointModel(f"j{k}", servo, law, values, 10.0 * COULOMB) for k in lanes]
        timing = Timing(loop_delay=delay if declared else 0.0, state_timeout=0.2, command_timeout=1.0)
        settings = Settings("goal_offset", "none", timing=timing)
        engine = Compensator(joints, [JointMap()] * len(lanes), settings, dynamics=_model(load, len(lanes)))
        for joint in joints:
            engine.on_telemetry(joint.name, kp=STIFFNESS)
        engine.enable()
        found.append((lanes, engine))
    return found


def _model(load: Load, joints: int) -> IndependentJoints | None:
    if not load.told:
        return None
    pendulums = Pendulum(load.model * load.weight / GRAVITY, 1.0, 0.0)
    return IndependentJoints(np.full(joints, INERTIA), pendulums, load.hangs)


def measured(declared: bool, rates: tuple[int, ...] = RATES, load: Load = UNLOADED) -> dict[str, Any]:
    """Ratios of all joints, by rate, and what they come to."""
    found: dict[str, Any] = {}
    every = []
    scale = np.array([c[0] for c in conditions()])
    for rate in rates:
        plain, ours = simulated(rate, False, declared, load), simulated(rate, True, declared, load)
        track, hold = ours[0] / plain[0], ours[1] / plain[1]
        every.append((track, hold))
        found[f"{rate} Hz"] = {
            f"x{s:g}": [round(float(part[scale == s].mean()), 3) for part in (track, hold)] for s in SCALES
        }
    track, hold = (np.array(part) for part in zip(*every, strict=True))
    found["worst tracking"], found["worst holding"] = float(track.max()), float(hold.max())
    found["holding, right friction"] = float(hold[:, scale == 1.0].mean())
    return found


def of_loads(declared: bool, rates: tuple[int, ...] = RATES) -> dict[str, Any]:
    """:func:`measured` with loads, by the model of the weight and whether the compensation has it, too."""
    return {
        f"model x{model:g}, {'told' if told else 'not told'}": measured(
            declared, rates, Load(model=model, told=told)
        )
        for model in (1.0, 0.8, 1.2)
        for told in (False, True)
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--declared", action="store_true", help="the latency is given as loop_delay")
    parser.add_argument("--loaded", action="store_true", help="with a weight and friction that depends on it")
    parser.add_argument("--json", type=Path, help="write the figures here")
    given = parser.parse_args()
    found = of_loads(given.declared) if given.loaded else measured(given.declared)
    print(json.dumps(found, indent=1))
    if given.json:
        given.json.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
