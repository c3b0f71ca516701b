"""Files of drives, in JSON: what an identification found of one joint or of many.

A file with one joint has the flat keys of its values at the top (:mod:`stribeck.files.drive_entry`), so that other programs
read it unchanged; the block ``stribeck`` contains all else. A file with several joints has such content for each under
``joints``. Files of earlier versions are read as well (:mod:`stribeck.files.earlier_drives`).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from stribeck.errors import ParameterFileError
from stribeck.files.drive_entry import (
    BLOCK,
    DriveBlock,
    VerdictEntry,
    block_of,
    drive_of,
    flat_of,
    plain_of,
    take_head,
    verdict_to_json,
)
from stribeck.files.earlier_drives import EarlierBlock, EarlierMechanismFile, EarlierRobotFile
from stribeck.files.folders import save_json
from stribeck.files.schema import Schema, convert, mapping, read_json
from stribeck.model.actuator import Actuator
from stribeck.model.estimate import Estimate, estimates_to_json
from stribeck.model.joint import Drive
from stribeck.model.provenance import Provenance
from stribeck.model.verdict import Verdict

SCHEMA = 3


@dataclass(frozen=True)
class MachineParameters:
    """What was identified of a robot or mechanism besides its drives.

    :param name: of the model.
    :param estimates: of its parameters: attitude of the base, masses, lengths, inertias.
    """

    name: str = ""
    estimates: Mapping[str, Estimate] = field(default_factory=dict)


@dataclass(frozen=True)
class Drives:
    """The content of a file.

    :param joints: drives by name of the joint; the name may be empty if there is one.
    :param machine: parameters besides those of the drives.
    :param verdict: on all joints together.
    :param provenance: origin of all parameters.
    """

    joints: Mapping[str, Drive]
    machine: MachineParameters = field(default_factory=MachineParameters)
    verdict: Verdict | None = None
    provenance: Provenance | None = None

    def drive(self, joint: str, where: Path | str) -> Drive:
        """The drive of a joint; of a file with one joint that one, whatever its name.

        :raises ParameterFileError: if it has several, and none of that name.
        """
        if len(self.joints) == 1:
            return next(iter(self.joints.values()))
        if joint in self.joints:
            return self.joints[joint]
        names = ", ".join(self.joints) or "none"
        wanted = (
            f"no joint {joint!r}"
            if joint
            else (
                "the file must contain one joint, or the joint must be chosen with `file_joint` of `evaluate`"
            )
        )
        raise ParameterFileError(f"{where}: {wanted}; it has {names}")


class OneJointBlock(DriveBlock, kw_only=True):
    """The block ``stribeck`` of a file with one joint.

    :param schema: version of the format.
    :param joint: name of the joint.
    :param machine: parameters of the machine besides those of the drive.
    :param provenance: origin of all parameters.
    """

    schema: Literal[3]
    joint: str = ""
    machine: MachineParameters = MachineParameters()
    provenance: Provenance | None = None


class ManyJointsFile(Schema):
    """A file with several joints.

    :param schema: version of the format.
    :param joints: joints by name, each with flat keys and a block ``stribeck``.
    :param machine: parameters of the machine besides those of the drives.
    :param verdict: on all joints together.
    :param provenance: origin of all parameters.
    """

    schema: Literal[3]
    joints: dict[str, dict[str, Any]]
    machine: MachineParameters = MachineParameters()
    verdict: VerdictEntry | None = None
    provenance: Provenance | None = None


def joined(files: Mapping[str, Drives]) -> Drives:
    """The drives of several joints that were identified one by one, as one file.

    Runs of all of them are listed; time step, search and choice of the law are those of the first joint.

    :param files: files with one joint each, by name of the joint.
    :raises ParameterFileError: without files.
    """
    if not files:
        raise ParameterFileError("no files of drives to join")
    drives = {name: content.drive(name, name) for name, content in files.items()}
    reasons = tuple(
        replace(reason, joint=name)
        for name, drive in drives.items()
        if drive.verdict is not None
        for reason in drive.verdict.reasons
    )
    origins = [drive.provenance for drive in drives.values() if drive.provenance is not None]
    provenance = None
    if origins:
        every = [origin.runs for origin in origins]

        def of_all(name: str) -> tuple[Any, ...]:
            return tuple(dict.fromkeys(run for runs in every for run in getattr(runs, name)))

        digests = {run: digest for runs in every for run, digest in runs.digests.items()}
        runs = replace(
            every[0],
            train=of_all("train"),
            validation=of_all("validation"),
            unreadable=of_all("unreadable"),
            digests=digests,
            fingerprint="",
            inputs="",
        )
        provenance = replace(origins[0], runs=runs)
    verdict = Verdict(reasons, tuple(drives))
    return Drives(drives, verdict=verdict, provenance=provenance)


def write_drives(path: Path, content: Drives) -> None:
    """Write a file atomically; the origin of a file with one joint is that of its drive, unless another is given.

    :raises OutputError: if it cannot be written.
    """
    whole: dict[str, Any] = {}
    if content.machine != MachineParameters():
        whole["machine"] = {
            "name": content.machine.name,
            "estimates": estimates_to_json(content.machine.estimates),
        }
    alone = next(iter(content.joints.values())).provenance if len(content.joints) == 1 else None
    provenance = content.provenance or alone
    if provenance is not None:
        whole["provenance"] = plain_of(provenance)
    if len(content.joints) == 1:
        ((name, drive),) = content.joints.items()
        named = {"joint": name} if name else {}
        save_json(path, flat_of(drive) | {BLOCK: {"schema": SCHEMA, **named, **block_of(drive), **whole}})
        return
    if content.verdict is not None:
        whole["verdict"] = verdict_to_json(content.verdict)
    joints = {name: flat_of(drive) | {BLOCK: block_of(drive)} for name, drive in content.joints.items()}
    save_json(path, {"schema": SCHEMA, "joints": joints, **whole})


def write_drive(path: Path, drive: Drive) -> None:
    """Write a file with one joint atomically.

    :raises OutputError: if it cannot be written.
    """
    write_drives(path, Drives({"": drive}, provenance=drive.provenance))


def read_drives(path: Path, actuator: Actuator | None = None) -> Drives:
    """Read a file of drives, of this version, an earlier one, or another program that knows only the flat keys.

    Values may lie outside the search bounds. Keys of optional terms switch these on; ``q_offset`` may be missing and is then zero.

    :param actuator: the servo, if the file neither describes it nor names an installed one.
    :raises ParameterFileError: for a file that is damaged, has missing or unknown keys, or values
        that are not finite, negative where they must not be, or otherwise impossible.
    """
    where = str(path)
    data = read_json(path, dict[str, Any], ParameterFileError)
    if "joints" in data:
        return _many(convert(data, ManyJointsFile, where, ParameterFileError), actuator, where)
    if "per_joint" in data:
        robot = convert(data, EarlierRobotFile, where, ParameterFileError)
        return Drives(robot.drives(), MachineParameters("", robot.base), verdict=robot.stated)
    if data.get("kind") == "mechanism":
        mechanism = convert(data, EarlierMechanismFile, where, ParameterFileError)
        estimates = {name: entry.estimate for name, entry in mechanism.parameters.items()}
        return Drives({}, MachineParameters(mechanism.model, estimates))
    return _one(data, actuator, where)


def read_drive(path: Path, actuator: Actuator | None = None, joint: str = "") -> Drive:
    """Read the drive of a joint, see :func:`read_drives`.

    :param joint: its name, needed if the file has several.
    """
    return read_drives(path, actuator).drive(joint, path)


def _many(file: ManyJointsFile, actuator: Actuator | None, where: str) -> Drives:
    joints = {}
    for name, content in file.joints.items():
        place = f"{where}: joints: {name}"
        found = content.get(BLOCK, {})
        block = convert(found, DriveBlock, f"{place}: {BLOCK}", ParameterFileError)
        drive = drive_of(take_head(content, place), content, block, actuator, place)
        joints[name] = replace(drive, provenance=file.provenance)
    verdict = None if file.verdict is None else Verdict(file.verdict.reasons, tuple(file.joints))
    return Drives(joints, file.machine, verdict, file.provenance)


def _one(data: dict[str, Any], actuator: Actuator | None, where: str) -> Drives:
    place, content = f"{where}: {BLOCK}", data.get(BLOCK)
    head = take_head(data, where)
    if content is None:
        return Drives({"": drive_of(head, data, DriveBlock(), actuator, where)})
    if mapping(content, place, ParameterFileError).get("schema") == 1:
        earlier = convert(content, EarlierBlock, place, ParameterFileError)
        values = {"q_offset": 0.0, **convert(data, dict[str, float], where, ParameterFileError)}
        drive = drive_of(head, data, earlier.drive_block(values, place), actuator, where)
        provenance: Provenance | None = earlier.provenance(place)
        return Drives({"": replace(drive, provenance=provenance)}, provenance=provenance)
    block = convert(content, OneJointBlock, place, ParameterFileError)
    drive = drive_of(head, data, block, actuator, where)
    joints = {block.joint: replace(drive, provenance=block.provenance)}
    return Drives(joints, block.machine, drive.verdict, block.provenance)
