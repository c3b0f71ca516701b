"""Figures of the arm of two links."""

import numpy as np
import pytest

from stribeck.errors import ConfigError
from two_link_figures import LawErrors, PathDrawing, draw_followed_paths, draw_law_errors


def test_bars_are_the_errors():
    """A bar for each law and path, as high as the error in mrad; one panel for each gain."""
    errors = {"m1": [0.04, 0.02], "m4": [0.004, 0.002]}
    panels = [LawErrors(f"{gain} gains", ["circle", "square"], errors) for gain in ("low", "high")]
    figure = draw_law_errors(panels, "an arm")
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["low gains", "high gains"]
    heights = [bar.get_height() for bar in figure.axes[0].patches]
    np.testing.assert_allclose(heights, [40.0, 20.0, 4.0, 2.0])
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["M1", "M4"]


def test_paths_are_drawn_as_they_are():
    """Desired, true and simulated curves in each panel; panels without a path stay empty."""
    points = np.random.default_rng(0).normal(size=(5, 2))
    panel = PathDrawing("circle", points, points + 1.0, {"m1": points + 2.0, "m6": points + 3.0})
    figure = draw_followed_paths([panel] * 3, 2, "an arm")
    lines = figure.axes[0].lines
    np.testing.assert_array_equal(
        [line.get_xdata()[0] - points[0, 0] for line in lines], [0.0, 1.0, 2.0, 3.0]
    )
    assert [line.get_label() for line in lines] == ["desired", "truth", "M1", "M6"]
    assert [axes.get_visible() for axes in figure.axes] == [True, True, True, False]


def test_nothing_to_draw_is_refused():
    """No panel at all."""
    with pytest.raises(ConfigError, match="no errors"):
        draw_law_errors([], "an arm")
    with pytest.raises(ConfigError, match="no paths"):
        draw_followed_paths([], 4, "an arm")
