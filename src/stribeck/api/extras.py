"""The extras that bring optional libraries."""

from __future__ import annotations

from stribeck.errors import MissingDependencyError

EXTRAS = {
    library: extra
    for extra, libraries in {
        "fit": ("jax", "scipy", "cmaes", "optuna", "sqlalchemy", "tqdm", "matplotlib"),
        "arm": ("pinocchio", "coal", "casadi", "threadpoolctl"),
        "mujoco": ("mujoco",),
        "export": ("onnx", "pxr"),
        "cluster": ("distributed",),
        "ros": ("rclpy",),
        "bayes": ("blackjax", "arviz"),
        "notebook": ("pandas",),
    }.items()
    for library in libraries
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
