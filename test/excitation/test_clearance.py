"""Capsules: they enclose what they stand for, and their distances are coal's."""

from pathlib import Path

import coal
import jax
import numpy as np
import pinocchio as pin
import pytest

from small_arm import URDF
from stribeck.errors import ConfigError
from stribeck.excitation.clearance import bodies_of, clearances, segment_distance
from stribeck.excitation.shapes import capsule_around, enclosing_capsules, shapes_of
from stribeck.files.robots import example_robots
from stribeck.identify.arm.jax_chain import chain_of, frames
from stribeck.identify.arm.model import load_arm


def outside(points: np.ndarray, start: np.ndarray, end: np.ndarray, radius: float) -> float:
    """How far the farthest of points is outside a capsule."""
    with jax.enable_x64(True):
        ends = (np.broadcast_to(p, points.shape).T for p in (points, points, start, end))
        away = np.asarray(segment_distance(*ends))
    return float(away.max()) - radius


def test_capsule_encloses_all_points() -> None:
    """Long, flat and round clouds."""
    rng = np.random.default_rng(0)
    for size in ((1, 0.1, 0.1), (1, 1, 0.1), (1, 1, 1)):
        points = rng.normal(size=(60, 3)) * size
        assert outside(points, *capsule_around(points)) < 1e-5


def test_distances_of_segments_are_those_of_coal() -> None:
    """Crossing, parallel and degenerate segments among them."""
    rng = np.random.default_rng(0)
    ends = rng.normal(size=(4, 40, 3))
    ends[1, :5] = ends[0, :5]
    ends[3, 5:10] = ends[2, 5:10] + (ends[1, 5:10] - ends[0, 5:10])
    with jax.enable_x64(True):
        found = np.asarray(segment_distance(*(part.T for part in ends)))
    for k in range(40):
        assert found[k] == pytest.approx(coal_distance(ends[:, k]), abs=1e-5)


def coal_distance(ends: np.ndarray) -> float:
    bodies = []
    for start, end in (ends[:2], ends[2:]):
        turn = pin.Quaternion.FromTwoVectors(np.array([0.0, 0.0, 1.0]), end - start).matrix()
        length = float(np.linalg.norm(end - start))
        place = coal.Transform3s(turn if length else np.eye(3), 0.5 * (start + end))
        bodies += [coal.Capsule(1e-4, length), place]
    return float(coal.distance(*bodies, coal.DistanceRequest(), coal.DistanceResult())) + 2e-4


@pytest.mark.slow
def test_meshes_that_touch_have_capsules_that_do() -> None:
    """No collision of a real arm escapes the capsules."""
    places = example_robots("panda.urdf")
    if not places:
        pytest.skip("example-robot-data is not installed")
    arm = load_arm(places[0], [f"panda_joint{k}" for k in range(1, 8)])
    shapes = shapes_of(arm, {})
    for shape in shapes:
        if isinstance(shape.geometry, coal.BVHModelBase):
            capsules = [c for c in enclosing_capsules([shape]) if c.link == shape.link]
            place = shape.placement
            points = np.array(shape.geometry.vertices()) @ place.rotation.T + place.translation
            assert outside(points, capsules[0].start, capsules[0].end, capsules[0].radius) < 1e-5


def test_neighbours_and_ignored_links_are_no_pairs(tmp_path: Path) -> None:
    """Of four links in a row three pairs are left, less what is to be ignored."""
    (tmp_path / "small.urdf").write_text(URDF)
    arm = load_arm(tmp_path / "small.urdf")
    capsules = enclosing_capsules(shapes_of(arm, {}))
    assert len(bodies_of(chain_of(arm), capsules).pairs) == 3
    assert len(bodies_of(chain_of(arm), capsules, [frozenset(("base", "slider"))]).pairs) == 2


@pytest.mark.slow
def test_heights_are_those_of_the_lowest_points(tmp_path: Path) -> None:
    """The arm hanging straight down: 0.4 m less 0.3, 0.25 and the ball's 0.03."""
    (tmp_path / "small.urdf").write_text(URDF)
    arm = load_arm(tmp_path / "small.urdf")
    bodies = bodies_of(chain_of(arm), enclosing_capsules(shapes_of(arm, {})))
    with jax.enable_x64(True):
        place = frames(chain_of(arm), np.array([[np.pi / 2], [0.0], [0.0]]))
        height = np.asarray(clearances(bodies, *place)[1])
    assert height.min() == pytest.approx(0.4 - 0.55 - 0.03, abs=1e-6)


def test_links_that_are_not_there_are_named(tmp_path: Path) -> None:
    """A capsule on a link that the URDF does not have."""
    (tmp_path / "small.urdf").write_text(URDF)
    with pytest.raises(ConfigError, match="no link 'forearm'; valid: base, upper"):
        shapes_of(load_arm(tmp_path / "small.urdf"), {"forearm": [(0, 0, 0, 0, 0, 1, 0.1)]})


def test_meshes_that_are_not_there_are_asked_for(tmp_path: Path) -> None:
    """The message says what to do instead."""
    (tmp_path / "small.urdf").write_text(
        URDF.replace('<sphere radius="0.03"/>', '<mesh filename="package://nowhere/link.stl"/>')
    )
    with pytest.raises(ConfigError, match="give capsules"):
        shapes_of(load_arm(tmp_path / "small.urdf"), {})
