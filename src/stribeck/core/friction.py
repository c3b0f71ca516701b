r"""The friction laws M1 to M6, as one table and pure functions.

A friction law gives a budget :math:`\tau_f^m \ge 0`, the largest torque with which friction can oppose a motion. The
laws are those of Duclusaud et al., "Extended Friction Models for the Physics Simulation of Servo Actuators", §II-B
and §III, with two extensions for robot joints and linear axes: budgets that differ by direction, and an offset torque.

All functions take numpy or jax.numpy arrays of any shapes that broadcast.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from stribeck.core.namespace import array_namespace
from stribeck.errors import ConfigError

Values = Mapping[str, Any]
"""Parameter values by name: floats or arrays that broadcast with the state."""


@dataclass(frozen=True)
class FrictionParameter:
    """Symbol, units and default search bounds of a friction parameter."""

    symbol: str
    rotary_unit: str
    linear_unit: str
    lower: float
    upper: float
    signed: bool = False


FRICTION_PARAMETERS: dict[str, FrictionParameter] = {
    "friction_base": FrictionParameter("K_c", "N m", "N", 0.0, 0.2),
    "friction_stribeck": FrictionParameter("K_c^s", "N m", "N", 0.0, 0.2),
    "load_friction_base": FrictionParameter("K_l", "1", "1", 0.0, 0.5),
    "load_friction_stribeck": FrictionParameter("K_l^s", "1", "1", 0.0, 1.0),
    "load_friction_motor": FrictionParameter("K_m", "1", "1", 0.0, 0.5),
    "load_friction_external": FrictionParameter("K_e", "1", "1", 0.0, 0.5),
    "load_friction_motor_stribeck": FrictionParameter("K_m^s", "1", "1", 0.0, 1.0),
    "load_friction_external_stribeck": FrictionParameter("K_e^s", "1", "1", 0.0, 1.0),
    "load_friction_motor_quad": FrictionParameter("K_m^q", "1/(N m)", "1/N", 0.0, 0.01),
    "load_friction_external_quad": FrictionParameter("K_e^q", "1/(N m)", "1/N", 0.0, 0.01),
    "dtheta_stribeck": FrictionParameter("v_s", "rad/s", "m/s", 0.1, 3.0),
    "alpha": FrictionParameter("alpha", "1", "1", 1.0, 10.0),
    "friction_viscous": FrictionParameter("K_v", "N m s/rad", "N s/m", 0.0, 1.0),
    "friction_base_negative": FrictionParameter("K_c^-", "N m", "N", 0.0, 0.2),
    "friction_viscous_negative": FrictionParameter("K_v^-", "N m s/rad", "N s/m", 0.0, 1.0),
    "torque_offset": FrictionParameter("tau_0", "N m", "N", -0.1, 0.1, signed=True),
}
"""Every friction parameter, by its key in parameter files; bounds fit a small servo."""

CONSTANT_TERMS = ("friction_base", "friction_stribeck", "friction_base_negative")
"""Terms that do not depend on the load."""

LOAD_TERMS = tuple(name for name in FRICTION_PARAMETERS if name.startswith("load_friction"))
"""Terms that grow with the load on the transmission."""


@dataclass(frozen=True)
class FrictionLaw:
    r"""Terms of a friction budget.

    :param name: key in parameter files and on the command line, ``"m1"`` .. ``"m6"``.
    :param stribeck: whether terms that fade with velocity are included.
    :param load: how the budget grows with the torques on the transmission.
    :param quadratic: whether the quadratic term of M6 is included; needs ``stribeck`` and a directional load.
    :param asymmetric: whether negative motion has separate Coulomb and viscous friction.
    :param offset: whether a constant torque :math:`\tau_0` acts beside motor and external torque. If only Coulomb
        friction is asymmetric, the offset and the asymmetry are equivalent: fix one of them to zero.
    """

    name: str
    title: str
    stribeck: bool = False
    load: Literal["none", "symmetric", "directional"] = "none"
    quadratic: bool = False
    asymmetric: bool = False
    offset: bool = False

    @property
    def parameter_names(self) -> tuple[str, ...]:
        """The law's parameters, in the order of the optimiser's vector."""
        names = ["friction_base"]
        if self.stribeck:
            names += ["friction_stribeck"]
        if self.load == "symmetric":
            names += ["load_friction_base"]
            names += ["load_friction_stribeck"] if self.stribeck else []
        if self.load == "directional":
            names += ["load_friction_motor", "load_friction_external"]
            if self.stribeck:
                names += ["load_friction_motor_stribeck", "load_friction_external_stribeck"]
        if self.quadratic:
            names += ["load_friction_motor_quad", "load_friction_external_quad"]
        if self.stribeck:
            names += ["dtheta_stribeck", "alpha"]
        names += ["friction_viscous"]
        if self.asymmetric:
            names += ["friction_base_negative", "friction_viscous_negative"]
        if self.offset:
            names += ["torque_offset"]
        return tuple(names)

    def with_terms(self, *, asymmetric: bool = False, offset: bool = False) -> FrictionLaw:
        """The law with the additional terms for robot joints and linear axes."""
        return replace(self, asymmetric=asymmetric, offset=offset)


LAWS: dict[str, FrictionLaw] = {
    law.name: law
    for law in (
        FrictionLaw("m1", "Coulomb-viscous"),
        FrictionLaw("m2", "Stribeck", stribeck=True),
        FrictionLaw("m3", "load-dependent", load="symmetric"),
        FrictionLaw("m4", "Stribeck, load-dependent", stribeck=True, load="symmetric"),
        FrictionLaw("m5", "directional", stribeck=True, load="directional"),
        FrictionLaw("m6", "quadratic", stribeck=True, load="directional", quadratic=True),
    )
}
"""The laws of the paper, M1 to M6, by name."""


SMALLEST_RATIO = 1e-30
"""Velocities below this share of the Stribeck velocity count as rest."""

SMALLEST_RATIO_OF_SLOPE = 1e-9
"""The same for the slope of the weight, whose derivatives contain the square of the ratio in float32."""


def law_named(name: str) -> FrictionLaw:
    """The law called ``name``, in upper or lower case.

    :raises ConfigError: for an unknown name.
    """
    if name.lower() not in LAWS:
        raise ConfigError(f"unknown friction law {name!r}; valid: {', '.join(LAWS)}")
    return LAWS[name.lower()]


def stribeck_weight(velocity: Any, dtheta_stribeck: Any, alpha: Any) -> Any:
    r"""Stribeck weight :math:`s(\dot\theta) = \exp(-|\dot\theta / v_s|^\alpha)`, 1 at rest.

    :param velocity: joint velocity [rad/s].
    :param dtheta_stribeck: Stribeck velocity :math:`v_s > 0` [rad/s].
    :param alpha: curvature :math:`\alpha > 0` [1].

    At rest :math:`|x|^\alpha` has no derivative in :math:`\alpha`. The ratio is therefore kept
    above :data:`SMALLEST_RATIO`, so that values and gradients are finite everywhere and the weight at
    rest is exactly 1. Paper, eq. (6).
    """
    xp = array_namespace(velocity, dtheta_stribeck, alpha)
    ratio = xp.maximum(xp.abs(velocity) / dtheta_stribeck, SMALLEST_RATIO)
    return xp.exp(-xp.exp(alpha * xp.log(ratio)))


def stribeck_slope(velocity: Any, dtheta_stribeck: Any, alpha: Any, weight: Any) -> Any:
    r"""Derivative of the Stribeck weight with respect to speed :math:`-\frac{\alpha}{v_s} r^{\alpha-1} s` [s/rad].

    :param weight: :math:`s` of :func:`stribeck_weight` at this velocity; :math:`r = |\dot\theta| / v_s`.
    """
    xp = array_namespace(velocity, dtheta_stribeck, alpha)
    ratio = xp.maximum(xp.abs(velocity) / dtheta_stribeck, SMALLEST_RATIO_OF_SLOPE)
    return -alpha * weight * xp.exp(alpha * xp.log(ratio)) / (ratio * dtheta_stribeck)


def friction_budget(
    law: FrictionLaw, p: Values, motor_torque: Any, external_torque: Any, velocity: Any, weight: Any = None
) -> tuple[Any, Any]:
    r"""Friction budget :math:`(\tau_f^{m+}, \tau_f^{m-})` against positive and negative motion [N m].

    ==  =====================================================================================
    M1  :math:`K_v|\dot\theta| + K_c`
    M2  M1 + :math:`s K_c^s`
    M3  M1 + :math:`K_l|\tau_m - \tau_e|`
    M4  M3 + :math:`s (K_c^s + K_l^s|\tau_m - \tau_e|)`
    M5  M1 + :math:`|K_m\tau_m - K_e\tau_e| + s (K_c^s + |K_m^s\tau_m - K_e^s\tau_e|)`
    M6  M5 + :math:`s Q`, :math:`Q = K_e^q\tau_e^2` if :math:`|\tau_m| > |\tau_e|`,
        :math:`K_m^q\tau_m^2` if :math:`|\tau_m| < |\tau_e|`
    ==  =====================================================================================

    with :math:`s` of :func:`stribeck_weight`. The paper does not define Q for torques that
    act in the same direction; here, as in its authors' program, Q counts only when they oppose each other
    (:math:`\tau_m\tau_e < 0`). The two budgets are the same array unless the law is asymmetric.

    :param p: values of the law's parameters by name (see :data:`FRICTION_PARAMETERS`).
    :param motor_torque: motor torque at the output shaft :math:`\tau_m` [N m].
    :param external_torque: external torque :math:`\tau_e` [N m].
    :param velocity: joint velocity :math:`\dot\theta` [rad/s].
    :param weight: Stribeck weight to use instead of that at ``velocity``, where it is known already.

    Source: paper, eqs. (3), (6)-(10).
    """
    xp = array_namespace(velocity, motor_torque, external_torque, *p.values())
    speed = xp.abs(velocity)
    load: Any = 0.0
    fading: Any = p["friction_stribeck"] if law.stribeck else 0.0
    if law.load == "symmetric":
        transmitted = xp.abs(motor_torque - external_torque)
        load = p["load_friction_base"] * transmitted
        if law.stribeck:
            fading = fading + p["load_friction_stribeck"] * transmitted
    elif law.load == "directional":
        load = xp.abs(p["load_friction_motor"] * motor_torque - p["load_friction_external"] * external_torque)
        if law.stribeck:
            fading = fading + xp.abs(
                p["load_friction_motor_stribeck"] * motor_torque
                - p["load_friction_external_stribeck"] * external_torque
            )
    if law.quadratic:
        fading = fading + quadratic_friction(p, motor_torque, external_torque)
    if law.stribeck:
        if weight is None:
            weight = stribeck_weight(velocity, p["dtheta_stribeck"], p["alpha"])
        load = load + weight * fading
    positive = p["friction_viscous"] * speed + p["friction_base"] + load
    if not law.asymmetric:
        return positive, positive
    return positive, p["friction_viscous_negative"] * speed + p["friction_base_negative"] + load


def quadratic_friction(p: Values, motor_torque: Any, external_torque: Any) -> Any:
    """The term Q of M6 at rest [N m], zero unless the torques oppose each other (paper, eq. 10)."""
    xp = array_namespace(motor_torque, external_torque, *p.values())
    motor, external = xp.abs(motor_torque), xp.abs(external_torque)
    driving = p["load_friction_external_quad"] * external_torque * external_torque
    backdriven = p["load_friction_motor_quad"] * motor_torque * motor_torque
    quadratic = xp.where(motor > external, driving, xp.where(motor < external, backdriven, 0.0))
    return xp.where(motor_torque * external_torque < 0.0, quadratic, 0.0)


def stopping_torque(velocity: Any, net_torque: Any, inertia: Any, dt: float) -> Any:
    r"""Torque that stops the joint within one step [N m] (paper, eq. 4, with all torques in one sum).

    :math:`\tau_{stop} = -(J/\Delta t\;\dot\theta + \tau)`, where :math:`\tau` is the sum of all torques except friction.
    """
    return -(inertia / dt * velocity + net_torque)


def friction_torque(stop: Any, budget: tuple[Any, Any]) -> Any:
    r"""Friction torque :math:`\tau_f = clip(\tau_{stop}, [-\tau_f^{m+}, \tau_f^{m-}])` [N m] (paper, eq. 5).

    ``+`` and ``-`` are the directions of the next motion: moving in positive direction means overcoming the first budget.
    """
    xp = array_namespace(stop, *budget)
    return xp.clip(stop, -budget[0], budget[1])
