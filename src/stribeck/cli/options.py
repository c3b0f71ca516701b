"""What texts on the command line stand for: types for argparse."""

from __future__ import annotations

import argparse


def finite(text: str) -> float:
    """A number."""
    value = float(text)
    if not abs(value) < float("inf"):
        raise argparse.ArgumentTypeError(f"must be finite, found {text}")
    return value


def celsius(text: str) -> float:
    """A temperature that a servo can have."""
    value = float(text)
    if not -40.0 <= value <= 150.0:
        raise argparse.ArgumentTypeError(f"must be between -40 and 150 °C, found {text}")
    return value


def positive(text: str) -> float:
    """A positive number."""
    value = float(text)
    if not 0.0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"must be positive, found {text}")
    return value


def zero_or_more(text: str) -> float:
    """A number from zero on."""
    value = float(text)
    if not 0.0 <= value < float("inf"):
        raise argparse.ArgumentTypeError(f"must be zero or positive, found {text}")
    return value


def time_step(text: str) -> float:
    """A time step that a joint can be simulated with."""
    value = float(text)
    if not 1e-5 <= value <= 0.05:
        raise argparse.ArgumentTypeError(f"must be between 1e-5 and 0.05 s, found {text}")
    return value


def seed(text: str) -> int:
    """A seed of random numbers."""
    value = int(text)
    if not 0 <= value < 2**31:
        raise argparse.ArgumentTypeError(f"must be between 0 and {2**31 - 1}, found {text}")
    return value


def count(text: str) -> int:
    """A whole number from 1."""
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, found {text}")
    return value


def whole(text: str) -> int:
    """A whole number from 0."""
    value = int(text)
    if value < 0:
        raise argparse.ArgumentTypeError(f"must not be negative, found {text}")
    return value


def row_range(text: str) -> tuple[int, int]:
    """Rows ``A:B`` from A on and before B."""
    first, _, last = text.partition(":")
    found = int(first or 0), int(last)
    if not 0 <= found[0] < found[1]:
        raise argparse.ArgumentTypeError(f"must be A:B with 0 <= A < B, found {text}")
    return found


def harmonics(text: str) -> int:
    """A number of harmonics of a series that starts and ends at rest."""
    value = int(text)
    if not 2 <= value <= 50:
        raise argparse.ArgumentTypeError(f"must be between 2 and 50, found {text}")
    return value


def numbers(text: str) -> tuple[float, ...]:
    """Numbers from zero on, separated by commas."""
    values = tuple(float(part) for part in text.split(","))
    if not all(0.0 <= value < float("inf") for value in values):
        raise argparse.ArgumentTypeError(f"must be zero or positive, found {text}")
    return values


def choices_of(valid: tuple[str, ...]) -> type:
    """A parser of lists of given words, separated by commas."""

    def parse(text: str) -> tuple[str, ...]:
        found = tuple(part.strip() for part in text.split(",") if part.strip())
        unknown = [part for part in found if part not in valid]
        if unknown:
            raise argparse.ArgumentTypeError(f"unknown {', '.join(unknown)}; valid: {', '.join(valid)}")
        return found

    return parse  # type: ignore[return-value]  # argparse takes any callable
