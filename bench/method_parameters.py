"""Method parameters of `stribeck identify mechanism`: how far estimates move when each is changed by a factor either way."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from stribeck.identify.mechanism.estimation import MechanismEstimate, MechanismEstimator, Simulator
from stribeck.identify.mechanism.model_file import MechanismModel, read_model
from stribeck.identify.mechanism.recordings import on_grid, read_mechanism_recordings
from stribeck.report.style import drawing, save

SHOWN = {"ratio": "weight ratio", "regularization": "compliance and slip", "step": "time step"}


def changed(model: MechanismModel, method: str, factor: float) -> MechanismModel:
    """A model with one method parameter multiplied."""
    if method == "regularization":
        soft = model.mechanism.regularization
        soft = replace(soft, compliance=factor * soft.compliance, slip=factor * soft.slip)
        return replace(model, mechanism=replace(model.mechanism, regularization=soft))
    settings = model.settings
    return replace(model, settings=replace(settings, **{method: factor * getattr(settings, method)}))


def estimate(model: MechanismModel, files: list[Path]) -> tuple[MechanismEstimate, dict[str, float]]:
    """An estimation from the values of the model file, and the largest RMSE of each signal, simulated from the first sample."""
    mechanism, step = model.mechanism, model.settings.step
    runs = [on_grid(recording, mechanism, step) for recording in read_mechanism_recordings(files, model)]
    found = MechanismEstimator(mechanism, runs, step, model.settings.ratio).estimate()
    simulator = Simulator(mechanism, step, max(len(run.path) for run in runs))
    errors = [simulator.errors(run, found.solution.point.chi) for run in runs]
    return found, {name: max(one[name]["rmse"] for one in errors) for name in errors[0]}


def variants(
    model: MechanismModel, methods: list[str], factor: float
) -> Iterator[tuple[str, str, MechanismModel]]:
    """Each method parameter smaller and larger."""
    for method in methods:
        yield method, f"/ {factor:g}", changed(model, method, 1.0 / factor)
        yield method, f"x {factor:g}", changed(model, method, factor)


def row(label: str, found: MechanismEstimate, errors: dict[str, float], began: float) -> None:
    """A line of the table."""
    values = "  ".join(f"{value:11.5g}" for value in found.solution.point.chi)
    missed = "  ".join(f"{name} {value:.4f}" for name, value in errors.items())
    ended = "converged" if found.solution.converged else "not converged"
    print(f"{label:30s} {values}  {missed}  {ended}, {time.perf_counter() - began:.0f} s", flush=True)


def draw_method_parameters(
    names: Sequence[str],
    values: Mapping[str, Mapping[str, np.ndarray]],
    reference: np.ndarray,
    half_widths: np.ndarray,
) -> Figure:
    """How estimates move with the method parameters, in half-widths of their intervals.

    :param values: for each method parameter the estimates (p,) by the words for its setting.
    """
    with drawing(4.0 * len(values), 0.4 * len(names) + 2.2) as figure:
        panels = figure.subplots(1, len(values), sharey=True, squeeze=False)[0]
        for panel, (method, estimates) in zip(panels, values.items(), strict=True):
            panel.axvspan(-1, 1, color="0.9")
            for k, (setting, estimate) in enumerate(estimates.items()):
                shift = (estimate - reference) / half_widths
                panel.plot(shift, np.arange(len(names)), "o<>sD"[k % 5], label=setting)
            panel.set(title=method, xlabel="shift / half-width of the interval")
            panel.set_yticks(np.arange(len(names)), names)
            panel.legend(fontsize=8)
    return figure


def main() -> None:
    """Table and picture; shifts in half-widths of the intervals of the unchanged estimation."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="furuta_lund")
    parser.add_argument("--data", nargs="+", type=Path, required=True)
    parser.add_argument("--factor", type=float, default=3.0)
    parser.add_argument("--step", type=float, help="another time step than that of the model [s]")
    parser.add_argument("--methods", nargs="+", choices=list(SHOWN), default=list(SHOWN))
    parser.add_argument("--output", type=Path, default=Path("method_parameters.png"))
    arguments = parser.parse_args()
    model = read_model(arguments.model)
    if arguments.step is not None:
        model = replace(model, settings=replace(model.settings, step=arguments.step))
    names = model.mechanism.parameters.free_names
    print(" " * 30, "  ".join(f"{name[:11]:>11s}" for name in names))
    began = time.perf_counter()
    reference, errors = estimate(model, arguments.data)
    row("as in the model", reference, errors, began)
    intervals = reference.sensitivity.intervals
    told = [k for k, name in enumerate(names) if name in intervals]
    half = np.array([0.5 * (intervals[names[k]][1] - intervals[names[k]][0]) for k in told])
    center = reference.solution.point.chi[told]
    print("half-widths", "  ".join(f"{names[k]} {width:.3g}" for k, width in zip(told, half, strict=True)))
    drawn: dict[str, dict[str, np.ndarray]] = {}
    for method, word, model_changed in variants(model, arguments.methods, arguments.factor):
        began = time.perf_counter()
        found, errors = estimate(model_changed, arguments.data)
        row(f"{SHOWN[method]} {word}", found, errors, began)
        values = found.solution.point.chi[told]
        print("   shift / half-width", np.array2string((values - center) / half, precision=2), flush=True)
        drawn.setdefault(SHOWN[method], {})[word] = values
        save(draw_method_parameters([names[k] for k in told], drawn, center, half), arguments.output)


if __name__ == "__main__":
    main()
