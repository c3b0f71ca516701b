"""Robot files: what comes with the project is valid, and what is not valid is said."""

from pathlib import Path

import pytest

from stribeck.errors import ConfigError
from stribeck.files.folders import included_names
from stribeck.files.robots import example_robots, read_robot
from stribeck.identify.arm.config import identification_config

HEAD = "schema: 1\nname: little\n"


def robot(tmp_path, text):
    path = tmp_path / "robot.yaml"
    path.write_text(text)
    return read_robot(str(path))


@pytest.mark.parametrize("name", included_names("robots"))
def test_every_machine_of_the_project_is_valid(name):
    """Each is called as its file, and its sections can be read."""
    found = read_robot(name)
    assert found.name == name
    if "identification" in found.sections:
        assert identification_config(found).protocol.moving > 0.0


def test_the_four_machines_are_there():
    assert {"emps", "tx40", "ur10e", "irb120"} <= set(included_names("robots"))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("schema: 2\nname: a\n", "unknown schema 2; valid in this version of stribeck: 1"),
        ("name: a\n", "schema missing"),
        (HEAD + "wheels: 4\n", "unknown key 'wheels'"),
        (HEAD + "units: imperial\n", "units: expected linear or rotary, found 'imperial'"),
        (HEAD + "joints: [a, a]\n", "names must be different"),
        (HEAD + "joints: 3\n", "joints: expected a list of texts, found 3"),
        (HEAD + "limits: {jerk: 3}\n", "unknown key 'jerk'"),
        (HEAD + "identification: 3\n", "expected named values, found 3"),
        ("- a\n", "expected named values, found a list"),
        (HEAD + "name: b\n", "occurs twice"),
    ],
)
def test_files_that_are_refused(tmp_path, text, said):
    with pytest.raises(ConfigError) as caught:
        robot(tmp_path, text)
    assert said in str(caught.value)
    assert "robot.yaml" in str(caught.value)


@pytest.mark.parametrize(
    ("limits", "said"),
    [
        ("{velocity: [1, 2]}", "expected 3 numbers, found 2"),
        ("{velocity: -1}", "velocity: must be above 0, found -1"),
        ("{position: [[-1, 1]]}", "expected 3 pairs"),
        ("{position: [[1, -1], [0, 1], [0, 1]]}", "lower limits must be below"),
    ],
)
def test_limits_that_are_refused(tmp_path, limits, said):
    def read():
        found = robot(tmp_path, HEAD + f"limits: {limits}\n")
        return found.limit("velocity", 3), found.position_limits(3)

    with pytest.raises(ConfigError, match=said.replace("[", r"\[")):
        read()


def test_one_limit_is_for_all_joints(tmp_path):
    found = robot(tmp_path, HEAD + "limits: {velocity: 2}\n")
    assert found.limit("velocity", 3) == (2.0, 2.0, 2.0)
    assert found.limit("effort", 3) is None
    assert found.position_limits(3) is None


def test_the_urdf_is_looked_up_beside_the_data_first(tmp_path):
    """Then beside the YAML; nowhere is said with where it was looked for."""
    found = robot(tmp_path, HEAD + "urdf: arm.urdf\n")
    data = tmp_path / "data"
    data.mkdir()
    with pytest.raises(ConfigError, match=r"no file arm\.urdf in .*data"):
        found.find_urdf([data / "run.csv"])
    (tmp_path / "arm.urdf").touch()
    assert found.find_urdf([data / "run.csv"]) == tmp_path / "arm.urdf"
    (data / "arm.urdf").touch()
    assert found.find_urdf([data / "run.csv"]) == data / "arm.urdf"
    assert found.find_urdf([data]) == data / "arm.urdf"
    assert robot(tmp_path, HEAD).find_urdf([data]) is None


def test_example_robots_are_found_by_name():
    """Where example-robot-data is installed."""
    found = example_robots("panda.urdf")
    if not found:
        pytest.skip("example-robot-data is not installed")
    assert all(isinstance(path, Path) and path.is_file() for path in found)


@pytest.mark.parametrize(
    ("protocol", "said"),
    [
        ("{}", "moving missing"),
        ("{moving: 0}", "moving: must be above 0, found 0"),
        ("{moving: 1, every: 0}", "every: must be at least 1, found 0"),
        ("{moving: 1, fit: some}", "fit: expected every_row or moving, found 'some'"),
        ("{moving: 1, rows: {a: 3}}", "rows: a: expected a list of 2 whole numbers, found 3"),
        ("{moving: 1, effort_filter: {order: 4}}", "cutoff missing"),
        ("{moving: 1, edge_order: 3}", "edge_order: expected 1 or 2, found 3"),
        ("{moving: 1, filter: 3}", "unknown key 'filter'"),
    ],
)
def test_protocols_that_are_refused(tmp_path, protocol, said):
    found = robot(tmp_path, HEAD + f"identification: {{recording: {{format: bag}}, protocol: {protocol}}}\n")
    with pytest.raises(ConfigError) as caught:
        identification_config(found)
    assert said in str(caught.value)


def test_couplings_of_unknown_joints_are_refused(tmp_path):
    text = "joints: [a, b]\nidentification: {recording: {format: bag}, protocol: {moving: 1}, couplings: {w: {a: 1, c: 1}}}\n"
    with pytest.raises(ConfigError, match="weights of at least two joints out of a, b, found a, c"):
        identification_config(robot(tmp_path, HEAD + text))
