"""Implements ``stribeck demo``: record, fit and compensate, on emulated servos through real ROS 2 nodes.

The emulated servos are XL330 with the published parameters of law M6 at 5 V, so the true parameters are known.
"""

from __future__ import annotations

import math
import shutil
import sys
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import rclpy
from rclpy.signals import SignalHandlerOptions
from tqdm import tqdm

from stribeck.cli.demo.options import DemoOptions
from stribeck.cli.demo.stage import (
    RATE,
    SUPPLY,
    EmulatedLoad,
    NodeProcesses,
    frictionless,
    join_private_domain,
    servo_yaml,
    truth,
)
from stribeck.cli.evaluate.run import evaluation
from stribeck.cli.exit_codes import STARTED
from stribeck.cli.inputs import write_json
from stribeck.cli.main import main
from stribeck.cli.table import print_table
from stribeck.errors import OutputError, StribeckError
from stribeck.evaluate.assessment import Recordings, stepping_of
from stribeck.files.cdr import header_stamp
from stribeck.files.drives import read_drive
from stribeck.files.folders import check_writable
from stribeck.live.friction import JointModel
from stribeck.model.arrays import Array
from stribeck.model.bench import Pendulum
from stribeck.model.joint import Drive
from stribeck.nodes.demo import DemoController, DemoMotion, DirectGoals, SessionWatcher, Spinner, Trace
from stribeck.recordings.bags.bag import EVERY_JOINT
from stribeck.recordings.bags.messages import JOINT_STATES
from stribeck.recordings.bags.storage import read_messages
from stribeck.recordings.sources import read_recordings
from stribeck.report.figures import CompensationDrawing, draw_compensation
from stribeck.report.style import save

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
"""Two buses with two joints each, which record at the same time; four loads in all."""

UNSEEN = "half_sine_kp300"
"""Prefix of the names of bags that are not used for the fit."""

GAIN = 0.8
FIRMWARE_GAINS = (100, 200)
LOAD = Pendulum(0.2, 0.1, 0.02)
MAX_TORQUE = 0.3
KINDS = ("gravity", "friction", "frictionless")

REST_KP = 100
REST_GAIN = 1.2
REST_GOAL = 1.0
PUSH, PUSH_TIME, PUSHED_AT = 0.05, 0.1, 1.5
"""Torque of a push [N m], its duration [s], and its time after the start of the motion [s]."""

SETTLING, WATCHED = 1.0, 2.5
"""Time to settle after the push, and time at rest that is evaluated [s]."""

BETWEEN = 0.5
"""Time at 0 rad before each motion [s]."""

NOISE = {"record": 0.3, "compensate": 0.4}
"""Standard deviation of the encoder noise [counts]."""

ENCODER_STEP = 2.0 * np.pi / 4096


WATCHED_JOINTS = {f"{GAIN:g}": f"friction_{REST_KP}", f"{REST_GAIN:g}": "firm", "naive": "naive"}
"""Joints that are pushed, by the name of their compensator in the results."""

LEVELS = (0.0, 0.5, 1.0, 0.5, 0.0, -0.5, 0.0)


SHOWCASES = {
    "0.8 sin(0.4π t)": DemoMotion("slow_sine", lambda t: 0.8 * math.sin(0.4 * math.pi * t), 5.0),
    "sin(t²/2)": DemoMotion("sin_half_t_squared", lambda t: math.sin(0.5 * t * t), 6.5),
    "steps with holds": DemoMotion(
        "steps", lambda t: LEVELS[min(int(max(t, 0.0) / 1.15), len(LEVELS) - 1)], 8.05
    ),
}
"""Trajectories used to measure compensation, starting at rest at 0 rad, by their descriptions."""


class Case(NamedTuple):
    """RMS distances to the frictionless motion [rad], for one trajectory at one firmware gain."""

    name: str
    gravity: float
    friction: float

    @property
    def cut(self) -> float:
        """Fraction of the distance that friction compensation removes."""
        return 1.0 - self.friction / self.gravity


def run(options: DemoOptions) -> int:
    """Record, fit and compensate; print tables and draw the figure."""
    output = options.output
    check_writable(output / "m6.json")
    if options.json is not None:
        check_writable(options.json)
    join_private_domain()
    fresh(output)
    rclpy.init(signal_handler_options=SignalHandlerOptions.NO)
    try:
        bags = record(output)
        unseen = [bag for bag in bags if bag.name.startswith(UNSEEN)]
        with NodeProcesses(output / "nodes") as nodes:
            socket = emulate_compensated(nodes)  # starts while the law is fitted
            fitted = fit(output, options.seed)
            held_out = Recordings(read_recordings(unseen[0].parent, joint=EVERY_JOINT))
            mae = evaluation(output / "m6.json", fitted, held_out, stepping_of(fitted))["mae"]
            cases, rest, drawings = compensate(nodes, socket, output, fitted)
    finally:
        rclpy.try_shutdown()
    picture = output / "compensation.png"
    title = (
        f"Emulated XL330 at 5 V, {LOAD.mass:g} kg at {LOAD.length:g} m, friction compensated at gain {GAIN:g}"
    )
    save(draw_compensation(drawings, len(SHOWCASES), title), picture)
    summary = {
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
    print_results(fitted, cases, summary)
    print(
        f"\nparameter file  {output / 'm6.json'}\npicture         {picture}\nbags            {output / 'bags'}"
    )
    write_json(options.json, summary)
    return 0


def fresh(output: Path) -> None:
    """Delete only the bags of an earlier demo.

    :raises OutputError: if there are other bags.
    """
    mark = output / "demo"
    if (output / "bags").exists():
        if not mark.is_file():
            raise OutputError(
                f"{output / 'bags'} exists but was not written by an earlier demo: choose another --output"
            )
        shutil.rmtree(output / "bags")
        shutil.rmtree(output / "unseen", ignore_errors=True)
    (output / "nodes").mkdir(parents=True, exist_ok=True)
    mark.write_text("stribeck demo replaces the folders bags and unseen beside this file whenever it runs.\n")


# -- record


def record(output: Path) -> list[Path]:
    """Record all plays with the nodes; returns the bags. Those not used for the fit are in ``unseen``."""
    folder = output / "nodes"
    plays = sum(len(robot["trajectories"]) * len(robot["gains"]) for robot in ROBOTS.values())
    joints = sum(len(robot["loads"]) for robot in ROBOTS.values())
    print(
        f"Record: {plays} bags of 6 s, {joints} emulated XL330 with different loads on {len(ROBOTS)} buses",
        flush=True,
    )
    with NodeProcesses(folder) as nodes, Spinner(SessionWatcher(tuple(ROBOTS))) as spinner:
        sockets = {}
        for seed, (name, robot) in enumerate(ROBOTS.items()):
            servos = [EmulatedLoad(load, truth()) for load in robot["loads"].values()]
            together = [f"/{name}/servo", f"/{name}/excitation"]
            sockets[name] = nodes.emulate(name, servos, together, seed=seed, noise=NOISE["record"])
        for name, robot in ROBOTS.items():
            config = folder / f"{name}_servos.yaml"
            chosen = {key: robot[key] for key in ("trajectories", "gains")}
            config.write_text(servo_yaml(sockets[name], robot["loads"], chosen, output / "bags"))
            # A topic of two simulations would have messages at any time of either.
            own = {"/diagnostics": f"/{name}/diagnostics"}
            nodes.start("servo", {"config": str(config)}, sockets[name], namespace=name, remap=own)
            values = {"config": str(config), "autoplay": True, "servo_node": f"/{name}/servo"}
            nodes.start("excitation", values, sockets[name], namespace=name, remap=own)
        results = watch(nodes, spinner.node)
    bags = [Path(bag) for result in results.values() for bag in result["bags"]]
    failed = [
        f"{name}: {result['reason']}" for name, result in results.items() if result["end"] != "finished"
    ]
    if failed:
        raise StribeckError(f"recording did not finish: {'; '.join(failed)}")
    unseen = output / "unseen"
    unseen.mkdir(exist_ok=True)
    return [Path(shutil.move(bag, unseen)) if bag.name.startswith(UNSEEN) else bag for bag in bags]


def watch(nodes: NodeProcesses, watcher: SessionWatcher) -> dict[str, dict[str, Any]]:
    """Show progress until all sessions have ended; returns their results. What has ended is stopped, as its time runs on."""
    stopped: set[str] = set()
    shape = "{l_bar}{bar}| {elapsed}<{remaining} {postfix}"
    pause = 0.3 if sys.stderr.isatty() else 10.0
    with tqdm(total=100, bar_format=shape, mininterval=pause) as bar:
        while len(watcher.result) < len(ROBOTS):
            nodes.check()
            for name in watcher.result.keys() - stopped:
                nodes.stop_namespace(name)
                stopped.add(name)
            sessions = list(watcher.progress.values())
            if sessions:
                done = sum(float(one["progress"]) for one in sessions) / len(ROBOTS)
                bar.update(round(100 * done) - bar.n)
                plays = ", ".join(f"{one['trajectory']} at {one['kp']}" for one in sessions)
                bar.set_postfix_str(plays, refresh=False)
            time.sleep(0.1)
        bar.update(100 - bar.n)
    return {name: watcher.result[name] for name in ROBOTS}


def lost_samples(output: Path) -> int:
    """Number of samples missing in the bags: cycles between the first and last sample, minus samples."""
    lost = 0
    for path in (path for folder in ("bags", "unseen") for path in (output / folder).iterdir()):
        states = [one.data for one in read_messages(path).messages if one.topic.name == JOINT_STATES.name]
        first, last = (header_stamp(bytes(data)).seconds for data in (states[0], states[-1]))
        lost += max(0, round((last - first) * RATE) + 1 - len(states))
    return lost


# -- fit


def fit(output: Path, seed: int) -> Drive:
    """Fit law M6 with the command line that a user would type."""
    path = output / "m6.json"
    command = ["identify", "servo", str(output / "bags"), "--law", LAW, "--output", str(path)]
    command += ["--joint", EVERY_JOINT, "--seed", str(seed)]
    print(f"\nFit: stribeck {' '.join(command)}", flush=True)
    if main(command) != 0:
        raise StribeckError("the fit failed")
    return read_drive(path)


# -- compensate


JOINTS = [f"{kind}_{kp}" for kp in FIRMWARE_GAINS for kind in KINDS] + ["firm", "naive"]
GAINS = dict(zip(JOINTS, [*(kp for kp in FIRMWARE_GAINS for _ in KINDS), REST_KP, REST_KP], strict=True))
"""Firmware gains of the joints that are compensated, or not."""


def emulate_compensated(nodes: NodeProcesses) -> Path:
    """Start the servos on which compensation is shown; returns their socket."""
    servos = [EmulatedLoad(LOAD, frictionless() if "frictionless" in name else truth()) for name in JOINTS]
    before = sum(motion.duration for motion in motions()[:-1])
    pushes = [
        f"push:after={before + PUSHED_AT:g},torque={PUSH:g},for={PUSH_TIME:g},id={JOINTS.index(name) + 1}"
        for name in WATCHED_JOINTS.values()
    ]
    together = ["/servo", "/demo_controller", *(f"/{name}" for name, _, _ in compensators())]
    return nodes.emulate("compensated", servos, together, seed=7, noise=NOISE["compensate"], faults=pushes)


def compensate(
    nodes: NodeProcesses, socket: Path, output: Path, fitted: Drive
) -> tuple[list[Case], dict[str, float], list[CompensationDrawing]]:
    """Follow trajectories with and without friction compensation, then measure rest after a push."""
    print(
        f"\nCompensate: {len(JOINTS)} emulated XL330 on one bus, law M6 as identified, gain {GAIN:g}",
        flush=True,
    )
    compensated = {name for _, _, members in compensators() for name in members}
    direct = {name: float(kp) for name, kp in GAINS.items() if name not in compensated}
    models = [JointModel(name, fitted.actuator, fitted.law, fitted.values, MAX_TORQUE) for name in direct]
    goals = DirectGoals(models, "naive", REST_GAIN, list(direct.values()), SUPPLY)
    nodes.wait_until(socket.is_socket)
    controller = DemoController(JOINTS, LOAD, fitted.values["q_offset"], goals, motions(), socket)
    with Spinner(controller):
        start_compensation(nodes, output, socket)
        follow(nodes, controller)
    rest = rest_counts(controller.traces["rest"])
    cases, drawings = distances(controller.traces)
    return cases, rest, drawings


def motions() -> list[DemoMotion]:
    """The motions to measure, each after a time at 0 rad."""
    rest = DemoMotion("rest", to_rest, PUSHED_AT + PUSH_TIME + SETTLING + WATCHED)
    found = []
    for motion in (*SHOWCASES.values(), rest):
        found += [DemoMotion(f"before {motion.name}", lambda t: 0.0, BETWEEN), motion]
    return found


def to_rest(t: float) -> float:
    """Goal of the motion to the position of rest [rad]: a cubic from rest to rest in 1 s."""
    u = min(max(t, 0.0), 1.0)
    return REST_GOAL * u * u * (3.0 - 2.0 * u)


def follow(nodes: NodeProcesses, controller: DemoController) -> None:
    """Show progress until all motions are measured."""
    shown = [motion.name for motion in SHOWCASES.values()]
    for title, names in (("trajectories", shown), ("rest after a push", ["rest"])):
        for name in tqdm(names, desc=title):
            nodes.wait_until(partial(controller.has_measured, name))


def compensators() -> list[tuple[str, float, list[str]]]:
    """Name, gain and joints of each compensation node; other joints have none."""
    return [
        ("compensation", GAIN, [joint for joint in JOINTS if joint.startswith("friction_")]),
        ("compensation_strong", REST_GAIN, ["firm"]),
    ]


def start_compensation(nodes: NodeProcesses, output: Path, socket: Path) -> None:
    """Start the servo node and the compensation nodes."""
    config = output / "nodes" / "compensated_servos.yaml"
    plays: dict[str, list[Any]] = {"trajectories": ["half_sine"], "gains": [100]}
    config.write_text(servo_yaml(socket, dict.fromkeys(GAINS, LOAD), plays, output / "bags"))
    nodes.start(
        "servo", {"config": str(config), "p_gain": [float(kp) for kp in GAINS.values()]}, socket, name="servo"
    )
    for name, gain, members in compensators():
        values: dict[str, Any] = {
            "joints": members,
            "output_mode": "goal_offset",
            "output_type": "joint_state",
            "effort_meaning": "motor",
            "other_joints": "ignore",
            "gain": gain,
        }
        for joint in members:
            values[joint] = {
                "parameter_file": str(output / "m6.json"),
                "p_gain": float(GAINS[joint]),
                "supply_voltage": SUPPLY,
                "max_torque": MAX_TORQUE,
            }
        nodes.start("compensation", values, socket, name=name, remap={"compensated_command": "joint_goals"})


def rest_counts(trace: Trace) -> dict[str, float]:
    """Largest distance from the median position at rest after a push, in encoder counts, by compensator."""
    after = trace.time >= PUSHED_AT + PUSH_TIME + SETTLING
    counts = {}
    for key, name in WATCHED_JOINTS.items():
        position = trace.position[after, JOINTS.index(name)]
        distance = np.max(np.abs(position - np.median(position))) / ENCODER_STEP
        counts[key] = 0.5 * round(2.0 * float(distance))  # the median may lie between two counts
    return counts


def distances(traces: dict[str, Trace]) -> tuple[list[Case], list[CompensationDrawing]]:
    """RMS distances to the motion without friction, and drawings of them."""

    def rms(values: Array) -> float:
        return float(np.sqrt(np.mean(values**2)))

    cases, drawings = [], []
    for kp in FIRMWARE_GAINS:
        for title, motion in SHOWCASES.items():
            trace = traces[motion.name]
            gravity, friction, free = (trace.position[:, JOINTS.index(f"{kind}_{kp}")] for kind in KINDS)
            case = Case(f"{motion.name}_kp{kp}", rms(gravity - free), rms(friction - free))
            title = f"{title}, firmware gain {kp}"
            cases.append(case)
            drawings.append(
                CompensationDrawing(title, trace.time, trace.goal, free, gravity, friction, case.cut)
            )
    return cases, drawings


# -- print


def print_results(fitted: Drive, cases: Sequence[Case], summary: dict[str, Any]) -> None:
    """Print identified and true parameters, prediction errors, distances, and rest."""
    intervals = fitted.intervals
    rows = []
    for name, value in truth().values.items():
        within = "{:.5g} .. {:.5g}".format(*intervals[name]) if name in intervals else "not determined"
        rows.append([name, f"{value:.5g}", f"{fitted.values[name]:.5g}", within])
    print("\nThe servos are emulated, so the true values are known:")
    print_table(["parameter", "true", "identified", "95 % interval"], rows)
    mae, step = 1e3 * summary["prediction_mae"], 1e3 * ENCODER_STEP
    print(f"\nRun that was not fitted: mean error {mae:.2f} mrad (one encoder step: {step:.2f} mrad)")
    print(f"\nRMS distance to the motion without friction, friction compensated at gain {GAIN:g}:")
    print_table(
        ["trajectory and firmware gain", "gravity [mrad]", "and friction [mrad]", "cut"],
        [
            [case.name, f"{1e3 * case.gravity:.1f}", f"{1e3 * case.friction:.1f}", f"{100 * case.cut:.0f} %"]
            for case in cases
        ],
    )
    rest = summary["rest_counts"]
    print(
        f"\nDistance from the goal at rest after a push of {1e3 * PUSH:.0f} mN m: "
        + ", ".join(f"{rest[key]:.0f} counts at gain {key}" for key in rest if key != "naive")
        + f"; a naive sign(velocity) compensator at {REST_GAIN:g}: {rest['naive']:.0f} counts"
    )
    print(f"Samples lost: {summary['lost_samples']}; in all {summary['wall_seconds']:.0f} s")
