"""Provenance in a report: parameter files, versions, fingerprints, recordings."""

from __future__ import annotations

from collections.abc import Mapping
from xml.etree.ElementTree import Element

from stribeck.evaluate.assessment import Assessed, AssessedRun, Assessment, stated_stepping
from stribeck.model.provenance import Spread
from stribeck.report.markup import Child, element, table
from stribeck.report.words import steps, title

MATCHED = {
    "content": "digest of each run",
    "name": "names of the runs, and the digest of all",
    "nothing": "nothing: the file names no runs, or runs with other names under these names",
}
SAME = {True: "yes", False: "no, or not all of them", None: "not known"}


def file_table(assessment: Assessment, versions: Mapping[str, str]) -> Element:
    """Table of the provenance of each parameter file, and versions of the programs used to create this report."""
    files = assessment.files
    columns = [_origin(one) for one in files]
    rows: list[list[Child]] = [[name, *(column[name] for column in columns), ""] for name in columns[0]]
    names = dict.fromkeys(name for one in files for name in _versions(one)) | dict.fromkeys(versions)
    rows += [
        [f"version of {name}", *(_versions(one).get(name, "") for one in files), versions.get(name, "")]
        for name in names
    ]
    return table(["", *(title(one) for one in files), "this report"], rows, class_="origins")


def _origin(one: Assessed) -> dict[str, Child]:
    file, fitted = one.file, stated_stepping(one.file)
    return {
        "file": element("code", str(one.path)),
        "law": f"{file.law.name.upper()} {file.law.title}",
        "effects": ", ".join(sorted(file.actuator.active_effects)) or "none beyond the paper",
        "fingerprint of its data": element("code", _of(one, "fingerprint"), class_="digest"),
        "these recordings are the fitted ones": SAME[one.same_data],
        "runs matched by": MATCHED[one.matched],
        "split": _of(one, "rule"),
        "simulation of the fit": "not in this file" if fitted is None else steps(fitted),
        "simulation here": steps(one.stepping),
        "temperature of the fit": _spread(file.temperatures, "°C"),
        "supply of the fit": _spread(file.provenance.supply_voltage if file.provenance else None, "V"),
    }


def _versions(one: Assessed) -> Mapping[str, str]:
    return one.file.provenance.versions if one.file.provenance else {}


def _of(one: Assessed, key: str) -> str:
    found = getattr(one.file.provenance.runs, key) if one.file.provenance else ""
    return str(found or "not in this file")


def _spread(found: Spread | None, unit: str) -> str:
    if found is None:
        return "not in this file"
    return ", ".join(f"{key} {value:.3g} {unit}" for key, value in vars(found).items() if value is not None)


def recording_table(assessment: Assessment) -> Element:
    """Table of every recording with its setup."""
    header: list[Child] = ["run", "trajectory", "gain", "mass", "length", "rod", "supply", "temperature"]
    header += ["duration", "samples", "not measured"]
    return table(header, [_row(run) for run in assessment.runs], class_="numbers")


def digest_table(assessment: Assessment) -> Element:
    """Table of the digest of each recording."""
    return table(["run", "SHA-256"], [[run.log.name, element("code", run.digest)] for run in assessment.runs])


def _row(run: AssessedRun) -> list[Child]:
    log, setup = run.log, run.log.setup
    supply, temperature = f"{setup.supply_voltage:.3g} V", "not told"
    if log.supply_voltage is not None:
        values = log.supply_voltage.value
        supply += f" (measured {values.min():.3g} to {values.max():.3g})"
    if log.temperature is not None:
        values = log.temperature.value
        temperature = f"{values.min():.3g} to {values.max():.3g} °C"
    gap = 1.0 - float(run.valid.mean())
    load = f"{setup.mass:.4g} kg", f"{setup.length:.4g} m", f"{setup.arm_mass:.4g} kg"
    size = f"{log.duration:.2f} s", str(len(log.position.time)), f"{100 * gap:.1f} %" if gap > 0 else "0"
    return [log.name, log.trajectory, f"{setup.kp:g}", *load, supply, temperature, *size]
