"""What an identification node makes of bags: the result of the command, with the same digits, and a compensation; nothing is lost."""

import json
import signal
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import yaml
from ros_graph import Graph, told_by, wait_for
from diagnostic_msgs.msg import DiagnosticStatus
from rclpy.lifecycle import TransitionCallbackReturn
from std_msgs.msg import String
from std_srvs.srv import Trigger

from stribeck.files.drives import read_drives
from stribeck.nodes.compensation import CompensationNode
from stribeck.nodes.identification import IdentificationNode
from stribeck.nodes.qos import latched
from stribeck.nodes.statuses import texts_of
from stribeck.session.fit_process import engine_of

LONGEST = 220.0
"""Longest time of one identification here, on a busy machine [s]."""


@dataclass
class Case:
    """What an engine is given, and what it has to give.

    :param joints: of the compensation that its result is for; none: the result is no drive.
    """

    bags: Path
    options: list[str] = field(default_factory=list)
    parameters: dict[str, str] = field(default_factory=dict)
    joints: tuple[str, ...] = ()


def node_parameters(engine, case, output):
    """Parameters of the identification node."""
    return {
        "engine": engine,
        "watch": str(case.bags),
        "output": str(output),
        "min_bags": 1,
        "settle_time": 0.0,
        "fit_options": case.options,
        **case.parameters,
    }


def activate(node):
    assert node.trigger_configure() == TransitionCallbackReturn.SUCCESS
    assert node.trigger_activate() == TransitionCallbackReturn.SUCCESS


def ended(messages):
    """The last progress, if the identification is over."""
    return next((told_by(one) for one in messages if one.message in ("done", "failed", "cancelled")), None)


def by_command(engine, case, output):
    """The file that the command writes."""
    kind = engine_of(engine, case.options)
    words = [*kind.words, str(case.bags), "--output", str(output), *case.options]
    for option, name in (kind.chooses or {}).items():
        words += [option, case.parameters[name]] if name in case.parameters else []
    subprocess.run([sys.executable, "-m", "stribeck", *words], check=True, capture_output=True)
    return output


def values_of(path):
    """All numbers of the drives and of the machine in a file."""
    drives = read_drives(path)
    joints = {name: dict(drive.values) for name, drive in drives.joints.items()}
    estimates = {
        name: {key: (one.value, one.interval) for key, one in drive.estimates.items()}
        for name, drive in drives.joints.items()
    }
    machine = {key: (one.value, one.interval) for key, one in drives.machine.estimates.items()}
    return joints, estimates, machine


def compensation_parameters(case, result):
    """Parameters of the compensation node: those that the identification wrote, or the file of drives alone."""
    written = result.parent / "compensation.yaml"
    if not written.is_file():
        limits = {f"{joint}.max_torque": 1.0 for joint in case.joints}
        return {"joints": list(case.joints), "drives_file": str(result), "effort_meaning": "none", **limits}
    found = {}
    for part in yaml.safe_load(written.read_text()).values():
        for name, value in part["ros__parameters"].items():
            nested = (
                {f"{name}.{key}": each for key, each in value.items()}
                if isinstance(value, dict)
                else {name: value}
            )
            found |= nested
    # A model without effort limits leaves them to its user.
    return {
        name: 5.0 if name.endswith(".max_torque") and not value else value for name, value in found.items()
    }


def check_result_and_compensation(engine, case, tmp_path):
    """Same digits as by the command; file, topics and the compensation node take it; a kill or a cancellation at any time loses nothing."""
    folder = engine_of(engine, case.options).folder
    output = tmp_path / "out" / ("result" if folder else "result.json")
    with Graph() as graph:
        node = graph.add(IdentificationNode, node_parameters(engine, case, output))
        activate(node)
        progress = graph.collect(DiagnosticStatus, "/identification/progress", 50)
        content = graph.collect(String, "/friction_parameters", latched())
        written = graph.collect(DiagnosticStatus, "/identification/result", latched())
        done = wait_for(lambda: ended(progress), "the end", timeout=LONGEST)
        assert done["state"] == "done", done
        wait_for(lambda: content and written, "the latched result")
        result = Path(done["parameter_file"])
        told = written[0]
        assert texts_of(told, "engine") == [engine]
        assert texts_of(told, "parameter_file") == [str(result)]
        assert all(Path(path).is_file() for path in texts_of(told, "file"))
        verdict = read_drives(result).verdict if engine_of(engine, case.options).drives else None
        assert told.message == ("written" if verdict is None else verdict.use)
        assert texts_of(told, "reason") == [one.text for one in (verdict.reasons if verdict else ())]
        assert json.loads(content[0].data) == json.loads(result.read_text())
        beside = tmp_path / "command" / ("result" if folder else "result.json")
        beside.parent.mkdir()
        by_command(engine, case, beside)
        assert values_of(result) == values_of(beside / result.name if folder else beside)
        if case.joints:
            compensation = graph.add(CompensationNode, compensation_parameters(case, result))
            activate(compensation)
        for end in ("killed", "cancelled"):
            check_nothing_is_lost(graph, node, progress, output, end)


def contents(folder):
    """Content of all files of a folder, by path."""
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def check_nothing_is_lost(graph, node, progress, output, end):
    """Another identification ends at a random time, unless it has been quicker: all files are as they were.

    :param output: of the node.
    :param end: ``killed`` or ``cancelled``.
    """
    before = contents(output.parent)
    progress.clear()
    assert graph.call(Trigger, "/identification/identify", Trigger.Request()).success
    wait = np.random.default_rng([len(str(output.name)), len(before), int(end == "killed")]).uniform(0.0, 6.0)
    assert wait_for(lambda: node._fit is not None, "the child")
    began = node.get_clock().now().nanoseconds
    wait_for(
        lambda: node.get_clock().now().nanoseconds > began + wait * 1e9 or node._fit is None,
        "a random time",
        timeout=20.0,
    )
    fit = node._fit
    if fit is None:
        return
    if end == "killed":
        fit._child._signal(signal.SIGKILL)
    elif not graph.call(Trigger, "/identification/cancel", Trigger.Request()).success:
        return
    told = wait_for(lambda: ended(progress), "its end")
    if told["state"] == "done":
        return
    assert told["state"] == ("failed" if end == "killed" else "cancelled")
    wait_for(lambda: node._fit is None, "the end of its process")
    assert contents(output.parent) == before
