"""Rigid-body dynamics without Pinocchio: by hand, by energy, and against Pinocchio."""

import numpy as np
import pytest

from stribeck.errors import ConfigError
from stribeck.files.robots import example_robots
from stribeck.model.bench import STANDARD_GRAVITY, Pendulum
from stribeck.rigid.dynamics import Dynamics, IndependentJoints, PendulumModel
from stribeck.rigid.rigid_body import RigidBodyModel
from stribeck.rigid.tree import BASE, KinematicTree, TreeJoint, pose_of, pseudo_inertia_of
from stribeck.rigid.urdf import read_urdf

PANDA = tuple(f"panda_joint{k}" for k in range(1, 8))

ROBOTS = [
    ("ur5_robot.urdf", ()),
    ("panda.urdf", PANDA),
    ("panda.urdf", ("panda_finger_joint1", *PANDA)),
    ("panda.urdf", ("panda_joint6", "panda_joint2", "panda_joint3")),
    ("tiago.urdf", ()),
    ("solo12.urdf", ()),
    ("tiago_pro.urdf", ()),
]


def random_tree(seed=0, n=8, slides=3):
    """A tree with branches, parents in no order, joints that turn and slide about any axis, fixed ones between."""
    rng = np.random.default_rng(seed)
    shuffled = rng.permutation(n)
    joints = [None] * n
    for rank, i in enumerate(shuffled):
        parent = BASE if rank == 0 else int(shuffled[max(0, rank - rng.integers(1, 3))])
        axis, root = rng.normal(size=3), rng.normal(size=(3, 3))
        second = 0.02 * root @ root.T
        joints[i] = TreeJoint(
            f"j{i}",
            "prismatic" if i < slides else "revolute",
            parent,
            pose_of(rng.normal(scale=0.4, size=3), rng.uniform(-3.0, 3.0, 3)),
            axis / np.linalg.norm(axis),
            pseudo_inertia_of(
                rng.uniform(0.2, 3.0),
                rng.normal(scale=0.1, size=3),
                np.trace(second) * np.eye(3) - second,
            ),
        )
    frames = {f"tool{i}": (i, pose_of(rng.normal(size=3), rng.normal(size=3))) for i in range(n)}
    return KinematicTree(tuple(joints), frames)


def states(n, seed=1):
    return np.random.default_rng(seed).normal(size=(3, n))


def torques(model, q, v, a):
    mass, bias = model.mass_matrix_and_bias(q, v)
    return mass @ a + bias


def weight(model, q):
    return model.mass_matrix_and_bias(q, np.zeros(len(q)))[1]


def energy(model, q, v):
    """Kinetic and potential energy [J], the latter from centres of mass."""
    kinetic = 0.5 * v @ model.mass_matrix_and_bias(q, v)[0] @ v
    bodies = np.array([joint.pseudo_inertia[:, 3] for joint in model.tree.joints])
    moments = (model.poses(q) @ bodies[:, :, None])[:, :3, 0]
    return kinetic, -float(moments.sum(axis=0) @ model.gravity_vector)


@pytest.fixture(params=[0, 1, 2])
def model(request):
    return RigidBodyModel(random_tree(request.param), (0.3, -2.0, -9.0), np.linspace(0.0, 0.7, 8))


def test_two_links_by_hand():
    """Two point masses on rods of 0.5 m and 0.3 m in the vertical plane, against the textbook's formulas."""
    (m1, l1), (m2, l2), g = (2.0, 0.5), (1.5, 0.3), STANDARD_GRAVITY
    inertias = [pseudo_inertia_of(m, (0, 0, -length), np.zeros((3, 3))) for m, length in ((m1, l1), (m2, l2))]
    axis = np.array([0.0, -1.0, 0.0])
    tree = KinematicTree(
        (
            TreeJoint("shoulder", "revolute", BASE, np.eye(4), axis, inertias[0]),
            TreeJoint("elbow", "revolute", 0, pose_of((0, 0, -l1)), axis, inertias[1]),
        )
    )
    (a, b), (da, db) = q, v = np.array([0.4, -0.9]), np.array([1.2, -0.7])
    cross = m2 * l1 * l2 * np.cos(b)
    mass = [
        [m1 * l1**2 + m2 * (l1**2 + l2**2) + 2 * cross, m2 * l2**2 + cross],
        [m2 * l2**2 + cross, m2 * l2**2],
    ]
    turn = m2 * l1 * l2 * np.sin(b)
    fall = m2 * g * l2 * np.sin(a + b)
    bias = [-turn * (2 * da * db + db**2) + (m1 + m2) * g * l1 * np.sin(a) + fall, turn * da**2 + fall]
    found = RigidBodyModel(tree).mass_matrix_and_bias(q, v)
    assert np.allclose(found[0], mass, atol=1e-13)
    assert np.allclose(found[1], bias, atol=1e-13)


def test_the_mass_matrix_is_symmetric_and_positive(model):
    """Exactly symmetric; all eigenvalues positive."""
    mass = model.mass_matrix_and_bias(*states(8)[:2])[0]
    assert np.array_equal(mass, mass.T)
    assert np.linalg.eigvalsh(mass).min() > 0.0


def test_power_is_the_rate_of_energy(model):
    """Kinetic energy grows by vᵀ(τ − g) and potential energy by vᵀg, by finite differences."""
    q, v, a = states(8)
    torque, gravity, dt = torques(model, q, v, a), weight(model, q), 1e-5
    ends = [energy(model, q + s * dt * v + 0.5 * dt**2 * a, v + s * dt * a) for s in (1, -1)]
    kinetic, potential = (np.array(ends[0]) - np.array(ends[1])) / (2 * dt)
    assert kinetic == pytest.approx(v @ (torque - gravity), rel=1e-7)
    assert potential == pytest.approx(v @ gravity, rel=1e-7)


def test_a_locked_joint_is_one_that_does_not_move(model):
    """Torques of the reduced model, in another order, are those of the whole one with the others at rest."""
    q, v, a = states(8)
    names = ["j6", "j0", "j5", "j2"]
    order, rest = [6, 0, 5, 2], [1, 3, 4, 7]
    q[rest] = v[rest] = a[rest] = 0.0
    reduced = RigidBodyModel(model.tree.reduced(names), model.gravity_vector, model.armature[order])
    assert reduced.names == tuple(names)
    found = torques(reduced, q[order], v[order], a[order])
    assert np.allclose(found, torques(model, q, v, a)[order], atol=1e-11)
    mass, whole = (m.mass_matrix_and_bias(at, 0.0 * at)[0] for m, at in ((reduced, q[order]), (model, q)))
    assert np.allclose(mass, whole[np.ix_(order, order)], atol=1e-12)


def test_chains_can_be_longer_than_the_stack():
    """Two thousand fixed joints in a row are merged, without recursion."""
    along, massless = pose_of((0.001, 0, 0)), np.zeros((4, 4))
    hinge = TreeJoint("hinge", "revolute", BASE, np.eye(4), np.array([0.0, -1.0, 0.0]), massless)
    chain = [TreeJoint(f"f{i}", "fixed", i, along, np.zeros(3), massless) for i in range(2000)]
    bob = pseudo_inertia_of(1.0, (0, 0, 0), np.zeros((3, 3)))
    end = TreeJoint("end", "fixed", 2000, np.eye(4), np.zeros(3), bob)
    model = RigidBodyModel(KinematicTree((hinge, *chain, end)))
    assert model.mass_matrix_and_bias([0.0], [0.0])[0][0, 0] == pytest.approx(4.0)
    assert weight(model, [0.0])[0] == pytest.approx(2.0 * STANDARD_GRAVITY)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda m: RigidBodyModel(m.tree, armature=[1.0]), "8 finite numbers"),
        (lambda m: RigidBodyModel(m.tree, armature=[-1.0] * 8), "must not be negative"),
        (lambda m: RigidBodyModel(KinematicTree(())), "no joint moves"),
    ],
)
def test_what_cannot_be_is_one_line(wrong, message):
    """Unknown names and impossible numbers are refused, and what is valid is said."""
    with pytest.raises(ConfigError, match=message):
        wrong(RigidBodyModel(random_tree()))


@pytest.mark.parametrize(("name", "joints"), ROBOTS)
def test_real_robots_are_those_of_pinocchio(name, joints):
    """M, h, g, Cᵀv and inverse dynamics to 1e-10 in random states; joints reordered and locked alike."""
    pin = pytest.importorskip("pinocchio", reason="Pinocchio is not installed")
    if not example_robots(name):
        pytest.skip("example-robot-data is not installed")
    path = example_robots(name)[0]
    model = read_urdf(path).model(joints)
    assert all(joint in model.names for joint in joints)
    other = pin.buildModelFromUrdf(str(path))
    other.gravity.linear = np.array([0.0, 0.0, -STANDARD_GRAVITY])
    locked = [j for j in range(1, other.njoints) if other.names[j] not in model.names]
    if locked:
        other = pin.buildReducedModel(other, locked, pin.neutral(other))
    ids = [other.getJointId(joint) for joint in model.names]
    order, data = [other.idx_vs[j] for j in ids], other.createData()
    for seed in range(5):
        q, v, a = states(len(model), seed)
        configuration, speed, rate = np.zeros(other.nq), np.zeros(len(model)), np.zeros(len(model))
        speed[order], rate[order] = v, a
        for j, angle in zip(ids, q, strict=True):
            at = other.idx_qs[j]
            full = [angle] if other.nqs[j] == 1 else [np.cos(angle), np.sin(angle)]
            configuration[at : at + len(full)] = full
        half = np.triu(pin.crba(other, data, configuration))
        mass = (half + np.triu(half, 1).T)[np.ix_(order, order)]
        gravity = pin.computeGeneralizedGravity(other, data, configuration)[order]
        bias = pin.nonLinearEffects(other, data, configuration, speed)[order]
        torque = pin.rnea(other, data, configuration, speed, rate)[order]
        found = model.mass_matrix_and_bias(q, v)
        for ours, theirs in (
            (found[0], mass),
            (found[1], bias),
            (weight(model, q), gravity),
            (torques(model, q, v, a), torque),
        ):
            assert np.allclose(ours, theirs, rtol=0.0, atol=1e-10)


def test_a_pendulum_is_a_link_with_one_joint():
    """The bench's own formulas and the rigid body agree."""
    load = Pendulum(0.4, 0.15, 0.06)
    bench = PendulumModel(load, 0.002, 0.3)
    rod = 0.06 * 0.15**2 / 12 * np.diag([1.0, 1.0, 0.0])
    inertia = pseudo_inertia_of(0.4, (0, 0, -0.15), np.zeros((3, 3))) + pseudo_inertia_of(
        0.06, (0, 0, -0.075), rod
    )
    tree = KinematicTree(
        (
            TreeJoint(
                "shaft",
                "revolute",
                BASE,
                pose_of(rpy=(0.0, -0.3, 0.0)),
                np.array([0.0, -1.0, 0.0]),
                inertia,
            ),
        )
    )
    body = RigidBodyModel(tree, armature=[0.002])
    for one, other in zip(
        bench.mass_matrix_and_bias([0.7], [1.1]),
        body.mass_matrix_and_bias([0.7], [1.1]),
        strict=True,
    ):
        assert np.allclose(one, other, atol=1e-14)


def test_independent_joints_do_not_feel_each_other():
    """A diagonal matrix that nobody can write to; gravity where there are pendulums."""
    free: Dynamics = IndependentJoints([0.1, 0.2, 0.3])
    mass, bias = free.mass_matrix_and_bias(np.ones(3), np.ones(3))
    assert len(free) == 3
    assert np.array_equal(mass @ np.ones(3), [0.1, 0.2, 0.3])
    assert np.array_equal(bias, np.zeros(3))
    with pytest.raises(ValueError, match="read-only"):
        mass[0, 0] = 1.0
    loads = Pendulum(np.array([1.0, 0.0, 2.0]), 0.1, 0.0)
    hanging = IndependentJoints([0.1, 0.2, 0.3], loads)
    expected = STANDARD_GRAVITY * np.array([0.1, 0.0, 0.2]) * np.sin(0.5)
    assert np.allclose(hanging.mass_matrix_and_bias(np.full(3, 0.5), np.zeros(3))[1], expected)


@pytest.mark.parametrize(
    ("inertia", "loads"),
    [
        ([], None),
        ([0.1, -0.1], None),
        (0.1, None),
        ([0.1, np.nan], None),
        ([0.1], Pendulum([1.0, 2.0], 1.0, 0.0)),
    ],
)
def test_independent_joints_that_cannot_be_are_refused(inertia, loads):
    """No joints, inertias that are not positive, and loads for another number of joints."""
    with pytest.raises(ConfigError, match="expected one"):
        IndependentJoints(inertia, loads)
