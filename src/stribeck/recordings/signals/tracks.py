"""Signals as they were sampled, each with times of its own, and runs made of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from stribeck.errors import RecordingError, TooShortError
from stribeck.model.arrays import Array
from stribeck.model.log import Log, Series
from stribeck.recordings.bench import BenchDescription
from stribeck.recordings.signals.sources import REQUIRED_SIGNALS

HELD_SIGNALS = ("goal", "torque_enable", "pwm")


class Track(NamedTuple):
    """Samples of one signal of one joint: times [s] and values (N,)."""

    time: Array
    value: Array

    def known(self) -> Track:
        """The samples that are not NaN."""
        there = ~np.isnan(self.value)
        return Track(self.time[there], self.value[there])


def merged(path: Path, what: str, track: Track) -> Track:
    """Samples in the order of their times, of which equal ones count once.

    :raises RecordingError: for two values at one time.
    """
    order = np.argsort(track.time, kind="stable")
    time, value = track.time[order], track.value[order]
    again = np.flatnonzero(np.diff(time) == 0.0)
    same = (value[again] == value[again + 1]) | np.isnan(value[again]) | np.isnan(value[again + 1])
    if not same.all():
        k = again[np.flatnonzero(~same)[0]]
        raise RecordingError(
            f"{path}: {what} has two values, {value[k]:.6g} and {value[k + 1]:.6g}, at {time[k]:.6f} s: do two publishers send the same joint?"
        )
    kept = np.ones(len(time), dtype=bool)
    kept[np.where(np.isnan(value[again]), again, again + 1)] = False
    return Track(time[kept], value[kept])


def velocity_of(position: Series, measured: Track | None) -> Series:
    """The measured velocity; where it is missing, the slope of the position."""
    slope = np.gradient(position.value, position.time)
    if measured is None or not len((known := measured.known()).time):
        return Series(position.time, slope, held=False)
    if not np.array_equal(measured.time, position.time):
        return Series(*known, held=False)
    return Series(position.time, np.where(np.isnan(measured.value), slope, measured.value), held=False)


def log_of_tracks(tracks: Mapping[str, Track], bench: BenchDescription, path: Path) -> Log:
    """A run from its signals in SI units. Missing values of signals that are not required are left out.

    :raises RecordingError: for signals that make no valid run.
    """
    what = f"{path}: run {bench.run_id!r}"
    try:
        found = {
            signal: Series(
                *(track if signal in REQUIRED_SIGNALS else track.known()), held=signal in HELD_SIGNALS
            )
            for signal, track in tracks.items()
            if signal != "velocity" and (signal in REQUIRED_SIGNALS or not np.isnan(track.value).all())
        }
        position = found["position"]
        if len(position.time) < 2:
            raise TooShortError("one sample is not a run: at least two are needed")
        found["velocity"] = velocity_of(position, tracks.get("velocity"))
        return Log(
            name=bench.run_id,
            actuator=bench.actuator,
            trajectory=bench.trajectory,
            setup=replace(bench.setup, joint=bench.joint or "joint"),
            **found,
        )
    except RecordingError as error:
        where = path if f"{error}".startswith("run ") else what
        raise type(error)(f"{where}: {error}") from None
