r"""Checks and settings before servos move: presence and settings of the servos, and the speed of the bus.

The wire time of a cycle consists of one packet with all goals, one request, and an answer from each servo:

.. math:: T = \frac{10}{baud}\Big(B_{write} + B_{ask} + \sum_i B_{answer,i}\Big) + n \cdot 50\,\mu s

with 10 bits per byte and :math:`B` in bytes; the servos' return delay is set to 0.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from stribeck.errors import ConfigError, ServoError
from stribeck.servo.feetech_tables import SPEED_UNIT
from stribeck.servo.link import Link
from stribeck.servo.port import BITS_PER_BYTE
from stribeck.servo.registers import FEETECH_STS, UNDOCUMENTED
from stribeck.servo.remote import CLOCK, RemoteServo, ServoSpec
from stribeck.servo.tables import MODELS

TURNAROUND = 50e-6
"""Time until a servo starts to answer [s]."""

SHARE = 0.9
"""Maximum load of the wire, as a fraction of the cycle."""

SIGNALS = {
    "position": "present_position",
    "velocity": "present_velocity",
    "current": "present_current",
    "load": "present_load",
    "pwm": "present_pwm",
    "voltage": "present_input_voltage",
    "temperature": "present_temperature",
}
"""Signals read in each cycle and their registers; servos may lack some of them."""

CYCLE = (*SIGNALS.values(), CLOCK)
"""Registers read in each cycle: the signals and the servo's clock, which tells new answers from old ones."""

COOLEST_LIMIT = 30.0
"""Lowest plausible temperature limit [°C]."""


@dataclass
class ConnectionReport:
    """Result of connecting to the servos.

    :param warnings: what the user should know before anything moves.
    :param notes: changed settings, and features that the port lacks.
    :param refuse_recording: reasons why a recording would be useless; empty if there are none.
    :param errors: description of the hardware errors that servos report, by ID.
    :param cycle_time: median time to read all servos [s].
    """

    warnings: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    refuse_recording: list[str] = field(default_factory=list)
    errors: dict[int, str] = field(default_factory=dict)
    cycle_time: float = 0.0


def check_servos(servos: Sequence[ServoSpec], baud_rate: int) -> None:
    """Reject servos that cannot share a bus.

    :raises ConfigError: for repeated IDs, mixed protocols, or a baud rate that a servo does not support.
    """
    if not servos:
        raise ConfigError("a bus needs at least one servo")
    identity, count = Counter(servo.identity for servo in servos).most_common(1)[0]
    if count > 1:
        raise ConfigError(f"servo ID {identity} occurs twice: every servo on a bus needs its own ID")
    if len({servo.model.dialect.title for servo in servos}) > 1:
        protocols = ", ".join(f"{servo}: {servo.model.dialect.title}" for servo in servos)
        raise ConfigError(
            f"all servos on a bus must use the same protocol, found {protocols}: use a port for each protocol"
        )
    for servo in servos:
        servo.model.baud_value(baud_rate)


def cycle_bytes(servos: Sequence[ServoSpec]) -> int:
    """Largest number of bytes on the wire in one cycle: goals, request and answers, which have all lengths in turn where a
    servo has no clock (:mod:`stribeck.servo.lengths`).
    """
    count = len(servos)
    blocks = [servo.region(CYCLE) for servo in servos]
    goals = [servo.goal_register for servo in servos]
    packets = len({(register.address, register.size) for register in goals})
    group_read = servos[0].model.dialect.group_read
    if servos[0].model.protocol == 1.0:
        ask = {"bulk": 7 + 3 * count, "sync": 8 + count, "single": 8 * count}[group_read]
        write, overhead = 8, 6
    else:
        write, ask, overhead = 14, (14 + count if len(set(blocks)) == 1 else 10 + 5 * count), 11
    longest = [block.length if block.clock is not None else block.cyclic_lengths[-1] for block in blocks]
    answers = sum(length + overhead for length in longest)
    return packets * write + sum(1 + register.size for register in goals) + ask + answers


def cycle_time(servos: Sequence[ServoSpec], baud_rate: int) -> float:
    """Wire time of one cycle [s]; see the module docstring."""
    return cycle_bytes(servos) * BITS_PER_BYTE / baud_rate + len(servos) * TURNAROUND


def check_rate(servos: Sequence[ServoSpec], baud_rate: int, rate: float) -> None:
    """Reject a baud rate that is too low for the cycle rate [Hz].

    :raises ConfigError: naming the baud rate or the cycle rate that would work.
    """
    if not rate > 0.0:
        raise ConfigError(f"the rate must be positive, found {rate:g} Hz")
    needed = cycle_time(servos, baud_rate)
    if needed * rate <= SHARE:
        return
    common = set.intersection(*(set(servo.model.baud_rates.values()) for servo in servos))
    enough = [baud for baud in sorted(common) if cycle_time(servos, baud) * rate <= SHARE]
    advice = f"{enough[0]} bit/s is fast enough" if enough else "no baud rate of these servos is fast enough"
    who = "1 servo needs" if len(servos) == 1 else f"{len(servos)} servos need"
    raise ConfigError(
        f"{baud_rate} bit/s is too slow for {rate:g} Hz: {who} {1e3 * needed:.2f} ms of transmission in each cycle; {advice} (register baud_rate of every "
        f"servo); at this baud rate at most {int(SHARE / needed)} Hz are possible"
    )


def check_presence(link: Link, servos: Sequence[ServoSpec], baud_rate: int) -> None:
    """Ping every servo. One whose number is not documented may have any that is not that of another model.

    :raises ServoError: listing missing servos and wrong models, with the expected and the actual ones.
    """
    numbers = {}
    for servo in servos:
        number = link.model_number(servo.identity)
        if number == 0:
            _make_answer(RemoteServo(link, servo), ConnectionReport())
            number = link.model_number(servo.identity)
        if number is not None:
            numbers[servo.identity] = number
    missing = [str(servo.identity) for servo in servos if servo.identity not in numbers]
    known = {model.model_number for model in MODELS.values()} - {UNDOCUMENTED}
    wrong = [
        str(s.identity)
        for s in servos
        if (number := numbers.get(s.identity)) is not None
        and (number in known if s.model.model_number == UNDOCUMENTED else number != s.model.model_number)
    ]
    if not wrong and not missing:
        return
    others = link.find_all() if link.protocol == 2.0 else {}
    models = reversed(MODELS.values())  # of two with the same number the first is named
    titles = {number: model.title for model in models if (number := model.model_number) in known}
    seen = [f"{i} {titles.get(n, f'model {n}')}" for i, n in sorted({**others, **numbers}.items())]
    parts = [f"missing ID {', '.join(missing)}"] if missing else []
    parts += [f"wrong model at ID {', '.join(wrong)}"] if wrong else []
    raise ServoError(
        f"{link.port.port_name} at {baud_rate} bit/s: {'; '.join(parts)}; "
        f"expected: {', '.join(f'{s.identity} {s.model.title}' for s in servos)}; "
        f"found: {', '.join(seen) or 'none'}. Check power, wiring, IDs and the servos' baud rate"
    )


def prepare(remote: RemoteServo, report: ConnectionReport) -> None:
    """Switch torque off, apply the settings that a driver needs, and add the results to ``report``.

    :raises ServoError: if the servo does not answer or rejects a setting.
    """
    servo = remote.servo
    _make_answer(remote, report)
    if remote.adjust("torque_enable", 0) is not None:
        report.notes.append(f"torque of {servo} was on, and has been switched off")
    remote.adjust("eeprom_lock", 1)  # what is set from here on ends with the power
    watchdog = remote.adjust("bus_watchdog", 0)
    if watchdog is not None and watchdog < 0:
        report.notes.append(f"the bus watchdog of {servo} had expired; cleared")
    delay = remote.adjust("return_delay_time", 0)
    if delay is not None:
        report.notes.append(
            f"return_delay_time of {servo} set from {delay} to 0{_lasting(remote, 'return_delay_time')}"
        )
    _set_mode(remote, report)
    _check_speed_unit(remote, report)
    _set_position_law(remote)
    _check_supply(remote, report)
    errors = remote.hardware_errors()
    if errors:
        report.errors[servo.identity] = errors
        report.warnings.append(f"{servo} reports: {errors}")


def _make_answer(remote: RemoteServo, report: ConnectionReport) -> None:
    """Make a servo acknowledge every instruction, even if it was set to answer pings only."""
    servo, link = remote.servo, remote.link
    register = servo.model.register("status_return_level")
    level = servo.model.dialect.answers_all
    answer = link.read(servo.identity, servo.region(["status_return_level"]))
    if answer is not None and answer.raw(register) == level:
        return
    torque = servo.model.register("torque_enable")
    link.write_many(torque.address, torque.size, {servo.identity: torque.to_bytes(0)})
    link.write_many(register.address, register.size, {servo.identity: register.to_bytes(level)})
    if remote.read("status_return_level") != level:
        raise ServoError(f"status_return_level of {servo} cannot be changed here: set it to {level}")
    report.notes.append(f"status_return_level of {servo} set to {level}; its torque has been switched off")


def _lasting(remote: RemoteServo, name: str) -> str:
    """How long a changed setting lasts: the EEPROM area survives power-off, unless it is locked."""
    kept = remote.servo.model.register(name).eeprom and not remote.servo.has("eeprom_lock")
    return " (the servo keeps this after power-off)" if kept else " (until power-off)"


def _set_mode(remote: RemoteServo, report: ConnectionReport) -> None:
    servo = remote.servo
    before = remote.adjust(servo.model.mode_register, servo.model.modes[servo.mode])
    if before is not None:
        names = {number: name for name, number in servo.model.modes.items()}
        lasting = _lasting(remote, servo.model.mode_register)
        report.notes.append(f"mode of {servo} set from {names.get(before, before)} to {servo.mode}{lasting}")
    lower, upper = (remote.read(name) for name in ("min_position_limit", "max_position_limit"))
    if servo.follows_position and lower == upper == 0:
        raise ServoError(
            f"{servo} has no position limits (both are 0): set its position limits, which {servo.mode} mode needs"
        )
    if lower > upper:
        raise ServoError(
            f"{servo} has min_position_limit = {lower}, which is above max_position_limit = {upper}: swap them"
        )


def _check_speed_unit(remote: RemoteServo, report: ConnectionReport) -> None:
    """Warn of a Feetech STS servo whose speeds count in other steps than its table says."""
    servo = remote.servo
    if servo.model.dialect is FEETECH_STS and not remote.read("phase") & SPEED_UNIT:
        report.warnings.append(
            f"{servo} may report speeds in steps of 0.732 rev/min, 50 times as large as assumed (bit 2 of its "
            "register phase is 0): compare its velocity with its position"
        )


def _set_position_law(remote: RemoteServo) -> None:
    """Set the gains other than P, and all other settings that affect the position control law."""
    servo = remote.servo
    remote.adjust("position_i_gain", servo.i_gain)
    remote.adjust("position_d_gain", servo.d_gain)
    for name in ("feedforward_1st_gain", "feedforward_2nd_gain", "profile_velocity", "profile_acceleration"):
        remote.adjust(name, 0)
    if servo.has("torque_limit") and servo.has("max_torque"):
        remote.adjust("torque_limit", remote.read("max_torque"))
    if servo.has("goal_pwm"):
        remote.adjust("goal_pwm", remote.read("pwm_limit") if servo.mode != "pwm" else 0)
    if servo.has("goal_current") and servo.has("current_limit"):
        limit, register = remote.read("current_limit"), servo.model.register("goal_current")
        if servo.mode == "current":
            limit = 0
        elif servo.goal_current is not None:
            limit = min(limit, round(servo.goal_current / register.scale))
        remote.adjust("goal_current", limit)


def _check_supply(remote: RemoteServo, report: ConnectionReport) -> None:
    servo, voltage = remote.servo, remote.value("present_input_voltage")
    model = servo.model
    rating = f"{servo} has a supply voltage of {voltage:.1f} V, but is rated for {model.rated_min:g} to {model.rated_max:g} V"
    if voltage > model.rated_max:
        report.warnings.append(f"{rating}: lower the supply")
        report.refuse_recording.append(
            f"{servo} has a supply voltage of {voltage:.1f} V, above its rating of {model.rated_max:g} V"
        )
    elif voltage < model.rated_min:
        report.warnings.append(f"{rating}: raise the supply")
