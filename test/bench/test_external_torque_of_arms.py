"""External torque on five arms with friction ± 30 % and masses ± 10 %: no false alarm, and contacts are found in time."""

import pytest

from external_torque import ARMS, measured


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_free_motion_raises_no_alarm_and_contacts_do():
    """Two minutes of free motion of all arms together, and 20 contacts of 1.5 thresholds: nine of ten within 100 ms."""
    found = measured(list(ARMS), 0.4, 4, 0)
    assert found["alarms per 10 minutes"] <= 1.0
    assert 0.95 <= found["within the band"] <= 0.99
    assert found["contacts found"] >= 0.9 * found["contacts"]
