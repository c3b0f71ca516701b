// Copyright the Stribeck maintainers. SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <future>
#include <limits>
#include <memory>
#include <mutex>
#include <new>
#include <shared_mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "controller_interface/controller_interface_params.hpp"
#include "hardware_interface/loaned_command_interface.hpp"
#include "hardware_interface/loaned_state_interface.hpp"
#include "rclcpp/rclcpp.hpp"
#include "stribeck_controllers/friction_compensation_controller.hpp"

namespace
{
thread_local long allocations = 0;  ///< of memory, by this thread
}

void * operator new(std::size_t size)
{
  ++allocations;
  if (void * found = std::malloc(size))
  {
    return found;
  }
  throw std::bad_alloc();
}

void operator delete(void * memory) noexcept { std::free(memory); }
void operator delete(void * memory, std::size_t) noexcept { std::free(memory); }

using controller_interface::CallbackReturn;
using controller_interface::return_type;
using hardware_interface::CommandInterface;
using hardware_interface::StateInterface;
using stribeck_controllers::FrictionCompensationController;

namespace
{

constexpr double coulomb = 0.4, viscous = 0.1, missing = std::numeric_limits<double>::quiet_NaN();

using Parameters = std::vector<rclcpp::Parameter>;

/// A controller of two joints with law M1 on interfaces of its own, updated by hand.
class Driven : public FrictionCompensationController
{
public:
  explicit Driven(const Parameters & further = {}, const std::string & kind = "effort")
  {
    Parameters parameters{
      {"joints", std::vector<std::string>{"a", "b"}},
      {"goal_interfaces", std::vector<std::string>{"velocity"}},
      {"ramp_time", 0.0},
      {"slew_limit", 1e6}};
    for (const char * joint : {"a", "b"})
    {
      const std::string prefix = std::string("friction.") + joint + ".";
      parameters.emplace_back(prefix + "friction_base", coulomb);
      parameters.emplace_back(prefix + "friction_viscous", viscous);
      parameters.emplace_back(prefix + "max_torque", 5.0);
    }
    for (const rclcpp::Parameter & parameter : further)
    {
      parameters.push_back(parameter);
    }
    controller_interface::ControllerInterfaceParams params;
    params.controller_name = "friction";
    params.update_rate = params.controller_manager_update_rate = 1000;
    params.node_options = rclcpp::NodeOptions().parameter_overrides(parameters);
    ready = init(params) == return_type::OK &&
            configure().id() == lifecycle_msgs::msg::State::PRIMARY_STATE_INACTIVE;
    if (!ready)
    {
      return;
    }
    references = export_reference_interfaces();
    std::vector<hardware_interface::LoanedCommandInterface> loaned_commands;
    std::vector<hardware_interface::LoanedStateInterface> loaned_states;
    for (const char * joint : {"a", "b"})
    {
      commands.push_back(std::make_shared<CommandInterface>(joint, kind));
      loaned_commands.emplace_back(commands.back(), nullptr);
    }
    for (const char * name : {"position", "velocity", "effort"})
    {  // the last one where it is read
      for (const char * joint : {"a", "b"})
      {
        states.push_back(std::make_shared<StateInterface>(joint, name));
        loaned_states.emplace_back(states.back(), nullptr);
      }
    }
    while (loaned_states.size() > state_interface_configuration().names.size())
    {
      loaned_states.pop_back();
    }
    assign_interfaces(std::move(loaned_commands), std::move(loaned_states));
    set_chained_mode(true);
    ready = on_activate(get_lifecycle_state()) == CallbackReturn::SUCCESS;
    time = get_node()->now();
  }

  /// So many updates at 1 kHz with joint a at a velocity, its goal alike, and joint b at rest.
  void run(int count, double velocity, std::pair<double, double> reference, double told = 0.0)
  {
    for (int k = 0; k < count; ++k)
    {
      time += period;
      position += 1e-3 * velocity;
      (void)states[0]->set_value(position + told), (void)states[1]->set_value(0.1);
      (void)states[2]->set_value(velocity), (void)states[3]->set_value(0.0);
      (void)states[4]->set_value(0.0), (void)states[5]->set_value(0.0);
      (void)references[0]->set_value(reference.first),
        (void)references[1]->set_value(reference.second);
      if (references.size() > 2)
      {
        (void)references[2]->set_value(velocity), (void)references[3]->set_value(0.0);
      }
      const long before = allocations;
      ASSERT_EQ(update(time, period), return_type::OK);
      allocated += allocations - before;
    }
  }

  double command(std::size_t k) const { return commands[k]->get_optional().value_or(missing); }

  bool ready = false;
  std::vector<CommandInterface::SharedPtr> commands, references;
  std::vector<StateInterface::SharedPtr> states;
  rclcpp::Time time;
  rclcpp::Duration period = rclcpp::Duration::from_seconds(1e-3);
  double position = 0.2;
  long allocated = 0;  ///< pieces of memory, in updates
};

/// The answer of a service of the controller.
template <typename Service>
typename Service::Response::SharedPtr asked(
  Driven & driven, const std::string & name, const typename Service::Request::SharedPtr & request)
{
  const auto node = std::make_shared<rclcpp::Node>("asks");
  const auto client = node->create_client<Service>("/friction/" + name);
  rclcpp::executors::SingleThreadedExecutor executor;
  executor.add_node(driven.get_node()->get_node_base_interface());
  executor.add_node(node);
  EXPECT_TRUE(client->wait_for_service(std::chrono::seconds(10)));
  auto answer = client->async_send_request(request);
  EXPECT_EQ(
    executor.spin_until_future_complete(answer, std::chrono::seconds(10)),
    rclcpp::FutureReturnCode::SUCCESS);
  return answer.get();
}

/// Parameters of joints with an inertia and a gravity torque [N m], before further ones.
Parameters weighing(double gravity_torque, const Parameters & further = {})
{
  Parameters found;
  for (const char * joint : {"a", "b"})
  {
    found.emplace_back(std::string("friction.") + joint + ".inertia", 0.05);
    found.emplace_back(std::string("friction.") + joint + ".gravity_torque", gravity_torque);
  }
  found.insert(found.end(), further.begin(), further.end());
  return found;
}

/// An interface that another thread locks as long as this lives, as one that reads or writes it
/// does.
class LockedElsewhere
{
public:
  explicit LockedElsewhere(const CommandInterface::SharedPtr & interface)
  : thread_(
      [this, interface]
      {
        const std::unique_lock<std::shared_mutex> lock(interface->get_mutex());
        locked_.set_value();
        released_.get_future().wait();
      })
  {
    locked_.get_future().wait();
  }

  ~LockedElsewhere()
  {
    released_.set_value();
    thread_.join();
  }

private:
  std::promise<void> locked_, released_;
  std::thread thread_;
};

std_srvs::srv::SetBool::Request::SharedPtr switched(bool on)
{
  auto request = std::make_shared<std_srvs::srv::SetBool::Request>();
  request->data = on;
  return request;
}

}  // namespace

/// Gain times Coulomb and viscous friction on the moving joint, nothing on that at rest.
TEST(FrictionCompensationController, AddsFrictionToTheReference)
{
  Driven driven;
  ASSERT_TRUE(driven.ready);
  driven.run(200, 1.0, {2.0, -1.0});
  EXPECT_NEAR(driven.command(0), 2.0 + 0.8 * (coulomb + viscous), 1e-6);
  EXPECT_DOUBLE_EQ(driven.command(1), -1.0);
}

/// A state that is not a number: the reference passes, at once, and friction returns with the
/// states.
TEST(FrictionCompensationController, PassesTheReferenceThroughInDoubt)
{
  Driven driven;
  driven.run(200, 1.0, {2.0, -1.0});
  driven.run(1, 1.0, {3.0, -1.5}, missing);
  EXPECT_DOUBLE_EQ(driven.command(0), 3.0);
  EXPECT_DOUBLE_EQ(driven.command(1), -1.5);
  driven.run(200, 1.0, {3.0, -1.5});
  EXPECT_GT(driven.command(0), 3.3);
}

/// Also while faults begin, are published and end.
TEST(FrictionCompensationController, AsksForNoMemoryInUpdates)
{
  Driven driven;
  driven.run(200, 1.0, {2.0, -1.0});
  driven.allocated = 0;
  for (const double told : {0.0, missing, 0.0, missing})
  {
    driven.run(50, 1.0, {2.0, -1.0}, told);
    driven.run(50, 1.0, {missing, -1.0}, told);
  }
  EXPECT_EQ(driven.allocated, 0);
}

/// A reference that is not a number counts as the last one for a cycle, then the effort is zero;
/// the other joint goes on.
TEST(FrictionCompensationController, WritesNoEffortWithoutAReference)
{
  Driven driven;
  driven.run(1, 0.0, {missing, missing});
  EXPECT_DOUBLE_EQ(driven.command(0), 0.0);
  driven.run(200, 1.0, {2.0, -1.0});
  driven.run(1, 1.0, {missing, -3.0});
  EXPECT_NEAR(driven.command(0), 2.0 + 0.8 * (coulomb + viscous), 1e-6);
  driven.run(1, 1.0, {missing, -3.0});
  EXPECT_DOUBLE_EQ(driven.command(0), 0.0);
  EXPECT_DOUBLE_EQ(driven.command(1), -3.0);
}

/// An interface that another thread has locked in an update: the last reference counts, and no
/// friction is lost for it.
TEST(FrictionCompensationController, LosesNoFrictionWhereAReferenceIsLockedOnce)
{
  Driven driven;
  driven.run(200, 1.0, {2.0, -1.0});
  {
    const LockedElsewhere locked(driven.references[0]);
    driven.run(1, 1.0, {2.0, -1.0});
    EXPECT_NEAR(driven.command(0), 2.0 + 0.8 * (coulomb + viscous), 1e-6);
    driven.run(1, 1.0, {2.0, -1.0});
    EXPECT_DOUBLE_EQ(driven.command(0), 0.0) << "for longer it counts as none";
    EXPECT_DOUBLE_EQ(driven.command(1), -1.0);
  }
  driven.run(1, 1.0, {2.0, -1.0});
  EXPECT_GE(driven.command(0), 2.0);
}

/// Neither a fault nor ~/enable false takes friction away faster than in 20 ms from the torque
/// limit to zero; here 50 N m/s.
TEST(FrictionCompensationController, FadesFrictionInsteadOfStepping)
{
  const Parameters slow{{"slew_limit", 0.0}, {"friction.a.max_torque", 1.0}};
  const auto fades = [](Driven & driven, double told)
  {
    double last = driven.command(0);
    for (int k = 0; k < 30; ++k)
    {
      driven.run(1, 1.0, {2.0, -1.0}, told);
      EXPECT_GT(driven.command(0), last - 0.05 - 1e-9) << "update " << k;
      last = driven.command(0);
    }
    EXPECT_DOUBLE_EQ(last, 2.0);
  };
  Driven faulty(slow), disabled(slow);
  for (Driven * driven : {&faulty, &disabled})
  {
    driven->run(200, 1.0, {2.0, -1.0});
    ASSERT_NEAR(driven->command(0), 2.0 + 0.8 * (coulomb + viscous), 1e-6);
  }
  fades(faulty, missing);
  ASSERT_TRUE(asked<std_srvs::srv::SetBool>(disabled, "enable", switched(false))->success);
  fades(disabled, 0.0);
}

/// No effort stays on the hardware after deactivation, and none of before it returns with the next
/// activation.
TEST(FrictionCompensationController, LeavesNoEffortBehind)
{
  Driven driven;
  driven.run(200, 1.0, {2.0, -1.0});
  EXPECT_EQ(driven.on_deactivate(driven.get_lifecycle_state()), CallbackReturn::SUCCESS);
  EXPECT_DOUBLE_EQ(driven.command(0), 0.0);
  EXPECT_DOUBLE_EQ(driven.command(1), 0.0);
  EXPECT_EQ(driven.on_activate(driven.get_lifecycle_state()), CallbackReturn::SUCCESS);
  (void)driven.states[0]->set_value(0.5);
  ASSERT_EQ(driven.update(driven.time, driven.period), return_type::OK);
  EXPECT_DOUBLE_EQ(driven.command(0), 0.0);
}

/// A position-controlled servo stays where it is.
TEST(FrictionCompensationController, LeavesTheMeasuredPositionBehind)
{
  Driven driven(
    Parameters{
      {"output_mode", "goal_offset"}, {"friction.a.p_gain", 10.0}, {"friction.b.p_gain", 10.0}},
    "position");
  ASSERT_TRUE(driven.ready);
  driven.run(200, 1.0, {0.5, 0.1});
  EXPECT_EQ(driven.on_deactivate(driven.get_lifecycle_state()), CallbackReturn::SUCCESS);
  EXPECT_DOUBLE_EQ(driven.command(0), driven.position);
}

/// A goal that is not a number concerns its own joint, which stays; the goals of the others go on,
/// friction included.
TEST(FrictionCompensationController, FreezesNoGoalBesideOneThatIsMissing)
{
  Driven driven(
    Parameters{
      {"output_mode", "goal_offset"}, {"friction.a.p_gain", 10.0}, {"friction.b.p_gain", 10.0}},
    "position");
  ASSERT_TRUE(driven.ready);
  double last = missing;
  for (int k = 0; k < 400; ++k)
  {
    driven.run(1, 1.0, {driven.position + 2e-3, k < 200 || k >= 350 ? 0.1 : missing});
    if (k >= 195)
    {
      EXPECT_NEAR(driven.command(0) - last, 1e-3, 1e-9) << "update " << k;
      EXPECT_GT(driven.command(0), driven.position + 1e-3 + 0.02) << "with friction";
      EXPECT_DOUBLE_EQ(driven.command(1), 0.1);
    }
    last = driven.command(0);
  }
}

/// The ROS time is set by ten seconds in a motion: periods count as time, and the torque stays.
///
/// No time of an activation is kept any more. There was a member for it, which the thread of the
/// goal topic read while an activation wrote it, so that a difference of times of two clocks could
/// throw in that thread. A race is no matter of a test; the stamp of a goal is now compared in the
/// update, which alone keeps time (FollowsGoalsOfTheTopicDuringAHandover).
TEST(FrictionCompensationController, KeepsItsTorqueWhenTheRosTimeIsSet)
{
  Driven driven;
  driven.run(200, 1.0, {2.0, -1.0});
  for (const double step : {10.0, -10.0, 0.1})
  {
    driven.time += rclcpp::Duration::from_seconds(step);
    driven.run(1, 1.0, {2.0, -1.0});
    EXPECT_NEAR(driven.command(0), 2.0 + 0.8 * (coulomb + viscous), 1e-6) << step;
  }
}

/// The gain is a parameter that may be set at any time, and has one bound.
TEST(FrictionCompensationController, FollowsTheParameterGain)
{
  Driven driven;
  driven.run(200, 1.0, {2.0, -1.0});
  EXPECT_FALSE(driven.get_node()->set_parameter({"gain", 2.0}).successful);
  EXPECT_FALSE(driven.get_node()->set_parameter({"gain", missing}).successful);
  driven.run(2, 1.0, {2.0, -1.0});
  EXPECT_NEAR(driven.command(0), 2.0 + 0.8 * (coulomb + viscous), 1e-6);
  EXPECT_TRUE(driven.get_node()->set_parameter({"gain", 0.4}).successful);
  driven.run(2, 1.0, {2.0, -1.0});
  EXPECT_NEAR(driven.command(0), 2.0 + 0.4 * (coulomb + viscous), 1e-6);
}

/// ~/gain has the bound of the parameter. At 2.0, which it took, a joint at a goal at rest does not
/// come to rest.
TEST(FrictionCompensationController, TakesNoGainAtWhichAJointDoesNotComeToRest)
{
  Driven driven(Parameters{
    {"goal_interfaces", std::vector<std::string>{"position", "velocity"}}, {"adapt", false}});
  ASSERT_TRUE(driven.ready);
  const auto node = std::make_shared<rclcpp::Node>("gains");
  const auto gains = node->create_publisher<std_msgs::msg::Float64>("/friction/gain", 10);
  rclcpp::executors::SingleThreadedExecutor executor;
  executor.add_node(driven.get_node()->get_node_base_interface());
  const auto is = [&driven](double gain)
  { return driven.get_node()->get_parameter("gain").as_double() == gain; };
  std_msgs::msg::Float64 gain;
  for (const double wanted : {1.2, 2.0, 1.3})
  {
    gain.data = wanted;
    for (int k = 0; k < 1000 && gains->get_subscription_count() == 0; ++k)
    {
      executor.spin_once(std::chrono::milliseconds(10));
    }
    gains->publish(gain);
    // in their order: after 1.3 was taken, 2.0 was refused
    for (int k = 0; k < 1000 && wanted < 2.0 && !is(wanted); ++k)
    {
      executor.spin_once(std::chrono::milliseconds(10));
    }
    EXPECT_TRUE(wanted == 2.0 || is(wanted));
  }
  double position = 0.02, velocity = 0.0, fastest = 0.0;
  for (int k = 0; k < 3000; ++k)
  {
    driven.time += driven.period;
    const std::vector<double> states{position, 0.1, velocity, 0.0};
    const std::vector<double> references{-4.0 * position - 0.1 * velocity, 0.0, 0.0, 0.1, 0.0, 0.0};
    for (std::size_t n = 0; n < states.size(); ++n)
    {
      (void)driven.states[n]->set_value(states[n]);
    }
    for (std::size_t n = 0; n < references.size(); ++n)
    {
      (void)driven.references[n]->set_value(references[n]);
    }
    ASSERT_EQ(driven.update(driven.time, driven.period), return_type::OK);
    for (int part = 0; part < 4; ++part)
    {
      const double dt = 2.5e-4, inertia = 0.05;
      const double pushed =
        (velocity + driven.command(0) / inertia * dt) / (1.0 + viscous / inertia * dt);
      velocity = std::copysign(std::max(0.0, std::abs(pushed) - coulomb / inertia * dt), pushed);
      position += velocity * dt;
    }
    fastest = k < 2000 ? 0.0 : std::max(fastest, std::abs(velocity));
  }
  RecordProperty("fastest", std::to_string(fastest));
  EXPECT_EQ(fastest, 0.0) << "in the third second";
}

/// Parameters out of range, a missing torque limit, and a gain that is not stable end configuring
/// with an error.
TEST(FrictionCompensationController, RefusesParameters)
{
  EXPECT_FALSE(Driven(Parameters{{"gain", 1.5}}).ready);
  EXPECT_FALSE(Driven(Parameters{{"friction.a.friction_base", -0.1}}).ready);
  EXPECT_FALSE(Driven(Parameters{{"output_mode", "goal_offset"}}, "position").ready)
    << "p_gain is missing";
  const Parameters offset{{"output_mode", "goal_offset"}, {"friction.a.p_gain", 10.0},
                          {"friction.b.p_gain", 10.0},    {"friction.a.servo", "voltage"},
                          {"friction.a.kt", 1.0},         {"friction.a.supply_voltage", 12.0}};
  EXPECT_FALSE(Driven(offset, "position").ready) << "R is missing";
  EXPECT_FALSE(Driven(Parameters{{"output_mode", "torque"}}).ready);
  EXPECT_FALSE(Driven(Parameters{{"joints", std::vector<std::string>{"a", "c"}}}).ready);
  EXPECT_FALSE(Driven(Parameters{{"effort_meaning", "motor"}}).ready);
  EXPECT_FALSE(Driven(Parameters{{"friction.a.inertia", 0.1}}).ready);
}

/// Not enabled: the reference passes until the service says otherwise.
TEST(FrictionCompensationController, IsEnabledByAService)
{
  Driven driven(Parameters{{"enabled", false}});
  ASSERT_TRUE(driven.ready);
  driven.run(200, 1.0, {2.0, -1.0});
  EXPECT_DOUBLE_EQ(driven.command(0), 2.0);
  const auto node = std::make_shared<rclcpp::Node>("switch");
  const auto client = node->create_client<std_srvs::srv::SetBool>("/friction/enable");
  rclcpp::executors::SingleThreadedExecutor executor;
  executor.add_node(driven.get_node()->get_node_base_interface());
  executor.add_node(node);
  ASSERT_TRUE(client->wait_for_service(std::chrono::seconds(10)));
  const auto request = std::make_shared<std_srvs::srv::SetBool::Request>();
  request->data = true;
  const auto answer = client->async_send_request(request);
  for (int k = 0; k < 500 && driven.command(0) == 2.0; ++k)
  {
    executor.spin_once(std::chrono::milliseconds(10));
    driven.run(10, 1.0, {2.0, -1.0});
  }
  EXPECT_GT(driven.command(0), 2.0);
}

/// What was asked of the service last counts after restarts too.
TEST(FrictionCompensationController, StaysDisabledOverRestarts)
{
  Driven driven;
  driven.run(200, 1.0, {2.0, -1.0});
  const auto node = std::make_shared<rclcpp::Node>("switch");
  const auto client = node->create_client<std_srvs::srv::SetBool>("/friction/enable");
  rclcpp::executors::SingleThreadedExecutor executor;
  executor.add_node(driven.get_node()->get_node_base_interface());
  executor.add_node(node);
  ASSERT_TRUE(client->wait_for_service(std::chrono::seconds(10)));
  const auto answer =
    client->async_send_request(std::make_shared<std_srvs::srv::SetBool::Request>());
  for (int k = 0; k < 500 && driven.command(0) != 2.0; ++k)
  {
    executor.spin_once(std::chrono::milliseconds(10));
    driven.run(10, 1.0, {2.0, -1.0});
  }
  EXPECT_DOUBLE_EQ(driven.command(0), 2.0);
  EXPECT_EQ(driven.on_deactivate(driven.get_lifecycle_state()), CallbackReturn::SUCCESS);
  EXPECT_EQ(driven.on_activate(driven.get_lifecycle_state()), CallbackReturn::SUCCESS);
  driven.run(200, 1.0, {2.0, -1.0});
  EXPECT_DOUBLE_EQ(driven.command(0), 2.0);
}

/// Position-controlled servos: torque of the goal offset through the firmware's gain.
TEST(FrictionCompensationController, OffsetsGoalsOfServos)
{
  Driven driven(
    Parameters{
      {"output_mode", "goal_offset"}, {"friction.a.p_gain", 10.0}, {"friction.b.p_gain", 10.0}},
    "position");
  ASSERT_TRUE(driven.ready);
  for (int k = 0; k < 300; ++k)
  {
    driven.run(1, 1.0, {driven.position + 1e-3, 0.1});
  }
  // The joint has so little inertia that its velocity is old within the delay: the friction is that
  // at the velocity of the goal, of which nothing is known here.
  EXPECT_NEAR(driven.command(0) - (driven.position + 1e-3), 0.8 * coulomb / 10.0, 1e-4);
  EXPECT_DOUBLE_EQ(driven.command(1), 0.1);
}

/// Zero torque: the weight of each joint while no controller gives a reference; references end it
/// at once.
TEST(FrictionCompensationController, BearsTheWeightOfGuidedJoints)
{
  using SetBool = std_srvs::srv::SetBool;
  Driven driven(weighing(2.0));
  ASSERT_TRUE(driven.ready);
  driven.run(50, 0.0, {missing, missing});
  EXPECT_DOUBLE_EQ(driven.command(0), 0.0);
  ASSERT_TRUE(asked<SetBool>(driven, "zero_torque", switched(true))->success);
  driven.run(500, 0.0, {missing, missing});
  EXPECT_NEAR(driven.command(0), 2.0 * std::sin(0.2), 1e-6);
  EXPECT_NEAR(driven.command(1), 2.0 * std::sin(0.1), 1e-6);
  driven.run(1, 0.0, {0.5, -0.5});
  EXPECT_NEAR(driven.command(0), 0.5, 1e-6);
  driven.run(10, 0.0, {missing, missing});
  EXPECT_DOUBLE_EQ(driven.command(0), 0.0) << "the mode has ended";
  ASSERT_TRUE(asked<SetBool>(driven, "zero_torque", switched(true))->success);
  driven.run(500, 0.0, {missing, missing});
  ASSERT_TRUE(asked<SetBool>(driven, "zero_torque", switched(false))->success);
  driven.run(2000, 0.0, {missing, missing});
  EXPECT_DOUBLE_EQ(driven.command(0), 0.0);
}

/// The cycle in which the mode ends bears nothing, whether it was left, states were lost, or
/// another joint is commanded.
TEST(FrictionCompensationController, BearsNothingInTheCycleThatEndsZeroTorque)
{
  using SetBool = std_srvs::srv::SetBool;
  const auto guided = [](double ramp_time)
  {
    auto made = std::make_unique<Driven>(
      weighing(2.0, {{"gain", 0.0}, {"ramp_time", ramp_time}, {"state_timeout", 0.0405}}));
    made->run(50, 0.0, {missing, missing});
    EXPECT_TRUE(asked<SetBool>(*made, "zero_torque", switched(true))->success);
    made->run(100, 0.0, {missing, missing});
    EXPECT_NEAR(made->command(0), 2.0 * std::sin(0.2), 1e-6);
    return made;
  };
  const auto left = guided(0.0105);
  EXPECT_TRUE(asked<SetBool>(*left, "zero_torque", switched(false))->success);
  left->run(10, 0.01, {missing, missing});  // slower than what counts as motion
  const double damping = 2.0 * 0.05 * 25.0, q = left->position - 1e-5;  // the state before counts
  const double held = 0.05 * 25.0 * 25.0 * (0.2 - q) - damping * 0.01;
  EXPECT_NEAR(left->command(0), 0.5 / 10.5 * (2.0 * std::sin(q) + held) - damping * 0.01, 1e-6);
  left->run(1, 0.01, {missing, missing});
  EXPECT_DOUBLE_EQ(left->command(0), 0.0);

  const auto lost = guided(0.0);
  lost->run(41, 0.0, {missing, missing}, missing);  // in the first the state before counts
  EXPECT_NEAR(lost->command(0), 2.0 * std::sin(0.2), 1e-6);
  lost->run(1, 0.0, {missing, missing}, missing);
  EXPECT_DOUBLE_EQ(lost->command(0), 0.0);
  EXPECT_DOUBLE_EQ(lost->command(1), 0.0);

  const auto commanded = guided(0.0);
  commanded->run(1, 0.0, {0.5, missing});
  EXPECT_DOUBLE_EQ(commanded->command(0), 0.5);
  EXPECT_DOUBLE_EQ(commanded->command(1), 0.0);
}

/// Without a gravity torque nothing can be borne.
TEST(FrictionCompensationController, RefusesZeroTorqueWithoutAWeight)
{
  Driven driven;
  const auto answer = asked<std_srvs::srv::SetBool>(driven, "zero_torque", switched(true));
  EXPECT_FALSE(answer->success);
  EXPECT_NE(answer->message.find("gravity torque"), std::string::npos);
}

/// Three times the friction takes over along a ramp, and is given back; what is not valid changes
/// nothing.
TEST(FrictionCompensationController, LetsOtherDrivesTakeOver)
{
  using Trigger = std_srvs::srv::Trigger;
  const auto request = std::make_shared<Trigger::Request>();
  Driven driven(Parameters{{"ramp_time", 0.1}});
  ASSERT_TRUE(driven.ready);
  driven.run(300, 1.0, {2.0, -1.0});
  const double before = driven.command(0);
  EXPECT_NEAR(before, 2.0 + 0.8 * (coulomb + viscous), 1e-6);
  EXPECT_FALSE(asked<Trigger>(driven, "revert", request)->success) << "there are no former drives";
  ASSERT_TRUE(
    driven.get_node()->set_parameter({"friction.a.friction_base", 3.0 * coulomb}).successful);
  driven.run(10, 1.0, {2.0, -1.0});
  EXPECT_NEAR(driven.command(0), before, 1e-6) << "not before it is asked for";
  ASSERT_TRUE(asked<Trigger>(driven, "exchange", request)->success);
  double last = before, largest = 0.0;
  for (int k = 0; k < 300; ++k)
  {
    driven.run(1, 1.0, {2.0, -1.0});
    largest = std::max(largest, std::abs(driven.command(0) - last));
    last = driven.command(0);
  }
  EXPECT_NEAR(last, 2.0 + 0.8 * (3.0 * coulomb + viscous), 1e-6);
  EXPECT_LT(largest, 1.1 * 0.8 * 2.0 * coulomb / 100.0);
  ASSERT_TRUE(driven.get_node()->set_parameter({"friction.a.friction_base", -0.1}).successful);
  EXPECT_FALSE(asked<Trigger>(driven, "exchange", request)->success);
  ASSERT_TRUE(asked<Trigger>(driven, "revert", request)->success);
  driven.run(300, 1.0, {2.0, -1.0});
  EXPECT_NEAR(driven.command(0), before, 1e-6);
}

/// A trigger of the controller: its answer, with the message if it is a refusal.
std::pair<bool, std::string> triggered(Driven & driven, const std::string & name)
{
  using Trigger = std_srvs::srv::Trigger;
  const auto answer = asked<Trigger>(driven, name, std::make_shared<Trigger::Request>());
  return {answer->success, answer->success ? "" : answer->message};
}

/// Set parameters of the friction of both joints.
void sets(Driven & driven, const Parameters & parameters)
{
  for (const rclcpp::Parameter & parameter : parameters)
  {
    ASSERT_TRUE(driven.get_node()->set_parameter(parameter).successful) << parameter.get_name();
  }
}

/// Drives that are refused leave those before the last exchange as they were, with their own
/// weight.
TEST(FrictionCompensationController, GoesBackToTheFormerDrivesAfterARefusal)
{
  using SetBool = std_srvs::srv::SetBool;
  Driven driven(weighing(2.0, {{"ramp_time", 0.1}, {"gain", 0.0}}));
  ASSERT_TRUE(driven.ready);
  sets(driven, weighing(1.0));
  ASSERT_TRUE(triggered(driven, "exchange").first);
  driven.run(300, 0.0, {0.0, 0.0});
  sets(driven, weighing(3.0, {{"friction.a.friction_base", -0.1}}));
  const auto refused = triggered(driven, "exchange");
  EXPECT_FALSE(refused.first);
  EXPECT_NE(refused.second.find("joint a: friction_base"), std::string::npos) << refused.second;
  const auto borne = [&driven]
  {
    driven.run(10, 0.0, {missing, missing});
    EXPECT_TRUE(asked<SetBool>(driven, "zero_torque", switched(true))->success);
    driven.run(500, 0.0, {missing, missing});
    const double found = driven.command(0);
    driven.run(1, 0.0, {0.0, 0.0});
    return found / std::sin(0.2);
  };
  EXPECT_NEAR(borne(), 1.0, 1e-6);
  ASSERT_TRUE(triggered(driven, "revert").first);
  driven.run(300, 0.0, {0.0, 0.0});
  EXPECT_NEAR(borne(), 2.0, 1e-6);
}

/// Drives change neither while a hand guides the robot nor while the mode begins, and it does not
/// begin while they take over.
TEST(FrictionCompensationController, KeepsItsDrivesWhileAHandGuides)
{
  using SetBool = std_srvs::srv::SetBool;
  Driven driven(weighing(2.0, {{"ramp_time", 0.1}, {"gain", 0.0}}));
  ASSERT_TRUE(driven.ready);
  driven.run(50, 0.0, {missing, missing});
  sets(driven, weighing(1.0, {{"friction.a.output_max", 0.1}}));
  ASSERT_TRUE(triggered(driven, "exchange").first);
  driven.run(50, 0.0, {missing, missing});
  EXPECT_FALSE(asked<SetBool>(driven, "zero_torque", switched(true))->success);
  driven.run(200, 0.0, {missing, missing});
  ASSERT_TRUE(asked<SetBool>(driven, "zero_torque", switched(true))->success);
  for (const int updates : {0, 500})
  {
    driven.run(updates, 0.0, {missing, missing});
    const double before = driven.command(0);
    for (const char * name : {"exchange", "revert"})
    {
      const auto refused = triggered(driven, name);
      EXPECT_FALSE(refused.first);
      EXPECT_NE(refused.second.find("~/zero_torque"), std::string::npos) << refused.second;
    }
    EXPECT_DOUBLE_EQ(driven.command(0), before);
  }
  EXPECT_DOUBLE_EQ(driven.command(0), 0.1) << "the limit of the present drives";
  EXPECT_NEAR(driven.command(1), std::sin(0.1), 1e-6);
  ASSERT_TRUE(asked<SetBool>(driven, "zero_torque", switched(false))->success);
  driven.run(1000, 0.0, {missing, missing});
  EXPECT_TRUE(triggered(driven, "revert").first);
}

/// A gain that other drives do not bear refuses them; the bound of the gain is that of the drives
/// that are present.
TEST(FrictionCompensationController, BoundsTheGainByThePresentDrives)
{
  Driven driven(Parameters{
    {"ramp_time", 0.1},
    {"effort_meaning", "motor"},
    {"friction.a.law", "m3"},
    {"friction.b.law", "m3"},
    {"state_interfaces", std::vector<std::string>{"position", "velocity", "effort"}}});
  ASSERT_TRUE(driven.ready);
  const auto loaded = [](double slope)
  { return Parameters{{"friction.a.load_friction_base", slope}}; };
  const auto accepts = [&driven](double gain)
  { return driven.get_node()->set_parameter({"gain", gain}).successful; };
  sets(driven, loaded(1.2));  // 0.9 / 1.2 is the largest gain, 0.8 the present one
  const auto refused = triggered(driven, "exchange");
  EXPECT_FALSE(refused.first);
  EXPECT_NE(refused.second.find("gain"), std::string::npos) << refused.second;
  EXPECT_TRUE(accepts(1.2));
  EXPECT_TRUE(accepts(0.8));
  sets(driven, loaded(0.9));
  ASSERT_TRUE(triggered(driven, "exchange").first);
  EXPECT_FALSE(accepts(1.01));
  driven.run(300, 0.0, {0.0, 0.0});
  EXPECT_FALSE(accepts(1.01));
  EXPECT_TRUE(accepts(0.99));
  ASSERT_TRUE(triggered(driven, "revert").first);
  driven.run(300, 0.0, {0.0, 0.0});
  EXPECT_TRUE(accepts(1.2));
}

/// The fault of joints that the zero-torque mode left without a torque: not where a controller
/// commands, and no longer than until it does.
TEST(FrictionCompensationController, SaysOfJointsWithoutCommandsThatZeroTorqueHasEnded)
{
  using SetBool = std_srvs::srv::SetBool;
  using State = control_msgs::msg::DynamicJointState;
  Driven driven(weighing(2.0, {{"gain", 0.0}}));
  ASSERT_TRUE(driven.ready);
  std::vector<std::uint8_t> codes;
  const auto node = std::make_shared<rclcpp::Node>("faults");
  const auto states = node->create_subscription<State>(
    "/friction/state", 10,
    [&codes](const State & message)
    {
      codes.clear();
      for (const auto & joint : message.interface_values)
      {
        codes.push_back(static_cast<std::uint8_t>(joint.values.back()));
      }
    });
  rclcpp::executors::SingleThreadedExecutor executor;
  executor.add_node(node);
  const auto coded =
    [&](double a, double b, std::uint8_t first, std::uint8_t second, double told = 0.0)
  {
    const std::vector<std::uint8_t> wanted{first, second};
    for (int k = 0; k < 500 && codes != wanted; ++k)
    {
      driven.run(10, 0.0, {a, b}, told);
      executor.spin_once(std::chrono::milliseconds(10));
    }
    driven.run(100, 0.0, {a, b}, told);
    for (int k = 0; k < 10; ++k)
    {
      executor.spin_once(std::chrono::milliseconds(10));
    }
    EXPECT_EQ(codes, wanted);
  };
  const auto begin = [&driven] { return asked<SetBool>(driven, "zero_torque", switched(true)); };
  coded(0.5, missing, 0, 64);
  EXPECT_NE(begin()->message.find("stop it first"), std::string::npos);
  coded(missing, missing, 64, 64);
  ASSERT_TRUE(begin()->success);
  coded(missing, missing, 0, 0);
  coded(0.5, missing, 0, 64);  // a controller's command ends the mode
  coded(missing, missing, 64, 64);
  ASSERT_TRUE(begin()->success);
  coded(missing, missing, 0, 0);
  coded(missing, missing, 66, 66, missing);  // states are lost
  EXPECT_NE(begin()->message.find("no valid states"), std::string::npos);
  coded(0.5, missing, 0, 64);
  coded(missing, missing, 64, 64);
  ASSERT_TRUE(asked<SetBool>(driven, "enable", switched(false))->success);
  driven.run(1, 0.0, {missing, missing});
  EXPECT_NE(begin()->message.find("~/enable"), std::string::npos);
}

/// Goals of the topic count for the drives that leave, too: equal drives take over without a change
/// of the torque.
TEST(FrictionCompensationController, FollowsGoalsOfTheTopicDuringAHandover)
{
  using Goals = control_msgs::msg::JointTrajectoryControllerState;
  Driven driven(Parameters{
    {"ramp_time", 0.5}, {"goal_topic", "/goals"}, {"goal_interfaces", std::vector<std::string>{}}});
  ASSERT_TRUE(driven.ready);
  const auto node = std::make_shared<rclcpp::Node>("goals");
  const auto goals = node->create_publisher<Goals>("/goals", rclcpp::SensorDataQoS());
  const auto moved = [&](int count, int from)
  {
    rclcpp::executors::SingleThreadedExecutor executor;
    executor.add_node(driven.get_node()->get_node_base_interface());
    for (int k = 0; k < 1000 && goals->get_subscription_count() == 0; ++k)
    {
      executor.spin_once(std::chrono::milliseconds(10));
    }
    for (int k = 0; k < count; k += 25)
    {  // goals time out after 100 updates
      Goals goal;
      goal.header.stamp = driven.time;
      goal.joint_names = {"a", "b"};
      goal.reference.velocities = {1.0, 0.0};
      goals->publish(goal);
      executor.spin_once(std::chrono::seconds(10));
      driven.run(25, 1.0, {2.0, -1.0});
      if (k >= from)
      {
        EXPECT_NEAR(driven.command(0), 2.0 + 0.8 * (coulomb + viscous), 1e-6) << k;
      }
    }
  };
  moved(1500, 600);  // the first ramp
  ASSERT_TRUE(triggered(driven, "exchange").first);
  moved(1200, 0);
}

int main(int count, char ** arguments)
{
  ::testing::InitGoogleTest(&count, arguments);
  rclcpp::init(count, arguments);
  const int failed = RUN_ALL_TESTS();
  rclcpp::shutdown();
  return failed;
}
