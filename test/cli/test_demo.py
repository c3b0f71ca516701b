"""The demo: the whole loop on emulated servos, in simulated time."""

import contextlib
import json
from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip("rclpy", reason="rclpy is not installed: pip install '.[ros]'")

from stribeck.cli.demo import run as demo
from stribeck.cli.demo.stage import NodeProcesses
from stribeck.cli.main import main
from stribeck.errors import StribeckError


@pytest.mark.real_time
@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_demo_closes_the_loop(tmp_path):
    """Unseen run within an encoder step + 1 mrad; friction cut by half in every case; rest, but not for the naive one."""
    summary = tmp_path / "demo.json"
    assert main(["demo", "--output", str(tmp_path / "demo"), "--json", str(summary)]) == 0
    found = json.loads(summary.read_text())
    assert found["schema"] == 1
    assert found["prediction_mae"] <= found["encoder_step"] + 1e-3
    errors = found["trajectory_error"]
    assert len(errors["cases"]) == 6
    for name, gravity, friction in zip(
        errors["cases"], errors["gravity"], errors["gravity_friction"], strict=True
    ):
        assert 1.0 - friction / gravity >= 0.5, name
    assert found["rest_counts"]["0.8"] <= 2.0
    assert found["rest_counts"]["1.2"] <= 2.0
    assert found["rest_counts"]["naive"] > 2.0
    assert found["lost_samples"] == 0
    assert len(found["bags"]) >= 12
    assert all(Path(bag).is_dir() for bag in found["bags"])
    assert set(found["parameters"]) == set(found["truth"])
    assert (tmp_path / "demo" / "compensation.png").is_file()


def test_bags_of_others_are_not_replaced(tmp_path, capsys):
    """A folder with bags that no demo made is refused before anything happens."""
    bag = tmp_path / "bags" / "mine"
    bag.mkdir(parents=True)
    assert main(["demo", "--output", str(tmp_path)]) == 1
    assert "choose another --output" in capsys.readouterr().err
    assert bag.is_dir()


def test_the_two_simulations_of_the_demo_have_no_topic_in_common(tmp_path, monkeypatch):
    """Both have nodes in a namespace, and the one absolute topic of theirs, /diagnostics, is moved into it.

    Messages of the other simulation came at any time, and were counted for its own: at a quarter of the processor one of five
    demos recorded other values.
    """
    commands = {}

    def started(self, label, command):
        commands[label] = " ".join(command)

    def ended(*_):
        raise StribeckError("that was all")

    monkeypatch.setattr(NodeProcesses, "_run", started)
    monkeypatch.setattr(NodeProcesses, "wait_until", lambda *_: None)
    monkeypatch.setattr(demo, "SessionWatcher", lambda robots: None)
    monkeypatch.setattr(demo, "Spinner", lambda watcher: contextlib.nullcontext(SimpleNamespace(node=None)))
    monkeypatch.setattr(demo, "watch", ended)
    (tmp_path / "nodes").mkdir()
    with pytest.raises(StribeckError, match="that was all"):
        demo.record(tmp_path)
    nodes = {label: one for label, one in commands.items() if not label.endswith("_servos")}
    assert len(nodes) == 4
    for label, command in nodes.items():
        robot = label.split("_")[0]
        assert f"-r __ns:=/{robot} " in f"{command} "
        assert f"-r /diagnostics:=/{robot}/diagnostics" in command
