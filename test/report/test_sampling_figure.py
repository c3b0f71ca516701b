"""The histogram of sampling intervals counts every interval of every recording."""

import numpy as np
import pytest

from stribeck.errors import ConfigError
from stribeck.report.sampling import WIDEST, draw_sampling
from stribeck.report.style import render
from stribeck.survey.sampling import Sampling


def test_every_interval_is_counted_in_its_place():
    """A hundred usual intervals of 10 ms, one half as long, and one pause of ten, which is drawn at the end of the axis."""
    jittering = Sampling("jittering", np.array([*[0.010] * 100, 0.005, 0.100]))
    steady = Sampling("steady", np.full(50, 0.002))
    figure = draw_sampling([jittering, steady])
    panels = figure.axes
    assert [panel.get_title() for panel in panels] == ["jittering: 100 Hz", "steady: 500 Hz"]
    assert panels[0].get_yscale() == "log"
    bars = {
        (bar.get_x(), bar.get_x() + bar.get_width()): bar.get_height()
        for bar in panels[0].patches
        if bar.get_height() > 0
    }
    assert sorted(bars.values()) == [1, 1, 100]
    for relative, count in ((0.5, 1), (1.0, 100), (WIDEST - 1e-6, 1)):
        (found,) = [number for (low, high), number in bars.items() if low - 1e-9 <= relative <= high + 1e-9]
        assert found == count
    assert sum(bar.get_height() for bar in panels[1].patches) == 50
    assert render(figure, ".png")


def test_nothing_to_draw_is_refused():
    """Without a recording with times."""
    with pytest.raises(ConfigError, match="no sampling times to draw"):
        draw_sampling([])


def test_intervals_that_scatter_by_rounding_are_one_bar_that_can_be_seen():
    """Clocks round intervals to either side of the median; the axis of counts begins below 1, whatever the counts are."""
    scattered = Sampling(
        "scattered", np.array([*[0.008] * 900, *[0.008 - 1e-7] * 800, *[0.008 + 1e-7] * 800])
    )
    (panel,) = draw_sampling([scattered]).axes
    assert [bar.get_height() for bar in panel.patches if bar.get_height() > 0] == [2500]
    assert panel.get_ylim()[0] < 1.0
