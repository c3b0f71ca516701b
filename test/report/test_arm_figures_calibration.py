"""Figures of calibrations."""

import numpy as np

from stribeck.report.arm_figures import PoseSet, draw_errors, draw_poses


def pose_set(title="train, 40 poses", largest=1e-3):
    errors = largest * np.linspace(0.01, 1.0, 120).reshape(40, 3)
    return PoseSet(title, np.arange(40), {"nominal": 2 * errors, "full": errors}, [39])


def test_every_error_lies_within_the_axes():
    """Shares up to the largest error of all sets; poses of each set, blunders marked."""
    sets = [pose_set(), pose_set("validation, 40 poses", 5e-3)]
    shares = draw_errors(sets, "arm")
    assert all(panel.get_xlim()[1] > 10.0 for panel in shares.axes)
    labels = [line.get_label() for line in shares.axes[0].lines]
    assert labels[1].startswith("full: mean 0.505 mm, median 0.505 mm")
    poses = draw_poses(sets, "full", "arm")
    assert all(panel.get_ylim()[1] > 4.9 for panel in poses.axes)
    assert [text.get_text() for text in poses.axes[1].texts] == ["39"]
    assert poses.axes[0].get_ylabel() == "mean error [mm]"
