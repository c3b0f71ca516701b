"""A bus that lacked a servo was said to have STS3215 for 12 V, whose number is that of the one for 7.4 V."""

import pytest

from driving import emulated
from stribeck.errors import ServoError
from virtual_bus import VirtualBus


def test_a_number_of_two_models_has_the_title_of_the_first():
    """What is expected and what is found read alike."""
    with VirtualBus(emulated("sts3215")) as bus, pytest.raises(ServoError) as error:
        bus.bus("sts3215", "sts3215").connect()
    assert "found: 1 Feetech STS3215. " in str(error.value)
