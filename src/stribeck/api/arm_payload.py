"""The payload of an arm: known or identified, taken off the links of the new URDF."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from stribeck.identify.arm.identify import Identification
from stribeck.identify.arm.model import ArmModel
from stribeck.identify.arm.payload import identify_payload, payload_inertials, payload_link, without_payload
from stribeck.identify.arm.regressor import Machine
from stribeck.identify.common.quantiles import normal_estimate
from stribeck.model.arrays import Array
from stribeck.model.estimate import estimates_to_json
from stribeck.model.verdict import Reason
from stribeck.rigid.payload import Payload, payload_numbers, payload_of

IDENTIFY = "identify"
NAMES, UNITS = ("mass", "x", "y", "z"), ("kg", "m", "m", "m")


@dataclass(frozen=True)
class CarriedPayload:
    """The payload of the recordings.

    :param given: the arm of the URDF, without the payload.
    :param machine: the machine with it.
    :param sigma: standard deviations of mass [kg] and centre [m] (4,), ``None`` for a known payload.
    """

    payload: Payload
    given: ArmModel
    machine: Machine
    sigma: Array | None

    @property
    def line(self) -> str:
        """The payload in words."""
        values = (self.payload.mass, *self.payload.com)
        deviations = [""] * 4 if self.sigma is None else [f" ± {one:.2g}" for one in self.sigma.tolist()]
        parts = [
            f"{name} {value:.4g}{deviation} {unit}"
            for name, value, deviation, unit in zip(NAMES, values, deviations, UNITS, strict=True)
        ]
        how = "known" if self.sigma is None else "identified; ±: standard deviations"
        return f"payload at {self.payload.link} ({how}): {', '.join(parts)}; the new URDF does not include it"

    def to_json(self) -> dict[str, Any]:
        """Mass [kg], centre [m] and link; estimates of mass, x, y and z if it was identified."""
        mass, centre = self.payload.mass, self.payload.com
        content = {"mass": mass, "com": list(centre), "link": self.payload.link}
        if self.sigma is None:
            return content
        size = float(np.linalg.norm(centre))
        columns = zip(NAMES, (mass, *centre), UNITS, self.sigma.tolist(), strict=True)
        estimates = {
            name: normal_estimate(value, unit, deviation, scale=0.0 if name == "mass" else size)
            for name, value, unit, deviation in columns
        }
        return content | {"estimates": estimates_to_json(estimates)}

    def taken_off(self, arm: ArmModel) -> tuple[Array, list[Reason]]:
        """Inertials (n, 10) of an identified arm without the payload, and doubts about it."""
        inertials, remains = without_payload(arm, self.given, self.payload)
        next_step = "check its mass and centre"
        if self.sigma is not None:
            next_step = (
                "weigh the tool and state its mass and centre as `payload`, or first identify the arm without it and use that URDF; until then "
                "use the results only with this tool mounted"
            )
        text = (
            f"the torques indicate a mass at {self.payload.link} that is hardly larger than the payload of {self.payload.mass:.3g} kg, so no mass would be "
            f"left for the link; the link is unchanged in the new URDF: {next_step}"
        )
        return inertials, [] if remains else [Reason("payload", "doubtful", text)]


def carried_payload(text: str, link: str | None, work: Identification, arm: ArmModel) -> CarriedPayload:
    """The payload that a text describes, or that recordings show.

    :param text: ``MASS``, ``MASS,X,Y,Z`` or ``identify``.
    :raises ConfigError: for other texts, and links that do not move.
    """
    at = payload_link(arm, link)
    sigma = None
    if text == IDENTIFY:
        payload, sigma = identify_payload(
            work.machine, arm, work.motions()["train"], work.config.protocol, at
        )
    else:
        payload = payload_of(payload_numbers(text, "payload"), at, "payload")
    whole = arm.with_inertials(arm.inertials + payload_inertials(arm, payload))
    machine = Machine(work.machine.joints, whole, work.machine.couplings)
    return CarriedPayload(payload, arm, machine, None if sigma is None else np.asarray(sigma))
