"""The plug-in under the published lerobot, cycle by cycle, with servos that are numbers: `pytest integrations/lerobot_robot_stribeck/tests`."""

import json
import math
from contextlib import contextmanager

import numpy as np
import pytest

pytest.importorskip(
    "lerobot", reason="the plug-in is for lerobot: pip install 'lerobot[feetech]>=0.4.4,<0.5'"
)

from lerobot.robots import RobotConfig, make_robot_from_config
from lerobot.teleoperators import TeleoperatorConfig, make_teleoperator_from_config
from lerobot_robot_stribeck import StribeckFollowerConfig, StribeckLeaderConfig
from lerobot_robot_stribeck.yielding import Yielding

from stribeck.files.drives import Drives, write_drives
from stribeck.files.torque_drives import torque_actuator, torque_drive
from stribeck.model.estimate import fixed
from stribeck.model.law import law_named

NAMES = ("shoulder_pan", "shoulder_lift", "elbow_flex", "wrist_flex", "wrist_roll", "gripper")
STIFFNESS, FRICTION = 9.0, 0.09
MASS, LENGTH = 0.3, 0.12


class NumbersBus:
    """A bus of servos that go to their goals at once, less their friction and the weight; it, or single ones, may lose packets."""

    def __init__(self, motors):
        self.motors, self.goal, self.torque, self.written = motors, {}, {}, {}
        self.position = dict.fromkeys(motors, 0.0)
        self.pull = dict.fromkeys(motors, 0.0)
        self.lost, self.silent = False, ()
        self.is_connected = self.is_calibrated = True

    def sync_read(self, register):
        """Positions in degrees."""
        if self.lost:
            raise ConnectionError("no answer")
        assert register == "Present_Position"
        return dict(self.position)

    def sync_write(self, register, values):
        """Goals in degrees."""
        if self.lost:
            raise ConnectionError("no answer")
        assert register == "Goal_Position"
        self.goal |= values

    def write(self, register, motor, value, normalize=True):
        """A setting."""
        self.written[register, motor] = value

    def connect(self):
        """Open the port."""
        self.is_connected = True

    def disconnect(self, disable_torque=True):
        """Close it, as lerobot does: not if a servo is silent that shall be switched off."""
        if disable_torque:
            self.disable_torque()
        self.is_connected = False

    def configure_motors(self):
        """Nothing to set."""

    @contextmanager
    def torque_disabled(self):
        """Torque off meanwhile, then on."""
        self.disable_torque()
        yield
        self.enable_torque()

    def enable_torque(self, motors=None):
        """Torque on, in order; the first silent servo ends it, as in lerobot."""
        self._switch(motors, True)

    def disable_torque(self, motors=None, num_retry=0):
        """Torque off, in order; the first silent servo ends it, as in lerobot."""
        self._switch(motors, False)

    def _switch(self, motors, on):
        for name in self.motors if motors is None else [motors] if isinstance(motors, str) else motors:
            if name in self.silent:
                raise ConnectionError(f"no answer of {name}")
            self.torque[name] = on

    def settle(self):
        """Let every driven joint come to rest: where spring, pull and weight differ by no more than the friction."""
        for name, goal in self.goal.items():
            if not self.torque.get(name):
                continue
            q = math.radians(self.position[name])
            for _ in range(20):
                left = STIFFNESS * (math.radians(goal) - q) + self.pull[name]
                left -= MASS * LENGTH * 9.81 * math.sin(q)
                q += math.copysign(max(abs(left) - FRICTION, 0.0), left) / (STIFFNESS + 0.4)
            self.position[name] = math.degrees(q)


@pytest.fixture
def files(tmp_path):
    """Calibration, drives and URDF of five joints, each with a mass on a rod."""
    motors = {
        name: {"id": k + 1, "drive_mode": 0, "homing_offset": 0, "range_min": 0, "range_max": 4095}
        for k, name in enumerate(NAMES)
    }
    (tmp_path / "arm.json").write_text(json.dumps(motors))
    law = law_named("m1")
    values = {"stiffness": STIFFNESS, "derivative": 0.5, "armature": 0.03}
    values |= {"friction_base": FRICTION, "friction_viscous": 0.02}
    actuator = torque_actuator("rotary", largest=1.9, resolution=2 * math.pi / 4096, derivative_gain=1.0)
    drive = torque_drive(actuator, law, {name: fixed(value, "") for name, value in values.items()})
    write_drives(tmp_path / "robot.json", Drives(dict.fromkeys(NAMES[:5], drive)))
    links = "".join(
        f'<link name="{name}_link"><inertial><origin xyz="0 0 {-LENGTH}"/><mass value="{MASS}"/>'
        '<inertia ixx="1e-6" iyy="1e-6" izz="1e-6" ixy="0" ixz="0" iyz="0"/></inertial></link>'
        f'<joint name="{name}" type="continuous"><parent link="base"/><child link="{name}_link"/><axis xyz="0 -1 0"/></joint>'
        for name in NAMES[:5]
    )
    (tmp_path / "arm.urdf").write_text(f'<robot name="arm"><link name="base"/>{links}</robot>')
    return tmp_path


@pytest.fixture
def cycles(monkeypatch):
    """Runs cycles of a robot or leader on a clock of its own."""
    now = [100.0]
    monkeypatch.setattr("time.perf_counter", lambda: now[0])

    def run(one, count):
        for _ in range(count):
            now[0] += 0.01
            one._cycle()
            one.bus.settle()

    return run


def device(make, config):
    """Made as LeRobot makes it, with a bus of numbers."""
    one = make(config)
    one.bus = NumbersBus(one.bus.motors)
    return one


def common(files):
    """What both configurations need."""
    return {
        "port": "none",
        "id": "arm",
        "calibration_dir": files,
        "drives": str(files / "robot.json"),
        "urdf": str(files / "arm.urdf"),
    }


def test_lerobot_knows_both_by_name(files):
    """By their registered types, with the features of the plain ones; the leader takes torques as feedback."""
    assert RobotConfig.get_choice_class("stribeck_follower") is StribeckFollowerConfig
    assert TeleoperatorConfig.get_choice_class("stribeck_leader") is StribeckLeaderConfig
    leader = make_teleoperator_from_config(StribeckLeaderConfig(**common(files)))
    assert set(leader.action_features) == {f"{name}.pos" for name in NAMES}
    assert set(leader.feedback_features) == {f"{name}.torque" for name in NAMES[:5]}


def test_a_follower_rests_nearer_to_its_goals(files, cycles):
    """At 40 degrees: with its goal as it is the weight and friction keep it away by degrees, offset by less than one."""
    follower = device(make_robot_from_config, StribeckFollowerConfig(**common(files)))
    bus = follower.bus
    bus.enable_torque(NAMES)
    bus.sync_write("Goal_Position", dict.fromkeys(NAMES[:5], 40.0))
    bus.settle()
    plain = 40.0 - bus.position["elbow_flex"]
    follower._thread.check = lambda: None
    follower._present = bus.sync_read("Present_Position")
    goal = {f"{name}.pos": 40.0 for name in NAMES}
    assert follower.send_action(goal) == goal
    cycles(follower, 300)
    assert plain > 1.5
    assert abs(40.0 - bus.position["elbow_flex"]) < 0.5 * plain


def test_a_leader_stays_where_it_is_put(files, cycles):
    """Pulled to 0.6 rad and let go it stays within two degrees of there, with its weight; untouched it does not move."""
    leader = device(make_teleoperator_from_config, StribeckLeaderConfig(**common(files)))
    bus = leader.bus
    bus.enable_torque(NAMES[:5])
    cycles(leader, 100)
    assert abs(bus.position["elbow_flex"]) < 0.5
    for _ in range(200):
        at = math.radians(bus.position["elbow_flex"])
        bus.pull["elbow_flex"] = 0.9 if at < 0.6 else 0.0
        cycles(leader, 1)
    bus.pull["elbow_flex"] = 0.0
    cycles(leader, 50)
    let_go = bus.position["elbow_flex"]
    assert 30.0 < let_go < 40.0
    cycles(leader, 500)
    assert abs(bus.position["elbow_flex"] - let_go) < 2.0
    assert abs(bus.position["wrist_flex"]) < 0.5


def test_feedback_is_felt_for_a_fifth_of_a_second():
    """Goals move by torque over stiffness, at most by the limit; a torque that is no number, and an old one, by nothing."""
    one = Yielding([0.02, 0.02], [9.0, 9.0], [0.3, 0.3])
    one.goal([0.0, 0.0], 0.0)
    one.feel([0.1, -2.0], 1.0)
    assert one.goal([0.0, 0.0], 1.1)[1] == pytest.approx([0.1 / 9.0, -0.3 / 9.0])
    assert one.goal([0.0, 0.0], 1.2001)[1] == pytest.approx([0.0, 0.0])
    one.feel([math.nan, math.inf], 2.0)
    assert one.goal([0.0, 0.0], 2.0)[1] == pytest.approx([0.0, 0.0])


def test_the_pose_follows_at_the_slip():
    """Within it nothing moves; beyond it the pose is the slip behind the position."""
    one = Yielding([0.02], [9.0], [0.3])
    assert one.goal([0.5], 0.0)[0] == pytest.approx([0.5])
    assert one.goal([0.51], 0.0)[0] == pytest.approx([0.5])
    assert one.goal([0.6], 0.0)[0] == pytest.approx([0.58])
    assert one.goal([0.57], 0.0)[0] == pytest.approx([0.58])
    assert np.isfinite(one.goal([0.2], 0.0)[0]).all()


def test_servos_that_are_lost_end_the_leader_with_torque_off(files):
    """After ten cycles without an answer the thread gives up, writes torque off, and the next call says so."""
    leader = device(make_teleoperator_from_config, StribeckLeaderConfig(**common(files), rate=250.0))
    leader.bus.enable_torque(NAMES[:5])
    leader.bus.lost = True
    leader._thread.start()
    leader._thread._thread.join(10.0)
    assert not any(leader.bus.torque.values())
    with pytest.raises(ConnectionError, match="lost"):
        leader.get_action()


def test_a_silent_servo_keeps_no_other_energised(files):
    """What happened: the first that was silent ended it, and those after it held on. All others go off, and the port is closed."""
    leader = device(make_teleoperator_from_config, StribeckLeaderConfig(**common(files)))
    leader.bus.enable_torque(NAMES[:5])
    leader.bus.silent = ("shoulder_lift",)
    leader._let_go()
    assert [name for name, on in leader.bus.torque.items() if on] == ["shoulder_lift"]
    leader.bus.silent = ()
    leader.bus.enable_torque(NAMES[:5])
    leader.bus.silent = ("shoulder_lift",)
    with pytest.raises(ConnectionError, match="shoulder_lift did not answer"):
        leader.disconnect()
    assert [name for name, on in leader.bus.torque.items() if on] == ["shoulder_lift"]
    assert not leader.bus.is_connected


def test_a_leader_that_does_not_become_connected_holds_nothing(files, monkeypatch):
    """What happened: servos that were on when the next one failed stayed on, without a thread."""
    leader = device(make_teleoperator_from_config, StribeckLeaderConfig(**common(files)))
    leader.bus.is_connected = False
    monkeypatch.setattr(leader, "configure", lambda: setattr(leader.bus, "silent", ("elbow_flex",)))
    with pytest.raises(ConnectionError, match="elbow_flex"):
        leader.connect()
    assert leader.bus.torque == dict.fromkeys([name for name in NAMES if name != "elbow_flex"], False)
    with pytest.raises(ConnectionError, match="not connected"):
        leader.get_action()


@pytest.mark.parametrize(
    ("make", "configuration"),
    [
        (make_robot_from_config, StribeckFollowerConfig),
        (make_teleoperator_from_config, StribeckLeaderConfig),
    ],
)
def test_connected_again_the_torque_begins_at_zero(files, cycles, monkeypatch, make, configuration):
    """What happened: the whole weight was borne at once, 0.025 rad of the goal, about the pose of before. The first goal is the position."""
    one = device(make, configuration(**common(files)))
    monkeypatch.setattr(one._thread, "start", lambda: None)
    monkeypatch.setattr(one._thread, "check", lambda: None)
    offsets = []
    for at in (20.0, 40.0):
        one.bus.is_connected = False
        one.bus.position |= dict.fromkeys(NAMES, at)
        one.connect()
        if isinstance(one.config, StribeckFollowerConfig):
            one.send_action({f"{name}.pos": at for name in NAMES})
        monkeypatch.setattr(one.bus, "settle", lambda: None)
        cycles(one, 1)
        offsets.append(math.radians(one.bus.goal["elbow_flex"] - at))
        cycles(one, 100)
        risen = math.radians(one.bus.goal["elbow_flex"] - at)
        assert risen > 0.9 * MASS * LENGTH * 9.81 * math.sin(math.radians(at)) / STIFFNESS
        one.disconnect()
    assert offsets == pytest.approx([0.0, 0.0], abs=2e-3)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"drives": ""}, "drives"),
        ({"slip": 0.0}, "slip"),
        ({"torque_limit": 2.0}, "torque_limit"),
        ({"rate": 1.0}, "rate"),
    ],
)
def test_a_configuration_that_cannot_work_is_refused(files, wrong, words):
    """By the name of the setting."""
    with pytest.raises(ValueError, match=words):
        StribeckLeaderConfig(**(common(files) | wrong))
