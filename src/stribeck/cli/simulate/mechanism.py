"""``stribeck simulate --mechanism``: the motion of a mechanism, contacts included, from its zero pose."""

from __future__ import annotations

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from stribeck.cli.inputs import check_outputs
from stribeck.cli.table import csv_text, print_table
from stribeck.files.folders import write_atomically
from stribeck.identify.mechanism.contacts import contact_rows
from stribeck.identify.mechanism.dynamics import BodyState, MultibodyDynamics
from stribeck.identify.mechanism.model_file import MechanismModel, read_model
from stribeck.model.arrays import Array

DURATION = 2.0
"""Usual duration [s]."""


def simulate_mechanism(name: str, seconds: float | None, step: float | None, folder: Path | None) -> None:
    """Simulate, print where the bodies end, and write the motion; motors have no voltage.

    :raises ConfigError: for an invalid model.
    :raises OutputError: for a table that cannot be written.
    """
    model = read_model(name)
    path = None if folder is None else folder / f"{model.mechanism.name}.csv"
    check_outputs([path], [])
    h = step or model.settings.step
    time = h * np.arange(round((seconds or DURATION) / h) + 1)
    with jax.enable_x64():
        columns = _motion(model, len(time), h)
    rows = [[key, f"{values[0]:.5g}", f"{values[-1]:.5g}"] for key, values in columns.items()]
    print_table([model.title, "start", "end"], rows)
    if path is not None:
        table = np.column_stack([time, *columns.values()])
        write_atomically(path, csv_text(["time", *columns], table.tolist()))
        print(path)


def _motion(model: MechanismModel, count: int, h: float) -> dict[str, Array]:
    """Places and velocities of the bodies, joint coordinates, and gaps of the contacts, by name (T,)."""
    mechanism = model.mechanism
    dynamics = MultibodyDynamics(mechanism)
    physical = mechanism.physical(mechanism.values())
    first = BodyState(dynamics.layout.zero_pose(physical), jnp.asarray(model.start))
    states = jax.jit(lambda s: dynamics.simulate(physical, s, jnp.zeros((count, mechanism.inputs)), h))(first)
    found: dict[str, Array] = {}
    for b, body in enumerate(mechanism.bodies):
        for k, axis in enumerate("xyz"):
            found[f"{body}_{axis} [m]"] = np.asarray(states.q[:, b, k])
        for k, axis in enumerate("xyz"):
            found[f"{body}_v{axis} [m/s]"] = np.asarray(states.v[:, b, k])
    layout = dynamics.layout
    coordinates = jax.vmap(lambda q: jnp.stack(layout.coordinates(layout.pose(physical, q))))(states.q)
    for j, joint in enumerate(mechanism.joints):
        if joint.kind in ("revolute", "prismatic"):
            found[f"{joint.name} [{'rad' if joint.kind == 'revolute' else 'm'}]"] = np.asarray(
                coordinates[:, j]
            )
    if mechanism.contacts:
        gaps = jax.vmap(lambda q: contact_rows(mechanism, physical, q).gap)(states.q)
        for k, contact in enumerate(mechanism.contacts):
            found[f"{contact.name} gap [m]"] = np.asarray(gaps[:, k])
    return found
