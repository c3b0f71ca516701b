// Copyright the Stribeck maintainers. SPDX-License-Identifier: Apache-2.0
/// \file
/// Simulated hardware for tests: joints with inertia, Coulomb and viscous friction that stick,
/// commanded by effort.
#ifndef FRICTION_JOINTS_HPP_
#define FRICTION_JOINTS_HPP_

#include <string>
#include <vector>

#include "hardware_interface/system_interface.hpp"

namespace stribeck_controllers
{

/// One joint: J dv/dt = effort - friction.
struct SimulatedJoint
{
  std::string name;
  double inertia = 0.05, coulomb = 0.3, viscous = 0.1;
  double position = 0.0, velocity = 0.0, effort = 0.0;
  bool spoiled = false;  ///< its state is not a number

  /// A period [s] in steps of 0.1 ms; the friction of a step takes at most the whole velocity.
  void move(double period);
};

/// What the hardware did last, for the tests.
std::vector<SimulatedJoint> & simulated_joints();

class FrictionJoints : public hardware_interface::SystemInterface
{
public:
  hardware_interface::CallbackReturn on_init(
    const hardware_interface::HardwareComponentInterfaceParams & params) override;
  hardware_interface::return_type read(
    const rclcpp::Time & time, const rclcpp::Duration & period) override;
  hardware_interface::return_type write(
    const rclcpp::Time & time, const rclcpp::Duration & period) override;
};

}  // namespace stribeck_controllers

#endif  // FRICTION_JOINTS_HPP_
