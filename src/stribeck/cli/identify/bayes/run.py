"""Samples posteriors: those of an arm and those of a servo need libraries that the other does not."""

from __future__ import annotations

from pathlib import Path

from stribeck.cli.identify.bayes.options import ArmBayesOptions, ServoBayesOptions
from stribeck.cli.inputs import check_outputs


def run(options: ArmBayesOptions | ServoBayesOptions) -> int:
    """Sample the posterior of an arm or of a servo."""
    outputs: list[Path | None] = [options.netcdf, options.json]
    if options.plot is not None:
        outputs.append(options.plot / "posterior.png")
    if isinstance(options, ArmBayesOptions):
        inputs = [options.model, options.table, options.inertias, *options.recordings, *options.validate]
        if options.output is not None:
            outputs.append(options.output / "compensation.yaml")
        check_outputs(outputs, inputs)
        from stribeck.cli.identify.bayes.arm import run_arm

        return run_arm(options, options.machine)
    check_outputs([options.output, *outputs], [], options.recordings)
    from stribeck.cli.identify.bayes.servo import run_servo

    return run_servo(options)
