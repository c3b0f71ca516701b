"""Exported USD files in Newton's MuJoCo Warp solver on a CPU, with the servo drive of a checkout of Isaac Lab.

Isaac Lab itself is not installed: its two modules are read from the checkout (:data:`bam_kernels.ISAACLAB`), with stand-ins for the few
names that they import from it. Newton's own parser of USD reads the files.
"""

from __future__ import annotations

import ast
import importlib.util
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np

from stribeck.model.bench import STANDARD_GRAVITY, Pendulum

SMALL = 1e-8
"""Inertia of a point mass about itself [kg m²], for which USD has no zero."""

RIGID = (0.9999, 0.9999, 0.001, 0.5, 2.0)
"""Impedance of friction that does not creep."""

MODULES = "source/isaaclab_newton/isaaclab_newton"

ROBOT = """#usda 1.0
(
    defaultPrim = "arm"
    upAxis = "Z"
    metersPerUnit = 1
)
def Xform "arm" (prepend apiSchemas = ["PhysicsArticulationRootAPI"])
{{
    def Xform "bar" (prepend apiSchemas = ["PhysicsRigidBodyAPI", "PhysicsMassAPI"])
    {{
        float physics:mass = {mass!r}
        point3f physics:centerOfMass = ({x!r}, 0, {z!r})
        float3 physics:diagonalInertia = ({own!r}, {own!r}, {own!r})
    }}
    def PhysicsRevoluteJoint "elbow"
    {{
        rel physics:body1 = </arm/bar>
        uniform token physics:axis = "Y"
    }}
}}
"""


def robot_text(pendulum: Pendulum, q_offset: float) -> str:
    """A bench as a stage of USD: its joint is at zero where the bar hangs at ``q_offset`` [rad]."""
    mass = pendulum.mass + pendulum.arm_mass
    centre = (pendulum.mass + pendulum.arm_mass / 2.0) * pendulum.length / mass
    own = (pendulum.mass + pendulum.arm_mass / 3.0) * pendulum.length**2 - mass * centre**2
    x, z = -centre * np.sin(q_offset), -centre * np.cos(q_offset)
    return ROBOT.format(mass=float(mass), x=float(x), z=float(z), own=float(max(own, SMALL)))


def stand_in(name: str, **names: Any) -> None:
    """A module that has some names."""
    if name not in sys.modules:
        sys.modules[name] = ModuleType(name)
    for key, value in names.items():
        setattr(sys.modules[name], key, value)


def isaac_lab(checkout: str) -> tuple[ModuleType, ModuleType]:
    """The drive, registered in Newton, and the module that connects it with the solver."""
    folder = Path(checkout)
    config = folder / "source/isaaclab/isaaclab/actuators/actuator_bam_cfg.py"
    tree = ast.parse(config.read_text(encoding="utf-8"))
    token = next(
        ast.literal_eval(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "BAM_DRIVE_API"
    )
    if "torch" not in sys.modules and importlib.util.find_spec("torch") is None:
        stand_in("torch")
    for name in ("isaaclab", "isaaclab.actuators", "isaaclab_newton", "isaaclab_newton.physics"):
        stand_in(name)
    stand_in("isaaclab.actuators.actuator_bam_cfg", BAM_DRIVE_API=token, BamActuatorCfg=object)
    manager = SimpleNamespace(backend=SimpleNamespace(model=None))
    stand_in("isaaclab_newton.physics.newton_manager", NewtonManager=manager)
    stand_in(
        "drive_of_isaac_lab",
        __path__=[str(folder / MODULES / "actuators"), str(folder / MODULES / "physics")],
    )
    return tuple(
        importlib.import_module(f"drive_of_isaac_lab.{name}") for name in ("bam", "mjwarp_actuator_bridge")
    )


def motion(
    checkout: str,
    files: Sequence[Path],
    goal: np.ndarray,
    start: np.ndarray,
    external: np.ndarray,
    timestep: float,
    rigid: bool = False,
) -> np.ndarray:
    """Positions (T, R) [rad] of benches side by side, each from its exported file.

    The order within a step is Isaac Lab's: load of the previous solution, drive, friction, solution.

    :param goal: goal of every step (T, R) [rad].
    :param start: position [rad] and velocity [rad/s] at the start (2, R).
    :param external: load at the start (R,) [N m], for which there is no previous solution.
    :param rigid: friction as hard as the solver has it, in place of Isaac Lab's.
    """
    import newton
    import warp

    _, bridges = isaac_lab(checkout)
    builder = newton.ModelBuilder(gravity=(0.0, 0.0, -STANDARD_GRAVITY))
    newton.solvers.SolverMuJoCo.register_custom_attributes(builder)
    for k, file in enumerate(files):
        builder.add_usd(str(file), xform=((0.0, 10.0 * k, 0.0), (0.0, 0.0, 0.0, 1.0)))
    with warp.ScopedDevice("cpu"):
        model = builder.finalize(device="cpu")
        (actuator,) = model.actuators
        order = actuator.indices.numpy().astype(int)
        solver = newton.solvers.SolverMuJoCo(
            model,
            separate_worlds=False,
            disable_contacts=True,
            iterations=50,
            ls_iterations=50,
            tolerance=1e-10,
        )
        bridge = bridges.MjWarpActuatorBridge(solver, actuator.indices, model.joint_dof_count, "cpu")
        if rigid:
            bridge.STIFF_SOLREF_FRICTION, bridge.STIFF_SOLIMP_FRICTION = (2.0 * timestep, 1.0), RIGID
        bridge.stiffen_friction_constraint()
        drive, states = actuator.drive, [actuator.state(), actuator.state()]
        drive.external_torque = warp.array(external[order], dtype=float)
        viscous = warp.array(model.joint_damping.numpy()[order], dtype=float)
        now, after, control = model.state(), model.state(), model.control()
        now.joint_q.assign(start[0].astype(np.float32))
        now.joint_qd.assign(start[1].astype(np.float32))
        newton.eval_fk(model, now.joint_q, now.joint_qd, now)
        found = np.empty_like(goal)
        for k, goals in enumerate(goal):
            found[k] = now.joint_q.numpy()
            if k:
                bridge.gather_external_torque(drive.external_torque)
            control.joint_f.zero_()
            control.joint_target_q.assign(goals.astype(np.float32))
            actuator.step(now, control, *states, dt=timestep)
            states.reverse()
            bridge.publish_dof_friction(drive.friction_budget, viscous)
            solver.step(now, after, control, None, timestep)
            now, after = after, now
    return found
