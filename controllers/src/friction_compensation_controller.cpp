// Copyright the Stribeck maintainers. SPDX-License-Identifier: Apache-2.0
#include "stribeck_controllers/friction_compensation_controller.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "hardware_interface/component_parser.hpp"
#include "hardware_interface/types/hardware_interface_type_values.hpp"
#include "pluginlib/class_list_macros.hpp"

namespace stribeck_controllers
{

using controller_interface::CallbackReturn;
using controller_interface::interface_configuration_type;
using controller_interface::InterfaceConfiguration;
using controller_interface::return_type;

namespace
{

/// to write an interface that other threads may lock, where it must be written
constexpr int tries = 1000;

/// Write an interface that other threads may lock; \returns whether it was written.
template <typename Interface>
bool written(Interface & interface, double value)
{
  bool done = false;
  for (int k = 0; !done && k < tries; ++k)
  {
    done = interface.set_value(value);
  }
  return done;
}

bool contains(const std::vector<std::string> & names, const char * name)
{
  return std::find(names.begin(), names.end(), name) != names.end();
}

using JointLimits = decltype(hardware_interface::HardwareInfo::limits);

/// Limits of joints in a robot description, narrowed by those of their command interfaces. A
/// controller manager gives them to its controllers only if it enforces them itself.
JointLimits described_limits(const std::string & description)
{
  JointLimits found;
  if (!description.empty())
  {
    for (const auto & hardware : hardware_interface::parse_control_resources_from_urdf(description))
    {
      found.insert(hardware.limits.begin(), hardware.limits.end());
    }
  }
  return found;
}

/// A problem with the name of its joint instead of the joint's number.
std::string named(const std::string & problem, const std::vector<std::string> & joints)
{
  for (std::size_t k = 0; k < joints.size(); ++k)
  {
    const std::string number = "joint " + std::to_string(k + 1) + ": ";
    if (problem.rfind(number, 0) == 0)
    {
      return "joint " + joints[k] + ": " + problem.substr(number.size());
    }
  }
  return problem;
}

double or_nan(double value) { return value > 0.0 ? value : stribeck::not_a_number; }

/// The model of a joint from its parameters.
template <typename Joint>
stribeck::JointModel model_of(const Joint & p)
{
  stribeck::JointModel joint;
  joint.law = stribeck::law_of(p.law[1] - '0', p);
  joint.friction = stribeck::values_of(p);
  stribeck::Servo & servo = joint.servo;
  servo.control = p.servo == "voltage"   ? stribeck::ControlKind::voltage
                  : p.servo == "current" ? stribeck::ControlKind::current
                                         : stribeck::ControlKind::torque;
  servo.gain = p.control_gain, servo.damping = p.control_damping, servo.output_max = p.output_max;
  servo.coasts = p.coasts;
  servo.kt = or_nan(p.kt), servo.resistance = or_nan(p.R),
  servo.current_limit = or_nan(p.current_limit);
  servo.saturation = p.torque_saturation;
  servo.nominal_supply = servo.rated_supply = p.supply_voltage;
  joint.armature = p.armature, joint.max_torque = p.max_torque, joint.resolution = p.resolution;
  joint.temperature = p.temperature > -273.15 ? p.temperature : stribeck::not_a_number;
  joint.sign = p.sign, joint.ratio = p.ratio, joint.offset = p.offset;
  joint.enabled = p.enabled;
  joint.tuning = stribeck::Tuning::of_resolution(p.resolution);
  return joint;
}

constexpr const char * taking_over = "the change to other drives is in progress: try again later";

constexpr double largest_torque = 1e4;  ///< of joints whose motors have no limit [N m]

}  // namespace

CallbackReturn FrictionCompensationController::on_init()
{
  try
  {
    listener_ = std::make_shared<friction_compensation_controller::ParamListener>(get_node());
    drives_ = std::make_unique<Drives>();
    handover_.present = &drives_->compensator;
    serve();
    watch_gain();
  }
  catch (const std::exception & error)
  {
    RCLCPP_ERROR(get_node()->get_logger(), "parameters cannot be declared: %s", error.what());
    return CallbackReturn::ERROR;
  }
  return CallbackReturn::SUCCESS;
}

const char * FrictionCompensationController::commanded_interface() const
{
  return parameters_.output_mode == "sum" ? hardware_interface::HW_IF_EFFORT
                                          : hardware_interface::HW_IF_POSITION;
}

InterfaceConfiguration FrictionCompensationController::command_interface_configuration() const
{
  InterfaceConfiguration found{interface_configuration_type::INDIVIDUAL, {}};
  for (const std::string & joint : parameters_.joints)
  {
    found.names.push_back(joint + "/" + commanded_interface());
  }
  return found;
}

InterfaceConfiguration FrictionCompensationController::state_interface_configuration() const
{
  InterfaceConfiguration found{interface_configuration_type::INDIVIDUAL, {}};
  for (const char * kind : {"position", "velocity", "effort", "temperature"})
  {
    for (const std::string & joint : parameters_.joints)
    {
      if (contains(parameters_.state_interfaces, kind))
      {
        found.names.push_back(joint + "/" + kind);
      }
    }
  }
  return found;
}

CallbackReturn FrictionCompensationController::on_configure(const rclcpp_lifecycle::State &)
{
  std::string problem;
  try
  {
    parameters_ = listener_->get_params();
    problem = configured();
  }
  catch (const std::exception & error)
  {
    problem = error.what();
  }
  if (!problem.empty())
  {
    RCLCPP_ERROR(get_node()->get_logger(), "%s", problem.c_str());
    return CallbackReturn::FAILURE;
  }
  subscribe();
  advertise();
  return CallbackReturn::SUCCESS;
}

/// Read the parameters; returns why they cannot be used, empty if they can.
std::string FrictionCompensationController::configured()
{
  const auto & p = parameters_;
  joints_ = p.joints.size();
  if (joints_ < 1 || joints_ > static_cast<std::size_t>(stribeck::max_joints))
  {
    return "joints: expected 1 to " + std::to_string(stribeck::max_joints) + ", found " +
           std::to_string(joints_);
  }
  if (!contains(p.state_interfaces, "position"))
  {
    return "state_interfaces: position is missing, but compensation needs it: add it";
  }
  sums_ = p.output_mode == "sum";
  position_goals_ = contains(p.goal_interfaces, "position");
  if (position_goals_ && !sums_)
  {
    return "goal_interfaces: in output_mode goal_offset the reference is the position goal: remove "
           "position";
  }
  velocity_goals_ = contains(p.goal_interfaces, "velocity");
  reads_velocity_ = contains(p.state_interfaces, "velocity");
  reads_effort_ = contains(p.state_interfaces, "effort");
  reads_temperature_ = contains(p.state_interfaces, "temperature");
  if (p.effort_meaning != "none" && !reads_effort_)
  {
    return "effort_meaning " + p.effort_meaning + " needs effort in state_interfaces";
  }
  change_ = Change::none, changing_ = handing_over_ = false;
  handover_ = stribeck::Handover();
  former_.reset(), next_.reset();
  drives_ = std::make_unique<Drives>();
  handover_.present = &drives_->compensator, handover_.ramp_time = p.ramp_time;
  std::string problem = filled(p, *drives_);
  if (!problem.empty())
  {
    return problem;
  }
  prepare_guiding();
  topic_.timeout = p.reference_timeout;
  switched_on_ = p.enabled && !switched_off_;
  largest_gain_ = handover_.present->largest_gain();
  gain_ = p.gain;
  problem = gain_problem(p.gain, largest_gain_);
  return problem.empty() ? limit_problem() : problem;
}

/// Configure a compensator from parameters; \returns why they cannot be used, empty if they can.
std::string FrictionCompensationController::filled(const Params & p, Drives & drives) const
{
  stribeck::Settings settings;
  settings.mode = sums_ ? stribeck::OutputMode::sum : stribeck::OutputMode::goal_offset;
  settings.effort_meaning = p.effort_meaning == "motor"  ? stribeck::EffortMeaning::motor
                            : p.effort_meaning == "link" ? stribeck::EffortMeaning::link
                                                         : stribeck::EffortMeaning::none;
  settings.impedance = p.control == "impedance";
  settings.adapt = p.adapt, settings.isolate_joints = true;
  settings.gain = p.gain, settings.learned_gain = p.learned_gain,
  settings.certain_fraction = p.certain_fraction;
  settings.state_timeout = p.state_timeout, settings.command_timeout = p.command_timeout;
  settings.ramp_time = p.ramp_time, settings.slew = p.slew_limit;
  const double period = get_update_rate() > 0 ? 1.0 / get_update_rate() : 0.0;
  settings.loop_delay = p.loop_delay > 0.0 ? p.loop_delay : period;
  std::array<stribeck::JointModel, stribeck::max_joints> joints{};
  for (std::size_t k = 0; k < joints_; ++k)
  {
    const auto & joint = p.friction.joints_map.at(p.joints[k]);
    joints[k] = model_of(joint);
    const std::string problem = stribeck::output_problem(
      p.joints[k], joints[k], settings.mode, joint.p_gain, joint.supply_voltage);
    if (!problem.empty())
    {
      return problem;
    }
  }
  std::string problem = known_dynamics(p, drives);
  if (problem.empty())
  {
    problem =
      drives.compensator.configure(static_cast<int>(joints_), joints, settings, drives.dynamics);
  }
  if (!problem.empty())
  {
    return named(problem, p.joints);
  }
  for (std::size_t k = 0; k < joints_; ++k)
  {
    const auto & joint = p.friction.joints_map.at(p.joints[k]);
    drives.compensator.on_telemetry(
      static_cast<int>(k), or_nan(joint.p_gain), or_nan(joint.supply_voltage),
      stribeck::not_a_number);
  }
  return {};
}

/// Set the dynamics of the joints: a tree of bodies, or joints by themselves, or none; \returns why
/// they cannot be used.
std::string FrictionCompensationController::known_dynamics(const Params & p, Drives & drives) const
{
  std::size_t inertias = 0, bodies = 0;
  drives.independent.joints = drives.bodies.joints = static_cast<int>(joints_);
  for (std::size_t k = 0; k < joints_; ++k)
  {
    const std::string & name = p.joints[k];
    const auto & joint = p.friction.joints_map.at(name);
    drives.independent.inertia[k] = joint.inertia;
    drives.independent.gravity[k] = joint.gravity_torque,
    drives.independent.q_offset[k] = joint.gravity_offset;
    inertias += joint.inertia > 0.0;
    if (joint.link_inertia.empty())
    {
      continue;
    }
    if (
      joint.link_inertia.size() != 16 || joint.link_placement.size() != 16 ||
      joint.link_axis.size() != 3)
    {
      return "friction." + name +
             ": link_inertia and link_placement have 16 numbers and link_axis 3, by rows";
    }
    const auto end = p.joints.begin() + static_cast<std::ptrdiff_t>(k);
    const auto parent = std::find(p.joints.begin(), end, joint.link_parent);
    if (parent == end && !joint.link_parent.empty())
    {
      return "friction." + name +
             ".link_parent: expected a joint before it in joints, or nothing for the base, found " +
             joint.link_parent;
    }
    ++bodies;
    stribeck::TreeJoint & link = drives.bodies.tree[k];
    link.parent = parent == end ? -1 : static_cast<int>(parent - p.joints.begin());
    link.slides = joint.link_slides, link.armature = joint.armature * joint.ratio * joint.ratio;
    std::copy(joint.link_placement.begin(), joint.link_placement.end(), link.placement.begin());
    std::copy(joint.link_axis.begin(), joint.link_axis.end(), link.axis.begin());
    std::copy(joint.link_inertia.begin(), joint.link_inertia.end(), link.pseudo_inertia.begin());
  }
  if ((inertias != 0 && inertias != joints_) || (bodies != 0 && bodies != joints_))
  {
    return "inertia or link_inertia is given for some joints only: give it for all, or for none";
  }
  if (p.gravity.size() != 3 || (!p.payload.empty() && p.payload.size() != 4))
  {
    return "gravity has three numbers, and payload none or four: mass, x, y, z";
  }
  std::copy(p.gravity.begin(), p.gravity.end(), drives.bodies.gravity.begin());
  if (!p.payload.empty())
  {
    const std::array<double, 4> at{p.payload[1], p.payload[2], p.payload[3], 1.0};
    auto & last = drives.bodies.tree[joints_ - 1].pseudo_inertia;
    for (std::size_t e = 0; e < last.size(); ++e)
    {
      last[e] += p.payload[0] * at[e / 4] * at[e % 4];
    }
  }
  if (bodies == joints_)
  {
    drives.dynamics = &drives.bodies;
  }
  else if (inertias == joints_)
  {
    drives.dynamics = &drives.independent;
  }
  return {};
}

/// Set up the zero-torque mode.
void FrictionCompensationController::prepare_guiding()
{
  zero_ = stribeck::ZeroTorque();
  zero_.hottest =
    parameters_.guiding_temperature > 0.0 ? parameters_.guiding_temperature : stribeck::infinity;
  zero_.timeout = parameters_.state_timeout;
  stribeck::Guiding & guiding = zero_.guiding;
  guiding.joints = static_cast<int>(joints_);
  guiding.gravity_error = parameters_.gravity_error, guiding.ramp_time = parameters_.ramp_time;
  const double delay =
    parameters_.loop_delay > 0.0 ? parameters_.loop_delay : 1.0 / std::max(get_update_rate(), 1u);
  guiding.bandwidth = std::min(stribeck::hold_bandwidth, stribeck::hold_loop_share / delay);
  for (int k = 0; k < guiding.joints; ++k)
  {
    guiding.fastest[k] = parameters_.guiding_speed;
  }
  temperature_.fill(stribeck::not_a_number);
  guiding_ended_ = false;
}

/// Bear the joints from now on, with the dynamics and the limits of the present drives.
void FrictionCompensationController::begin_guiding()
{
  zero_.dynamics = drives_->dynamics;
  for (int k = 0; k < zero_.guiding.joints; ++k)
  {
    zero_.guiding.level[k] = drives_->compensator.level(k);
    zero_.guiding.limit[k] = std::min(drives_->compensator.largest_torque(k), largest_torque);
  }
  zero_.begin(now_);
}

/// Services of the zero-torque mode and of other drives, which are built in the thread of the
/// service; the loop lets them take over.
void FrictionCompensationController::serve()
{
  using Request = std::shared_ptr<Trigger::Request>;
  using Response = std::shared_ptr<Trigger::Response>;
  exchange_service_ = get_node()->create_service<Trigger>(
    "~/exchange",
    [this](const Request, const Response response) { change_drives(Change::exchange, *response); });
  zero_torque_service_ = get_node()->create_service<Switch>(
    "~/zero_torque",
    [this](const Switch::Request::SharedPtr request, const Switch::Response::SharedPtr response)
    {
      const std::string problem = request->data ? guiding_problem() : "";
      response->success = problem.empty();
      if (response->success)
      {
        guide_ = request->data ? Guide::begin : Guide::leave;
      }
      response->message = !response->success ? problem
                          : request->data
                            ? "zero-torque mode is on: the robot can be guided by hand"
                          : situation_ == Situation::guided
                            ? "joints are damped, and gravity compensation decreases to zero"
                            : "zero-torque mode is off";
    });
  revert_service_ = get_node()->create_service<Trigger>(
    "~/revert",
    [this](const Request, const Response response) { change_drives(Change::revert, *response); });
}

/// Why the zero-torque mode cannot begin now, empty if it can.
std::string FrictionCompensationController::guiding_problem() const
{
  if (changing_)
  {
    return taking_over;
  }
  if (!sums_ || drives_->dynamics == nullptr)
  {
    return "needs output_mode sum, and link_inertia or inertia of each joint for its gravity "
           "torque";
  }
  switch (situation_)
  {
    case Situation::inactive:
      return "activate the controller first";
    case Situation::off:
      return "compensation is off: call ~/enable first";
    case Situation::commanded:
      return "a controller sends references, which take precedence: stop it first";
    case Situation::unknown:
      return "there are no valid states, so the gravity torque is not known";
    default:
      return {};
  }
}

void FrictionCompensationController::change_drives(Change change, Trigger::Response & response)
{
  std::string problem;
  if (joints_ == 0)
  {
    problem = "configure the controller first";
  }
  else if (guide_ == Guide::begin || situation_ == Situation::guided)
  {
    problem =
      "zero-torque mode is on, in which the gravity torque must not change: end the mode with "
      "~/zero_torque false, and try again at rest";
  }
  else if (changing_.exchange(true))
  {
    problem = taking_over;
  }
  else
  {
    problem = prepared(change);
    if (problem.empty())
    {
      change_ = change;
    }
    else
    {
      changing_ = false;
    }
  }
  response.success = problem.empty(),
  response.message = response.success ? "they take over" : problem;
}

/// Build the drives that are to take over, beside the present and the former ones; \returns why
/// they cannot, empty if they can.
std::string FrictionCompensationController::prepared(Change change)
{
  const Drives * successor = former_.get();
  if (change == Change::revert && successor == nullptr)
  {
    return "there are no previous drives: change to others with ~/exchange first";
  }
  if (change == Change::exchange)
  {
    try
    {
      const Params p = listener_->get_params();
      next_ = std::make_unique<Drives>();
      const std::string problem =
        p.joints == parameters_.joints ? filled(p, *next_) : "joints: must not change";
      if (!problem.empty())
      {
        return problem;
      }
    }
    catch (const std::exception & error)
    {
      return error.what();
    }
    successor = next_.get();
  }
  const double most = successor->compensator.largest_gain();
  const std::string problem = gain_problem(gain_, most);
  if (problem.empty())
  {
    largest_gain_ = std::min<double>(largest_gain_, most);  // of both, until they have taken over
  }
  return problem;
}

/// Set the limits of the commands: those of the parameters, and of the robot description with its
/// command interfaces.
std::string FrictionCompensationController::limit_problem()
{
  stage_.configure(static_cast<int>(joints_), sums_);
  const auto described = described_limits(get_robot_description());
  for (std::size_t k = 0; k < joints_; ++k)
  {
    const int at = static_cast<int>(k);
    const std::string & name = parameters_.joints[k];
    const auto & joint = parameters_.friction.joints_map.at(name);
    const auto found = described.find(name);
    const bool known = found != described.end();
    if (sums_)
    {
      const double most = known && found->second.has_effort_limits ? found->second.max_effort : 0.0;
      for (const double limit : {joint.effort_limit, most})
      {
        if (limit > 0.0)
        {  // descriptions say 0 where they do not know a limit
          stage_.limits.narrow(at, -limit, limit);
        }
      }
    }
    else
    {
      stage_.limits.narrow(at, joint.position_min, joint.position_max);
      if (known && found->second.has_position_limits)
      {
        stage_.limits.narrow(at, found->second.min_position, found->second.max_position);
      }
    }
    const std::string problem = stage_.limits.problem(at, name);
    if (!problem.empty())
    {
      return problem;
    }
  }
  return {};
}

/// Why a gain cannot be used, empty if it can; the same for the parameter, for the topic and for
/// other drives.
std::string FrictionCompensationController::gain_problem(double gain, double most)
{
  if (std::isfinite(gain) && gain >= 0.0 && gain <= most)
  {
    return {};
  }
  return "gain: expected 0 to " + std::to_string(most) +
         ", where every joint comes to rest at its goal, found " + std::to_string(gain);
}

/// Check the parameter `gain` whenever it is set, and use it from the next update on.
void FrictionCompensationController::watch_gain()
{
  using Parameters = std::vector<rclcpp::Parameter>;
  gain_check_ = get_node()->add_on_set_parameters_callback(
    [this](const Parameters & parameters)
    {
      rcl_interfaces::msg::SetParametersResult result;
      result.successful = true;
      for (const rclcpp::Parameter & parameter : parameters)
      {
        if (
          parameter.get_name() == "gain" &&
          parameter.get_type() == rclcpp::ParameterType::PARAMETER_DOUBLE)
        {
          result.reason = gain_problem(parameter.as_double(), largest_gain_);
          result.successful = result.reason.empty();
        }
      }
      return result;
    });
  gain_change_ = get_node()->add_post_set_parameters_callback(
    [this](const Parameters & parameters)
    {
      for (const rclcpp::Parameter & parameter : parameters)
      {
        if (parameter.get_name() == "gain")
        {
          gain_ = parameter.as_double();
        }
      }
    });
}

void FrictionCompensationController::subscribe()
{
  const auto node = get_node();
  const auto reliable = rclcpp::SystemDefaultsQoS();
  enable_service_ = node->create_service<Switch>(
    "~/enable",
    [this](const Switch::Request::SharedPtr request, const Switch::Response::SharedPtr response)
    {
      switched_off_ = !request->data;
      switched_on_ = request->data;
      response->success = true;
      response->message = request->data ? "compensating" : "friction torque is zero";
    });
  gain_subscription_ = node->create_subscription<std_msgs::msg::Float64>(
    "~/gain", reliable,
    [this](const std_msgs::msg::Float64 & message)
    {
      const auto result = get_node()->set_parameter(rclcpp::Parameter("gain", message.data));
      if (!result.successful)
      {
        RCLCPP_WARN(
          get_node()->get_logger(), "~/gain: %s; the gain is unchanged", result.reason.c_str());
      }
    });
  reference_subscription_ = node->create_subscription<Values>(
    "~/reference", reliable,
    [this](const Values & message)
    {
      if (message.data.size() != joints_)
      {
        RCLCPP_WARN_THROTTLE(
          get_node()->get_logger(), *get_node()->get_clock(), 1000,
          "~/reference: expected %zu numbers, found %zu", joints_, message.data.size());
        return;
      }
      std::copy(message.data.begin(), message.data.end(), reference_message_.value.begin());
      ++reference_message_.count;
      references_.writeFromNonRT(reference_message_);
    });
  goal_subscription_.reset();
  if (!parameters_.goal_topic.empty())
  {
    goal_subscription_ = node->create_subscription<Goal>(
      parameters_.goal_topic, rclcpp::SensorDataQoS(),
      [this](const Goal & message)
      {
        TopicGoal & goal = goal_message_.value;
        goal.stamp = rclcpp::Time(message.header.stamp).nanoseconds();
        goal.position.fill(stribeck::not_a_number), goal.velocity.fill(stribeck::not_a_number);
        for (std::size_t k = 0; k < joints_; ++k)
        {
          const auto & names = message.joint_names;
          const auto place = static_cast<std::size_t>(
            std::find(names.begin(), names.end(), parameters_.joints[k]) - names.begin());
          if (place < message.reference.positions.size() && place < names.size())
          {
            goal.position[k] = message.reference.positions[place];
          }
          if (place < message.reference.velocities.size() && place < names.size())
          {
            goal.velocity[k] = message.reference.velocities[place];
          }
        }
        ++goal_message_.count;
        goals_.writeFromNonRT(goal_message_);
      });
  }
}

/// Publishers whose messages have their size from the beginning, so that none allocates in the
/// loop.
void FrictionCompensationController::advertise()
{
  const auto node = get_node();
  const auto reliable = rclcpp::SystemDefaultsQoS();
  state_message_.joint_names = parameters_.joints;
  state_message_.interface_values.resize(joints_);
  for (auto & joint : state_message_.interface_values)
  {
    joint.interface_names = {"friction_torque",   "scale",
                             "external_torque",   "external_torque_half_width",
                             "contact_threshold", "fault"};
    joint.values.assign(joint.interface_names.size(), 0.0);
  }
  state_publisher_ =
    std::make_unique<Publisher<State>>(node->create_publisher<State>("~/state", reliable));
  state_publisher_->lock();
  state_publisher_->msg_ = state_message_;
  state_publisher_->unlock();
}

std::vector<hardware_interface::CommandInterface::SharedPtr>
FrictionCompensationController::on_export_reference_interfaces_list()
{
  std::vector<hardware_interface::CommandInterface::SharedPtr> found;
  std::vector<std::string> kinds{commanded_interface()};
  if (position_goals_)
  {
    kinds.emplace_back(hardware_interface::HW_IF_POSITION);
  }
  if (velocity_goals_)
  {
    kinds.emplace_back(hardware_interface::HW_IF_VELOCITY);
  }
  for (const std::string & kind : kinds)
  {
    for (const std::string & joint : parameters_.joints)
    {
      found.push_back(std::make_shared<hardware_interface::CommandInterface>(
        std::string(get_node()->get_name()) + "/" + joint, kind));
    }
  }
  return found;
}

bool FrictionCompensationController::on_set_chained_mode(bool) { return true; }

/// Begin without what came before: references, goals and friction torque.
CallbackReturn FrictionCompensationController::on_activate(const rclcpp_lifecycle::State &)
{
  now_ = published_ = 0.0;
  stage_.restart();
  topic_.restart(references_.readFromRT()->count);
  goals_taken_ = goals_.readFromRT()->count;
  reads_.fill(Reads());
  if (!forget_references())
  {
    RCLCPP_ERROR(get_node()->get_logger(), "the reference interfaces are locked by another thread");
    return CallbackReturn::ERROR;
  }
  handover_.disable();
  zero_.stop(stribeck::ZeroTorque::Reason::switched_off);
  guide_ = Guide::none, guiding_ended_ = false, situation_ = Situation::unknown;
  if (switched_on_)
  {
    handover_.enable();
  }
  return CallbackReturn::SUCCESS;
}

bool FrictionCompensationController::forget_references()
{
  bool all = true;
  for (const auto & reference : ordered_exported_reference_interfaces_)
  {
    all = written(*reference, stribeck::not_a_number) && all;
  }
  return all;
}

/// Leave no effort, or the position where the joints are.
CallbackReturn FrictionCompensationController::on_deactivate(const rclcpp_lifecycle::State &)
{
  handover_.disable();
  zero_.stop(stribeck::ZeroTorque::Reason::switched_off);
  situation_ = Situation::inactive;
  bool all = true;
  for (std::size_t k = 0; k < joints_; ++k)
  {
    const double position = state_interfaces_[k].get_optional().value_or(position_[k]);
    const double value = stage_.final_command(static_cast<int>(k), position);
    all = (std::isnan(value) || written(command_interfaces_[k], value)) && all;
  }
  stage_.restart();
  if (!all)
  {
    RCLCPP_ERROR(
      get_node()->get_logger(),
      "a command interface is locked by another thread: its last command is kept");
    return CallbackReturn::ERROR;
  }
  return CallbackReturn::SUCCESS;
}

return_type FrictionCompensationController::update_reference_from_subscribers(
  const rclcpp::Time &, const rclcpp::Duration & period)
{
  const Counted<stribeck::Vector> & message = *references_.readFromRT();
  const auto step = topic_.advance(message.count, period.seconds());
  if (step == stribeck::TopicReferences::Step::nothing)
  {
    return return_type::OK;
  }
  const bool expires = step == stribeck::TopicReferences::Step::expire;
  for (std::size_t k = 0; k < joints_; ++k)
  {
    (void)written(
      *ordered_exported_reference_interfaces_[k],
      expires ? stribeck::not_a_number : message.value[k]);
  }
  return return_type::OK;
}

/// The periods count as time: they are measured on a clock that nobody sets.
return_type FrictionCompensationController::update_and_write_commands(
  const rclcpp::Time & time, const rclcpp::Duration & period)
{
  const double dt = std::max(period.seconds(), 0.0);
  now_ += dt;
  follow_switches();
  read_states(dt);
  read_references();
  take_goal(time);
  guide();
  const stribeck::Measurement measured{
    position_.data(), reads_velocity_ ? velocity_.data() : nullptr,
    reads_effort_ ? effort_.data() : nullptr};
  stage_.update(handover_, now_, dt, measured, {goal_.data(), goal_velocity_.data()});
  mark_faults();
  write();
  publish(time);
  return return_type::OK;
}

/// The torque that bears the joints while a hand guides them, in place of a reference; references
/// of a controller end the mode.
void FrictionCompensationController::guide()
{
  using Reason = stribeck::ZeroTorque::Reason;
  const Guide asked = guide_.exchange(Guide::none);
  guiding_ended_ = guiding_ended_ && asked == Guide::none && !referenced_;
  if (asked == Guide::leave)
  {
    zero_.release(Reason::left);
  }
  else if (asked == Guide::begin)
  {
    begin_guiding();
  }
  if (zero_.on)
  {
    bear();
    guiding_ended_ = !zero_.on && zero_.reason != Reason::left && zero_.reason != Reason::commanded;
  }
  situation_ = zero_.on                                        ? Situation::guided
               : !handover_.present->enabled                   ? Situation::off
               : referenced_                                   ? Situation::commanded
               : handover_.present->trusted_state() == nullptr ? Situation::unknown
                                                               : Situation::ready;
}

/// Give the joints the torques that bear them, or none in the cycle in which the mode ends.
void FrictionCompensationController::bear()
{
  using Reason = stribeck::ZeroTorque::Reason;
  if (referenced_ || !handover_.present->enabled)
  {
    zero_.stop(referenced_ ? Reason::commanded : Reason::switched_off);
  }
  const stribeck::State * state = handover_.present->trusted_state();
  const bool trusted = state != nullptr;
  const stribeck::Vector bears = zero_.torque(
    now_, trusted ? &state->q : nullptr, trusted ? &state->v : nullptr,
    trusted ? state->stamp : 0.0, temperature_);
  for (int k = 0; k < zero_.guiding.joints; ++k)
  {
    if (zero_.on)
    {
      stage_.take(k, bears[k]);
    }
    else
    {
      stage_.drop(k);
    }
  }
}

/// Say of joints that nobody commands that the zero-torque mode has ended by itself.
void FrictionCompensationController::mark_faults()
{
  for (std::size_t k = 0; guiding_ended_ && k < joints_; ++k)
  {
    if (stage_.fault[k] == stribeck::Fault::no_reference)
    {
      stage_.fault[k] = stribeck::Fault::zero_torque_ended;
    }
  }
}

/// Enable, gain and drives, as they were set last.
void FrictionCompensationController::follow_switches()
{
  const bool on = switched_on_;
  const Change change = change_.exchange(Change::none);
  if (change == Change::exchange && handover_.exchange(next_->compensator))
  {
    // those before them are freed in the thread of the service, when it prepares others
    former_.swap(next_);
    drives_.swap(former_);
  }
  else if (change == Change::revert && handover_.revert())
  {
    drives_.swap(former_);
  }
  if (change != Change::none)
  {
    largest_gain_ = handover_.present->largest_gain();
  }
  if (on && !handover_.present->enabled)
  {
    handover_.enable();
    handover_.present->sent(stage_.friction);
  }
  else if (!on && handover_.present->enabled)
  {
    handover_.disable();
  }
  if (handover_.present->gain() != gain_)
  {
    handover_.present->set_gain(gain_);
  }
  handing_over_ = handing_over_ || change != Change::none;
  if (handing_over_ && handover_.leaving == nullptr)
  {
    handing_over_ = changing_ = false;
  }
}

void FrictionCompensationController::read_states(double period)
{
  std::size_t at = 0;
  for (std::size_t k = 0; k < joints_; ++k)
  {
    const double change = reads_velocity_ ? velocity_[k] * period : 0.0;
    position_[k] = reads_[k].position.take(state_interfaces_[at++].get_optional(), change);
  }
  for (std::size_t k = 0; reads_velocity_ && k < joints_; ++k)
  {
    velocity_[k] = reads_[k].velocity.take(state_interfaces_[at++].get_optional());
  }
  for (std::size_t k = 0; reads_effort_ && k < joints_; ++k)
  {
    effort_[k] = reads_[k].effort.take(state_interfaces_[at++].get_optional());
  }
  for (std::size_t k = 0; reads_temperature_ && k < joints_; ++k)
  {
    temperature_[k] = state_interfaces_[at++].get_optional().value_or(stribeck::not_a_number);
    handover_.on_telemetry(
      static_cast<int>(k), stribeck::not_a_number, stribeck::not_a_number, temperature_[k]);
  }
}

void FrictionCompensationController::read_references()
{
  std::size_t at = 0;
  referenced_ = false;
  for (std::size_t k = 0; k < joints_; ++k)
  {
    const std::optional<double> read = ordered_exported_reference_interfaces_[at++]->get_optional();
    referenced_ = referenced_ || std::isfinite(read.value_or(stribeck::not_a_number));
    stage_.take(static_cast<int>(k), read);
  }
  goal_.fill(stribeck::not_a_number), goal_velocity_.fill(stribeck::not_a_number);
  for (std::size_t k = 0; position_goals_ && k < joints_; ++k)
  {
    goal_[k] = reads_[k].goal.take(ordered_exported_reference_interfaces_[at++]->get_optional());
  }
  for (std::size_t k = 0; velocity_goals_ && k < joints_; ++k)
  {
    goal_velocity_[k] =
      reads_[k].goal_velocity.take(ordered_exported_reference_interfaces_[at++]->get_optional());
  }
}

/// Take the last goal of the topic, if it is new. Its age is that on the ROS clock; goals are not
/// made in the future.
void FrictionCompensationController::take_goal(const rclcpp::Time & time)
{
  const Counted<TopicGoal> & goal = *goals_.readFromRT();
  if (goal.count == goals_taken_)
  {
    return;
  }
  goals_taken_ = goal.count;
  const std::int64_t now =
    time.get_clock_type() == RCL_ROS_TIME ? time.nanoseconds() : get_node()->now().nanoseconds();
  const double made = now_ - std::max(1e-9 * static_cast<double>(now - goal.value.stamp), 0.0);
  handover_.on_goal(now_, &made, {goal.value.position.data(), goal.value.velocity.data()});
}

void FrictionCompensationController::write()
{
  for (std::size_t k = 0; k < joints_; ++k)
  {
    if (!std::isnan(stage_.command[k]))
    {
      (void)command_interfaces_[k].set_value(stage_.command[k]);
    }
  }
}

/// Publish at the rate of the parameter, and at once when a fault comes or goes.
void FrictionCompensationController::publish(const rclcpp::Time & time)
{
  bool due = now_ - published_ >= 1.0 / parameters_.state_publish_rate;
  for (std::size_t k = 0; k < joints_; ++k)
  {
    const double code = static_cast<std::uint8_t>(stage_.fault[k]);
    double & fault = state_message_.interface_values[k].values[5];
    due = due || code != fault;
    fault = code;
  }
  if (!due)
  {
    return;
  }
  published_ = now_;
  state_message_.header.stamp = time;
  const stribeck::Account account = handover_.present->account();
  for (std::size_t k = 0; k < joints_; ++k)
  {
    double * values = state_message_.interface_values[k].values.data();
    values[0] = stage_.friction[k];
    values[1] = account.dry[k];
    if (!handover_.present->external_torque(static_cast<int>(k), values[2], values[3], values[4]))
    {
      values[2] = values[3] = values[4] = stribeck::not_a_number;
    }
  }
  (void)state_publisher_->try_publish(state_message_);
}

}  // namespace stribeck_controllers

PLUGINLIB_EXPORT_CLASS(
  stribeck_controllers::FrictionCompensationController,
  controller_interface::ChainableControllerInterface)
