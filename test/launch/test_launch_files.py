"""The shipped launch files under the real launch: nodes reach active, Ctrl-C ends all of them cleanly."""

import json
import re
from pathlib import Path

import pytest
import yaml
from ros_graph import Graph, wait_for
from lifecycle_msgs.msg import State
from sensor_msgs.msg import JointState
from std_msgs.msg import String

from helpers import REPOSITORY, published
from launching import Launched, needs_launch, run
from stribeck.files.drives import read_drive
from stribeck.nodes.qos import latched
from stribeck.recordings.sources import read_recordings

pytestmark = [needs_launch, pytest.mark.real_time]

FILES = sorted(path.name for path in (REPOSITORY / "launch").glob("*.launch.py"))
EXAMPLES = sorted(path.name for path in (REPOSITORY / "examples").rglob("*.launch.py"))
M6 = {**published("xl330", "m6"), "q_offset": 0.0, "model": "m6", "actuator": "xl330"}


@pytest.fixture
def launch(environment, tmp_path):
    """Launches a file of the package."""

    def start(name, **arguments):
        words = [f"{key}:={value}" for key, value in arguments.items()]
        command = ["ros2", "launch", "stribeck", f"{name}.launch.py", *words]
        return Launched(command, environment, tmp_path / "output")

    return start


@pytest.fixture
def compensation(tmp_path):
    """The shipped parameters of the compensation, with a parameter file that is there."""
    (tmp_path / "m6.json").write_text(json.dumps(M6))
    shipped = (REPOSITORY / "config" / "compensation.yaml").read_text()
    path = tmp_path / "compensation.yaml"
    path.write_text(shipped.replace("~/stribeck/m6.json", str(tmp_path / "m6.json")))
    return path


@pytest.mark.parametrize("name", FILES + EXAMPLES)
def test_every_argument_is_described(environment, name):
    """`ros2 launch stribeck FILE --show-args` says what each argument is for."""
    shown = run(environment, "ros2", "launch", "stribeck", name, "--show-args")
    arguments = re.findall(r"^ +'(\w+)':", shown, re.MULTILINE)
    assert {"autostart", "use_sim_time"} <= set(arguments)
    assert "namespace" in arguments or name == "two_robots.launch.py", "it names the namespaces itself"
    assert not {"config", "servo_parameters", "excitation_parameters"} & set(arguments)
    assert "no description given" not in shown


def test_compensation_waits_where_it_is_told_to(launch, compensation):
    """Without autostart the nodes stay unconfigured, for a manager of lifecycles."""
    with Graph() as graph, launch("compensate", params_file=compensation, autostart="false") as running:
        for node in ("compensation", "guard"):
            running.reaches(graph, node, State.PRIMARY_STATE_UNCONFIGURED)
        assert running.interrupt() == 0
        running.check_clean_end(2)


def test_compensation_and_guard_reach_active_and_end(launch, compensation):
    """Two processes, both active, with topics as the arguments name them; Ctrl-C ends both with exit code 0, and nothing
    is left."""
    names = {
        "joint_states": "/arm/joint_states",
        "controller_command": "/arm/goals",
        "compensated_command": "/forward_position_controller/commands",
    }
    with Graph() as graph, launch("compensate", params_file=compensation, **names) as running:
        for node in ("compensation", "guard"):
            running.reaches(graph, node)
        user = graph.user
        assert user.count_publishers(names["compensated_command"]) == 2, "node and guard"
        assert user.count_subscribers(names["controller_command"]) == 2
        assert user.count_subscribers(names["joint_states"]) >= 1
        assert user.count_publishers("/compensated_command") == 0
        assert running.interrupt() == 0
        running.check_clean_end(2)


def test_compensation_in_a_namespace(launch, compensation):
    """Nodes, relative topics and services are in it; absolute topics stay where they are."""
    names = {"namespace": "left/arm", "joint_states": "/joint_states"}
    with Graph() as graph, launch("compensate", params_file=compensation, **names) as running:
        for node in ("compensation", "guard"):
            running.reaches(graph, f"left/arm/{node}")
        user = graph.user
        assert user.count_publishers("/left/arm/compensated_command") == 2, "node and guard"
        assert user.count_subscribers("/joint_states") >= 1
        assert user.count_publishers("/compensated_command") == 0
        assert running.interrupt() == 0
        running.check_clean_end(2)


def test_a_node_that_cannot_configure_ends_the_launch_with_its_message(launch, compensation):
    """A parameter file that is not there: exit code 1, the node's own words are the last, and nothing is left."""
    text = compensation.read_text()
    compensation.write_text(text.replace("m6.json", "nowhere.json"))
    with launch("compensate", params_file=compensation) as running:
        assert running.wait(60.0) == 1, running.output
        said = r"has failed with exit code 1: cannot configure: .*nowhere.json: no such file"
        assert re.search(said, running.output), running.output
        assert "Traceback" not in running.output
        assert not [pid for pid in running.processes if Path(f"/proc/{pid}").exists()]


def test_identification_reaches_active_and_ends(launch, tmp_path):
    """With a folder and a result of the user's; the result that is there is on its topic."""
    (tmp_path / "bags").mkdir()
    output = tmp_path / "m6.json"
    output.write_text(json.dumps(M6))
    interpreter = tmp_path / "python3"
    interpreter.write_text("#!/bin/sh\n")  # finds every module
    interpreter.chmod(0o755)
    given = {"watch": tmp_path / "bags", "output": output, "python": interpreter}
    topic = "/left/friction_parameters"
    with Graph() as graph, launch("identify", friction_parameters=topic, **given) as running:
        running.reaches(graph, "identification")
        found = graph.collect(String, topic, latched())
        wait_for(lambda: found, "the latched result")
        assert json.loads(found[0].data) == M6
        assert running.interrupt() == 0
        running.check_clean_end(1)


@pytest.fixture
def servo(environment, tmp_path):
    """The port of an emulated XL330 with the load of config/record_xl330.yaml."""
    port = tmp_path / "servo"
    bench = "mass=0.1,length=0.1,arm_mass=0.02"
    command = ["stribeck", "emulate", "--servo", "xl330", "--bench", bench, "--link", port]
    with Launched(command, environment, tmp_path / "emulator"):
        wait_for(port.exists, "the emulated servo")
        yield port


@pytest.fixture
def record(tmp_path):
    """What to record: one short run, on a machine that may be busy."""
    content = yaml.safe_load((REPOSITORY / "config" / "record_demo.yaml").read_text())
    content["plays"] = {"trajectories": ["up_and_down"], "gains": [200]}
    path = tmp_path / "record.yaml"
    path.write_text(yaml.safe_dump(content))
    return path


def test_record_ends_by_itself_with_a_bag(launch, servo, record, tmp_path):
    """Servo node and excitation play and record what the file says; then both end, with exit code 0."""
    output = tmp_path / "bags"
    with launch("record", bench_file=record, port=servo, output=output) as running:
        assert running.wait(90.0) == 0
        running.check_clean_end(2)
    (log,) = read_recordings(output)
    assert log.trajectory == "up_and_down"
    assert log.position.time[-1] - log.position.time[0] > 5.0


def test_record_can_be_interrupted_in_motion(launch, servo, record, tmp_path):
    """Ctrl-C while the servo moves: exit codes 0, torque off, nothing is left."""
    with launch("record", bench_file=record, port=servo, output=tmp_path / "bags") as running:
        running.says("run 1/1")
        assert running.interrupt() == 0
        running.check_clean_end(2)


def test_record_waits_where_it_is_told_to(launch, servo, record, tmp_path):
    """Without autoplay both nodes are active, nothing is recorded, and the launch stays."""
    given = {"bench_file": record, "port": servo, "output": tmp_path / "bags", "autoplay": "false"}
    with Graph() as graph, launch("record", **given) as running:
        for node in ("servo", "excitation"):
            running.reaches(graph, node)
        assert running.interrupt() == 0
        running.check_clean_end(2)
    assert not (tmp_path / "bags").exists()


def test_record_in_a_namespace(launch, servo, record, tmp_path):
    """Servo node and excitation find each other there, and the bag has the usual topics."""
    given = {"bench_file": record, "port": servo, "output": tmp_path / "bags", "namespace": "left"}
    with launch("record", **given) as running:
        assert running.wait(90.0) == 0, running.output
        running.check_clean_end(2)
    (log,) = read_recordings(tmp_path / "bags")
    assert log.trajectory == "up_and_down"


def test_record_identify_compensate_one_after_the_other(launch, servo, record, tmp_path):
    """The README's three lines: what one writes the next reads, and the last moves the servo to the goals that it is given."""
    bags, result = tmp_path / "bags", tmp_path / "m6.json"
    with launch("record", bench_file=record, port=servo, output=bags) as running:
        assert running.wait(90.0) == 0, running.output
    quick = {"min_bags": 1, "settle_time": 0.0, "model": "m1", "exit_when_done": True}
    params = tmp_path / "identification.yaml"
    params.write_text(yaml.safe_dump({"/**/identification": {"ros__parameters": quick}}))
    with launch("identify", params_file=params, watch=bags, output=result) as running:
        assert running.wait(240.0) == 0, running.output
    assert read_drive(result).law.name.lower().startswith("m1")
    shipped = (REPOSITORY / "config" / "compensation.yaml").read_text()
    params = tmp_path / "compensation.yaml"
    params.write_text(shipped.replace("~/stribeck/m6.json", str(result)))
    with (
        Graph() as graph,
        launch("compensate", params_file=params, bench_file=record, port=servo) as running,
    ):
        for node in ("servo", "compensation", "guard"):
            running.reaches(graph, node)
        goals = graph.publisher(JointState, "/controller_command")
        states = graph.collect(JointState, "/joint_states")

        def moved():
            goal = JointState(name=["joint"], position=[0.4])
            goal.header.stamp = graph.user.get_clock().now().to_msg()
            goals.publish(goal)
            return states and abs(states[-1].position[0] - 0.4) < 0.1

        wait_for(moved, "the joint at its goal", 30.0)
        assert running.interrupt() == 0
        running.check_clean_end(3)


def test_compensation_needs_its_parameters(launch, tmp_path):
    """Without params_file nothing starts, and the argument is named; one that is not there is an error too."""
    with launch("compensate") as running:
        assert running.wait(60.0) == 1
        assert "params_file" in running.output
        assert not running.processes
    with launch("compensate", params_file=tmp_path / "nowhere.yaml") as running:
        assert running.wait(60.0) == 1
        assert "nowhere.yaml: no such file" in running.output
        assert not running.processes


@pytest.mark.parametrize("name", ["record", "identify", "demo"])
def test_arguments_of_earlier_launch_files_are_refused(launch, name):
    """launch ignores what it does not know: an earlier name would move a servo by the shipped file."""
    with launch(name, config="mine.yaml") as running:
        assert running.wait(60.0) == 1
        assert "the launch argument config is now" in running.output
        assert not running.processes


@pytest.mark.parametrize(
    ("name", "given", "reason"),
    [
        ("record", {"port": "/nowhere/servo"}, "cannot open /nowhere/servo"),
        ("record", {"port": "/nowhere/servo", "autoplay": "false"}, "cannot open /nowhere/servo"),
        ("record", {"bench_file": "/nowhere/record.yaml"}, "/nowhere/record.yaml: no such file"),
        ("demo", {"bench_file": "/nowhere/record.yaml"}, "/nowhere/record.yaml: no such file"),
        ("identify", {"python": "/nowhere/python"}, "/nowhere/python"),
    ],
)
def test_what_cannot_start_fails(launch, record, tmp_path, name, given, reason):
    """The launch ends by itself with exit code 1, with the node's own reason, and leaves nothing behind."""
    usual = {} if name == "identify" else {"bench_file": record}
    with launch(name, **{**usual, "output": tmp_path / "results", **given}) as running:
        assert running.wait(60.0) == 1, running.output
        # The excitation node may end first, with the reason that the servo node has reported.
        said = rf"has failed with exit code 1: (failed: servo: )?cannot configure: .*{re.escape(reason)}"
        assert re.search(said, running.output), running.output
        assert "Traceback" not in running.output
        assert not [pid for pid in running.processes if Path(f"/proc/{pid}").exists()]


def test_a_recording_that_fails_fails_the_launch(launch, servo, record, tmp_path):
    """The excitation ends with exit code 1, as its limit of the following error is too narrow: so does the launch."""
    content = yaml.safe_load(record.read_text())
    content["joints"]["joint"]["limits"]["following_error"] = 0.01
    record.write_text(yaml.safe_dump(content))
    with launch("record", bench_file=record, port=servo, output=tmp_path / "bags") as running:
        assert running.wait(90.0) == 1, running.output
        assert re.search(r"excitation-\d+ has failed with exit code 1", running.output), running.output


@pytest.mark.slow
def test_the_demo_goes_round_the_whole_loop(launch, record, tmp_path):
    """Emulated servo, recording, identification, compensated motion: it ends by itself, with all results."""
    pytest.importorskip("jax", reason="a fit needs JAX: pip install '.[fit]'")
    output = tmp_path / "demo"
    with launch("demo", bench_file=record, model="m1", output=output) as running:
        assert running.wait(200.0) == 0
        running.check_clean_end(8)
    assert read_drive(output / "parameters.json").law.name == "m1"
    for folder in ("bags", "compensated"):
        assert len(read_recordings(output / folder)) == 1


def test_the_demo_can_be_interrupted(launch, record, tmp_path):
    """Ctrl-C in the first stage: what runs ends cleanly, and no later stage begins."""
    with launch("demo", bench_file=record, output=tmp_path / "demo") as running:
        running.says("run 1/1")
        assert running.interrupt() == 0
        running.check_clean_end(3)


def test_the_launch_files_are_all_here():
    """Nothing else than what the documentation names; no name twice, or `ros2 launch` refuses both."""
    assert len({*FILES, *EXAMPLES}) == len(FILES + EXAMPLES)
    assert [Path(name).name.partition(".")[0] for name in FILES] == [
        "arm",
        "compensate",
        "demo",
        "geometry",
        "identify",
        "record",
    ]
