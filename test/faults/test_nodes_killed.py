"""Servo, excitation and recorder node are killed, or their bus fails, in mid-motion: the servo stops, bags stay readable."""

import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ros_graph import PATIENCE, Graph, wait_for
from diagnostic_msgs.msg import DiagnosticArray
from std_srvs.srv import SetBool, Trigger

from bag_readers import READERS
from driving import emulated, emulator_process
from emulated_bus import EmulatedBus
from exciting import PATIENT, record_yaml
from recording_nodes import (
    PROMPT,
    RECORDER,
    Excitation,
    NodeProcess,
    Setup,
    assert_nothing_lost,
    setup,
    stamps_in,
)
from stribeck.nodes.messages import decode_telemetry, telemetry_topics
from stribeck.recordings.bags.storage import read_messages
from stribeck.recordings.sources import read_recordings

pytestmark = pytest.mark.real_time

SECOND = 1_000_000_000


def assert_came_back(folder: Path, published: list[int], killed: int) -> list[str]:
    """All but the last second before the kill, in a copy that opens everywhere; what was said about it."""
    notes: list[str] = []
    read_recordings(folder, note=notes.append)
    (copy,) = folder.glob("*_recovered")
    stamps = stamps_in(copy)
    assert_nothing_lost(stamps, published)
    assert killed - stamps[-1] < SECOND
    for count in READERS.values():
        assert count(copy)["/joint_states"] == len(stamps)
    return notes


@pytest.mark.slow
def test_a_killed_excitation_node_loses_a_second_at_most(tmp_path: Path) -> None:
    """kill -9 in a run: torque goes off, the run comes back, and the next session records beside it."""
    with setup(tmp_path) as (s, bus):
        assert bus is not None
        with s.exciting() as node:
            s.excitation.start()
            s.excitation.running(0.5)
            killed = node.kill()
        wait_for(lambda: not bus.servos[0].torque_enabled, "torque off", 2.0 * PATIENT["command_timeout"])
        (said,) = wait_for(lambda: s.errors("servo"), "the reason")
        assert "no command for" in said
        (note,) = assert_came_back(s.bags, s.servo.stamps, killed)
        assert "cut off" in note
        assert s.graph.call(Trigger, "/servo/clear", Trigger.Request()).success
        again(s)
        first, second = read_recordings(s.bags)
        assert "cut off" in first.name
        assert second.position.time[-1] - second.position.time[0] > 1.0


def again(s: Setup) -> None:
    """One more session by a new excitation node, which the user ends in its first run."""
    with s.exciting():
        s.excitation.start()
        s.excitation.running(0.45)
        s.excitation.abort()
        result = s.excitation.result(PATIENCE)
    assert result["end"] == "interrupted", result
    assert len(result["bags"]) == 1


@pytest.mark.slow
def test_a_killed_recorder_node_loses_a_second_at_most(tmp_path: Path) -> None:
    """kill -9 while it records: what it had comes back as messages; the next bag has the next number."""
    folder = tmp_path / "all"
    options = {"output": str(folder), "prefix": "all"}
    with setup(tmp_path) as (s, _):
        with NodeProcess("recorder", tmp_path, RECORDER, **options) as recorder:
            recorder.reaches(s.graph, "recorder")
            s.heard_by("recorder")
            s.more(3.0)
            killed = recorder.kill()
        stamps = stamps_in(folder / "all_001")
        assert_nothing_lost(stamps, s.servo.stamps)
        assert killed - stamps[-1] < SECOND
        for count in READERS.values():
            assert count(folder / "all_001_recovered")["/joint_states"] == len(stamps)
        with NodeProcess("recorder", tmp_path, RECORDER, **options) as recorder:
            recorder.reaches(s.graph, "recorder")
            s.heard_by("recorder")
            # The graph may still show the one that was killed: what counts is that the new bag grows.
            size = lambda: sum(file.stat().st_size for file in (folder / "all_002").glob("*"))  # noqa: E731
            begun = wait_for(size, "the second bag")
            wait_for(lambda: size() > begun + 20_000, "states in the second bag")
            s.more(1.0)
            assert recorder.interrupt() == 0
        assert_nothing_lost(stamps_in(folder / "all_002"), s.servo.stamps)


@pytest.mark.slow
def test_a_killed_servo_node_leaves_the_servo_to_its_watchdog(tmp_path: Path) -> None:
    """kill -9 in mid-motion: the servo stands, the session ends and says why, the bag is readable.

    How soon, with a watchdog of 100 ms, is tested on virtual time: test_bus_faults.
    """
    with EmulatedBus(emulated("xl330")) as bus, Graph() as graph:
        (servo,) = bus.servos
        config = record_yaml(tmp_path / "record.yaml", bus.path, rate=PROMPT["rate"], state_timeout=2.0)
        excitation = Excitation(graph)
        with (
            NodeProcess("servo", tmp_path, config=str(config)) as driver,
            NodeProcess("excitation", tmp_path, config=str(config)) as player,
        ):
            driver.reaches(graph, "servo")
            player.reaches(graph, "excitation")
            excitation.start()
            excitation.running(0.4)
            wait_for(lambda: abs(servo.state.velocity) > 1.5, "the servo moves fast")
            driver.kill()
            wait_for(lambda: servo.numbers["bus_watchdog"] == -1, "the watchdog runs out")
            wait_for(lambda: abs(servo.state.velocity) < 0.1, "the servo stands")
            result = excitation.result(PATIENCE)
            assert result["end"] == "failed"
            assert "state" in result["reason"], result
            assert result["bags"] == []
            assert stamps_in(Path(result["disturbed"][-1]))
        with NodeProcess("servo", tmp_path, config=str(config)) as driver:
            driver.reaches(graph, "servo")
            assert "the bus watchdog of servo 1 (Dynamixel XL330-M288) had expired; cleared" in driver.output
            assert driver.interrupt() == 0


STRIKES: dict[str, tuple[Callable[[EmulatedBus], None], Callable[[EmulatedBus], None], tuple[str, ...]]] = {
    "overload": (lambda bus: bus.fail(1, "overload"), lambda bus: None, ("overload",)),
    "brown-out": (
        lambda bus: bus.set_voltage(3.2),
        lambda bus: bus.set_voltage(5.0),
        ("input voltage", "supply voltage of 3.2 V"),
    ),
    "unplugged": (lambda bus: bus.unplug(), lambda bus: bus.plug(), ("is lost",)),
}
"""What happens to the bus, what ends it, and what the reason says (one of them)."""


@pytest.mark.slow
@pytest.mark.parametrize(
    "strike",
    ["unplugged", "overload", "brown-out"],
)
def test_trouble_on_the_bus_in_a_session_through_the_nodes(tmp_path: Path, strike: str) -> None:
    """Torque off, or the bus given up, within 100 ms; said once; the bag is readable; after ~/clear it works again."""
    happens, ends, parts = STRIKES[strike]
    with setup(tmp_path) as (s, bus):
        assert bus is not None
        driver = s.servo.node._driver
        assert driver is not None
        with s.exciting():
            s.excitation.start()
            s.excitation.running(0.5)
            began = time.monotonic()
            happens(bus)
            wait_for(lambda: driver.state == "fault" or not bus.servos[0].torque_enabled, "let go")
            assert time.monotonic() - began < 0.1
            result = s.excitation.result(PATIENCE)
        assert result["end"] == "failed"
        assert any(part in result["reason"] for part in parts), result
        assert strike == "unplugged" or not bus.servos[0].torque_enabled
        (bag,) = map(Path, result["bags"])
        assert_nothing_lost(stamps_in(bag), s.servo.stamps)
        (log,) = read_recordings(s.bags)
        assert log.position.time.size > 100
        ends(bus)
        wait_for(lambda: s.graph.call(Trigger, "/servo/clear", Trigger.Request()).success, "cleared")
        assert s.graph.call(SetBool, "/servo/enable", SetBool.Request(data=True)).success
        again(s)
        (said,) = wait_for(lambda: s.errors("servo"), "the reason")
        assert any(part in said for part in parts), said


@pytest.mark.slow
@pytest.mark.parametrize("runs", [1, 2])
def test_stalls_of_50_ms_are_flagged_in_diagnostics_and_bag(tmp_path: Path, runs: int) -> None:
    """Twice a second: the session finishes, telemetry in the bag has every gap, diagnostics name the joint."""
    stalls = "silence:after=2,every=0.5,for=0.05"
    plays: dict[str, Any] = {"trajectories": ["sin_sin"], "gains": [400], "repetitions": runs}
    with (
        emulator_process(tmp_path / "port", "--servo", "xl330", "--fault", stalls) as port,
        setup(tmp_path, port, **PROMPT, plays=plays) as (s, _),
        s.exciting(),
    ):
        diagnostics = s.graph.collect(DiagnosticArray, "/diagnostics")
        s.excitation.start()
        result = s.excitation.result(10.0 * runs + 20.0)
        assert result["end"] == "finished", result
        assert s.errors("servo") == []
        words = [status.message for array in diagnostics for status in array.status if status.name == "servo"]
    assert sum("no answer from joint 'j1' for" in text for text in words) >= 4 * runs
    for bag in map(Path, result["bags"]):
        gaps = gaps_in(bag)
        assert 8 <= len([gap for gap in gaps if gap > 0.045]) <= 14, gaps


def gaps_in(bag: Path) -> list[float]:
    """The gaps that telemetry in a bag tells of [s]."""
    topics = {f"/{topic.name}": topic for topic in telemetry_topics()}
    found = []
    for message in read_messages(bag).messages:
        topic = topics.get(message.topic.name)
        if topic is not None:
            for _, values in decode_telemetry(topic, message.data):
                gap = values.get("gap", math.nan)
                found += [gap] if gap > 0.0 else []
    return found
