r"""Lengths of status packets as request numbers.

A Dynamixel status packet names its sender, an error and data, but neither the request nor the address that it answers.
The only thing that the requester chooses and the answer shows is the number of data bytes. A register can be read as
part of a longer block, so every request gets a length of its own:

*Assumption.* Every answer arrives at most :data:`LONGEST_DELAY` :math:`D` after it could have arrived at the
earliest, or never; in any order, any number of times. Requests reach the servo in the order of sending or get lost.

*Claim.* An answer of :math:`n` bytes from servo :math:`s` belongs to the last request for :math:`n` bytes from
:math:`s`.

*Proof.* Let :math:`t_2` be the time of a request for :math:`n` bytes from :math:`s`, and :math:`t_1` that of the one
before. The request is only sent if

1. :math:`t_2 > t_1 + D`: then no answer to an earlier request for :math:`n` bytes can arrive any more; or
2. all of them were for blocks that contain the servo's own clock (``realtime_tick``, 1 ms), and an answer to a
   request sent at :math:`t' \ge t_1` arrived :data:`CLOCK_STEP` before :math:`t_2` and said :math:`c'`. As the servo
   executes requests in the order of sending, answers to the earlier ones say :math:`c \le c'` and the answer to the
   new one says :math:`c > c'`; others are rejected. The clock wraps after 32.8 s, longer than :math:`D`.

Reads of settings rely on case 1. Cyclic reads of servos with a clock rely on both, so that they need few lengths and
stay short. Without a clock (XL-320) they go through most lengths that the table has; if these do not suffice for
:math:`D` at the rate of the cycle, the oldest one is used again, and the bound is the number of lengths times the
cycle (XL-320: 32 cycles). Asking again within a cycle takes a length of its own only while lengths remain for the next
cycles; otherwise it repeats that of the cycle, and the answer may belong to any of its requests.

An answer proves that the servo executed its request, and everything sent before it. A read with a length of its own
is therefore a fence: what arrives before its answer is not taken for it, and what it says was true after the request.

Acknowledgements of writes have no data and cannot be told apart, the answer to a ping of protocol 1 neither. Nothing is
concluded from them: what was written is read back.
"""

import math
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

LONGEST_DELAY = 0.5
"""Longest delay of an answer beyond its wire time for which no answer is taken for another [s]. An answer that is
recognised as later is an error."""

CLOCK_STEP = 3e-3
"""Shortest time between two requests after which the clock of a servo has advanced [s]: it counts milliseconds."""

RESERVED = 12
"""Number of lengths that cyclic reads leave to reads of settings, and the other way round."""

LEFT = 3
"""Lengths that asking again in a cycle never takes."""

MEMORY = 64
"""Number of accepted answers whose clock is remembered."""

CLOCK_TIME = 1.0
"""Time for which an accepted answer tells from its clock that another is older [s]: also beyond the longest delay."""

CLOCK_WRAP = 1 << 15
"""Number of counts after which the clock of a servo starts again."""

Kind = Literal["unknown", "duplicate", "late", "overdue"]


class Block(NamedTuple):
    """A contiguous block of a control table: first address and number of bytes."""

    address: int
    length: int


class Region(NamedTuple):
    """Registers to read, and how far the block around them may grow.

    :param address, length: the shortest block that contains the registers.
    :param end: first address beyond the control table.
    :param clock: address of the servo's clock if it is in the block, else ``None``.
    """

    address: int
    length: int
    end: int
    clock: int | None = None

    @property
    def lengths(self) -> range:
        """Possible numbers of bytes of a block that contains the registers."""
        return range(self.length, self.end + 1)

    @property
    def usual_lengths(self) -> range:
        """Those that only reads in every cycle use, so that these stay short."""
        return range(self.length, self.length + RESERVED)

    @property
    def cyclic_lengths(self) -> range:
        """Those for reads in every cycle; the others remain for settings."""
        return range(self.length, max(self.length, self.end - RESERVED) + 1)

    def block(self, length: int) -> Block:
        """The block of a length: it grows upwards to the end of the table, then downwards."""
        return Block(min(self.address, self.end - length), length)


@dataclass
class _Use:
    """Last request for a length.

    :param sent: when it was sent [s].
    :param expires: when the last answer to it may arrive [s].
    :param dated: whether the answers to this and all earlier requests that may still arrive contain the clock.
    :param before: count of the clock that an answer must exceed, ``None`` if the length suffices.
    :param answered: whether an answer was accepted.
    """

    sent: float
    expires: float
    dated: bool
    before: int | None
    answered: bool = False


class _Dated(NamedTuple):
    """An accepted answer with the servo's clock: when its request was sent, when it arrived [s], and the count."""

    sent: float
    arrived: float
    clock: int


class AnswerLengths:
    """Lengths of the answers that one servo may still send; see the module docstring.

    :ivar clock_runs: whether answers have shown that the servo's clock advances.
    :ivar last_sent: when the last request was sent [s].
    """

    def __init__(self) -> None:
        self._uses: dict[int, _Use] = {}
        self._dated: deque[_Dated] = deque(maxlen=MEMORY)
        self.clock_runs = False
        self.last_sent = -math.inf

    def is_free(self, length: int, now: float, dated: bool = False, margin: float = 0.0) -> bool:
        """Whether a request may use a length.

        :param dated: whether the block contains the servo's clock.
        :param margin: time beyond the longest delay [s], so that most answers that are later still are recognised.
        """
        use = self._uses.get(length)
        if use is None or now >= use.expires + margin:
            return True
        if not (dated and use.dated and self.clock_runs):
            return False
        last = self._reference(now)
        return last is not None and last.sent >= use.sent

    def _reference(self, now: float) -> _Dated | None:
        """The last accepted answer after whose arrival the clock has advanced."""
        while len(self._dated) > 1 and self._dated[1].arrived <= now - CLOCK_STEP:
            self._dated.popleft()
        return self._dated[0] if self._dated and self._dated[0].arrived <= now - CLOCK_STEP else None

    def last_use(self, length: int) -> float:
        """When a length was last used [s]."""
        use = self._uses.get(length)
        return -math.inf if use is None else use.sent

    def expiry(self, length: int) -> float:
        """When no answer of a length can arrive any more [s]."""
        use = self._uses.get(length)
        return -math.inf if use is None else use.expires

    def of_cycle(self, lengths: Sequence[int], now: float, again: bool) -> int | None:
        """Length for a cyclic read of a servo whose clock does not run.

        :param again: whether the servo has been asked in this cycle already; then ``None`` if the lengths would not last for
            the longest delay.
        """
        free = [length for length in lengths if self.is_free(length, now)]
        if again:
            used = [self.last_use(length) for length in lengths if length not in free]
            share = (now - min(used, default=now)) / LONGEST_DELAY
            if len(used) >= min(share, 1.0) * (len(lengths) - LEFT):
                return None
        if free:
            return next((one for one in free if self.is_free(one, now, margin=LONGEST_DELAY)), free[0])
        return min(lengths, key=self.last_use)

    def use(self, length: int, sent: float, wire_time: float, dated: bool = False) -> None:
        """Record a request.

        :param sent: when it is sent [s].
        :param wire_time: of everything that is still being sent, and of the answers [s].
        :param dated: whether the answer contains the servo's clock.
        """
        last, reference = self._uses.get(length), self._reference(sent)
        before = None
        if dated and self.clock_runs and reference is not None and sent < reference.arrived + CLOCK_TIME:
            before = reference.clock
        all_dated = dated and (last is None or sent >= last.expires or last.dated)
        self._uses[length] = _Use(sent, sent + wire_time + LONGEST_DELAY, all_dated, before)
        self.last_sent = sent

    def accept(self, length: int, now: float, clock: int | None = None) -> bool:
        """Accept an answer to the last request for a length, unless it belongs to an earlier one.

        :param clock: the servo's clock in the answer, ``None`` without one.
        """
        use = self._uses[length]
        if clock is not None and use.before is not None and not _is_later(clock, use.before):
            return False
        use.answered = True
        if clock is not None:
            self.clock_runs = self.clock_runs or (bool(self._dated) and clock != self._dated[-1].clock)
            self._dated.append(_Dated(use.sent, now, clock))
        return True

    def forget_clock(self) -> None:
        """After a restart of the servo, whose clock then begins again: wait for each length until it has expired."""
        self._dated.clear()
        for use in self._uses.values():
            use.dated, use.before = False, None

    def kind(self, length: int, now: float) -> Kind:
        """What an answer is that nobody waits for: to no request, a copy, late, or later than assumed."""
        use = self._uses.get(length)
        if use is None:
            return "unknown"
        if now > use.expires:
            return "overdue"
        return "duplicate" if use.answered else "late"


def _is_later(clock: int, before: int) -> bool:
    """Whether a count of the servo's clock is later than another, both less than 16 s apart."""
    return 0 < (clock - before) % CLOCK_WRAP < CLOCK_WRAP // 2


def free_length(
    lengths: Iterable[int],
    servos: Sequence[AnswerLengths],
    now: float,
    dated: bool = False,
    margin: float = 0.0,
) -> int | None:
    """The first of some lengths that is free for several servos, ``None`` if none is; see AnswerLengths.is_free."""
    for length in lengths:
        if all(servo.is_free(length, now, dated, margin) for servo in servos):
            return length
    return None
