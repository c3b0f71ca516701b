"""The identification node: fits in a child process, survives whatever becomes of it, never loses a result."""

import json
import os
import signal
import stat
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
from ros_graph import Graph, domain, told_by, wait_for
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from rclpy.lifecycle import TransitionCallbackReturn
from rclpy.parameter import Parameter
from std_msgs.msg import String
from std_srvs.srv import Trigger

from helpers import published
from stribeck.errors import ConfigError
from stribeck.files.actuators import load_actuator
from stribeck.files.drives import Drives, read_drive, read_drives, write_drives
from stribeck.model.joint import Drive
from stribeck.model.law import law_named
from stribeck.model.verdict import Reason, Verdict
from stribeck.nodes.compensation import CompensationNode
from stribeck.nodes.identification import IdentificationNode
from stribeck.nodes.qos import latched
from stribeck.nodes.statuses import texts_of
from stribeck.recordings.bags.messages import JOINT_STATES
from stribeck.recordings.bags.recorder import BagRecorder
from stribeck.session.fit_process import ENGINES, environment_for, find_interpreter, progress_of

pytestmark = pytest.mark.real_time

RESULT = {**published("xl330", "m1"), "q_offset": 0.0, "model": "m1", "actuator": "xl330"}

INTERPRETER = """\
#!{python}
# Stands for an interpreter: `-c` finds all modules, `-m stribeck identify` does what the file beside it says.
import json, os, signal, subprocess, sys, time
if sys.argv[1] == "-c":
    sys.exit()
here = {here!r}
arguments = sys.argv[2:]
option = lambda name: arguments[arguments.index(name) + 1]
with open(here + "/calls", "a") as calls:
    calls.write(json.dumps(dict(arguments=arguments, pid=os.getpid(), group=os.getpgid(0))) + "\\n")
def say(**told):
    print(json.dumps(told), file=sys.stderr, flush=True)
def write(text):
    with open(option("--output"), "w") as file:
        file.write(text)
print("stribeck: warning: something to know", file=sys.stderr)
say(model="m1", evaluations=10, trials=100, error=None, seconds=0.1)
behaviour = open(here + "/behaviour").read()
if behaviour == "hang":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    worker = subprocess.Popen([sys.executable, "-c",
        "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(1000)"])
    with open(here + "/worker", "w") as file:
        file.write(str(worker.pid))
    time.sleep(1000)
elif behaviour == "wait":
    time.sleep(1000)
elif behaviour == "fail":
    print("stribeck: the bags hold no runs", file=sys.stderr)
    sys.exit(1)
elif behaviour == "crash":
    raise MemoryError("no more")
elif behaviour == "folder":
    os.makedirs(option("--output"))
    number = len(open(here + "/calls").readlines())
    with open(option("--output") + "/little.json", "w") as file:
        file.write(json.dumps(dict({result!r}, kt=0.3 + 0.01 * number)))
    with open(option("--output") + "/compensation.yaml", "w") as file:
        file.write("drives_file: " + os.path.realpath(option("--output")) + "/little.json\\n")
    with open(option("--output") + "/picture.png", "w") as file:
        file.write(str(number))
elif behaviour == "killed":
    os.kill(os.getpid(), signal.SIGKILL)
elif behaviour == "damaged":
    write("{{")
else:
    say(model="m1", evaluations=100, trials=100, error=0.02, seconds=1.0)
    write(behaviour)
"""


class FakeFit:
    """An interpreter whose ``stribeck identify`` does what a test wants."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir()
        self.path = folder / "python3"
        self.path.write_text(INTERPRETER.format(python=sys.executable, here=str(folder), result=RESULT))
        self.path.chmod(self.path.stat().st_mode | stat.S_IXUSR)
        self.does(json.dumps(RESULT))

    def does(self, behaviour: str) -> None:
        """What the next fit does, or the parameter file that it writes."""
        (self._folder / "behaviour").write_text(behaviour)

    @property
    def calls(self) -> list[dict]:
        """The fits so far."""
        path = self._folder / "calls"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def worker(self) -> int:
        """Process of a worker of a fit that hangs."""
        path = self._folder / "worker"
        return int(wait_for(lambda: path.exists() and path.read_text(), "the worker"))


@pytest.fixture
def fit(tmp_path):
    return FakeFit(tmp_path / "bin")


@pytest.fixture
def parameters(tmp_path, fit):
    (tmp_path / "bags").mkdir()
    return {
        "watch": str(tmp_path / "bags"),
        "output": str(tmp_path / "out" / "m1.json"),
        "model": "m1",
        "python": str(fit.path),
        "settle_time": 0.0,
    }


def activate(node):
    assert node.trigger_configure() == TransitionCallbackReturn.SUCCESS
    assert node.trigger_activate() == TransitionCallbackReturn.SUCCESS


def make_bag(folder, name):
    """What looks like a finished bag."""
    (folder / name).mkdir()
    (folder / name / "metadata.yaml").write_text("rosbag2_bagfile_information: {}\n")


def identify(graph):
    return graph.call(Trigger, "/identification/identify", Trigger.Request())


def states(progress):
    return [message.message for message in progress]


def wait_for_state(progress, state):
    return wait_for(
        lambda: next((told_by(m) for m in progress if m.message == state), None),
        f"the state {state}; there were {states(progress)}",
    )


def diagnosis(graph, level):
    """The first diagnostics of a level from now on."""
    found = graph.collect(DiagnosticArray, "/diagnostics")
    return wait_for(
        lambda: next((m.status[0] for m in found if m.status[0].level == level), None),
        f"diagnostics of level {level}; there were {[m.status[0].message for m in found]}",
    )


def is_alive(process):
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def test_a_call_gives_progress_and_a_latched_result(parameters, fit, tmp_path):
    """Progress as the child tells it, then the file, its content and its path, also for who comes later."""
    parameters |= {"fit_options": ["--effects", "supply"], "joint": "hinge"}
    with Graph() as graph:
        node = graph.add(IdentificationNode, parameters)
        activate(node)
        progress = graph.collect(DiagnosticStatus, "/identification/progress")
        wait_for(lambda: node._progress.get_subscription_count(), "the progress is heard")
        assert identify(graph).success
        done = wait_for_state(progress, "done")
        assert done["evaluations"] == 100
        assert done["error"] == 0.02
        assert done["parameter_file"] == parameters["output"]
        content = graph.collect(String, "/friction_parameters", latched())
        named = graph.collect(String, "/identification/parameter_file", latched())
        wait_for(lambda: content and named, "the latched result")
        assert json.loads(content[0].data) == RESULT
        assert named[0].data == parameters["output"]
        assert json.loads(Path(parameters["output"]).read_text()) == RESULT
        (call,) = fit.calls
        assert call["arguments"][:4] == ["stribeck", "identify", "servo", parameters["watch"]]
        assert call["arguments"][-6:] == ["--law", "m1", "--joint", "hinge", "--effects", "supply"]
        assert call["group"] == call["pid"], "a process group of its own"
        assert call["group"] != os.getpgid(0)
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["m1.json"], "nothing else is left"


def with_verdict(path, use, joints=("hip",), **changes):
    """A file of drives as an identification writes it."""
    servo = load_actuator("xl330")
    values = {**servo.published["m1"], "q_offset": 0.0, **changes}
    reasons = () if use == "usable" else (Reason("few_runs", use, "two runs"),)
    drive = Drive(servo, law_named("m1"), values, verdict=Verdict(reasons))
    write_drives(path, Drives(dict.fromkeys(joints, drive), verdict=Verdict(reasons)))
    return path.read_text()


def test_a_compensation_node_takes_over_usable_results(parameters, fit, tmp_path):
    """While both run: a usable result is in use with its values, one that is doubtful is not, nor one with another joint, and reasons are told."""
    first = tmp_path / "first.json"
    with_verdict(first, "usable")
    made = partial(with_verdict, tmp_path / "made.json")
    compensated = {
        "joints": ["hip"],
        "drives_file": str(first),
        "effort_meaning": "none",
        "hip.max_torque": 0.3,
        "ramp_time": 0.0,
    }
    with Graph() as graph:
        compensation = graph.add(CompensationNode, compensated)
        activate(compensation)
        node = graph.add(IdentificationNode, {**parameters, "compensation": "/compensation"})
        activate(node)
        progress = graph.collect(DiagnosticStatus, "/identification/progress")
        wait_for(lambda: node._setter._client.service_is_ready(), "the compensation node")
        for text, state, reason, friction in (
            (made("usable", friction_base=0.02), "taken over", "", 0.02),
            (made("doubtful", friction_base=0.03), "not taken over", "its verdict is doubtful", 0.02),
            (made("usable", ("knee", "ankle")), "not taken over", "no joint 'hip'", 0.02),
        ):
            fit.does(text)
            progress.clear()
            assert identify(graph).success
            told = wait_for(
                lambda: next((told_by(m) for m in progress if "taken over" in m.message), None), "the answer"
            )
            assert told["state"] == state, told
            assert reason in str(told["reason"])
            assert compensation._in_use.joints[0].file.values["friction_base"] == friction


def test_several_joints_become_one_file(parameters, fit):
    """One child for each joint, one after the other; one file with the drives of all, which compensation reads."""
    with Graph() as graph:
        node = graph.add(IdentificationNode, {**parameters, "joint": "hip, knee"})
        activate(node)
        progress = graph.collect(DiagnosticStatus, "/identification/progress")
        wait_for(lambda: node._progress.get_subscription_count(), "the progress is heard")
        assert identify(graph).success
        wait_for_state(progress, "done")
    words = [call["arguments"] for call in fit.calls]
    assert [one[one.index("--joint") + 1] for one in words] == ["hip", "knee"]
    drives = read_drives(Path(parameters["output"]))
    assert list(drives.joints) == ["hip", "knee"]
    assert drives.joints["knee"].values["kt"] == RESULT["kt"]


def test_results_in_a_folder_are_kept_too(parameters, fit, tmp_path):
    """Files of an arm come together; earlier ones have numbers, and paths in them are those of the folder."""
    output = tmp_path / "out"
    fit.does("folder")
    with Graph() as graph:
        node = graph.add(IdentificationNode, {**parameters, "engine": "arm", "output": str(output)})
        activate(node)
        for _ in range(2):
            assert identify(graph).success
            wait_for(lambda: node._fit is None, "the end of the fit")
        written = graph.collect(DiagnosticStatus, "/identification/result", latched())
        wait_for(lambda: written, "the latched result")
    told = written[0]
    assert texts_of(told, "parameter_file") == [str(output / "little.json")]
    assert {Path(path).name for path in texts_of(told, "file")} == {
        "little.json",
        "compensation.yaml",
        "picture.png",
    }
    names = {path.name for path in output.iterdir()}
    assert names == {"little.json", "little_001.json", "compensation.yaml", "picture.png"}, (
        "one picture, one text"
    )
    assert (output / "compensation.yaml").read_text() == f"drives_file: {output / 'little.json'}\n"
    assert fit.calls[0]["arguments"][:3] == ["stribeck", "identify", "arm"]


def test_results_before_are_kept(parameters, fit, tmp_path):
    """Every new result moves the one before aside, with a number; nothing is overwritten."""
    files = tmp_path / "out"
    with Graph() as graph:
        node = graph.add(IdentificationNode, parameters)
        activate(node)
        for number in range(3):
            fit.does(json.dumps({**RESULT, "kt": 0.3 + 0.01 * number}))
            assert identify(graph).success
            wait_for(lambda: node._fit is None, "the end of the fit")
    kept = {path.name: json.loads(path.read_text())["kt"] for path in files.iterdir()}
    assert kept == {"m1.json": 0.32, "m1_001.json": 0.3, "m1_002.json": 0.31}


def test_new_finished_bags_start_a_fit(parameters, fit, tmp_path):
    """As soon as there are enough, none is being recorded, and new ones are among them."""
    folder = tmp_path / "bags"
    with Graph() as graph:
        node = graph.add(IdentificationNode, {**parameters, "min_bags": 2})
        activate(node)
        make_bag(folder, "one")
        with BagRecorder(folder / "two", [JOINT_STATES]):
            wait_for(lambda: node._seen == {folder / "one"}, "one bag is seen")
            make_bag(folder, "three")
            wait_for(lambda: len(node._seen) == 2, "two bags are seen")
            assert not fit.calls, "one is still being recorded"
        wait_for(lambda: fit.calls, "the fit")
        wait_for(lambda: node._fit is None, "its end")
        wait_for(lambda: len(node._seen) == 3, "another look")
        assert len(fit.calls) == 1, "nothing new, no fit"
        make_bag(folder, "four")
        wait_for(lambda: len(fit.calls) == 2, "a fit of what is new")
        wait_for(lambda: node._fit is None, "its end")


def test_an_earlier_result_is_taken_up(parameters, fit, tmp_path):
    """After a new start the result is on the topics again, and the bags that are in it start no fit."""
    for name in ("one", "two"):
        make_bag(tmp_path / "bags", name)
    output = Path(parameters["output"])
    output.parent.mkdir()
    output.write_text(json.dumps(RESULT))
    with Graph() as graph:
        node = graph.add(IdentificationNode, {**parameters, "min_bags": 1})
        activate(node)
        content = graph.collect(String, "/friction_parameters", latched())
        wait_for(lambda: content, "the result")
        looked = node._looked
        wait_for(lambda: node._looked > looked, "a look into the folder")
        assert not fit.calls


@pytest.mark.parametrize(
    ("behaviour", "said"),
    [
        ("fail", "exit code 1: the bags hold no runs"),
        pytest.param("crash", "exit code 1: MemoryError: no more", marks=pytest.mark.slow),
        ("killed", "killed by SIGKILL"),
        ("damaged", "not valid JSON"),
        (json.dumps({**RESULT, "kt": -1.0}), "kt must be positive"),
    ],
)
def test_a_failed_fit_leaves_the_result_before(parameters, fit, behaviour, said):
    """One line in diagnostics says why; file and topics stay as they were, and the next fit works."""
    with Graph() as graph:
        node = graph.add(IdentificationNode, parameters)
        activate(node)
        assert identify(graph).success
        wait_for(lambda: node._fit is None, "the end of the fit")
        before = Path(parameters["output"]).read_text()
        progress = graph.collect(DiagnosticStatus, "/identification/progress")
        fit.does(behaviour)
        assert identify(graph).success
        failed = wait_for_state(progress, "failed")
        assert said in failed["reason"]
        status = diagnosis(graph, b"\x02")
        assert said in status.message
        assert "\n" not in status.message
        assert Path(parameters["output"]).read_text() == before
        content = graph.collect(String, "/friction_parameters", latched())
        wait_for(lambda: content, "the result before")
        assert json.loads(content[0].data) == RESULT
        fit.does(json.dumps(RESULT))
        assert identify(graph).success
        wait_for_state(progress, "done")
        diagnosis(graph, b"\x00")
    assert sorted(path.name for path in Path(parameters["output"]).parent.iterdir()) == [
        "m1.json",
        "m1_001.json",
    ]


def test_cancel_ends_a_fit_and_its_workers(parameters, fit):
    """Even those that do not listen; the result before stays, and another fit may start."""
    with Graph() as graph:
        node = graph.add(IdentificationNode, parameters)
        activate(node)
        cancel = lambda: graph.call(Trigger, "/identification/cancel", Trigger.Request())  # noqa: E731
        assert not cancel().success, "nothing to cancel"
        fit.does("hang")
        progress = graph.collect(DiagnosticStatus, "/identification/progress")
        assert identify(graph).success
        again = identify(graph)
        assert not again.success
        assert "already" in again.message
        worker = fit.worker()
        assert cancel().success
        wait_for_state(progress, "cancelled")
        wait_for(lambda: not is_alive(fit.calls[0]["pid"]), "the child is gone")
        wait_for(lambda: not is_alive(worker), "its worker is gone")
        fit.does(json.dumps(RESULT))
        assert identify(graph).success
        wait_for_state(progress, "done")


def test_the_fit_ends_with_the_node(parameters, fit):
    """Deactivation ends the child and its workers before it returns."""
    with Graph() as graph:
        node = graph.add(IdentificationNode, parameters)
        activate(node)
        fit.does("hang")
        assert identify(graph).success
        worker = fit.worker()
        node.trigger_deactivate()
        assert not is_alive(fit.calls[0]["pid"])
        wait_for(lambda: not is_alive(worker), "the worker is gone")
        answer = identify(graph)
        assert not answer.success
        assert "activate" in answer.message
    assert list(Path(parameters["output"]).parent.iterdir()) == [], "nothing is left"


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_the_fit_ends_with_the_process_of_the_node(parameters, fit, number):
    """Ctrl-C ends node and child with exit code 0; even kill -9 of the node leaves no fit behind."""
    if number == signal.SIGKILL and not any(Path(p, "setpriv").exists() for p in os.get_exec_path()):
        pytest.skip("setpriv (util-linux) is not installed: nothing ends a child of a killed process")
    fit.does("wait")
    make_bag(Path(parameters["watch"]), "one")
    given = {**parameters, "min_bags": 1, "autostart": True}
    words = [word for name, value in given.items() for word in ("-p", f"{name}:={json.dumps(value)}")]
    command = [sys.executable, "-m", "stribeck.nodes.identification", "--ros-args", *words]
    environment = {**os.environ, "ROS_DOMAIN_ID": str(domain())}
    with subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL) as node:
        try:
            call = wait_for(lambda: fit.calls, "the fit")[0]
            node.send_signal(number)
            assert node.wait(60.0) == (0 if number == signal.SIGINT else -signal.SIGKILL)
        finally:
            node.kill()
    wait_for(lambda: not is_alive(call["pid"]), "the child is gone")


def test_environment_of_the_child(monkeypatch, tmp_path):
    """Another interpreter gets nothing of this one's Python path; the wheels' mark is inherited by none."""
    monkeypatch.setenv("_ROS_WHEELS_BOOTSTRAP_COMPLETE", "1")
    monkeypatch.setenv("PYTHONPATH", "/opt/ros/jazzy/lib/python3.12/site-packages")
    own = environment_for(Path(sys.executable))
    other = environment_for(tmp_path / "bin" / "python3")
    assert "PYTHONPATH" in own
    assert "PYTHONPATH" not in other
    assert "_ROS_WHEELS_BOOTSTRAP_COMPLETE" not in {**own, **other}
    link = tmp_path / Path(sys.executable).name
    link.symlink_to(sys.executable)
    assert "PYTHONPATH" not in environment_for(link), "as in a virtual environment"


def test_an_interpreter_that_cannot_fit_is_known_at_once(parameters, tmp_path):
    """Missing, broken, or without JAX: configuration fails and says what to do."""
    with pytest.raises(ConfigError, match="no interpreter '/nowhere/python'"):
        find_interpreter("/nowhere/python", ENGINES["servo"])
    poor = tmp_path / "poor"
    poor.write_text("#!/bin/sh\necho jax cmaes\n")
    poor.chmod(0o755)
    with pytest.raises(ConfigError, match=r"lacks jax, cmaes: .*pip install 'stribeck\[fit\]'"):
        find_interpreter(str(poor), ENGINES["servo"])
    poor.write_text("#!/bin/sh\necho broken >&2; exit 3\n")
    with pytest.raises(ConfigError, match="not a usable interpreter: broken"):
        find_interpreter(str(poor), ENGINES["servo"])
    with Graph() as graph:
        node = graph.add(IdentificationNode, {**parameters, "python": str(poor)})
        assert node.trigger_configure() == TransitionCallbackReturn.FAILURE


@pytest.mark.parametrize(
    "changed",
    [
        {"watch": ""},
        {"output": ""},
        {"watch": __file__},
        {"output": "/proc/nothing/m1.json"},
        {"fit_options": ["--output", "other.json"]},
        {"fit_options": ["--progress=bar"]},
        {"model": "m7"},
        {"engine": "legs"},
        {"engine": "arm", "output": __file__},
        {"engine": "arm", "fit_options": ["--output=elsewhere"]},
        {"min_bags": -1},
        {"engine": "geometry", "compensation": "/compensation"},
    ],
)
def test_what_cannot_work_is_refused_at_configuration(parameters, changed):
    """Folders and files that are none, options that would take the result away."""
    with Graph() as graph:
        try:
            node = graph.add(IdentificationNode, {**parameters, **changed})
        except ConfigError:
            return
        assert node.trigger_configure() == TransitionCallbackReturn.FAILURE


def test_options_can_change_while_the_node_runs(parameters, fit):
    """The next fit takes them; what would take the result away is refused."""
    with Graph() as graph:
        node = graph.add(IdentificationNode, parameters)
        activate(node)
        (refused,) = node.set_parameters([Parameter("fit_options", value=["--quiet"])])
        assert not refused.successful
        assert "--quiet" in refused.reason
        done = node.set_parameters(
            [Parameter("model", value="m2"), Parameter("fit_options", value=["--seed", "3"])]
        )
        assert all(result.successful for result in done)
        assert identify(graph).success
        wait_for(lambda: fit.calls, "the fit")
        assert fit.calls[0]["arguments"][-4:] == ["--law", "m2", "--seed", "3"]
        wait_for(lambda: node._fit is None, "its end")


@pytest.mark.parametrize(
    "line", ["", "M6:  10%|##", "{", "{}", "[]", '{"evaluations"', '"evaluations"', "{'evaluations': 1}"]
)
def test_other_lines_are_no_progress(line):
    """Whatever a library writes to stderr does no harm."""
    assert progress_of(line) is None


@pytest.mark.slow
def test_a_real_fit_by_the_node(tmp_path):
    """Bundled recordings, the real child, this interpreter: progress on the way, and a valid file."""
    pytest.importorskip("jax", reason="a fit needs JAX: pip install '.[fit]'")
    from stribeck.files.folders import shared_directory

    parameters = {
        "watch": str(shared_directory("bags") / "xl330_simulated" / "m0.1_l0.1"),
        "output": str(tmp_path / "m1.json"),
        "model": "m1",
        "fit_options": ["--trials", "3000"],
    }
    with Graph() as graph:
        node = graph.add(IdentificationNode, parameters)
        activate(node)
        progress = graph.collect(DiagnosticStatus, "/identification/progress")
        assert identify(graph).success
        wait_for(lambda: {"done", "failed"} & set(states(progress)), "the end of the fit", timeout=250.0)
        done = wait_for_state(progress, "done")
        assert 0 < done["error"] < 0.1
        fitting = [told_by(m) for m in progress if m.message == "fitting"]
        assert len({told.get("evaluations") for told in fitting}) > 2
    assert read_drive(tmp_path / "m1.json").law.name == "m1"
