"""Draws of exports: in bounds, as wide as the band of the fit, correlated, and as a poorer law holds them."""

import importlib.util
import json
import re
import sys
import types
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import ndtr

import stribeck.exports.draws
from drawn_made import spread, uncertain_drive
from helpers import refusal
from stribeck.cli.main import main
from stribeck.evaluate.assessment import Stepping
from stribeck.evaluate.draws import draws_of, uncertain_of
from stribeck.exports.draw_width import for_one_more
from stribeck.exports.draws import (
    drawn_as_held,
    held_draw,
    motions_of,
    scatter_of,
    width_for,
    width_of_recorded,
)
from stribeck.exports.projection import closest, plain
from stribeck.exports.registry import FORMATS
from stribeck.exports.runs import batch_of_source, bench_runs
from stribeck.files.drives import read_drive, write_drive
from stribeck.model.law import LAWS

STEPPING = Stepping(0.005)
KP, SUPPLY = 400.0, 7.4


def runs_of(drive, count=2):
    """Some bench runs with the motion of the drive."""
    return batch_of_source(drive, bench_runs(drive, KP, SUPPLY)[:count], STEPPING)[1]


@pytest.mark.ci
@pytest.mark.parametrize(
    "law", [law if law == "m4" else pytest.param(law, marks=pytest.mark.slow) for law in LAWS]
)
def test_ten_thousand_draws_are_in_bounds_and_as_wide_as_the_band(law):
    """The spread of their motion is that of the band of the fit within 10 %; without the error of the model it is that of the posterior."""
    drive = uncertain_drive(law)
    runs = runs_of(drive)
    width = width_for(drive, runs, STEPPING)
    known = uncertain_of(drive)
    for error, wanted in ((0.0, width.posterior), (width.error, width.wanted)):
        drawn = draws_of(drive, 10_000, seed=3, error=error)
        for name, low, high in zip(known.names, known.lower, known.upper, strict=True):
            assert np.all((drawn[name] >= low) & (drawn[name] <= high)), name
        some = {name: values[::10] for name, values in drawn.items()}
        assert spread(motions_of(drive, some, runs, STEPPING), runs) == pytest.approx(wanted, rel=0.1)
    assert width.error > 0.0
    assert width.wanted == pytest.approx(1.1 * np.hypot(width.posterior, 0.015), rel=0.1)


def test_a_file_without_the_error_of_its_model_is_drawn_from_as_it_is():
    drive = replace(uncertain_drive("m1"), prediction=None)
    width = width_for(drive, runs_of(drive), STEPPING)
    assert width.error == 0.0
    assert width.wanted is None
    assert "so none is added" in width.line(3)


def test_what_the_law_lacks_is_one_factor_on_friction_and_one_on_the_motor():
    """Speeds and exponents stay as the posterior has them; the factors are independent, log-normal, and leave no bound."""
    drive = uncertain_drive("m4", share=0.01)
    own, wide = (draws_of(drive, 4000, seed=0, error=error) for error in (0.0, 0.2))
    friction, motor = (np.log(wide[name] / own[name]) for name in ("friction_base", "R"))
    assert np.std(friction) == pytest.approx(0.2, rel=0.05)
    assert np.std(motor) == pytest.approx(0.2, rel=0.1)
    assert abs(np.corrcoef(friction, motor)[0, 1]) < 0.05
    for name in ("load_friction_base", "friction_viscous"):
        np.testing.assert_allclose(np.log(wide[name] / own[name]), friction, atol=1e-12)
    for name in ("kt", "armature", "dtheta_stribeck", "alpha"):
        np.testing.assert_array_equal(wide[name], own[name])
    far = draws_of(drive, 4000, seed=0, error=1.0)
    known = uncertain_of(drive)
    for name, low, high in zip(known.names, known.lower, known.upper, strict=True):
        assert np.all((far[name] >= low * (1 - 1e-12)) & (far[name] <= high * (1 + 1e-12))), name
        assert not far[name][far[name] > high * (1 - 1e-9)].size, name  # no heap at a bound


@pytest.mark.slow
def test_with_recordings_draws_cover_them(monkeypatch):
    """Motion of a servo with a tenth more friction and less torque: the middle 90 % of the draws contain it, that of the posterior does not."""
    monkeypatch.setattr(stribeck.exports.draws, "TRIALS", 64)
    drive = uncertain_drive("m4", share=0.002)
    other = replace(drive, values={**drive.values, "R": 1.1 * drive.values["R"]})
    runs = runs_of(drive)
    recorded = replace(runs, position=STEPPING.motion(other, runs).position)
    width = width_of_recorded(drive, recorded, STEPPING)
    assert width.coverage >= 0.9
    assert 0.03 < width.error < 0.15
    assert width.posterior < 0.3 * width.reached
    assert "% of the recorded samples" in width.line(3)


def test_a_posterior_wider_than_the_recordings_allow_is_cut_down():
    """Intervals of half the values, and runs that the estimate moves like: a share of them covers 90 %, no error is added."""
    drive = uncertain_drive("m4", share=0.2)
    other = replace(drive, values={**drive.values, "R": 1.02 * drive.values["R"]})
    runs = runs_of(drive)
    recorded = replace(runs, position=STEPPING.motion(other, runs).position)
    width = width_of_recorded(drive, recorded, STEPPING)
    assert width.error == 0.0
    assert 0.01 < width.share < 0.5
    assert 0.9 <= width.coverage <= 0.98  # of one more of two runs, so somewhat more of these
    assert width.reached < 0.5 * width.posterior
    assert "standard deviations" in width.line(3)
    drawn = draws_of(drive, 4000, seed=0, share=width.share)
    wide = draws_of(drive, 4000, seed=0)
    assert np.std(drawn["R"]) < 0.6 * np.std(wide["R"])


def test_the_size_for_one_more_run_lies_above_that_for_the_recorded_ones():
    """Runs whose share within is size over own size, at most 1: equal ones need more than 0.9 times it, and scattered ones more than their mean."""
    sizes = np.log(np.geomspace(0.01, 10.0, 200))

    def needed(*own):
        return for_one_more(sizes, np.stack([np.minimum(np.exp(sizes) / one, 1.0) for one in own], axis=1))

    many = needed(*[0.1] * 40)
    assert many == pytest.approx(0.09, rel=0.15)
    assert needed(0.1, 0.1, 0.1) > many
    assert needed(0.05, 0.1, 0.2) > needed(0.1, 0.1, 0.1)
    assert needed(200.0, 200.0) == np.inf


@pytest.mark.parametrize("count", [3, 8])
def test_one_more_run_is_contained_as_often_as_is_said(count):
    """Normal errors whose size differs from run to run by a quarter: with the size for one more run 90 % of its samples are, on average."""
    sizes, rng = np.linspace(np.log(0.005), np.log(0.5), 60), np.random.default_rng(5)

    def within(size, own):
        return 2.0 * ndtr(1.645 * size / own) - 1.0

    found = []
    for _ in range(400):
        *own, new = 0.05 * np.exp(0.25 * rng.standard_normal(count + 1))
        size = for_one_more(sizes, np.stack([within(np.exp(sizes), one) for one in own], axis=1))
        found.append(within(size, new))
    assert np.mean(found) == pytest.approx(0.9, abs=0.015)


@pytest.mark.parametrize("form", [pytest.param("mjcf", marks=pytest.mark.slow), "genesis"])
def test_draws_of_a_poorer_law_move_as_those_of_the_source(form):
    """M4 as M1: motions differ from that of the estimate as those of the source do, up to what M1 cannot hold."""
    drive = uncertain_drive("m4")
    runs = runs_of(drive, 4)
    held = closest(drive, FORMATS[form], runs, STEPPING)
    assert held.law.name == "m1"
    drawn = draws_of(drive, 60, seed=1)
    poorer = drawn_as_held(drive, held, drawn, runs, STEPPING)
    ours = motions_of(drive, drawn, runs, STEPPING) - runs.position[:, :, None]
    at = STEPPING.motion(held, runs).position
    theirs = motions_of(held, poorer, runs, STEPPING) - at[:, :, None]
    weight = runs.weight[:, :, None]
    missing = np.sum(weight * (ours - theirs) ** 2) / np.sum(weight * ours**2)
    assert missing < 0.35
    assert spread(theirs, runs) == pytest.approx(spread(ours, runs), rel=0.25)
    assert all(np.ptp(values) > 0.0 for values in poorer.values())


def test_a_format_that_holds_the_law_gets_the_draws_themselves():
    drive = uncertain_drive("m5")
    drawn = draws_of(drive, 5, seed=1)
    held = plain(drive, FORMATS["isaaclab-bam"])
    found = drawn_as_held(drive, held, drawn, runs_of(drive), STEPPING)
    assert set(found) == set(held.values) - {"q_offset"}
    assert held_draw(held, found, 2).values["kt"] == drawn["kt"][2]


def test_units_spread_by_what_their_fits_do_not_explain():
    """Three units whose friction differs by far more than its interval: mean and scatter of the population, from each joint the same."""
    units = [uncertain_drive("m1", friction_base=value) for value in (0.01, 0.02, 0.03)]
    means, scatters = scatter_of(units)
    assert means["friction_base"] == pytest.approx(0.02, rel=0.01)
    assert scatters["friction_base"] == pytest.approx(0.01, rel=0.05)
    assert scatters["kt"] == 0.0
    refusal(lambda: scatter_of(units[:1]), "two", "1")
    refusal(lambda: scatter_of([units[0], uncertain_drive("m4")]), "M1", "M4", "same law")


def exported(folder, form, *words, params=("servo",), law="m4", output="out.py"):
    """The exit code of an export with draws."""
    for name in params:
        if not (folder / f"{name}.json").exists():
            write_drive(folder / f"{name}.json", uncertain_drive(law))
    files = [str(folder / f"{name}.json") for name in params]
    given = ["--params", *files, "--output", str(folder / output)]
    given += [] if form in ("onnx", "csv", "c") else ["--kp", "400", "--supply", "7.4"]
    return main(["export", "--format", form, *given, *map(str, words)])


def test_a_table_for_isaac_lab_is_read_by_its_event(tmp_path, monkeypatch, capsys):
    """Each environment gets one set, of all joints together; the numbers are those of draws of the API, whatever the program calls them."""
    monkeypatch.setattr(stribeck.exports.draws, "TRIALS", 16)
    assert exported(tmp_path, "isaaclab-bam", "--draws", 40, "--seed", 7, "--joint", "hip", "knee") == 0
    assert "40 draws, friction and motor torque ±" in capsys.readouterr().out
    table = np.load(tmp_path / "out.py.draws.npz")
    assert table["hip/kt"].shape == (40,)
    np.testing.assert_array_equal(table["hip/kt"], table["knee/kt"])  # one servo was identified for both
    said = json.loads((tmp_path / "out.py.loss").read_text())["joints"][0]["draws"]
    drawn = draws_of(read_drive(tmp_path / "servo.json"), 40, 7, error=said["error"])
    np.testing.assert_allclose(table["hip/load_friction_motor"], drawn["load_friction_base"], rtol=1e-12)

    written, armature = {}, {}
    _stand_in_for_torch(monkeypatch)
    module = _module_of(tmp_path / "out.py", monkeypatch, written)
    asset = types.SimpleNamespace(
        actuators="collection",
        find_joints=lambda names: (names, names),
        write_joint_armature_to_sim_index=lambda **given: armature.update(
            {given["joint_ids"][0]: given["armature"]}
        ),
    )
    env = types.SimpleNamespace(num_envs=6, device="cpu", scene={"robot": asset})
    module.draw_servos(env, None)
    assert written["hip", "kt"].shape == (6, 1)
    rows = [
        int(np.flatnonzero(table["hip/kt"].astype(np.float32) == one)[0])
        for one in written["hip", "kt"][:, 0]
    ]
    for name in ("friction_base", "load_friction_external", "max_effort"):
        expected = table[f"knee/{name}"][rows].astype(np.float32)
        np.testing.assert_array_equal(written["knee", name][:, 0], expected)
    np.testing.assert_array_equal(armature["hip"][:, 0], table["hip/armature"][rows].astype(np.float32))


def _stand_in_for_torch(monkeypatch):
    """What the event needs of torch, by numpy."""
    rng = np.random.default_rng(0)
    torch = types.ModuleType("torch")
    torch.float32 = np.float32
    torch.arange = lambda n, device: np.arange(n)
    torch.as_tensor = lambda values, dtype, device: np.asarray(values, dtype=dtype)
    torch.randint = lambda high, size, device: rng.integers(high, size=size)
    monkeypatch.setitem(sys.modules, "torch", torch)


def _module_of(path, monkeypatch, written):
    """The exported module, with stand-ins for Isaac Lab's classes."""

    def write_group_parameter(collection, group, component, name, *, values, env_ids):
        assert (collection, component) == ("collection", "drive")
        assert len(values) == len(env_ids)
        written[group, name] = values

    def keep(**fields):
        return fields

    parts = {
        "isaaclab": {},
        "isaaclab.actuators": {"BamActuatorCfg": keep, "BamMotorCfg": keep},
        "isaaclab.actuators.newton": {"write_group_parameter": write_group_parameter},
        "isaaclab.managers": {"SceneEntityCfg": lambda name: types.SimpleNamespace(name=name)},
    }
    for name, content in parts.items():
        module = types.ModuleType(name)
        vars(module).update(content)
        monkeypatch.setitem(sys.modules, name, module)
    spec = importlib.util.spec_from_file_location("exported", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
def test_variants_are_complete_files_of_their_own(tmp_path, monkeypatch, capsys):
    """MJCF, once for each draw; the same seed gives the same files, another one others; the table has what they hold."""
    monkeypatch.setattr(stribeck.exports.draws, "TRIALS", 16)
    assert exported(tmp_path, "mjcf", "--draws", 3, law="m1", output="arm.xml") == 0
    assert "arm_0000.xml … arm_0002.xml" in capsys.readouterr().out
    names = sorted(path.name for path in tmp_path.iterdir() if path.name.startswith("arm"))
    assert names == ["arm.xml", "arm.xml.draws.npz", "arm.xml.loss", *(f"arm_000{k}.xml" for k in range(3))]
    table = np.load(tmp_path / "arm.xml.draws.npz")
    for k in range(3):
        text = (tmp_path / f"arm_000{k}.xml").read_text()
        (loss,) = re.findall(r'frictionloss="([^"]+)"', text)
        assert float(loss) == pytest.approx(table["joint/friction_base"][k], rel=1e-5)
    first = (tmp_path / "arm_0001.xml").read_bytes()
    assert exported(tmp_path, "mjcf", "--draws", 3, law="m1", output="arm.xml") == 0
    assert (tmp_path / "arm_0001.xml").read_bytes() == first
    assert exported(tmp_path, "mjcf", "--draws", 3, "--seed", 1, law="m1", output="arm.xml") == 0
    assert (tmp_path / "arm_0001.xml").read_bytes() != first


@pytest.mark.slow
def test_draws_of_further_units_are_as_far_apart_as_the_units(tmp_path, monkeypatch):
    """Three servos with different friction: each joint gets draws around their mean, independent of those of the others."""
    monkeypatch.setattr(stribeck.exports.draws, "TRIALS", 16)
    names = ("a", "b", "c")
    for name, value in zip(names, (0.01, 0.02, 0.03), strict=True):
        write_drive(tmp_path / f"{name}.json", uncertain_drive("m1", error=0.0, friction_base=value))
    words = ("--draws", 4000, "--same", *names)
    assert exported(tmp_path, "isaaclab-bam", *words, params=names) == 0
    table = np.load(tmp_path / "out.py.draws.npz")
    drawn = np.array([table[f"{name}/friction_base"] for name in names])
    assert drawn.mean(axis=1) == pytest.approx(0.02, rel=0.06)
    assert np.corrcoef(drawn) == pytest.approx(np.eye(3), abs=0.06)
    for values in drawn:  # 0.01 between units, cut off at zero
        assert 0.008 < np.std(values) < 0.0105
