"""Exported files in the engines that are installed: Drake, DART (the physics engine of Gazebo), Genesis, MuJoCo.

A pendulum of 0.2 kg and 0.1 m with the published M1 of an XL330 (gain 400, 5 V) follows sin_sin for 6 s. Printed are the numbers
that the engine read, and the mean and largest difference of position from the law that the file holds [mrad].

    python bench/engines.py [drake dart-urdf dart-sdf genesis mujoco]
"""

from __future__ import annotations

import importlib.util
import sys
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from stribeck.evaluate.assessment import Stepping
from stribeck.exports.affine import Affine, affine
from stribeck.exports.loss import as_controller, documented
from stribeck.exports.registry import format_named
from stribeck.exports.task import ExportTask, JointServo
from stribeck.files.actuators import load_actuator
from stribeck.model.bench import STANDARD_GRAVITY
from stribeck.model.joint import Drive, Servo
from stribeck.model.law import law_named
from stribeck.model.log import Log, Series, Setup
from stribeck.model.step import batch_for
from stribeck.model.trajectories import trajectory_named

FloatArray = npt.NDArray[np.float64]

DT = 0.001
SETUP = Setup(0.2, 0.1, 0.0, 5.0, 400.0)
ABOUT = 1e-6
"""Inertia about the centre of mass [kg m²]."""

XL330 = load_actuator("xl330")
SERVO = Servo(
    Drive(XL330, law_named("m1"), {**XL330.published["m1"], "q_offset": 0.0}),
    400.0,
    supply_voltage=5.0,
)
MOTOR: Affine = affine(SERVO)
TIME = np.asarray(DT * np.arange(6001), dtype=np.float64)
GOAL = trajectory_named("sin_sin").goal(TIME)


def urdf(armature: float) -> str:
    """The pendulum; ``armature`` [kg m²] goes into the link where the format has no place for it."""
    return f"""<robot name="bench"><link name="base"/><link name="bar"><inertial><origin xyz="0 0 {-SETUP.length}"/>
<mass value="{SETUP.mass}"/><inertia ixx="{ABOUT}" iyy="{ABOUT + armature}" izz="{ABOUT}" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="joint" type="continuous"><parent link="base"/><child link="bar"/><axis xyz="0 1 0"/></joint>
<transmission name="t"><type>transmission_interface/SimpleTransmission</type><joint name="joint"/>
<actuator name="motor"><mechanicalReduction>1</mechanicalReduction></actuator></transmission></robot>"""


def sdf(armature: float) -> str:
    """The same as SDF."""
    return f"""<sdf version="1.6"><model name="bench"><link name="base"/><link name="bar"><pose>0 0 0 0 0 0</pose><inertial>
<pose>0 0 {-SETUP.length} 0 0 0</pose><mass>{SETUP.mass}</mass><inertia><ixx>{ABOUT}</ixx><iyy>{ABOUT + armature}</iyy><izz>{ABOUT}</izz>
<ixy>0</ixy><ixz>0</ixz><iyz>0</iyz></inertia></inertial></link><joint name="weld" type="fixed"><parent>world</parent><child>base</child></joint>
<joint name="joint" type="revolute"><parent>base</parent><child>bar</child><axis><xyz>0 1 0</xyz></axis></joint></model></sdf>"""


def exported(form: str, folder: Path, model: str | None) -> Path:
    """The written file."""
    source = folder / "in.txt"
    if model is not None:
        source.write_text(model, encoding="utf-8")
    suffix = {"genesis": ".py", "sdf": ".sdf", "mjcf": ".xml"}.get(form, ".urdf")
    task = ExportTask(
        (JointServo("joint", SERVO),), folder / f"out{suffix}", None if model is None else source
    )
    for path, text in format_named(form).write(task).files.items():
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return task.output


def torque(goal: float, position: float, velocity: float) -> float:
    """The controller of most engines."""
    damping = MOTOR.feedback + MOTOR.back_emf
    return float(np.clip(MOTOR.stiffness * (goal - position) - damping * velocity, -MOTOR.force, MOTOR.force))


def drake(folder: Path) -> FloatArray:
    """Drake's MultibodyPlant, discrete, with its PD controller of joints."""
    from pydrake.multibody.parsing import Parser
    from pydrake.multibody.plant import MultibodyPlant
    from pydrake.multibody.tree import PdControllerGains
    from pydrake.systems.analysis import Simulator

    plant = MultibodyPlant(DT)
    (model,) = Parser(plant).AddModels(str(exported("drake", folder, urdf(0.0))))
    plant.WeldFrames(plant.world_frame(), plant.GetFrameByName("base"))
    plant.mutable_gravity_field().set_gravity_vector([0.0, 0.0, -STANDARD_GRAVITY])
    actuator = plant.GetJointActuatorByName("motor")
    actuator.set_controller_gains(PdControllerGains(p=MOTOR.stiffness, d=MOTOR.feedback + MOTOR.back_emf))
    plant.Finalize()
    joint = plant.GetJointByName("joint")
    print(
        "  damping, rotor inertia, effort:",
        joint.default_damping(),
        actuator.default_rotor_inertia(),
        actuator.effort_limit(),
    )
    simulator = Simulator(plant)
    context = simulator.get_mutable_context()
    port, found = plant.get_desired_state_input_port(model), np.empty_like(GOAL)
    for k, goal in enumerate(GOAL):
        found[k] = joint.get_angle(context)
        port.FixValue(context, [goal, 0.0])
        simulator.AdvanceTo(DT * (k + 1))
    return found


def dart(folder: Path, form: str) -> FloatArray:
    """DART with the controller of :func:`torque`; armature in the link, as URDF and SDF have none."""
    import dartpy

    armature = SERVO.parameters.values["armature"]
    path = exported(form, folder, urdf(armature) if form == "urdf" else sdf(armature))
    world = dartpy.simulation.World()
    if form == "urdf":
        path.write_text(
            path.read_text(encoding="utf-8").replace('"base"', '"world"'), encoding="utf-8"
        )  # DART's fixed link
        skeleton = dartpy.utils.DartLoader().parseSkeleton(str(path))
    else:
        skeleton = dartpy.utils.SdfParser.readSkeleton(str(path))
    world.addSkeleton(skeleton)
    world.setTimeStep(DT)
    world.setGravity([0.0, 0.0, -STANDARD_GRAVITY])
    joint = skeleton.getJoint("joint")
    print("  damping, friction:", joint.getDampingCoefficient(0), joint.getCoulombFriction(0))
    found = np.empty_like(GOAL)
    for k, goal in enumerate(GOAL):
        found[k] = joint.getPosition(0)
        joint.setForce(0, torque(goal, found[k], joint.getVelocity(0)))
        world.step()
    return found


def genesis(folder: Path) -> FloatArray:
    """Genesis on the CPU, with the exported function and its position controller."""
    import genesis as gs

    path = exported("genesis", folder, None)
    (folder / "bench.urdf").write_text(urdf(0.0), encoding="utf-8")
    gs.init(backend=gs.cpu, precision="64", logging_level="warning")
    scene = gs.Scene(
        sim_options=gs.options.SimOptions(dt=DT, gravity=(0.0, 0.0, -STANDARD_GRAVITY)), show_viewer=False
    )
    entity = scene.add_entity(gs.morphs.URDF(file=str(folder / "bench.urdf"), fixed=True))
    scene.build()
    names: dict[str, Callable[[object], None]] = {}
    exec(path.read_text(encoding="utf-8"), names)  # noqa: S102  # the module just written
    names["apply"](entity)
    print(
        "  armature, damping, kp, frictionloss:",
        entity.get_dofs_armature(),
        entity.get_dofs_damping(),
        entity.get_dofs_kp(),
        entity.get_dofs_frictionloss(),
    )
    found = np.empty_like(GOAL)
    for k, goal in enumerate(GOAL):
        found[k] = float(entity.get_dofs_position()[0])
        entity.control_dofs_position(np.array([goal]))
        scene.step()
    return found


def mujoco(_folder: Path) -> FloatArray:
    """MuJoCo, by the simulation of the exporter itself."""
    from stribeck.exports.mjcf import simulated

    return simulated(SERVO, batch_for([run()], DT, "exponential"), Stepping(DT))[:, 0]


def run() -> Log:
    """The goals as a run from rest."""
    zero = Series(TIME, np.zeros_like(TIME), held=False)
    on = Series(TIME, np.ones_like(TIME), held=True)
    return Log("bench", "xl330", "sin_sin", SETUP, zero, zero, Series(TIME, GOAL, held=True), on)


ENGINES: dict[str, tuple[str, Callable[[Path], FloatArray], dict[str, float]]] = {
    "drake": ("pydrake", drake, {"friction_base": 0.0}),
    "dart-urdf": ("dartpy", lambda folder: dart(folder, "urdf"), {}),
    "dart-sdf": ("dartpy", lambda folder: dart(folder, "sdf"), {}),
    "genesis": ("genesis", genesis, {}),
    "mujoco": ("mujoco", mujoco, {}),
}
"""Library, simulation, and parameters that the format lacks."""


def main(wanted: list[str]) -> None:
    """Print one line for each engine."""
    for name in wanted or list(ENGINES):
        library, simulate, absent = ENGINES[name]
        if importlib.util.find_spec(library) is None:
            print(f"{name}: {library} is not installed")
            continue
        file = SERVO.parameters
        held = replace(SERVO, parameters=replace(file, values={**file.values, **absent}))
        law = (
            documented if name == "mujoco" else as_controller
        )  # a dcmotor has no other clipping than the servo
        runs = batch_for([run()], DT, "exponential")
        runs = replace(runs, goal=np.append(0.5 * (runs.goal[1:] + runs.goal[:-1]), runs.goal[-1:], axis=0))
        wanted_motion = law(held, runs, Stepping(DT))[:, 0]  # engines take a goal in the middle of its step
        with tempfile.TemporaryDirectory() as folder:
            error = 1e3 * np.abs(simulate(Path(folder)) - wanted_motion)
        print(f"{name}: mean {np.mean(error):.3f}, largest {np.max(error):.3f} mrad", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
