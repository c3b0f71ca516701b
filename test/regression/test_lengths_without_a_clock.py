"""A servo without a clock was asked again so often that an answer length came back within the longest delay: a sample 290 ms old
was taken for a new one."""

import numpy as np

from stribeck.servo.lengths import LONGEST_DELAY, AnswerLengths

WIRE = 1e-3


def test_asking_again_leaves_lengths_for_the_next_cycles():
    """61 lengths at 90 Hz, asked again in most cycles: none is used within the longest delay, and hardly a cycle is left out."""
    mine, lengths, rng = AnswerLengths(), range(15, 76), np.random.default_rng(0)
    used: dict[int, float] = {}
    left_out = repeated = 0
    for cycle in range(900):
        now = cycle / 90.0 + 1e-3 * rng.random()
        for attempt in range(3 if rng.random() < 0.7 else 1):
            length = mine.of_cycle(lengths, now, again=attempt > 0)
            if length is None:
                left_out += attempt == 0
                continue
            assert now - used.get(length, -np.inf) > LONGEST_DELAY
            repeated += attempt > 0
            used[length] = now
            mine.use(length, now, WIRE)
            now += 2e-3
    assert left_out == 0
    assert repeated > 100


def test_too_few_lengths_for_the_rate_go_round():
    """32 lengths at 200 Hz: the oldest is used again after 32 cycles, as documented, and never for asking again."""
    mine, lengths = AnswerLengths(), range(10, 42)
    found = []
    for cycle in range(200):
        now = cycle / 200.0
        found.append(mine.of_cycle(lengths, now, again=False))
        mine.use(found[-1], now, WIRE)
        if cycle > 32:
            assert mine.of_cycle(lengths, now + 2e-3, again=True) is None
    assert found == [lengths[cycle % 32] for cycle in range(200)]
