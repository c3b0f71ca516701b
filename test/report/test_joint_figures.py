"""The figure of an identified joint shows all its data."""

import numpy as np

from stribeck.report.joint_figures import JointDrawing, draw_joint
from stribeck.report.style import render


def test_the_legend_covers_no_data():
    """One legend under both panels with all that they show; it was inside the lower one, over the end of the run."""
    velocity, time = np.linspace(-1.0, 1.0, 21), np.linspace(0.0, 10.0, 11)
    curve = np.stack([velocity, np.sign(velocity), np.full(21, 0.1)], axis=1)
    content = JointDrawing(
        "a joint", velocity, np.sign(velocity), np.empty((0, 3)), curve, time, np.sin(time), np.sin(time)
    )
    figure = draw_joint(content)
    assert [panel.get_legend() for panel in figure.axes] == [None, None]
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == [
        "rows",
        "95 %",
        "law",
        "measured",
        "predicted",
    ]
    assert render(figure, ".png")
    bottom = min(panel.get_tightbbox().y0 for panel in figure.axes)
    assert legend.get_window_extent().y1 <= bottom
