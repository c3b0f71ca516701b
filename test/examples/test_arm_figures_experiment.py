"""Figure of the simulated experiment."""

import numpy as np
import pytest

from arm_figures_experiment import CostCurve, draw_costs
from stribeck.errors import ConfigError


def test_costs_fall_to_the_floor_on_a_logarithmic_axis():
    """Both curves and floors are there, and named."""
    costs = 7.0 + 70.0 * np.exp(-np.arange(30.0))
    figure = draw_costs({"training": CostCurve(costs, 7.0), "validation": CostCurve(1.1 * costs, 7.1)}, "arm")
    panel = figure.axes[0]
    assert panel.get_yscale() == "log"
    labels = [text.get_text() for text in panel.get_legend().get_texts()]
    assert labels == ["training: 77 to 7, floor 7", "validation: 84.7 to 7.7, floor 7.1", "noise floor"]
    assert [line.get_ydata()[0] for line in panel.lines] == [costs[0], 1.1 * costs[0], 7.0, 7.1]


def test_nothing_to_draw_is_refused():
    """No curve, and costs that a logarithm does not know."""
    with pytest.raises(ConfigError, match="run the experiment first"):
        draw_costs({}, "arm")
    with pytest.raises(ConfigError, match="training are not all positive"):
        draw_costs({"training": CostCurve(np.array([1.0, 0.0]), 1.0)}, "arm")
