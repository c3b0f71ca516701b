"""`fit.save` of a servo left out where the parameters come from, so that `export` asked for the supply of the recordings."""

from pathlib import Path

import stribeck as sb
from reporting import file_of, provenance_of
from stribeck.api.fit import Fit
from stribeck.files.drives import Drives
from stribeck.model.provenance import Spread


def test_a_saved_fit_states_its_recordings_and_their_supply(tmp_path: Path):
    """What one drive knows of its origin is in the file, and read again."""
    origin = provenance_of([], supply_voltage=Spread(5.0, 4.9, 5.1))
    saved = Fit(Drives({"": file_of("m3", origin)})).save(tmp_path / "p.json")
    (drive,) = sb.read(saved).drives.values()
    assert drive.provenance is not None
    assert drive.provenance.supply_voltage == origin.supply_voltage
