"""How a solver ended."""

from __future__ import annotations

from enum import StrEnum


class SolverStatus(StrEnum):
    """How a solver ended; the values stand in JSON files."""

    CONVERGED = "converged"
    """Further steps gain nothing that counts."""
    LIMIT = "limit"
    """Iterations or evaluations ran out; the point is the best one so far."""
    DIVERGED = "diverged"
    """No finite cost: the point means nothing."""
    KINK = "kink"
    """No step lowers the cost although its derivatives promise that: the cost has a kink here, or its derivatives are wrong."""

    @property
    def words(self) -> str:
        """For messages and tables."""
        return WORDS[self]


WORDS = {
    SolverStatus.CONVERGED: "converged",
    SolverStatus.LIMIT: "stopped at its limit of iterations or evaluations before it converged",
    SolverStatus.DIVERGED: "diverged: no finite cost",
    SolverStatus.KINK: "stopped at a kink: no step lowers the cost although its derivatives promise that",
}
