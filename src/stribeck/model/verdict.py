"""Verdict on a fit: whether its result may be used, and the reasons against it.

A reason is ``doubtful`` if the result may be right but should be examined first, and ``unusable`` if it cannot be right.
The verdict is that of the gravest reason, and ``usable`` without any. Reasons may be about one joint or recording: a robot
of which one joint is unusable is doubtful, as the others may be used.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

CARRIES_OVER, FAILS = 1.25, 2.0
"""Ratio of held-out to fitted error up to which a law generalises, and the ratio from which it fails."""


Use = Literal["usable", "doubtful", "unusable"]

LARGEST_ERROR = 0.5
"""Largest relative error of a model that may be used."""


@dataclass(frozen=True)
class Reason:
    """A reason against a result.

    :param key: short name for programs.
    :param use: how far the result may be used in spite of it.
    :param text: what was found, and what to do.
    :param joint: the only joint that it is about; empty: the whole result.
    :param file: the only recording that it is about; empty: all.
    """

    key: str
    use: Use
    text: str
    joint: str = ""
    file: str = ""

    def to_json(self) -> dict[str, str]:
        """Keys and values for JSON, without empty ones."""
        return {name: text for name, text in vars(self).items() if text}


@dataclass(frozen=True)
class Verdict:
    """Whether a result may be used.

    :param joints: names of the joints that reasons may be about, if there are several.
    """

    reasons: tuple[Reason, ...] = field(default=())
    joints: tuple[str, ...] = ()

    @property
    def use(self) -> Use:
        """The verdict of the gravest reason; unusable joints make a result unusable only if no other joint is left."""
        whole = _gravest(one.use for one in self.reasons if not one.joint)
        joints = self.joints or tuple(one.joint for one in self.reasons if one.joint)
        each = [_gravest(one.use for one in self.reasons if one.joint == joint) for joint in joints]
        if each and set(each) != {"unusable"}:
            each = ["doubtful" if use == "unusable" else use for use in each]
        return _gravest([whole, *each])

    def with_reasons(self, more: Iterable[Reason]) -> Verdict:
        """The verdict with further reasons."""
        return replace(self, reasons=(*self.reasons, *more))

    def of(self, joint: str) -> Verdict:
        """The verdict on one joint: what is said of it and of the whole."""
        return Verdict(tuple(replace(one, joint="") for one in self.reasons if one.joint in ("", joint)))

    def of_file(self, file: str) -> Verdict:
        """The verdict on one recording: what is said of it and of the whole."""
        return Verdict(tuple(one for one in self.reasons if one.file in ("", file) and not one.joint))

    def to_json(self, files: Sequence[str] = ()) -> dict[str, Any]:
        """The keys ``verdict`` and ``reasons`` of ``--json``; of several joints or with recordings also ``verdicts`` on each.

        :param files: names of recordings.
        """
        content: dict[str, Any] = {"verdict": self.use, "reasons": [one.to_json() for one in self.reasons]}
        each = {
            "joints": {joint: self.of(joint).use for joint in self.joints},
            "files": {file: self.of_file(file).use for file in files},
        }
        found = {kind: uses for kind, uses in each.items() if uses}
        return content | ({"verdicts": found} if found else {})

    def lines(self) -> list[str]:
        """The verdict in words, one line for each reason."""
        return [f"verdict: {self.use}", *(f"  {reason.use}: {reason.text}" for reason in self.reasons)]


def _gravest(uses: Iterable[Use]) -> Use:
    found = set(uses)
    return "unusable" if "unusable" in found else "doubtful" if "doubtful" in found else "usable"
