"""Fit friction laws on simulated pendulums and test them on a simulated arm of two links (docs/validation_2r.md).

python examples/two_links/validate_2r.py --servos mx --output mx/

On a real arm of two servos: ``--write-paths paths/`` writes the paths for a session, ``--recordings bags/ --params mx/`` compares its bags.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from stribeck.cli.exit_codes import DONE, INTERRUPTED
from stribeck.cli.inputs import check_distinct
from stribeck.cli.main import exit_code
from stribeck.cli.options import choices_of, count, seed
from stribeck.cli.stop import StopRequest
from stribeck.cli.table import format_table
from stribeck.errors import ConfigError
from stribeck.files.actuators import load_actuator
from stribeck.files.drives import read_drive, write_drive
from stribeck.files.folders import check_writable, write_atomically
from stribeck.identify.servo.drive import fitted_drive
from stribeck.identify.servo.identify import identify
from stribeck.identify.servo.objective import split_runs
from stribeck.identify.servo.result import FitResult, FitSettings
from stribeck.identify.servo.task import task_for
from stribeck.model.joint import Drive
from stribeck.model.law import LAWS, law_named
from stribeck.report.style import save
from two_link import end_point
from two_link_benches import BENCHES, Bench, bench_named
from two_link_figures import LawErrors, PathDrawing, draw_followed_paths, draw_law_errors
from two_link_recordings import read_paths, validate_recordings, write_paths
from two_link_validation import Validation, pendulum_runs, truth_of, validate

SCHEMA = 1

HELD_OUT = 0.25
"""Share of the pendulum runs that is not fitted (Duclusaud et al., §V-B)."""

RESULTS = ("errors.txt", "errors.csv", "summary.json", "errors.png", "paths.png")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the validation; an error is one line and exit code 1."""
    arguments = build_parser().parse_args(argv)
    return exit_code(lambda: run(arguments))


def build_parser() -> argparse.ArgumentParser:
    """The options of the program."""
    parser = argparse.ArgumentParser(description="laws of pendulums, tried on a simulated arm of two links")
    parser.add_argument(
        "--servos",
        choices=tuple(BENCHES),
        default="mx",
        help="the arm: Dynamixel MX-106 and MX-64, or eRob80 1:100 and 1:50 (default: mx)",
    )
    parser.add_argument(
        "--output",
        type=Path,
        default=Path("stribeck-validate-2r"),
        metavar="DIR",
        help="folder for the results (default: stribeck-validate-2r)",
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="figures for scripts")
    parser.add_argument(
        "--models",
        type=choices_of(tuple(LAWS)),
        default=tuple(LAWS),
        metavar="LIST",
        help="laws (default: all)",
    )
    parser.add_argument(
        "--paths",
        type=choices_of(tuple(BENCHES["mx"].paths)),
        default=(),
        metavar="LIST",
        help=f"{','.join(BENCHES['mx'].paths)} (default: all)",
    )
    parser.add_argument(
        "--params", type=Path, metavar="DIR", help="try SERVO/LAW.json of this folder instead of fitting"
    )
    parser.add_argument(
        "--runs", type=count, default=100, metavar="N", help="pendulum runs of each servo (default: 100)"
    )
    parser.add_argument(
        "--trials", type=count, default=60_000, metavar="N", help="evaluations of each fit (default: 60000)"
    )
    parser.add_argument(
        "--write-paths",
        type=Path,
        metavar="DIR",
        help="write the paths as trajectories of a session, and end",
    )
    parser.add_argument(
        "--recordings",
        type=Path,
        metavar="BAGS",
        help="compare with recorded runs of a real arm instead of a simulated one",
    )
    parser.add_argument(
        "--joints",
        type=str,
        default="joint_1,joint_2",
        metavar="LIST",
        help="names of both joints in paths and recordings, from the base outwards (default: joint_1,joint_2)",
    )
    parser.add_argument("--seed", type=seed, default=0, metavar="N", help="(default: 0)")
    return parser


def run(arguments: argparse.Namespace) -> int:
    """Simulate pendulums, fit, read the parameter files back, and test them on the arm."""
    bench = bench_named(arguments.servos)
    paths = arguments.paths or tuple(bench.paths)
    if arguments.write_paths is not None:
        print(*write_paths(arguments.write_paths, bench, paths, _joints(arguments)), sep="\n")
        return DONE
    _check_outputs(arguments, bench)
    recorded = None
    if arguments.recordings is not None:
        if arguments.params is None:
            raise ConfigError(
                "--recordings needs --params DIR, the folder of parameter files SERVO/LAW.json to compare"
            )
        recorded = read_paths(arguments.recordings, bench, _joints(arguments))
    if arguments.params is None:
        with StopRequest.on_signals() as stop:
            for servo in bench.servos:
                _fit_servo(arguments, bench, servo, stop)
            if stop():
                return INTERRUPTED
    folder = arguments.params or arguments.output
    laws = {law: _servos(folder, bench, law) for law in arguments.models}
    begin = time.perf_counter()
    if recorded is not None:
        found = validate_recordings(recorded, laws)
    else:
        one, two = (truth_of(load_actuator(servo)) for servo in bench.servos)
        found = validate(bench, (one, two), laws, paths)
    tried = (
        f"{len(laws)} laws on {len(found.tests.names)} {'recorded runs' if recorded else 'simulated tests'}"
    )
    print(f"\n{bench.title}: {tried} in {time.perf_counter() - begin:.1f} s")
    _write(arguments, bench, laws, found)
    return DONE


def _joints(arguments: argparse.Namespace) -> tuple[str, str]:
    names = tuple(name.strip() for name in arguments.joints.split(","))
    if len(names) != 2 or not all(names) or names[0] == names[1]:
        raise ConfigError(f"--joints: expected two different names, found {arguments.joints!r}")
    return names[0], names[1]


def _check_outputs(arguments: argparse.Namespace, bench: Bench) -> None:
    """Check before the fits that their results can be written and replace no other file."""
    if not arguments.models:
        raise ConfigError("--models is empty: name at least one friction law")
    folder = arguments.params or arguments.output
    files = [_file(folder, servo, law) for servo in bench.servos for law in arguments.models]
    results = [arguments.output / name for name in RESULTS]
    fitted, read = ([], files) if arguments.params else (files, [])
    check_distinct([*results, *fitted, arguments.json], read, arguments.output)
    for path in (*results, *fitted, *([] if arguments.json is None else [arguments.json])):
        check_writable(path)


def _file(folder: Path, servo: str, law: str) -> Path:
    return folder / servo / f"{law}.json"


def _fit_servo(arguments: argparse.Namespace, bench: Bench, servo: str, stop: Callable[[], bool]) -> None:
    """Every law on the pendulum runs of one servo, each into its parameter file."""
    if stop():
        return
    actuator = load_actuator(servo)
    begin = time.perf_counter()
    logs = pendulum_runs(bench, truth_of(actuator), arguments.runs, arguments.seed)
    print(f"{actuator.title}: {len(logs)} pendulum runs in {time.perf_counter() - begin:.1f} s", flush=True)
    split = split_runs(logs, validation_fraction=HELD_OUT, seed=arguments.seed)
    settings = FitSettings(trials=arguments.trials, seed=arguments.seed)
    for law in arguments.models:
        result = identify(task_for(split, actuator, law_named(law), settings), stop=stop)
        write_drive(_file(arguments.output, servo, law), fitted_drive(result))
        print(_fit_line(result), flush=True)
        if stop():
            return


def _fit_line(result: FitResult) -> str:
    held_out = "" if result.validation is None else f", {1e3 * result.validation.mean:.2f} held out"
    return (
        f"  {result.law.name.upper()}: {1e3 * result.train.mean:.2f} mrad{held_out}; {result.search.outcome}, "
        f"{result.search.evaluations} evaluations, {result.search.wall_seconds:.0f} s"
    )


def _servos(folder: Path, bench: Bench, law: str) -> tuple[Drive, Drive]:
    """Both servos with a law, as their parameter files say."""
    found = []
    for servo in bench.servos:
        path = _file(folder, servo, law)
        file = read_drive(path)
        if (file.actuator.name, file.law.name) != (servo, law):
            raise ConfigError(
                f"{path} has law {file.law.name} of {file.actuator.name!r}; expected {law} of {servo!r}"
            )
        found.append(file)
    return found[0], found[1]


def _write(
    arguments: argparse.Namespace,
    bench: Bench,
    laws: dict[str, tuple[Drive, Drive]],
    found: Validation,
) -> None:
    folder = arguments.output
    table = _table(bench, found)
    print(table)
    write_atomically(folder / "errors.txt", table + "\n")
    write_atomically(folder / "errors.csv", _csv(found))
    summary = json.dumps(_summary(arguments, bench, laws, found), indent=1, allow_nan=False) + "\n"
    for path in (folder / "summary.json", arguments.json):
        if path is not None:
            write_atomically(path, summary)
    save(
        draw_law_errors(_panels(bench, found), f"{bench.title}: errors of laws fitted on pendulums"),
        folder / "errors.png",
    )
    shown = [law for law in (arguments.models[0], arguments.models[-1]) if len(arguments.models) > 1]
    drawings = _drawings(found, shown or arguments.models)
    columns = len(drawings) // len(bench.gains)
    save(
        draw_followed_paths(drawings, columns, f"{bench.title}: motion of the end point"),
        folder / "paths.png",
    )
    print(*(folder / name for name in RESULTS), sep="\n")


def _table(bench: Bench, found: Validation) -> str:
    laws = list(found.errors)
    others = [law for law in laws if law != "m1"] if "m1" in laws else []
    rows = []
    for test in found.tests.names:
        row = [bench.paths[test[0]].title, test[1]]
        row += [f"{1e3 * found.errors[law][test].mean:.2f}" for law in laws]
        rows.append(row + [f"{found.ratio(law, test):.2f}" for law in others])
    header = ["path", "gain", *(f"{law.upper()} [mrad]" for law in laws)]
    return format_table([*header, *(f"{law.upper()}/M1" for law in others)], rows, left=2)


def _rows(found: Validation) -> list[dict[str, Any]]:
    return [
        {
            "law": law,
            "path": path,
            "gain": gain,
            "mae": error.mean,
            "mae_joint1": error.joints[0],
            "mae_joint2": error.joints[1],
            "end_point": error.end_point,
        }
        for law, errors in found.errors.items()
        for (path, gain), error in errors.items()
    ]


def _csv(found: Validation) -> str:
    rows = _rows(found)
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def _summary(
    arguments: argparse.Namespace,
    bench: Bench,
    laws: dict[str, tuple[Drive, Drive]],
    found: Validation,
) -> dict[str, Any]:
    """Errors in rad and m; what the fits reached on the pendulums comes from their parameter files."""
    fits = {
        servo: {law: _fit_errors(files[k]) for law, files in laws.items()}
        for k, servo in enumerate(bench.servos)
    }
    return {
        "schema": SCHEMA,
        "servos": arguments.servos,
        "seed": arguments.seed,
        "gains": {name: list(pair) for name, pair in bench.gains.items()},
        "fits": fits,
        "errors": _rows(found),
    }


def _fit_errors(file: Drive) -> dict[str, Any] | None:
    if file.loss.train is None:
        return None
    return {"train_mae": file.loss.train, "validation_mae": file.loss.validation}


def _panels(bench: Bench, found: Validation) -> list[LawErrors]:
    paths = list(dict.fromkeys(path for path, _ in found.tests.names))
    return [
        LawErrors(
            f"{gain} gains, K_p {' and '.join(f'{kp:g}' for kp in pair)}",
            [bench.paths[path].title for path in paths],
            {law: [errors[path, gain].mean for path in paths] for law, errors in found.errors.items()},
        )
        for gain, pair in bench.gains.items()
    ]


def _drawings(found: Validation, laws: Sequence[str]) -> list[PathDrawing]:
    """The gains below each other."""
    tests, links = found.tests, found.tests.bench.links
    order = sorted(range(len(tests.names)), key=lambda k: list(tests.bench.gains).index(tests.names[k][1]))

    def points(position: Any, k: int) -> Any:
        used = position[tests.samples(k)]
        return np.stack(end_point(links, (used[:, 0, k], used[:, 1, k])), axis=1)

    return [
        PathDrawing(
            f"{tests.bench.paths[tests.names[k][0]].title}, {tests.names[k][1]} gains",
            points(tests.goals[tests.first :], k),
            points(found.truth.position, k),
            {law: points(found.motions[law].position, k) for law in laws},
        )
        for k in order
    ]


if __name__ == "__main__":
    sys.exit(main())
