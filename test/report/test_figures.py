"""Figures say what they show, in units, and reach the disk whole."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import numpy.typing as npt
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.image import imread
from matplotlib.legend import Legend
from matplotlib.transforms import Bbox

from stribeck.errors import ConfigError, OutputError
from stribeck.evaluate.diagram import DiagramCurve, diagram_curve
from stribeck.model.law import law_named
from stribeck.report.figures import RunDrawing, draw_diagram, draw_overview
from stribeck.report.figures import draw_run as run_figure
from stribeck.report.style import DPI, FORMATS, LARGEST_PICTURE, render, save

TIME = np.linspace(0.0, 6.0, 601)
COULOMB = {"friction_base": 0.02, "friction_viscous": 0.01}


def drawing(title: str = "run", labels: tuple[str, ...] = ("m1.json", "m6.json")) -> RunDrawing:
    measured = np.sin(TIME)
    return RunDrawing(
        time=TIME,
        measured=measured,
        goal=1.2 * np.sin(TIME),
        torque_enable=((TIME < 2.0) | (TIME > 3.0)).astype(float),
        simulated={label: measured + 0.01 * (k + 1) for k, label in enumerate(labels)},
        title=title,
        errors={label: 0.01 * (k + 1) for k, label in enumerate(labels)},
    )


def worm_and_spur() -> list[DiagramCurve]:
    motor = np.linspace(0.0, 1.0, 21)
    worm = {**COULOMB, "load_friction_base": 1.1}
    return [
        diagram_curve("spur.json", law_named("m1"), COULOMB, motor),
        diagram_curve("worm.json", law_named("m3"), worm, motor),
    ]


def entries(legend: Legend) -> list[str]:
    return [text.get_text() for text in legend.get_texts()]


def shaded(panel: Axes) -> list[tuple[float, float]]:
    """Begin and end of each shaded time."""
    boxes = [panel.transData.inverted().transform_bbox(patch.get_window_extent()) for patch in panel.patches]
    return [(box.x0, box.x1) for box in boxes]


def outline(panel: Axes) -> Bbox:
    """The box around a panel with its labels and legend."""
    box = panel.get_tightbbox()
    assert box is not None
    return Bbox(box.get_points())


def pixels(figure: Figure) -> npt.NDArray[np.float64]:
    return np.asarray(imread(BytesIO(render(figure, ".png")), format="png"))


def test_run_figure_names_quantities_units_and_errors() -> None:
    """Axes carry units; the legend has each parameter file with its mean absolute error in mrad."""
    figure = run_figure(drawing("kp400_sin"))
    upper, lower = figure.axes
    assert upper.get_title() == "kp400_sin"
    assert upper.get_ylabel() == "position [rad]"
    assert "[mrad]" in lower.get_ylabel()
    assert lower.get_xlabel() == "time [s]"
    names = entries(figure.legends[0])
    assert names == ["measured", "goal", "torque off", "m1.json: 10.0 mrad", "m6.json: 20.0 mrad"]


def test_residuals_are_simulated_minus_measured_in_milliradian() -> None:
    """A simulation 10 mrad above the measurement is drawn at +10."""
    lower = run_figure(drawing()).axes[1]
    drawn = [np.asarray(line.get_ydata(), dtype=np.float64) for line in lower.get_lines()]
    first, second = (values for values in drawn if len(values) == len(TIME))
    np.testing.assert_allclose(first, 10.0)
    np.testing.assert_allclose(second, 20.0)


def test_simulations_differ_in_colour_and_dashes() -> None:
    """Thirty simulations look different, and neighbours differ without any colour."""
    labels = tuple(f"{k}.json" for k in range(30))
    lines = {line.get_label(): line for line in run_figure(drawing(labels=labels)).axes[0].get_lines()}
    looks = {(lines[label].get_color(), str(vars(lines[label])["_dash_pattern"])) for label in labels}
    assert len(looks) == 30
    assert vars(lines["0.json"])["_dash_pattern"] != vars(lines["1.json"])["_dash_pattern"]


def test_time_without_torque_is_shaded() -> None:
    """Shading runs from the first sample without torque to the first with torque again, on both panels."""
    for panel in run_figure(drawing()).axes:
        np.testing.assert_allclose(shaded(panel), [(2.0, 3.01)], atol=1e-9)


def test_torque_off_until_the_end_is_shaded_until_the_end() -> None:
    """A lift-and-drop run ends without torque."""
    figure = run_figure(replace(drawing(labels=()), torque_enable=np.zeros_like(TIME)))
    np.testing.assert_allclose(shaded(figure.axes[0]), [(0.0, 6.0)], atol=1e-9)


def test_a_run_without_simulations_has_positions_only() -> None:
    """There is nothing to subtract: one panel, and no word on errors."""
    figure = run_figure(drawing(labels=()))
    assert len(figure.axes) == 1
    assert figure.axes[0].get_xlabel() == "time [s]"
    assert figure.legends[0].get_title().get_text() == ""


@pytest.mark.slow
def test_the_legend_lies_outside_the_panels_and_inside_the_picture() -> None:
    """However many and long the entries are, nothing is covered or cut off."""
    labels = tuple(f"fits/2026/a_long_name_of_a_parameter_file_{k}" * 3 for k in range(8))
    for figure in (run_figure(drawing(labels=labels)), run_figure(drawing())):
        render(figure, ".png")
        legend = figure.legends[0].get_window_extent()
        assert figure.bbox.x0 <= legend.x0 < legend.x1 <= figure.bbox.x1
        assert figure.bbox.y0 <= legend.y0
        assert all(legend.y1 < outline(panel).y0 + 1.0 for panel in figure.axes)


def test_overview_without_simulations_still_names_the_runs() -> None:
    """Recordings can be looked at before anything is fitted."""
    figure = draw_overview([drawing("first", ()), drawing("second", ())])
    legends = [panel.get_legend() for panel in figure.axes]
    assert [legend.get_title().get_text() for legend in legends if legend] == ["first", "second"]
    assert pixels(figure).size


@pytest.mark.parametrize("count", [1, 3, 5, 12])
def test_overview_has_a_panel_for_each_run(count: int) -> None:
    """Up to four panels in a row, each with its name and errors; times are shared."""
    figure = draw_overview([drawing(f"run {k}") for k in range(count)])
    assert len(figure.axes) == count
    for k, panel in enumerate(figure.axes):
        legend = panel.get_legend()
        assert legend is not None
        assert legend.get_title().get_text() == f"run {k}"
        assert entries(legend) == ["m1.json: 10.0 mrad", "m6.json: 20.0 mrad"]
        assert panel.get_xlim() == figure.axes[0].get_xlim()
    assert sum(panel.get_xlabel() == "time [s]" for panel in figure.axes) == min(count, 4)
    assert sum(panel.get_ylabel() == "position [rad]" for panel in figure.axes) == -(-count // 4)


@pytest.mark.slow
def test_overview_panels_and_their_legends_do_not_overlap() -> None:
    """Names and errors stay within the column and below the panel above."""
    labels = tuple(f"a_long_folder/of_a_fit/parameters_{k}.json" for k in range(6))
    figure = draw_overview([drawing("a_very_long_name_of_a_run_" * 3, labels) for _ in range(8)])
    render(figure, ".png")
    boxes = [outline(panel) for panel in figure.axes]
    for k, box in enumerate(boxes):
        assert figure.bbox.x0 <= box.x0 < box.x1 <= figure.bbox.x1
        assert figure.bbox.y0 <= box.y0 < box.y1 <= figure.bbox.y1
        assert not any(box.overlaps(other) for other in boxes[k + 1 :])


@pytest.mark.slow
def test_overview_of_a_hundred_runs_is_one_tall_legible_picture() -> None:
    """Panels keep their size, whatever their number."""
    few, many = draw_overview([drawing()] * 12), draw_overview([drawing()] * 100)
    size_of = {id(figure): figure.axes[0].get_window_extent().size for figure in (few, many)}
    np.testing.assert_allclose(size_of[id(few)], size_of[id(many)], rtol=1e-6)
    assert many.get_figwidth() == few.get_figwidth()
    assert many.get_figheight() * DPI < LARGEST_PICTURE


def test_a_simulation_has_the_same_look_in_every_run() -> None:
    """Even when the runs do not have the same simulations."""
    figure = draw_overview([drawing(labels=("a", "b")), drawing(labels=("b",))])
    colours = [{line.get_label(): line.get_color() for line in panel.get_lines()} for panel in figure.axes]
    assert colours[0]["b"] == colours[1]["b"] != colours[0]["a"]


def test_diagram_shows_boundaries_static_zone_and_units() -> None:
    """One panel for each law; a self-locking joint has no backdrive boundary, and its panel says so."""
    figure = draw_diagram(worm_and_spur(), max_torque=1.0, title="two gears")
    spur, worm = figure.axes
    assert figure.get_suptitle() == "two gears"
    assert [panel.get_title() for panel in figure.axes] == ["spur.json", "worm.json (self-locking)"]
    assert spur.get_xlabel().endswith("[N m]")
    assert spur.get_ylabel().endswith("[N m]")
    assert spur.get_xlim() == worm.get_xlim() == (0.0, 1.0)
    assert len(spur.get_lines()) == 1 + 2 * 4  # equal torques, then both boundaries at four speeds
    assert len(spur.collections) == 1
    names = entries(figure.legends[0])
    assert names[:4] == ["backdrive boundary", "drive boundary", "static zone", "equal torques"]
    assert names[4].endswith("0, 1, 2, 3 rad/s")


def test_faster_boundaries_are_paler() -> None:
    """Opacity falls with speed, as in the paper's figure 4."""
    lines = draw_diagram(worm_and_spur()[:1], max_torque=1.0, title="").axes[0].get_lines()[1:]
    opacities = [line.get_alpha() or 0.0 for line in lines[::2]]
    assert opacities[0] == 1.0
    assert np.all(np.diff(opacities) < 0.0)


def test_the_static_zone_belongs_to_rest_whatever_the_order_of_speeds() -> None:
    """The zone of a joint in motion is not where it stays at rest."""
    motor = np.linspace(0.0, 1.0, 21)

    def zones(*speeds: float) -> list[float]:
        curve = diagram_curve("m1", law_named("m1"), COULOMB, motor, speeds)
        panel = draw_diagram([curve], max_torque=1.0, title="").axes[0]
        return [float(np.max(np.asarray(zone.get_paths()[0].vertices)[:, 1])) for zone in panel.collections]

    assert zones(2.0, 0.0) == zones(0.0, 2.0) == [pytest.approx(1.02)]
    assert zones(1.0, 2.0) == []


def test_names_with_dollars_and_underscores_are_shown_as_they_are() -> None:
    """Names of files and runs are no formulas: an unpaired brace in one would stop the drawing."""
    run = drawing("a $run_{1$", labels=("$\\frac{m6$",))
    assert pixels(run_figure(run)).size
    assert pixels(draw_overview([run])).size


def test_a_label_that_begins_with_an_underscore_is_listed() -> None:
    """Matplotlib would leave it out of the legend."""
    run = drawing(labels=("_fit.json",))
    assert entries(run_figure(run).legends[0])[-1].strip() == "_fit.json: 10.0 mrad"
    legend = draw_overview([run]).axes[0].get_legend()
    assert legend is not None
    assert len(entries(legend)) == 1


def test_saved_png_has_the_size_and_something_on_it(tmp_path: Path) -> None:
    """150 dots per inch, white around, and colours of the curves inside."""
    path = tmp_path / "new" / "run.png"
    figure = run_figure(drawing())
    save(figure, path)
    assert path.read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
    image = imread(path)
    width, height = figure.get_size_inches()
    assert image.shape[:2] == (round(height * DPI), round(width * DPI))
    np.testing.assert_array_equal(image[0, :, :3], 1.0)
    np.testing.assert_array_equal(image[:, -1, :3], 1.0)
    assert np.mean(np.any(image[..., :3] < 0.9, axis=-1)) > 0.01
    blue = np.abs(image[..., :3] - np.array([0x00, 0x72, 0xB2]) / 255.0).max(axis=-1) < 0.02
    assert np.sum(blue) > 500


@pytest.mark.one_case_is_quick
@pytest.mark.parametrize("suffix", list(FORMATS))
def test_the_same_figure_gives_the_same_file(suffix: str) -> None:
    """No dates, no random identifiers."""
    first, second = (render(run_figure(drawing()), suffix) for _ in range(2))
    assert first == second


def test_unknown_suffix_is_refused_with_the_valid_ones(tmp_path: Path) -> None:
    """Nothing is written."""
    with pytest.raises(ConfigError, match=r"unknown picture format '\.jpeg'; valid: \.png, \.svg, \.pdf"):
        save(run_figure(drawing()), tmp_path / "run.jpeg")
    with pytest.raises(ConfigError, match="valid"):
        save(run_figure(drawing()), tmp_path / "run")
    assert list(tmp_path.iterdir()) == []


def test_an_existing_picture_is_replaced_whole_or_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A figure that cannot be drawn or a disk that is full leaves the old file, and nothing beside it."""
    path = tmp_path / "run.SVG"
    path.write_text("old")
    figure = run_figure(drawing())

    def full_disk(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("os.replace", full_disk)
        with pytest.raises(OutputError, match="No space left"):
            save(figure, path)
    assert path.read_text() == "old"
    save(figure, path)
    assert "<svg" in path.read_text()
    assert list(tmp_path.iterdir()) == [path]


def test_drawing_leaves_global_settings_alone_and_obeys_its_own() -> None:
    """A user's matplotlibrc does not change our pictures, and ours does not change the user's."""
    reference = pixels(run_figure(drawing()))
    mine: dict[Any, Any] = {
        "font.size": 20.0,
        "axes.facecolor": "black",
        "savefig.bbox": "tight",
        "figure.dpi": 30,
    }
    with matplotlib.rc_context(mine):
        before = dict(matplotlib.rcParams)
        found = pixels(run_figure(drawing()))
        assert dict(matplotlib.rcParams) == before
    np.testing.assert_array_equal(found, reference)


@pytest.mark.slow
def test_figures_need_no_pyplot() -> None:
    """Pyplot keeps global state and may look for a display."""
    program = "import sys, stribeck.report.figures; sys.exit('matplotlib.pyplot' in sys.modules)"
    environment: Mapping[str, str] = {"PYTHONPATH": ":".join(sys.path)}
    assert subprocess.run([sys.executable, "-c", program], env=environment, check=False).returncode == 0
