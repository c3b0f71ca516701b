"""Which array library a formula runs on: numpy in the nodes, jax.numpy in the fit."""

from types import ModuleType
from typing import Any

import numpy as np


def array_namespace(*arrays: Any) -> ModuleType:
    """The array namespace of the arguments, numpy when nothing else asks.

    The first argument that belongs to another library than numpy decides. Python scalars and the
    arrays of numpy 1.26, which know no ``__array_namespace__``, count as numpy.
    """
    for array in arrays:
        namespace = getattr(array, "__array_namespace__", None)
        if namespace is not None and not isinstance(array, (np.ndarray, np.generic)):
            found: ModuleType = namespace()
            return found
    return np
