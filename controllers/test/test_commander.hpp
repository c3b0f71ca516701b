// Copyright the Stribeck maintainers. SPDX-License-Identifier: Apache-2.0
/// \file
/// A controller for tests that commands efforts to references of another, and fails as it is asked
/// to.
#ifndef TEST_COMMANDER_HPP_
#define TEST_COMMANDER_HPP_

#include <atomic>

#include "controller_interface/controller_interface.hpp"

namespace stribeck_controllers
{

/// What a commander does in an update.
enum class Behaviour
{
  command,
  not_a_number,
  error,
  exception
};

/// Commands 1 N m to both joints; on demand it gives NaN for the first one, ends with an error, or
/// throws.
class TestCommander : public controller_interface::ControllerInterface
{
public:
  static std::atomic<Behaviour> behaviour;

  controller_interface::CallbackReturn on_init() override;
  controller_interface::InterfaceConfiguration command_interface_configuration() const override;
  controller_interface::InterfaceConfiguration state_interface_configuration() const override;
  controller_interface::return_type update(
    const rclcpp::Time & time, const rclcpp::Duration & period) override;
};

}  // namespace stribeck_controllers

#endif  // TEST_COMMANDER_HPP_
