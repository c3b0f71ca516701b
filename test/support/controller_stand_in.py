"""The controller of controllers/src without ROS: compiled against stand-ins for ros2_control, and called through ctypes."""

import ctypes
import functools
import os
import re
import shutil
import tempfile
from pathlib import Path

import numpy as np
import yaml

from cpp_compensator import SOURCES, built, pointer, row
from helpers import REPOSITORY

PACKAGE = REPOSITORY / "controllers"
STAND_INS = SOURCES / "stand_ins"
TYPES = {
    "bool": "bool",
    "double": "double",
    "string": "std::string",
    "double_array": "std::vector<double>",
    "string_array": "std::vector<std::string>",
}
JOINTS = ("a", "b")
COULOMB, VISCOUS = 0.4, 0.1
DEFAULTS = {
    "joints": list(JOINTS),
    "goal_interfaces": ["velocity"],
    "ramp_time": 0.0,
    **{
        f"friction.{joint}.{key}": value
        for joint in JOINTS
        for key, value in {"friction_base": COULOMB, "friction_viscous": VISCOUS, "max_torque": 3.0}.items()
    },
}


def literal(value):
    """A default of a parameter in C++."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return "{" + ", ".join(map(literal, value)) + "}"
    return f'"{value}"' if isinstance(value, str) else repr(float(value))


def parameters_header(package):
    """The C++ that generate_parameter_library makes of the controller's parameters, as far as the controller uses it."""
    (declared,) = yaml.safe_load(
        (package / "src" / "friction_compensation_controller_parameters.yaml").read_text()
    ).values()
    of_joints = declared.pop("friction")["__map_joints"]

    def members(some):
        return "\n".join(
            f"  {TYPES[p['type']]} {n} = {literal(p['default_value'])};" for n, p in some.items()
        )

    def taken(some, prefix, target):
        return "\n".join(f'    node_->take({prefix}{name}", {target}.{name});' for name in some)

    return f"""#pragma once
#include "ros2_control.hpp"
namespace friction_compensation_controller
{{
struct MapJoints
{{
{members(of_joints)}
}};
struct Params
{{
{members(declared)}
  struct Friction
  {{
    std::map<std::string, MapJoints> joints_map;
  }} friction;
}};
class ParamListener
{{
public:
  explicit ParamListener(std::shared_ptr<rclcpp::Node> node) : node_(std::move(node)) {{}}
  Params get_params() const
  {{
    Params p;
{taken(declared, '"', "p")}
    for (const std::string & joint : p.joints) {{
      MapJoints & one = p.friction.joints_map[joint];
{taken(of_joints, '"friction." + joint + ".', "one")}
    }}
    return p;
  }}

private:
  std::shared_ptr<rclcpp::Node> node_;
}};
}}  // namespace friction_compensation_controller
"""


def write_headers(package, folder):
    """The headers of ROS that the controller includes, each of which includes the stand-ins, and that of its parameters."""
    header = package / "include" / "stribeck_controllers" / "friction_compensation_controller.hpp"
    source = package / "src" / "friction_compensation_controller.cpp"
    names = re.findall(r'#include "([^"]+)"', header.read_text() + source.read_text())
    for name in names:
        if name.startswith("stribeck_controllers/") or (STAND_INS / name).exists():
            continue
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text('#pragma once\n#include "ros2_control.hpp"\n')
    parameters = folder / "stribeck_controllers" / "friction_compensation_controller_parameters.hpp"
    parameters.parent.mkdir(exist_ok=True)
    parameters.write_text(parameters_header(package))
    return source


@functools.cache
def library():
    """The functions of controller.cpp, or those of the library that ``$STRIBECK_CONTROLLER`` names."""
    given = os.environ.get("STRIBECK_CONTROLLER")
    if given is None:
        folder = Path(tempfile.mkdtemp(prefix="stribeck_controller_"))
        try:
            source = write_headers(PACKAGE, folder)
            flags = (
                "-O1",
                "-fPIC",
                "-shared",
                f"-I{folder}",
                f"-isystem{STAND_INS}",
                "-DSTRIBECK_MAX_JOINTS=4",
                "-Wl,-Bsymbolic",
            )
            built(SOURCES / "controller.cpp", folder / "controller.so", *flags, str(source))
            found = ctypes.CDLL(str(folder / "controller.so"))
        finally:
            shutil.rmtree(folder)
    else:
        found = ctypes.CDLL(given)
    found.controller_made.restype = ctypes.c_void_p
    found.controller_configured.restype = found.exchange_told.restype = ctypes.c_char_p
    found.allocations_in_updates.restype = ctypes.c_long
    return found


class Controller:
    """The controller of two joints with law M1: 0.4 N m Coulomb, 0.1 N m s/rad viscous friction; updates of 1 ms.

    :param description: lines of a joint with its largest effort and its smallest and largest position.
    :param parameters: changes of DEFAULTS, with the full names as keys.
    """

    def __init__(self, parameters=None, description=""):
        self._library = library()
        given = {**DEFAULTS, **(parameters or {})}
        lines = [
            f"{name} {type(value).__name__} {' '.join(value) if isinstance(value, list) else value}"
            for name, value in given.items()
        ]
        handle = self._library.controller_made("\n".join(lines).encode(), description.encode())
        self._handle = ctypes.c_void_p(handle)
        self.problem = self._library.controller_configured(self._handle).decode()
        self._columns = 1 + len(given["goal_interfaces"])

    def __del__(self):
        self._library.controller_deleted(self._handle)

    def configure(self):
        """Configure again."""
        assert self._library.controller_reconfigured(self._handle)

    def activate(self):
        assert self._library.controller_activated(self._handle)

    def deactivate(self):
        assert self._library.controller_deactivated(self._handle)

    def restart(self):
        self.deactivate()
        self.activate()

    def chain(self, on):
        """Lead the controller by its references, or by its topic."""
        assert self._library.controller_chained(self._handle, on)

    def refer(self, reference, goal_velocity=0.0):
        """What another controller writes into the references: efforts or positions, and velocities of the goal."""
        columns = [reference, goal_velocity][: self._columns]
        values = row([np.broadcast_to(column, 2) for column in columns])
        self._library.references_written(self._handle, pointer(values))

    def update(self, position, velocity, period=1e-3, clock_step=None):
        """Commands of the hardware after an update, (2,); what was written before stays where nothing is written.

        :param clock_step: by how much the ROS time goes on, the period if not given [s].
        """
        states = row([np.broadcast_to(column, 2) for column in (position, velocity)])
        self._library.states_written(self._handle, pointer(states))
        step = period if clock_step is None else clock_step
        assert self._library.controller_updated(self._handle, ctypes.c_double(period), ctypes.c_double(step))
        return self.commands

    @property
    def allocated(self):
        """Pieces of memory that updates asked for."""
        return self._library.allocations_in_updates(self._handle)

    @property
    def commands(self):
        out = np.empty(2)
        self._library.commands_read(self._handle, pointer(out))
        return out

    def lock_reference(self, which, locked):
        self._library.references_locked(self._handle, which, locked)

    def lock_state(self, which, locked):
        self._library.states_locked(self._handle, which, locked)

    def tell_reference(self, values):
        """A message on ~/reference."""
        given = row(values)
        self._library.reference_told(self._handle, len(given), pointer(given))

    def tell_gain(self, gain):
        """A message on ~/gain."""
        self._library.gain_told(self._handle, ctypes.c_double(gain))

    def set_gain(self, gain):
        """Set the parameter; returns whether it was accepted."""
        return bool(self._library.gain_parameter_set(self._handle, ctypes.c_double(gain)))

    def switch(self, name, on):
        """Set a parameter that is true or false."""
        assert self._library.switch_parameter_set(self._handle, name.encode(), on)

    def exchange(self):
        """A request of ~/exchange; returns the answer."""
        return self._library.exchange_told(self._handle).decode()

    @property
    def faults(self):
        """Codes of `fault` in the last ~/state, (2,)."""
        out = np.empty(2)
        self._library.faults_read(self._handle, pointer(out))
        return out

    def enable(self, on):
        """A request of ~/enable."""
        self._library.enable_told(self._handle, on)
