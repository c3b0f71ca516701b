"""Injected faults on an emulated servo bus, on virtual time: is a wrong value ever accepted?

One trial is drawn from a seed: servos, a task, faults and when they begin. What the driver accepted is compared with the
memory of the servos; what it confirmed, with their torque.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from driving import BAUD, emulated_one
from stribeck.emulator.device import EmulatedServo
from stribeck.emulator.faults import Fault
from stribeck.errors import ServoError
from stribeck.servo.bus import Bus
from stribeck.servo.remote import RemoteServo, ServoSpec
from stribeck.servo.tables import MODELS
from virtual_bus import VirtualBus

LAYOUTS: dict[str, tuple[tuple[str, ...], float]] = {
    "xl330": (("xl330",), 0.3),
    "mx, protocol 1": (("mx106",), 0.26),
    "sts": (("sts3215",), 0.24),
    "scs": (("scs0009",), 0.08),
    "six servos": (("xl330",) * 6, 0.06),
    "six sts": (("sts3215",) * 6, 0.06),
}
"""Servos on the bus, and the share of the trials."""

DATED = ("xl330", "mx, protocol 1", "six servos")
"""Layouts whose servos have a clock. The others are read at a rate at which their answer lengths last for the longest delay."""

TASKS = ("connect", "cyclic read", "gain write", "mode write", "torque off")

RATE, SLOW_RATE = 200.0, 90.0
"""Cycles per second [Hz], and those of servos without a clock."""

CYCLES = 60

LONGEST_DELAY = 0.5
"""Longest delay for which nothing may be wrong [s]; stalls of six servos hold some answers longer."""

CLOCK_STEP = 2.5e-3
"""Largest difference between when a servo was read and what its clock, in steps of 1 ms, says [s]."""


class TimedBus(VirtualBus):
    """A virtual bus that measures how much later than at best the packets arrive.

    :ivar longest: the longest delay so far [s].
    """

    def __init__(self, servos: Sequence[EmulatedServo], seed: int) -> None:
        super().__init__(servos, seed=seed)
        self.longest = 0.0
        self.sent: dict[int, float] = {}

    def _send_back(self, due: float, data: bytes) -> None:
        super()._send_back(due, data)
        self.sent[self._queued] = self.busy_until

    def answers_due(self, now: float) -> list[bytes]:
        begun = [due - self.sent[n] for due, n, _ in self._outbox if due <= now and not self._stalls]
        self.longest = max([self.longest, *begun])
        return super().answers_due(now)


@dataclass
class Trial:
    """One trial and its result.

    :param wrong: what was accepted although it is not so, or confirmed.
    :param fault: message of the error that ended it, empty for none.
    :param longest: longest delay of an answer [s].
    :param mild: whether delays are at most 50 ms, with a probability of at most 0.1.
    """

    seed: int
    layout: str
    task: str
    kinds: str
    faults: list[Fault]
    mild: bool = False
    longest: float = 0.0
    fault: str = ""
    wrong: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        """The trial and what was wrong in it, in one line."""
        return f"seed {self.seed}: {self.layout}, {self.task}, {self.kinds}, up to {self.longest:.3f} s: {'; '.join(self.wrong[:3])}"


def drawn(seed: int, layout: str | None = None, task: str | None = None) -> tuple[Trial, np.random.Generator]:
    """A trial; ``layout`` and ``task`` if they are not to be random."""
    rng = np.random.default_rng((2024, seed))
    shares = [share for _, share in LAYOUTS.values()]
    layout = layout or str(rng.choice(list(LAYOUTS), p=shares))
    task = task or str(rng.choice(TASKS))
    kinds = str(rng.choice(list(FAULTS)))
    # Connecting takes about 60 ms, with six servos 0.4 s.
    span = (0.5 if layout.startswith("six") else 0.12) if task in ("connect", "mode write") else 0.1
    faults, mild = FAULTS[kinds](rng, lambda: float(rng.uniform(0.0, span)))
    return Trial(seed, layout, task, kinds, faults, mild), rng


def late(rng: np.random.Generator, at: Callable[[], float]) -> tuple[list[Fault], bool]:
    p, delay = float(rng.choice([0.1, 0.3])), float(rng.uniform(0.005, 0.3))
    if rng.random() < 0.4:
        p, delay = 0.1, float(rng.uniform(0.005, 0.05))
    spread = float(rng.choice([0.0, 0.5])) * delay
    return [
        Fault("late", p=p, settings={"delay": delay - spread, "spread": spread})
    ], p <= 0.1 and delay <= 0.05


def stalled(rng: np.random.Generator, at: Callable[[], float]) -> tuple[list[Fault], bool]:
    settings = {"gap": float(rng.uniform(0.002, 0.012))}
    return [Fault("stall", at=at(), duration=float(rng.uniform(0.04, 0.3)), settings=settings)], False


def doubled(rng: np.random.Generator, at: Callable[[], float]) -> tuple[list[Fault], bool]:
    spread = float(rng.choice([0.0, 0.02, 0.3]))
    settings = {"delay": float(rng.choice([0.0, 0.001])), "spread": spread}
    return [Fault("double", p=float(rng.choice([0.3, 1.0])), settings=settings)], spread <= 0.02


def burst(rng: np.random.Generator, at: Callable[[], float]) -> tuple[list[Fault], bool]:
    settings = {"delay": float(rng.uniform(0.005, 0.3)), "spread": 0.0}
    return [Fault("late", p=1.0, at=at(), duration=float(rng.uniform(0.002, 0.05)), settings=settings)], False


def echo(rng: np.random.Generator, at: Callable[[], float]) -> tuple[list[Fault], bool]:
    return [Fault("echo", p=float(rng.choice([0.5, 1.0])))], True


def noise(rng: np.random.Generator, at: Callable[[], float]) -> tuple[list[Fault], bool]:
    return [Fault("lost", p=0.1), Fault("corrupt", p=0.1), Fault("foreign", p=0.2)], True


def several(*kinds: Callable[..., tuple[list[Fault], bool]]) -> Callable[..., tuple[list[Fault], bool]]:
    def together(rng: np.random.Generator, at: Callable[[], float]) -> tuple[list[Fault], bool]:
        made = [kind(rng, at) for kind in kinds]
        return [fault for faults, _ in made for fault in faults], all(mild for _, mild in made)

    return together


FAULTS: dict[str, Callable[..., tuple[list[Fault], bool]]] = {
    "late": late,
    "stall": stalled,
    "doubled": doubled,
    "burst": burst,
    "echo": echo,
    "noise": noise,
    "late and doubled": several(late, doubled),
    "stall and doubled": several(stalled, doubled),
    "echo and stall": several(echo, stalled),
    "late and lost": several(late, noise),
}


def servos_of(trial: Trial, rng: np.random.Generator) -> list[EmulatedServo]:
    """Servos with settings of their own, whose joints stand still: computing their motion would take the most time."""
    servos = []
    for index, model in enumerate(LAYOUTS[trial.layout][0]):
        top = MODELS[model].registers["max_position_limit"].initial
        lower, upper = int(rng.integers(0, top // 4)), int(rng.integers(3 * top // 4, top + 1))
        registers = {
            "min_position_limit": lower,
            "max_position_limit": upper,
            "temperature_limit": int(rng.integers(60, 80)),
            "return_delay_time": int(rng.choice([0, 100])),
        }
        if model == "xl330":
            registers |= {
                "current_limit": int(rng.integers(600, 1700)),
                "pwm_limit": int(rng.integers(400, 885)),
            }
            registers |= {"operating_mode": int(rng.choice([0, 3]))}
        servo = emulated_one(model, index + 1, temperature=30.0 + index, registers=registers)
        servo.joint.step = lambda firmware, push, voltage, count, *_: count  # type: ignore[method-assign]
        numbers = servo.memory.numbers
        numbers.update(torque_enable=int(rng.integers(2)), position_i_gain=int(rng.integers(2)))
        servos.append(servo)
    return servos


def rate_of(trial: Trial) -> float:
    """Cycles per second of a trial [Hz]."""
    return RATE if trial.layout in DATED else SLOW_RATE


def run(trial: Trial, rng: np.random.Generator) -> Trial:
    """Carry out a trial."""
    servos = servos_of(trial, rng)
    with TimedBus(servos, seed=trial.seed) as emulation:
        watched = RemoteServo.read
        RemoteServo.read = _compared(watched, {s.id: s for s in servos}, trial.wrong)  # type: ignore[method-assign]
        try:
            _TASKS[trial.task](trial, emulation, rng)
        except ServoError as error:
            trial.fault = str(error)
            if len(trial.fault.splitlines()) != 1:
                trial.wrong.append("an error of several lines")
        finally:
            RemoteServo.read = watched  # type: ignore[method-assign]
            trial.longest = emulation.longest
    return trial


def _compared(read: Any, servos: dict[int, EmulatedServo], wrong: list[str]) -> Any:
    """``RemoteServo.read`` that compares what it returns with the memory."""

    def compared(remote: RemoteServo, name: str) -> int:
        found = int(read(remote, name))
        servo = servos[remote.servo.identity]
        if not name.startswith("present_"):
            actual = servo.errors if name == "hardware_error_status" else servo.memory.numbers[name]
            if found != actual:
                wrong.append(f"{name} of servo {servo.id}: {found}, not {actual}")
        return found

    return compared


def bus_of(trial: Trial, emulation: VirtualBus, mode: str = "position") -> Bus:
    specs = [ServoSpec(servo.id, servo.model, mode) for servo in emulation.servos]
    return Bus(emulation.port(BAUD), specs)


def strike(trial: Trial, emulation: VirtualBus) -> None:
    """Begin the faults; their schedules count from now."""
    emulation._faults._start = emulation.clock.now()
    for fault in trial.faults:
        emulation.add_fault(fault)


def cut_off(servo: EmulatedServo) -> None:
    """From now on a servo receives nothing; what it has sent is still under way."""
    servo._boots_until = math.inf


def check_settings(trial: Trial, bus: Bus, emulation: VirtualBus) -> None:
    """Compare the settings of the servos, and what the bus believes of them, with what connecting promises."""
    for index, (servo, spec) in enumerate(zip(emulation.servos, bus.servos, strict=True)):
        numbers = servo.memory.numbers
        wanted = {"torque_enable": 0, "return_delay_time": 0, "position_i_gain": 0, "position_d_gain": 0}
        wanted["status_return_level"] = spec.model.dialect.answers_all
        if spec.model.mode_register:
            wanted[spec.model.mode_register] = spec.model.modes[spec.mode]
        for name in ("goal_pwm", "goal_current"):
            limit = name.replace("goal", "")[1:] + "_limit"
            if limit in numbers:
                wanted[name] = 0 if spec.mode == name.removeprefix("goal_") else numbers[limit]
        if "torque_limit" in numbers:
            wanted["torque_limit"] = numbers["max_torque"]
        trial.wrong += [
            f"{name} of servo {servo.id} is {numbers[name]}, not {value}"
            for name, value in wanted.items()
            if numbers[name] != value
        ]
        limits = (numbers["min_position_limit"], numbers["max_position_limit"])
        if spec.mode == "position" and bus._spans[index] != limits:
            trial.wrong.append(f"limits of servo {servo.id}: {bus._spans[index]}, not {limits}")
        if bus.temperature_limits[index] != numbers["temperature_limit"]:
            trial.wrong.append(f"temperature limit of servo {servo.id}: {bus.temperature_limits[index]}")


def connects(trial: Trial, emulation: VirtualBus, rng: np.random.Generator) -> None:
    """Connect while the faults act."""
    strike(trial, emulation)
    bus = bus_of(trial, emulation)
    bus.connect()
    check_settings(trial, bus, emulation)


def changes_mode(trial: Trial, emulation: VirtualBus, rng: np.random.Generator) -> None:
    """Connect again, in another mode."""
    bus_of(trial, emulation).connect()
    strike(trial, emulation)
    bus = bus_of(trial, emulation, "current" if "current" in emulation.servos[0].model.modes else "position")
    bus.connect()
    check_settings(trial, bus, emulation)


def reads(trial: Trial, emulation: VirtualBus, rng: np.random.Generator) -> None:
    """Cyclic reads of servos whose position is the time of reading."""
    bus, clock = bus_of(trial, emulation), emulation.clock
    bus.connect()
    begin = clock.now()
    for servo in emulation.servos:
        servo.memory._live["present_position"] = lambda s=servo: int(1e3 * (s.clock - begin)) % 4096
    strike(trial, emulation)
    for _ in range(CYCLES):
        start = clock.now()
        reading = bus.read(start + 2.0 / rate_of(trial))
        took = clock.now() - start
        for index in np.flatnonzero(reading.valid):
            register = bus.servos[index].model.register("present_position")
            count = round(reading.position[index] / register.scale) + register.zero
            true = begin + 1e-3 * count
            who, stamp = f"servo {index + 1}", reading.times[index]
            if true < start - CLOCK_STEP:
                trial.wrong.append(f"a sample of {who} is {1e3 * (start - true):.0f} ms older than its cycle")
            elif abs(stamp - true) > 0.5 * took + CLOCK_STEP:
                trial.wrong.append(f"the time of a sample of {who} is wrong by {1e3 * (stamp - true):.1f} ms")
            if reading.temperature[index] != 30.0 + index:
                trial.wrong.append(f"temperature of {who}: {reading.temperature[index]}")
        clock.sleep(max(0.0, start + 1.0 / rate_of(trial) - clock.now()))


def writes_gains(trial: Trial, emulation: VirtualBus, rng: np.random.Generator) -> None:
    """Gains between cyclic reads."""
    bus, clock = bus_of(trial, emulation), emulation.clock
    bus.connect()
    strike(trial, emulation)
    for cycle in range(CYCLES // 2):
        start = clock.now()
        if cycle % 3 == 0:
            chosen = rng.permutation(len(bus.servos))[: int(rng.integers(1, len(bus.servos) + 1))]
            gains = {int(index): int(rng.integers(10, 250)) for index in chosen}
            bus.set_gains(gains)
            for index, gain in gains.items():
                found = emulation.servos[index].memory.numbers["position_p_gain"]
                if found != gain:
                    trial.wrong.append(f"gain of servo {index + 1} is {found}, not {gain}")
        bus.read(start + 2.0 / rate_of(trial))
        clock.sleep(max(0.0, start + 1.0 / rate_of(trial) - clock.now()))


def lets_go(trial: Trial, emulation: VirtualBus, rng: np.random.Generator) -> None:
    """Torque off, often with a servo that has just been cut off from the bus."""
    bus, clock = bus_of(trial, emulation), emulation.clock
    bus.connect()
    everyone = range(len(bus.servos))
    bus.hold(dict.fromkeys(everyone, 0.0))
    bus.set_torque(everyone, True)
    strike(trial, emulation)
    try:
        for _ in range(int(rng.integers(0, 12))):
            bus.read(clock.now() + 2.0 / rate_of(trial))
            clock.sleep(float(rng.uniform(0.0, 0.01)))
        if rng.random() < 0.7:
            bus.set_gains({int(rng.integers(len(bus.servos))): int(rng.integers(10, 250))})
    except ServoError as error:
        trial.fault = str(error)
    if rng.random() < 0.7:
        cut_off(emulation.servos[int(rng.integers(len(bus.servos)))])
        clock.sleep(float(rng.uniform(0.0, 0.3)) if rng.random() < 0.5 else 0.0)
    for _ in range(int(rng.integers(1, 8))):
        silent = {servo.identity for servo in bus.torque_off()}
        trial.wrong += [
            f"torque off of servo {servo.id} confirmed, but it is on"
            for servo in emulation.servos
            if servo.id not in silent and servo.memory.numbers["torque_enable"]
        ]
        clock.sleep(1.0 / rate_of(trial))
    trial.fault = trial.fault or ("not confirmed" if silent else "")


_TASKS = {
    "connect": connects,
    "cyclic read": reads,
    "gain write": writes_gains,
    "mode write": changes_mode,
    "torque off": lets_go,
}


@dataclass
class Summary:
    """Results of many trials.

    :ivar wrong: trials with wrong values, in which no answer was later than the bound.
    :ivar beyond: those in which one was.
    """

    trials: int = 0
    wrong: list[Trial] = field(default_factory=list)
    beyond: list[Trial] = field(default_factory=list)
    faults: Counter[str] = field(default_factory=Counter)
    mild: int = 0
    mild_connected: int = 0

    def add(self, trial: Trial) -> None:
        """Count a trial."""
        self.trials += 1
        if trial.wrong:
            (self.wrong if trial.longest <= LONGEST_DELAY else self.beyond).append(trial)
        self.faults[trial.task] += bool(trial.fault)
        if trial.mild and trial.task in ("connect", "mode write"):
            self.mild += 1
            self.mild_connected += not trial.fault

    @property
    def connected(self) -> float:
        """Share of the mild trials that connect."""
        return self.mild_connected / self.mild if self.mild else math.nan

    def __str__(self) -> str:
        counts = Counter((trial.task, trial.kinds) for trial in self.wrong)
        return (
            f"{self.trials} trials, wrong {len(self.wrong)} {dict(counts)} and {len(self.beyond)} beyond the bound, ended by an error {dict(self.faults)}, "
            f"{self.mild_connected} of {self.mild} mild ones connected"
        )


def sweep(seeds: Iterable[int]) -> Summary:
    """Many trials."""
    summary = Summary()
    for seed in seeds:
        summary.add(run(*drawn(seed)))
    return summary
