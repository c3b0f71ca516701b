"""Compensation in a loop of one's own: the same torque as the node's compensator, and what is refused."""

import numpy as np
import pytest

import stribeck as sb
from api_made import drive_made, file_of_joints
from stribeck.files.drives import Drives
from stribeck.live.parameters import CompensatedJointParameters, CompensationParameters
from stribeck.live.setup import compensated_joints, compensator_of
from stribeck.rigid.urdf import read_urdf
from three_joints import arm_of_three

STEP = 0.002


@pytest.fixture
def path(tmp_path):
    return file_of_joints(tmp_path / "p.json", "shoulder", "elbow")


def motion(k):
    t = STEP * k
    return np.array([np.sin(t), np.cos(2.0 * t)]), np.array([np.cos(t), -2.0 * np.sin(2.0 * t)]), t


@pytest.mark.slow
def test_the_torque_is_that_of_the_node(path):
    """Every sample of a motion, value by value."""
    names = ["shoulder", "elbow"]
    given = CompensationParameters(
        joints=names,
        by_joint={name: CompensatedJointParameters() for name in names},
        drives_file=str(path),
        effort_meaning="none",
    )
    node = compensator_of(given, compensated_joints(given))
    node.enable()
    loop = sb.Compensator(path)
    assert loop.joints == ("shoulder", "elbow")
    for k in range(600):
        q, qd, t = motion(k)
        node.on_command(t, t, None, q.tolist(), qd.tolist(), ())
        expected = node.on_state(t, t, names, q.tolist(), qd.tolist(), ())
        assert np.array_equal(loop.torque(q, qd, q_goal=q, qd_goal=qd, t=t), expected)
    assert loop.doubt is None
    assert np.all(np.abs(expected) > 1e-4)
    assert np.all(np.sign(expected) == np.sign(qd))


@pytest.mark.ci
def test_the_torque_follows_the_gain_and_the_order_of_the_joints(path):
    """Half the gain is half the torque while goals lead the motion; arrays are in the order of the joints."""

    def last(loop, first, end, order):
        for k in range(first, end):
            q, qd, t = motion(k)
            goal = q + 0.05 * np.sign(qd)
            torque = loop.torque(q[order], qd[order], q_goal=goal[order], qd_goal=qd[order], t=t)
        return torque

    forth = sb.Compensator(path, gain=0.8, adapt=False)
    back = sb.Compensator(path, joints=["elbow", "shoulder"], gain=0.4, adapt=False)
    one, other = last(forth, 0, 600, [0, 1]), last(back, 0, 600, [1, 0])
    assert other[::-1] == pytest.approx(0.5 * one)
    back.gain = 0.8
    assert last(back, 600, 900, [1, 0])[::-1] == pytest.approx(last(forth, 600, 900, [0, 1]))


def test_doubtful_states_give_zero_and_say_why(path):
    loop = sb.Compensator(path, ramp_time=0.0)
    for k in range(300):
        q, qd, t = motion(k)
        torque = loop.torque(q, qd, q_goal=q, qd_goal=qd, t=t)
    assert np.any(torque != 0.0)
    assert np.all(loop.torque([np.nan, 0.0], qd, t=t + STEP) == 0.0)
    assert "not a number" in loop.doubt or "finite" in loop.doubt
    loop.stop()
    assert np.all(loop.torque(q, qd, t=t + 2 * STEP) == 0.0)
    assert loop.doubt == "stopped"
    loop.restart()
    for k in range(302, 500):
        q, qd, t = motion(k)
        torque = loop.torque(q, qd, q_goal=q, qd_goal=qd, t=t)
    assert loop.doubt is None
    assert np.any(torque != 0.0)


def test_states_that_stop_end_the_torque(path):
    """A pause longer than state_timeout: the next torque starts again from zero."""
    loop = sb.Compensator(path)
    for k in range(600):
        q, qd, t = motion(k)
        before = loop.torque(q, qd, q_goal=q, qd_goal=qd, t=t)
    after = loop.torque(q, qd, q_goal=q, qd_goal=qd, t=t + 0.2)
    assert np.all(np.abs(after) < 0.1 * np.abs(before))


def test_goals_of_position_servos_lead_by_the_torque(tmp_path):
    """While the servo follows a ramp, its goal lies ahead of the controller's; untrusted states leave the goal alone."""
    loop = sb.Compensator(sb.Fit(Drives({"": drive_made()})).save(tmp_path / "p.json"), p_gain=400)
    for k in range(600):
        t = 0.004 * k
        goal = loop.goal([0.2 * t], [0.2 * t + 0.01], t)
    assert loop.doubt is None
    assert 0.0 < goal[0] - (0.2 * t + 0.01) < 0.2
    assert loop.goal([np.nan], [1.0], t + 0.004) == pytest.approx([1.0])
    with pytest.raises(sb.StribeckError, match="give p_gain in the first call"):
        sb.Compensator(tmp_path / "p.json").goal([0.0], [0.0], 0.0)


LINK = """<robot name="arm"><link name="base"/><link name="link"><inertial><origin xyz="0 0 -0.1"/><mass value="0.2"/>
<inertia ixx="0.001" iyy="0.001" izz="0.001" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="elbow" type="continuous"><parent link="base"/><child link="link"/><axis xyz="0 1 0"/></joint></robot>"""


def test_the_external_torque_is_what_the_motor_and_the_model_do_not_explain(tmp_path):
    """A joint held at rest in its equilibrium against 0.3 N m: its torque beyond the friction at rest; nothing without a model."""
    path = file_of_joints(tmp_path / "p.json", "elbow")
    (tmp_path / "arm.urdf").write_text(LINK)
    assert sb.Compensator(path).external_torque is None
    loop = sb.Compensator(path, urdf=tmp_path / "arm.urdf", effort_meaning="motor")
    for k in range(1000):
        loop.torque([0.0], [0.0], effort=[-0.3], q_goal=[0.0], qd_goal=[0.0], t=STEP * k)
    found = loop.external_torque
    at_rest = float(sb.read(path).friction(0.0))
    assert found.torque[0] + found.band[0] > 0.3 - at_rest
    assert found.torque[0] == pytest.approx(0.3, abs=found.band[0])
    loop.torque([np.nan], [0.0], effort=[-0.3], t=STEP * 1001)
    assert loop.external_torque is None


@pytest.mark.parametrize("number", [400, 400.0, np.int64(400), np.float32(400.0), np.array(400), [400]])
def test_one_number_is_that_of_all_joints(tmp_path, number):
    """A number of Python or numpy, or a list."""
    path = file_of_joints(tmp_path / "p.json", "elbow")
    assert sb.Compensator(path, p_gain=number).goal([0.0], [0.1], 0.0) == pytest.approx([0.1])


def test_what_cannot_be_is_refused(path, tmp_path):
    loop = sb.Compensator(path)
    with pytest.raises(
        sb.StribeckError, match=r"q: expected 2 numbers \(shoulder, elbow\), found an array of shape \(3,\)"
    ):
        loop.torque([0.0, 0.0, 0.0])
    with pytest.raises(sb.StribeckError, match="set effort_meaning to 'motor' or 'link'"):
        loop.torque([0.0, 0.0], effort=[0.0, 0.0])
    with pytest.raises(sb.StribeckError, match="unknown setting 'gians'; valid"):
        sb.Compensator(path, gians=1.0)
    with pytest.raises(sb.StribeckError, match=r"state_timeout must be between 0.005 and 10, found 100"):
        sb.Compensator(path, state_timeout=100.0)
    with pytest.raises(sb.StribeckError, match="no joint 'wrist'"):
        sb.Compensator(path, joints=["shoulder", "wrist"])
    with pytest.raises(sb.StribeckError, match="p_gain: expected one number, or 2, found 3"):
        sb.Compensator(path, p_gain=[1.0, 2.0, 3.0])
    with pytest.raises(sb.StribeckError, match="no joint 'wrist'; valid: shoulder, elbow"):
        loop.telemetry("wrist", temperature=30.0)
    with pytest.raises(sb.StribeckError, match=r"missing\.json"):
        sb.Compensator(tmp_path / "missing.json")


def test_a_force_at_the_tool_comes_back_from_the_torques_of_the_joints(tmp_path):
    """Three joints at rest that hold against 8 N: within the band, which friction at rest makes; nothing for one joint, or without a model."""
    urdf = arm_of_three(tmp_path)
    names = ("j1", "j2", "j3")
    path = file_of_joints(tmp_path / "p.json", *names)
    loop = sb.Compensator(path, urdf=urdf, effort_meaning="motor")
    model = read_urdf(urdf).model(list(names))
    q, tool, force = np.array([0.3, 0.7, 0.9]), (0.0, 0.0, 0.2), np.array([8.0, -3.0, 5.0])
    motor = model.mass_matrix_and_bias(q, 0.0 * q)[1] - model.jacobian(q, tool)[:3].T @ force
    for k in range(1000):
        loop.torque(q, np.zeros(3), effort=motor, q_goal=q, qd_goal=np.zeros(3), t=STEP * k)
    found = loop.wrench(q, tool)
    assert (np.abs(found.force - force) <= found.band[:3] + 1e-9).all()
    assert (found.band[:3] < 2.0).all()
    assert np.isnan(found.moment).all()
    assert sb.Compensator(path).wrench(q, tool) is None
