"""Identified drives of a robot as plain MJCF, and a recorded run simulated from its goals alone.

Run it as ``robot_in_mujoco.py MODEL.xml OUT/robot.json RUN.npz TARGET``.

``OUT/robot.json`` is what ``stribeck identify robot … --model MODEL.xml --output OUT`` wrote with law M1. Gains are those of
the run (``kp``, ``kd``), or the identified stiffness where it has none. Joints that were not identified keep what the model gives
them, and stay where they are. TARGET gets ``identified.xml``, which needs nothing of Stribeck, and the motion as ``motion.png``. A
fixed base; meshes are left out.
"""

import argparse
from pathlib import Path
from xml.etree import ElementTree

import matplotlib as mpl
import mujoco
import numpy as np

from stribeck.files.drives import Drives, read_drives
from stribeck.identify.robot.recordings import read_runs
from stribeck.identify.robot.tree import gravity_vector, load_tree, strip_mjcf
from stribeck.mujoco.joints import friction_solver

STEP = 0.001
"""Largest time step [s]; a whole number of steps fits into a row of the recording."""


def identified(model: Path, fit: Drives, gains: dict[str, tuple[float, float]], dt: float) -> str:
    """The model with armature, friction and a position controller in each joint; ctrl is the goal less its bias."""
    tree, root = load_tree(model), ElementTree.parse(model).getroot()  # noqa: S314 - a file of the user
    strip_mjcf(root)
    for element in root.findall("option"):
        root.remove(element)
    for group in root.findall("actuator"):
        for element in [one for one in group if one.get("joint") in gains]:
            group.remove(element)
    base = fit.machine.estimates
    tilt = tuple(base[name].value for name in ("tilt_x", "tilt_y")) if base else (0.0, 0.0)
    gravity = " ".join(f"{value:.9g}" for value in gravity_vector(tilt))
    option = ElementTree.SubElement(
        root, "option", timestep=f"{dt:.12g}", integrator="implicitfast", gravity=gravity
    )
    ElementTree.SubElement(option, "flag", contact="disable", limit="disable")
    solref, solimp = (" ".join(map(str, values)) for values in friction_solver(dt))
    joints = {joint.get("name"): joint for joint in root.iter("joint") if joint.get("name")}
    actuators = ElementTree.SubElement(root, "actuator")
    limits = dict(zip(tree.names, tree.limits, strict=True))
    for name, (kp, kd) in gains.items():
        p = fit.joints[name].values
        joints[name].attrib |= {
            "armature": f"{p['armature']:.9g}",
            "damping": f"{p['friction_viscous']:.9g}",
            "frictionloss": f"{p['friction_base']:.9g}",
            "solreffriction": solref,
            "solimpfriction": solimp,
        }
        given = {"name": name, "joint": name, "kp": f"{kp:.9g}", "kv": f"{kd:.9g}"}
        limit = limits[name]
        force = {} if np.isinf(limit) else {"forcerange": f"{-limit:.9g} {limit:.9g}"}
        ElementTree.SubElement(actuators, "position", given | force)
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode") + "\n"


def main(model: Path, fitted: Path, recording: Path, target: Path) -> float:
    """Write the model, simulate the run; returns the error after the first second [rad]."""
    fit, tree = read_drives(fitted), load_tree(model)
    names = list(fit.joints)
    (run,) = read_runs([recording], tree, [name for name in tree.names if name not in names])
    drives = {name: fit.joints[name].estimates for name in names}
    columns = [tree.names.index(name) for name in names]
    if run.stiffness is None or run.derivative is None:
        gains = {name: (drives[name]["stiffness"].value, 0.0) for name in names}
    else:
        gains = dict(
            zip(names, zip(run.stiffness[columns], run.derivative[columns], strict=True), strict=True)
        )
    every = int(np.ceil(run.dt / STEP - 1e-3))
    dt = run.dt / every
    target.mkdir(parents=True, exist_ok=True)
    (target / "identified.xml").write_text(identified(model, fit, gains, dt), encoding="utf-8")
    compiled = mujoco.MjModel.from_xml_path(str(target / "identified.xml"))
    data = mujoco.MjData(compiled)
    bias, delay = (np.array([drives[name][key].value for name in names]) for key in ("bias", "delay"))
    data.qpos[:] = run.position[0]
    data.ctrl[:] = [run.position[0, joint] for joint in compiled.actuator_trnid[:, 0]]
    found, driven = np.empty_like(run.position), [compiled.actuator(name).id for name in names]
    for k in range(len(found) * every):
        if k % every == 0:
            found[k // every] = data.qpos
        rows = np.clip(np.floor((k * dt - delay) / run.dt + 1e-9).astype(int), 0, len(found) - 1)
        data.ctrl[driven] = run.goal[rows, columns] - bias
        mujoco.mj_step(compiled, data)
    draw(target / "motion.png", run, found, [(tree.names[column], column) for column in columns])
    return float(np.sqrt(np.mean((found - run.position)[round(1.0 / run.dt) :, columns] ** 2)))


def draw(path: Path, run, found: np.ndarray, joints: list[tuple[str, int]]) -> None:
    """One leg or arm: goal, recording and simulation, and their difference."""
    mpl.use("Agg")
    from matplotlib import pyplot as plt

    count = len(joints) if len(joints) < 7 else 3
    time = np.arange(len(found)) * run.dt
    figure, axes = plt.subplots(
        count, 2, figsize=(10, 2.4 * count), sharex=True, squeeze=False, layout="constrained"
    )
    for (left, right), (name, j) in zip(axes, joints, strict=False):
        left.plot(time, run.goal[:, j], color="0.7", label="goal")
        left.plot(time, run.position[:, j], color="k", label="recorded")
        left.plot(time, found[:, j], "--", color="C1", label="simulated in MuJoCo")
        right.plot(time, 1e3 * (found[:, j] - run.position[:, j]), color="C1", linewidth=0.8)
        left.set_ylabel(f"{name} [rad]")
        right.set_ylabel("simulated - recorded [mrad]")
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=3)
    for axis in axes[-1]:
        axis.set_xlabel("time [s]")
    figure.savefig(path, dpi=110)
    plt.close(figure)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name, words in (
        ("model", "MODEL.xml"),
        ("fitted", "robot.json"),
        ("recording", "RUN.npz"),
        ("target", "DIR"),
    ):
        parser.add_argument(name, type=Path, metavar=words)
    print(f"{1e3 * main(**vars(parser.parse_args())):.2f} mrad")
