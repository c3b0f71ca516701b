"""The drive/backdrive diagram of one joint of a file with several."""

from stribeck.cli.main import main
from stribeck.emulator.joint import published_parameters
from stribeck.files.drives import Drives, write_drives


def test_a_joint_is_named_and_drawn(tmp_path, capsys):
    """What happened: a file of an arm was refused, whatever `--file-joint` said. What must happen: its joint is drawn."""
    servo = published_parameters("xl330")
    write_drives(tmp_path / "arm.json", Drives({"hip": servo, "knee": servo}))
    words = ["evaluate", "--params", str(tmp_path / "arm.json"), "--diagram", str(tmp_path / "d.png")]
    assert main(words) == 1
    assert "--file-joint" in capsys.readouterr().err
    assert main([*words, "--file-joint", "knee"]) == 0
    assert (tmp_path / "d.png").stat().st_size > 0
