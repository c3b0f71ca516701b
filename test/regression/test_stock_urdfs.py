"""URDFs as they come: rounded angles, a link and a joint of one name, bodies that overlap by design."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from designing import small_task
from small_arm import JOINTS, URDF
from stribeck.errors import ConfigError
from stribeck.excitation.baseline import LEAST, random_baseline
from stribeck.excitation.criterion import Criterion
from stribeck.excitation.defaults import robot_of_urdf
from stribeck.excitation.shapes import shapes_of
from stribeck.identify.arm.base_parameters import structural_base_parameters
from stribeck.identify.arm.config import Protocol
from stribeck.identify.arm.least_squares import fit_linear
from stribeck.identify.arm.model import load_arm
from stribeck.identify.arm.motion import ProcessedMotion, States
from stribeck.identify.arm.regressor import design, machine_of, structural_base
from stribeck.model.arrays import Array


def written(path: Path, *changes: tuple[str, str]) -> Path:
    """The URDF of the small arm with replaced parts."""
    text = URDF
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    path.write_text(text)
    return path


def upright(angle: str) -> tuple[tuple[str, str], ...]:
    """The shoulder turns about a vertical axis, the elbow about a horizontal one behind a turn by ``angle``."""
    return (
        ('<axis xyz="0 1 0"/>\n    <limit effort="30"', '<axis xyz="0 0 1"/>\n    <limit effort="30"'),
        ('rpy="0.3 0 0"/><axis xyz="0 1 0"/>', f'rpy="{angle} 0 0"/><axis xyz="0 0 1"/>'),
    )


@pytest.mark.parametrize("rounded", ["1.5708", "1.571", "1.57"])
def test_rounded_right_angles_leave_the_base_parameters_of_exact_ones(tmp_path: Path, rounded: str) -> None:
    """They had more, which no motion determined: "too little motion" although `excite` had designed it."""
    found = []
    for angle in (repr(np.pi / 2), rounded):
        arm = load_arm(written(tmp_path / "arm.urdf", *upright(angle)), JOINTS)
        machine = machine_of(arm.joints, arm, {})
        bases = structural_base_parameters(arm), structural_base(machine, 1e-4, "symmetric")
        found.append([base.chosen for base in bases])
    assert found[0] == found[1]


def test_an_arm_with_rounded_angles_is_identified(tmp_path: Path) -> None:
    """A fit to torques of the arm itself, with noise, explains them."""
    arm = load_arm(written(tmp_path / "arm.urdf", *upright("1.5708")), JOINTS)
    rng, machine = np.random.default_rng(0), machine_of(JOINTS, arm, {})
    states = States(100.0, *(rng.uniform(-size, size, (400, 3)) for size in (1.5, 3.0, 9.0)))
    clean = arm.inverse_dynamics(states.position, states.velocity, states.acceleration)
    torque = clean + 0.01 * rng.normal(size=clean.shape)
    all_rows = np.ones_like(torque, dtype=bool)
    run = ProcessedMotion(
        "run",
        arm.joints,
        np.arange(400) / 100,
        states,
        torque,
        all_rows,
        ~all_rows,
        states,
        slice(None),
        None,
    )
    fit = fit_linear(machine, [run], Protocol(moving=0.01))
    assert np.sqrt(np.mean((fit.predict(run) - clean) ** 2)) < 0.01
    columns = design(machine, states, 1e-4).columns
    assert fit.condition < 1e3
    assert columns.shape[-1] > len(fit.base)


def test_link_and_joint_of_one_name(tmp_path: Path) -> None:
    """Pinocchio's search by name found two frames, both for the locked joint and for the body."""
    path = written(tmp_path / "arm.urdf", ('"slider"', '"slide"'))
    whole, locked = load_arm(path, JOINTS), load_arm(path, JOINTS[:2])
    assert "slide" in {shape.link for shape in shapes_of(whole, {})}
    assert "slide" in {shape.link for shape in shapes_of(whole, {"slide": [(0, 0, 0, 0, 0, 0.1, 0.02)]})}
    assert shapes_of(locked, {})[-1].joint == 2


def bodies(folder: Path, base: str) -> Path:
    """The small arm on another base."""
    cylinder = '<origin xyz="0 0 0.1"/><geometry><cylinder radius="0.05" length="0.1"/></geometry>'
    return written(folder / "arm.urdf", (cylinder, base))


def criterion_on(path: Path, **changes: object) -> Criterion:
    """The criterion of a URDF alone."""
    from stribeck.excitation.section import ExcitationSection
    from stribeck.excitation.task import task_of

    alone = robot_of_urdf(path)
    section = ExcitationSection(**changes)
    task = task_of(
        alone.config, section, alone.arm, harmonics=3, duration=4.0, collisions=True, limits=alone.limits
    )
    return Criterion(task)


def test_bodies_that_always_touch_are_ignored_and_named(tmp_path: Path) -> None:
    """A base that reaches around the whole arm: "next to no random configuration keeps clear"."""
    path = bodies(tmp_path, '<geometry><sphere radius="3"/></geometry>')
    criterion = criterion_on(path)
    assert criterion.task.touching == {frozenset(("base", "lower")), frozenset(("base", "slider"))}
    assert (criterion.room(random_positions(criterion, 50)) > 0.0).any()


@pytest.mark.ci
def test_capsules_that_overlap_about_bodies_that_do_not(tmp_path: Path) -> None:
    """A plate below the arm: the capsule around it swallows the arm, the plate is out of reach."""
    path = bodies(tmp_path, '<origin xyz="0 0 -0.3"/><geometry><box size="2 2 0.02"/></geometry>')
    criterion = criterion_on(path)
    assert not criterion.task.touching
    assert np.mean(criterion.room(random_positions(criterion, 200)) > 0.0) > 0.5


def random_positions(criterion: Criterion, count: int) -> Array:
    return criterion.task.limits.anywhere(count)


def test_what_is_in_the_way_is_named(tmp_path: Path) -> None:
    """A base that touches the arm nearly, not quite always."""
    criterion = criterion_on(written(tmp_path / "arm.urdf"), clearance=0.6)
    criterion._wanted[:] = 9.0
    with (
        ThreadPoolExecutor(1) as pool,
        pytest.raises(ConfigError, match=r"\w+ with \w+ \(\d+ % of the configurations\)"),
    ):
        random_baseline(criterion, 10, 0, pool)


def test_random_trajectories_end_when_time_is_up(tmp_path: Path) -> None:
    """Within a batch too: on a busy machine one batch took all the time of the search."""
    criterion = Criterion(small_task(tmp_path, collisions=False))
    with ThreadPoolExecutor(1) as pool:
        baseline = random_baseline(criterion, 400, 0, pool, lambda done: False)
    assert len(baseline.z) == LEAST
