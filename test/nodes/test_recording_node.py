"""What the nodes record: nothing is lost, and programs of others can read it."""

from pathlib import Path

import pytest
from ros_graph import Graph, wait_for

from bag_readers import READERS
from driving import emulator_process
from exciting import record_yaml
from helpers import REPOSITORY
from recording_nodes import (
    RECORDER,
    Excitation,
    NodeProcess,
    assert_nothing_lost,
    stamps_in,
    stamps_of,
)
from stribeck.recordings.bags.bag import read_bag

pytestmark = pytest.mark.real_time

RATE = 200
RUN = 6.0
"""What a trajectory lasts [s]."""

CHILD = REPOSITORY / "test" / "support" / "servo_node_child.py"


@pytest.mark.parametrize(
    "runs", [pytest.param(1, marks=pytest.mark.slow), pytest.param(10, marks=pytest.mark.slow)]
)
def test_no_published_state_is_lost(tmp_path: Path, runs: int) -> None:
    """Servo, excitation and recorder node as processes, wanted at 200 Hz: at whatever rate the machine keeps, every state
    that was published is in the bags, which open everywhere. Ten runs are 60 s, in bags of the excitation node, and more in one of the recorder."""
    plays = {"trajectories": ["sin_sin"], "gains": [400], "repetitions": runs}
    noted, folder = tmp_path / "stamps", tmp_path / "all"
    with emulator_process(tmp_path / "port", "--servo", "xl330") as port, Graph() as graph:
        config = record_yaml(tmp_path / "record.yaml", port, rate=RATE, plays=plays)
        excitation = Excitation(graph)
        with (
            NodeProcess("servo", tmp_path, (CHILD, noted), config=str(config)) as servo,
            NodeProcess("recorder", tmp_path, RECORDER, output=str(folder), prefix="all") as recorder,
            NodeProcess("excitation", tmp_path, config=str(config)) as player,
        ):
            for process, name in ((servo, "servo"), (recorder, "recorder"), (player, "excitation")):
                process.reaches(graph, name)
            wait_for(
                lambda: len(graph.user.get_subscriptions_info_by_topic("/joint_states")) == 2, "listeners"
            )
            excitation.start()
            result = excitation.result(10.0 * runs + 20.0)
            for process in (recorder, player, servo):
                assert process.interrupt() == 0, process.output
    published = stamps_of(noted.read_bytes())
    assert result["end"] == "finished", result
    bags = [Path(bag) for bag in result["bags"]]
    assert len(bags) == runs
    for bag in bags:
        stamps = stamps_in(bag)
        assert_nothing_lost(stamps, published)
        assert 1e-9 * (stamps[-1] - stamps[0]) > RUN - 1.0
        (log,) = read_bag(bag)
        assert len(stamps) - 3 < log.position.time.size <= len(stamps)
    whole = folder / "all_001"
    stamps = stamps_in(whole)
    assert_nothing_lost(stamps, published)
    assert stamps[0] < stamps_in(bags[0])[0]
    assert stamps[-1] > stamps_in(bags[-1])[-1]
    for count in READERS.values():
        assert count(whole)["/joint_states"] == len(stamps)
        assert count(bags[0])["/joint_states"] == len(stamps_in(bags[0]))
