"""All intervals of an arm had the width zero, and the verdict was ``unusable``, where a link came out nearly without mass.

The curvature of the prior on inertias is negative there along some directions, and rounding then removed all others from the
covariance.
"""

from dataclasses import replace

import numpy as np
import pytest

from moving_arms import JOINTS, arm, low_pass, protocol, recording, urdf
from stribeck.identify.arm.config import IdentificationConfig, RecordingFormat
from stribeck.identify.arm.identify import Identification
from stribeck.identify.arm.model import load_arm
from stribeck.identify.arm.regressor import machine_of


@pytest.mark.slow
def test_friction_has_intervals_where_links_come_out_without_mass(tmp_path):
    """Torques an eighth of those of the URDF, as of currents; the friction terms follow them, with intervals and correlations."""
    run = recording(arm(tmp_path), noise=0.1, seconds=6.0)
    run = replace(run, effort=0.12 * run.effort)
    filters = protocol(every=10, position_filter=low_pass(50.0), effort_filter=low_pass(50.0))
    given = load_arm(urdf(tmp_path, mass=2.6), JOINTS)
    work = Identification(
        machine_of(JOINTS, given, {}), IdentificationConfig(RecordingFormat("bag"), filters), [run]
    )
    fit = work.fit("full").fit
    for joint, sigma, covariance in zip(JOINTS, fit.sigma, fit.covariances, strict=True):
        values = fit.values(joint)
        for name, deviation in zip(values, sigma, strict=True):
            if name in ("friction_base", "friction_viscous"):
                assert 0.0 < deviation < 1.0, (joint, name, values[name], deviation)
        assert np.linalg.eigvalsh(covariance).min() > -1e-9 * np.trace(covariance)
