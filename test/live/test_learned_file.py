"""What was learnt, in a file: round trip, and whatever does not fit refused in one line."""

import json

import pytest

from stribeck.errors import ConfigError, OutputError
from stribeck.live.learning.file import Identified, Memory, digest_of, put_aside, read_learned, write_learned
from stribeck.live.learning.observer import Learned

JOINTS = [Identified("shoulder", "m6", "sha256:1"), Identified("elbow", "m1", "sha256:2")]
LEARNED = (Learned(1.25, 0.1 + 0.2, 0.05, 0.1), Learned(0.5, 1.0, 0.5, 0.5))


def test_round_trip(tmp_path):
    """To the last bit, and it says when."""
    path = tmp_path / "folder" / "learned.json"
    write_learned(path, JOINTS, LEARNED)
    assert read_learned(path, JOINTS) == LEARNED
    assert json.loads(path.read_text())["time"].endswith("+00:00")


@pytest.mark.parametrize(
    ("change", "part"),
    [
        (lambda d: d.update(schema=2), "unknown schema 2; valid in this version of stribeck: 1"),
        (lambda d: d.pop("time"), "time missing"),
        (lambda d: d.update(more=1), "unknown key 'more'"),
        (lambda d: d.update(joints={}), "expected a list"),
        (
            lambda d: d["joints"].pop(),
            "contains the joints shoulder, but the compensated joints are shoulder, elbow",
        ),
        (lambda d: d["joints"].reverse(), "contains the joints elbow, shoulder"),
        (lambda d: d["joints"][0].update(law="m1"), "joint shoulder had other friction parameters"),
        (lambda d: d["joints"][1].update(parameters="sha256:3"), "joint elbow had other friction parameters"),
        (lambda d: d["joints"][1].update(dry="1"), "dry: expected a number"),
        (lambda d: d["joints"][1].update(viscous=-0.1), "viscous: must be at least 0, found -0.1"),
    ],
)
def test_what_does_not_fit_is_refused(tmp_path, change, part):
    """In one line that says what was found."""
    path = tmp_path / "learned.json"
    write_learned(path, JOINTS, LEARNED)
    data = json.loads(path.read_text())
    change(data)
    path.write_text(json.dumps(data))
    with pytest.raises(ConfigError, match=part) as refused:
        read_learned(path, JOINTS)
    assert len(str(refused.value).splitlines()) == 1


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b"\xff\xfe", b'{"schema": 1, "schema": 1}', b'{"schema": NaN}']
)
def test_damage_is_refused(tmp_path, content):
    """Cut off, of another kind, no text."""
    path = tmp_path / "learned.json"
    path.write_bytes(content)
    with pytest.raises(ConfigError):
        read_learned(path, JOINTS)


def test_the_digest_tells_files_and_quantiles_apart(tmp_path):
    """The same bytes at another quantile are another friction."""
    path = tmp_path / "m1.json"
    path.write_text("{}")
    before = digest_of(path)
    assert before == digest_of(path, 0.5) != digest_of(path, 0.1)
    path.write_text("{ }")
    assert digest_of(path) != before


def test_a_file_that_does_not_fit_is_put_beside(tmp_path):
    """It stays as it is until there is something to write, and then lies beside."""
    path = tmp_path / "learned.json"
    path.write_text("damaged")
    memory = Memory(path, JOINTS)
    learned, problem = memory.read()
    assert learned is None
    assert "learned.json" in problem
    assert "ignored" in problem
    assert path.read_text() == "damaged"
    memory.write(LEARNED)
    assert (tmp_path / "learned.json.old").read_text() == "damaged"
    assert Memory(path, JOINTS).read() == (LEARNED, "")


def test_it_is_written_when_it_has_changed(tmp_path):
    """What was read is not written again; forgetting puts it beside."""
    path = tmp_path / "learned.json"
    assert Memory(path, JOINTS).read() == (None, "")
    write_learned(path, JOINTS, LEARNED)
    memory = Memory(path, JOINTS)
    memory.read()
    inode = path.stat().st_ino
    memory.write(LEARNED)
    assert path.stat().st_ino == inode
    memory.write(LEARNED[::-1])
    assert path.stat().st_ino != inode
    memory.forget()
    assert not path.exists()
    memory.forget()
    assert put_aside(path) is None


def test_what_cannot_be_renamed_is_said(tmp_path):
    """A folder in the way."""
    (tmp_path / "learned.json").write_text("x")
    (tmp_path / "learned.json.old" / "full").mkdir(parents=True)
    with pytest.raises(OutputError, match="cannot rename"):
        put_aside(tmp_path / "learned.json")
