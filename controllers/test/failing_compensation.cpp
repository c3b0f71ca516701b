// Copyright the Stribeck maintainers. SPDX-License-Identifier: Apache-2.0
#include "failing_compensation.hpp"

#include <stdexcept>

#include "pluginlib/class_list_macros.hpp"

namespace stribeck_controllers
{

using controller_interface::return_type;

std::atomic<Behaviour> FailingCompensation::behaviour{Behaviour::command};

return_type FailingCompensation::update_and_write_commands(
  const rclcpp::Time & time, const rclcpp::Duration & period)
{
  const Behaviour now = behaviour;
  if (now == Behaviour::error)
  {
    return return_type::ERROR;
  }
  const return_type result =
    FrictionCompensationController::update_and_write_commands(time, period);
  if (now == Behaviour::exception)
  {
    throw std::runtime_error("as asked");
  }
  return result;
}

}  // namespace stribeck_controllers

PLUGINLIB_EXPORT_CLASS(
  stribeck_controllers::FailingCompensation, controller_interface::ChainableControllerInterface)
