"""Friction of one joint from tables: what is found of plants that are not our laws, and which law is chosen."""

from dataclasses import replace

import numpy as np
import pytest

from joint_tables import FRICTION, columns, steady, sweep, wobble, write_table
from stribeck.files.actuators import load_actuator
from stribeck.identify.joint.fit import JointFit, fit_structure
from stribeck.identify.joint.identify import identify_joint
from stribeck.identify.joint.joint_file import ACTUATOR, joint_file
from stribeck.identify.joint.model import Frame, Structure, columns_of, developed, torque_of
from stribeck.identify.joint.recording import Known, differentiated, recording_of
from stribeck.identify.joint.run import JointRun, developed_share, joined, recursion
from stribeck.identify.joint.selection import ripple_wave
from stribeck.identify.joint.sweeps import is_sweep, plateaus_of
from stribeck.identify.joint.uncertainty import uncertainty_of
from stribeck.model.law import LAWS, offset_torque
from stribeck.survey.joint_table import read_joint_table

SPEEDS = np.array([0.01, 0.03, 0.1, 0.2])


def recording(folder, table, name="table.csv", known=None):
    return recording_of(read_joint_table(write_table(folder / name, table)), known)


@pytest.fixture(scope="module")
def lugre_result(tmp_path_factory):
    """The law identified from one motion of a LuGre joint, and a recording of a faster one."""
    folder = tmp_path_factory.mktemp("lugre")
    fitted = recording(folder, columns(wobble(40.0, 0.01)))
    faster = recording(folder, columns(wobble(20.0, 0.01, rate=1.5), seed=1), "faster.csv")
    return identify_joint([fitted], [faster])


def friction_at(result, speeds):
    """Friction of the identified law in even motion [N m]."""
    p = result.fit.values
    weight = np.exp(-((speeds / p["dtheta_stribeck"]) ** p["alpha"])) if "alpha" in p else 0.0 * speeds
    return p["friction_base"] + weight * p.get("friction_stribeck", 0.0) + p["friction_viscous"] * speeds


@pytest.mark.slow
def test_steady_friction_of_a_lugre_joint_is_found(lugre_result):
    """A joint with bristles is no law of ours; its friction in even motion is found within 5 %."""
    assert friction_at(lugre_result, SPEEDS) == pytest.approx(steady(SPEEDS), rel=0.05)
    assert "presliding" in lugre_result.fit.structure.terms


@pytest.mark.slow
def test_a_faster_motion_is_predicted(lugre_result):
    """The error of a motion that was not fitted is little more than the noise, and the verdict says usable."""
    (error,) = lugre_result.validation
    assert error.rms < 2.0 * lugre_result.train[0].rms
    assert error.relative < 0.05
    assert lugre_result.verdict.use == "usable"


@pytest.mark.slow
def test_sweep_is_recognised_and_shows_the_stribeck_curve(tmp_path):
    """Plateaus of both directions, each with its speed; friction as steady as the plant's."""
    found = recording(tmp_path, columns(sweep()))
    result = identify_joint([found])
    speeds = sorted({round(abs(one.velocity), 3) for one in result.plateaus})
    assert speeds == [0.01, 0.02, 0.05, 0.1, 0.2, 0.4]
    assert result.fit.structure.law.name == "m2"
    assert friction_at(result, SPEEDS) == pytest.approx(steady(SPEEDS), rel=0.05)


def test_sines_are_no_sweep(tmp_path):
    """A motion that never turns evenly has no plateaus that count."""
    found = recording(tmp_path, columns(wobble(30.0)))
    assert not is_sweep(found.runs, plateaus_of(found.runs))


def test_coulomb_and_viscous_friction_alone_stay_alone(tmp_path):
    """A simple joint gets the simple law: nothing is added that does not predict better."""
    motion = wobble(40.0)
    friction = 0.5 * np.sign(motion[2]) + 0.9 * motion[2]
    noise = 0.02 * np.random.default_rng(3).standard_normal(len(friction))
    result = identify_joint(
        [
            recording(
                tmp_path, dict(zip(("time", "q", "dq", "tau"), (*motion[:3], friction + noise), strict=True))
            )
        ]
    )
    assert result.fit.structure.law.name == "m1"
    assert result.fit.values["friction_base"] == pytest.approx(0.5, abs=0.01)
    assert result.fit.values["friction_viscous"] == pytest.approx(0.9, rel=0.03)
    for name, truth in (("friction_base", 0.5), ("friction_viscous", 0.9)):
        lower, upper = result.uncertainty.estimates[name].interval
        assert lower < truth < upper


@pytest.mark.slow
def test_offset_is_told_from_friction(tmp_path):
    """A constant torque is the offset, and not friction that differs by direction."""
    table = columns(wobble(30.0, 0.01))
    result = identify_joint([recording(tmp_path, {**table, "tau": table["tau"] - 0.4})])
    assert result.fit.values["torque_offset"] == pytest.approx(0.4, abs=0.05)


def test_torque_that_grows_with_the_angle_is_called_a_wrong_rigid_model(tmp_path):
    """A torque over the angle larger than the friction, and noise that no law explains: not usable, and why."""
    table = columns(wobble(40.0, 0.01), noise=0.8)
    wrong = table["tau"] + 4.0 * table["q"] + 2.0 * np.sin(8.0 * table["q"])
    verdict = identify_joint([recording(tmp_path, {**table, "tau": wrong})]).verdict
    assert verdict.use == "unusable"
    assert "rigid_model" in {reason.key for reason in verdict.reasons}


def test_known_inertia_gives_what_the_free_one_finds(tmp_path):
    """A rigid torque that is given as a column or as a known inertia leaves the same friction."""
    table = columns(wobble(20.0, 0.01))
    column = {**table, "tau_rigid": FRICTION["inertia"] * table["ddq"]}
    given = recording(tmp_path, column, "given.csv")
    known = recording(tmp_path, table, "known.csv", Known(inertia=FRICTION["inertia"]))
    left = [run.torque - run.rigid for run in (*given.runs, *known.runs)]
    assert left[0] == pytest.approx(left[1], abs=1e-6)


def test_current_counts_with_its_torque_constant(tmp_path):
    """A current times its torque constant is the torque."""
    table = columns(wobble(10.0))
    other = {name: values for name, values in table.items() if name != "tau"} | {
        "current": table["tau"] / 1.6
    }
    of_current = recording(tmp_path, other, "current.csv", Known(kt=1.6))
    assert of_current.runs[0].torque == pytest.approx(table["tau"], rel=1e-6, abs=1e-8)


def test_position_alone_is_differentiated():
    """The derivatives of a sampled sine are its cosine and its negative sine."""
    time = np.arange(0.0, 10.0, 0.01)
    inner = slice(20, -20)
    assert differentiated(time, np.sin(time), 1)[inner] == pytest.approx(np.cos(time)[inner], abs=1e-3)
    assert differentiated(time, np.sin(time), 2)[inner] == pytest.approx(-np.sin(time)[inner], abs=2e-3)


def test_presliding_state_does_not_depend_on_the_sampling():
    """The developed share after a movement in one direction is the same in one step as in many."""
    whole = developed_share(np.array([0.0, 2e-3]), 1e-3)[-1]
    fine = developed_share(np.linspace(0.0, 2e-3, 500), 1e-3)[-1]
    assert fine == pytest.approx(whole, rel=1e-12)
    assert whole == pytest.approx(1.0 - np.exp(-2.0))


def test_recursion_is_the_loop():
    """The states of a linear recursion by blocks are those of the plain loop, for lengths that no block divides."""
    rng = np.random.default_rng(5)
    for count in (1, 2, 3, 50, 1000):
        kept, added, state, states = rng.random(count), rng.random(count), 0.0, []
        for a, b in zip(kept, added, strict=True):
            state = a * state + b
            states.append(state)
        assert recursion(kept, added) == pytest.approx(np.array(states), rel=1e-12)


def test_noise_of_the_position_does_not_undo_the_friction(tmp_path):
    """A noise of a tenth of the presliding length leaves the length within a factor of 1.5: the state follows averaged positions."""
    table = columns(wobble(40.0, 0.005), noise=0.01)
    noise = 4e-5 * np.random.default_rng(7).standard_normal(len(table["q"]))
    clean, noisy = (
        fit_structure(found.runs, Structure(LAWS["m2"].with_terms(offset=True), 1), Frame.of(found.runs))
        for found in (recording(tmp_path, table), recording(tmp_path, {**table, "q": table["q"] + noise}))
    )
    ratio = noisy.values["presliding_length"] / clean.values["presliding_length"]
    assert 1.0 / 1.5 < ratio < 1.5


@pytest.mark.slow
def test_friction_that_develops_slowly_is_a_second_element(tmp_path):
    """Two slip elements of different stiffness: both lengths and the share of the second are found, and the sum is the law's."""
    time, position, velocity, _ = wobble(60.0, 0.005)
    lengths = np.array([3e-4, 3e-2])
    shares = [developed_share(position, length) for length in lengths]
    torque = 0.7 * shares[0] + 0.5 * shares[1] + 0.4 * velocity
    torque += 0.01 * np.random.default_rng(2).standard_normal(len(time))
    table = {"time": time, "q": position, "dq": velocity, "tau": torque}
    result = identify_joint([recording(tmp_path, table)])
    assert result.fit.structure.presliding == 2
    values = result.fit.values
    assert values["friction_base"] == pytest.approx(1.2, rel=0.02)
    assert values["presliding_friction_2"] == pytest.approx(0.5, rel=0.05)
    assert values["presliding_length_2"] == pytest.approx(3e-2, rel=0.1)
    for name, truth in (("friction_base", 1.2), ("presliding_friction_2", 0.5)):
        lower, upper = result.uncertainty.estimates[name].interval
        assert lower < truth < upper


def test_regressor_is_the_derivative_of_the_torque():
    """The columns are the finite differences of the predicted torque, with all parts of the model."""
    time, position, velocity, acceleration = wobble(5.0, 0.02)
    zero = np.zeros_like(time)
    run = JointRun("", time, position, velocity, acceleration, zero, zero, zero, zero + 1.0)
    law = LAWS["m2"].with_terms(position=True, offset=True)
    structure = Structure(law, 2, ("inertia", "line", "curve", "ripple"))
    frame = replace(Frame.of([run]), wave=9.0)
    names = columns_of(
        run,
        structure,
        {"dtheta_stribeck": 0.1, "alpha": 1.5, "presliding_length": 0.01, "presliding_length_2": 0.1},
        frame,
    )
    values = {name: 0.3 + 0.1 * k for k, name in enumerate(names)}
    values |= {
        "dtheta_stribeck": 0.1,
        "alpha": 1.5,
        "presliding_length": 0.01,
        "presliding_length_2": 0.1,
        "friction_centre": frame.centre,
    }
    values |= {"friction_slope": 0.02, "friction_curve": 0.01}
    base = torque_of(run, structure, values, frame)
    for name, column in columns_of(run, structure, values, frame).items():
        higher = torque_of(run, structure, {**values, name: values[name] + 1e-4}, frame)
        assert (higher - base) / 1e-4 == pytest.approx(column, abs=1e-6), name
    assert np.abs(developed(run, structure, values, frame)).max() <= 1.0 + 1e-12


def test_rows_that_are_not_kept_do_not_count():
    """A fit of the kept rows is the fit of those rows alone, whatever the others hold."""
    time, position, velocity, acceleration = wobble(20.0, 0.01)
    zero = np.zeros_like(time)
    torque = 0.4 * np.sign(velocity) + 0.2 * velocity
    kept = (time < 10.0).astype(float)
    spoiled = np.where(kept > 0.0, torque, 100.0)
    run = JointRun("", time, position, velocity, acceleration, spoiled, zero, zero, kept)
    fit: JointFit = fit_structure([run], Structure(LAWS["m1"].with_terms(offset=True)), Frame.of([run]))
    assert fit.values["friction_base"] == pytest.approx(0.4, abs=1e-6)
    assert fit.values["friction_viscous"] == pytest.approx(0.2, abs=1e-6)


def test_ripple_is_found_where_it_is():
    """The wave number of a ripple in noise is found within a hundredth of a period over the travel; noise has none."""
    rng = np.random.default_rng(2)
    position = 0.5 * np.sin(np.linspace(0.0, 40.0, 20000))
    noise = 0.3 * rng.standard_normal(len(position))
    assert ripple_wave(position, noise) == 0.0
    assert ripple_wave(position, noise + 0.4 * np.sin(202.0 * position + 1.0)) == pytest.approx(
        202.0, rel=0.01
    )


def test_a_ripple_is_in_the_file_as_the_torque_beside_the_motor(tmp_path):
    """Its harmonics with the sign of a torque that acts on the joint; intervals and correlation turn their sign, too."""
    table = columns(wobble(40.0, 0.01))
    table["tau"] += 0.05 * np.sin(9.0 * table["q"]) - 0.02 * np.cos(18.0 * table["q"])
    result = identify_joint([recording(tmp_path, table)], excluded=("angle", "ripple"))
    frame = replace(result.fit.frame, wave=9.0)
    structure = replace(result.fit.structure, rest=(*result.fit.structure.rest, "ripple"))
    fit = fit_structure(result.runs, structure, frame)
    found = replace(result, fit=fit, uncertainty=uncertainty_of(fit, result.runs))
    drive = joint_file(found, load_actuator(ACTUATOR))
    assert {"ripple", "second_ripple"} <= set(drive.law.optional_terms)
    expected = {
        "ripple_order": 9.0,
        "second_ripple_order": 18.0,
        "ripple_sine": -0.05,
        "second_ripple_cosine": 0.02,
    }
    for name, value in expected.items():
        assert drive.values[name] == pytest.approx(value, abs=0.003), name
    angle = np.linspace(-1.0, 1.0, 11)
    names = ("ripple_sine_1", "ripple_cosine_1", "ripple_sine_2", "ripple_cosine_2")
    needed = sum(
        fit.values[name]
        * (np.sin if "sine" in name.replace("cosine", "") else np.cos)(9.0 * int(name[-1]) * angle)
        for name in names
    )
    constant = drive.values.get("torque_offset", 0.0)
    acting = offset_torque(drive.law, drive.values, angle) - constant
    np.testing.assert_allclose(acting, -needed, atol=1e-12)
    lower, upper = found.uncertainty.estimates["ripple_sine_1"].interval
    assert drive.stated["ripple_sine"].interval == (-upper, -lower)
    ours, theirs = drive.correlation, found.uncertainty.correlation
    pair = [theirs.names.index(name) for name in ("friction_viscous", "ripple_sine_1")]
    same = [ours.names.index(name) for name in ("friction_viscous", "ripple_sine")]
    assert ours.matrix[same[0]][same[1]] == -theirs.matrix[pair[0]][pair[1]] != 0.0


@pytest.mark.slow
def test_two_files_are_fitted_together(tmp_path):
    """Runs of two tables have one law; each has its error."""
    tables = [columns(wobble(20.0, 0.01, rate=rate), seed=k) for k, rate in enumerate((1.0, 1.4))]
    both = [recording(tmp_path, table, f"{k}.csv") for k, table in enumerate(tables)]
    result = identify_joint(both)
    assert [one.file for one in result.train] == ["0.csv", "1.csv"]
    assert joined(result.runs, "torque").size == sum(len(table["time"]) for table in tables)
    assert friction_at(result, SPEEDS) == pytest.approx(steady(SPEEDS), rel=0.05)
