"""What a new user met with tables and files of a servo of their own: each message named another cause, or there was none."""

import numpy as np
import pytest

from helpers import assert_clear
from stribeck.cli.main import main
from stribeck.errors import RecordingError
from stribeck.files.folders import shared_directory
from stribeck.identify.common.clusters import bias_reduced
from stribeck.model.estimate import estimate_of
from stribeck.survey.bench import survey_bench

TIME = np.arange(0.0, 3.0, 0.01)
SIGNALS = "position: {column: q}\ngoal: {column: g}\ntorque_enable: {constant: 1}\ntime: {column: t}\n"
BENCH = "mass=0.1,length=0.1,arm_mass=0,kp=400,supply_voltage=5,actuator="


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A run of a servo in a table, and its table of signals."""
    monkeypatch.chdir(tmp_path)
    columns = [TIME, np.sin(2.0 * TIME - 0.1), np.sin(2.0 * TIME), 0.5 + 0.0 * TIME]
    np.savetxt("run.csv", np.column_stack(columns), delimiter=",", header="t,q,g,u", comments="")
    (tmp_path / "signals.yaml").write_text(SIGNALS)
    return tmp_path


def imported(capsys, *words, servo="xl330", signals="signals.yaml"):
    code = main(
        [
            "data",
            "import",
            "run.csv",
            "--signals",
            signals,
            "--bench",
            BENCH + servo,
            "--output",
            "bags",
            *words,
        ]
    )
    return code, capsys.readouterr().err


def test_a_servo_named_once(folder, capsys):
    """What happened: "unknown actuator 'mine'" although --bench gave its file. Once is enough, in a bench file as well."""
    text = (shared_directory("config") / "actuators" / "xl330.yaml").read_text()
    (folder / "mine.yaml").write_text(text.replace("name: xl330", "name: mine"))
    assert imported(capsys, servo="mine.yaml") == (0, "")
    values = BENCH.replace("=", ": ").replace(",", ", ")
    (folder / "sub").mkdir()
    (folder / "sub" / "bench.yaml").write_text(f"defaults: {{{values}../mine.yaml}}\n")
    words = ["run.csv", "--signals", "signals.yaml", "--bench", "sub/bench.yaml", "--output", "more"]
    assert main(["data", "import", *words]) == 0


@pytest.mark.parametrize(
    ("change", "parts"),
    [
        (("{column: t}", "{column: stamp}"), ("no numeric column stamp for time", "t, q, g, u")),
        (("{column: q}", "{column: q, scale: 0}"), ("position: scale: must not be 0",)),
        (("{column: q}", "{column: q, file: other.csv}"), ("position from the file other.csv", "folder")),
    ],
)
def test_the_column_that_is_missing_is_named(folder, capsys, change, parts):
    (folder / "signals.yaml").write_text(SIGNALS.replace(*change))
    code, said = imported(capsys)
    assert code == 1
    assert_clear(RecordingError(said.strip()), *parts)


def test_a_supply_in_another_unit_is_told(folder, capsys):
    """Half a volt for a servo of 5 V."""
    (folder / "signals.yaml").write_text(f"{SIGNALS}supply_voltage: {{column: u}}\n")
    code, said = imported(capsys)
    assert code == 0
    assert "the recorded supply is 0.5 V, far below the rated 3.7 V" in said


def test_a_table_without_a_position(folder):
    np.savetxt("other.csv", np.column_stack([TIME, TIME]), delimiter=",", header="t,alpha", comments="")
    with pytest.raises(RecordingError) as caught:
        survey_bench([folder / "other.csv"], None, None)
    assert_clear(caught.value, "a name that means position", "alpha")


def test_motion_that_no_parameter_changes_has_no_clusters():
    """What happened: a traceback from the covariance, when all parameters ended at bounds. What must happen: no information."""
    from stribeck.identify.servo.rollout import Scores
    from stribeck.identify.servo.uncertainty import clusters_of

    scores = Scores(np.zeros((1, 1, 1, 2)), np.zeros((1, 1, 1, 2, 2)))
    gradient, curvature = clusters_of(scores, 0, np.ones(2, dtype=bool))
    assert gradient.shape == (1, 2)
    assert not bias_reduced(gradient, curvature + 1e-12 * np.eye(2)).matrix.any()


def test_a_positive_parameter_has_no_negative_limit():
    """What happened: the Stribeck velocity of an arm "between 0.01 and 3.1", with an interval from -0.68 in the files."""
    found = estimate_of(1.2, "rad/s", (-0.7, 3.1), bounds=(0.01, 10.0))
    assert found.interval == (0.0, 3.1)


def test_a_servo_of_a_negative_voltage(folder, capsys):
    text = (shared_directory("config") / "actuators" / "xl330.yaml").read_text()
    (folder / "negative.yaml").write_text(
        text.replace("name: xl330", "name: mine").replace("nominal: 5.0", "nominal: -5.0")
    )
    code, said = imported(capsys, servo="negative.yaml")
    assert code == 1
    assert "supply: expected nominal above 0" in said


def test_an_actuator_that_contradicts_the_bench_is_told(folder, capsys):
    """What happened: the servo named was ignored without a word where the bench names another servo."""
    code, said = imported(capsys, "--servo", "sts3215")
    assert code == 0
    assert "run states that its servo is 'xl330': --servo sts3215 is not used" in said
