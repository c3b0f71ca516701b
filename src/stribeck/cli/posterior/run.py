"""Runs ``stribeck posterior``: posterior of an arm or a servo from prior knowledge and few measurements."""

from __future__ import annotations

from dataclasses import fields

from stribeck.cli.inputs import check_outputs
from stribeck.cli.posterior.options import ArmPosteriorOptions, PosteriorOptions, ServoPosteriorOptions
from stribeck.errors import ConfigError


def run(options: PosteriorOptions) -> int:
    """Sample the posterior of an arm or of a servo."""
    if (options.config is None) == (options.logdir is None):
        raise ConfigError(
            "name an arm (--config ROBOT) or recordings of a servo (--logdir BAGS), one of them"
        )
    _check_kind(options)
    _check_outputs(options)
    # Each kind needs libraries that the other does not.
    if options.config is not None:
        from stribeck.cli.posterior.arm import run_arm

        return run_arm(options, options.config)
    from stribeck.cli.posterior.servo import run_servo

    return run_servo(options)


def _check_kind(options: PosteriorOptions) -> None:
    """Refuse options that only apply to the other kind of machine."""
    if options.config is not None:
        others, right, wrong = fields(ServoPosteriorOptions), "logdir", "config"
    else:
        others, right, wrong = fields(ArmPosteriorOptions), "config", "logdir"
    for entry in others:
        if getattr(options, entry.name) != entry.default:
            option = "--" + entry.name.replace("_", "-")
            raise ConfigError(f"{option} goes with --{right}, not with --{wrong}")
    if options.config is not None and options.output is not None:
        raise ConfigError("--output is a servo's parameter file; of an arm give --json or --netcdf")


def _check_outputs(options: PosteriorOptions) -> None:
    inputs = [options.urdf, options.table, options.inertias, options.logdir, *options.data, *options.test]
    outputs = [options.output, options.netcdf, options.json]
    if options.plots is not None:
        outputs.append(options.plots / "posterior.png")
    check_outputs(outputs, inputs)
