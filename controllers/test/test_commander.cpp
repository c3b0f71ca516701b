// Copyright the Stribeck maintainers. SPDX-License-Identifier: Apache-2.0
#include "test_commander.hpp"

#include <limits>
#include <stdexcept>

#include "pluginlib/class_list_macros.hpp"

namespace stribeck_controllers
{

using controller_interface::interface_configuration_type;
using controller_interface::InterfaceConfiguration;
using controller_interface::return_type;

std::atomic<Behaviour> TestCommander::behaviour{Behaviour::command};

controller_interface::CallbackReturn TestCommander::on_init()
{
  return controller_interface::CallbackReturn::SUCCESS;
}

InterfaceConfiguration TestCommander::command_interface_configuration() const
{
  return {
    interface_configuration_type::INDIVIDUAL,
    {"friction_compensation/shoulder/effort", "friction_compensation/elbow/effort"}};
}

InterfaceConfiguration TestCommander::state_interface_configuration() const
{
  return {interface_configuration_type::NONE, {}};
}

return_type TestCommander::update(const rclcpp::Time &, const rclcpp::Duration &)
{
  const Behaviour now = behaviour;
  if (now == Behaviour::exception)
  {
    throw std::runtime_error("as asked");
  }
  if (now == Behaviour::error)
  {
    return return_type::ERROR;
  }
  (void)command_interfaces_[0].set_value(
    now == Behaviour::not_a_number ? std::numeric_limits<double>::quiet_NaN() : 1.0);
  (void)command_interfaces_[1].set_value(1.0);
  return return_type::OK;
}

}  // namespace stribeck_controllers

PLUGINLIB_EXPORT_CLASS(
  stribeck_controllers::TestCommander, controller_interface::ControllerInterface)
