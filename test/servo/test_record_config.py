"""record.yaml: the examples are valid, and what does not fit is refused before a port is opened."""

import re
from pathlib import Path

import pytest
import yaml

from format_keys import keys_of
from helpers import REPOSITORY, refusal
from stribeck.model.trajectories import TRAJECTORIES
from stribeck.servo.config import BusFile, read_driver_config, read_record_config
from stribeck.session.limits import rest_position

EXAMPLES = ["record.yaml", "record_xl330.yaml"]


def example():
    """The content of config/record.yaml."""
    return yaml.safe_load((REPOSITORY / "config" / "record.yaml").read_text())


def written(folder, **changes):
    """The example with top-level keys changed, as a file; ``...`` takes one out."""
    content = {**example(), **changes}
    path = folder / "record.yaml"
    path.write_text(yaml.safe_dump({key: value for key, value in content.items() if value is not ...}))
    return path


def with_joint(**changes):
    """The joints of the example with some keys of its joint changed."""
    joint = {**example()["joints"]["joint"], **changes}
    return {"joint": {key: value for key, value in joint.items() if value is not ...}}


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_examples_are_valid(name):
    """Both files describe an XL330 at 200 Hz whose plays fit its limits."""
    driver, session = read_record_config(REPOSITORY / "config" / name)
    assert driver.rate == session.rate == 200.0
    assert [joint.actuator for joint in driver.joints] == ["xl330"]
    assert len(session.plays) >= 12
    assert session.options.position_margin == driver.position_margin
    assert read_driver_config(REPOSITORY / "config" / name) == driver


def test_the_example_explains_every_key():
    """Whatever may stand in the file stands in config/record.yaml, commented out where it has a default."""
    text = (REPOSITORY / "config" / "record.yaml").read_text()
    keys = [key.name.rpartition(".")[2] for key in keys_of(BusFile)]
    assert {"id", "velocity", "min_voltage", "output"} <= set(keys)
    assert not [key for key in keys if not re.search(rf"\b{key}:", text)]
    assert not [name for name in TRAJECTORIES if name not in text]


def test_the_command_line_overrules_the_file(tmp_path):
    """Port, rate and output."""
    path = written(tmp_path)
    driver, session = read_record_config(path, port="/dev/null", rate=100.0, output=tmp_path)
    assert (driver.port, driver.rate, session.rate, session.output) == ("/dev/null", 100.0, 100.0, tmp_path)
    unchanged = read_record_config(path)
    assert (unchanged[0].port, unchanged[0].rate) == (example()["port"], example()["rate"])


@pytest.mark.parametrize(
    ("changes", "parts"),
    [
        ({"plays": ...}, ("plays missing",)),
        ({"output": ...}, ("output missing",)),
        ({"port": ...}, ("port missing",)),
        ({"speed": 3}, ("unknown key 'speed'", "plays", "rate")),
        ({"output": 3}, ("output", "text")),
        ({"supply_voltage": 0}, ("supply_voltage", "above 0")),
        ({"plays": {"trajectories": ["steps"], "gains": [100]}}, ("steps", ".inf")),
        ({"plays": {"trajectories": ["sin_sin"], "gains": [100.5]}}, ("gain", "100.5", "whole")),
        ({"plays": {"trajectories": ["sin_sin"], "gains": [20000]}}, ("20000", "16383")),
        ({"joints": with_joint(position_limits=[-1.0, 1.0])}, ("sin_sin", "1.759", "position")),
        ({"joints": with_joint(mode="current")}, ("mode 'current'", "position")),
        ({"joints": with_joint(model="xm430_w210")}, ("actuator", "xm430_w210")),
        ({"joints": with_joint(position_limits=[-110, 110])}, ("position_limits", "degrees")),
        ({"joints": with_joint(mass=1.0)}, ("unknown key 'mass'", "goal_current", "bench", "scale")),
        ({"joints": {}}, ("at least one",)),
        ({"joints": {"a": 3}}, ("joints: a", "named values")),
    ],
)
def test_what_does_not_fit_is_refused(tmp_path, changes, parts):
    """Missing and unknown keys, gains a servo does not have, plays beyond limits, modes without a goal position."""
    path = written(tmp_path, **changes)
    refusal(lambda: read_record_config(path), *parts)


def test_a_joint_of_a_robot_has_no_bench(tmp_path):
    """It rests at its center, where torque goes off, in place of hanging at 0."""
    _, session = read_record_config(written(tmp_path, joints=with_joint(bench=..., center=0.1, scale=0.9)))
    (joint,), (described,) = session.joints, session.bench_joints
    assert (joint.hangs, joint.center, described.load) == (False, 0.1, None)
    assert rest_position(joint, True) == 0.1


def test_a_file_that_is_none_is_refused(tmp_path):
    """Missing files and files that are no mapping."""
    refusal(lambda: read_record_config(tmp_path / "missing.yaml"), "no such file")
    path = tmp_path / "list.yaml"
    path.write_text("[1, 2]")
    refusal(lambda: read_record_config(Path(path)), "named values")
