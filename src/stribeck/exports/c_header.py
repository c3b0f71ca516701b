r"""Export to C: one header without dependencies but ``math.h``, valid C99 and C++17, without heap and static state.

For every joint J, with :math:`\tau_m` the motor torque, :math:`\tau_e` the external torque, :math:`\dot\theta` the velocity:

- ``J_friction_budget``: :math:`\tau_f^{m+}, \tau_f^{m-}` (:func:`stribeck.core.friction.friction_budget`),
- ``J_friction_torque``: :math:`\tau_f` over one time step (:func:`stribeck.core.friction.friction_torque`),
- ``J_cancelling_torque``: feed-forward torque (:func:`stribeck.core.compensation.cancelling_torque`),
- ``J_motor_torque``: torque of the motor for the firmware's output (:func:`stribeck.core.actuator.output_torque`).

``double`` is used, or ``float`` after ``#define STRIBECK_FLOAT``. Constants are written with 17 digits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from stribeck.core.control_laws import CurrentControl, VoltageControl
from stribeck.core.friction import FrictionLaw
from stribeck.core.terms.stribeck import SMALLEST_RATIO
from stribeck.errors import ConfigError
from stribeck.exports.task import ExportTask, JointServo, Written, identifier, title_of

_HEAD = """\
#ifndef STRIBECK_REAL
#include <math.h>
#ifdef STRIBECK_FLOAT
#define STRIBECK_REAL float
#define STRIBECK_C(x) x##F
#define STRIBECK_ABS(x) fabsf(x)
#define STRIBECK_EXP(x) expf(x)
#define STRIBECK_LOG(x) logf(x)
#define STRIBECK_SQRT(x) sqrtf(x)
#else
#define STRIBECK_REAL double
#define STRIBECK_C(x) x
#define STRIBECK_ABS(x) fabs(x)
#define STRIBECK_EXP(x) exp(x)
#define STRIBECK_LOG(x) log(x)
#define STRIBECK_SQRT(x) sqrt(x)
#endif
static inline STRIBECK_REAL stribeck_clip(STRIBECK_REAL x, STRIBECK_REAL lower, STRIBECK_REAL upper) {
  if (x < lower) x = lower;
  return x > upper ? upper : x;
}
#endif
"""


def write(task: ExportTask) -> Written:
    """The header.

    :raises ConfigError: for joints whose names are the same in C.
    """
    names = [identifier(joint) for joint, _ in task.joints]
    for k, name in enumerate(names):
        if name in names[:k]:
            raise ConfigError(
                f"joints {task.joints[names.index(name)].joint!r} and {task.joints[k].joint!r} are both {name} in C"
            )
    guard = f"STRIBECK_{'_'.join(names).upper()}_H"
    comments = [f"/* {title_of(joint).replace('*/', '* /')} */" for joint in task.joints]
    blocks = "\n".join(_joint(name, joint) for name, joint in zip(names, task.joints, strict=True))
    lines = [
        "/* Friction and motor of identified joints; SI units, torques at the output shaft. C99 and C++17.",
        "   #define STRIBECK_FLOAT before the include for float instead of double. */",
        *comments,
        f"#ifndef {guard}",
        f"#define {guard}",
        _HEAD,
        f"{blocks}#endif",
    ]
    return Written({task.output: "\n".join(lines) + "\n"})


def _joint(name: str, joint: JointServo) -> str:
    return "\n".join(
        "\n".join(lines) + "\n"
        for lines in (_budget(name, joint), _friction(name, joint), _motor(name, joint))
    )


def _number(value: float) -> str:
    text = f"{value + 0.0:.17g}"
    return f"STRIBECK_C({text if any(mark in text for mark in '.e') else text + '.0'})"


def _function(name: str, result: str, arguments: Sequence[str], body: Sequence[str]) -> list[str]:
    listed = ", ".join(f"STRIBECK_REAL {argument}" for argument in arguments)
    return [f"static inline {result} {name}({listed}) {{", *(f"  {line}" for line in body), "}"]


def _budget(name: str, joint: JointServo) -> list[str]:
    file = joint.servo.parameters
    body = list(_budget_body(file.law, lambda key: _number(file.values[key])))
    return [
        f"/* {name}: largest friction torque against motion in positive and in negative direction [N m].",
        "   motor, external: torques [N m]; velocity [rad/s]. */",
        *_function(
            f"{name}_friction_budget",
            "void",
            ["motor", "external", "velocity", "*positive", "*negative"],
            body,
        ),
    ]


def _has(law: FrictionLaw, name: str) -> bool:
    return name in law.parameter_names


def _budget_body(law: FrictionLaw, p: Callable[[str], str]) -> Iterator[str]:
    """Statements of the budget; the same operations in the same order as in ``core``."""
    yield "STRIBECK_REAL speed = STRIBECK_ABS(velocity);"
    terms = []
    if _has(law, "load_friction_base"):
        yield "STRIBECK_REAL transmitted = STRIBECK_ABS(motor - external);"
        terms.append(f"{p('load_friction_base')} * transmitted")
    elif _has(law, "load_friction_motor"):
        terms.append(
            f"STRIBECK_ABS({p('load_friction_motor')} * motor - {p('load_friction_external')} * external)"
        )
    else:
        yield "(void)motor; (void)external;"
    if _has(law, "alpha"):
        fading = [p("friction_stribeck")]
        if _has(law, "load_friction_base"):
            fading.append(f"{p('load_friction_stribeck')} * transmitted")
        elif _has(law, "load_friction_motor"):
            fading.append(
                f"STRIBECK_ABS({p('load_friction_motor_stribeck')} * motor - "
                f"{p('load_friction_external_stribeck')} * external)"
            )
        if _has(law, "load_friction_motor_quad"):
            yield from _quadratic(p)
            fading.append("quadratic")
        yield f"STRIBECK_REAL ratio = speed / {p('dtheta_stribeck')};"
        yield f"if (ratio < STRIBECK_C({SMALLEST_RATIO:g})) ratio = STRIBECK_C({SMALLEST_RATIO:g});"
        yield f"STRIBECK_REAL weight = STRIBECK_EXP(-STRIBECK_EXP({p('alpha')} * STRIBECK_LOG(ratio)));"
        terms.append(f"weight * ({' + '.join(fading)})")
    yield f"STRIBECK_REAL load = {' + '.join(terms) or _number(0.0)};"
    yield f"*positive = {p('friction_viscous')} * speed + {p('friction_base')} + load;"
    if law.differs_by_direction:
        yield f"*negative = {p('friction_viscous_negative')} * speed + {p('friction_base_negative')} + load;"
    else:
        yield "*negative = *positive;"


def _quadratic(p: Callable[[str], str]) -> Iterator[str]:
    yield f"STRIBECK_REAL quadratic = {_number(0.0)};"
    yield f"if (motor * external < {_number(0.0)}) {{"
    yield "  if (STRIBECK_ABS(motor) > STRIBECK_ABS(external))"
    yield f"    quadratic = {p('load_friction_external_quad')} * external * external;"
    yield "  else if (STRIBECK_ABS(motor) < STRIBECK_ABS(external))"
    yield f"    quadratic = {p('load_friction_motor_quad')} * motor * motor;"
    yield "}"


def _friction(name: str, joint: JointServo) -> list[str]:
    file = joint.servo.parameters
    offset = _number(file.values.get("torque_offset", 0.0))
    net = f"motor + external + {offset}" if file.law.offsets else "motor + external"
    budget = [
        "STRIBECK_REAL positive, negative;",
        f"{name}_friction_budget(motor, external, velocity, &positive, &negative);",
    ]
    lost = f" - STRIBECK_ABS(share) * {offset}" if file.law.offsets else ""
    return [
        f"/* {name}: friction torque [N m] during a time step dt [s]; inertia with armature [kg m^2]. */",
        *_function(
            f"{name}_friction_torque",
            "STRIBECK_REAL",
            ["motor", "external", "velocity", "inertia", "dt"],
            [*budget, f"return stribeck_clip(-(inertia / dt * velocity + ({net})), -positive, negative);"],
        ),
        f"/* {name}: torque [N m] that cancels the share (-1 to 1, gain times direction) of the friction. */",
        *_function(
            f"{name}_cancelling_torque",
            "STRIBECK_REAL",
            ["share", "motor", "external", "velocity"],
            [*budget, f"return share * (share > {_number(0.0)} ? positive : negative){lost};"],
        ),
    ]


def _motor(name: str, joint: JointServo) -> list[str]:
    file = joint.servo.parameters
    control, values = file.actuator.control, file.values
    if isinstance(control, VoltageControl):
        unit, body = "duty in [-1, 1]", list(_voltage_motor(control, values))
    elif isinstance(control, CurrentControl):
        unit, body = "current [A]", list(_current_motor(control, values))
    else:
        unit, body = "torque [N m]", ["(void)supply; (void)velocity;", "return output;"]
    return [
        f"/* {name}: motor torque [N m] with torque on. output: the firmware's {unit}; supply [V]; velocity [rad/s]. */",
        *_function(f"{name}_motor_torque", "STRIBECK_REAL", ["output", "supply", "velocity"], body),
    ]


def _voltage_motor(control: VoltageControl, values: Mapping[str, float]) -> Iterator[str]:
    yield f"STRIBECK_REAL back_emf = {_number(values['kt'])} * velocity;"
    yield "STRIBECK_REAL voltage = output * supply;"
    if "current_limit" in values:
        yield f"STRIBECK_REAL reach = {_number(values['R'] * values['current_limit'])};"
        yield "voltage = stribeck_clip(stribeck_clip(voltage, back_emf - reach, back_emf + reach), -supply, supply);"
    driven = "back_emf" if control.bridge == "brake" else "STRIBECK_ABS(voltage) / supply * back_emf"
    torque = f"{_number(values['kt'] / values['R'])} * (voltage - {driven})"
    if "torque_saturation" not in values:
        yield f"return {torque};"
        return
    share = _number(values["torque_saturation"] / values["kt"])
    yield f"STRIBECK_REAL torque = {torque};"
    yield f"return torque / ({_number(1.0)} + {share} * STRIBECK_ABS(torque));"


def _current_motor(control: CurrentControl, values: Mapping[str, float]) -> Iterator[str]:
    most = _number(control.current_max)
    yield "STRIBECK_REAL current = output;"
    if "R" in values:
        kt, resistance = _number(values["kt"]), _number(values["R"])
        yield (
            f"current = stribeck_clip(current, (-supply - {kt} * velocity) / {resistance}, "
            f"(supply - {kt} * velocity) / {resistance});"
        )
    else:
        yield "(void)supply; (void)velocity;"
    yield f"return {_number(values['kt'])} * stribeck_clip(current, -{most}, {most});"
