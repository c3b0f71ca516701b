"""What the options of ``stribeck identify servo`` ask for."""

from __future__ import annotations

from stribeck.api.servo import ServoQuestion, settings_with
from stribeck.cli.identify.servo.options import IdentifyServoOptions
from stribeck.cli.inputs import as_number, assignments
from stribeck.errors import StudyError
from stribeck.identify.servo.result import FitSettings, StudySettings


def question_of(options: IdentifyServoOptions) -> ServoQuestion:
    """The question of some options.

    :raises ConfigError: for values that cannot be read.
    :raises StudyError: for contradictory options of a study.
    """
    assigned = assignments([pair for text in options.set for pair in text.split(",")], "--set")
    return ServoQuestion(
        law=options.law,
        terms=options.terms,
        effects=options.effects,
        actuator=options.servo,
        fixed={name: as_number(text, f"--set {name}") for name, text in assigned.items()},
        free=options.free,
        hold_out_gain=options.hold_out_gain,
        hold_out=options.hold_out,
        settings=_settings(options),
    )


def _settings(options: IdentifyServoOptions) -> FitSettings:
    study, resume = options.study, options.resume
    if options.load_study is not None:
        if study is not None and study != options.load_study:
            raise StudyError("--study and --load-study name different studies: give one of them")
        study, resume = options.load_study, True
    if resume and study is None:
        raise StudyError("--resume continues a study: add --study URL")
    if options.join and study is None:
        raise StudyError("--join needs a study: add --study URL")
    if options.join and resume:
        raise StudyError("--join creates or continues a study, --resume only continues one: give one of them")
    settings = FitSettings(
        method=options.method,
        trials=options.trials,
        seed=options.seed,
        workers=options.workers,
        study=StudySettings(study, resume, options.join),
        batch=options.batch,
        dtype="float64" if options.float64 else "float32",
    )
    return settings_with(settings, options.step, options.reset_period, options.integrator)
