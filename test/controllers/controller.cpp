// C functions around the controller of controllers/src, compiled against stand-ins for ROS, for the tests.
#include <cstdlib>
#include <new>
#include <sstream>

#include "stribeck_controllers/friction_compensation_controller.hpp"

namespace
{
long allocations = 0;  // of memory, by the functions of this library
}

void * operator new(std::size_t size)
{
  ++allocations;
  if (void * found = std::malloc(size)) {
    return found;
  }
  throw std::bad_alloc();
}

void operator delete(void * memory) noexcept { std::free(memory); }
void operator delete(void * memory, std::size_t) noexcept { std::free(memory); }

using controller_interface::CallbackReturn;
using controller_interface::return_type;
using stribeck_controllers::FrictionCompensationController;

namespace
{

struct Held
{
  FrictionCompensationController controller;
  std::string text;
  long allocated = 0;  // in updates
};

rclcpp::Node & node(Held * held) { return *held->controller.get_node(); }

// A parameter from its line: name, type, values; those of a list are separated by blanks.
rclcpp::Parameter parameter_of(const std::string & line)
{
  std::istringstream words(line);
  std::string name, type, word;
  std::vector<std::string> values;
  for (words >> name >> type; words >> word; ) {
    values.push_back(word);
  }
  if (type == "bool") {
    return {name, values.at(0) == "True"};
  }
  if (type == "float") {
    return {name, std::stod(values.at(0))};
  }
  return type == "str" ? rclcpp::Parameter(name, values.empty() ? std::string() : values[0]) : rclcpp::Parameter(name, values);
}

}  // namespace

extern "C" {

Held * controller_made(const char * lines, const char * description)
{
  auto * held = new Held;
  held->controller.description = description;
  std::istringstream all(lines);
  for (std::string line; std::getline(all, line); ) {
    const rclcpp::Parameter parameter = parameter_of(line);
    node(held).parameters[parameter.get_name()] = parameter;
  }
  return held;
}

void controller_deleted(Held * held) { delete held; }

// Initialise and configure; returns what the log says of a failure, empty if there was none.
const char * controller_configured(Held * held)
{
  auto & controller = held->controller;
  held->text = "not initialised";
  if (controller.on_init() != CallbackReturn::SUCCESS) {
    return held->text.c_str();
  }
  const bool done = controller.on_configure({}) == CallbackReturn::SUCCESS;
  held->text = done ? "" : node(held).said.c_str();
  if (done) {
    controller.borrow();
  }
  return held->text.c_str();
}

int controller_reconfigured(Held * held) { return held->controller.on_configure({}) == CallbackReturn::SUCCESS; }
int controller_activated(Held * held) { return held->controller.on_activate({}) == CallbackReturn::SUCCESS; }
int controller_deactivated(Held * held) { return held->controller.on_deactivate({}) == CallbackReturn::SUCCESS; }
int controller_chained(Held * held, int on) { return held->controller.set_chained_mode(on != 0); }

void references_written(Held * held, const double * values)
{
  for (const auto & reference : held->controller.references()) {
    (void)reference->set_value(*values++);
  }
}

void states_written(Held * held, const double * values)
{
  for (const auto & state : held->controller.states) {
    (void)state->set_value(*values++);
  }
}

void references_locked(Held * held, int which, int locked)
{
  held->controller.references().at(static_cast<std::size_t>(which))->locked = locked != 0;
}

void states_locked(Held * held, int which, int locked)
{
  held->controller.states.at(static_cast<std::size_t>(which))->locked = locked != 0;
}

// One update; the ROS time advances by a step of its own [s].
int controller_updated(Held * held, double period, double step)
{
  node(held).ros_time += static_cast<std::int64_t>(1e9 * step);
  const rclcpp::Time now = node(held).now();
  const long before = allocations;
  const bool done = held->controller.update(now, rclcpp::Duration(period)) == return_type::OK;
  held->allocated += allocations - before;
  return done;
}

long allocations_in_updates(const Held * held) { return held->allocated; }

void commands_read(Held * held, double * out)
{
  for (const auto & command : held->controller.commands) {
    *out++ = command->value;
  }
}

void reference_told(Held * held, int n, const double * values)
{
  const auto * found = node(held).entity<rclcpp::Subscription<std_msgs::msg::Float64MultiArray>>("~/reference");
  found->callback({std::vector<double>(values, values + n)});
}

void gain_told(Held * held, double gain)
{
  node(held).entity<rclcpp::Subscription<std_msgs::msg::Float64>>("~/gain")->callback({gain});
}

int gain_parameter_set(Held * held, double gain) { return node(held).set_parameter({"gain", gain}).successful; }

int switch_parameter_set(Held * held, const char * name, int on) { return node(held).set_parameter({name, on != 0}).successful; }

// A request of ~/exchange: the answer in words.
const char * exchange_told(Held * held)
{
  using Trigger = std_srvs::srv::Trigger;
  const auto response = std::make_shared<Trigger::Response>();
  node(held).entity<rclcpp::Service<Trigger>>("~/exchange")->callback(std::make_shared<Trigger::Request>(), response);
  held->text = response->message;
  return held->text.c_str();
}

// Codes of fault in the last ~/state.
void faults_read(Held * held, double * out)
{
  const auto & message = node(held).entity<rclcpp::Publisher<control_msgs::msg::DynamicJointState>>("~/state")->last;
  for (const auto & joint : message.interface_values) {
    *out++ = joint.values.back();
  }
}

#ifdef STRIBECK_ENABLED_BY_TOPIC
void enable_told(Held * held, int on)
{
  node(held).entity<rclcpp::Subscription<std_msgs::msg::Bool>>("~/enable")->callback({on != 0});
}
#else
void enable_told(Held * held, int on)
{
  using Switch = std_srvs::srv::SetBool;
  const auto request = std::make_shared<Switch::Request>();
  request->data = on != 0;
  node(held).entity<rclcpp::Service<Switch>>("~/enable")->callback(request, std::make_shared<Switch::Response>());
}
#endif

}  // extern "C"
