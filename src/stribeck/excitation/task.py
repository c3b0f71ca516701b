"""The task of designing a trajectory: an arm, its limits, and the noise of its torques."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from stribeck.errors import ConfigError
from stribeck.excitation.clearance import Bodies, bodies_of
from stribeck.excitation.contacts import Pair, always_touching
from stribeck.excitation.section import ExcitationSection
from stribeck.excitation.shapes import Shape, enclosing_capsules, shapes_of
from stribeck.files.robots import RobotConfig
from stribeck.identify.arm.base_parameters import BaseParameters, structural_base_parameters
from stribeck.identify.arm.jax_chain import JaxChain, chain_of
from stribeck.identify.arm.model import ArmModel
from stribeck.identify.common.joint_covariance import whitener
from stribeck.model.arrays import Array
from stribeck.session.fourier import Basis, FourierTrajectory, basis, grid_factor, rest_basis

SAMPLES_PER_HARMONIC = 40
"""Samples per period of the highest harmonic, for the information and for the limits."""

CONFIGURATIONS = 200
"""Random configurations at which bodies that touch nearly always are looked for."""

UNLIMITED = 2.0 * np.pi
"""Position limit for joints without one [rad]."""


@dataclass(frozen=True, eq=False)
class JointLimits:
    """Limits of the joints, (n,) each.

    :param lower, upper: positions [rad].
    :param velocity: [rad/s].
    :param acceleration: [rad/s^2].
    :param effort: torque [N m].
    :param coefficient: bound on the magnitude of the coefficients a and b [rad/s].
    """

    lower: Array
    upper: Array
    velocity: Array
    acceleration: Array
    effort: Array
    coefficient: Array

    def anywhere(self, count: int) -> Array:
        """Random positions, always the same, (n, N)."""
        rng = np.random.default_rng(0)
        return rng.uniform(self.lower[:, None], self.upper[:, None], (len(self.lower), count))


@dataclass(frozen=True, eq=False)
class ExcitationTask:
    """Specification of an exciting trajectory.

    :param noise: standard deviation of each joint's torque, (n,) [N m], or the covariance of all, (n, n) [N² m²].
    :param harmonics: number L of harmonics.
    :param duration: period T [s].
    :param shapes: bodies that must not collide; empty to ignore collisions.
    :param ignored: pairs of links that may touch, those of ``touching`` included.
    :param touching: pairs that touch at nearly every configuration.
    :param floor: height of the floor [m], ``None`` for no floor.
    :param clearance: smallest distance of bodies from each other and from the floor [m].
    """

    arm: ArmModel
    limits: JointLimits
    noise: Array
    harmonics: int
    duration: float
    shapes: tuple[Shape, ...] = ()
    ignored: frozenset[Pair] = frozenset()
    floor: float | None = None
    clearance: float = 0.0
    touching: frozenset[Pair] = frozenset()

    @property
    def joints(self) -> int:
        """Number of joints n."""
        return len(self.arm)

    @cached_property
    def whitening(self) -> Array:
        """Factors of the joints' torques (n,), or the matrix (n, n), after which their noise is independent and of variance 1."""
        return 1.0 / self.noise if self.noise.ndim == 1 else whitener(self.noise)

    def whitened(self, rows: Array) -> Array:
        """A regressor (N, n, b) of torques whose noise is independent and of variance 1."""
        if self.noise.ndim == 1:
            return np.asarray(rows * self.whitening[:, None])
        return np.asarray(np.einsum("ij,njb->nib", self.whitening, rows))

    @property
    def samples(self) -> int:
        """Number N of samples per period."""
        return SAMPLES_PER_HARMONIC * self.harmonics

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of the free variables z: (n, 2 L - 1)."""
        return self.joints, 2 * self.harmonics - 1

    @cached_property
    def base(self) -> BaseParameters:
        """Base parameters of the arm."""
        return structural_base_parameters(self.arm)

    @cached_property
    def chain(self) -> JaxChain:
        """The arm's kinematics and inertials as JAX arrays."""
        return chain_of(self.arm)

    @cached_property
    def bodies(self) -> Bodies:
        """Capsules that enclose the shapes."""
        return bodies_of(self.chain, enclosing_capsules(self.shapes), self.ignored)

    @cached_property
    def rest(self) -> Array:
        """Matrix Z that maps z to coefficients, Z z (:func:`~stribeck.session.fourier.rest_basis`)."""
        return rest_basis(self.harmonics)

    @property
    def margin(self) -> float:
        """Share of a joint's limit that samples may reach (:func:`~stribeck.session.fourier.grid_factor`)."""
        return grid_factor(self.harmonics, self.samples)

    def basis(self, samples: int) -> Basis:
        """The series at N equidistant times of the period, as factors of z: (N, 2 L - 1) each."""
        time = self.duration * np.arange(samples) / samples
        rows = basis(time, 2.0 * np.pi / self.duration, self.harmonics)
        return Basis(*(part @ self.rest for part in rows))

    def sigmas(self, trajectory: FourierTrajectory) -> Array:
        r"""Predicted standard deviations of the base parameters (b,): roots of the diagonal of (Y^T Sigma^-1 Y)^-1."""
        time = self.duration * np.arange(self.samples) / self.samples
        regressor = self.whitened(self.base.reduce(self.arm.regressor(*trajectory.states(time))))
        triangle = np.linalg.qr(regressor.reshape(-1, len(self.base)), mode="r")
        return np.asarray(np.sqrt(np.sum(np.linalg.inv(triangle) ** 2, axis=1)))

    def trajectory(self, z: Array) -> FourierTrajectory:
        """The trajectory with coefficients z, (n, 2 L - 1) or flattened."""
        coefficients = np.reshape(z, self.shape) @ self.rest.T
        return FourierTrajectory.from_coefficients(self.arm.joints, self.duration, coefficients)


def task_of(
    config: RobotConfig,
    section: ExcitationSection,
    arm: ArmModel,
    *,
    harmonics: int,
    duration: float,
    collisions: bool = True,
    limits: JointLimits | None = None,
) -> ExcitationTask:
    """Create a task from a robot's file.

    :param collisions: whether to avoid the floor and self-collisions.
    :param limits: default: those of the file and the URDF.
    :raises ConfigError: for missing limits or bodies.
    """
    limits = limits_of(config, section, arm) if limits is None else limits
    given = section.noise if section.noise_covariance is None else section.noise_covariance
    noise = limits.effort if given is None else np.array(given, dtype=np.float64)
    if not collisions:
        return ExcitationTask(arm, limits, noise, harmonics, duration)
    links = {frame.name for frame in arm.model.frames}
    unknown = sorted({link for pair in section.ignore for link in pair} - links)
    if unknown:
        raise ConfigError(f"{config.path}: excitation: ignore: no link {unknown[0]!r} in {arm.path}")
    shapes, ignored = (
        shapes_of(arm, section.capsules),
        frozenset(frozenset(pair) for pair in section.ignore),
    )
    positions = np.vstack([0.5 * (limits.lower + limits.upper), limits.anywhere(CONFIGURATIONS).T])
    touching = always_touching(arm, shapes, ignored, positions)
    return ExcitationTask(
        arm,
        limits,
        noise,
        harmonics,
        duration,
        shapes=shapes,
        ignored=ignored | touching,
        floor=section.floor,
        clearance=section.clearance,
        touching=touching,
    )


def limits_of(config: RobotConfig, section: ExcitationSection, arm: ArmModel) -> JointLimits:
    """The limits in a robot's file; missing limits of position, velocity or effort are taken from the URDF.

    :raises ConfigError: if neither file gives them.
    """
    n = len(arm)
    pairs = config.position_limits(n)
    lower, upper = arm.position_limits if pairs is None else np.array(pairs).T
    lower, upper = (
        np.where(np.isfinite(side), side, sign * UNLIMITED) for side, sign in ((lower, -1), (upper, 1))
    )
    velocity = _limit(config, "velocity", arm.velocity_limits)
    coefficient = velocity if section.coefficient_limit is None else np.array(section.coefficient_limit)
    return JointLimits(
        lower=lower,
        upper=upper,
        velocity=velocity,
        acceleration=_limit(config, "acceleration", np.zeros(n)),
        effort=_limit(config, "effort", arm.effort_limits),
        coefficient=coefficient,
    )


def _limit(config: RobotConfig, name: str, of_urdf: Array) -> Array:
    of_file = config.limit(name, len(of_urdf))
    limit = of_urdf if of_file is None else np.array(of_file)
    if not (limit > 0.0).all():
        also = "" if name == "acceleration" else " and not in the URDF either"
        raise ConfigError(
            f"{config.path}: limits: {name} missing{also}: give a positive number for each joint"
        )
    return limit
