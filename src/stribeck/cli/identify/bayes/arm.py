"""``stribeck identify arm --bayes``: mechanical parameters of an arm from a prior, measured inertias or recorded torques."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from stribeck.cli.identify.bayes.arm_files import ArmAnswer, write_files
from stribeck.cli.identify.bayes.arm_study import ArmStudy
from stribeck.cli.identify.bayes.options import ArmBayesOptions
from stribeck.cli.identify.bayes.print import print_summary
from stribeck.cli.inputs import write_json
from stribeck.cli.table import print_table
from stribeck.errors import ConfigError
from stribeck.files.robots import RobotConfig, read_robot
from stribeck.identify.arm.model import ArmModel, load_arm
from stribeck.identify.arm.recordings import ArmRecording
from stribeck.identify.arm.residuals import scores
from stribeck.identify.posterior.arm import ArmDraws, Posterior, unit_of, zero_shot
from stribeck.identify.posterior.diagnostics import Summary, summarise, write_netcdf
from stribeck.identify.posterior.few_data import FewData, few_data
from stribeck.identify.posterior.knowledge import ArmDatasheet, prior_named, reach_of, read_table, total_mass
from stribeck.identify.posterior.likelihood import InertiaPosterior
from stribeck.identify.posterior.measures import (
    mean_torque,
    measures,
    nominal_of,
    predictive_counts,
    torques_of,
    total_variation,
)
from stribeck.model.arrays import Array
from stribeck.model.estimate import Estimate, estimates_to_json
from stribeck.model.verdict import Verdict
from stribeck.report.bayes_figures import (
    draw_densities,
    draw_error_by_seconds,
    draw_intervals,
    draw_links,
    draw_torques,
)
from stribeck.report.style import save_all

PRIOR_DRAWS = 2000


@dataclass(frozen=True, eq=False)
class PosteriorDraws:
    """Draws of the prior, of the posterior, and of the posterior that treats all samples as independent."""

    before: ArmDraws
    after: ArmDraws | None
    beside: ArmDraws | None
    measured: Array | None

    def estimates(self, joints: Sequence[str]) -> dict[str, Estimate]:
        """All parameters with their status; without measurements none is determined."""
        names, prior = self.before.named(joints)
        summary = summarise(*self.last.named(joints))
        return summary.estimates([unit_of(name) for name in names], _flat(prior))

    @property
    def last(self) -> ArmDraws:
        """Draws of the posterior, or of the prior if there are no measurements."""
        return self.before if self.after is None else self.after


def run_arm(options: ArmBayesOptions, config: str) -> int:
    """Read, sample, and write the results."""
    started = time.perf_counter()
    study = _study(options, config)
    if options.seconds is not None:
        return _by_seconds(study, options.seconds)
    results = _sampled(study)
    names, values = results.last.named(study.arm.joints)
    summary = summarise(names, values)
    seconds = time.perf_counter() - started
    content = _content(study, results, summary) | {"wall_seconds": seconds}
    written, verdict = _files(study, results, summary.converged)
    content |= {} if verdict is None else verdict.to_json(study.arm.joints)
    _write(study, results, content)
    after = results.after
    mode = "zero-shot: the prior's prediction" if after is None else f"{after.divergences} divergences"
    print(f"{study.robot.title}, prior {options.prior}: {mode}")
    print_summary(summary, results.estimates(study.arm.joints), seconds)
    _tell(content)
    print(*written, *([] if verdict is None else verdict.lines()), sep="\n")
    return 0


def _files(study: ArmStudy, results: PosteriorDraws, converged: bool) -> tuple[list[Path], Verdict | None]:
    """The files of ``--output``, and the verdict on them."""
    options = study.options
    if options.output is None or results.after is None:
        return [], None
    fitted, others = (
        study.motions(paths) if paths else [] for paths in (options.recordings, options.validate)
    )
    of_draws = (results.after, results.estimates(study.arm.joints), converged)
    answer = ArmAnswer(*of_draws, fitted, others, study.runs(options.recordings))
    return write_files(options.output, study, answer)


def _study(options: ArmBayesOptions, config: str) -> ArmStudy:
    robot = read_robot(config)
    arm = _arm(options, robot)
    rotors = None if options.rotors is None else np.array(options.rotors)
    _check(options, arm, rotors)
    sheet = ArmDatasheet(
        options.total_mass or total_mass(arm),
        options.reach or reach_of(arm),
        np.full(len(arm), 1.0) if rotors is None else rotors,
    )
    table = read_table(options.table) if options.prior == "empirical" else None
    return ArmStudy(options, robot, arm, prior_named(options.prior, arm, sheet, table), rotors)


def _arm(options: ArmBayesOptions, robot: RobotConfig) -> ArmModel:
    folders = [*options.recordings, *([] if options.inertias is None else [options.inertias.parent])]
    path = options.model or robot.find_urdf(folders)
    if path is None:
        raise ConfigError(f"{robot.path} names no URDF that can be found: give --model")
    return load_arm(path, robot.joints)


def _check(options: ArmBayesOptions, arm: ArmModel, rotors: Array | None) -> None:
    if options.recordings and options.inertias is not None:
        raise ConfigError("recordings and --inertias are alternative measurements: give only one of them")
    if (options.independent or options.seconds is not None) and not options.recordings:
        raise ConfigError("--independent and --seconds need recorded torques: name recordings")
    if rotors is not None and len(rotors) != len(arm):
        raise ConfigError(f"--rotors: expected {len(arm)} inertias, found {len(rotors)}")
    if rotors is None and (options.prior != "cad" or not options.recordings):
        raise ConfigError(
            "--rotors missing: give the inertias of the rotors at the joints, that is the motor's datasheet value times the gear ratio squared"
        )


def _sampled(study: ArmStudy) -> PosteriorDraws:
    options, measured, beside = study.options, None, None
    posterior: Posterior
    if options.recordings:
        posterior = study.torques(discrepancy=True)
        if options.independent:
            beside = study.infer(study.torques(discrepancy=False), None)
    else:
        posterior, measured = study.inertias()
    before = zero_shot(posterior, PRIOR_DRAWS, options.seed)
    after = study.infer(posterior, measured) if options.recordings or measured is not None else None
    return PosteriorDraws(before, after, beside, measured)


def _by_seconds(study: ArmStudy, lengths: Sequence[float]) -> int:
    """Compare posterior and least squares, both from the first seconds of a recording."""
    options = study.options

    def done(length: float) -> None:
        if not options.quiet:
            print(f"{length:g} s done", file=sys.stderr)

    run = study.runs(options.recordings)[0]
    results = few_data(
        study.prior,
        study.machine,
        run,
        study.config.protocol,
        sorted(lengths),
        options.seed,
        draws=options.draws,
        rotors_known=study.rotors is not None,
        done=done,
    )
    written, verdict = _files_of(study, results[-1], run)
    rows = [
        [f"{one.seconds:g}", f"{100 * one.posterior:.2f}", f"{100 * one.least_squares:.2f}"]
        for one in results
    ]
    print(
        f"{study.robot.title}, prior {options.prior}: error of the torque in the rest of {run.name}, rows in motion"
    )
    print_table(["seconds of data", "posterior [%]", "weighted least squares [%]"], rows)
    for one in (one for one in results if not one.plain):
        print(
            f"- {one.seconds:g} s do not excite all parameters: the least-squares solution is that of minimum norm"
        )
    columns = {
        name: [getattr(one, name) for one in results] for name in ("seconds", "posterior", "least_squares")
    }
    head = {"kind": "few data", "machine": study.robot.name, "prior": options.prior}
    write_json(options.json, head | columns)
    if options.plot is not None:
        print(
            *save_all({"error_by_seconds": draw_error_by_seconds(*columns.values())}, options.plot), sep="\n"
        )
    print(*written, *([] if verdict is None else verdict.lines()), sep="\n")
    return 0


def _files_of(study: ArmStudy, found: FewData, run: ArmRecording) -> tuple[list[Path], Verdict | None]:
    """The files of ``--output`` from the longest part of a recording, validated on its rest."""
    if study.options.output is None:
        return [], None
    names, values = found.draws.named(study.arm.joints)
    summary = summarise(names, values)
    before = zero_shot(found.draws.posterior, PRIOR_DRAWS, study.options.seed)
    estimates = PosteriorDraws(before, found.draws, None, None).estimates(study.arm.joints)
    answer = ArmAnswer(found.draws, estimates, summary.converged, [found.train], [found.test], [run])
    return write_files(study.options.output, study, answer)


def _content(study: ArmStudy, results: PosteriorDraws, summary: Summary) -> dict[str, Any]:
    """The content of the ``--json`` file."""
    options, joints = study.options, study.arm.joints
    names, prior = results.before.named(joints)
    lambdas = summarise(study.base.expressions(), results.last.standard @ study.base.projection.T)
    nominal = nominal_of(study.arm, study.rotors)
    content: dict[str, Any] = {
        "kind": "arm",
        "machine": study.robot.name,
        "prior": options.prior,
        "mode": "zero-shot" if results.after is None else "inference",
        "converged": summary.converged,
        "parameters": summary.json,
        "estimates": estimates_to_json(results.estimates(joints)),
        "base_parameters": lambdas.json,
        "measures": {"prior": measures(results.before, study.base, nominal, results.measured)},
        "within_intervals": {
            name: predictive_counts(draws, study.base, nominal, results.measured)
            for name, draws in (("prior", results.before), ("posterior", results.after))
            if draws is not None
        },
    }
    if results.after is not None:
        content["divergences"] = results.after.divergences
        content["measures"]["posterior"] = measures(results.after, study.base, nominal, results.measured)
        pairs = zip(names, _flat(prior).T, _flat(results.after.named(joints)[1]).T, strict=True)
        content["total_variation"] = {name: total_variation(first, then) for name, first, then in pairs}
    if results.beside is not None:
        content["independent"] = {"parameters": summarise(*results.beside.named(joints)).json}
    if options.validate:
        motions = study.motions(options.validate)
        for name, draws in (("prior", results.before), ("posterior", results.after)):
            if draws is not None:
                rest = study.config.protocol.rest
                means = [mean_torque(draws, study.machine, motion, rest) for motion in motions]
                content["measures"][name]["torque_error"] = 100.0 * scores(motions, means)["moving"]["all"]
    return content


WORDS = {
    "mechanical_mae": "mechanical parameters from the URDF, MAE [%]",
    "mechanical_cosine": "the same, cosine similarity",
    "base_mae": "base parameters from the URDF, MAE [%]",
    "base_cosine": "the same, cosine similarity",
    "inertia_rmse": "measured inertias, RMSE [%]",
    "torque_error": "torques of --validate, relative error [%]",
}

COUNTED = {
    "mechanical_parameters": "mechanical parameters of the URDF",
    "base_parameters": "base parameters of the URDF",
    "inertias": "measured inertias",
}


def _tell(content: dict[str, Any]) -> None:
    """Print the performance measures as a table."""
    for title, found, words, shape in (
        ("of the means", content["measures"], WORDS, "{:.4g}"),
        ("within 95 % intervals", content["within_intervals"], COUNTED, "{0[0]} of {0[1]}"),
    ):
        rows = [[words[key], *(shape.format(one[key]) for one in found.values())] for key in found["prior"]]
        if rows:
            print()
            print_table([title, *found], rows)


def _write(study: ArmStudy, results: PosteriorDraws, content: dict[str, Any]) -> None:
    options = study.options
    names, prior = results.before.named(study.arm.joints)
    write_json(options.json, content)
    if options.netcdf is not None:
        values = results.last.named(study.arm.joints)[1]
        kept = None if results.after is None else {name: prior[..., k] for k, name in enumerate(names)}
        write_netcdf(options.netcdf, {name: values[..., k] for k, name in enumerate(names)}, kept)
    if options.plot is not None:
        print(*save_all(_figures(study, results), options.plot), sep="\n")


def _figures(study: ArmStudy, results: PosteriorDraws) -> dict[str, Figure]:
    joints, before, after = study.arm.joints, results.before, results.after
    names, prior = before.named(joints)
    last = [k for k, name in enumerate(names) if name.endswith(f"_{joints[-1]}")]

    def picked(draws: ArmDraws | None) -> Array | None:
        return None if draws is None else _flat(draws.named(joints)[1])[:, last]

    def inertias(draws: ArmDraws | None, rows: Array) -> Array | None:
        return None if draws is None else _flat(draws.inertias(rows))

    titles = [f"{names[k]} [{unit_of(names[k])}]" for k in last]
    rows, nominal = study.base.projection, nominal_of(study.arm, study.rotors)
    figures = {
        "posterior": draw_densities(titles, _flat(prior)[:, last], picked(after), picked(results.beside)),
        "links": draw_links(joints, _parts(study, before, after)),
        "base_parameters": draw_intervals(
            "base parameters",
            "kg m²",
            _flat(before.inertias(rows)),
            inertias(after, rows),
            None if nominal is None else rows @ nominal.standard,
            "URDF",
        ),
    }
    if isinstance(before.posterior, InertiaPosterior):
        rows = before.posterior.regressor
        figures["inertias"] = draw_intervals(
            "inertias of the axes",
            "kg m²",
            _flat(before.inertias(rows)),
            inertias(after, rows),
            results.measured,
        )
    shown = study.options.validate or study.options.recordings
    if shown:
        motion, rest = study.motions(shown)[0], study.config.protocol.rest
        drawn = [None if d is None else torques_of(d, study.machine, motion, rest) for d in (before, after)]
        assert drawn[0] is not None  # noqa: S101
        figures["torques"] = draw_torques(motion.time, joints, drawn[0], drawn[1], motion.torque)
    return figures


def _parts(
    study: ArmStudy, before: ArmDraws, after: ArmDraws | None
) -> dict[str, tuple[Array, Array | None, Array | None]]:
    """Draws of masses, centres of mass, inertias and rotors with their URDF values, for :func:`draw_links`."""
    labels = (
        "mass [kg]",
        "centre of mass x, y, z [m]",
        "inertia xx, yy, zz, xy, xz, yz [kg m²]",
        "motor inertia [kg m²]",
    )
    nominal = nominal_of(study.arm, study.rotors)
    parts = {}
    for k, label in enumerate(labels):
        draws = [
            None if d is None else d.links[k].reshape(-1, len(study.arm), d.links[k][0, 0, 0].size)
            for d in (before, after)
        ]
        urdf = None if nominal is None else np.reshape(nominal.links[k], (len(study.arm), -1))
        assert draws[0] is not None  # noqa: S101
        parts[label] = (draws[0], draws[1], urdf)
    return parts


def _flat(draws: Array) -> Array:
    """Merge the draws of all chains (C S, P)."""
    return draws.reshape(-1, draws.shape[-1])
