"""Parameters of a simulated servo come back at gains up to the firmware's maximum."""

import pytest

import parameter_recovery


@pytest.mark.slow
def test_parameters_of_a_simulated_xl330_come_back():
    """Determined parameters are within 1 %, nine tenths of the intervals hold, and half the step shifts a quarter of one at most."""
    bench = next(bench for bench in parameter_recovery.BENCHES if bench.actuator == "xl330")
    row = parameter_recovery.recover(bench, "m3", 4)
    assert row.determined >= 20
    assert row.within == row.determined
    assert row.held >= 0.85 * row.intervals
    assert row.halved <= 0.25
