"""Status of a solver."""

from __future__ import annotations

from enum import StrEnum


class SolverStatus(StrEnum):
    """How a solver ended; the values appear in JSON files."""

    CONVERGED = "converged"
    """Further steps gain nothing significant."""
    LIMIT = "limit"
    """Iterations or evaluations ran out; the point is the best one so far."""
    DIVERGED = "diverged"
    """No finite cost: the point is meaningless."""
    KINK = "kink"
    """No step lowers the cost although its derivatives predict it: a kink, or wrong derivatives."""

    @property
    def words(self) -> str:
        """Text for messages and tables."""
        return WORDS[self]


WORDS = {
    SolverStatus.CONVERGED: "converged",
    SolverStatus.LIMIT: "stopped at the limit of iterations or evaluations before it converged",
    SolverStatus.DIVERGED: "diverged: no finite cost",
    SolverStatus.KINK: ("ended at a kink of the cost, where no step lowers it, as is normal with friction"),
}
