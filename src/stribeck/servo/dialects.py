"""Dialects of the servo bus: what differs between the servos of two makers, and between their protocols.

Feetech's packets are those of Dynamixel's protocol 1. Their differences: the servos know sync read in place of bulk read, or
neither; the model number is in bytes 3 and 4; the error byte reports the state of the servo only, so that a rejected write shows
in the register alone; the SCS series stores its numbers with the high byte first; and what is written to the EEPROM area while
the lock is set holds until the power goes off, also while torque is on. Sources: ROBOTIS e-manual, "Protocol 1.0" and
"Protocol 2.0"; Feetech, "Communication protocol manual" and the memory tables of the STS/SMS and SCSCL series (doc.feetech.cn).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from stribeck.servo.lengths import Region

GroupRead = Literal["sync or bulk", "bulk", "sync", "single"]
"""How several servos are read: by one request to all with the same block (sync) or a block each (bulk), or one by one."""


@dataclass(frozen=True)
class BusDialect:
    """One way to speak to servos.

    :param title: name in messages.
    :param protocol: packet format, 1.0 or 2.0.
    :param group_read: see :data:`GroupRead`.
    :param model_number: location of the model number in every servo, within the shortest control table.
    :param refusals: meaning of the error byte of a rejected instruction: bits (protocol 1) or numbers (protocol 2).
    :param damage: bit or number of a request with a wrong checksum, 0 if servos do not report it.
    :param byte_order: of numbers of several bytes.
    :param eeprom_lock: whether EEPROM registers are closed while torque is on; otherwise a register ``eeprom_lock`` decides
        whether they keep what is written.
    :param answers_all: value of ``status_return_level`` at which every instruction is answered.
    """

    title: str
    protocol: float
    group_read: GroupRead
    model_number: Region
    refusals: Mapping[int, str] = field(hash=False)
    damage: int
    byte_order: Literal["little", "big"] = "little"
    eeprom_lock: bool = True
    answers_all: int = 2

    def is_refusal(self, error: int) -> bool:
        """Whether an error byte reports a rejected instruction, apart from hardware errors."""
        return bool(error & (0x7F if self.protocol == 2.0 else sum(self.refusals)))

    def is_damage(self, error: int) -> bool:
        """Whether an error byte reports a wrong checksum in the request."""
        return error & 0x7F == self.damage if self.protocol == 2.0 else bool(error & self.damage)

    def refusal(self, error: int) -> str:
        """Reason for a rejected instruction, in words."""
        if self.protocol == 2.0:
            return self.refusals.get(error & 0x7F, f"error {error & 0x7F}")
        return ", ".join(text for bit, text in self.refusals.items() if error & bit)


DYNAMIXEL_1 = BusDialect(
    "Dynamixel protocol 1",
    1.0,
    "bulk",
    Region(0, 2, 46),
    {
        0x02: "angle beyond its limits",
        0x08: "data out of range",
        0x10: "wrong checksum",
        0x40: "unknown instruction",
    },
    0x10,
)
DYNAMIXEL_2 = BusDialect(
    "Dynamixel protocol 2",
    2.0,
    "sync or bulk",
    Region(0, 2, 46),
    {
        1: "it failed",
        2: "unknown instruction",
        3: "wrong checksum",
        4: "data out of range",
        5: "data too short",
        6: "data beyond its limits",
        7: "no access (read-only, EEPROM with torque on, or the watchdog has expired)",
    },
    3,
)
FEETECH_STS = BusDialect(
    "Feetech STS/SMS", 1.0, "sync", Region(3, 2, 71), {}, 0, eeprom_lock=False, answers_all=1
)
FEETECH_SCS = BusDialect(
    "Feetech SCS", 1.0, "single", Region(3, 2, 66), {}, 0, "big", eeprom_lock=False, answers_all=1
)
