"""Bench files: loads and gains of recordings that do not say them."""

import json

import pytest

from bags import BENCH, Bag, one_run
from helpers import bam_recording, refusal, write_json
from stribeck.recordings.bench import Benches
from stribeck.recordings.sources import read_recordings

TEXT = """
defaults: {actuator: xl330, length: 0.1, arm_mass: 0.02, supply_voltage: 5, kp: 400}
runs:
  "light_*": {mass: 0.1}
  "heavy_*": {mass: 0.5}
  "*_soft": {kp: 200}
"""


def benches(folder, text=TEXT):
    """The descriptions of a bench file."""
    path = folder / "bench.yaml"
    path.write_text(text, encoding="utf-8")
    return Benches.read(path)


def silent(folder, joint="shoulder"):
    """A bag without descriptions."""
    bag = Bag()
    bag.samples(0.0, 2.0, joint)
    folder.parent.mkdir(exist_ok=True)
    return bag.write(folder)


def test_patterns_describe_recordings_and_later_ones_take_precedence(tmp_path):
    """Several loads and gains become one set, named after the bags."""
    for name in ("light_1", "light_2_soft", "heavy_1.5"):
        silent(tmp_path / "bags" / name)
    logs = read_recordings(tmp_path / "bags", bench=benches(tmp_path))
    assert {log.name: (log.setup.mass, log.setup.kp) for log in logs} == {
        "heavy_1.5": (0.5, 400.0),
        "light_1": (0.1, 400.0),
        "light_2_soft": (0.1, 200.0),
    }


def test_one_description_suits_several_bags(tmp_path):
    """Each run has the name of its bag; of equal names in two folders the paths."""
    for name in ("a/one", "b/one", "two"):
        silent(tmp_path / "bags" / name, "shoulder") if "/" not in name else None
        (tmp_path / "bags" / name).parent.mkdir(parents=True, exist_ok=True)
        if "/" in name:
            bag = Bag()
            bag.samples(0.0, 2.0 if name[0] == "a" else 3.0)
            bag.write(tmp_path / "bags" / name)
    text = "defaults: {actuator: xl330, mass: 0.3, length: 0.1, arm_mass: 0, supply_voltage: 5, kp: 400}\n"
    logs = read_recordings(tmp_path / "bags", bench=benches(tmp_path, text))
    assert [log.name for log in logs] == ["a/one", "b/one", "two"]


def test_runs_of_one_name_get_the_name_of_their_bag(tmp_path):
    """As recorders do that call every run the same; a bag that is there twice is still refused."""
    (tmp_path / "bags").mkdir()
    one_run().write(tmp_path / "bags" / "monday")
    bag = Bag()
    bag.run(0.0, 2.0)
    bag.write(tmp_path / "bags" / "tuesday")
    logs = read_recordings(tmp_path / "bags")
    assert [log.name for log in logs] == ["monday first", "tuesday first"]
    one_run().write(tmp_path / "bags" / "copy")
    refusal(lambda: read_recordings(tmp_path / "bags"), "first", "several runs")


def test_recordings_that_describe_themselves_stay_as_they_are(tmp_path):
    """Beside others that the patterns name; a pattern that names them is a contradiction."""
    silent(tmp_path / "bags" / "light_1")
    one_run().write(tmp_path / "bags" / "own")
    write_json(tmp_path / "bags" / "json.json", bam_recording())
    logs = read_recordings(tmp_path / "bags", bench=benches(tmp_path))
    assert {log.name: log.setup.mass for log in logs} == {
        "json": 0.49,
        "light_1": 0.1,
        "first": BENCH["mass"],
    }
    more = benches(tmp_path, TEXT + '  "own": {mass: 3}\n')
    refusal(lambda: read_recordings(tmp_path / "bags", bench=more), "own", "/bench", "remove 'own'")


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        (
            TEXT.replace("heavy_*", "hevy_*"),
            ["no pattern of runs matches 'heavy_1'", "light_*, hevy_*, *_soft"],
        ),
        (TEXT.replace(", kp: 400", ""), ["heavy_1", "kp missing"]),
        (TEXT.replace("mass: 0.5", "mass: -0.5"), ["heavy_1", "mass must be zero or positive"]),
    ],
)
def test_recordings_that_are_not_described_are_refused(tmp_path, text, parts):
    """The message names the file, the recording, and what is missing."""
    silent(tmp_path / "bags" / "heavy_1")
    refusal(lambda: read_recordings(tmp_path / "bags", bench=benches(tmp_path, text)), "bench.yaml", *parts)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        (TEXT.replace("mass: 0.1", "weight: 0.1"), ["runs: light_*", "'weight'", "mass"]),
        (TEXT.replace("xl330", "xl999.yaml"), ["actuator", "xl999.yaml"]),
        (TEXT.replace("0.1}", "heavy}"), ["runs: light_*: mass", "'heavy'"]),
        ("schema: 2\n" + TEXT, ["unknown schema 2"]),
        (json.dumps([1]), ["expected named values"]),
    ],
)
def test_files_that_are_not_valid_are_refused(tmp_path, text, parts):
    """Before a recording is read."""
    refusal(lambda: benches(tmp_path, text), "bench.yaml", *parts)
