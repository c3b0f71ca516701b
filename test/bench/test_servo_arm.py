"""The arm of position servos in MuJoCo keeps its play, its latency and its weight."""

import math

import numpy as np
import pytest

pytest.importorskip("mujoco", reason="the arm is MuJoCo's: pip install '.[mujoco]'")

from driving import config_for
from emulated_so101 import BACKLASH, FOLDED, JOINTS, LATENCY, emulated_arm
from virtual_bus import VirtualBus

LIFTED = FOLDED + np.array([0.0, 0.6, -0.4, 0.0, 0.0, 0.0])


def test_links_stay_within_the_play():
    """With torque off the arm sinks onto its stops, and no link is further from its motor than half the play, and a tenth of it."""
    _, arm = emulated_arm()
    gaps = []
    for step in range(10, 3000, 10):
        arm.advance(step)
        gaps.append(np.abs(arm.link_position - arm.position).max())
    assert max(gaps) < 0.6 * BACKLASH
    assert max(gaps) > 0.4 * BACKLASH
    assert np.abs(arm.velocity).max() < 0.01


@pytest.mark.slow
def test_goals_act_after_the_latency_and_hold_with_less_than_the_weight():
    """Nothing moves earlier; then the joints go to their goals but for weight and friction over stiffness."""
    servos, arm = emulated_arm()
    with VirtualBus(servos) as bus:
        models = ["sts3215"] * len(JOINTS)
        config = config_for(
            bus.path, *models, rate=100.0, joint={"p_gain": 16, "position_limits": [-2.0, 2.0]},
            command_timeout=5.0, silence_timeout=0.5,
        )  # fmt: skip
        driver = bus.driver(config)
        driver.connect()
        driver.enable()
        for _ in range(30):
            driver.set_goals(arm.position)
            driver.cycle()
        begin, before = arm.time, arm.position
        while arm.time < begin + 2.5:
            driver.set_goals(LIFTED)
            driver.cycle()
            if arm.time < begin + 0.9 * LATENCY:
                assert np.abs(arm.position - before).max() < 0.01
        driver.close()
    error = np.abs(LIFTED - arm.position)
    assert 0.005 < error[1:3].max() < 0.15
    assert np.abs(arm.velocity).max() < 0.02


def test_the_links_weigh_what_they_are_told():
    """The weight that the lift bears differs from that of the model by its own factor and those of the links beyond."""
    import mujoco

    _, arm = emulated_arm()
    masses = [float(arm.model.body_mass[arm.model.joint(name).bodyid[0]]) for name in JOINTS]
    published = [0.100006, 0.103, 0.104, 0.079, 0.087, 0.012]
    np.testing.assert_allclose(np.divide(masses, published), [1.0, 1.1, 0.9, 1.1, 0.9, 1.1], rtol=1e-6)
    assert math.isclose(sum(arm.model.body_mass), sum(masses))
    assert mujoco.mj_id2name(arm.model, mujoco.mjtObj.mjOBJ_JOINT, 1) == "shoulder_pan_play"
