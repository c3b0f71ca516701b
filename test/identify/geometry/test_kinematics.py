"""Chains of elementary transforms against textbook formulas, finite differences and Pinocchio."""

import numpy as np
import pytest

from simulated_arms import TOOL, TRACKER, irb120
from stribeck.errors import ConfigError
from stribeck.files.robots import example_robots
from stribeck.identify.geometry.chain import SerialChain, dh_chain, elementary, move, product
from stribeck.identify.geometry.model import GEOMETRY, KinematicModel, candidate_terms
from stribeck.identify.geometry.urdf import calibrated_chain, origin_of

TABLE = [(0.1, 0.29, 0.02, -1.5), (-1.4, 0.03, 0.27, 0.1), (0.2, 0.01, 0.07, 1.2)]
Q = np.array([[0.3, -0.7, 1.1], [-1.0, 0.2, -0.4]])
PANDA = tuple(f"panda_joint{j}" for j in range(1, 8))
needs_robots = pytest.mark.skipif(
    not example_robots("panda.urdf"), reason="example-robot-data is not installed"
)


def flange(chain, positions):
    return move(chain, np.eye(4), chain.magnitudes(positions))


def sliding_chain():
    """A revolute, a prismatic and a revolute joint."""
    chain = dh_chain(TABLE, "abc")
    return SerialChain(chain.names, chain.placements, chain.flange, (False, True, False))


def standard(q):
    c = [
        product(elementary("rz", t + x), elementary("z", d), elementary("x", a), elementary("rx", al))
        for (t, d, a, al), x in zip(TABLE, q, strict=True)
    ]
    return product(*c)


def modified(q):
    c = [
        product(elementary("rx", al), elementary("x", a), elementary("rz", t + x), elementary("z", d))
        for (t, d, a, al), x in zip(TABLE, q, strict=True)
    ]
    return product(*c)


@pytest.mark.parametrize(("convention", "formula"), [("standard", standard), ("modified", modified)])
def test_denavit_hartenberg_tables_give_the_textbook_product(convention, formula):
    """Frames of both conventions are those of the product of four transforms for each joint."""
    motion = flange(dh_chain(TABLE, "abc", convention), Q)
    for i, q in enumerate(Q):
        np.testing.assert_allclose(motion.rotation[i], formula(q)[:3, :3], atol=1e-14)
        np.testing.assert_allclose(motion.position[i], formula(q)[:3, 3], atol=1e-14)


@pytest.mark.parametrize("chain", [irb120(), sliding_chain()], ids=["irb120", "prismatic"])
def test_derivatives_are_those_of_finite_differences(chain):
    """Every parameter of every group, at a point away from nominal."""
    rng = np.random.default_rng(0)
    model = KinematicModel(chain, TRACKER, candidate_terms(chain), ("a", "b"))
    values = 0.01 * rng.normal(size=len(model.names))
    values[-6:] = TOOL[:2].ravel()
    positions = rng.uniform(-1.5, 1.5, (4, len(chain.names)))
    features = model.features(positions)
    _, jacobian = model.linearise(positions, values, features)

    def predict(at):
        return model.motion(positions, at, features).points(model.behind_flange(at))

    for p, step in enumerate(1e-6 * np.eye(len(values))):
        up, down = (predict(values + sign * step) for sign in (1, -1))
        np.testing.assert_allclose(jacobian[:, :, p], (up - down).reshape(4, 6) / 2e-6, atol=2e-9)


def test_hayatis_parameter_is_the_rotation_about_y():
    """For parallel axes a table with Rot(y, β) behind joint 2 equals the correction joint_2.ry = β."""
    beta, chain = 2e-3, irb120()
    placements = chain.placements.copy()
    placements[2] = elementary("ry", beta) @ placements[2]
    hayati = SerialChain(chain.names, placements, chain.flange, chain.prismatic)
    model = KinematicModel(chain, np.eye(4), candidate_terms(chain), ("a",)).keep(GEOMETRY)
    values = np.zeros(len(model.names))
    values[model.names.index("joint_2.ry")] = beta
    positions = np.random.default_rng(1).uniform(-2, 2, (5, 6))
    np.testing.assert_allclose(
        model.predict(positions, values)[:, 0], flange(hayati, positions).position, atol=1e-14
    )


def test_calibrated_chain_moves_like_the_model():
    """Offsets and geometry folded into placements, flange and base change nothing."""
    chain = irb120()
    model = KinematicModel(chain, TRACKER, candidate_terms(chain), ("a",)).keep(GEOMETRY)
    values = 0.01 * np.random.default_rng(2).normal(size=len(model.names))
    base, folded = calibrated_chain(model, values)
    positions = np.random.default_rng(3).uniform(-2, 2, (5, 6))
    expected = model.motion(positions, values)
    found = move(folded, base, folded.magnitudes(positions))
    np.testing.assert_allclose(found.position, expected.position, atol=1e-13)
    np.testing.assert_allclose(found.rotation, expected.rotation, atol=1e-13)


@pytest.mark.parametrize("pitch", [0.3, np.pi / 2, -np.pi / 2])
def test_origins_are_the_roll_pitch_yaw_of_a_urdf(pitch):
    """Also where roll and yaw turn about the same axis."""
    pose = product(
        elementary("x", 0.1), elementary("rz", 0.5), elementary("ry", pitch), elementary("rx", 0.2)
    )
    xyz, (roll, p, yaw) = origin_of(pose)
    again = product(elementary("rz", yaw), elementary("ry", p), elementary("rx", roll))
    np.testing.assert_allclose(xyz, [0.1, 0.0, 0.0])
    np.testing.assert_allclose(again[:3, :3], pose[:3, :3], atol=1e-12)


@needs_robots
@pytest.mark.parametrize(("name", "joints"), [("panda.urdf", PANDA), ("ur10_robot.urdf", ())])
def test_urdf_chains_move_like_pinocchio(name, joints):
    """Axes along x, y or z, fixed joints between, gripper joints left at 0."""
    pin = pytest.importorskip("pinocchio")
    from stribeck.identify.geometry.urdf import read_urdf_chain

    path = example_robots(name)[0]
    chain = read_urdf_chain(path, joints)
    model = pin.buildModelFromUrdf(str(path))
    positions = np.random.default_rng(0).uniform(-2, 2, (3, len(chain.names)))
    motion = flange(chain, positions)
    for i, q in enumerate(positions):
        full = pin.neutral(model)
        full[: len(q)] = q
        data = model.createData()
        pin.forwardKinematics(model, data, full)
        last = data.oMi[model.getJointId(chain.names[-1])]
        np.testing.assert_allclose(motion.position[i], last.translation, atol=1e-12)
        np.testing.assert_allclose(motion.rotation[i], last.rotation, atol=1e-12)


@needs_robots
@pytest.mark.parametrize(("name", "joints"), [("panda.urdf", PANDA), ("ur10_robot.urdf", ())])
def test_calibrated_urdfs_are_read_as_they_were_meant(name, joints, tmp_path):
    """A changed chain written into a URDF and read again is the same chain."""
    pytest.importorskip("pinocchio")
    from stribeck.identify.geometry.urdf import read_urdf_chain, write_calibrated_urdf

    path = example_robots(name)[0]
    chain = read_urdf_chain(path, joints)
    model = KinematicModel(chain, np.eye(4), candidate_terms(chain), ("a",)).keep(("offset", "geometry"))
    _, changed = calibrated_chain(model, 0.01 * np.random.default_rng(0).normal(size=len(model.names)))
    write_calibrated_urdf(tmp_path / "arm.urdf", path, changed)
    again = read_urdf_chain(tmp_path / "arm.urdf", joints)
    np.testing.assert_allclose(again.placements, changed.placements, atol=1e-12)


@needs_robots
def test_joints_that_a_urdf_does_not_have_are_named():
    """The message lists those that it has; joints in another order are refused."""
    pytest.importorskip("pinocchio")
    from stribeck.identify.geometry.urdf import read_urdf_chain

    path = example_robots("panda.urdf")[0]
    with pytest.raises(ConfigError, match=r"no joint elbow; it has panda_joint1"):
        read_urdf_chain(path, ["elbow"])
    with pytest.raises(ConfigError, match="in order from the base"):
        read_urdf_chain(path, ["panda_joint2", "panda_joint1"])


def test_chains_that_cannot_be_are_refused():
    """Missing placements, joints with one name, matrices that are no poses."""
    chain = irb120()
    with pytest.raises(ConfigError, match="placements"):
        SerialChain(chain.names, chain.placements[:5], chain.flange, chain.prismatic)
    with pytest.raises(ConfigError, match="unique name"):
        SerialChain(("a",) * 6, chain.placements, chain.flange, chain.prismatic)
    with pytest.raises(ConfigError, match="must consist of a rotation"):
        SerialChain(chain.names, 2.0 * chain.placements, chain.flange, chain.prismatic)
    with pytest.raises(ConfigError, match="one row for each"):
        dh_chain(TABLE, "ab")
