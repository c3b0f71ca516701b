"""The C++ headers of controllers/ compute what core computes: laws, dynamics, whole histories with faults."""

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from xml.etree import ElementTree

import hypothesis
import numpy as np
import pytest
import yaml
from hypothesis.stateful import run_state_machine_as_test

import stribeck
from compensating import model
from cpp_compensator import (
    SOURCES,
    CppCompensator,
    built,
    compiler,
    law_row,
    library,
    pointer,
    row,
    value_row,
)
from cpp_histories import Pair, Setup, arm, history
from helpers import REPOSITORY
from stribeck.errors import ConfigError
from stribeck.live.friction import Scales, cancelling_torque, fixed_point, probed
from stribeck.live.settings import Settings
from stribeck.live.states.incoming import picked
from stribeck.model.joint_map import JointMap
from stribeck.model.law import LAWS, friction_budget
from stribeck.model.terms import FRICTION_PARAMETERS

CONTROLLERS = REPOSITORY / "controllers"
STATES = 100_000


def laws_in_cpp(law, values, states):
    """Budgets, cancelling torque and feed-forward torque, (4, n)."""
    flags = row(np.broadcast_to(law_row(law), (len(states), 1)))
    table, given = row(np.stack(np.broadcast_arrays(*value_row(values)), axis=1)), row(states)
    found = np.empty((len(states), 4))
    library().laws(len(states), pointer(flags), pointer(table), pointer(given), pointer(found))
    return found.T


def random_states(random, count):
    """Share, velocity, motor, external, dry, viscous, guess, limit; some at rest, without load, or at a tie."""
    share = random.uniform(-1.5, 1.5, count) * (random.random(count) > 0.05)
    velocity = (
        random.normal(size=count) * 10.0 ** random.uniform(-6, 1, count) * (random.random(count) > 0.05)
    )
    motor = random.normal(size=count) * (random.random(count) > 0.05)
    external = np.where(random.random(count) < 0.1, -motor, random.normal(size=count))
    scales = random.uniform(0.2, 2.0, (2, count))
    limit = random.uniform(0.05, 2.0, count)
    return np.stack(
        [share, velocity, motor, external, *scales, 0.3 * random.normal(size=count), limit], axis=1
    )


@pytest.mark.ci
@pytest.mark.parametrize("terms", [{}, {"asymmetric": True, "offset": True}], ids=["", "with-terms"])
def test_laws_are_those_of_core_on_random_states(terms):
    """M1 to M6, 100 000 states in all: budget, cancelling torque and Newton step to 1e-12."""
    random, count = np.random.default_rng(3), STATES // (2 * len(LAWS))
    for law in (law.with_terms(**terms) for law in LAWS.values()):
        values = {
            name: random.uniform(parameter.lower, parameter.upper, count)
            for name, parameter in FRICTION_PARAMETERS.items()
        }
        states = random_states(random, count)
        share, velocity, motor, external, dry, viscous, guess, limit = states.T
        scales = Scales(dry, viscous)

        def cancelling(total, law=law, values=values, states=states, scales=scales):
            return cancelling_torque(law, values, states[:, 0], states[:, 1], total, states[:, 3], scales)

        near, far = 1e-7 * limit, 2e-7 * limit
        here, there = (cancelling(motor + probed(guess, probe, share)) for probe in (near, far))
        expected = (
            *friction_budget(law, values, motor, external, velocity),
            cancelling(motor),
            fixed_point(guess, share, near, far, here, there, limit),
        )
        found = laws_in_cpp(law, values, states)
        for ours, theirs in zip(expected[:3], found[:3], strict=True):
            np.testing.assert_allclose(theirs, ours, rtol=1e-12, atol=1e-13)
        # The slope of the Newton step is a difference over 1e-7 of the limit: rounding counts 1e7 times.
        np.testing.assert_allclose(found[3], expected[3], rtol=1e-8, atol=1e-8)


def test_rigid_bodies_move_as_in_core():
    """Mass matrix and bias torques of random trees with revolute and prismatic joints."""
    random = np.random.default_rng(5)
    for n in (1, 3, 7):
        dynamics = arm(random, n)
        cpp = CppCompensator(
            [model(f"j{k}") for k in range(n)], [JointMap()] * n, Settings("sum", "none"), dynamics
        )
        for q, v in random.normal(size=(20, 2, n)):
            mass, bias = dynamics.mass_matrix_and_bias(q, v)
            found_mass, found_bias = cpp.mass_matrix_and_bias(q, v)
            np.testing.assert_allclose(found_mass, mass, rtol=1e-12, atol=1e-12)
            np.testing.assert_allclose(found_bias, bias, rtol=1e-12, atol=1e-11)


def test_histories_with_faults_give_the_same_torque():
    """Random joints, modes, goals and faults: after each step the same doubt, torque, output and learnt friction."""
    pairs = [history(seed, 150) for seed in range(10)]
    assert sum(pair.python.learned is not None for pair in pairs) > 3, "too few histories learn anything"
    assert sum(pair.trusted for pair in pairs) > 1000
    assert (sum(pair.off for pair in pairs) > 10).all(), "too few joints are off while others are not"


@pytest.mark.slow
def test_many_histories_give_the_same_torque():
    """The same with 60 others, each longer."""
    for seed in range(1000, 1060):
        history(seed)


@pytest.mark.slow
def test_anything_in_any_order_gives_the_same_torque():
    """The random machine of the compensator's own tests, with every call made of both; partial states are left out."""
    path = REPOSITORY / "test" / "live" / "test_compensator_stateful.py"
    spec = importlib.util.spec_from_file_location("compensator_machine", path)
    machine = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(machine)
    machine.Compensator = Both

    class Complete(machine.Live):
        """States of all joints alone: what the checks compare with is a state that both have seen."""

        def on_state(self, stamp, names, position, velocity, effort):
            if tuple(names) == machine.NAMES:
                super().on_state(stamp, names, position, velocity, effort)

    run_state_machine_as_test(
        Complete, settings=hypothesis.settings(max_examples=150, stateful_step_count=40, deadline=None)
    )


class Both:
    """A compensator whose calls are repeated in C++ and compared."""

    def __init__(self, joints, maps, settings):
        self._pair = Pair(Setup(joints, list(maps), settings, None))

    def __getattr__(self, name):
        return getattr(self._pair.python, name)

    def enable(self):
        self._pair.tell("enable")

    def disable(self):
        self._pair.tell("disable")

    def set_gain(self, gain):
        if not self._pair.set_gain(gain):
            raise ConfigError("not stable")

    def expire(self, now):
        return self._pair.tell("expire", now)

    def on_telemetry(self, name, **told):
        self._pair.tell("on_telemetry", name, **told)

    def on_command(self, arrival, stamp, names, position, velocity, effort):
        ours = self.names if names is None else names
        if all(ours.count(name) == 1 for name in self.names):
            order = np.array([ours.index(name) for name in self.names])
            fields = [picked(values, order) for values in (position, velocity, effort)]
            self._pair.tell("on_command", arrival, stamp, self.names, *fields)

    def on_state(self, arrival, stamp, names, position, velocity, effort):
        order = np.arange(len(names))
        given = picked(velocity, order) if len(velocity) else []
        fields = picked(position, order), given, picked(effort, order)
        self._pair.tell("on_state", arrival, stamp, names, *fields)
        return self.torque


def sanitized(tmp_path, source, *flags):
    flags = ("-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all", *flags)
    return built(source, tmp_path / "sanitized", *flags)


@pytest.mark.slow
def test_no_undefined_behaviour_in_histories(tmp_path):
    """Histories with faults through a library with the address and undefined-behaviour sanitizers."""
    target = sanitized(tmp_path, SOURCES / "binding.cpp", "-fPIC", "-shared")
    runtime = subprocess.run(
        [compiler(), "-print-file-name=libasan.so"], capture_output=True, text=True, check=True
    ).stdout.strip()
    code = "from cpp_histories import history\nfor seed in range(40): history(seed)\nprint('sound')"
    environment = {
        **os.environ,
        "STRIBECK_BINDING": str(target),
        "LD_PRELOAD": runtime,
        "ASAN_OPTIONS": "detect_leaks=0",
        "PYTHONPATH": os.pathsep.join([str(REPOSITORY / "test" / "support"), *sys.path]),
    }
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr[-3000:]
    assert "sound" in done.stdout


def updates(program, steps):
    """Figures of update_time.cpp, without waiting."""
    done = subprocess.run([program, str(steps), "--free-running"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)


def test_updates_allocate_nothing(tmp_path):
    """10 000 updates of seven joints that learn, after configuring."""
    found = updates(built(CONTROLLERS / "bench" / "update_time.cpp", tmp_path / "update_time", "-O1"), 10_000)
    assert found["learns"]
    assert found["allocations"] == 0


@pytest.mark.slow
def test_updates_have_no_undefined_behaviour(tmp_path):
    """The same program with sanitizers, leaks included."""
    assert updates(sanitized(tmp_path, CONTROLLERS / "bench" / "update_time.cpp"), 20_000)["learns"]


def test_settings_that_would_not_be_stable_are_refused():
    """A gain at which the torque feeds on itself, in one line."""
    joint = model("a", "m6", load_friction_motor=1.0)
    with pytest.raises(AssertionError, match="the compensation is unstable"):
        CppCompensator([joint], [JointMap()], Settings("sum", "motor", gain=1.5), unchecked=True)


def test_package_is_what_colcon_needs():
    """Its own package.xml, version and licence of the project, ament_cmake; what it builds on is declared.

    What rosdep must not install on every robot is looked for quietly, and used only where it is found.
    """
    root = ElementTree.parse(CONTROLLERS / "package.xml").getroot()
    assert root.findtext("name") == "stribeck_controllers"
    assert root.findtext("version") == stribeck.__version__
    assert root.findtext("license") == "Apache-2.0"
    assert root.findtext("export/build_type") == "ament_cmake"
    declared = {
        found.text for tag in ("depend", "buildtool_depend", "test_depend") for found in root.iter(tag)
    }
    build = (CONTROLLERS / "CMakeLists.txt").read_text()
    used = dict(re.findall(r"find_package\((\w+) (REQUIRED|QUIET)\)", build))
    assert len(used) == build.count("find_package(")
    optional = {name for name, word in used.items() if word == "QUIET"}
    assert optional == {"inverse_dynamics_solver"}
    assert all(f"if({name}_FOUND)" in build for name in optional)
    assert used.keys() - optional <= declared
    assert not optional & declared


def test_every_friction_parameter_is_one_of_the_controller():
    """The names of parameter files, and those of the example, are declared."""
    path = CONTROLLERS / "src" / "friction_compensation_controller_parameters.yaml"
    declared = yaml.safe_load(path.read_text())["friction_compensation_controller"]
    assert set(FRICTION_PARAMETERS) <= set(declared["friction"]["__map_joints"])
    example = yaml.safe_load((CONTROLLERS / "config" / "example.yaml").read_text())
    given = example["friction_compensation"]["ros__parameters"]
    assert set(given) - {"type"} <= set(declared)
    for joint in given["friction"].values():
        assert set(joint) <= set(declared["friction"]["__map_joints"])


def test_colcon_finds_the_package_by_its_folder(tmp_path):
    """Not below the root package, but where it is named beside it, as docs/controllers.md says."""
    colcon = shutil.which("colcon")
    if colcon is None:
        pytest.skip("no colcon here: pip install colcon-common-extensions")
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "stribeck").symlink_to(REPOSITORY)

    def listed(*options):
        command = [colcon, "list", "--names-only", *options]
        return subprocess.run(
            command, capture_output=True, text=True, check=True, cwd=tmp_path
        ).stdout.split()

    assert listed() == ["stribeck"]
    folders = "src/stribeck", "src/stribeck/controllers"
    assert listed("--base-paths", *folders) == ["stribeck", "stribeck_controllers"]
