// Copyright the Stribeck maintainers. SPDX-License-Identifier: Apache-2.0
/// \file
/// Friction compensation as a chainable controller of ros2_control.
#ifndef STRIBECK_CONTROLLERS__FRICTION_COMPENSATION_CONTROLLER_HPP_
#define STRIBECK_CONTROLLERS__FRICTION_COMPENSATION_CONTROLLER_HPP_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "control_msgs/msg/dynamic_joint_state.hpp"
#include "control_msgs/msg/joint_trajectory_controller_state.hpp"
#include "controller_interface/chainable_controller_interface.hpp"
#include "rclcpp/node_interfaces/node_parameters_interface.hpp"
#include "rclcpp/publisher.hpp"
#include "rclcpp/subscription.hpp"
#include "rclcpp_lifecycle/state.hpp"
#include "realtime_tools/realtime_buffer.hpp"
#include "realtime_tools/realtime_publisher.hpp"
#include "std_msgs/msg/float64.hpp"
#include "std_msgs/msg/float64_multi_array.hpp"
#include "std_srvs/srv/set_bool.hpp"
#include "std_srvs/srv/trigger.hpp"
#include "stribeck_controllers/chain.hpp"
#include "stribeck_controllers/compensator.hpp"
#include "stribeck_controllers/friction_compensation_controller_parameters.hpp"
#include "stribeck_controllers/guiding.hpp"

namespace stribeck_controllers
{

/// Adds friction torque to the efforts of another controller, or goal offsets to its positions.
///
/// It exports `<name>/<joint>/effort` (mode sum) or `<name>/<joint>/position` (mode goal_offset),
/// and the goal interfaces of its parameters. What cannot be trusted adds nothing: the reference
/// passes through. Without a reference the effort is zero and a position stays where it was; when
/// the controller stops, it leaves no effort, or the position where the joint is.
///
/// With `~/zero_torque` a hand guides the joints, whose weight the controller bears while it has no
/// reference. `~/exchange` lets the parameters below `friction` as they are set by then take over
/// without a step, `~/revert` those before.
class FrictionCompensationController : public controller_interface::ChainableControllerInterface
{
public:
  controller_interface::CallbackReturn on_init() override;
  controller_interface::InterfaceConfiguration command_interface_configuration() const override;
  controller_interface::InterfaceConfiguration state_interface_configuration() const override;
  controller_interface::CallbackReturn on_configure(
    const rclcpp_lifecycle::State & previous) override;
  controller_interface::CallbackReturn on_activate(
    const rclcpp_lifecycle::State & previous) override;
  controller_interface::CallbackReturn on_deactivate(
    const rclcpp_lifecycle::State & previous) override;
  controller_interface::return_type update_reference_from_subscribers(
    const rclcpp::Time & time, const rclcpp::Duration & period) override;
  controller_interface::return_type update_and_write_commands(
    const rclcpp::Time & time, const rclcpp::Duration & period) override;

protected:
  std::vector<hardware_interface::CommandInterface::SharedPtr> on_export_reference_interfaces_list()
    override;
  bool on_set_chained_mode(bool chained) override;

private:
  using Values = std_msgs::msg::Float64MultiArray;
  using State = control_msgs::msg::DynamicJointState;
  using Switch = std_srvs::srv::SetBool;
  using Goal = control_msgs::msg::JointTrajectoryControllerState;
  /// A value from a topic and how many there were; plain, so that the loop neither counts
  /// references nor frees memory.
  template <typename T>
  struct Counted
  {
    T value{};
    unsigned count = 0;
  };
  /// Drives that are compensated, with their dynamics.
  struct Drives
  {
    stribeck::Compensator compensator;
    stribeck::IndependentJoints independent;
    stribeck::RigidBodyModel bodies;
    const stribeck::Dynamics * dynamics = nullptr;  ///< nullptr: not known
  };
  enum class Change : int
  {
    none,
    exchange,
    revert
  };
  enum class Guide : int
  {
    none,
    begin,
    leave
  };
  /// What the zero-torque mode depends on: not active, not enabled, commanded by a controller,
  /// states not trusted; it can begin; it is on.
  enum class Situation : int
  {
    inactive,
    off,
    commanded,
    unknown,
    ready,
    guided
  };
  using Trigger = std_srvs::srv::Trigger;
  using Params = friction_compensation_controller::Params;
  struct TopicGoal
  {
    std::int64_t stamp;  ///< ROS time [ns]
    stribeck::Vector position, velocity;
  };
  /// What was read last from the interfaces of a joint.
  struct Reads
  {
    stribeck::LastRead position, velocity, effort, goal, goal_velocity;
  };
  template <typename T>
  using Box = realtime_tools::RealtimeBuffer<Counted<T>>;
  template <typename Message>
  using Publisher = realtime_tools::RealtimePublisher<Message>;

  std::string configured();
  std::string limit_problem();
  std::string filled(const Params & parameters, Drives & drives) const;
  std::string known_dynamics(const Params & parameters, Drives & drives) const;
  void serve();
  void change_drives(Change change, Trigger::Response & response);
  std::string prepared(Change change);
  std::string guiding_problem() const;
  void prepare_guiding();
  void begin_guiding();
  void guide();
  void bear();
  void mark_faults();
  static std::string gain_problem(double gain, double most);
  void watch_gain();
  void subscribe();
  void advertise();
  void follow_switches();
  void read_states(double period);
  void read_references();
  void take_goal(const rclcpp::Time & time);
  void write();
  void publish(const rclcpp::Time & time);
  bool forget_references();
  const char * commanded_interface() const;

  std::shared_ptr<friction_compensation_controller::ParamListener> listener_;
  Params parameters_;
  std::unique_ptr<Drives> drives_;  ///< that are compensated, or are taking over
  std::unique_ptr<Drives> former_;  ///< before the last exchange
  std::unique_ptr<Drives> next_;    ///< that a service has prepared
  stribeck::Handover handover_;
  stribeck::ZeroTorque zero_;
  stribeck::Vector temperature_{};
  bool referenced_ = false;    ///< another controller gives references
  bool handing_over_ = false;  ///< a change of drives has begun
  /// the zero-torque mode has ended by itself, and nobody has commanded since
  bool guiding_ended_ = false;
  std::atomic<Change> change_{Change::none};
  /// a service prepares other drives, or they take over; then it touches none
  std::atomic<bool> changing_{false};
  std::atomic<Guide> guide_{Guide::none};
  std::atomic<Situation> situation_{Situation::inactive};
  std::size_t joints_ = 0;
  bool sums_ = true, position_goals_ = false, velocity_goals_ = false;
  bool reads_velocity_ = false, reads_effort_ = false, reads_temperature_ = false;

  stribeck::CommandStage stage_;
  stribeck::TopicReferences topic_;
  std::array<Reads, stribeck::max_joints> reads_{};
  stribeck::Vector position_{}, velocity_{}, effort_{}, goal_{}, goal_velocity_{};
  double now_ = 0.0;        ///< sum of the periods since activation [s]
  double published_ = 0.0;  ///< [s]
  unsigned goals_taken_ = 0;
  std::atomic<bool> switched_on_{true};    ///< the last `~/enable`, else the parameter
  std::atomic<bool> switched_off_{false};  ///< the last `~/enable` was false
  std::atomic<double> gain_{0.8}, largest_gain_{stribeck::infinity};

  rclcpp::node_interfaces::OnSetParametersCallbackHandle::SharedPtr gain_check_;
  rclcpp::node_interfaces::PostSetParametersCallbackHandle::SharedPtr gain_change_;
  rclcpp::Service<Switch>::SharedPtr enable_service_, zero_torque_service_;
  rclcpp::Service<Trigger>::SharedPtr exchange_service_, revert_service_;
  rclcpp::Subscription<std_msgs::msg::Float64>::SharedPtr gain_subscription_;
  rclcpp::Subscription<Values>::SharedPtr reference_subscription_;
  rclcpp::Subscription<Goal>::SharedPtr goal_subscription_;
  Box<stribeck::Vector> references_;
  Box<TopicGoal> goals_;
  Counted<stribeck::Vector> reference_message_;
  Counted<TopicGoal> goal_message_;
  std::unique_ptr<Publisher<State>> state_publisher_;
  State state_message_;
};

}  // namespace stribeck_controllers

#endif  // STRIBECK_CONTROLLERS__FRICTION_COMPENSATION_CONTROLLER_HPP_
