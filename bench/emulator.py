"""The emulator: processor time of physics and packets, and eight servos at 200 Hz on the wall clock beside busy processes.

``python bench/emulator.py`` measures the processor time. ``--minutes 60 --busy 2`` drives emulated servos through a
pseudo-terminal for an hour beside two busy processes; ``--suspend 3`` stops the emulator for 3 s once a minute. To compare
two versions, run it with one and the other on PYTHONPATH, in turn.
"""

from __future__ import annotations

import argparse
import contextlib
import math
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path

import numpy as np

from stribeck.emulator.device import EmulatedServo
from stribeck.emulator.line import EmulatedLine
from stribeck.emulator.protocol import BROADCAST, Instruction, Packet, encode
from stribeck.errors import StribeckError
from stribeck.files.schema import convert
from stribeck.model.bench import Pendulum
from stribeck.servo.config import BusFile, driver_of
from stribeck.servo.driver import Driver, DriverSample

SERVOS = 8
RATE = 200
CYCLES, SETTLING = 600, 100
"""Cycles in all, and those before the measurement."""

BAUD = 4_000_000
LOAD = Pendulum(0.1, 0.1, 0.02)
IDS = range(1, SERVOS + 1)
SILENCE, WATCHDOG = 0.5, 1.0
"""Timeouts of the driver and of the servos, as in the demo [s]."""

ON = encode(2.0, Packet(BROADCAST, Instruction.WRITE, bytes.fromhex("400001")))
READ = encode(2.0, Packet(BROADCAST, Instruction.SYNC_READ, bytes.fromhex("7c001700") + bytes(IDS)))
"""Torque on, and a read of all measured values."""


def measure() -> dict[str, dict[str, float]]:
    """Processor time without and with torque."""
    print(f"{SERVOS} emulated XL330 at {RATE} Hz       physics                    packets")
    return {kind: processor_time(kind) for kind in ("torque off", "following goals")}


def processor_time(kind: str) -> dict[str, float]:
    """Physics [µs per servo and ms], and packets [µs per cycle of all servos]."""
    prompt = {"return_delay_time": 0}
    line = EmulatedLine([EmulatedServo("xl330", None, LOAD, servo_id=k, registers=prompt) for k in IDS])
    line.begin(0.0)
    if kind == "following goals":
        line.receive(ON, 0.0, BAUD)
    physics = packets = 0.0
    for k in range(CYCLES):
        now = (k + 1) / RATE
        goals = goals_at(now)
        begin = time.process_time()
        line.advance_to(now)
        middle = time.process_time()
        if kind == "following goals":
            line.receive(goals, now, BAUD)
        line.receive(READ, now, BAUD)
        count = len(line.answers_due(now + 0.9 / RATE))
        end = time.process_time()
        if count != SERVOS:
            raise RuntimeError(f"{count} of {SERVOS} servos answered")
        if k >= SETTLING:
            physics, packets = physics + middle - begin, packets + end - middle
    cycles = CYCLES - SETTLING
    found = {
        "physics_us": 1e6 * physics / (cycles * SERVOS * 1000.0 / RATE),
        "packets_us": 1e6 * packets / cycles,
    }
    print(
        f"  {kind:24s} {found['physics_us']:6.1f} us per servo and ms {found['packets_us']:9.0f} us per cycle",
        flush=True,
    )
    return found


def goals_at(now: float) -> bytes:
    """A sync write of the servos' goal positions."""
    body = b"".join(
        bytes((k,)) + (2048 + round(300.0 * math.sin(3.0 * now + k))).to_bytes(4, "little") for k in IDS
    )
    return encode(2.0, Packet(BROADCAST, Instruction.SYNC_WRITE, bytes.fromhex("74000400") + body))


class Course:
    """What the driver meets.

    :ivar counts: events by kind, lost ports, missing answers, recoveries from faults.
    :ivar gaps: times between samples in which all joints answered [s].
    """

    def __init__(self, driver: Driver, until: float) -> None:
        self.driver, self.until = driver, until
        self.counts: Counter[str] = Counter()
        self.samples, self.longest_fault = 0, 0.0
        self.gaps: list[float] = []
        self._last: float | None = None
        self._fault_since: float | None = None

    def step(self, sample: DriverSample) -> bool:
        """Follow a sine; note what is missing or late; clear faults."""
        now = self.driver.clock.now()
        self.samples += 1
        for event in sample.events:
            self.counts[event.kind] += 1
            if event.kind == "fault":
                print(f"  {self.until - now:8.1f} s before the end: {event.text}", flush=True)
                self.counts["port lost"] += "is lost" in event.text
        missing = int((~sample.valid).sum())
        self.counts["answers missing"] += missing
        if not missing:
            if self._last is not None:
                self.gaps.append(now - self._last)
            self._last = now
        if sample.state == "fault":
            self._fault_since = now if self._fault_since is None else self._fault_since
            with contextlib.suppress(StribeckError):  # it tries again with the next sample
                self.driver.clear()
                self.driver.enable()
                self.counts["recoveries"] += 1
                self.longest_fault = max(self.longest_fault, now - self._fault_since)
                self._fault_since = None
        now = self.driver.clock.now()  # clearing a fault takes its time
        self.driver.set_goals(0.5 * np.sin(2.0 * now + np.arange(SERVOS)), now)
        return now < self.until


def drive(minutes: float, busy: int, suspend: float) -> dict[str, float]:
    """Drive the servos on the wall clock.

    :param busy: number of busy processes beside.
    :param suspend: how long the emulator is stopped once a minute [s].
    """
    print(
        f"\n{SERVOS} emulated XL330 at {RATE} Hz for {minutes:g} minutes beside {busy} busy processes",
        flush=True,
    )
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        link = Path(folder) / "port"
        command = [sys.executable, "-m", "stribeck", "emulate", "--servo", "xl330", "--link", str(link)]
        command += ["--id", *map(str, IDS), "--bench", "mass=0.1,length=0.1,arm_mass=0.02"]
        emulator = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        stack.callback(emulator.wait)
        stack.callback(emulator.terminate)
        while not link.exists() and emulator.poll() is None:
            time.sleep(0.01)
        for _ in range(busy):
            other = subprocess.Popen([sys.executable, "-c", "while True: pass"])
            stack.callback(other.wait)
            stack.callback(other.kill)
        limits = {"position_limits": [-3.0, 3.0], "model": "xl330"}
        joints = {f"joint_{k}": {"id": k, **limits} for k in IDS}
        times = {"silence_timeout": SILENCE, "command_timeout": SILENCE, "watchdog": WATCHDOG}
        keys = {"port": str(link), "baud_rate": BAUD, "rate": RATE, "joints": joints, **times}
        driver = Driver(driver_of(convert(keys, BusFile, "bench"), "bench"))
        driver.connect()
        driver.enable()
        ended = threading.Event()
        if suspend:
            stopper = threading.Thread(target=stop_each_minute, args=(emulator.pid, suspend, ended))
            stopper.start()
            stack.callback(stopper.join)
            stack.callback(ended.set)
        course = Course(driver, time.monotonic() + 60.0 * minutes)
        driver.run(course.step)
        driver.close()
        emulator.terminate()
        said = emulator.communicate()[0].splitlines()[SERVOS:]
    return report(course, said)


def stop_each_minute(process: int, seconds: float, ended: threading.Event) -> None:
    """Suspend a process for a time, once a minute."""
    while not ended.wait(20.0):
        os.kill(process, signal.SIGSTOP)
        time.sleep(seconds)
        os.kill(process, signal.SIGCONT)
        if ended.wait(40.0 - seconds):
            return


def report(course: Course, said: list[str]) -> dict[str, float]:
    """Print what was met."""
    p99, worst = np.percentile(course.gaps, [99.0, 100.0]).tolist()
    counts = course.counts
    asked = course.samples * SERVOS
    print(f"  samples {course.samples}, answers missing {counts['answers missing']} of {asked}")
    print(f"  time between complete samples p99 {1e3 * p99:.1f} ms, longest {1e3 * worst:.0f} ms")
    print(
        f"  ports lost {counts['port lost']}, faults {counts['fault']}, recoveries {counts['recoveries']}, warnings"
        f" {counts['warning']}, longest fault {course.longest_fault:.2f} s"
    )
    print(f"  link: {course.driver.counters}")
    for line in said:
        print(f"  emulator: {line}")
    return {
        "ports_lost": counts["port lost"],
        "faults": counts["fault"],
        "missing": counts["answers missing"] / asked,
        "gap_p99_ms": 1e3 * p99,
        "gap_max_ms": 1e3 * worst,
    }


def main() -> None:
    """Measure, or drive for a time."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, help="drive servos on the wall clock for so long")
    parser.add_argument("--busy", type=int, default=0, help="number of busy processes beside (default: 0)")
    parser.add_argument(
        "--suspend", type=float, default=0.0, help="stop the emulator once a minute for so long [s]"
    )
    options = parser.parse_args()
    if options.minutes is None:
        measure()
    elif drive(options.minutes, options.busy, options.suspend)["ports_lost"]:
        sys.exit("a port was lost")


if __name__ == "__main__":
    main()
