"""Files of `torch.save`, as PACE writes them, without PyTorch: they were refused although the documentation named them."""

import io
import pickle
import sys
import zipfile
from types import ModuleType

import numpy as np
import pytest

from stribeck.errors import RecordingError
from stribeck.recordings.tables.readers import read_table


class _Tensor:
    """Pickles as PyTorch pickles a tensor: rows of a larger storage, from an offset."""

    def __init__(self, values, offset=0):
        self.values, self.offset = np.asarray(values), offset

    def __reduce__(self):
        size = self.values.shape
        stride = tuple(step // self.values.itemsize for step in self.values.strides)
        rebuild = sys.modules["torch._utils"]._rebuild_tensor_v2
        return rebuild, (_Storage(self), self.offset, size, stride, False, {})


class _Storage:
    def __init__(self, tensor):
        base = tensor.values if tensor.values.base is None else tensor.values.base
        self.numbers = np.ascontiguousarray(base).ravel()
        if tensor.offset:
            self.numbers = np.concatenate([np.zeros(tensor.offset, base.dtype), self.numbers])


@pytest.fixture
def save(tmp_path, monkeypatch):
    """Writes a file in the format of `torch.save`."""
    torch, utils = ModuleType("torch"), ModuleType("torch._utils")
    names = {"<f4": "FloatStorage", "<f8": "DoubleStorage", "<i8": "LongStorage"}
    for name in names.values():
        setattr(torch, name, type(name, (), {"__module__": "torch", "__qualname__": name}))

    def _rebuild_tensor_v2(*_):
        raise AssertionError

    _rebuild_tensor_v2.__module__, _rebuild_tensor_v2.__qualname__ = "torch._utils", "_rebuild_tensor_v2"
    utils._rebuild_tensor_v2 = _rebuild_tensor_v2
    monkeypatch.setitem(sys.modules, "torch", torch)
    monkeypatch.setitem(sys.modules, "torch._utils", utils)

    def write(content, name="chirp.pt"):
        storages = []

        class Pickler(pickle.Pickler):
            def persistent_id(self, thing):
                if not isinstance(thing, _Storage):
                    return None
                storages.append(thing.numbers)
                kind = getattr(torch, names[thing.numbers.dtype.str])
                return ("storage", kind, str(len(storages) - 1), "cpu", len(thing.numbers))

        buffer = io.BytesIO()
        Pickler(buffer, protocol=2).dump(content)
        path = tmp_path / name
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("chirp/data.pkl", buffer.getvalue())
            for k, numbers in enumerate(storages):
                archive.writestr(f"chirp/data/{k}", numbers.tobytes())
        return path

    return write


def test_tensors_are_read_by_name(save):
    """Of all kinds of numbers, transposed, and as part of a storage."""
    time, position = np.arange(5) * 0.1, np.arange(10, dtype=np.float32).reshape(5, 2)
    turned = np.arange(10, dtype=np.float32).reshape(2, 5).T
    content = {"time": _Tensor(time), "dof_pos": _Tensor(position, offset=3), "des_dof_pos": _Tensor(turned)}
    table = read_table(save(content | {"name": "leg", "rows": _Tensor(np.arange(5))}))
    assert table.names == ("time", "dof_pos", "des_dof_pos", "rows")
    assert np.array_equal(table.arrays["time"], time)
    assert np.array_equal(table.arrays["dof_pos"], position)
    assert np.array_equal(table.arrays["des_dof_pos"], turned)


class _Harm:
    def __reduce__(self):
        return print, ("harm",)


def test_nothing_but_tensors_is_unpickled(save, tmp_path, capsys):
    """Code of a pickle does not run; files of other content are refused in one line."""
    with pytest.raises(RecordingError, match=r"chirp\.pt: it contains (__builtin__|builtins)\.print"):
        read_table(save({"time": _Harm()}))
    assert "harm" not in capsys.readouterr().out
    with pytest.raises(RecordingError, match="expected a dictionary of tensors, found list"):
        read_table(save([1, 2]))
    (tmp_path / "text.pt").write_text("no archive")
    with pytest.raises(RecordingError, match=r"text\.pt is not a file of torch\.save"):
        read_table(tmp_path / "text.pt")
    whole = save({"time": _Tensor(np.arange(4.0))})
    with zipfile.ZipFile(whole, "a") as archive, pytest.warns(UserWarning, match="Duplicate"):
        archive.writestr("chirp/data/0", b"12")
    with pytest.raises(RecordingError, match=r"chirp\.pt is not a file of torch\.save, or is damaged"):
        read_table(whole)
