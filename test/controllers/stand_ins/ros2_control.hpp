// Copyright the Stribeck maintainers. SPDX-License-Identifier: Apache-2.0
// What the friction compensation controller uses of ROS 2 and ros2_control, for tests without them: one thread, and
// interfaces that a test locks. test_controller.py lets the names of their headers include this one.
#pragma once
#include <algorithm>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "pluginlib/class_list_macros.hpp"

constexpr int RCL_SYSTEM_TIME = 1, RCL_ROS_TIME = 2;

namespace rcl_interfaces::msg
{
struct SetParametersResult
{
  bool successful = true;
  std::string reason;
};
}  // namespace rcl_interfaces::msg

namespace rclcpp
{
class Time
{
public:
  Time(std::int64_t nanoseconds = 0, int clock_type = RCL_SYSTEM_TIME)
  : nanoseconds_(nanoseconds), clock_type_(clock_type) {}
  std::int64_t nanoseconds() const { return nanoseconds_; }
  double seconds() const { return 1e-9 * static_cast<double>(nanoseconds_); }
  int get_clock_type() const { return clock_type_; }

private:
  std::int64_t nanoseconds_;
  int clock_type_;
};

class Duration
{
public:
  explicit Duration(double seconds) : seconds_(seconds) {}
  double seconds() const { return seconds_; }

private:
  double seconds_;
};

struct Logger
{
  std::string * said;
};

/// Keep a message for the test.
[[gnu::format(printf, 2, 3)]] inline void say(const Logger & logger, const char * format, ...)
{
  char text[1000];
  std::va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof(text), format, arguments);
  va_end(arguments);
  *logger.said = text;
}

#define RCLCPP_ERROR(logger, ...) rclcpp::say(logger, __VA_ARGS__)
#define RCLCPP_WARN(logger, ...) rclcpp::say(logger, __VA_ARGS__)
#define RCLCPP_WARN_THROTTLE(logger, clock, period, ...) rclcpp::say(logger, __VA_ARGS__)

enum class ParameterType { PARAMETER_BOOL, PARAMETER_DOUBLE, PARAMETER_STRING, PARAMETER_DOUBLE_ARRAY, PARAMETER_STRING_ARRAY };

class Parameter
{
public:
  using Value = std::variant<bool, double, std::string, std::vector<double>, std::vector<std::string>>;
  Parameter() = default;
  template<typename T>
  Parameter(std::string name, T value) : name_(std::move(name)), value_(std::move(value)) {}
  const std::string & get_name() const { return name_; }
  ParameterType get_type() const { return static_cast<ParameterType>(value_.index()); }
  double as_double() const { return std::get<double>(value_); }
  const Value & value() const { return value_; }

private:
  std::string name_;
  Value value_;
};

struct QoS {};
using SystemDefaultsQoS = QoS;
using SensorDataQoS = QoS;

template<typename Message>
struct Publisher
{
  using SharedPtr = std::shared_ptr<Publisher>;
  Message last;  // message that was published
};

template<typename Message>
struct Subscription
{
  using SharedPtr = std::shared_ptr<Subscription>;
  std::function<void(const Message &)> callback;
};

template<typename Kind>
struct Service
{
  using SharedPtr = std::shared_ptr<Service>;
  std::function<void(typename Kind::Request::SharedPtr, typename Kind::Response::SharedPtr)> callback;
};

namespace node_interfaces
{
struct OnSetParametersCallbackHandle
{
  using SharedPtr = std::shared_ptr<OnSetParametersCallbackHandle>;
};
struct PostSetParametersCallbackHandle
{
  using SharedPtr = std::shared_ptr<PostSetParametersCallbackHandle>;
};
}  // namespace node_interfaces

class Node
{
public:
  using Parameters = std::vector<Parameter>;

  Node * get_clock() { return this; }
  Time now() const { return {ros_time, RCL_ROS_TIME}; }
  Logger get_logger() { return {&said}; }
  const char * get_name() const { return "friction"; }

  template<typename Message, typename Callback>
  typename Subscription<Message>::SharedPtr create_subscription(const std::string & topic, const QoS &, Callback callback)
  {
    const auto made = std::make_shared<Subscription<Message>>(Subscription<Message>{callback});
    entities_[topic] = made;
    return made;
  }

  template<typename Kind, typename Callback>
  typename Service<Kind>::SharedPtr create_service(const std::string & name, Callback callback)
  {
    const auto made = std::make_shared<Service<Kind>>(Service<Kind>{callback});
    entities_[name] = made;
    return made;
  }

  template<typename Message>
  typename Publisher<Message>::SharedPtr create_publisher(const std::string & name, const QoS &)
  {
    const auto made = std::make_shared<Publisher<Message>>();
    entities_[name] = made;
    return made;
  }

  /// The subscription, publisher or service of a name; a null pointer without one.
  template<typename Entity>
  Entity * entity(const std::string & name) const
  {
    const auto found = entities_.find(name);
    return found == entities_.end() ? nullptr : static_cast<Entity *>(found->second.get());
  }

  node_interfaces::OnSetParametersCallbackHandle::SharedPtr add_on_set_parameters_callback(
    std::function<rcl_interfaces::msg::SetParametersResult(const Parameters &)> check)
  {
    check_ = std::move(check);
    return {};
  }

  node_interfaces::PostSetParametersCallbackHandle::SharedPtr add_post_set_parameters_callback(
    std::function<void(const Parameters &)> change)
  {
    change_ = std::move(change);
    return {};
  }

  rcl_interfaces::msg::SetParametersResult set_parameter(const Parameter & parameter)
  {
    rcl_interfaces::msg::SetParametersResult result;
    result = check_ ? check_({parameter}) : result;
    if (result.successful) {
      parameters[parameter.get_name()] = parameter;
      if (change_) {
        change_({parameter});
      }
    }
    return result;
  }

  /// Take the value of a parameter into a place that has its default.
  template<typename T>
  void take(const std::string & name, T & place) const
  {
    const auto found = parameters.find(name);
    place = found == parameters.end() ? place : std::get<T>(found->second.value());
  }

  std::map<std::string, Parameter> parameters;
  std::string said;  ///< the last message of the log
  std::int64_t ros_time = 0;

private:
  std::map<std::string, std::shared_ptr<void>> entities_;
  std::function<rcl_interfaces::msg::SetParametersResult(const Parameters &)> check_;
  std::function<void(const Parameters &)> change_;
};
}  // namespace rclcpp

namespace rclcpp_lifecycle
{
struct State {};
}  // namespace rclcpp_lifecycle

namespace std_msgs::msg
{
struct Header
{
  rclcpp::Time stamp;
};
struct Float64
{
  double data = 0.0;
};
struct Float64MultiArray
{
  std::vector<double> data;
};
}  // namespace std_msgs::msg

namespace control_msgs::msg
{
struct InterfaceValue
{
  std::vector<std::string> interface_names;
  std::vector<double> values;
};
struct DynamicJointState
{
  std_msgs::msg::Header header;
  std::vector<std::string> joint_names;
  std::vector<InterfaceValue> interface_values;
};
struct JointTrajectoryControllerState
{
  struct Point
  {
    std::vector<double> positions, velocities;
  };
  std_msgs::msg::Header header;
  std::vector<std::string> joint_names;
  Point reference;
};
}  // namespace control_msgs::msg

namespace std_srvs::srv
{
template<typename Asked>
struct Answered
{
  struct Request : Asked
  {
    using SharedPtr = std::shared_ptr<Request>;
  };
  struct Response
  {
    using SharedPtr = std::shared_ptr<Response>;
    bool success = false;
    std::string message;
  };
};
struct On
{
  bool data = false;
};
struct Nothing {};
using SetBool = Answered<On>;
using Trigger = Answered<Nothing>;
}  // namespace std_srvs::srv

namespace hardware_interface
{
constexpr char HW_IF_EFFORT[] = "effort", HW_IF_POSITION[] = "position", HW_IF_VELOCITY[] = "velocity";

/// A value that cannot be read or written while another thread locks it, which a test says.
class Handle
{
public:
  using SharedPtr = std::shared_ptr<Handle>;
  Handle(std::string joint, std::string kind) : joint_(std::move(joint)), kind_(std::move(kind)) {}
  std::string get_name() const { return joint_ + "/" + kind_; }
  std::optional<double> get_optional() const { return locked ? std::nullopt : std::optional<double>(value); }
  bool set_value(double given)
  {
    value = locked ? value : given;
    return !locked;
  }

  double value = __builtin_nan("");
  bool locked = false;

private:
  std::string joint_, kind_;
};
using CommandInterface = Handle;
using StateInterface = Handle;

/// An interface that a controller has borrowed.
class Loaned
{
public:
  explicit Loaned(Handle::SharedPtr handle) : handle_(std::move(handle)) {}
  std::optional<double> get_optional() const { return handle_->get_optional(); }
  bool set_value(double value) { return handle_->set_value(value); }

private:
  Handle::SharedPtr handle_;
};

struct JointLimits
{
  bool has_effort_limits = false, has_position_limits = false;
  double max_effort = 0.0, min_position = 0.0, max_position = 0.0;
};

struct HardwareInfo
{
  std::unordered_map<std::string, JointLimits> limits;
};

/// Descriptions of these tests are lines of a joint, its largest effort, and its smallest and largest position.
inline std::vector<HardwareInfo> parse_control_resources_from_urdf(const std::string & description)
{
  HardwareInfo found;
  std::istringstream lines(description);
  std::string joint;
  for (JointLimits one; lines >> joint >> one.max_effort >> one.min_position >> one.max_position; ) {
    one.has_effort_limits = one.has_position_limits = true;
    found.limits[joint] = one;
  }
  return {found};
}
}  // namespace hardware_interface

namespace realtime_tools
{
template<typename T>
class RealtimeBuffer
{
public:
  T * readFromRT() { return &value_; }
  void writeFromNonRT(const T & value) { value_ = value; }

private:
  T value_{};
};

template<typename Message>
class RealtimePublisher
{
public:
  explicit RealtimePublisher(typename rclcpp::Publisher<Message>::SharedPtr publisher)
  : msg_(publisher->last), publisher_(publisher) {}
  void lock() {}
  void unlock() {}
  bool try_publish(const Message & message)
  {
    msg_ = message;  // what is done in the loop; another thread publishes it
    return true;
  }
  Message & msg_;

private:
  typename rclcpp::Publisher<Message>::SharedPtr publisher_;
};
}  // namespace realtime_tools

namespace controller_interface
{
enum class CallbackReturn { SUCCESS, FAILURE, ERROR };
enum class return_type { OK, ERROR };
enum class interface_configuration_type { NONE, INDIVIDUAL };
struct InterfaceConfiguration
{
  interface_configuration_type type = interface_configuration_type::NONE;
  std::vector<std::string> names;
};

/// A controller with interfaces of its own, in the states and changes of state of ros2_control.
class ChainableControllerInterface
{
public:
  virtual ~ChainableControllerInterface() = default;
  virtual CallbackReturn on_init() = 0;
  virtual InterfaceConfiguration command_interface_configuration() const = 0;
  virtual InterfaceConfiguration state_interface_configuration() const = 0;
  virtual CallbackReturn on_configure(const rclcpp_lifecycle::State & previous) = 0;
  virtual CallbackReturn on_activate(const rclcpp_lifecycle::State & previous) = 0;
  virtual CallbackReturn on_deactivate(const rclcpp_lifecycle::State & previous) = 0;
  virtual return_type update_reference_from_subscribers(const rclcpp::Time & time, const rclcpp::Duration & period) = 0;
  virtual return_type update_and_write_commands(const rclcpp::Time & time, const rclcpp::Duration & period) = 0;

  std::shared_ptr<rclcpp::Node> get_node() const { return node_; }
  unsigned get_update_rate() const { return 1000; }
  const std::string & get_robot_description() const { return description; }

  /// Make the interfaces that the controller asks for and those that it exports.
  void borrow()
  {
    const auto lend = [](const InterfaceConfiguration & asked, auto & kept, auto & loaned) {
        kept.clear(), loaned.clear();
        for (const std::string & name : asked.names) {
          const auto slash = name.find('/');
          kept.push_back(std::make_shared<hardware_interface::Handle>(name.substr(0, slash), name.substr(slash + 1)));
          loaned.emplace_back(kept.back());
        }
      };
    lend(command_interface_configuration(), commands, command_interfaces_);
    lend(state_interface_configuration(), states, state_interfaces_);
    ordered_exported_reference_interfaces_ = on_export_reference_interfaces_list();
  }

  /// As ros2_control does, while the controller is not active.
  bool set_chained_mode(bool on)
  {
    chained = on_set_chained_mode(on) ? on : chained;
    return chained == on;
  }

  return_type update(const rclcpp::Time & time, const rclcpp::Duration & period)
  {
    if (!chained && update_reference_from_subscribers(time, period) != return_type::OK) {
      return return_type::ERROR;
    }
    return update_and_write_commands(time, period);
  }

  const std::vector<hardware_interface::CommandInterface::SharedPtr> & references() const
  {
    return ordered_exported_reference_interfaces_;
  }

  std::string description;
  bool chained = true;
  std::vector<hardware_interface::Handle::SharedPtr> commands, states;

protected:
  virtual std::vector<hardware_interface::CommandInterface::SharedPtr> on_export_reference_interfaces_list() = 0;
  virtual bool on_set_chained_mode(bool chained) = 0;

  std::vector<hardware_interface::Loaned> command_interfaces_, state_interfaces_;
  std::vector<hardware_interface::CommandInterface::SharedPtr> ordered_exported_reference_interfaces_;

private:
  std::shared_ptr<rclcpp::Node> node_ = std::make_shared<rclcpp::Node>();
};
}  // namespace controller_interface
