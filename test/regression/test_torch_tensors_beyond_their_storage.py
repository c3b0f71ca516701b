"""Tensors of a `.pt` file with a negative offset or stride were read from memory outside their storage, and archives that cannot be unpacked
ended in a traceback."""

import zipfile
import zlib

import numpy as np
import pytest

from stribeck.errors import RecordingError
from stribeck.recordings.tables.torch_files import LARGEST, read_torch_arrays


def numbers(values):
    """A tuple of whole numbers as a pickle of protocol 0 has it."""
    return "(" + "".join(f"I{value}\n" for value in values) + "t"


@pytest.fixture
def tensor(tmp_path):
    """A file with the tensor `a` on a storage of counted numbers."""

    def write(offset, size, stride, stored=2):
        storage = f"(S'storage'\nctorch\nDoubleStorage\nS'0'\nS'cpu'\nI{stored}\ntQ"
        arguments = f"({storage}I{offset}\n{numbers(size)}{numbers(stride)}t"
        path = tmp_path / "one.pt"
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr(
                "one/data.pkl", f"(dp0\nS'a'\nctorch._utils\n_rebuild_tensor_v2\n{arguments}Rs.".encode()
            )
            archive.writestr("one/data/0", np.arange(float(stored)).tobytes())
        return path

    return write


@pytest.mark.parametrize(
    ("offset", "size", "stride", "words"),
    [
        (-1, (3,), (1,), "strides of a tensor must not be negative"),
        (1, (2,), (-1,), "strides of a tensor must not be negative"),
        (0, (-1,), (1,), "strides of a tensor must not be negative"),
        (0, (2,), (), "with one stride for each size"),
        (0, (3,), (1,), "larger than its storage"),
        (0, (LARGEST + 1,), (0,), f"a tensor has {LARGEST + 1} numbers, but its storage 2"),
        (0, (2**70,), (0,), "a tensor has 1180591620717411303424 numbers"),
    ],
)
def test_nothing_outside_the_storage_is_read(tensor, offset, size, stride, words):
    """One line that names the file."""
    with pytest.raises(RecordingError, match=rf"one\.pt: .*{words}") as found:
        read_torch_arrays(tensor(offset, size, stride))
    assert len(str(found.value).splitlines()) == 1


def test_a_number_of_an_empty_storage_is_refused(tensor):
    """It has no first number."""
    with pytest.raises(RecordingError, match="larger than its storage"):
        read_torch_arrays(tensor(0, (), (), stored=0))


def test_what_lies_in_the_storage_is_read(tensor):
    """Empty tensors have no number anywhere; a stride of 0 repeats one."""
    assert read_torch_arrays(tensor(0, (0,), (1,), stored=0))["a"].shape == (0,)
    assert read_torch_arrays(tensor(5, (3, 0), (1, 1)))["a"].shape == (3, 0)
    assert np.array_equal(read_torch_arrays(tensor(1, (3,), (0,)))["a"], np.ones(3))


@pytest.mark.parametrize(
    "error", [zlib.error, NotImplementedError, RuntimeError, RecursionError, OverflowError]
)
def test_archives_that_cannot_be_unpacked_are_refused(tensor, monkeypatch, error):
    """Damaged, with an unknown compression, encrypted."""
    path = tensor(0, (2,), (1,))
    monkeypatch.setattr(zipfile.ZipFile, "read", lambda *_: (_ for _ in ()).throw(error("no")))
    with pytest.raises(RecordingError, match=r"one\.pt is not a file of torch\.save, or is damaged"):
        read_torch_arrays(path)


def test_damaged_and_encrypted_archives_are_refused(tensor):
    """By a byte of the compressed numbers, and by the flag of encryption."""
    path = tensor(0, (400,), (1,), stored=400)
    whole = path.read_bytes()
    at = whole.index(b"one/data/0") + len(b"one/data/0")
    path.write_bytes(whole[:at] + b"\xff" * 8 + whole[at + 8 :])
    with pytest.raises(RecordingError, match="is damaged"):
        read_torch_arrays(path)
    marked = bytearray(whole)
    for place, flags in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        marked[whole.index(place) + flags] |= 1
    path.write_bytes(bytes(marked))
    with pytest.raises(RecordingError, match="is damaged"):
        read_torch_arrays(path)


def test_too_little_memory_is_said(tensor, monkeypatch):
    """With what to do."""
    path = tensor(0, (2,), (1,))
    monkeypatch.setattr(zipfile.ZipFile, "read", lambda *_: (_ for _ in ()).throw(MemoryError()))
    with pytest.raises(
        RecordingError, match="needs more memory than is available: save fewer or smaller tensors"
    ):
        read_torch_arrays(path)
