"""Exit codes of the program, its start, and the extras that bring its optional libraries."""

from __future__ import annotations

import time

STARTED = time.perf_counter()
"""Program start, from which wall times are measured."""


DONE, FAILED, NOT_USABLE, INTERRUPTED = 0, 1, 2, 130


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
}
"""Optional libraries that a verb may need, and the extra that installs them."""
