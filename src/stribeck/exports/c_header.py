r"""Export to C: one header without dependencies but ``math.h``, valid C99 and C++17, without heap and static state.

For every joint J, with :math:`\tau_m` the motor torque, :math:`\tau_e` the external torque, :math:`\dot\theta` the velocity:

- ``J_friction_budget``: :math:`\tau_f^{m+}, \tau_f^{m-}` (:func:`stribeck.model.law.friction_budget`),
- ``J_friction_torque``: :math:`\tau_f` over one time step (:func:`stribeck.model.law.friction_torque`),
- ``J_cancelling_torque``: feed-forward torque (:func:`stribeck.live.friction.cancelling_torque`),
- ``J_motor_torque``: torque of the motor for the firmware's output (:func:`stribeck.model.control_laws.VoltageControl.torque`).

``double`` is used, or ``float`` after ``#define STRIBECK_FLOAT``. Constants are written with 17 digits.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from stribeck.errors import ConfigError
from stribeck.exports.c_expressions import Dialect, statements
from stribeck.exports.task import ExportTask, JointServo, Written, identifier, title_of
from stribeck.model.control_laws import CurrentControl, VoltageControl
from stribeck.model.law import friction_budget, offset_torque
from stribeck.model.trace.expressions import Tracer

_FUNCTIONS = ("abs", "exp", "log", "sqrt", "sin", "cos", "tanh")
"""Functions of one argument of formulas."""


def _macros(suffix: str) -> str:
    """Functions of ``math.h`` for ``float`` (f) or ``double``."""
    names = {name: "fabs" if name == "abs" else name for name in _FUNCTIONS}
    lines = [f"#define STRIBECK_{name.upper()}(x) {known}{suffix}(x)" for name, known in names.items()]
    return "\n".join([*lines, f"#define STRIBECK_POW(x, y) pow{suffix}(x, y)"])


_HEAD = f"""\
#ifndef STRIBECK_REAL
#include <math.h>
#ifdef STRIBECK_FLOAT
#define STRIBECK_REAL float
#define STRIBECK_C(x) x##F
{_macros("f")}
#else
#define STRIBECK_REAL double
#define STRIBECK_C(x) x
{_macros("")}
#endif
static inline STRIBECK_REAL stribeck_clip(STRIBECK_REAL x, STRIBECK_REAL lower, STRIBECK_REAL upper) {{
  if (x < lower) x = lower;
  return x > upper ? upper : x;
}}
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


_C = Dialect(
    "STRIBECK_REAL",
    lambda value: _number(value) if value >= 0.0 else f"({_number(value)})",
    {name: f"STRIBECK_{name.upper()}" for name in _FUNCTIONS} | {"**": "STRIBECK_POW"},
)


def _function(name: str, result: str, arguments: Sequence[str], body: Sequence[str]) -> list[str]:
    listed = ", ".join(f"STRIBECK_REAL {argument}" for argument in arguments)
    return [f"static inline {result} {name}({listed}) {{", *(f"  {line}" for line in body), "}"]


def _budget(name: str, joint: JointServo) -> list[str]:
    file = joint.servo.parameters
    arguments = file.law.arguments
    budget = friction_budget(file.law, file.values, *map(Tracer().symbol, arguments))
    lines, texts = statements(budget, _C)
    return [
        f"/* {name}: largest friction torque against motion in positive and in negative direction [N m].",
        "   motor, external: torques [N m]; velocity [rad/s]; position [rad]. */",
        *_function(
            f"{name}_friction_budget",
            "void",
            [*arguments, "*positive", "*negative"],
            [
                *_unused(arguments, [*lines, *texts]),
                *lines,
                f"*positive = {texts[0]};",
                f"*negative = {texts[1]};",
            ],
        ),
    ]


def _unused(names: Sequence[str], texts: Sequence[str]) -> list[str]:
    """A statement that tells the compiler which arguments a body does not use."""
    found = [name for name in names if not re.search(rf"\b{name}\b", " ".join(texts))]
    return [" ".join(f"(void){name};" for name in found)] if found else []


def _friction(name: str, joint: JointServo) -> list[str]:
    file = joint.servo.parameters
    arguments = file.law.arguments
    offset: list[str] = []
    if file.law.of_kind("offset"):
        lines, texts = statements([offset_torque(file.law, file.values, Tracer().symbol("position"))], _C)
        offset = [*lines, f"const STRIBECK_REAL offset = {texts[0]};"]
    net = "motor + external + offset" if offset else "motor + external"
    budget = [
        "STRIBECK_REAL positive, negative;",
        f"{name}_friction_budget({', '.join(arguments)}, &positive, &negative);",
    ]
    lost = " - STRIBECK_ABS(share) * offset" if offset else ""
    return [
        f"/* {name}: friction torque [N m] during a time step dt [s]; inertia with armature [kg m^2]. */",
        *_function(
            f"{name}_friction_torque",
            "STRIBECK_REAL",
            [*arguments, "inertia", "dt"],
            [
                *budget,
                *offset,
                f"return stribeck_clip(-(inertia / dt * velocity + ({net})), -positive, negative);",
            ],
        ),
        f"/* {name}: torque [N m] that cancels the share (-1 to 1, gain times direction) of the friction. */",
        *_function(
            f"{name}_cancelling_torque",
            "STRIBECK_REAL",
            ["share", *arguments],
            [*budget, *offset, f"return share * (share > {_number(0.0)} ? positive : negative){lost};"],
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
    if control.inductance is not None:
        raise ConfigError(
            "the header does not support the inductance of a drive/coast bridge: choose the format table, or remove inductance and "
            "pwm_period from the actuator of the file"
        )
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
