"""``stribeck data suggest``: which recording would tell most."""

from __future__ import annotations

from pathlib import Path

from stribeck.cli.inputs import check_outputs, check_recorded, parameter_files_of, recordings_of, write_json
from stribeck.cli.options import ParameterFileOptions, RecordingOptions, SimulationOptions, declared, option
from stribeck.cli.table import print_table
from stribeck.errors import ConfigError
from stribeck.evaluate.assessment import stepping_of
from stribeck.model.bench import STANDARD_GRAVITY


@declared
class SuggestOptions(SimulationOptions, RecordingOptions, ParameterFileOptions):
    """Options: a parameter file, and the recordings that it was fitted to."""

    count: int = option("number of suggestions (default: 8)", 8)
    json: Path | None = option("all suggestions for scripts")


def run(options: SuggestOptions) -> int:
    """Print masses, gains and trajectories, ranked by the spread of predicted motions that a run of each would leave."""
    from stribeck.evaluate.suggestion import suggest

    check_outputs([options.json], options.params, options.recordings)
    if len(options.params) != 1:
        raise ConfigError(f"suggest takes one parameter file, found {len(options.params)}")
    files = parameter_files_of(options)
    logs = recordings_of(options, options.servo)
    check_recorded(logs, files, supply=False)
    path, file = files[0]
    found = suggest(file, logs, stepping_of(file, options.step, None, options.integrator))
    print(
        f"Standard deviation of predicted motions due to the uncertainty of the parameters in {path.name}: {1e3 * found.spread:.1f} mrad over all runs below."
    )
    stall = file.actuator.datasheet_torque
    rows, suggestions = [], []
    for one in found.runs:
        trajectory, kp, mass = one.trajectory, one.setup.kp, one.setup.mass
        suggestions.append({"trajectory": trajectory, "kp": kp, "mass": mass, "spread": one.spread})
        suggestions[-1] |= {"information": one.information, "new": list(one.new)}
        weight = f"{100.0 * STANDARD_GRAVITY * one.setup.load / stall:.0f}" if stall else "unknown"
        left, information = f"{1e3 * one.spread:.2f}", f"{one.information:.2f}"
        rows.append([trajectory, f"{kp:g}", f"{mass:.4g}", weight, left, information, ", ".join(one.new)])
    header = ["trajectory", "gain", "mass [kg]", "weight [% of stall torque]", "left after it [mrad]"]
    print_table([*header, "information [nats]", "new"], rows[: options.count])
    write_json(options.json, {"spread": found.spread, "suggestions": suggestions})
    return 0
