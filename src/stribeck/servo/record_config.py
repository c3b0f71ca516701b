"""``record.yaml``: servos on a bus, what to play on them, and where the bags go. Read strictly.

The file is a driver's configuration (:mod:`stribeck.servo.config`) whose joints also say what
:mod:`stribeck.session.config` needs, with ``plays``, ``soft_start``, ``output`` and
``supply_voltage`` beside them. ``config/record.yaml`` explains every key.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from stribeck.errors import ConfigError
from stribeck.io import strict
from stribeck.servo.config import JOINT_OPTIONAL, JOINT_REQUIRED, OPTIONS, DriverConfig, driver_config
from stribeck.session.bags import BenchJoint
from stribeck.session.config import JOINT_KEYS, SessionConfig, session_config
from stribeck.session.limits import check_plays

BUS_KEYS = ("port", "baud_rate", "joints")
OWN_KEYS = ("plays", "soft_start", "output", "supply_voltage", "state_timeout")
ALL_OPTIONS = (*OPTIONS, "soft_start", "supply_voltage", "state_timeout")


@dataclass(frozen=True)
class RecordConfig:
    """What to record with which servos.

    :param driver: bus and servos.
    :param session: plays, limits, loads.
    :param output: folder for the bags.
    :param supply_voltage: as set on the power supply [V]; ``None``: as the servos measure it at rest.
    :raises ConfigError: for plays that do not fit the joints, or gains that a servo does not have.
    """

    driver: DriverConfig
    session: SessionConfig
    output: Path
    supply_voltage: float | None = None

    def __post_init__(self) -> None:
        for joint in self.driver.joints:
            if not joint.actuator:
                raise ConfigError(
                    f"joint {joint.name!r}: no actuator is called {joint.servo.model.name!r}: say with actuator: "
                    "which family of config/actuators it is, or the path of a YAML file"
                )
            if not joint.servo.follows_position:
                raise ConfigError(
                    f"joint {joint.name!r}: recordings need a goal position, found mode {joint.servo.mode!r}; "
                    "valid: position, current_position"
                )
            for play in self.session.plays:
                joint.check_gain(play.kp)
        check_plays(self.session.plays, self.session.joints, releases_torque=True)

    @property
    def bench_joints(self) -> tuple[BenchJoint, ...]:
        """What recordings say of the joints."""
        return tuple(
            BenchJoint(joint.name, joint.actuator, load, float(joint.servo.i_gain), float(joint.servo.d_gain))
            for joint, load in zip(self.driver.joints, self.session.benches, strict=True)
        )

    def with_changes(
        self, *, port: str | None = None, rate: float | None = None, output: Path | None = None
    ) -> RecordConfig:
        """The same with what a command line overrules."""
        driver = replace(
            self.driver,
            port=self.driver.port if port is None else port,
            rate=self.driver.rate if rate is None else rate,
        )
        return replace(self, driver=driver, output=self.output if output is None else output)


def read_record_config(path: Path) -> RecordConfig:
    """Read what to record from a YAML file.

    :raises ConfigError: for a file that is not valid, or plays that do not fit.
    """
    found = _content(path)
    strict.check_keys(found, (*BUS_KEYS, "plays", "output"), ALL_OPTIONS, str(path), ConfigError)
    joints = strict.mapping(found["joints"], f"{path}: joints", ConfigError)
    driver = _driver(found, path)
    voltage = found.get("supply_voltage")
    return RecordConfig(
        driver=driver,
        session=session_config(
            joints,
            found["plays"],
            found.get("soft_start", {}),
            str(path),
            position_margin=driver.position_margin,
            state_timeout=found.get("state_timeout"),
        ),
        output=Path(strict.text(found["output"], f"{path}: output", ConfigError)),
        supply_voltage=None if voltage is None else _voltage(voltage, f"{path}: supply_voltage"),
    )


def read_servos(path: Path) -> DriverConfig:
    """The servos alone: from a file as :func:`read_record_config` reads it, or one without what is for recordings.

    :raises ConfigError: for a file that is not valid.
    """
    return _driver(_content(path), path)


def _content(path: Path) -> Mapping[str, Any]:
    data = strict.parse_yaml(strict.read_text(path, ConfigError), path, ConfigError)
    return strict.mapping(data, str(path), ConfigError)


def _driver(found: Mapping[str, Any], path: Path) -> DriverConfig:
    strict.check_keys(found, BUS_KEYS, (*ALL_OPTIONS, "plays", "output"), str(path), ConfigError)
    own = {key: value for key, value in found.items() if key not in OWN_KEYS}
    if isinstance(joints := found["joints"], dict):
        own["joints"] = {
            name: _for_driver(value, f"{path}: joint {name!r}") for name, value in joints.items()
        }
    return driver_config(own, str(path))


def _for_driver(joint: Any, what: str) -> Any:
    """What a driver wants to know of a joint; of what is no joint's the message lists all that may stand there."""
    if not isinstance(joint, dict):
        return joint
    strict.check_keys(joint, JOINT_REQUIRED, (*JOINT_OPTIONAL, *JOINT_KEYS), what, ConfigError)
    return {key: value for key, value in joint.items() if key not in JOINT_KEYS}


def _voltage(value: Any, what: str) -> float:
    found = strict.number(value, what, ConfigError)
    if found <= 0.0:
        raise ConfigError(f"{what} must be positive, found {found:g} V; leave it out to use what is measured")
    return found
