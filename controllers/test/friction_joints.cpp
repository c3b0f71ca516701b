// Copyright the Stribeck maintainers. SPDX-License-Identifier: Apache-2.0
#include "friction_joints.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "pluginlib/class_list_macros.hpp"

namespace stribeck_controllers
{

using hardware_interface::CallbackReturn;
using hardware_interface::return_type;

void SimulatedJoint::move(double period)
{
  const int steps = std::max(1, static_cast<int>(std::lround(period / 1e-4)));
  const double dt = period / steps;
  for (int k = 0; k < steps; ++k)
  {
    const double pushed = (velocity + effort / inertia * dt) / (1.0 + viscous / inertia * dt);
    velocity = std::copysign(std::max(0.0, std::abs(pushed) - coulomb / inertia * dt), pushed);
    position += velocity * dt;
  }
}

std::vector<SimulatedJoint> & simulated_joints()
{
  static std::vector<SimulatedJoint> joints;
  return joints;
}

CallbackReturn FrictionJoints::on_init(
  const hardware_interface::HardwareComponentInterfaceParams & params)
{
  if (SystemInterface::on_init(params) != CallbackReturn::SUCCESS)
  {
    return CallbackReturn::ERROR;
  }
  simulated_joints().clear();
  for (const auto & joint : get_hardware_info().joints)
  {
    SimulatedJoint made;
    made.name = joint.name;
    simulated_joints().push_back(made);
  }
  return CallbackReturn::SUCCESS;
}

return_type FrictionJoints::read(const rclcpp::Time &, const rclcpp::Duration & period)
{
  for (SimulatedJoint & joint : simulated_joints())
  {
    joint.move(period.seconds());
    set_state(
      joint.name + "/position",
      joint.spoiled ? std::numeric_limits<double>::quiet_NaN() : joint.position);
    set_state(joint.name + "/velocity", joint.velocity);
  }
  return return_type::OK;
}

return_type FrictionJoints::write(const rclcpp::Time &, const rclcpp::Duration &)
{
  for (SimulatedJoint & joint : simulated_joints())
  {
    const double effort = get_command<double>(joint.name + "/effort");
    joint.effort = std::isfinite(effort) ? effort : 0.0;
  }
  return return_type::OK;
}

}  // namespace stribeck_controllers

PLUGINLIB_EXPORT_CLASS(stribeck_controllers::FrictionJoints, hardware_interface::SystemInterface)
