"""``stribeck export`` of drives that ``identify robot`` found: the identified values, and draws as wide as their recordings require."""

import json
from dataclasses import replace

import numpy as np
import pytest

import stribeck.exports.robot_draws as robot_draws
import swinging_leg
from stribeck.cli.main import main
from stribeck.exports.draws import width_of_robot
from stribeck.exports.projection import missing_terms, rest_remark
from stribeck.exports.registry import FORMATS
from stribeck.exports.runs import rest_friction
from stribeck.files.drives import Drives, read_drives, write_drives
from stribeck.files.torque_drives import torque_actuator, torque_drive
from stribeck.identify.robot.problem import problem_of
from stribeck.identify.robot.recordings import read_runs
from stribeck.identify.robot.tree import load_tree
from stribeck.model.estimate import at_bound, estimate_of, fixed
from stribeck.model.joint import CorrelationMatrix
from stribeck.model.law import LAWS
from stribeck.model.provenance import Provenance, SearchRecord

POSITION = {
    "hip": {"friction_slope": 0.4, "friction_curve": 0.8, "friction_centre": -0.7},
    "knee": dict.fromkeys(("friction_slope", "friction_curve", "friction_centre"), 0.0),
}


@pytest.fixture
def drives(tmp_path):
    """A file as identify-robot writes it: uncertain, with friction over the position in the hip alone."""
    found = {}
    for joint, truth in swinging_leg.TRUE.items():
        estimates = {
            name: estimate_of(value, "", (0.9 * value, 1.1 * value), bounds=(0.0, 1e3))
            for name, value in truth.items()
        }
        estimates |= {name: fixed(value, "") for name, value in POSITION[joint].items()}
        estimates |= {"stiffness": fixed(20.0, ""), "derivative": fixed(0.5, "")}
        estimates |= {"delay": estimate_of(0.012, "s", (0.010, 0.014), bounds=(-0.1, 0.2))}
        actuator = torque_actuator("rotary", largest=20.0, derivative_gain=1.0)
        found[joint] = torque_drive(actuator, LAWS["m1"].with_terms(position=True), estimates)
    path = tmp_path / "robot.json"
    write_drives(path, Drives(found, provenance=Provenance(search=SearchRecord("identify-robot"))))
    return path


def export(drives, *words):
    """The exit code of an export to MJCF."""
    model = swinging_leg.write_model(drives.parent)
    chosen = ["--format", "mjcf", "--params", drives, "--model", model, "--output", drives.parent / "out.xml"]
    return main(["export", *map(str, (*chosen, *words))])


def attributes(path, joint):
    """Armature, Coulomb and viscous friction in a model."""
    (line,) = (line for line in path.read_text().splitlines() if f'<joint name="{joint}"' in line)
    return [
        float(line.split(f'{name}="')[1].split('"')[0]) for name in ("armature", "frictionloss", "damping")
    ]


def test_an_export_has_the_identified_values(drives, capsys):
    """What happened: with friction over the position, which MJCF lacks, the other values were fitted to motions of a bench that is no leg, and left
    their intervals. What must happen: they are the identified ones, with and without --plain, and nothing is said of a bench."""
    texts = []
    for words in ((), ("--plain",)):
        assert export(drives, *words) == 0
        texts.append((drives.parent / "out.xml").read_text())
        said = capsys.readouterr()
        assert "may sink" not in said.err
        assert "mrad" not in said.out
        assert (
            "hip: the identified values, unchanged; lost: friction that depends on the position [" in said.out
        )
        assert "knee: the identified values, unchanged; lost: nothing [" in said.out
    assert texts[0] == texts[1]
    for joint, drive in read_drives(drives).joints.items():
        names = ("armature", "friction_base", "friction_viscous")
        written = attributes(drives.parent / "out.xml", joint)
        assert written == pytest.approx([drive.values[name] for name in names], rel=1e-5)
        for name, value in zip(names, written, strict=True):
            low, high = drive.intervals[name]
            assert low < value < high
    (hip, _) = json.loads((drives.parent / "out.xml.loss").read_text())["joints"]
    assert hip["from_source"] is None
    assert hip["lost"] == ["friction that depends on the position"]


def test_lost_friction_over_the_position_is_stated_in_torque(drives, capsys):
    """0.5 rad on both sides of the middle of the goals: 0.4 N m/rad and 0.8 N m/rad² are 0 and 0.4 N m, beside 0.3 N m of Coulomb friction."""
    assert export(drives) == 0
    said = capsys.readouterr().out
    assert "lost 0.5 rad below and above the middle of the goals" in said
    assert "hip +0 and +0.4 of 0.3" in said
    assert "knee +" not in said


def test_joints_that_lost_the_same_share_a_line(drives, capsys):
    """Twelve equal lines say no more than one."""
    content = read_drives(drives)
    knee = content.joints["knee"]
    write_drives(drives, replace(content, joints={"hip": knee, "knee": knee}))
    assert export(drives) == 0
    said = capsys.readouterr()
    assert "hip, knee: the identified values, unchanged; lost: nothing [" in said.out
    assert said.out.count("the identified values") == 1
    assert "drives in the format" not in said.err


def test_an_armature_at_its_bound_is_doubted(drives, capsys):
    """What happened: a Go2's hip was exported with an armature of 0.0001 kg m², the bound of its search, without a word. The other joint is not named."""
    content = read_drives(drives)
    hip = content.joints["hip"]
    least = at_bound(1e-4, "kg m²", "lower")
    poor = replace(hip, values={**hip.values, "armature": 1e-4}, stated={**hip.stated, "armature": least})
    write_drives(drives, replace(content, joints={**content.joints, "hip": poor}))
    assert export(drives) == 0
    said = capsys.readouterr().err
    assert "hip: the armature is at its lower search bound 0.0001 kg m²" in said
    assert "--same" in said
    assert "knee: the armature" not in said


def test_friction_at_rest_is_that_in_the_middle_of_the_recordings(drives):
    """Not at the angle 0, to which friction over the position would be extrapolated; a term whose coefficients are zero is not lost."""
    hip, knee = read_drives(drives).joints.values()
    assert rest_friction(hip) == pytest.approx(swinging_leg.TRUE["hip"]["friction_base"])
    assert missing_terms(hip, FORMATS["mjcf"]) == ("friction that depends on the position",)
    assert missing_terms(knee, FORMATS["mjcf"]) == ()


def test_lost_friction_at_rest_is_answered_with_what_robots_can_do(drives):
    """Recordings with rests cannot be given; a law that the format has can be fitted."""
    hip = read_drives(drives).joints["hip"]
    poorer = replace(hip, values={**hip.values, "friction_base": 0.4 * hip.values["friction_base"]})
    remark = rest_remark(hip, poorer, FORMATS["mjcf"])
    assert "stribeck identify robot … --law m1" in remark
    assert "recordings" not in remark


def test_recordings_of_a_robot_are_refused_with_what_holds(drives, capsys):
    """They are no recordings of a bench, and the table's columns are not the remedy."""
    assert export(drives, swinging_leg.recorded(drives.parent, "run", 0.0, seconds=1.0)) == 1
    said = capsys.readouterr().err
    assert "the drives of a robot are exported as they were identified" in said
    assert "remove the recordings" in said


def test_draws_are_as_wide_as_the_file_states(drives, capsys):
    """Error and share of each joint; controllers scaled as a whole; the delay, which MJCF lacks, in the table. Without them the line says what lacks."""
    assert export(drives, "--draws", 4) == 0
    assert "the file states no width of draws" in capsys.readouterr().out
    content = read_drives(drives)
    sized = {
        name: replace(drive, loss=replace(drive.loss, draw_error=error, draw_share=0.5))
        for (name, drive), error in zip(content.joints.items(), (0.2, 0.0), strict=True)
    }
    write_drives(drives, replace(content, joints=sized))
    assert export(drives, "--draws", 40) == 0
    said = capsys.readouterr().out
    assert (
        "hip: 40 draws, friction and motor torque ± 20 %, standard deviations of the parameters × 0.5: "
        in said
    )
    assert "± of draws: standard deviation of a log-normal factor" in said
    assert "the largest width" not in said
    table = np.load(drives.parent / "out.xml.draws.npz")
    assert np.std(np.log(table["hip/ratio"])) == pytest.approx(0.2, rel=0.35)
    assert np.all(table["knee/ratio"] == 1.0)
    assert np.std(table["knee/delay"]) == pytest.approx(0.5 * 0.002 / 1.96, rel=0.35)
    text = (drives.parent / "out_0003.xml").read_text()
    (line,) = (line for line in text.splitlines() if 'joint="hip"' in line and "<general" in line)
    _, stiffness, damping = map(float, line.split('biasprm="')[1].split('"')[0].split())
    scale = table["hip/ratio"][3]
    assert (stiffness, damping) == pytest.approx((-20.0 * scale, -0.5 * scale), rel=1e-4)


def test_draws_of_a_stated_width_are_independent(drives):
    """What happened: along the correlations of a fit the motion hardly changes, so draws had to be widened by friction and torque, and were wider
    than a range of all parameters. What must happen: with a width that the motion gave they are independent, and of the parameters alone correlated."""
    hip = read_drives(drives).joints["hip"]
    hip = replace(
        hip, correlation=CorrelationMatrix(("friction_base", "friction_viscous"), ((1.0, -0.9), (-0.9, 1.0)))
    )
    sized = replace(hip, loss=replace(hip.loss, draw_error=0.0, draw_share=0.5))
    for drive, expected, share in ((hip, -0.9, 1.0), (sized, 0.0, 0.5)):
        drawn = width_of_robot(drive).drawn(drive, 4000, 0)
        found = np.corrcoef(drawn["friction_base"], drawn["friction_viscous"])[0, 1]
        assert found == pytest.approx(expected, abs=0.05)
        assert np.std(drawn["friction_base"]) == pytest.approx(share * 0.1 * 0.3 / 1.96, rel=0.05)


def test_the_coverage_of_each_joint_is_stated(drives, capsys):
    """By the identification, in the lines of the export, and in its loss file; a joint with the widest draws is named."""
    content = read_drives(drives)
    sizes = {"hip": (0.5, 0.71), "knee": (0.1, 0.93)}
    sized = {
        name: replace(
            drive,
            loss=replace(drive.loss, draw_error=sizes[name][0], draw_share=1.0, draw_coverage=sizes[name][1]),
        )
        for name, drive in content.joints.items()
    }
    first, second = robot_draws.lines_of(replace(content, joints=sized))
    assert first.endswith("hip 71 % (± 50 %), knee 93 % (± 10 %)")
    assert second.startswith("draws of hip have the largest width")
    assert robot_draws.lines_of(content) == []
    write_drives(drives, replace(content, joints=sized))
    assert export(drives, "--draws", 2) == 0
    hip, knee = (line for line in capsys.readouterr().out.splitlines() if " 2 draws" in line)
    assert "contains 71 % of the fitted runs; the largest width" in hip
    assert knee.endswith("the central 90 % contains 93 % of the fitted runs")
    (entry, _) = json.loads((drives.parent / "out.xml.loss").read_text())["joints"]
    assert entry["draws"]["coverage"] == 0.71


def test_the_identification_finds_how_wide_draws_are(drives, monkeypatch):
    """A motion that is simulated with 1.3 times the friction that the drives have: the draws contain it; with the true one they need not be wider."""
    monkeypatch.setattr(robot_draws, "TRIALS", 30)
    folder = drives.parent
    tree = load_tree(swinging_leg.write_model(folder))
    runs = read_runs([swinging_leg.recorded(folder, f"run{k}", 0.4 * k, seconds=4.0) for k in range(3)], tree)
    law = LAWS["m1"]
    problem = problem_of(tree, runs, [0, 1], law, free=("armature", "bias", "delay"))
    truth = {
        joint: {**swinging_leg.TRUE[joint], "bias": 0.0, "delay": swinging_leg.DELAY}
        for joint in swinging_leg.TRUE
    }
    names = list(truth)

    def sized(factor):
        x, joints = problem.start(), {}
        for k, (name, owner) in enumerate(problem.columns):
            if owner >= 0 and name != "shift":
                x[k] = truth[names[owner]].get(name, 0.0) * (factor if "friction" in name else 1.0)
            else:
                x[k] = 0.0
        for joint, values in truth.items():
            estimates = {
                name: estimate_of(
                    value * (factor if "friction" in name else 1.0), "", (value - 1e-4, value + 1e-4)
                )
                for name, value in values.items()
            }
            joints[joint] = torque_drive(torque_actuator("rotary", largest=20.0), law, estimates)
        found = robot_draws.with_draw_sizes(Drives(joints), problem, x).joints
        assert all(0.8 < drive.loss.draw_coverage <= 1.0 for drive in found.values())
        return [width_of_robot(drive).error for drive in found.values()]

    wrong, right = sized(1.3), sized(1.0)
    assert min(wrong) > 0.1
    assert all(a > 2.0 * b for a, b in zip(wrong, right, strict=True))
