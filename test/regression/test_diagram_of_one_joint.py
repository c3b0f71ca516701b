"""The drive/backdrive diagram of one joint of a file with several."""

from dataclasses import replace

import pytest

from stribeck.cli.main import main
from stribeck.emulator.joint import published_parameters
from stribeck.files.drives import Drives, write_drive, write_drives


@pytest.mark.ci
def test_a_joint_is_named_and_drawn(tmp_path, capsys):
    """What happened: a file of an arm was refused, whatever `--file-joint` said. What must happen: its joint is drawn.

    The picture is that of the joint's drive in a file of its own, and another joint has another.
    """
    servo = published_parameters("xl330")
    stiff = replace(
        servo, values={**servo.values, "friction_base": 3.0 * servo.values["friction_base"] + 0.01}
    )

    def words(folder):
        return ["evaluate", "--params", str(folder / "arm.json"), "--diagram", str(folder / "d.png")]

    def drawn(folder, *more):
        assert main([*words(folder), *more]) == 0
        return (folder / "d.png").read_bytes()

    several, alone = tmp_path / "several", tmp_path / "alone"
    for folder in (several, alone):
        folder.mkdir()
    write_drives(several / "arm.json", Drives({"hip": stiff, "knee": servo}))
    assert main(words(several)) == 1
    assert "--file-joint" in capsys.readouterr().err
    hip, knee = (drawn(several, "--file-joint", name) for name in ("hip", "knee"))
    assert hip != knee
    for drive, picture in ((stiff, hip), (servo, knee)):
        write_drive(alone / "arm.json", drive)
        assert drawn(alone) == picture
