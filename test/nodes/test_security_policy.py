"""config/security/policy.xml allows each node what it uses, and no more."""

import json
import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from helpers import REPOSITORY, published

POLICY = REPOSITORY / "config" / "security" / "policy.xml"
KINDS = {"publish": "publisher", "subscribe": "subscriber", "reply": "service", "request": "client"}
EITHER = {"/servo_status", "/dynamic_joint_states"}
"""Telemetry: the latter with control_msgs, the former without."""

SOMETIMES = {"subscribe": {"/clock", "/parameter_events"}}
"""With use_sim_time; of the distribution."""


def allowed():
    """Names by node and kind, and whether they are as sros2 writes them."""
    root = ElementTree.parse(POLICY).getroot()
    assert (root.tag, root.attrib) == ("policy", {"version": "0.2.0"})
    found = {}
    for enclave in root.iterfind("enclaves/enclave"):
        (profile,) = enclave.iterfind("profiles/profile")
        node = profile.get("node")
        assert enclave.get("path") == f"/stribeck/{node}"
        assert profile.get("ns") == "/"
        found[node] = {kind: set() for kind in KINDS}
        for group in profile:
            ((kind, word),) = group.attrib.items()
            assert word == "ALLOW"
            assert group.tag == ("topics" if kind in ("publish", "subscribe") else "services")
            for name in group:
                assert name.tag == group.tag[:-1]
                text = name.text.replace("~", f"/{node}")
                found[node][kind].add(text if text.startswith("/") else f"/{text}")
    return found


USED = """
import json, sys
from pathlib import Path
from api_made import file_of_joints
from ros_graph import Graph, wait_for
from driving import emulated
from exciting import record_yaml
from rclpy.lifecycle import TransitionCallbackReturn as Return
from emulated_bus import EmulatedBus
from stribeck.nodes.compensation import CompensationNode
from stribeck.nodes.excitation import ExcitationNode
from stribeck.nodes.guard import GuardNode
from stribeck.nodes.identification import IdentificationNode
from stribeck.nodes.recording import RecorderNode
from stribeck.nodes.servo import ServoNode
from three_joints import arm_of_three

folder, law = Path(sys.argv[1]), sys.argv[2]
results = {"watch": str(folder / "bags"), "output": str(folder / "m6.json")}
joints = {"joints": ["j1"], "j1.parameter_file": law, "effort_meaning": "none", "output_mode": "goal_offset"}
names = ["j1", "j2", "j3"]
arm = {"joints": names, "drives_file": str(file_of_joints(folder / "arm.json", *names)), "urdf": str(arm_of_three(folder))}
arm |= {"effort_meaning": "none", "output_mode": "goal_offset"}  # three joints have a wrench
(folder / "bags").mkdir()
with EmulatedBus(emulated("xl330")) as bus, Graph() as graph:
    config = {"config": str(record_yaml(folder / "record.yaml", bus.path))}
    nodes = [
        graph.add(ServoNode, config),
        graph.add(ExcitationNode, config),
        graph.add(RecorderNode, {"output": str(folder / "all")}),
        graph.add(IdentificationNode, {**results, "compensation": "/compensation"}),
        graph.add(CompensationNode, {**arm, "guarded": True}),
        graph.add(GuardNode, joints),
    ]
    for node in nodes:
        assert node.trigger_configure() == Return.SUCCESS, node._failure_of_transition
        assert node.trigger_activate() == Return.SUCCESS
    user = graph.user
    def names(node, kind):
        plural = getattr(user, f"get_{kind}_names_and_types_by_node")
        return sorted(name for name, _ in plural(node.get_name(), "/"))
    wait_for(lambda: all(names(node, "publisher") and names(node, "service") for node in nodes), "the graph")
    print(json.dumps({n.get_name(): {kind: names(n, kind) for kind in sys.argv[3:]} for n in nodes}))
"""


@pytest.fixture(scope="module")
def used(tmp_path_factory):
    """What the active nodes have in the graph."""
    pytest.importorskip("jax", reason="the identification node asks for the fit extra: pip install '.[fit]'")
    folder = tmp_path_factory.mktemp("security")
    law = folder / "m1.json"
    values = {**published("xl330", "m1"), "q_offset": 0.0, "model": "m1", "actuator": "xl330"}
    law.write_text(json.dumps(values))
    paths = [str(Path(__file__).resolve().parents[1] / "support"), *sys.path]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    environment.pop("_ROS_WHEELS_BOOTSTRAP_COMPLETE", None)
    done = subprocess.run(
        [sys.executable, "-c", USED, folder, law, *KINDS.values()],
        env=environment, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.slow
@pytest.mark.real_time
def test_each_node_is_allowed_what_it_uses_and_no_more(used):
    """Topics and services of the running nodes against the policy, both ways."""
    policy = allowed()
    assert set(policy) == set(used)
    for node, kinds in used.items():
        for kind, called in KINDS.items():
            names, granted = set(kinds[called]), policy[node][kind]
            assert names - granted == set(), f"{node} may not {kind}"
            spare = granted - names - SOMETIMES.get(kind, set())
            assert spare <= EITHER, f"{node} may {kind} what it does not use"


def test_the_policy_is_valid_by_the_schema_of_sros2():
    """Where sros2 is installed."""
    loading = pytest.importorskip(
        "sros2.policy", reason="sros2 is not installed: apt install ros-jazzy-sros2"
    )
    loading.load_policy(str(POLICY))
