"""Pendulum benches as a MuJoCo model, and their motion beside our own simulation."""

from dataclasses import dataclass

import numpy as np
import pytest

from stribeck.files.actuators import load_actuator
from stribeck.model.bench import STANDARD_GRAVITY
from stribeck.model.joint import Drive
from stribeck.model.law import FrictionLaw, law_named
from stribeck.model.log import Setup
from stribeck.model.trajectories import trajectory_named
from virtual import Encoder, record

mujoco = pytest.importorskip("mujoco", reason="MuJoCo is not installed: pip install '.[mujoco]'")

from stribeck.mujoco import Controller, Servo  # noqa: E402

SMALL = (
    (Setup(0.1, 0.1, 0.02, 5.0, 400.0), "sin_time_square"),
    (Setup(0.2, 0.1, 0.0, 5.0, 400.0), "lift_and_drop"),
    (Setup(0.2, 0.15, 0.02, 5.0, 200.0), "sin_sin"),
    (Setup(0.1, 0.15, 0.0, 7.4, 100.0), "up_and_down"),
    (Setup(0.3, 0.1, 0.05, 6.0, 800.0), "lift_and_drop"),
)
"""Loads, gains and trajectories for a small servo."""

LARGE = (
    (Setup(3.1, 0.5, 0.3, 48.0, 10.0), "sin_time_square"),
    (Setup(8.2, 0.5, 0.3, 48.0, 25.0), "lift_and_drop"),
    (Setup(12.7, 0.5, 0.0, 48.0, 50.0), "sin_sin"),
    (Setup(14.6, 0.4, 0.3, 48.0, 100.0), "up_and_down"),
    (Setup(19.6, 0.5, 0.0, 48.0, 50.0), "lift_and_drop"),
)
"""The same for a joint of an arm (the paper's loads)."""

MEDIUM = (
    (Setup(0.5, 0.1, 0.02, 15.0, 4.0), "sin_time_square"),
    (Setup(1.0, 0.15, 0.05, 15.0, 8.0), "lift_and_drop"),
    (Setup(1.5, 0.2, 0.05, 15.0, 16.0), "sin_sin"),
    (Setup(1.5, 0.15, 0.0, 15.0, 32.0), "up_and_down"),
    (Setup(0.5, 0.2, 0.0, 15.0, 8.0), "lift_and_drop"),
)

SETUPS = {"xl330": SMALL, "mx64": MEDIUM, "mx106": MEDIUM, "erob80_50": LARGE, "erob80_100": LARGE}


@dataclass(frozen=True)
class Bench:
    """Runs of one servo and law on several benches: (T, R) arrays of our own simulation."""

    parameters: Drive
    setups: tuple[Setup, ...]
    dt: float
    position: np.ndarray
    goal: np.ndarray
    torque_enable: np.ndarray

    def servos(self, **settings) -> dict[str, Servo]:
        """The servo at each joint of the model."""
        return {
            f"joint{r}": Servo(self.parameters, setup.kp, supply_voltage=setup.supply_voltage, **settings)
            for r, setup in enumerate(self.setups)
        }

    def errors(self, position: np.ndarray) -> np.ndarray:
        """Mean absolute difference of each run [rad]."""
        return np.mean(np.abs(position - self.position), axis=0)


def parameters_of(name: str, law: str | FrictionLaw, values: dict[str, float] | None = None) -> Drive:
    """A parameter file of published values, without the mounting offset."""
    law = law_named(law) if isinstance(law, str) else law
    known = {**load_actuator(name).published[law.name], "q_offset": 0.0}
    return Drive(load_actuator(name), law, {**known, **(values or {})})


def bench_of(parameters: Drive, dt: float, plays=None, finer: int = 1) -> Bench:
    """Our own simulation of the runs of a servo: with the step that MuJoCo takes, or accurately with ``finer`` steps in it."""
    plays = SETUPS[parameters.actuator.name] if plays is None else plays
    rng = np.random.default_rng(0)
    logs = record(
        parameters.actuator,
        parameters.law,
        parameters.values,
        [(setup, trajectory_named(name)) for setup, name in plays],
        Encoder(0.0),
        rng,
        dt=dt / finer,
        integrator="semi-implicit" if finer == 1 else "exponential",
    )
    columns = [
        np.stack([getattr(log, name).value[::finer] for log in logs], axis=1)
        for name in ("position", "goal", "torque_enable")
    ]
    return Bench(parameters, tuple(setup for setup, _ in plays), dt, *columns)


def model_of(setups, dt: float, *, joint="", option="", extra="", before="") -> mujoco.MjModel:
    """One pendulum for each set-up, which does not touch the others: ``joint0``, ``joint1``, …"""
    return mujoco.MjModel.from_xml_string(
        xml_of(setups, dt, joint=joint, option=option, extra=extra, before=before)
    )


def xml_of(setups, dt: float, *, joint="", option="", extra="", before="") -> str:
    """MJCF of :func:`model_of`; a point mass has its inertia made up by the rod."""
    bodies = []
    for r, setup in enumerate(setups):
        mass = setup.mass + setup.arm_mass
        centre = setup.load / mass
        about = (setup.mass + setup.arm_mass / 3.0) * setup.length**2 - mass * centre**2
        inertia = max(about, 1e-12)
        bodies.append(
            f'<body pos="0 {r} 0"><joint name="joint{r}" axis="0 1 0" {joint}/>'
            f'<inertial mass="{mass!r}" pos="0 0 {-centre!r}" diaginertia="{inertia!r} {inertia!r} {inertia!r}"/></body>'
        )
    return (
        f'<mujoco>{extra}<option timestep="{dt!r}" gravity="0 0 {-STANDARD_GRAVITY}" {option}/>'
        f"<worldbody>{before}{''.join(bodies)}</worldbody></mujoco>"
    )


def played(
    model: mujoco.MjModel, controller: Controller, bench: Bench, data: mujoco.MjData | None = None
) -> np.ndarray:
    """Positions (T, R) of the joints under the controller, with the commands of the bench."""
    data = mujoco.MjData(model) if data is None else data
    addresses = [model.joint(name).qposadr[0] for name in controller.joints]
    found = np.empty_like(bench.position)
    for k, (goals, enable) in enumerate(zip(bench.goal.tolist(), bench.torque_enable.tolist(), strict=True)):
        found[k] = data.qpos[addresses]
        controller.update(data, goals, enable)
        mujoco.mj_step(model, data)
    return found
