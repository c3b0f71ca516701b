// Copyright the Stribeck maintainers. SPDX-License-Identifier: Apache-2.0
/// \file
/// The friction compensation whose updates fail as a test asks them to.
#ifndef FAILING_COMPENSATION_HPP_
#define FAILING_COMPENSATION_HPP_

#include <atomic>

#include "stribeck_controllers/friction_compensation_controller.hpp"
#include "test_commander.hpp"

namespace stribeck_controllers
{

/// The controller itself; on demand its updates write nothing and end with an error, or write their
/// commands and throw.
class FailingCompensation : public FrictionCompensationController
{
public:
  static std::atomic<Behaviour> behaviour;

  controller_interface::return_type update_and_write_commands(
    const rclcpp::Time & time, const rclcpp::Duration & period) override;
};

}  // namespace stribeck_controllers

#endif  // FAILING_COMPENSATION_HPP_
