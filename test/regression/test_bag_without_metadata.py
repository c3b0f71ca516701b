"""A folder with a storage file but without metadata.yaml, as recordings are passed on."""

import pytest

from helpers import DATA
from stribeck.errors import RecordingError
from stribeck.recordings.bags.storage import read_messages
from stribeck.recordings.tables.readers import find_tables

UR10 = DATA / "ur10_bag"


@pytest.mark.skipif(not UR10.is_dir(), reason="the recording of the UR10 is not here")
def test_a_folder_without_metadata_names_its_file():
    """What happened: "give folder and file the name that they had". What must happen: the file is named, and can be read."""
    with pytest.raises(RecordingError) as refused:
        read_messages(UR10)
    (file,) = UR10.glob("*.db3")
    assert str(refused.value) == f"{UR10} has no metadata.yaml: name the file in it, {file}"
    assert read_messages(file).messages


def test_a_folder_of_folders_without_metadata_holds_recordings(tmp_path):
    """What happened: "no recordings in bags" for bags/run/run_0.db3. What must happen: the file is found."""
    (tmp_path / "bags" / "run").mkdir(parents=True)
    file = tmp_path / "bags" / "run" / "run_0.db3"
    file.write_bytes(b"")
    assert find_tables([tmp_path / "bags"]) == [file]
