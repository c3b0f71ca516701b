"""A torque over the angle that began as a line could not become gravity: its mean was taken for an offset of the friction."""

from dataclasses import replace

from joint_tables import columns, sweep, write_table
from stribeck.identify.joint.model import Structure
from stribeck.identify.joint.recording import recording_of
from stribeck.identify.joint.selection import ARC, StructureSelection, Trial
from stribeck.model.law import LAWS
from stribeck.survey.joint_table import read_joint_table


def test_a_line_gives_way_to_gravity(tmp_path):
    """Over a travel in which gravity shows, it is offered in place of a line, as a parabola beside the line is; not over a short one."""
    found = recording_of(read_joint_table(write_table(tmp_path / "table.csv", columns(sweep()))), None)
    selection = StructureSelection(found.runs)
    for travel, offered in ((2.0 * ARC, True), (0.5 * ARC, False)):
        selection.frame = replace(selection.frame, upper=selection.frame.lower + travel)
        trial = Trial(Structure(LAWS["m1"].with_terms(offset=True), 0, ("inertia", "line")), selection.frame)
        rests = [structure.rest for structure, _ in selection._richer(trial)]
        assert (("inertia", "gravity") in rests) == offered
        assert ("inertia", "line", "curve") in rests
