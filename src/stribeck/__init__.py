"""Stribeck identifies and compensates friction in robot joints.

.. code-block:: python

    import stribeck as sb

    runs = sb.load("bags/xl330_simulated")         # bags, CSV, MAT, NPZ, JSON, LeRobot
    fit = sb.identify_servo(runs, law="auto")      # also identify_joint, identify_arm, identify_robot, identify_mechanism
    fit.save("p.json")
    compensator = sb.Compensator("p.json")         # in a loop of one's own

The names in ``__all__`` are the stable interface. Each is imported when it is first used, so that a robot without JAX can read
fits and compensate.
"""

from importlib import import_module

__version__ = "0.1.0"

_PLACES = {
    "Compensator": "stribeck.api.compensator",
    "Fit": "stribeck.api.fit",
    "MachinePrediction": "stribeck.api.prediction",
    "Prediction": "stribeck.api.prediction",
    "Recordings": "stribeck.api.recordings",
    "StribeckError": "stribeck.errors",
    "StribeckWarning": "stribeck.api.recordings",
    "identify_arm": "stribeck.api.arm",
    "identify_joint": "stribeck.api.joint",
    "identify_mechanism": "stribeck.api.mechanism",
    "identify_robot": "stribeck.api.robot",
    "identify_servo": "stribeck.api.servo",
    "load": "stribeck.api.recordings",
    "read": "stribeck.api.fit",
}

__all__ = ["__version__", *_PLACES]  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> object:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        found = getattr(import_module(_PLACES[name]), name)
    except ModuleNotFoundError as missing:
        extras = import_module("stribeck.api.extras")
        raise extras.without_library(f"stribeck.{name}", missing) from None
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
