"""``stribeck demo``: fit the bundled simulated recordings, and show the result beside the truth.

The recordings were simulated with the published parameters of the servo.
"""

from __future__ import annotations

import argparse

from stribeck.cli import diagram, plot
from stribeck.cli.main import main
from stribeck.cli.table import print_table
from stribeck.io.files import check_writable, shared_directory
from stribeck.io.parameter_file import read_parameter_file
from stribeck.io.recordings import read_recordings

RECORDINGS = "xl330_simulated"
LAW = "m6"
MAX_TORQUE = 0.5
"""End of the diagram: about the stall torque of the servo [N m]."""


def run(arguments: argparse.Namespace) -> int:
    """The command that a user would type, then pictures and the comparison with the truth."""
    folder = shared_directory("bags") / RECORDINGS
    fitted = arguments.output / f"{LAW}.json"
    check_writable(fitted)
    command = [
        "fit",
        "--model",
        LAW,
        "--logdir",
        str(folder),
        "--output",
        str(fitted),
        "--seed",
        str(arguments.seed),
    ]
    print(f"stribeck {' '.join(command)}", flush=True)
    code = main(command)
    if code != 0:
        return code
    found = read_parameter_file(fitted)
    truth = found.actuator.published[LAW]
    intervals = found.provenance.intervals if found.provenance else {}
    rows = []
    for name, value in truth.items():
        within = ""
        if name in intervals:
            lower, upper = intervals[name]
            within = "yes" if lower <= value <= upper else "no"
        rows.append([name, f"{value:.5g}", f"{found.values[name]:.5g}", within])
    print("\nThe recordings are simulated, so the truth is known:")
    print_table(["parameter", "true", "found", "true value within the interval"], rows)
    logs = read_recordings(folder)
    pictures = plot.draw(arguments.output / "plots", logs, [(fitted, found)], dt=0.005, reset_period=None)
    diagram.draw(arguments.output / "diagram.png", [(fitted, found)], MAX_TORQUE)
    print(
        f"\nparameter file  {fitted}\nall runs        {pictures[0]}\ndiagram         {arguments.output / 'diagram.png'}"
    )
    return 0
