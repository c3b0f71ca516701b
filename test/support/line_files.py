"""Files that documented lines name, made small: recordings of simulated machines, their descriptions, parameter files."""

import re
import shutil
import tempfile
from collections.abc import Callable
from functools import cache
from itertools import pairwise, product
from pathlib import Path

import numpy as np
import pytest

from api_made import file_of_joints
from bags import Bag, dynamic_joint_state, floats, joint_state
from helpers import DATA, REPOSITORY, bam_recording, write_json
from joint_tables import columns, sweep, wobble, write_table
from moving_arms import arm, recording, urdf
from simulated_arms import true_arm, write_data
from small_arm import URDF, small_robot
from stribeck.cli.main import main
from stribeck.files.actuators import load_actuator
from stribeck.files.drives import Drives, write_drive, write_drives
from stribeck.files.torque_drives import torque_actuator, torque_drive
from stribeck.model.estimate import Estimate, fixed
from stribeck.model.joint import Drive
from stribeck.model.law import law_named
from stribeck.model.log import Setup
from stribeck.model.trajectories import BREAKAWAY, trajectory_named
from stribeck.recordings.bags.bag import write_bag
from swinging_leg import recorded, write_model
from virtual import Encoder, record

OUTPUTS = (
    "--output",
    "--json",
    "--plot",
    "--report",
    "--diagram",
    "--netcdf",
    "--link",
    "--joint-trajectory",
)
"""Options whose words name what a line writes."""

LOADS = ((0.1, 0.1), (0.2, 0.15))
STEP = 2.0 * np.pi / 4096


def bench_logs(loads=LOADS, gains=(200.0, 400.0), trajectories=("sin_sin", "lift_and_drop")):
    """Runs of a simulated XL330 with two loads and two gains."""
    servo = load_actuator("xl330")
    plays = [
        (Setup(mass, length, 0.02, 5.0, kp), trajectory_named(name))
        for (mass, length), kp, name in product(loads, gains, trajectories)
    ]
    rng = np.random.default_rng(0)
    return record(servo, law_named("m4"), dict(servo.published["m4"]), plays, Encoder(STEP, STEP), rng)


def bench_bags(place: Path) -> None:
    """A folder with one bag of eight runs."""
    write_bag(place / "loads", bench_logs())


def breakaway_bags(place: Path) -> None:
    """A folder with one bag of slow triangles about five loads."""
    servo = load_actuator("xl330")
    parameters = {**servo.published["m5"], "q_offset": 0.0}
    plays = [(Setup(mass, 0.1, 0.02, 5.0, 400.0), BREAKAWAY) for mass in (0.1, 0.2)]
    write_bag(
        place / "breakaway",
        record(servo, law_named("m5"), parameters, plays, Encoder(STEP, STEP), np.random.default_rng(5)),
    )


def m5_file(place: Path) -> None:
    """The published M5 of the same servo, each friction parameter with an interval of 30 %."""
    servo, law = load_actuator("xl330"), law_named("m5")
    values = {**servo.published["m5"], "q_offset": 0.0}
    stated = {
        name: Estimate(
            values[name], "", "loosely determined", (0.7 * values[name], 1.3 * values[name]), 0.95, ""
        )
        for name in law.parameter_names
    }
    write_drive(place, Drive(servo, law, values, stated=stated))


def bags_of_the_page(place: Path) -> None:
    """A folder with one bag of the servo on docs/actuators.md, which moves heavier loads."""
    servo = load_actuator(str(shelved(servo_of_the_page, "my_xm430.yaml")))
    values = dict(load_actuator("xl330").published["m4"]) | {
        "kt": 1.8,
        "R": 5.2,
        "armature": 0.005,
        "q_offset": 0.0,
    }
    plays = [
        (Setup(mass, 0.2, 0.02, 12.0, kp), trajectory_named("sin_sin"))
        for mass, kp in product((0.2, 0.4), (200.0, 400.0))
    ]
    rng = np.random.default_rng(0)
    write_bag(place / "loads", record(servo, law_named("m4"), values, plays, Encoder(STEP, STEP), rng))


def one_bag(place: Path) -> None:
    """A bag of one run."""
    write_bag(place, bench_logs(LOADS[:1], (400.0,), ("sin_sin",)))


def plain_tables(place: Path) -> None:
    """A folder of CSV files that do not describe their bench."""
    place.mkdir(parents=True)
    for k, log in enumerate(bench_logs()):
        plain_table(place / f"run_{k}.csv", log)


def plain_table(place: Path, log=None) -> None:
    """A CSV file of one run."""
    log = log or bench_logs(LOADS[:1], (400.0,), ("sin_sin",))[0]
    time = log.position.time
    table = {
        "time": time,
        "position": log.position.value,
        "velocity": log.velocity.value,
        "goal_position": np.interp(time, log.goal.time, log.goal.value),
        "torque_enable": np.ones_like(time),
    }
    write_table(place, table)


def sweep_bag(place: Path) -> None:
    """A bag of a sweep with the current as telemetry, 0.35 N m/A."""
    found = columns(sweep(speeds=(0.05, 0.1, 0.2, 0.4), dt=0.01))
    bag = Bag()
    for time, position, velocity, torque in zip(
        *(found[name].tolist() for name in ("time", "q", "dq", "tau")), strict=True
    ):
        bag.add(time, "/joint_states", joint_state(time, ["joint"], position, velocity))
        bag.add(time, "/dynamic_joint_states", dynamic_joint_state(time, "joint", current=torque / 0.35))
    place.parent.mkdir(parents=True, exist_ok=True)
    bag.write(place)


def bam_recordings(place: Path) -> None:
    """A folder of recordings in the BAM JSON format, two loads."""
    place.mkdir(parents=True)
    write_json(place / "heavy_1.json", bam_recording(arm_mass=None))
    write_json(place / "light_1.json", bam_recording(arm_mass=None, mass=0.3))


def bags_without_bench(place: Path) -> None:
    """A folder with a bag of states and commands that says nothing about its bench."""
    bag = Bag()
    bag.samples(0.0, 3.0)
    place.mkdir(parents=True)
    bag.write(place / "run_1")


def signals(place: Path) -> None:
    """The table of signals of :func:`plain_table`."""
    place.write_text(
        "time: {column: time}\nposition: {column: position}\nvelocity: {column: velocity}\n"
        "goal: {column: goal_position}\ntorque_enable: {column: torque_enable}\n"
    )


def bench(place: Path) -> None:
    """A bench file for every recording."""
    place.write_text(
        "defaults: {mass: 0.1, length: 0.1, arm_mass: 0.02, kp: 400, supply_voltage: 5.0, actuator: xl330}\n"
    )


def servo_file(place: Path) -> None:
    """A parameter file of a servo with intervals."""
    file_of_joints(place)


def joint_table(place: Path) -> None:
    """A sweep and a free motion of one joint."""
    write_table(place, columns(sweep(speeds=(0.02, 0.05, 0.1, 0.2, 0.4))))


def moving_joint_table(place: Path) -> None:
    """A free motion of one joint."""
    write_table(place, columns(wobble(40.0)))


def columns_of_others(place: Path) -> None:
    """Motion in degrees and a current, under other names."""
    found = columns(wobble(40.0))
    write_table(place, {"time": found["time"], "col1": np.rad2deg(found["q"]), "i": found["tau"] / 4.8})


def degrees_and_amperes(place: Path) -> None:
    """The same under the names of the help."""
    found = columns(wobble(40.0))
    write_table(place, {"time": found["time"], "q": np.rad2deg(found["q"]), "i": found["tau"] / 0.1})


def fitted_m4(place: Path) -> None:
    """A file of law M4, fitted to the runs of :func:`bench_bags`, which it names."""
    commanded(
        "identify servo", shelved(bench_bags, "bags"), "--law", "m4", "--progress", "none", "--output", place
    )


def described_bench(place: Path) -> None:
    """What ``data describe`` writes about tables, with the load, gain and supply filled in."""
    commanded("data describe", shelved(plain_tables, "tables"), "--servo", "xl330", "--output", place)
    filled = {"mass": 0.1, "length": 0.1, "arm_mass": 0.02, "kp": 400, "supply_voltage": 5.0}
    text = place.read_text()
    for key, value in filled.items():
        text = re.sub(rf"\b{key}: TODO", f"{key}: {value}", text)
    place.write_text(text)


def bench_of_a_servo(place: Path) -> None:
    """The shipped description of a servo on its bench."""
    shutil.copy(REPOSITORY / "config" / "record_xl330.yaml", place)


def servo_of_the_page(place: Path) -> None:
    """The description of a servo on docs/actuators.md."""
    (block,) = re.findall(
        r"^```yaml\n(.*?)^```", (REPOSITORY / "docs" / "actuators.md").read_text(), re.MULTILINE | re.DOTALL
    )
    place.write_text(block)


def fleet(place: Path) -> None:
    """A fleet of one servo and two laws."""
    bags = shelved(bench_bags, "bags")
    place.write_text(
        f"output: fits\ndefaults: {{laws: [m1, m3], trials: 4000}}\nservos:\n- {{name: one, servo: xl330, logdir: {bags}}}\n"
    )


def arm_urdf(place: Path) -> None:
    """A URDF of three joints with limits."""
    place.write_text(URDF)


def arm_file(place: Path) -> None:
    """A machine file of the same arm."""
    small_robot(place.parent).rename(place)


def moving_urdf(place: Path) -> None:
    """The URDF of the arm of :func:`arm_bags`."""
    urdf(place.parent)


def arm_bags(place: Path) -> None:
    """A bag of states of an arm that moves, with torques."""
    run = recording(arm(place.parent), noise=0.1, seconds=30.0)
    bag = Bag()
    for time, position, velocity, effort in zip(
        run.time[::5], run.position[::5], run.velocity[::5], run.effort[::5], strict=True
    ):
        state = joint_state(float(time), list(run.joints), position, velocity)
        state.effort = floats(effort)
        bag.add(float(time), "/joint_states", state)
    place.mkdir(parents=True)
    bag.write(place / "run")


def arm_mjcf(place: Path) -> None:
    """An arm of two joints in MJCF."""
    body = '<body pos="0 0 .2"><joint name="{}" axis="0 1 0"/><geom type="capsule" size=".02" fromto="0 0 0 0 0 .2" mass=".2"/>'
    place.write_text(
        f"<mujoco model='arm'><worldbody>{body.format('shoulder')}{body.format('elbow')}</body></body></worldbody></mujoco>"
    )


def lab_file(place: Path) -> None:
    """The same servo as it was exported for Isaac Lab."""
    words = ("--format", "isaaclab", "--kp", "400", "--supply", "5", "--joint", "shoulder")
    commanded("export", *words, "--params", shelved(servo_file, "one.json"), "--output", place)


def exported_mjcf(place: Path) -> None:
    """A servo as it was exported to MJCF."""
    words = ("--format", "mjcf", "--kp", "400", "--supply", "5", "--joint", "shoulder")
    commanded("export", *words, "--params", shelved(servo_file, "one.json"), "--output", place)


def arm_usd(place: Path) -> None:
    """A revolute joint in USD."""
    joint = 'def PhysicsRevoluteJoint "elbow"\n{\n}'
    place.write_text(f'#usda 1.0\n(\ndefaultPrim = "arm"\n)\ndef Xform "arm"\n{{\n{joint}\n}}\n')


def bam_parameters(place: Path) -> None:
    """Parameters in the format of BAM."""
    write_json(
        place, {"model": "m1", "actuator": "xl330", **load_actuator("xl330").published["m1"], "q_offset": 0.0}
    )


def transmission(place: Path) -> None:
    """A joint of a geared drive with encoders before and behind it, twice."""
    time = np.arange(5000) * 0.001
    rng = np.random.default_rng(1)
    motor = sum(0.2 * np.sin((0.7 + k) * 2.0 * time + k) for k in range(3))
    torque = 0.4 * np.sin(1.9 * time) + 0.002 * np.gradient(np.gradient(motor, 0.001), 0.001)
    twist = 100.0 * torque / 2e4 + 2e-4 * np.sign(np.gradient(motor))
    link = motor - twist + 1e-5 * rng.standard_normal(len(time))
    both = {
        name: np.stack([value, value], axis=1)
        for name, value in {"q_m": motor, "q": link, "tau": torque}.items()
    }
    np.savez(place, t=time, ratio=np.array([100.0, 100.0]), **both)


def pendulum(place: Path) -> None:
    """A free swing of the pendulum of config/mechanisms, damped."""
    time = 0.005 * np.arange(401)
    angle = np.exp(-0.1 * time) * np.cos(8.5 * time) + 1e-3 * np.random.default_rng(0).standard_normal(
        len(time)
    )
    write_table(place, {"time": time, "angle": angle})


def pendulums(place: Path) -> None:
    """A folder of one swing."""
    place.mkdir(parents=True)
    pendulum(place / "swing.csv")


def pendulum_file(place: Path) -> None:
    """The description of that pendulum."""
    shutil.copy(REPOSITORY / "config" / "mechanisms" / "pendulum.yaml", place)


def legs(place: Path) -> None:
    """A folder of three runs of a leg."""
    place.mkdir(parents=True)
    for k in range(3):
        recorded(place, f"run{k}", 0.7 * k, seconds=5.0)


def leg_model(place: Path) -> None:
    """The MJCF of the leg."""
    write_model(place.parent).rename(place)


def poses(place: Path) -> None:
    """A folder of measured poses of an IRB 120 with errors."""
    write_data(place, true_arm().measure(60, 1, 1e-4))


def of_others(folder: str) -> Callable[[Path], None]:
    """A file of recordings that are not part of the repository; without them the line is skipped."""

    def copied(place: Path) -> None:
        if not (DATA / folder / place.name).is_file():
            pytest.skip(f"needs the recordings {folder}")
        shutil.copy(DATA / folder / place.name, place)

    return copied


def candidates(place: Path) -> None:
    """Poses that could be measured, in the unit of the machine's file."""
    np.savetxt(place, np.rad2deg(true_arm().measure(60, 2).positions))


def live_parameters(place: Path) -> None:
    """The shipped parameters of the compensation node, for a file beside them."""
    servo_file(place.parent / "live.json")
    text = (REPOSITORY / "config" / "compensation.yaml").read_text()
    place.write_text(text.replace("~/stribeck/m6.json", str(place.parent / "live.json")))


def arm_drives(place: Path) -> None:
    """Drives of the arm of :func:`arm_urdf`, as `identify robot` knows them."""
    actuator = torque_actuator("rotary", largest=10.0, derivative_gain=1.0)
    estimates = {
        "stiffness": fixed(20.0, "N m/rad"),
        "derivative": fixed(0.5, "N m s/rad"),
        "friction_base": fixed(0.1, "N m"),
    }
    joints = re.findall(r'<joint name="(\w+)" type="revolute"', URDF)
    law = law_named("m1")
    write_drives(place, Drives({name: torque_drive(actuator, law, estimates) for name in joints}))


Builder = Callable[[Path], None]

BUILDERS: tuple[tuple[str, str, Builder], ...] = (
    (r"evaluate", r"breakaway_bags", breakaway_bags),
    (r"evaluate", r"m5\.json", m5_file),
    (r"evaluate", r"bam_m\d\.json", bam_parameters),
    (r"evaluate", r"arm\.xml", exported_mjcf),
    (r"evaluate", r"lab\.yaml", lab_file),
    (r"identify servo", r"my_xm430\.yaml", servo_of_the_page),
    (r"record", r"my_servo\.yaml", bench_of_a_servo),
    (r"advise", r"robot\.json", arm_drives),
    (r"advise", r"arm\.urdf", arm_urdf),
    (r"identify arm|data describe .*--model", r"bags", arm_bags),
    (r"identify arm|data describe .*--model", r"arm\.urdf", moving_urdf),
    (r"identify servo .*my_xm430", r"my_bags", bags_of_the_page),
    (
        r"identify servo|evaluate|data suggest",
        r"(my_bags|bags|recorded)(/xl330_simulated)?|~/stribeck/bags/xl330",
        bench_bags,
    ),
    (r"replay", r"bag|(my_bags|recorded)/\w+", one_bag),
    (r"data import .*--arm-mass", r"recordings", bam_recordings),
    (r"data import logs/ --bench mass", r"logs", bags_without_bench),
    (r"data", r"recordings|logs", plain_tables),
    (r"data", r"recording\.csv", plain_table),
    (r"", r"signals\.yaml", signals),
    (r"--signals", r"bench\.yaml", bench),
    (r"", r"bench\.yaml", described_bench),
    (r"data suggest|evaluate", r"m4\.json", fitted_m4),
    (r"export --format (?!c )", r"\w+\.json", fitted_m4),
    (r"", r"(m1|m3|m4|m6|p|servo|mine|shoulder|elbow|back)\.json", servo_file),
    (r"", r"compensation\.yaml", live_parameters),
    (r"identify fleet", r"(build/fleet/|config/)?fleet\.yaml", fleet),
    (r"identify joint", r"bags/sweep_kp400", sweep_bag),
    (r"identify joint", r"(joint\w*|sweep|slow|fast)\.csv", joint_table),
    (r"col1:deg", r"log\.csv", columns_of_others),
    (r"identify joint", r"log\.csv", degrees_and_amperes),
    (r"identify joint", r"other\.csv", moving_joint_table),
    (r"design", r"(my_)?arm\.urdf", arm_urdf),
    (r"design", r"my_arm\.yaml", arm_file),
    (r"export .*urdf", r"arm\.urdf", arm_urdf),
    (r"export", r"arm\.xml", arm_mjcf),
    (r"export", r"arm\.usda", arm_usd),
    (r"import-model", r"\w+\.xml", exported_mjcf),
    (r"import-model", r"params\.json", bam_parameters),
    (r"identify robot", r"runs|unseen", legs),
    (r"identify robot", r"robot\.xml", leg_model),
    (r"identify arm --bayes", r"tx40\.urdf", of_others("tx40")),
    (r"identify mechanism", r"run\.csv", pendulum),
    (r"identify mechanism", r"train|test", pendulums),
    (r"identify mechanism", r"pendulum\.yaml", pendulum_file),
    (r"identify transmission", r"[AB]\.mat", of_others("kuka_kr300")),
    (r"identify transmission", r"run\.npz", transmission),
    (r"geometry|design poses", r"poses|others|measured", poses),
    (r"design poses", r"poses\.txt", candidates),
)
"""Which lines name which files, as regular expressions, and what makes one; the first that fits is taken."""


def commanded(command: str, *words: object) -> None:
    """Run a command that prepares something."""
    assert main([*command.split(), *map(str, words)]) == 0


@cache
def _shelf() -> Path:
    return Path(tempfile.mkdtemp(prefix="lines-"))


def shelved(build: Builder, name: str) -> Path:
    """What a builder makes, made once."""
    place = _shelf() / build.__name__ / name
    if not place.exists():
        place.parent.mkdir(parents=True, exist_ok=True)
        build(place)
    return place


def named_files(line: str) -> list[str]:
    """Names in a line that could be files which it reads."""
    words = line.split()
    read = [word for before, word in pairwise(words) if before not in OUTPUTS]
    return [
        word.rstrip("/")
        for word in read
        if re.fullmatch(r"~?[\w./-]+", word) and not word.startswith(("-", "/"))
    ]


def furnish(line: str, folder: Path) -> None:
    """Make the files that a line reads, below a folder, which is HOME; the repository's own stay where they are named."""
    for name in named_files(line):
        target = folder / name.removeprefix("~/")
        for lines, names, build in BUILDERS:
            if re.search(lines, line) and re.fullmatch(names, name):
                made = shelved(build, target.name)
                target.parent.mkdir(parents=True, exist_ok=True)
                if made.is_dir():
                    shutil.copytree(made, target, dirs_exist_ok=True)
                else:
                    shutil.copy(made, target)
                break
        else:
            top = Path(name).parts[0]
            if top == "config" and (REPOSITORY / name).exists() and not (folder / top).exists():
                (folder / top).symlink_to(REPOSITORY / top)
