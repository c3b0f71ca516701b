"""Tensors of files that ``torch.save`` wrote, without PyTorch and without running what a pickle may contain.

Such a file is a ZIP archive: a pickle ``data.pkl`` that refers to storages by key, and one file of numbers for each storage
(https://pytorch.org/docs/stable/notes/serialization.html).
"""

import io
import math
import pickle
import zipfile
import zlib
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from stribeck.errors import RecordingError
from stribeck.model.arrays import Array

STORAGES = {
    "DoubleStorage": "<f8",
    "FloatStorage": "<f4",
    "HalfStorage": "<f2",
    "LongStorage": "<i8",
    "IntStorage": "<i4",
    "ShortStorage": "<i2",
    "CharStorage": "<i1",
    "ByteStorage": "<u1",
    "BoolStorage": "?",
}
"""Types of numbers by the names of storages."""

LARGEST = 50_000_000
"""Most numbers of a tensor that repeats those of its storage (stride 0)."""


def read_torch_arrays(path: Path) -> dict[str, Array]:
    """The tensors of a dictionary, by name.

    :raises RecordingError: for other content, and files that are damaged.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            root = next(name for name in archive.namelist() if name.endswith("data.pkl"))
            place = root[: -len("data.pkl")]

            def numbers(key: str) -> bytes:
                return archive.read(f"{place}data/{key}")

            content = _Content(io.BytesIO(archive.read(root)), numbers).load()
    except RecordingError as problem:
        raise RecordingError(f"{path}: {problem}") from None
    except (
        OSError,
        zipfile.BadZipFile,
        StopIteration,
        pickle.UnpicklingError,
        KeyError,
        ValueError,
        TypeError,
        EOFError,
        AttributeError,
        IndexError,
        OverflowError,
        zlib.error,
        RuntimeError,  # an encrypted or unknown compression, nesting without end
    ):
        raise RecordingError(f"{path} is not a file of torch.save, or is damaged") from None
    except MemoryError:
        raise RecordingError(
            f"{path} needs more memory than is available: save fewer or smaller tensors"
        ) from None
    if not isinstance(content, dict):
        raise RecordingError(f"{path}: expected a dictionary of tensors, found {type(content).__name__}")
    return {str(name): value for name, value in content.items() if isinstance(value, np.ndarray)}


class _Content(pickle.Unpickler):
    """Unpickles dictionaries and tensors, and nothing else."""

    def __init__(self, file: io.BytesIO, numbers: Callable[[str], bytes]) -> None:
        super().__init__(file)
        self._numbers = numbers

    def find_class(self, module: str, name: str) -> Any:
        """What a tensor needs; everything else is refused."""
        if (module, name) == ("torch._utils", "_rebuild_tensor_v2"):
            return _tensor
        if (module, name) == ("collections", "OrderedDict"):
            return OrderedDict
        if module == "torch" and name in STORAGES:
            return np.dtype(STORAGES[name])
        raise RecordingError(f"it contains {module}.{name}: save only a dictionary of tensors")

    def persistent_load(self, pid: Any) -> Any:
        """The numbers of a storage, from ``("storage", type, key, device, count)``."""
        _, kind, key, _, count = pid
        return np.frombuffer(self._numbers(str(key)), dtype=kind, count=int(count))


def _tensor(storage: Array, offset: int, size: tuple[int, ...], stride: tuple[int, ...], *_: object) -> Array:
    """A copy of the numbers that a tensor refers to, which must lie in its storage."""
    if storage.ndim != 1 or len(size) != len(stride) or any(n < 0 for n in (offset, *size, *stride)):
        raise RecordingError(
            "offset, sizes and strides of a tensor must not be negative, with one stride for each size"
        )
    count = math.prod(size)
    if count == 0:
        return np.zeros(size, dtype=storage.dtype)
    if offset + sum((n - 1) * step for n, step in zip(size, stride, strict=True)) >= len(storage):
        raise RecordingError("a tensor is larger than its storage")
    if count > max(len(storage), LARGEST):
        raise RecordingError(
            f"a tensor has {count} numbers, but its storage {len(storage)}: save a copy of the tensor"
        )
    strides = [step * storage.itemsize for step in stride]
    view = np.lib.stride_tricks.as_strided(storage[offset:], size, strides, writeable=False)
    return np.array(view)
