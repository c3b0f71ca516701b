"""The layouts for PlotJuggler and Foxglove name topics that there are."""

import json
import re
import xml.etree.ElementTree as ElementTree

from helpers import REPOSITORY

LAYOUTS = REPOSITORY / "config" / "layouts"
NODES = REPOSITORY / "src" / "stribeck" / "nodes"


def topics_of_nodes():
    """Names in the calls that create publishers and subscriptions."""
    return set(re.findall(r'"([a-z_]+)"', "".join(path.read_text() for path in NODES.glob("*.py"))))


def test_every_curve_is_of_a_topic_that_there_is():
    """Both programs show the same topics, each published or read by a node."""
    curves = [curve.get("name") for curve in ElementTree.parse(LAYOUTS / "plotjuggler.xml").iter("curve")]
    plotted = {curve.split("/")[1] for curve in curves}
    panels = json.loads((LAYOUTS / "foxglove.json").read_text())["configById"].values()
    shown = {path["value"].split(".")[0].removeprefix("/") for panel in panels for path in panel["paths"]}
    assert plotted == shown
    assert {"friction_torque", "friction_scale", "external_torque"} <= plotted <= topics_of_nodes()
