"""Radians passed for degrees in a LeRobot data set, a calibration beside --degrees did nothing, and folders inside a data set had no recordings."""

import numpy as np
import pytest

from helpers import refusal
from lerobot_made import calibration, data_set
from stribeck.recordings.tables.lerobot import data_set_of, read_calibration, read_data_set

ANGLES = np.linspace([-0.5, -0.3], [0.5, 0.3], 50)


def made(folder, unit, feature=None):
    """A data set of one episode."""
    return data_set(folder, [(ANGLES, ANGLES)], 50.0, unit, feature=feature)


@pytest.fixture
def ranges(tmp_path):
    """A calibration."""
    return read_calibration(calibration(tmp_path / "arm.json"))


def test_radians_are_neither_degrees_nor_shares(tmp_path, ranges):
    """Friction and stiffness would be 57 or more times too small or too large."""
    folder = made(tmp_path / "set", "radians")
    refusal(lambda: read_data_set(folder, degrees=True), "all values are below 0.5", "radians", "`degrees`")
    refusal(lambda: read_data_set(folder, calibration=ranges), "all values are below 0.5", "`calibration`")
    assert len(read_data_set(folder)) == 1


def test_one_unit_is_given(tmp_path, ranges):
    """Of two the calibration was ignored; one that info.json contradicts was believed."""
    shares = made(tmp_path / "shares", "shares")
    refusal(lambda: read_data_set(shares, degrees=True, calibration=ranges), "exclude each other")
    stated = made(tmp_path / "stated", "degrees", {"unit": "deg"})
    refusal(lambda: read_data_set(stated, calibration=ranges), "states degrees", "remove `calibration`")
    radians = made(tmp_path / "radians", "radians", {"unit": "rad"})
    refusal(lambda: read_data_set(radians, degrees=True), "states radians", "remove `degrees`")
    assert len(read_data_set(stated, degrees=True)) == 1


def test_folders_beside_the_data_set_are_explained(tmp_path):
    """Its parts name the folder to give; a name on the hub, how to download it."""
    folder = made(tmp_path / "set", "degrees")
    refusal(lambda: data_set_of(folder / "data/chunk-000"), "part of a LeRobot data set", str(folder))
    refusal(
        lambda: data_set_of(folder.relative_to(tmp_path).with_name("me") / "arm"),
        "huggingface_hub.snapshot_download",
    )
    assert data_set_of(folder) == folder
    assert data_set_of(tmp_path) is None


def test_a_pointer_of_git_lfs_is_named(tmp_path):
    """A clone without LFS has a few lines of text in place of each file."""
    folder = made(tmp_path / "set", "degrees")
    (file,) = (folder / "data").rglob("*.parquet")
    file.write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 12\n")
    refusal(lambda: read_data_set(folder, degrees=True), "git lfs pull")
