"""Lengths as request numbers: an accepted answer belongs to the request that is waited for."""

from dataclasses import dataclass

import numpy as np
import pytest

from stribeck.servo.lengths import CLOCK_WRAP, LONGEST_DELAY, AnswerLengths, Region, free_length

CYCLIC = Region(120, 27, 147, clock=120)
SETTING = Region(64, 1, 147)


@dataclass
class Sent:
    """A packet under way: when it arrives, its length, its clock, and the number of its request."""

    arrival: float
    length: int
    clock: int | None
    request: int


class Line:
    """A servo whose answers are delayed by up to a bound, reordered, lost and repeated at random."""

    def __init__(self, seed: int, longest: float) -> None:
        self.rng = np.random.default_rng(seed)
        self.longest = longest
        self.packets: list[Sent] = []

    def answer(self, now: float, length: int, dated: bool, request: int) -> None:
        """Answer a request at once, zero to three times."""
        clock = int(1e3 * now) % CLOCK_WRAP if dated else None
        for _ in range(int(self.rng.choice([0, 1, 1, 1, 2, 3]))):
            delay = self.rng.choice([3e-4, 2e-2, self.longest]) * self.rng.uniform(0.0, 1.0)
            self.packets.append(Sent(now + delay, length, clock, request))

    def due(self, begin: float, end: float) -> list[Sent]:
        """What arrives in a time, in order."""
        due = sorted((p for p in self.packets if begin <= p.arrival < end), key=lambda p: p.arrival)
        self.packets = [p for p in self.packets if p.arrival >= end]
        return due


def exchange(seed: int, longest: float, cyclic_share: float) -> tuple[int, int]:
    """Requests with random pauses; the numbers of right and of wrong answers that were accepted."""
    line, lengths, rng = Line(seed, longest), AnswerLengths(), np.random.default_rng(seed)
    now, right, wrong = 100.0, 0, 0
    for number in range(1500):
        dated = bool(rng.random() < cyclic_share)
        region = CYCLIC if dated else SETTING
        length = free_length(region.cyclic_lengths if dated else region.lengths, [lengths], now, dated)
        if length is not None:
            lengths.use(length, now, 1e-4, dated)
            line.answer(now + 1e-4, length, dated, number)
        end = now + float(rng.uniform(5e-4, 8e-3))
        for packet in line.due(now, end):
            if packet.length == length and lengths.accept(length, packet.arrival, packet.clock):
                right += packet.request == number
                wrong += packet.request != number
                break
        now = end
    return right, wrong


@pytest.mark.one_case_is_quick
@pytest.mark.parametrize("cyclic_share", [0.0, 0.8, 1.0])
@pytest.mark.parametrize("seed", range(8))
def test_no_answer_within_the_longest_delay_is_taken_for_another(seed: int, cyclic_share: float) -> None:
    """Whatever is delayed, reordered or repeated: what is accepted answers the present request."""
    right, wrong = exchange(seed, LONGEST_DELAY, cyclic_share)
    assert wrong == 0
    assert right > 150


@pytest.mark.ci
def test_answers_beyond_the_longest_delay_can_be_mixed_up() -> None:
    """The bound is one: with four times the delay, settings are mixed up, so the test above can fail."""
    assert sum(exchange(seed, 4.0 * LONGEST_DELAY, 0.0)[1] for seed in range(8)) > 0


def test_a_length_is_free_again_after_the_longest_delay() -> None:
    """Neither earlier nor later; without a clock also after an answer."""
    lengths = AnswerLengths()
    lengths.use(4, 10.0, 0.001)
    assert lengths.accept(4, 10.001)
    assert not lengths.is_free(4, 10.0 + LONGEST_DELAY)
    assert lengths.is_free(4, 10.001 + LONGEST_DELAY)
    assert lengths.is_free(5, 10.0)
    assert lengths.kind(5, 10.0) == "unknown"
    assert lengths.kind(4, 10.3) == "duplicate"
    assert lengths.kind(4, 10.6) == "overdue"


def test_the_clock_of_the_servo_frees_a_length_at_once() -> None:
    """After an answer with a later clock a length is used again; copies of the older answer are rejected."""
    lengths = AnswerLengths()
    for number, clock in enumerate((32766, 32767)):
        lengths.use(27 + number, 1.0 + 0.005 * number, 0.0, dated=True)
        assert lengths.accept(27 + number, 1.001 + 0.005 * number, clock)
    assert not lengths.is_free(27, 1.006)
    assert lengths.is_free(27, 1.010, dated=True)
    assert not lengths.is_free(27, 1.010)
    lengths.use(27, 1.010, 0.0, dated=True)
    assert not lengths.accept(27, 1.011, 32766)
    assert not lengths.accept(27, 1.011, 32767)
    assert lengths.accept(27, 1.011, 3)


def test_a_clock_that_stands_still_frees_nothing() -> None:
    """A register that does not count is no clock: lengths are used once in the longest delay."""
    lengths = AnswerLengths()
    for number in range(20):
        lengths.use(27 + number, 1.0 + 0.005 * number, 0.0, dated=True)
        assert lengths.accept(27 + number, 1.001 + 0.005 * number, 7)
    assert not lengths.is_free(27, 1.2, dated=True)
    assert not lengths.clock_runs


def test_a_restarted_clock_is_not_compared() -> None:
    """After a restart of the servo no length is used again before it has expired, and any clock is right."""
    lengths = AnswerLengths()
    for number in range(3):
        lengths.use(27 + number, 1.0 + 0.005 * number, 0.0, dated=True)
        lengths.accept(27 + number, 1.001 + 0.005 * number, 500 + number)
    lengths.forget_clock()
    assert not lengths.is_free(27, 1.02, dated=True)
    lengths.use(40, 1.02, 0.0, dated=True)
    assert lengths.accept(40, 1.021, 2)


def test_blocks_of_all_lengths_contain_the_registers() -> None:
    """Longer blocks grow within the control table."""
    region = Region(36, 34, 74, clock=50)
    for length in region.lengths:
        block = region.block(length)
        assert block.length == length
        assert 0 <= block.address <= 36
        assert 70 <= block.address + length <= 74
    assert set(region.usual_lengths) <= set(region.cyclic_lengths) <= set(region.lengths)
