"""Tables of one joint that moves as told, with friction of the plants of bench/plants, which are not our laws."""

import numpy as np

from plants.friction import FrictionValues, LuGre

FRICTION = {
    "coulomb": 1.2, "stiction": 1.7, "viscous": 0.8, "stribeck_velocity": 0.05, "presliding": 4e-4,
    "inertia": 0.2, "asymmetry": 0.0, "ripple": 0.0, "ripple_wave": 0.0, "load_share": 0.0,
}  # fmt: skip


def lugre(velocity, dt, position=None, load=None, **values):
    """Friction of a LuGre joint along a motion (N,) [N m]."""
    plant = LuGre(FrictionValues(**{name: np.array([v]) for name, v in {**FRICTION, **values}.items()}))
    torque = np.empty(len(velocity))
    for k, speed in enumerate(velocity):
        if position is not None:
            plant.modulate(position[k : k + 1], np.zeros(1) if load is None else load[k : k + 1])
        torque[k] = plant.torque(np.array([speed]), dt)[0]
    return torque


def steady(speed, **values):
    """Friction of the same joint in even motion [N m]."""
    one = {**FRICTION, **values}
    level = one["coulomb"] + (one["stiction"] - one["coulomb"]) * np.exp(
        -((speed / one["stribeck_velocity"]) ** 2)
    )
    return level + one["viscous"] * speed


def wobble(seconds=60.0, dt=0.005, size=0.6, rate=1.0):
    """Times, positions, velocities and accelerations of two sines, whose ratio of frequencies is irrational."""
    time = np.arange(0.0, seconds, dt)
    slow, fast = 0.35 * rate, 0.35 * rate * np.sqrt(5.0)
    position = size * (np.sin(slow * time) + 0.3 * np.sin(fast * time))
    velocity = size * (slow * np.cos(slow * time) + 0.3 * fast * np.cos(fast * time))
    acceleration = -size * (slow**2 * np.sin(slow * time) + 0.3 * fast**2 * np.sin(fast * time))
    return time, position, velocity, acceleration


def sweep(speeds=(0.01, 0.02, 0.05, 0.1, 0.2, 0.4), dt=0.005, travel=0.3):
    """Times, positions and velocities of a sweep: there and back over some travel at each speed, with ramps of 0.2 s."""
    pieces = []
    for speed in speeds:
        ramp = np.linspace(0.0, speed, round(0.2 / dt), endpoint=False)
        even = np.full(max(round(travel / speed / dt), round(1.0 / dt)), speed)
        one = np.concatenate([ramp, even, ramp[::-1]])
        pieces += [one, np.zeros(round(0.3 / dt)), -one, np.zeros(round(0.3 / dt))]
    velocity = np.concatenate(pieces)
    position = np.cumsum(velocity) * dt
    return np.arange(len(velocity)) * dt, position, velocity


def columns(motion, noise=0.02, seed=0, **values):
    """Columns of a table of a LuGre joint, with white noise on the torque."""
    time, position, velocity = motion[:3]
    dt = float(time[1] - time[0])
    acceleration = motion[3] if len(motion) > 3 else np.gradient(velocity, dt)
    friction = lugre(velocity, dt, position, **values)
    rng = np.random.default_rng(seed)
    torque = friction + FRICTION["inertia"] * acceleration + noise * rng.standard_normal(len(time))
    return {"time": time, "q": position, "dq": velocity, "ddq": acceleration, "tau": torque}


def write_table(path, table):
    """Write columns as CSV."""
    with path.open("w") as file:
        file.write(",".join(table) + "\n")
        np.savetxt(file, np.column_stack(list(table.values())), delimiter=",", fmt="%.9g")
    return path
