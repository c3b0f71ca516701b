"""Verbs and options."""

from __future__ import annotations

import argparse
from pathlib import Path

import stribeck
from stribeck.cli.arm_parser import calibrate, excite, identify_arm
from stribeck.cli.bayes_parser import posterior
from stribeck.cli.estimate_parser import estimate
from stribeck.cli.options import (
    celsius,
    choices_of,
    count,
    finite,
    numbers,
    positive,
    seed,
    time_step,
    whole,
    zero_or_more,
)
from stribeck.core.actuator import EFFECTS
from stribeck.core.compensation import EFFORT_MEANINGS
from stribeck.core.compensator import OUTPUT_MODES
from stribeck.core.friction import LAWS
from stribeck.fit import METHODS
from stribeck.io.storage import STORAGES
from stribeck.servo.tables import MODELS

TERMS = ("asymmetric", "offset")


def build_parser() -> argparse.ArgumentParser:
    """The parser of the whole command line."""
    parser = argparse.ArgumentParser(
        prog="stribeck",
        description="Identify the friction of robot joints from recordings.",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"stribeck {stribeck.__version__}")
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    _emulate(_verb(verbs, "emulate", "emulate", "servos that are not there, behind a pseudo-terminal"))
    _record(_verb(verbs, "record", "record", "play trajectories on servos at a serial port, and record them"))
    _import(_verb(verbs, "import", "import_recordings", "recordings in the BAM JSON format to rosbag2 bags"))
    _fit(_verb(verbs, "fit", "fit", "identify a friction law from recordings"))
    _fit_all(
        _verb(verbs, "fit-all", "fit_all", "fit many servos and laws, in processes or on a Dask cluster")
    )
    _evaluate(_verb(verbs, "evaluate", "evaluate", "errors of parameter files on recordings"))
    _plot(_verb(verbs, "plot", "plot", "draw measured and simulated motion"))
    _diagram(_verb(verbs, "diagram", "diagram", "draw drive/backdrive diagrams"))
    _report(_verb(verbs, "report", "report", "one HTML file: parameter files on recordings, with a verdict"))
    _compensate(_verb(verbs, "compensate", "compensate", "friction torque for a recorded motion"))
    _export_mjcf(_verb(verbs, "export-mjcf", "export_mjcf", "a fit of law M1 as plain MJCF, for MuJoCo"))
    arms = {
        "excite": (excite, "the most informative trajectory of a robot arm within its limits"),
        "identify-arm": (identify_arm, "inertias and friction of a robot arm from recorded motion"),
        "calibrate": (calibrate, "geometry of an arm from measured poses"),
    }
    for name, (add_options, text) in arms.items():
        add_options(_verb(verbs, name, name.replace("-", "_"), text))
    posterior(
        _verb(
            verbs, "posterior", "posterior", "what prior knowledge and few measurements say, with intervals"
        )
    )
    estimate(_verb(verbs, "estimate", "estimate", "parameters of a mechanism from its recorded motion"))
    _demo(_verb(verbs, "demo", "demo", "the whole loop on emulated servos, through ROS 2 nodes"))
    return parser


def fit_parser() -> argparse.ArgumentParser:
    """The options of ``stribeck fit`` alone; values that are not valid raise :class:`argparse.ArgumentError`."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    _fit(parser)
    return parser


def _verb(
    verbs: argparse._SubParsersAction[argparse.ArgumentParser], name: str, module: str, text: str
) -> argparse.ArgumentParser:
    parser = verbs.add_parser(
        name, help=text, description=text[0].upper() + text[1:] + ".", allow_abbrev=False
    )
    parser.set_defaults(module=module)
    return parser


def _recordings(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("recordings")
    group.add_argument(
        "--logdir",
        type=Path,
        required=True,
        metavar="BAGS",
        help="folder with bags or BAM JSON recordings, or one of them",
    )
    group.add_argument("--joint", help="the joint to use, of bags with several; * for all, as one servo")
    group.add_argument(
        "--signals", type=Path, metavar="YAML", help="table of signals to topics, for bags of other robots"
    )
    group.add_argument(
        "--bench",
        metavar="KEY=VALUE,…",
        help="describe a bag without /bench: mass=KG,length=M,arm_mass=KG,kp=GAIN,…",
    )
    group.add_argument(
        "--arm-mass", type=float, metavar="KG", help="rod mass for JSON recordings that give none"
    )


def _simulation(parser: argparse.ArgumentParser, default: float | None = 0.005) -> None:
    group = parser.add_argument_group("simulation")
    group.add_argument(
        "--dt",
        type=time_step,
        default=default,
        metavar="S",
        help="time step (default: 0.005, or the parameter file's)",
    )
    group.add_argument(
        "--reset-period",
        type=positive,
        metavar="S",
        help="put simulations back on the measurement every so often",
    )


def _emulate(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--link", type=Path, required=True, metavar="PATH", help="symbolic link to make to the port"
    )
    servo = parser.add_argument_group("servos: what is given once is for all of --id, or give it for each")
    servo.add_argument(
        "--servo",
        nargs="+",
        default=["xl330"],
        choices=tuple(MODELS),
        metavar="MODEL",
        help=f"{', '.join(MODELS)} (default: xl330)",
    )
    servo.add_argument("--id", type=int, nargs="+", default=[1], metavar="N", help="IDs (default: 1)")
    servo.add_argument(
        "--params",
        type=Path,
        nargs="+",
        metavar="FILE",
        help="parameter files (default: the published M6 values, without mounting offset)",
    )
    servo.add_argument("--actuator", help="YAML file of a servo of --params that is not among ours")
    servo.add_argument(
        "--bench",
        action="append",
        default=[],
        metavar="mass=KG,length=M[,arm_mass=KG]",
        help="load; repeat it for several servos (default: none)",
    )
    servo.add_argument(
        "--position-offset",
        type=finite,
        metavar="RAD",
        help="mounting offset (default: the parameter file's)",
    )
    servo.add_argument("--noise", type=zero_or_more, default=0.3, metavar="COUNTS", help="(default: 0.3)")
    servo.add_argument("--temperature", type=celsius, default=25.0, metavar="°C", help="(default: 25)")
    servo.add_argument(
        "--register",
        action="append",
        default=[],
        metavar="NAME=COUNTS",
        help="a register that differs from the factory's, for example shutdown=52",
    )
    supply = parser.add_argument_group("supply and bus")
    supply.add_argument("--voltage", type=positive, metavar="V", help="(default: nominal, 5 for an XL330)")
    supply.add_argument(
        "--supply-resistance", type=zero_or_more, default=0.1, metavar="OHM", help="(default: 0.1)"
    )
    supply.add_argument("--baud", type=count, metavar="RATE", help="the only rate they hear (default: any)")
    supply.add_argument(
        "--fault",
        action="append",
        default=[],
        metavar="KIND:KEY=VALUE,…",
        help="what goes wrong: lost:p=0.05, silence:every=2,for=0.05, push:after=3,torque=0.05,for=0.1, …",
    )
    supply.add_argument("--dt", type=time_step, default=0.001, metavar="S", help="time step (default: 0.001)")
    supply.add_argument("--seed", type=seed, default=0, metavar="N", help="of noise and faults (default: 0)")


def _record(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--config", type=Path, required=True, metavar="YAML", help="what to record, see config/record.yaml"
    )
    parser.add_argument("--port", help="serial port (default: the file's)")
    parser.add_argument(
        "--output", type=Path, metavar="DIR", help="folder for the bags (default: the file's)"
    )
    parser.add_argument(
        "--rate", type=positive, metavar="HZ", help="cycles in a second (default: the file's)"
    )
    parser.add_argument(
        "--allow-overvoltage", action="store_true", help="record above the servos' rated supply"
    )
    parser.add_argument("--quiet", action="store_true", help="no progress, only bags and what goes wrong")


def _import(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("logs", type=Path, nargs="+", metavar="LOG.json")
    parser.add_argument(
        "--output", type=Path, required=True, metavar="BAGS", help="folder for the bags, one per recording"
    )
    parser.add_argument(
        "--arm-mass", type=float, metavar="KG", help="rod mass, for recordings that give none"
    )
    parser.add_argument("--actuator", help="the servo, where the recordings name another")
    parser.add_argument("--joint", default="joint", help="name of the joint in the bags (default: joint)")
    parser.add_argument(
        "--storage", choices=STORAGES, default="mcap", help="storage of the bags (default: mcap)"
    )


def _fit(parser: argparse.ArgumentParser) -> None:
    _recordings(parser)
    law = parser.add_argument_group("what to fit")
    law.add_argument("--actuator", help="servo by name, or a YAML file (default: the recordings')")
    law.add_argument(
        "--model", default="m6", choices=(*LAWS, "all"), type=str.lower, help="friction law (default: m6)"
    )
    law.add_argument(
        "--terms",
        type=choices_of(TERMS),
        default=(),
        metavar="LIST",
        help=f"terms to add to the law: {','.join(TERMS)}",
    )
    law.add_argument(
        "--effects",
        type=choices_of(EFFECTS),
        default=(),
        metavar="LIST",
        help=f"effects beyond the paper: {','.join(EFFECTS)}",
    )
    law.add_argument(
        "--set", action="append", default=[], metavar="NAME=VALUE", help="keep a parameter at a value"
    )
    law.add_argument(
        "--free",
        action="append",
        default=[],
        metavar="NAME",
        help="identify an effect's parameter too, if that pays at gains left out",
    )
    law.add_argument("--validation-kp", type=float, metavar="K", help="hold out the runs of one gain")
    law.add_argument("--validation-fraction", type=float, metavar="F", help="hold out a share of the runs")
    search = parser.add_argument_group("search")
    search.add_argument("--method", choices=METHODS, default="hybrid", help="(default: hybrid)")
    search.add_argument(
        "--trials",
        type=count,
        default=60_000,
        metavar="N",
        help="evaluations per law at most, of a shared study in all (default: 60000)",
    )
    search.add_argument(
        "--workers",
        type=count,
        default=1,
        metavar="N",
        help="processes that search side by side (default: 1)",
    )
    search.add_argument("--seed", type=seed, default=0, metavar="N", help="(default: 0)")
    search.add_argument(
        "--study",
        metavar="URL",
        help="Optuna storage: sqlite:///FILE, journal:FILE, postgresql://USER@HOST/DATABASE",
    )
    search.add_argument("--resume", action="store_true", help="go on with what the study holds")
    search.add_argument(
        "--join",
        action="store_true",
        help="take part in the study, which the first worker opens: the same command on every machine",
    )
    search.add_argument(
        "--batch",
        type=count,
        default=64,
        metavar="N",
        help="trials that a worker asks for and tells at a time (default: 64)",
    )
    search.add_argument("--load-study", metavar="URL", help="the same as --study URL --resume")
    search.add_argument("--float64", action="store_true", help="search in double precision")
    _simulation(parser)
    output = parser.add_argument_group("output")
    output.add_argument(
        "--output", type=Path, metavar="FILE", help="parameter file; with --model all a folder"
    )
    output.add_argument("--json", type=Path, metavar="FILE", help="summary for scripts")
    output.add_argument(
        "--progress",
        choices=("bar", "json", "none"),
        default="bar",
        help="on stderr: a bar, or JSON lines for programs (default: bar)",
    )
    output.add_argument(
        "--quiet", dest="progress", action="store_const", const="none", help="no progress: --progress none"
    )
    output.add_argument(
        "--wandb",
        action="store_true",
        help="log to Weights & Biases, whose own variables apply (WANDB_MODE=offline, …)",
    )
    output.add_argument(
        "--wandb-project", default="stribeck", metavar="NAME", help="its project (default: stribeck)"
    )
    output.add_argument(
        "--eval", action="store_true", help="do not fit: evaluate the parameter file of --output"
    )


def _fit_all(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "fleet", type=Path, metavar="FLEET.yaml", help="servos, laws and options of their fits"
    )
    parser.add_argument(
        "--output", type=Path, metavar="DIR", help="folder for the parameter files (default: the file's)"
    )
    parser.add_argument(
        "--workers", type=count, metavar="N", help="processes side by side (default: one per core)"
    )
    parser.add_argument(
        "--scheduler",
        metavar="ADDRESS",
        help="run on the Dask cluster of tcp://HOST:8786, or local: on one of --workers processes here",
    )
    parser.add_argument(
        "--retries",
        type=whole,
        default=2,
        metavar="N",
        help="how often a fit that crashed is tried again (default: 2)",
    )
    parser.add_argument("--force", action="store_true", help="fit again what is there and up to date")
    parser.add_argument(
        "--quiet", action="store_true", help="no progress, only the summary and what goes wrong"
    )


def _evaluate(parser: argparse.ArgumentParser) -> None:
    _parameter_files(parser)
    _recordings(parser)
    _simulation(parser, default=None)
    parser.add_argument("--json", type=Path, metavar="FILE", help="errors for scripts")


def _plot(parser: argparse.ArgumentParser) -> None:
    _parameter_files(parser, required=False)
    _recordings(parser)
    _simulation(parser)
    parser.add_argument("--sim", action="store_true", help="draw the simulations of the parameter files")
    parser.add_argument("--output", type=Path, required=True, metavar="DIR", help="folder for the pictures")


def _diagram(parser: argparse.ArgumentParser) -> None:
    _parameter_files(parser)
    parser.add_argument(
        "--max-torque", type=positive, required=True, metavar="T", help="largest motor torque to draw [N m]"
    )
    parser.add_argument(
        "--speeds",
        type=numbers,
        default=(0.0, 1.0, 2.0, 3.0),
        metavar="LIST",
        help="rad/s (default: 0,1,2,3)",
    )
    parser.add_argument(
        "--output", type=Path, required=True, metavar="F.png", help="picture: .png, .svg or .pdf"
    )


def _report(parser: argparse.ArgumentParser) -> None:
    _parameter_files(parser)
    _recordings(parser)
    _simulation(parser, default=None)
    parser.add_argument(
        "--output",
        type=Path,
        required=True,
        metavar="REPORT.html",
        help="the report, one file that opens offline",
    )


def _compensate(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--states", type=Path, required=True, metavar="BAG", help="bag with /joint_states of the motion"
    )
    parser.add_argument(
        "--goals",
        metavar="TOPIC",
        help="goals that the controller followed, where its commands do not hold them: JointState, Float64MultiArray, "
        "JointTrajectory or JointTrajectoryControllerState",
    )
    joints = parser.add_argument_group("joints")
    joints.add_argument(
        "--params", type=Path, nargs="+", default=[], metavar="FILE", help="parameter file of each joint"
    )
    joints.add_argument(
        "--urdf",
        type=Path,
        metavar="FILE",
        help="the robot: with it, the friction that there is now is learnt",
    )
    joints.add_argument(
        "--joint", nargs="+", default=[], metavar="NAME", help="the joints of --params, in their order"
    )
    joints.add_argument(
        "--config",
        type=Path,
        metavar="YAML",
        help="instead: parameters of the compensation node; its files lie relative to this one",
    )
    joints.add_argument(
        "--node",
        default="compensation",
        metavar="NAME",
        help="the node of --config, as /left/compensation where it has several (default: compensation)",
    )
    law = parser.add_argument_group("compensation (over what --config says)")
    law.add_argument("--gain", type=float, help="share of the friction that is cancelled (default: 0.8)")
    law.add_argument(
        "--effort-meaning",
        choices=EFFORT_MEANINGS,
        help="what effort in the joint states is; laws that depend on the load need it",
    )
    law.add_argument("--mode", choices=OUTPUT_MODES, help="output mode of the node (default: friction_only)")
    law.add_argument(
        "--max-torque",
        type=positive,
        metavar="T",
        help="limit of the torque [N m] (default: half the datasheet's stall torque)",
    )
    output = parser.add_argument_group("output")
    output.add_argument(
        "--output", type=Path, metavar="TORQUE.csv", help="stamps and friction torque of each joint [N m]"
    )
    output.add_argument("--json", type=Path, metavar="FILE", help="summary for scripts")


def _export_mjcf(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--params", type=Path, required=True, metavar="FILE", help="parameter file of law M1")
    parser.add_argument("--actuator", type=Path, metavar="YAML", help="servo that is not among ours")
    parser.add_argument("--joint", nargs="+", required=True, metavar="NAME", help="joints of the model")
    parser.add_argument("--kp", type=positive, required=True, metavar="K", help="firmware gain")
    parser.add_argument(
        "--kd", type=zero_or_more, default=0.0, metavar="K", help="derivative gain (default: 0)"
    )
    parser.add_argument(
        "--supply", type=positive, metavar="V", help="voltage (default: the servo's nominal one)"
    )
    parser.add_argument(
        "--model",
        type=Path,
        metavar="IN.xml",
        help="model to put the servo in (default: write a file to include)",
    )
    parser.add_argument(
        "--timestep",
        type=time_step,
        metavar="S",
        help="of the file to include; a model has its own (default: 0.002)",
    )
    parser.add_argument("--output", type=Path, required=True, metavar="OUT.xml", help="MJCF to write")


def _demo(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--output",
        type=Path,
        default=Path("stribeck-demo"),
        metavar="DIR",
        help="folder for the results (default: stribeck-demo)",
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="figures for scripts")
    parser.add_argument("--seed", type=seed, default=0, metavar="N", help="(default: 0)")


def _parameter_files(parser: argparse.ArgumentParser, required: bool = True) -> None:
    parser.add_argument(
        "--params",
        type=Path,
        nargs="+",
        default=[],
        required=required,
        metavar="FILE",
        help="parameter files",
    )
    parser.add_argument("--actuator", help="YAML file of a servo that is not among ours")
