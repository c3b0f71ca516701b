"""The extras that bring optional libraries."""

from __future__ import annotations

from stribeck.errors import MissingDependencyError

EXTRAS = {
    "jax": "fit",
    "scipy": "fit",
    "cmaes": "fit",
    "optuna": "fit",
    "sqlalchemy": "fit",
    "tqdm": "fit",
    "matplotlib": "fit",
    "pinocchio": "arm",
    "coal": "arm",
    "casadi": "arm",
    "threadpoolctl": "arm",
    "mujoco": "mujoco",
    "onnx": "export",
    "pxr": "export",
    "distributed": "cluster",
    "rclpy": "ros",
    "blackjax": "bayes",
    "arviz": "bayes",
    "pandas": "notebook",
}
"""The extra that installs a library."""


def without_library(what: str, missing: ModuleNotFoundError, extra: str | None = None) -> Exception:
    """The error of something whose library is missing; of a module that no extra brings, the error as it is.

    :param missing: raised by the import.
    :param extra: that brings everything, where one is known.
    """
    library = (missing.name or "").partition(".")[0]
    if library not in EXTRAS:
        return missing
    return MissingDependencyError(
        f"{what} needs {library}: pip install 'stribeck[{extra or EXTRAS[library]}]'"
    )
