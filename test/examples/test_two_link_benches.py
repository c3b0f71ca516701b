"""The arms of two links and their paths: what is written down of them, and that they can go there."""

import numpy as np
import pytest

from stribeck.errors import ConfigError
from two_link import joint_angles
from two_link_benches import BENCHES, bench_named

CASES = [(name, path) for name, bench in BENCHES.items() for path in bench.paths]


@pytest.mark.parametrize(("name", "path"), CASES)
def test_paths_are_within_reach_and_steady(name, path):
    """Joint angles exist everywhere and move less than 3 rad/s; the end holds."""
    bench = BENCHES[name]
    chosen = bench.paths[path]
    time = np.arange(0.0, chosen.duration + 1.0, 0.005)
    angles = np.stack(joint_angles(bench.links, *chosen.at(time)))
    assert np.abs(np.diff(angles) / 0.005).max() < 3.0
    after = time > chosen.duration
    assert np.ptp(angles[:, after], axis=1) == pytest.approx(0.0, abs=1e-12)


def test_corners_are_where_they_were_written_down():
    """Times and places of corners of both arms, by hand; the circle's four quarters."""
    mx, erob = BENCHES["mx"].paths, BENCHES["erob"].paths
    at = np.array([0.0, 1.5, 3.0, 4.5, 28.5])
    np.testing.assert_allclose(
        np.transpose(mx["square_wave"].at(at)),
        [[0.2, -0.2452], [0.2, -0.1952], [0.2 - 0.4 / 9, -0.1952], [0.2 - 0.4 / 9, -0.2452], [-0.2, -0.2452]],
        atol=1e-12,
    )
    np.testing.assert_allclose(
        np.transpose(erob["triangular_wave"].at(np.array([0.0, 2.0, 4.0, 6.0, 42.0]))),
        [[-0.25, -0.3], [-0.25, -0.3], [-0.2, -0.2], [-0.2, -0.2], [0.25, -0.3]],
        atol=1e-12,
    )
    np.testing.assert_allclose(
        np.transpose(mx["circle"].at(np.array([0.0, 2.0, 4.0, 6.0, 8.0]))),
        [[0.0, -0.2952], [0.05, -0.2452], [0.0, -0.1952], [-0.05, -0.2452], [0.0, -0.2952]],
        atol=1e-12,
    )
    durations = {path: (mx[path].duration, erob[path].duration) for path in mx}
    assert durations == {
        "circle": (8.0, 8.0),
        "square": (8.0, 13.0),
        "square_wave": (28.5, 39.0),
        "triangular_wave": (15.0, 42.0),
    }


def test_pendulum_runs_are_the_table_of_the_paper():
    """All combinations once; fewer are a part of them that the seed decides."""
    plays = BENCHES["mx"].plays(15.0, 1000, np.random.default_rng(0))
    assert len(plays) == 3 * 3 * 4 * 4
    assert len({(setup, trajectory.name) for setup, trajectory in plays}) == len(plays)
    assert {setup.kp for setup, _ in plays} == {4.0, 8.0, 16.0, 32.0}
    assert len(BENCHES["erob"].plays(48.0, 1000, np.random.default_rng(0))) == 5 * 4 * 4
    some = [BENCHES["mx"].plays(15.0, 20, np.random.default_rng(seed)) for seed in (1, 1, 2)]
    assert some[0] == some[1] != some[2]
    assert all(play in plays for play in some[0])


def test_unknown_arms_are_refused():
    """The message lists what there is."""
    with pytest.raises(ConfigError, match="valid: mx, erob"):
        bench_named("xl")
