"""The tree of commands: where each is implemented, which options its help shows, and two worked commands of each.

A command is a module of ``stribeck.cli`` with ``run(options)`` and the dataclass that declares the options
(:mod:`stribeck.cli.options`), or a folder with the modules ``options`` and ``run``.
"""

from __future__ import annotations

from dataclasses import dataclass, field

BAGS = "bags/xl330_simulated"


@dataclass(frozen=True)
class CommandEntry:
    """One command.

    :param place: module below ``stribeck.cli``.
    :param text: what it does, for the list of commands.
    :param first, second: examples, without the name of the program.
    :param essential: options that ``--help`` shows; empty: all.
    :param options: name of the dataclass of the options, where the module declares several.
    :param computing: whether the computation ends at once with Ctrl-C.
    :param extra: extra that brings everything, where that is more than the first library that is missing.
    """

    place: str
    text: str
    first: str
    second: str
    essential: frozenset[str] = field(default_factory=frozenset)
    options: str = ""
    computing: bool = False
    extra: str | None = None

    @property
    def examples(self) -> tuple[str, str]:
        """Two worked command lines."""
        return self.first, self.second


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


COMMANDS: dict[str, CommandEntry] = {
    "demo": CommandEntry(
        "demo",
        "record, identify and compensate emulated servos through ROS 2 nodes",
        "demo",
        "demo --output my-demo --seed 1",
        extra="fit,ros",
    ),
    "doctor": CommandEntry(
        "doctor",
        "check computer, installation and ROS graph, and explain how to correct each problem",
        "doctor",
        "doctor --machine-only --json doctor.json",
    ),
    "emulate": CommandEntry(
        "emulate",
        "emulated servos behind a pseudo-terminal",
        "emulate --link /tmp/servo",
        "emulate --link /tmp/servo --servo xl330 xl330 --id 1 2 --bench mass=0.1,length=0.1",
        _names("link simulated servo id params bench voltage"),
    ),
    "record": CommandEntry(
        "record",
        "execute trajectories with servos on a serial bus, and record them",
        "record config/record.yaml --dry-run",
        "record config/record.yaml --port /dev/ttyUSB0 --output bags/mine",
    ),
    "data import": CommandEntry(
        "data.import_recordings",
        "convert bags of other robots, tables and BAM JSON to bags that describe themselves",
        "data import recording.csv --signals signals.yaml --bench bench.yaml --output my_bags",
        "data import logs/ --bench mass=0.1,length=0.1,arm_mass=0,kp=400,supply_voltage=5,actuator=xl330 --output my_bags",
    ),
    "data describe": CommandEntry(
        "data.describe",
        "write the file of an arm, or of a servo on a bench, from its recordings",
        "data describe bags/ --model arm.urdf --output machine.yaml",
        "data describe logs/ --servo xl330 --output bench.yaml",
        computing=True,
        extra="arm",
    ),
    "data suggest": CommandEntry(
        "data.suggest",
        "rank possible further runs by the information that they would add",
        f"data suggest {BAGS} --params m4.json",
        f"data suggest {BAGS} --params m4.json --count 20 --json next.json",
        _names("recordings params count json joint bench servo"),
    ),
    "data library": CommandEntry(
        "data.library",
        "drives identified from public recordings, with origin, intervals and spread",
        "data library",
        "data library go2 --output go2.json",
    ),
    "design trajectory": CommandEntry(
        "design.trajectory",
        "design the most informative trajectory of a robot arm within its limits",
        "design trajectory --model arm.urdf --output excitation.yaml",
        "design trajectory --machine panda --duration 20 --plot pictures",
        _names("machine model harmonics duration seconds seed output joint_trajectory plot quiet"),
        computing=True,
        extra="arm",
    ),
    "design poses": CommandEntry(
        "design.poses",
        "choose the most informative poses for the calibration of an arm",
        "design poses --machine irb120 --candidates poses.txt --count 20",
        "design poses measured/ --machine irb120 --candidates poses.txt --output next.txt",
        computing=True,
    ),
    "design sweep": CommandEntry(
        "design.sweep",
        "write a constant-velocity trajectory of one joint, for friction over velocity",
        "design sweep --joint elbow --model arm.urdf --output sweep.yaml",
        "design sweep --joint joint --lower -1 --upper 1 --velocity 2 --count 12",
    ),
    "identify servo": CommandEntry(
        "identify.servo",
        "identify friction law and motor of a servo from runs on a bench (--bayes: sample its posterior)",
        f"identify servo {BAGS} --output servo.json",
        f"identify servo {BAGS} --law m4 --hold-out-gain 400 --output m4.json --strict",
        _names(
            "recordings servo law terms effects set validate hold_out hold_out_gain joint signals bench seed step output json strict "
            "progress"
        ),
    ),
    "identify joint": CommandEntry(
        "identify.joint",
        "identify the friction of one joint from tables of motion and torque",
        "identify joint sweep.csv --output joint.json",
        "identify joint log.csv --columns position=q:deg,current=i:A --set kt=0.1 --plot friction.png",
    ),
    "identify arm": CommandEntry(
        "identify.arm",
        "identify inertial parameters and joint friction of a robot arm (--bayes: sample its posterior)",
        "identify arm bags/ --model arm.urdf --output result --strict",
        "identify arm train.csv --machine tx40 --validate test.csv --json summary.json",
        _names("recordings machine model validate hold_out payload terms output json plot strict quiet"),
        computing=True,
        extra="arm",
    ),
    "identify robot": CommandEntry(
        "identify.robot",
        "identify the drives of a whole robot from goals and positions",
        "identify robot runs/ --model robot.xml --output result",
        "identify robot dataset/ --model so101.urdf --degrees --backlash --law auto --output result",
        _names(
            "recordings model validate degrees exclude law terms same backlash leave_one_out output json strict quiet"
        ),
        computing=True,
    ),
    "identify mechanism": CommandEntry(
        "identify.mechanism",
        "estimate the parameters of a mechanism from its recorded motion",
        "identify mechanism run.csv --mechanism pendulum --output pendulum.json",
        "identify mechanism train/ --mechanism pendulum.yaml --validate test/ --set viscous=0.002 --plot pictures",
        computing=True,
        extra="arm",
    ),
    "identify fleet": CommandEntry(
        "identify.fleet",
        "identify many servos with many laws, in processes or on a Dask cluster",
        "identify fleet config/fleet.yaml",
        "identify fleet config/fleet.yaml --output fits --workers 4",
    ),
    "identify transmission": CommandEntry(
        "identify.transmission",
        "identify stiffness and hysteresis of transmissions from motor and link encoders",
        "identify transmission run.npz --columns motor=q_m,link=q,torque=tau,ratio=ratio --step 0.001",
        "identify transmission run.npz --columns motor=q_m,link=q,torque=tau,ratio=100,100,time=t --joint 1",
        computing=True,
    ),
    "identify geometry": CommandEntry(
        "identify.geometry",
        "calibrate the geometry of an arm from measured poses",
        "identify geometry poses/ --machine irb120 --output geometry.json",
        "identify geometry poses/ --machine irb120 --validate others/ --terms compliance --plot pictures",
        _names("recordings machine validate train_poses fits terms seed output json plot"),
        computing=True,
    ),
    "evaluate": CommandEntry(
        "evaluate",
        "evaluate parameter files with recordings of servos, arms and robots: errors, pictures, diagrams and the report",
        f"evaluate {BAGS} --params m1.json m4.json",
        f"evaluate {BAGS} --params m4.json --report report.html --plot pictures --diagram diagram.png",
        _names("recordings params joint signals bench servo model machine step plot diagram report json"),
    ),
    "simulate": CommandEntry(
        "simulate",
        "the motion of an identified servo along a trajectory that was not recorded",
        "simulate sin_sin lift_and_drop --params m4.json --bench mass=0.1,length=0.1,kp=400 --plot pictures",
        "simulate --mechanism block --seconds 1 --output motion",
    ),
    "advise": CommandEntry(
        "advise",
        "position servos that stick, sag or hunt: dead band, sufficient gain, effect of goal offsets",
        "advise --params robot.json --model arm.urdf --report advice.html",
        "advise recordings/ --model arm.urdf --exclude gripper",
        extra="mujoco",
    ),
    "replay": CommandEntry(
        "replay",
        "the torque of the compensation for a recorded motion",
        "replay bag/ --params servo.json --output torque.csv",
        "replay bag/ --node-params compensation.yaml --json summary.json",
    ),
    "export": CommandEntry(
        "export",
        "export identified servos to simulators, firmware and tables, with the error of the export",
        "export --format mjcf --params servo.json --kp 400 --output servo.xml",
        "export --format mjcf --params out/robot.json --model robot.xml --output identified.xml --draws 20",
    ),
    "import-model": CommandEntry(
        "import_model",
        "read the parameters of a servo from BAM, MJCF, Isaac Lab or URDF files",
        "import-model params.json --format bam --servo xl330 --output servo.json",
        "import-model servo.xml --format mjcf --servo xl330 --kp 400 --output servo.json",
    ),
}
"""Commands by their words."""

BAYES: dict[str, CommandEntry] = {
    "identify servo": CommandEntry(
        "identify.bayes",
        "sample the posterior of a servo from prior knowledge and few runs",
        f"identify servo --bayes {BAGS} --law m3 --output servo.json",
        f"identify servo --bayes {BAGS} --hold-out-gain 400 --netcdf draws.nc --plot pictures",
        options="ServoBayesOptions",
        computing=True,
        extra="bayes",
    ),
    "identify arm": CommandEntry(
        "identify.bayes",
        "sample the posterior of an arm from prior knowledge and few measurements",
        "identify arm --bayes --machine panda --prior cad --rotors 0.6,0.6,0.5,0.5,0.2,0.2,0.2 --json prior.json",
        "identify arm --bayes run.csv --machine tx40 --prior informed --rotors 0.4,0.4,0.1,0.03,0.05,0.01 --plot pictures",
        options="ArmBayesOptions",
        computing=True,
        extra="bayes",
    ),
}
"""What ``--bayes`` turns a command into."""

GROUPS = {
    "data": "recordings: conversion, description, what to record next",
    "design": "what to record: trajectories and poses",
    "identify": "parameters from recordings",
}
"""First words of commands of two words."""

STAGES = {
    "try": ("demo", "doctor", "emulate"),
    "record": ("record", "data", "design"),
    "identify": ("identify",),
}
"""First words of the commands of each stage of work; those of all others belong to ``use``."""

MAP = {stage: [name for name in COMMANDS if name.split()[0] in words] for stage, words in STAGES.items()}
MAP["use"] = [name for name in COMMANDS if not any(name in names for names in MAP.values())]
"""Commands in the order in which the map shows them."""
