"""Cycles of the servo bus: emulated XL330 and STS3215 in a process of their own, the driver in this one."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from stribeck.files.schema import convert
from stribeck.servo.config import BusFile, driver_of
from stribeck.servo.driver import Driver

CASES = (
    ("xl330", 1, 200, 4),
    ("xl330", 1, 500, 4),
    ("xl330", 6, 200, 4),
    ("xl330", 6, 200, 1),
    ("sts3215", 6, 100, 1),
    ("sts3215", 6, 150, 1),
)
"""Model, servos, cycles per second, Mbit/s."""

SECONDS = 5.0


def measure() -> dict[str, dict[str, float]]:
    """All cases; figures by ``<model> <servos>x<rate>@<Mbit/s>``."""
    print("servo bus, position goals out and all signals in per cycle")
    print(
        "  model    servos x rate, Mbit/s   cycle p50 / p99 / max        late p99   rate kept     lost       CPU"
    )
    return {
        f"{model} {servos}x{rate}@{baud}": one_case(model, servos, rate, baud)
        for model, servos, rate, baud in CASES
    }


def one_case(model: str, servos: int, rate: int, baud: int) -> dict[str, float]:
    """So many servos hold a moving goal at a rate."""
    with tempfile.TemporaryDirectory() as folder:
        link = Path(folder) / "port"
        command = [sys.executable, "-m", "stribeck", "emulate", "--servo", model, "--link", str(link)]
        with subprocess.Popen(
            [*command, "--id", *map(str, range(1, servos + 1))], stdout=subprocess.DEVNULL
        ) as emulator:
            try:
                while not link.exists() and emulator.poll() is None:
                    time.sleep(0.01)
                return drive(str(link), model, servos, rate, baud)
            finally:
                emulator.terminate()


def drive(port: str, model: str, servos: int, rate: int, baud: int) -> dict[str, float]:
    """Run the driver's cycle, and time it."""
    limits = {"position_limits": [-3.0, 3.0], "model": model}
    joints = {f"joint_{k}": {"id": k, **limits} for k in range(1, servos + 1)}
    keys = {"port": port, "baud_rate": 1_000_000 * baud, "rate": rate, "joints": joints}
    driver = Driver(driver_of(convert(keys, BusFile, "bench"), "bench"))
    driver.connect()
    driver.enable()
    durations, starts, valid, count = [], [], 0, round(SECONDS * rate)
    begin, used = time.perf_counter(), time.process_time()
    due = begin
    try:
        for k in range(count):
            starts.append(time.perf_counter() - due)
            driver.set_goals(np.full(servos, 0.3 * np.sin(2.0 * k / rate)))
            at = time.perf_counter()
            sample = driver.cycle()
            durations.append(time.perf_counter() - at)
            valid += int(sample.valid.sum())
            due += 1.0 / rate
            time.sleep(max(0.0, due - time.perf_counter()))
        wall, used = time.perf_counter() - begin, time.process_time() - used
    finally:
        driver.close()
    p50, p99, longest = (1e6 * np.percentile(durations, [50, 99, 100])).tolist()
    result = {
        "p50_us": p50,
        "p99_us": p99,
        "max_us": longest,
        "late_p99_us": 1e6 * float(np.percentile(starts, 99)),
        "rate": count / wall,
        "lost": count * servos - valid,
        "cpu": used / wall,
    }
    print(
        f"  {model:8s} {servos:2d} x {rate:4d}, {baud} {p50:16.0f} {p99:7.0f} {longest:7.0f} us {result['late_p99_us']:9.0f} us"
        f" {result['rate']:9.1f} Hz {result['lost']:6d} of {count * servos} {100 * result['cpu']:5.0f} %",
        flush=True,
    )
    return result
