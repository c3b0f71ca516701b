// Copyright the Stribeck maintainers. SPDX-License-Identifier: Apache-2.0
/// \file
/// Friction compensation as a chainable controller of ros2_control.
#ifndef STRIBECK_CONTROLLERS__FRICTION_COMPENSATION_CONTROLLER_HPP_
#define STRIBECK_CONTROLLERS__FRICTION_COMPENSATION_CONTROLLER_HPP_

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "control_msgs/msg/joint_trajectory_controller_state.hpp"
#include "controller_interface/chainable_controller_interface.hpp"
#include "rclcpp/publisher.hpp"
#include "rclcpp/subscription.hpp"
#include "rclcpp_lifecycle/state.hpp"
#include "realtime_tools/realtime_buffer.hpp"
#include "realtime_tools/realtime_publisher.hpp"
#include "std_msgs/msg/bool.hpp"
#include "std_msgs/msg/float64.hpp"
#include "std_msgs/msg/float64_multi_array.hpp"
#include "std_msgs/msg/string.hpp"
#include "stribeck_controllers/compensator.hpp"
#include "stribeck_controllers/friction_compensation_controller_parameters.hpp"

namespace stribeck_controllers
{

/// Adds friction torque to the efforts of another controller, or goal offsets to its positions.
///
/// It exports `<name>/<joint>/effort` (mode sum) or `<name>/<joint>/position` (mode goal_offset), and the goal interfaces of
/// its parameters. What is in doubt adds nothing: the reference passes through. A reference that is not a number leaves the
/// last one that was, without friction.
class FrictionCompensationController : public controller_interface::ChainableControllerInterface
{
public:
  controller_interface::CallbackReturn on_init() override;
  controller_interface::InterfaceConfiguration command_interface_configuration() const override;
  controller_interface::InterfaceConfiguration state_interface_configuration() const override;
  controller_interface::CallbackReturn on_configure(const rclcpp_lifecycle::State & previous) override;
  controller_interface::CallbackReturn on_activate(const rclcpp_lifecycle::State & previous) override;
  controller_interface::CallbackReturn on_deactivate(const rclcpp_lifecycle::State & previous) override;
  controller_interface::return_type update_reference_from_subscribers(
    const rclcpp::Time & time, const rclcpp::Duration & period) override;
  controller_interface::return_type update_and_write_commands(
    const rclcpp::Time & time, const rclcpp::Duration & period) override;

protected:
  std::vector<hardware_interface::CommandInterface::SharedPtr> on_export_reference_interfaces_list() override;
  bool on_set_chained_mode(bool chained) override;

private:
  using Values = std_msgs::msg::Float64MultiArray;
  using Goal = control_msgs::msg::JointTrajectoryControllerState;
  /// A value from a topic and how many there were; plain, so that the loop neither counts references nor frees memory.
  template<typename T>
  struct Counted
  {
    T value{};
    unsigned count = 0;
  };
  struct TopicGoal
  {
    double stamp;
    stribeck::Vector position, velocity;
  };
  template<typename T>
  using Box = realtime_tools::RealtimeBuffer<Counted<T>>;
  template<typename Message>
  using Publisher = realtime_tools::RealtimePublisher<Message>;

  std::string configured();
  stribeck::JointModel joint_model(const std::string & name) const;
  void subscribe();
  void follow_switches();
  void read_states();
  void tell(double now, double period);
  void write(double now);
  void publish(double now);
  const char * commanded_interface() const;

  std::shared_ptr<friction_compensation_controller::ParamListener> listener_;
  friction_compensation_controller::Params parameters_;
  std::unique_ptr<stribeck::Compensator> compensator_;
  stribeck::IndependentJoints dynamics_;
  std::size_t joints_ = 0;
  bool sums_ = true, position_goals_ = false, velocity_goals_ = false;
  bool reads_velocity_ = false, reads_effort_ = false, reads_temperature_ = false;

  stribeck::Vector position_{}, velocity_{}, effort_{}, reference_{}, kept_{}, goal_{}, goal_velocity_{}, values_{};
  rclcpp::Time begin_, start_;  ///< activation on the clock of topics, and on that of updates
  double published_ = 0.0;
  unsigned enables_ = 0, gains_ = 0, goals_taken_ = 0;

  rclcpp::Subscription<std_msgs::msg::Bool>::SharedPtr enable_subscription_;
  rclcpp::Subscription<std_msgs::msg::Float64>::SharedPtr gain_subscription_;
  rclcpp::Subscription<Values>::SharedPtr reference_subscription_;
  rclcpp::Subscription<Goal>::SharedPtr goal_subscription_;
  Box<bool> enable_;
  Box<double> gain_;
  Box<stribeck::Vector> references_;
  Box<TopicGoal> goals_;
  Counted<bool> told_enable_;
  Counted<double> told_gain_;
  Counted<stribeck::Vector> told_references_;
  Counted<TopicGoal> told_goal_;
  std::unique_ptr<Publisher<Values>> torque_publisher_, scale_publisher_;
  std::unique_ptr<Publisher<std_msgs::msg::String>> doubt_publisher_;
  Values torque_message_, scale_message_;
  std_msgs::msg::String doubt_message_;
};

}  // namespace stribeck_controllers

#endif  // STRIBECK_CONTROLLERS__FRICTION_COMPENSATION_CONTROLLER_HPP_
