"""``stribeck demo``: record, fit, compensate, on emulated servos through real ROS 2 nodes.

The emulated servos are an XL330 with the published parameters of law M6 at 5 V, so the truth is known.
"""

from __future__ import annotations

import json
import shutil
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import rclpy
from rclpy.signals import SignalHandlerOptions
from tqdm import tqdm

from stribeck.cli.demo import DemoOptions
from stribeck.cli.demo_stage import (
    RATE,
    SUPPLY,
    NodeProcesses,
    frictionless,
    join_private_domain,
    servo,
    servo_yaml,
    truth,
)
from stribeck.cli.demo_trajectories import SHOWCASES, glide
from stribeck.cli.evaluate import evaluation
from stribeck.cli.main import STARTED, main
from stribeck.cli.table import print_table
from stribeck.core.bench import Pendulum
from stribeck.core.compensation import JointModel
from stribeck.emulator.emulator import EmulatedBus
from stribeck.errors import OutputError, StribeckError
from stribeck.fit.assessment import Recordings
from stribeck.io.bag import EVERY_JOINT
from stribeck.io.files import check_writable, write_atomically
from stribeck.io.parameter_file import ParameterFile, read_parameter_file
from stribeck.io.recordings import read_recordings
from stribeck.nodes.demo import DemoController, NaiveCompensator, SessionWatcher, Spinner, Trace
from stribeck.report.figures import CompensationDrawing, draw_compensation
from stribeck.report.style import save

SCHEMA = 1
LAW = "m6"

ROBOTS: dict[str, dict[str, Any]] = {
    "left": {
        "loads": {"light": Pendulum(0.1, 0.1, 0.02), "heavy": Pendulum(0.25, 0.1, 0.02)},
        "trajectories": ["sin_time_square", "sin_sin"],
        "gains": [100, 200, 400],
    },
    "right": {
        "loads": {"middle": Pendulum(0.16, 0.1, 0.02), "long": Pendulum(0.12, 0.15, 0.02)},
        "trajectories": ["up_and_down", "lift_and_drop", "half_sine"],
        "gains": [100, 300],
    },
}
"""Two buses record at the same time, two joints on each: four loads."""

UNSEEN = "half_sine_kp300"
"""Bags whose name begins so are not fitted."""

CALM = 1.0
"""Nodes that find each other hold each other up: joint states have to come steadily for so long first [s]."""

GAIN = 0.8
FIRMWARE_GAINS = (100, 200)
LOAD = Pendulum(0.2, 0.1, 0.02)
MAX_TORQUE = 0.3
KINDS = ("gravity", "friction", "frictionless")

REST_KP = 100
REST_GAIN = 1.2
REST_GOAL = 1.0
PUSH, PUSH_TIME, PUSHED_AT = 0.05, 0.1, 2.0
"""A push [N m] for a time [s], so long after the glide to the goal began [s]."""

SETTLING, WATCHED = 1.0, 5.0
"""After the push a joint may take the first [s] to come to rest, and has to stay for the second [s]."""

ENCODER_STEP = 2.0 * np.pi / 4096

FloatArray = npt.NDArray[np.float64]


class Case(NamedTuple):
    """One trajectory at one firmware gain: RMS distances to the frictionless motion [rad]."""

    name: str
    gravity: float
    friction: float

    @property
    def cut(self) -> float:
        """Share of the distance that friction compensation takes away."""
        return 1.0 - self.friction / self.gravity


def run_demo(options: DemoOptions) -> int:
    """The whole loop, the table, and the picture."""
    output = options.output
    check_writable(output / "m6.json")
    if options.json is not None:
        check_writable(options.json)
    fresh(output)
    join_private_domain()
    rclpy.init(signal_handler_options=SignalHandlerOptions.NO)
    try:
        bags = record(output)
        unseen = [bag for bag in bags if bag.name.startswith(UNSEEN)]
        fitted = fit(output, options.seed)
        mae = evaluation(
            output / "m6.json",
            fitted,
            Recordings(read_recordings(unseen[0].parent, joint=EVERY_JOINT)),
            None,
            None,
        )["mae"]
        cases, rest, drawings = compensate(output, fitted)
    finally:
        rclpy.try_shutdown()
    picture = output / "compensation.png"
    title = (
        f"Emulated XL330 at 5 V, {LOAD.mass:g} kg at {LOAD.length:g} m, friction compensated at gain {GAIN:g}"
    )
    save(draw_compensation(drawings, len(SHOWCASES), title), picture)
    summary = {
        "schema": SCHEMA,
        "prediction_mae": mae,
        "encoder_step": ENCODER_STEP,
        "trajectory_error": {
            "gravity": [case.gravity for case in cases],
            "gravity_friction": [case.friction for case in cases],
            "cases": [case.name for case in cases],
        },
        "rest_counts": rest,
        "lost_samples": lost_samples(output),
        "wall_seconds": time.perf_counter() - STARTED,
        "bags": [str(bag) for bag in bags],
        "parameters": dict(fitted.values),
        "truth": dict(truth().values),
    }
    tell(fitted, cases, summary)
    print(
        f"\nparameter file  {output / 'm6.json'}\npicture         {picture}\nbags            {output / 'bags'}"
    )
    if options.json is not None:
        write_atomically(options.json, json.dumps(summary, indent=1) + "\n")
    return 0


def fresh(output: Path) -> None:
    """Make room for bags: those of an earlier demo go, nothing else does.

    :raises OutputError: if there are bags that no demo made.
    """
    mark = output / "demo"
    if (output / "bags").exists():
        if not mark.is_file():
            raise OutputError(
                f"{output / 'bags'} exists and is not of an earlier demo; choose another --output"
            )
        shutil.rmtree(output / "bags")
        shutil.rmtree(output / "unseen", ignore_errors=True)
    (output / "nodes").mkdir(parents=True, exist_ok=True)
    mark.write_text(
        "The folders bags and unseen beside this file are of stribeck demo, which replaces them.\n"
    )


# -- record


def record(output: Path) -> list[Path]:
    """Bags of all plays, recorded by the nodes; those not to be fitted go to ``unseen``."""
    folder = output / "nodes"
    plays = sum(len(robot["trajectories"]) * len(robot["gains"]) for robot in ROBOTS.values())
    joints = sum(len(robot["loads"]) for robot in ROBOTS.values())
    print(
        f"Record: {plays} bags of 6 s, {joints} emulated XL330 with different loads on {len(ROBOTS)} buses",
        flush=True,
    )
    with NodeProcesses(folder) as nodes, Spinner(SessionWatcher(tuple(ROBOTS))) as spinner:
        ports = {
            name: nodes.emulate(name, tuple(robot["loads"].values()), seed)
            for seed, (name, robot) in enumerate(ROBOTS.items())
        }
        wait_until(nodes, lambda: all(port.exists() for port in ports.values()), "emulated servos")
        for name, robot in ROBOTS.items():
            config = folder / f"{name}_servos.yaml"
            chosen = {key: robot[key] for key in ("trajectories", "gains")}
            config.write_text(servo_yaml(str(ports[name]), robot["loads"], chosen, output / "bags"))
            nodes.start("servo", {"config": str(config)}, namespace=name)
            values = {
                "config": str(config),
                "autoplay": False,
                "commander": "servo",
                "servo_node": f"/{name}/servo",
            }
            nodes.start("excitation", values, namespace=name)
        watcher = spinner.node
        wait_until(nodes, lambda: watcher.calm(CALM), "steady joint states")
        watcher.start()
        watch(nodes, watcher)
        results = watcher.result
    bags = [Path(bag) for result in results.values() for bag in result["bags"]]
    failed = [
        f"{name}: {result['reason']}" for name, result in results.items() if result["end"] != "finished"
    ]
    if failed:
        raise StribeckError(f"recording did not finish: {'; '.join(failed)}")
    return [set_aside(bag, output / "unseen") if bag.name.startswith(UNSEEN) else bag for bag in bags]


def watch(nodes: NodeProcesses, watcher: SessionWatcher) -> None:
    """Show progress until all sessions have ended."""
    shape = "{l_bar}{bar}| {elapsed}<{remaining} {postfix}"
    pause = 0.3 if sys.stderr.isatty() else 10.0
    with tqdm(total=100, bar_format=shape, mininterval=pause) as bar:
        while len(watcher.result) < len(ROBOTS):
            nodes.check()
            told = list(watcher.progress.values())
            if told:
                done = sum(one["progress"] for one in told) / len(ROBOTS)
                bar.update(round(100 * done) - bar.n)
                plays = ", ".join(f"{one['trajectory']} at {one['kp']:g}" for one in told)
                bar.set_postfix_str(plays, refresh=False)
            time.sleep(0.2)
        bar.update(100 - bar.n)


def set_aside(bag: Path, folder: Path) -> Path:
    """Move a bag into another folder."""
    folder.mkdir(exist_ok=True)
    return Path(shutil.move(bag, folder / bag.name))


def lost_samples(output: Path) -> int:
    """Samples that are missing in the bags: cycles from the first to the last, less those that are there."""
    lost = 0
    for folder in ("bags", "unseen"):
        for log in read_recordings(output / folder, joint=EVERY_JOINT):
            stamps = log.position.time
            lost += max(0, round((stamps[-1] - stamps[0]) * RATE) + 1 - len(stamps))
    return lost


# -- fit


def fit(output: Path, seed: int) -> ParameterFile:
    """Law M6 by the command that a user would type."""
    path = output / "m6.json"
    command = [
        "fit",
        "--model",
        LAW,
        "--logdir",
        str(output / "bags"),
        "--output",
        str(path),
        "--joint",
        EVERY_JOINT,
        "--seed",
        str(seed),
    ]
    print(f"\nFit: stribeck {' '.join(command)}", flush=True)
    if main(command) != 0:
        raise StribeckError("the fit failed")
    return read_parameter_file(path)


# -- compensate


def compensate(
    output: Path, fitted: ParameterFile
) -> tuple[list[Case], dict[str, float], list[CompensationDrawing]]:
    """Follow trajectories with and without friction compensation, and rest after a push."""
    joints = [f"{kind}_{kp}" for kp in FIRMWARE_GAINS for kind in KINDS] + ["firm", "naive"]
    gains = [float(kp) for kp in FIRMWARE_GAINS for _ in KINDS] + [float(REST_KP)] * 2
    bus = EmulatedBus(
        [
            servo(k, LOAD, frictionless() if name.startswith("frictionless") else truth(), 0.4)
            for k, name in enumerate(joints, start=1)
        ],
        seed=7,
    )
    print(
        f"\nCompensate: {len(joints)} emulated XL330 on one bus, law M6 as identified, gain {GAIN:g}",
        flush=True,
    )
    model = JointModel("naive", fitted.actuator, fitted.law, fitted.values, MAX_TORQUE)
    controller = DemoController(
        joints, LOAD, fitted.values["q_offset"], NaiveCompensator(model, REST_GAIN, REST_KP, SUPPLY)
    )
    with bus, NodeProcesses(output / "nodes") as nodes, Spinner(controller):
        compensators = start_compensation(nodes, output, bus.path, dict(zip(joints, gains, strict=True)))
        wait_until(
            nodes,
            lambda: controller.seen >= set(joints) and controller.calm(compensators, CALM),
            "steady joint states of all joints",
        )
        controller.begin()
        wait_until(nodes, lambda: all(one.torque_enabled for one in bus.servos), "torque on all joints")
        traces = {}
        for case in tqdm(SHOWCASES, desc="trajectories"):
            controller.follow(lambda t: 0.0, 1.5)
            traces[case.name] = controller.follow(case.goal, case.duration)
        rest = rest_counts(bus, controller, joints)
    cases, drawings = distances(traces, joints)
    return cases, rest, drawings


def start_compensation(nodes: NodeProcesses, output: Path, port: str, gains: dict[str, float]) -> int:
    """The servo node, and compensation nodes (so many): at the gain, above it, and handing through."""
    config = output / "nodes" / "compensated_servos.yaml"
    plays: dict[str, list[Any]] = {"trajectories": ["half_sine"], "gains": [100]}
    config.write_text(servo_yaml(port, dict.fromkeys(gains, LOAD), plays, output / "bags"))
    nodes.start("servo", {"config": str(config), "p_gain": list(gains.values())}, name="servo")
    compensators = (
        ("compensation", GAIN, [joint for joint in gains if joint.startswith("friction_")]),
        ("compensation_strong", REST_GAIN, ["firm"]),
        ("gravity_only", 0.0, [j for j in gains if j.startswith(("gravity", "frictionless"))]),
    )
    for name, gain, members in compensators:
        values: dict[str, Any] = {
            "joints": members,
            "output_mode": "goal_offset",
            "output_type": "joint_state",
            "effort_meaning": "motor",
            "other_joints": "ignore",
            "gain": gain,
            "state_timeout": 0.2,
            "command_timeout": 0.2,
        }
        for joint in members:
            values[joint] = {
                "parameter_file": str(output / "m6.json"),
                "p_gain": gains[joint],
                "supply_voltage": SUPPLY,
                "max_torque": MAX_TORQUE,
            }
        nodes.start("compensation", values, name=name, remap={"compensated_command": "joint_goals"})
    return len(compensators)


def wait_until(nodes: NodeProcesses, condition: Any, what: str, timeout: float = 30.0) -> None:
    """Wait for a condition, as long as all nodes live.

    :raises StribeckError: if it does not come true in time.
    """
    end = time.monotonic() + timeout
    while not condition():
        nodes.check()
        if time.monotonic() > end:
            raise StribeckError(f"the nodes did not come up: no {what} after {timeout:g} s")
        time.sleep(0.05)


def rest_counts(bus: EmulatedBus, controller: DemoController, joints: Sequence[str]) -> dict[str, float]:
    """Largest distance from the median position after a push, in counts, by compensator."""
    watched = {f"{GAIN:g}": f"friction_{REST_KP}", f"{REST_GAIN:g}": "firm", "naive": "naive"}
    pushed: list[float] = []

    def goal(t: float) -> float:
        if t >= PUSHED_AT and not pushed:
            pushed.append(t)
            for name in watched.values():
                bus.push(joints.index(name) + 1, PUSH, PUSH_TIME)
        return glide(t, 0.0, REST_GOAL, 1.0)

    with tqdm(total=1, desc="rest after a push") as bar:
        controller.follow(lambda t: 0.0, 1.5)
        trace = controller.follow(goal, PUSHED_AT + PUSH_TIME + SETTLING + WATCHED)
        bar.update()
    after = trace.time >= pushed[0] + PUSH_TIME + SETTLING
    counts = {}
    for key, name in watched.items():
        position = trace.position[after, joints.index(name)]
        distance = np.max(np.abs(position - np.median(position))) / ENCODER_STEP
        counts[key] = 0.5 * round(
            2.0 * float(distance)
        )  # of whole counts, from a median that may lie between two
    return counts


def distances(
    traces: dict[str, Trace], joints: Sequence[str]
) -> tuple[list[Case], list[CompensationDrawing]]:
    """RMS distances to the frictionless joint, and what to draw."""

    def rms(values: FloatArray) -> float:
        return float(np.sqrt(np.mean(values**2)))

    cases, drawings = [], []
    for kp in FIRMWARE_GAINS:
        for show in SHOWCASES:
            trace = traces[show.name]
            gravity, friction, free = (trace.position[:, joints.index(f"{kind}_{kp}")] for kind in KINDS)
            case = Case(f"{show.name}_kp{kp}", rms(gravity - free), rms(friction - free))
            title = f"{show.title}, firmware gain {kp}"
            cases.append(case)
            drawings.append(
                CompensationDrawing(title, trace.time, trace.goal, free, gravity, friction, case.cut)
            )
    return cases, drawings


# -- tell


def tell(fitted: ParameterFile, cases: Sequence[Case], summary: dict[str, Any]) -> None:
    """Tables: truth against identified parameters, prediction, distances, rest."""
    intervals = fitted.provenance.intervals if fitted.provenance else {}
    rows = []
    for name, value in truth().values.items():
        within = "not determined"
        if name in intervals:
            lower, upper = intervals[name]
            within = f"{lower:.5g} .. {upper:.5g}"
        rows.append([name, f"{value:.5g}", f"{fitted.values[name]:.5g}", within])
    print("\nThe servos are emulated, so the truth is known:")
    print_table(["parameter", "true", "identified", "95 % interval"], rows)
    mae, step = 1e3 * summary["prediction_mae"], 1e3 * ENCODER_STEP
    print(f"\nRun that was not fitted: predicted within {mae:.2f} mrad (one encoder step is {step:.2f} mrad)")
    print(f"\nDistance to the motion without friction, RMS, friction compensated at gain {GAIN:g}:")
    print_table(
        ["trajectory and firmware gain", "gravity [mrad]", "and friction [mrad]", "cut"],
        [
            [case.name, f"{1e3 * case.gravity:.1f}", f"{1e3 * case.friction:.1f}", f"{100 * case.cut:.0f} %"]
            for case in cases
        ],
    )
    rest = summary["rest_counts"]
    print(
        f"\nAt rest after a push of {1e3 * PUSH:.0f} mN m: within "
        + ", ".join(f"{rest[key]:.0f} counts at gain {key}" for key in rest if key != "naive")
        + f"; a naive sign(velocity) compensator at {REST_GAIN:g}: {rest['naive']:.0f} counts"
    )
    print(f"Samples lost: {summary['lost_samples']}; in all {summary['wall_seconds']:.0f} s")
