// Copyright the Stribeck maintainers. SPDX-License-Identifier: Apache-2.0
#include "stribeck_controllers/friction_compensation_controller.hpp"

#include <algorithm>
#include <cmath>

#include "hardware_interface/types/hardware_interface_type_values.hpp"
#include "pluginlib/class_list_macros.hpp"

namespace stribeck_controllers
{

using controller_interface::CallbackReturn;
using controller_interface::InterfaceConfiguration;
using controller_interface::interface_configuration_type;
using controller_interface::return_type;

namespace
{

/// Value of an interface, NaN where it cannot be read.
template<typename Interface>
double value_of(const Interface & interface)
{
  return interface.get_optional().value_or(stribeck::not_a_number);
}

bool contains(const std::vector<std::string> & names, const char * name)
{
  return std::find(names.begin(), names.end(), name) != names.end();
}

double or_nan(double value) { return value > 0.0 ? value : stribeck::not_a_number; }

}  // namespace

CallbackReturn FrictionCompensationController::on_init()
{
  try {
    listener_ = std::make_shared<friction_compensation_controller::ParamListener>(get_node());
    compensator_ = std::make_unique<stribeck::Compensator>();
  } catch (const std::exception & error) {
    RCLCPP_ERROR(get_node()->get_logger(), "parameters cannot be declared: %s", error.what());
    return CallbackReturn::ERROR;
  }
  return CallbackReturn::SUCCESS;
}

const char * FrictionCompensationController::commanded_interface() const
{
  return parameters_.output_mode == "sum" ? hardware_interface::HW_IF_EFFORT : hardware_interface::HW_IF_POSITION;
}

InterfaceConfiguration FrictionCompensationController::command_interface_configuration() const
{
  InterfaceConfiguration found{interface_configuration_type::INDIVIDUAL, {}};
  for (const std::string & joint : parameters_.joints) {
    found.names.push_back(joint + "/" + commanded_interface());
  }
  return found;
}

InterfaceConfiguration FrictionCompensationController::state_interface_configuration() const
{
  InterfaceConfiguration found{interface_configuration_type::INDIVIDUAL, {}};
  for (const char * kind : {"position", "velocity", "effort", "temperature"}) {
    for (const std::string & joint : parameters_.joints) {
      if (contains(parameters_.state_interfaces, kind)) {
        found.names.push_back(joint + "/" + kind);
      }
    }
  }
  return found;
}

CallbackReturn FrictionCompensationController::on_configure(const rclcpp_lifecycle::State &)
{
  std::string problem;
  try {
    parameters_ = listener_->get_params();
    problem = configured();
  } catch (const std::exception & error) {
    problem = error.what();
  }
  if (!problem.empty()) {
    RCLCPP_ERROR(get_node()->get_logger(), "%s", problem.c_str());
    return CallbackReturn::FAILURE;
  }
  subscribe();
  return CallbackReturn::SUCCESS;
}

/// Read the parameters; returns why they cannot be used, empty if they can.
std::string FrictionCompensationController::configured()
{
  const auto & p = parameters_;
  joints_ = p.joints.size();
  if (joints_ < 1 || joints_ > static_cast<std::size_t>(stribeck::max_joints)) {
    return "joints: expected 1 to " + std::to_string(stribeck::max_joints) + ", found " + std::to_string(joints_);
  }
  if (!contains(p.state_interfaces, "position")) {
    return "state_interfaces: position is missing, without it nothing can be compensated";
  }
  sums_ = p.output_mode == "sum";
  position_goals_ = sums_ && contains(p.goal_interfaces, "position");
  velocity_goals_ = contains(p.goal_interfaces, "velocity");
  reads_velocity_ = contains(p.state_interfaces, "velocity");
  reads_effort_ = contains(p.state_interfaces, "effort");
  reads_temperature_ = contains(p.state_interfaces, "temperature");
  if (p.effort_meaning != "none" && !reads_effort_) {
    return "effort_meaning " + p.effort_meaning + " needs effort in state_interfaces";
  }
  stribeck::Settings settings;
  settings.mode = sums_ ? stribeck::OutputMode::sum : stribeck::OutputMode::goal_offset;
  settings.effort_meaning = p.effort_meaning == "motor" ? stribeck::EffortMeaning::motor :
    p.effort_meaning == "link" ? stribeck::EffortMeaning::link : stribeck::EffortMeaning::none;
  settings.impedance = p.control == "impedance";
  settings.adapt = p.adapt;
  settings.gain = p.gain, settings.learned_gain = p.learned_gain, settings.sure = p.sure;
  settings.state_timeout = p.state_timeout, settings.command_timeout = p.command_timeout;
  settings.ramp_time = p.ramp_time, settings.slew = p.slew_limit;
  const double period = get_update_rate() > 0 ? 1.0 / get_update_rate() : 0.0;
  settings.loop_delay = p.loop_delay > 0.0 ? p.loop_delay : period;
  std::array<stribeck::JointModel, stribeck::max_joints> joints{};
  std::size_t known = 0;
  dynamics_ = {};
  dynamics_.joints = static_cast<int>(joints_);
  for (std::size_t k = 0; k < joints_; ++k) {
    const auto & joint = p.friction.joints_map.at(p.joints[k]);
    joints[k] = joint_model(p.joints[k]);
    dynamics_.inertia[k] = joint.inertia;
    dynamics_.gravity[k] = joint.gravity_torque, dynamics_.q_offset[k] = joint.gravity_offset;
    known += joint.inertia > 0.0;
  }
  if (known != 0 && known != joints_) {
    return "inertia is given for some joints only: give it for all, or for none";
  }
  const stribeck::Dynamics * dynamics = known == joints_ ? &dynamics_ : nullptr;
  const std::string problem = compensator_->configure(static_cast<int>(joints_), joints, settings, dynamics);
  for (std::size_t k = 0; problem.empty() && k < joints_; ++k) {
    const auto & joint = p.friction.joints_map.at(p.joints[k]);
    compensator_->on_telemetry(
      static_cast<int>(k), or_nan(joint.p_gain), or_nan(joint.supply_voltage), stribeck::not_a_number);
  }
  return problem;
}

/// The model of a joint from its parameters.
stribeck::JointModel FrictionCompensationController::joint_model(const std::string & name) const
{
  const auto & p = parameters_.friction.joints_map.at(name);
  stribeck::JointModel joint;
  joint.law = stribeck::law_of(p.law[1] - '0', p);
  joint.friction = stribeck::values_of(p);
  stribeck::Servo & servo = joint.servo;
  servo.control = p.servo == "voltage" ? stribeck::ControlKind::voltage :
    p.servo == "current" ? stribeck::ControlKind::current : stribeck::ControlKind::torque;
  servo.gain = p.control_gain, servo.damping = p.control_damping, servo.output_max = p.output_max;
  servo.coasts = p.coasts;
  servo.kt = or_nan(p.kt), servo.resistance = or_nan(p.R), servo.current_limit = or_nan(p.current_limit);
  servo.saturation = p.torque_saturation;
  servo.nominal_supply = servo.rated_supply = p.supply_voltage;
  joint.armature = p.armature, joint.max_torque = p.max_torque, joint.resolution = p.resolution;
  joint.temperature = p.temperature > -273.15 ? p.temperature : stribeck::not_a_number;
  joint.sign = p.sign, joint.ratio = p.ratio, joint.offset = p.offset;
  joint.tuning = stribeck::Tuning::of_resolution(p.resolution);
  return joint;
}

void FrictionCompensationController::subscribe()
{
  const auto node = get_node();
  const auto reliable = rclcpp::SystemDefaultsQoS();
  told_enable_ = {}, told_gain_ = {}, told_references_ = {}, told_goal_ = {};
  enable_.writeFromNonRT(told_enable_), gain_.writeFromNonRT(told_gain_);
  references_.writeFromNonRT(told_references_), goals_.writeFromNonRT(told_goal_);
  enables_ = gains_ = goals_taken_ = 0;
  enable_subscription_ = node->create_subscription<std_msgs::msg::Bool>(
    "~/enable", reliable, [this](const std_msgs::msg::Bool & message) {
      told_enable_ = {message.data, told_enable_.count + 1};
      enable_.writeFromNonRT(told_enable_);
    });
  gain_subscription_ = node->create_subscription<std_msgs::msg::Float64>(
    "~/gain", reliable, [this](const std_msgs::msg::Float64 & message) {
      if (!compensator_->accepts_gain(message.data)) {
        RCLCPP_WARN(get_node()->get_logger(), "~/gain: %g would not be stable; the old gain stays", message.data);
        return;
      }
      told_gain_ = {message.data, told_gain_.count + 1};
      gain_.writeFromNonRT(told_gain_);
    });
  reference_subscription_ = node->create_subscription<Values>(
    "~/reference", reliable, [this](const Values & message) {
      if (message.data.size() != joints_) {
        RCLCPP_WARN_THROTTLE(
          get_node()->get_logger(), *get_node()->get_clock(), 1000, "~/reference: expected %zu numbers, found %zu",
          joints_, message.data.size());
        return;
      }
      std::copy(message.data.begin(), message.data.end(), told_references_.value.begin());
      ++told_references_.count;
      references_.writeFromNonRT(told_references_);
    });
  goal_subscription_.reset();
  if (!parameters_.goal_topic.empty()) {
    goal_subscription_ = node->create_subscription<Goal>(
      parameters_.goal_topic, rclcpp::SensorDataQoS(), [this](const Goal & message) {
        TopicGoal & goal = told_goal_.value;
        goal.stamp = (rclcpp::Time(message.header.stamp, begin_.get_clock_type()) - begin_).seconds();
        goal.position.fill(stribeck::not_a_number), goal.velocity.fill(stribeck::not_a_number);
        for (std::size_t k = 0; k < joints_; ++k) {
          const auto & names = message.joint_names;
          const auto place = static_cast<std::size_t>(
            std::find(names.begin(), names.end(), parameters_.joints[k]) - names.begin());
          if (place < message.reference.positions.size() && place < names.size()) {
            goal.position[k] = message.reference.positions[place];
          }
          if (place < message.reference.velocities.size() && place < names.size()) {
            goal.velocity[k] = message.reference.velocities[place];
          }
        }
        ++told_goal_.count;
        goals_.writeFromNonRT(told_goal_);
      });
  }
  torque_publisher_ = std::make_unique<Publisher<Values>>(
    node->create_publisher<Values>("~/friction_torque", reliable));
  scale_publisher_ = std::make_unique<Publisher<Values>>(node->create_publisher<Values>("~/scale", reliable));
  doubt_publisher_ = std::make_unique<Publisher<std_msgs::msg::String>>(
    node->create_publisher<std_msgs::msg::String>("~/doubt", reliable));
  torque_message_.data.assign(joints_, 0.0), scale_message_.data.assign(joints_, 1.0);
  doubt_message_.data.reserve(128);
}

std::vector<hardware_interface::CommandInterface::SharedPtr>
FrictionCompensationController::on_export_reference_interfaces_list()
{
  std::vector<hardware_interface::CommandInterface::SharedPtr> found;
  std::vector<std::string> kinds{commanded_interface()};
  if (position_goals_) {
    kinds.emplace_back(hardware_interface::HW_IF_POSITION);
  }
  if (velocity_goals_) {
    kinds.emplace_back(hardware_interface::HW_IF_VELOCITY);
  }
  for (const std::string & kind : kinds) {
    for (const std::string & joint : parameters_.joints) {
      found.push_back(
        std::make_shared<hardware_interface::CommandInterface>(
          std::string(get_node()->get_name()) + "/" + joint, kind));
    }
  }
  return found;
}

bool FrictionCompensationController::on_set_chained_mode(bool) { return true; }

CallbackReturn FrictionCompensationController::on_activate(const rclcpp_lifecycle::State &)
{
  begin_ = start_ = get_node()->now();
  published_ = 0.0;
  kept_.fill(stribeck::not_a_number);
  for (const auto & reference : ordered_exported_reference_interfaces_) {
    (void)reference->set_value(stribeck::not_a_number);
  }
  if (parameters_.enabled) {
    compensator_->enable();
  } else {
    compensator_->disable();
  }
  return CallbackReturn::SUCCESS;
}

CallbackReturn FrictionCompensationController::on_deactivate(const rclcpp_lifecycle::State &)
{
  compensator_->disable();
  for (std::size_t k = 0; k < joints_; ++k) {  // what stays on the hardware is the controller's own
    if (std::isfinite(kept_[k])) {
      (void)command_interfaces_[k].set_value(kept_[k]);
    }
  }
  return CallbackReturn::SUCCESS;
}

return_type FrictionCompensationController::update_reference_from_subscribers(
  const rclcpp::Time &, const rclcpp::Duration &)
{
  const Counted<stribeck::Vector> & told = *references_.readFromRT();
  for (std::size_t k = 0; told.count > 0 && k < joints_; ++k) {
    (void)ordered_exported_reference_interfaces_[k]->set_value(told.value[k]);
  }
  return return_type::OK;
}

return_type FrictionCompensationController::update_and_write_commands(
  const rclcpp::Time & time, const rclcpp::Duration & period)
{
  if (time.get_clock_type() != start_.get_clock_type()) {  // a controller manager that counts steady time
    start_ = time;
  }
  const double now = (time - start_).seconds();
  follow_switches();
  read_states();
  tell(now, period.seconds());
  const stribeck::Measurement measured{
    position_.data(), reads_velocity_ ? velocity_.data() : nullptr, reads_effort_ ? effort_.data() : nullptr};
  compensator_->on_state(now, now, measured);
  write(now);
  publish(now);
  return return_type::OK;
}

/// Enable and gain, from their topics.
void FrictionCompensationController::follow_switches()
{
  const Counted<bool> & enable = *enable_.readFromRT();
  if (enable.count != enables_) {
    enables_ = enable.count;
    if (enable.value && !compensator_->enabled) {
      compensator_->enable();
    } else if (!enable.value) {
      compensator_->disable();
    }
  }
  const Counted<double> & gain = *gain_.readFromRT();
  if (gain.count != gains_) {
    gains_ = gain.count;
    compensator_->set_gain(gain.value);
  }
}

void FrictionCompensationController::read_states()
{
  std::size_t at = 0;
  for (std::size_t k = 0; k < joints_; ++k) {
    position_[k] = value_of(state_interfaces_[at++]);
  }
  for (std::size_t k = 0; reads_velocity_ && k < joints_; ++k) {
    velocity_[k] = value_of(state_interfaces_[at++]);
  }
  for (std::size_t k = 0; reads_effort_ && k < joints_; ++k) {
    effort_[k] = value_of(state_interfaces_[at++]);
  }
  for (std::size_t k = 0; reads_temperature_ && k < joints_; ++k) {
    compensator_->on_telemetry(
      static_cast<int>(k), stribeck::not_a_number, stribeck::not_a_number, value_of(state_interfaces_[at++]));
  }
}

/// Pass the references and goals on. Those written in this update were made before its state: half a period earlier.
void FrictionCompensationController::tell(double now, double period)
{
  std::size_t at = 0;
  bool whole = true;
  for (std::size_t k = 0; k < joints_; ++k) {
    reference_[k] = value_of(*ordered_exported_reference_interfaces_[at++]);
    whole = whole && std::isfinite(reference_[k]);
    kept_[k] = std::isfinite(reference_[k]) ? reference_[k] : kept_[k];
  }
  goal_.fill(stribeck::not_a_number), goal_velocity_.fill(stribeck::not_a_number);
  for (std::size_t k = 0; position_goals_ && k < joints_; ++k) {
    goal_[k] = value_of(*ordered_exported_reference_interfaces_[at++]);
  }
  for (std::size_t k = 0; velocity_goals_ && k < joints_; ++k) {
    goal_velocity_[k] = value_of(*ordered_exported_reference_interfaces_[at++]);
  }
  const double stamp = now - 0.5 * (period > 0.0 ? period : 1e-6);
  if (whole) {
    const stribeck::Measurement command{
      sums_ ? goal_.data() : reference_.data(), goal_velocity_.data(), sums_ ? reference_.data() : nullptr};
    compensator_->on_command(now, &stamp, command);
  }
  const Counted<TopicGoal> & goal = *goals_.readFromRT();
  if (goal.count != goals_taken_) {
    goals_taken_ = goal.count;
    compensator_->on_goal(now, &goal.value.stamp, {goal.value.position.data(), goal.value.velocity.data()});
  }
}

/// Reference with friction; where a reference is not a number, the last one that was, without friction.
void FrictionCompensationController::write(double now)
{
  const bool usable = sums_ || compensator_->output(now, values_);
  for (std::size_t k = 0; k < joints_; ++k) {
    double value = kept_[k];
    if (std::isfinite(reference_[k])) {
      value = sums_ ? reference_[k] + compensator_->torque[k] : usable ? values_[k] : reference_[k];
    }
    if (std::isfinite(value)) {
      (void)command_interfaces_[k].set_value(value);
    }
  }
}

void FrictionCompensationController::publish(double now)
{
  if (now - published_ < 1.0 / parameters_.state_publish_rate && now >= published_) {
    return;
  }
  published_ = now;
  const stribeck::Account account = compensator_->account();
  for (std::size_t k = 0; k < joints_; ++k) {
    torque_message_.data[k] = compensator_->torque[k];
    scale_message_.data[k] = account.dry[k];
  }
  doubt_message_.data.assign(stribeck::text_of(compensator_->doubt));
  (void)torque_publisher_->try_publish(torque_message_);
  (void)scale_publisher_->try_publish(scale_message_);
  (void)doubt_publisher_->try_publish(doubt_message_);
}

}  // namespace stribeck_controllers

PLUGINLIB_EXPORT_CLASS(
  stribeck_controllers::FrictionCompensationController, controller_interface::ChainableControllerInterface)
