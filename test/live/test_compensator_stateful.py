"""Whatever comes in, in whatever order: what goes out is finite, within limits, and zero in doubt."""

import math
from typing import Any

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from compensating import model
from stribeck.errors import ConfigError
from stribeck.live.compensator import Compensator
from stribeck.live.friction import EFFORT_MEANINGS
from stribeck.live.settings import OUTPUT_MODES, Settings, Timing
from stribeck.live.states.admission import LONGEST_STEP
from stribeck.model.joint_map import JointMap
from stribeck.model.law import LAWS

NAMES = ("a", "b")
MAPS = (JointMap(-1.0, 2.0, 0.3), JointMap())
LIMITS = np.array([0.2, 0.05])
SLEW = 3.0
RAMP = 0.2

anything = st.floats(allow_nan=True, allow_infinity=True)
pairs = st.lists(st.floats(-3.0, 3.0), min_size=2, max_size=2)
lists = st.lists(anything, max_size=3) | pairs
names = st.just(NAMES) | st.lists(st.sampled_from(["a", "b", "c", ""]), max_size=4).map(tuple)


class Live(RuleBasedStateMachine):
    """A compensator of two joints that is told anything at all."""

    @initialize(
        mode=st.sampled_from(OUTPUT_MODES),
        meaning=st.sampled_from(EFFORT_MEANINGS),
        laws=st.lists(st.sampled_from(list(LAWS)), min_size=2, max_size=2),
        others=st.sampled_from(["refuse", "ignore"]),
        enabled=st.booleans(),
    )
    def start(self, mode: Any, meaning: Any, laws: list[str], others: Any, enabled: bool) -> None:
        """Any mode, meaning and laws, both friction torques and loads large against the limits."""
        joints = [
            model(name, law, limit, friction_base=0.1)
            for name, law, limit in zip(NAMES, laws, LIMITS, strict=True)
        ]
        chosen = Settings(mode, meaning, slew=SLEW, other_joints=others, timing=Timing(ramp_time=RAMP))
        self.compensator = Compensator(joints, MAPS, chosen)
        for name in NAMES:
            self.compensator.on_telemetry(name, kp=200.0)
        if enabled:
            self.compensator.enable()
        self.now = 10.0
        self.stamp = self.accepted = 1000.0
        self.commands: list[tuple[float, np.ndarray, np.ndarray]] = []
        self.before = self.servo_torque()
        self.ramp = 0.0

    def servo_torque(self) -> np.ndarray:
        """The torque in the coordinates in which limits and slew hold."""
        found = self.compensator.torque
        return np.array([m.servo_torque(t) for m, t in zip(MAPS, found, strict=True)])

    def unchanged(self) -> None:
        np.testing.assert_array_equal(self.servo_torque(), self.before)

    def on_state(self, stamp: float, names: Any, position: Any, velocity: Any, effort: Any) -> None:
        """A state, and the checks that need to know what was before it."""
        trusted = self.compensator.doubt is None
        elapsed = stamp - (self.accepted if trusted else self.stamp)
        found = self.compensator.on_state(self.now, stamp, names, position, velocity, effort)
        assert found is self.compensator.torque
        after = self.servo_torque()
        if self.compensator.doubt is None and self.compensator._admission.stamp != stamp:
            self.unchanged()  # a state that is skipped
        elif self.compensator.doubt is None:
            dt = min(max(elapsed, 0.0), LONGEST_STEP)
            assert np.all(np.abs(after - self.before) <= SLEW * dt * (1.0 + 1e-9) + 1e-15)
            self.ramp = min(1.0, self.ramp + dt / RAMP) if trusted else dt / RAMP
            assert np.all(np.abs(after) <= LIMITS * self.ramp * (1.0 + 1e-9) + 1e-15)
        self.before = after
        if math.isfinite(stamp):
            self.stamp = stamp
        if self.compensator._admission.stamp is not None:
            self.accepted = self.compensator._admission.stamp

    @rule(dt=st.floats(0.001, 0.039), position=pairs, velocity=pairs, effort=pairs)
    def measure(self, dt: float, position: list[float], velocity: list[float], effort: list[float]) -> None:
        """A good state of a robot."""
        self.now += dt
        self.on_state(self.stamp + dt, NAMES, position, velocity, [0.1 * value for value in effort])

    @rule(count=st.integers(5, 40), velocity=pairs)
    def run_on(self, count: int, velocity: list[float]) -> None:
        """Many good states, so that ramp and slew get somewhere."""
        for _ in range(count):
            self.now += 0.01
            self.on_state(self.stamp + 0.01, NAMES, [0.0, 0.0], velocity, [0.01, 0.01])

    @rule(
        dt=st.sampled_from([0.0, 0.005, 0.041, 10.0, -0.005, -1e6, 1e9]) | anything,
        names=names,
        position=lists,
        velocity=lists,
        effort=lists,
    )
    def mismeasure(self, dt: float, names: Any, position: Any, velocity: Any, effort: Any) -> None:
        """A state of any shape, at any time."""
        self.on_state(self.stamp + dt, names, position, velocity, effort)

    @rule(
        stamp=st.none() | st.floats(-0.05, 0.05) | anything,
        names=names | st.none(),
        position=lists,
        velocity=lists,
        effort=lists,
    )
    def order(self, stamp: float | None, names: Any, position: Any, velocity: Any, effort: Any) -> None:
        """A command of any shape, stamped somewhere near the states or anywhere."""
        if stamp is not None:
            stamp += self.stamp
        self.compensator.on_command(self.now, stamp, names, position, velocity, effort)
        ours = NAMES if names is None else names
        if all(ours.count(name) == 1 for name in NAMES) and (stamp is None or math.isfinite(stamp)):
            places = [ours.index(name) for name in NAMES]
            goal, own = (
                np.array([values[k] if k < len(values) else math.nan for k in places])
                for values in (position, effort)
            )
            # One with a stamp is not taken if that lies too far from those of the states.
            self.commands = [*(self.commands if stamp is not None else []), (self.now, goal, own)]
        self.unchanged()

    @rule(
        name=st.sampled_from(["a", "b", "c"]),
        kp=anything | st.floats(0.0, 1000.0),
        supply=anything | st.floats(3.0, 6.0),
        stamp=st.none() | st.floats(-0.2, 0.2) | anything,
    )
    def tell(self, name: str, kp: float, supply: float, stamp: float | None) -> None:
        """Telemetry of any value."""
        stamp = None if stamp is None else self.stamp + stamp
        self.compensator.on_telemetry(name, kp=kp, supply_voltage=supply, stamp=stamp)
        self.unchanged()

    @rule(gain=anything | st.floats(0.0, 2.0))
    def change_gain(self, gain: float) -> None:
        """Another gain, if it can be."""
        before = self.compensator.gain
        try:
            self.compensator.set_gain(gain)
        except ConfigError:
            assert self.compensator.gain == before
        self.unchanged()

    @rule()
    def enable(self) -> None:
        """Enable, also while enabled."""
        self.compensator.enable()
        self.before = self.servo_torque()
        assert self.compensator.doubt is not None

    @rule()
    def disable(self) -> None:
        """Disable."""
        self.compensator.disable()
        self.before = self.servo_torque()

    @rule(dt=st.floats(0.0, 0.2) | st.floats(-10.0, 1e6))
    def wait(self, dt: float) -> None:
        """The steady clock goes on, or is somewhere else, and whoever watches it looks."""
        self.now += dt
        expired = self.compensator.expire(self.now)
        if not expired:
            self.unchanged()
        assert not expired or self.compensator.doubt is not None
        self.before = self.servo_torque()
        assert not self.compensator.expire(self.now)

    @invariant()
    @precondition(lambda self: hasattr(self, "compensator"))
    def torque_is_finite_and_within_limits(self) -> None:
        """In the servo's coordinates; zero whenever it is off or in doubt."""
        torque = self.servo_torque()
        assert np.isfinite(torque).all()
        assert np.all(np.abs(torque) <= LIMITS * (1.0 + 1e-12))
        if not self.compensator.enabled or self.compensator.doubt is not None:
            np.testing.assert_array_equal(torque, 0.0)

    @invariant()
    @precondition(lambda self: hasattr(self, "compensator"))
    def output_is_finite_or_none(self) -> None:
        """What goes out is the controller's own, with the friction, or nothing: never a zero in its place."""
        output, mode = self.compensator.output(self.now), self.compensator.settings.mode
        if output is None:
            assert mode in ("sum", "goal_offset")
            return
        assert np.isfinite(output.values).all()
        np.testing.assert_array_equal(output.friction, self.compensator.torque)
        if mode == "friction_only":
            np.testing.assert_array_equal(output.values, self.compensator.torque)
        elif mode == "current":
            constants = [joint.values["kt"] for joint in self.compensator.model.joints]
            signs = [m.sign for m in MAPS]
            np.testing.assert_allclose(output.values, signs * self.before / constants, rtol=1e-12)
        else:
            timeout = self.compensator.settings.timing.command_timeout
            fresh = [(goal, own) for arrival, goal, own in self.commands if self.now - arrival <= timeout]
            assert any(self.passed_on(output.values, goal, own) for goal, own in fresh)

    def passed_on(self, values: np.ndarray, goal: np.ndarray, own: np.ndarray) -> bool:
        """Whether what goes out is a controller's own with the friction."""
        if self.compensator.settings.mode == "sum":
            return np.array_equal(values, own + self.compensator.torque)
        if not self.before.any() and not np.isfinite(own).any():
            return np.array_equal(values, goal)
        return bool(np.isfinite(goal).all())


Live.TestCase.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
TestLive = Live.TestCase
