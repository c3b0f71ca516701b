"""Figures of exciting trajectories show every joint with its limits, and both sets of standard deviations."""

import numpy as np

from stribeck.report.excitation_figures import Row, draw_excitation, draw_sigmas
from stribeck.report.style import render


def test_every_joint_has_a_panel_for_each_quantity_with_both_limits():
    """Two quantities of three joints: six panels, each with a curve and two limits."""
    time = np.linspace(0.0, 1.0, 20)
    values = np.sin(np.outer(time, [1.0, 2.0, 3.0]))
    rows = [
        Row(label, values, -np.ones(3), 2.0 * np.ones(3)) for label in ("position [rad]", "velocity [rad/s]")
    ]
    figure = draw_excitation(time, ["a", "b", "c"], rows, "arm")
    assert len(figure.axes) == 6
    for k, panel in enumerate(figure.axes):
        curve, lower, upper = panel.get_lines()
        np.testing.assert_array_equal(curve.get_ydata(), values[:, k % 3])
        assert (lower.get_ydata()[0], upper.get_ydata()[0]) == (-1.0, 2.0)
    assert render(figure, ".png")


def test_both_sets_of_standard_deviations_are_drawn_on_a_logarithmic_axis():
    """The values are those given, in the order of the names."""
    designed, random = np.array([0.1, 1.0]), np.array([0.5, 3.0])
    figure = draw_sigmas(["m_a", "mx_a"], designed, random, "arm")
    (panel,) = figure.axes
    assert panel.get_yscale() == "log"
    drawn = [line.get_ydata().tolist() for line in panel.get_lines()]
    assert designed.tolist() in drawn
    assert random.tolist() in drawn
    assert [label.get_text() for label in panel.get_xticklabels()] == ["m_a", "mx_a"]
    assert render(figure, ".png")
