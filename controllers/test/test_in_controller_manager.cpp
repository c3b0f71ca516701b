// Copyright the Stribeck maintainers. SPDX-License-Identifier: Apache-2.0 The controller inside a
// controller_manager, behind other controllers, on simulated joints and in simulated time: a
// controller manager gives its controllers the time of its node's clock, whatever update() is
// called with.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <future>
#include <iostream>
#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "control_msgs/msg/dynamic_joint_state.hpp"
#include "control_msgs/msg/joint_trajectory_controller_state.hpp"
#include "controller_manager/controller_manager.hpp"
#include "controller_manager_msgs/srv/switch_controller.hpp"
#include "failing_compensation.hpp"
#include "friction_joints.hpp"
#include "rclcpp/rclcpp.hpp"
#include "rosgraph_msgs/msg/clock.hpp"
#include "std_msgs/msg/float64_multi_array.hpp"
#include "std_srvs/srv/set_bool.hpp"
#include "test_commander.hpp"
#include "trajectory_msgs/msg/joint_trajectory.hpp"

namespace
{

using namespace std::chrono_literals;
using controller_interface::return_type;
using stribeck_controllers::Behaviour;
using stribeck_controllers::FailingCompensation;
using stribeck_controllers::simulated_joints;
using stribeck_controllers::TestCommander;

constexpr double rate = 250.0, missing = std::numeric_limits<double>::quiet_NaN();
const std::string ours = "friction_compensation",
                  type = "stribeck_controllers/FrictionCompensationController";

std::string robot()
{
  std::string joints, controlled, parent = "base";
  for (const std::string name : {"shoulder", "elbow"})
  {
    joints += "<joint name=\"" + name + "\" type=\"revolute\"><parent link=\"" + parent +
              "\"/><child link=\"" + name +
              "_link\"/><axis xyz=\"0 1 0\"/><limit lower=\"-3\" upper=\"3\" effort=\"10\" "
              "velocity=\"5\"/></joint><link name=\"" +
              name + "_link\"/>";
    controlled += "<joint name=\"" + name +
                  "\"><command_interface name=\"effort\"/><state_interface name=\"position\"/>"
                  "<state_interface name=\"velocity\"/></joint>";
    parent = name + "_link";
  }
  return "<robot name=\"test\"><link name=\"base\"/>" + joints +
         "<ros2_control name=\"joints\" type=\"system\"><hardware>"
         "<plugin>stribeck_controllers/FrictionJoints</plugin></hardware>" +
         controlled + "</ros2_control></robot>";
}

/// Parameters of all controllers; further lines go to ours.
std::string parameters(const std::string & further)
{
  return R"(controller_manager:
  ros__parameters:
    update_rate: 250
    use_sim_time: true
friction_compensation:
  ros__parameters:
    type: stribeck_controllers/FrictionCompensationController
    joints: [shoulder, elbow]
    goal_topic: /joint_trajectory_controller/controller_state
    friction:
      shoulder: {law: m1, friction_base: 0.3, friction_viscous: 0.1, max_torque: 3.0}
      elbow: {law: m1, friction_base: 0.3, friction_viscous: 0.1, max_torque: 3.0}
)" + further +
         R"(
joint_trajectory_controller:
  ros__parameters:
    type: joint_trajectory_controller/JointTrajectoryController
    joints: [shoulder, elbow]
    command_joints: [friction_compensation/shoulder, friction_compensation/elbow]
    command_interfaces: [effort]
    state_interfaces: [position, velocity]
    state_publish_rate: 250.0
    gains:
      shoulder: {p: 20.0, i: 0.0, d: 2.0}
      elbow: {p: 20.0, i: 0.0, d: 2.0}
forward:
  ros__parameters:
    type: forward_command_controller/ForwardCommandController
    joints: [friction_compensation/shoulder, friction_compensation/elbow]
    interface_name: effort
)";
}

/// A controller manager whose loop and clock are led by hand.
class Managed
{
public:
  explicit Managed(const std::string & further = "")
  {
    static int count = 0;
    file_ = (std::filesystem::temp_directory_path() /
             ("stribeck_" + std::to_string(getpid()) + "_" + std::to_string(count++) + ".yaml"))
              .string();
    std::ofstream(file_) << parameters(further);
    auto options = controller_manager::get_cm_node_options();
    options.arguments({"--ros-args", "--params-file", file_});
    executor = std::make_shared<rclcpp::executors::SingleThreadedExecutor>();
    manager = std::make_shared<controller_manager::ControllerManager>(
      executor, robot(), true, "controller_manager", "", options);
    for (const char * name :
         {"friction_compensation", "joint_trajectory_controller", "forward", "commander"})
    {
      const std::string key = std::string(name) + ".params_file";
      if (!manager->has_parameter(key))
      {
        manager->declare_parameter(key, std::vector<std::string>{file_});
      }
      else
      {
        manager->set_parameter(rclcpp::Parameter(key, std::vector<std::string>{file_}));
      }
    }
    user = std::make_shared<rclcpp::Node>("user");
    clock_ = user->create_publisher<rosgraph_msgs::msg::Clock>("/clock", rclcpp::ClockQoS());
    executor->add_node(manager);
    executor->add_node(user);
    advance();
  }

  ~Managed() { std::filesystem::remove(file_); }

  /// Periods of the loop; after each, messages are served, and `done` is waited for, for 1 s at
  /// most.
  template <typename Condition>
  void step(int count, Condition done)
  {
    for (int k = 0; k < count; ++k)
    {
      cycle();
      const auto latest = std::chrono::steady_clock::now() + 1s;
      for (int more = 3; more > 0 && std::chrono::steady_clock::now() < latest; more -= done())
      {
        // messages are sent by other threads, and not to all at once
        std::this_thread::sleep_for(100us);
        executor->spin_some();
      }
    }
  }

  void step(int count = 1)
  {
    step(count, [] { return true; });
  }

  template <typename Condition>
  bool until(Condition condition)
  {
    for (int k = 0; k < 5000 && !condition(); ++k)
    {
      step();
    }
    return condition();
  }

  bool loads(const std::string & name, const std::string & kind)
  {
    return meanwhile(
      [&]
      {
        return manager->load_controller(name, kind) != nullptr &&
               manager->configure_controller(name) == return_type::OK;
      });
  }

  /// What another thread does while the loop runs. It holds a lock while it waits for the loop to
  /// take a new list of controllers, and callbacks of the controller manager want that lock:
  /// nothing is served meanwhile.
  template <typename Action>
  bool meanwhile(Action action)
  {
    auto done = std::async(std::launch::async, action);
    while (done.wait_for(100us) != std::future_status::ready)
    {
      cycle();
    }
    return done.get();
  }

  bool unloads(const std::string & name)
  {
    return meanwhile([&] { return manager->unload_controller(name) == return_type::OK; });
  }

  bool switches(const std::vector<std::string> & start, const std::vector<std::string> & stop = {})
  {
    return meanwhile(
      [&]
      {
        return manager->switch_controller(
                 start, stop, controller_manager_msgs::srv::SwitchController::Request::STRICT, true,
                 rclcpp::Duration::from_seconds(10.0)) == return_type::OK;
      });
  }

  std::function<void()> after_cycle = [] {};
  std::shared_ptr<rclcpp::Executor> executor;
  std::shared_ptr<controller_manager::ControllerManager> manager;
  rclcpp::Node::SharedPtr user;

private:
  void cycle()
  {
    const auto period = rclcpp::Duration::from_seconds(1.0 / rate);
    advance();
    manager->read(time_, period);
    manager->update(time_, period);
    manager->write(time_, period);
    after_cycle();
  }

  /// One period of simulated time, on /clock, until the controller manager has it.
  void advance()
  {
    time_ += rclcpp::Duration::from_seconds(1.0 / rate);
    rosgraph_msgs::msg::Clock message;
    message.clock = time_;
    for (int tries = 0; tries < 100 && manager->now() != time_; ++tries)
    {
      clock_->publish(message);
      for (int k = 0; k < 1000 && manager->now() != time_; ++k)
      {
        std::this_thread::sleep_for(20us);
      }
    }
    ASSERT_EQ(manager->now(), time_) << "the controller manager does not follow /clock";
  }

  std::string file_;
  rclcpp::Time time_{10, 0, RCL_ROS_TIME};
  rclcpp::Publisher<rosgraph_msgs::msg::Clock>::SharedPtr clock_;
};

const std::string jtc = "joint_trajectory_controller",
                  jtc_type = "joint_trajectory_controller/JointTrajectoryController";
const std::string forward_type = "forward_command_controller/ForwardCommandController";

/// Error of the trajectory controller [rad], in a motion of 8 s, over a whole cycle of 4 s from the
/// third second on.
double tracked(Managed & m, bool compensated)
{
  auto enable = m.user->create_client<std_srvs::srv::SetBool>("/friction_compensation/enable");
  auto paths = m.user->create_publisher<trajectory_msgs::msg::JointTrajectory>(
    "/" + jtc + "/joint_trajectory", 10);
  double sum = 0.0;
  int count = 0, heard = 0;
  bool measuring = false;
  auto states = m.user->create_subscription<control_msgs::msg::JointTrajectoryControllerState>(
    "/" + jtc + "/controller_state", rclcpp::SensorDataQoS().keep_last(50),
    [&](const control_msgs::msg::JointTrajectoryControllerState & state)
    {
      ++heard;
      for (double error : state.error.positions)
      {
        sum += measuring ? error * error : 0.0, count += measuring;
      }
    });
  std::vector<int> codes{255};
  const auto sound = [&codes]
  { return std::all_of(codes.begin(), codes.end(), [](auto code) { return code == 0; }); };
  auto states_of_ours = m.user->create_subscription<control_msgs::msg::DynamicJointState>(
    "/friction_compensation/state", 10,
    [&](const control_msgs::msg::DynamicJointState & message)
    {
      EXPECT_EQ(message.joint_names, (std::vector<std::string>{"shoulder", "elbow"}));
      EXPECT_GT(rclcpp::Time(message.header.stamp).nanoseconds(), 0);
      codes.clear();
      for (const auto & joint : message.interface_values)
      {
        EXPECT_EQ(joint.interface_names.back(), "fault");
        EXPECT_TRUE(std::isfinite(joint.values[0])) << joint.interface_names[0];
        codes.push_back(static_cast<int>(joint.values.back()));
      }
    });
  EXPECT_TRUE(
    m.until([&] { return enable->service_is_ready() && paths->get_subscription_count() > 0; }));
  const auto on = std::make_shared<std_srvs::srv::SetBool::Request>();
  on->data = compensated;
  const auto answer = enable->async_send_request(on);
  EXPECT_TRUE(m.until([&] { return heard > 0 && sound() == compensated; })) << codes[0];
  trajectory_msgs::msg::JointTrajectory path;
  path.joint_names = {"shoulder", "elbow"};
  for (int k = 1; k <= 400; ++k)
  {
    const double t = 0.02 * k, w = 0.5 * M_PI, a = 0.5 * (1.0 - std::cos(w * t));
    const double v = k < 400 ? 0.5 * w * std::sin(w * t) : 0.0;
    trajectory_msgs::msg::JointTrajectoryPoint point;
    point.positions = {a, -a}, point.velocities = {v, -v};
    point.time_from_start = rclcpp::Duration::from_seconds(t);
    path.points.push_back(point);
  }
  paths->publish(path);
  const auto go = [&](int steps)
  {
    // goals reach our controller as they would in real time: one period late
    for (int k = 0; k < steps; ++k)
    {
      m.step(1, [&heard, before = heard] { return heard > before; });
    }
  };
  go(500);
  measuring = true;
  go(1000);
  measuring = false;
  go(550);
  EXPECT_GT(count, 1900);
  EXPECT_TRUE(sound() == compensated) << codes[0];
  for (const auto & joint : simulated_joints())
  {
    EXPECT_LT(std::abs(joint.position), 0.05) << "rests at the end of the motion";
  }
  return std::sqrt(sum / count);
}

TEST(InControllerManager, ChainsBehindATrajectoryControllerAndCutsItsError)
{
  Managed m;
  ASSERT_TRUE(m.loads(ours, type));
  ASSERT_TRUE(m.loads(jtc, jtc_type));
  ASSERT_TRUE(m.switches({ours, jtc}));
  for (const auto & controller : m.manager->get_loaded_controllers())
  {
    EXPECT_EQ(controller.c->get_lifecycle_state().label(), "active") << controller.info.name;
    EXPECT_EQ(controller.c->is_in_chained_mode(), controller.info.name == ours);
  }
  const double with = tracked(m, true), without = tracked(m, false);
  RecordProperty("with", std::to_string(with)), RecordProperty("without", std::to_string(without));
  if (const char * figures = std::getenv("STRIBECK_FIGURES"))
  {
    std::ofstream(figures) << "{\"with\": " << with << ", \"without\": " << without << "}\n";
  }
  EXPECT_LT(with, 0.5 * without);
}

TEST(InControllerManager, IsUnloadedAndLoadedAgain)
{
  Managed m;
  for (int k = 0; k < 2; ++k)
  {
    ASSERT_TRUE(m.loads(ours, type));
    ASSERT_TRUE(m.switches({ours}));
    m.step(20);
    ASSERT_TRUE(m.switches({}, {ours}));
    ASSERT_TRUE(m.unloads(ours));
  }
}

TEST(InControllerManager, WritesNoEffortWhereAReferenceIsNotANumberOrOld)
{
  Managed m("    enabled: false\n");
  ASSERT_TRUE(m.loads(ours, type));
  ASSERT_TRUE(m.switches({ours}));
  auto references = m.user->create_publisher<std_msgs::msg::Float64MultiArray>(
    "/friction_compensation/reference", 10);
  ASSERT_TRUE(m.until([&] { return references->get_subscription_count() > 0; }));
  std_msgs::msg::Float64MultiArray reference;
  reference.data = {0.2, -0.1};
  references->publish(reference);
  ASSERT_TRUE(m.until(
    [] { return simulated_joints()[0].effort == 0.2 && simulated_joints()[1].effort == -0.1; }));
  reference.data = {missing, -0.15};
  references->publish(reference);
  ASSERT_TRUE(m.until([] { return simulated_joints()[1].effort == -0.15; }));
  m.step(1);
  EXPECT_EQ(simulated_joints()[0].effort, 0.0);
  EXPECT_EQ(simulated_joints()[1].effort, -0.15);
  m.step(30);  // reference_timeout is 0.1 s
  EXPECT_EQ(simulated_joints()[1].effort, 0.0);
  reference.data = {0.2, -0.1};
  references->publish(reference);
  ASSERT_TRUE(m.until([] { return simulated_joints()[0].effort == 0.2; }));
  ASSERT_TRUE(m.switches({}, {ours}));
  m.step(2);
  ASSERT_TRUE(m.switches({ours}));
  for (int k = 0; k < 50; ++k)
  {
    m.step();
    EXPECT_EQ(simulated_joints()[0].effort, 0.0) << "a reference of before the activation";
  }
}

TEST(InControllerManager, PassesTheReferenceOnWhileStatesAreNotNumbersAndReturns)
{
  Managed m;
  ASSERT_TRUE(m.loads(ours, type));
  ASSERT_TRUE(m.loads("forward", forward_type));
  ASSERT_TRUE(m.switches({ours, "forward"}));
  auto commands =
    m.user->create_publisher<std_msgs::msg::Float64MultiArray>("/forward/commands", 10);
  ASSERT_TRUE(m.until([&] { return commands->get_subscription_count() > 0; }));
  std_msgs::msg::Float64MultiArray command;
  command.data = {0.5, 0.5};
  commands->publish(command);
  const auto compensated = [] { return simulated_joints()[0].effort > 0.51; };
  ASSERT_TRUE(m.until(compensated));
  simulated_joints()[0].spoiled = true;
  m.step(2);
  for (int k = 0; k < 50; ++k)
  {
    m.step();
    EXPECT_EQ(simulated_joints()[0].effort, 0.5);
    EXPECT_GT(simulated_joints()[1].effort, 0.51) << "the other joint goes on";
  }
  simulated_joints()[0].spoiled = false;
  EXPECT_TRUE(m.until(compensated)) << "friction returns with good states";
}

TEST(InControllerManager, LeavesNoEffortWhenItIsDeactivated)
{
  Managed m;
  ASSERT_TRUE(m.loads(ours, type));
  ASSERT_TRUE(m.loads("forward", forward_type));
  ASSERT_TRUE(m.switches({ours, "forward"}));
  auto commands =
    m.user->create_publisher<std_msgs::msg::Float64MultiArray>("/forward/commands", 10);
  ASSERT_TRUE(m.until([&] { return commands->get_subscription_count() > 0; }));
  std_msgs::msg::Float64MultiArray command;
  command.data = {0.5, 0.5};
  commands->publish(command);
  ASSERT_TRUE(m.until([] { return simulated_joints()[0].effort > 0.51; }));
  ASSERT_TRUE(m.switches({}, {"forward", ours}));
  m.step(5);
  EXPECT_EQ(simulated_joints()[0].effort, 0.0);
}

/// Two joints in motion under PD, and the efforts on the hardware after each cycle with the states
/// of both controllers.
class InMotion
{
public:
  struct Cycle
  {
    bool commander, ours;  ///< active
    double effort;
  };

  /// \param kind_of_ours the type of our controller, or of one that fails as it is asked to.
  explicit InMotion(
    Managed & m, const std::string & name = jtc, const std::string & kind = jtc_type,
    const std::string & kind_of_ours = type)
  : m_(m)
  {
    TestCommander::behaviour = FailingCompensation::behaviour = Behaviour::command;
    ready = m.loads(ours, kind_of_ours) && m.loads(name, kind) && m.switches({ours, name});
    for (const auto & controller : m.manager->get_loaded_controllers())
    {
      (controller.info.name == ours ? ours_ : commander_) = controller.c;
    }
    m.after_cycle = [this]
    { cycles.push_back({active(commander_), active(ours_), simulated_joints()[0].effort}); };
    if (name == jtc)
    {
      paths_ = m.user->create_publisher<trajectory_msgs::msg::JointTrajectory>(
        "/" + jtc + "/joint_trajectory", 10);
      ready = ready && m.until([this] { return paths_->get_subscription_count() > 0; });
    }
    goes();
  }

  ~InMotion()
  {
    m_.after_cycle = [] {};
  }

  /// Command a motion, and wait until it is fast and has a large effort.
  void goes()
  {
    if (paths_)
    {
      trajectory_msgs::msg::JointTrajectory path;
      path.joint_names = {"shoulder", "elbow"};
      trajectory_msgs::msg::JointTrajectoryPoint point;
      point.positions = {simulated_joints()[0].position + 2.0, 0.0};
      point.time_from_start = rclcpp::Duration::from_seconds(2.0);
      path.points.push_back(point);
      paths_->publish(path);
    }
    ready = ready && m_.until(
                       [] {
                         return std::abs(simulated_joints()[0].velocity) > 0.3 &&
                                simulated_joints()[0].effort > 0.3;
                       });
  }

  bool ready = false;
  std::vector<Cycle> cycles;

private:
  static bool active(const controller_interface::ControllerInterfaceBaseSharedPtr & controller)
  {
    return controller->get_lifecycle_id() == lifecycle_msgs::msg::State::PRIMARY_STATE_ACTIVE;
  }

  Managed & m_;
  controller_interface::ControllerInterfaceBaseSharedPtr commander_, ours_;
  rclcpp::Publisher<trajectory_msgs::msg::JointTrajectory>::SharedPtr paths_;
};

/// What happens to one of the chain in motion, and what the effort of the first joint then has to
/// be.
struct Disturbance
{
  std::string what, commander, kind;
  std::function<bool(Managed &, InMotion &)> begin;
  /// it holds from the first cycle on, and two cycles later
  std::function<bool(const InMotion::Cycle &)> begun, right;
  std::string kind_of_ours = type;
};

std::vector<Disturbance> disturbances()
{
  const auto stopped = [](const InMotion::Cycle & c) { return !c.commander; };
  const auto started = [](const InMotion::Cycle & c) { return c.commander; };
  const auto at_once = [](const InMotion::Cycle &) { return true; };
  const auto none = [](const InMotion::Cycle & c) { return c.effort == 0.0; };
  const auto commanded = [](const InMotion::Cycle & c) { return c.effort == 1.0; };
  const auto with_friction = [](const InMotion::Cycle & c) { return c.effort >= 1.0; };
  const auto stops = [](std::vector<std::string> names, std::string unloaded = "")
  {
    return [=](Managed & m, InMotion &)
    { return m.switches({}, names) && (unloaded.empty() || m.unloads(unloaded)); };
  };
  const auto restarts = [](std::vector<std::string> names)
  {
    return [=](Managed & m, InMotion & motion)
    {
      const bool ends = m.switches({}, names);
      m.step(20);
      const bool rests = motion.cycles.back().effort == 0.0;
      motion.cycles.clear();
      return ends && rests && m.switches(names);
    };
  };
  const auto behaves = [](Behaviour behaviour)
  {
    return [=](Managed &, InMotion &)
    {
      TestCommander::behaviour = behaviour;
      return true;
    };
  };
  const auto tells = [stops](Managed & m, InMotion & motion)
  {
    auto references =
      m.user->create_publisher<std_msgs::msg::Float64MultiArray>("/" + ours + "/reference", 10);
    std_msgs::msg::Float64MultiArray reference;
    reference.data = {3.0, 3.0};
    const bool heard = m.until([&] { return references->get_subscription_count() > 0; });
    references->publish(reference);
    const bool received = references->wait_for_all_acked(10s);
    m.step(5);
    return heard && received && stops({jtc})(m, motion);
  };
  const auto fails = [](Behaviour behaviour)
  {
    return [=](Managed &, InMotion &)
    {
      FailingCompensation::behaviour = behaviour;
      return true;
    };
  };
  const auto spoils = [](Managed &, InMotion &)
  {
    simulated_joints()[0].spoiled = true;
    return true;
  };
  const std::string other = "commander", other_type = "stribeck_controllers/TestCommander";
  const std::string failing = "stribeck_controllers/FailingCompensation";
  return {
    {"trajectory controller stopped", jtc, jtc_type, stops({jtc}), stopped, none},
    {"trajectory controller unloaded", jtc, jtc_type, stops({jtc}, jtc), stopped, none},
    {"trajectory controller without states", jtc, jtc_type, spoils, at_once, none},
    {"one that keeps its command stopped", other, other_type, stops({other}), stopped, none},
    {"one that keeps its command restarted", other, other_type, restarts({other}), started,
     with_friction},
    {"one that keeps its command unloaded", other, other_type, stops({other}, other), stopped,
     none},
    {"one that keeps its command with an error", other, other_type, behaves(Behaviour::error),
     stopped, none},
    {"one that keeps its command with an exception", other, other_type,
     behaves(Behaviour::exception), stopped, none},
    {"one that keeps its command gives no number", other, other_type,
     behaves(Behaviour::not_a_number), at_once, none},
    {"ours stopped before the trajectory controller", jtc, jtc_type, stops({ours, jtc}), stopped,
     none},
    {"ours stopped after the trajectory controller", jtc, jtc_type, stops({jtc, ours}), stopped,
     none},
    {"ours restarted", other, other_type, restarts({ours, other}), started, with_friction},
    {"ours unloaded", other, other_type, stops({ours, other}, ours), stopped, none},
    {"ours without states", other, other_type, spoils, at_once, commanded},
    {"ours with an error behind the trajectory controller", jtc, jtc_type, fails(Behaviour::error),
     at_once, none, failing},
    {"ours with an exception behind the trajectory controller", jtc, jtc_type,
     fails(Behaviour::exception), at_once, none, failing},
    {"ours with an error behind one that keeps its command", other, other_type,
     fails(Behaviour::error), at_once, none, failing},
    {"ours with an exception behind one that keeps its command", other, other_type,
     fails(Behaviour::exception), at_once, none, failing},
    {"trajectory controller stopped after a message on ~/reference", jtc, jtc_type, tells, stopped,
     none},
  };
}

/// After two cycles the effort is zero, or what the other controller commands.
TEST(InControllerManager, LeavesNoEffortWhateverHappensToOneOfTheChainInMotion)
{
  for (const auto & [what, name, kind, begin, begun, right, kind_of_ours] : disturbances())
  {
    SCOPED_TRACE(what);
    Managed m;
    InMotion motion(m, name, kind, kind_of_ours);
    ASSERT_TRUE(motion.ready);
    motion.cycles.clear();
    ASSERT_TRUE(begin(m, motion));
    m.step(50);
    auto cycle = std::find_if(motion.cycles.begin(), motion.cycles.end(), begun);
    ASSERT_GT(motion.cycles.end() - cycle, 20);
    int wrong = 0;
    for (int k = 0; cycle != motion.cycles.end(); ++cycle, ++k)
    {
      wrong = right(*cycle) ? wrong : k + 1;
      EXPECT_TRUE(k < 2 || right(*cycle)) << "after " << k << " cycles: " << cycle->effort;
    }
    std::cout << what << ": right after " << wrong << " cycles\n";
    if (name != jtc && motion.cycles.back().commander)
    {
      EXPECT_GE(simulated_joints()[1].effort, 1.0) << "the other joint goes on";
    }
  }
}

/// Stopped in motion and started again, each of the chain in turn: never the effort of before, but
/// that of the commander.
TEST(InControllerManager, BeginsAnewWhenTheChainIsRestartedInMotion)
{
  const std::vector<std::vector<std::string>> orders{{jtc}, {ours, jtc}};
  for (const auto & stopped : orders)
  {
    Managed m;
    InMotion motion(m);
    ASSERT_TRUE(motion.ready);
    const double before = motion.cycles.back().effort;
    ASSERT_TRUE(m.switches({}, stopped));
    m.step(100);
    EXPECT_EQ(simulated_joints()[0].effort, 0.0);
    motion.cycles.clear();
    ASSERT_TRUE(m.switches(stopped));
    m.step(20);
    for (const auto & cycle : motion.cycles)
    {
      EXPECT_LT(std::abs(cycle.effort), 0.5 * before) << "it holds the position where it is";
    }
    motion.goes();
    EXPECT_TRUE(motion.ready);
  }
}

TEST(InControllerManager, StaysDisabledOverRestarts)
{
  Managed m;
  InMotion motion(m, "commander", "stribeck_controllers/TestCommander");
  ASSERT_TRUE(motion.ready);
  auto enable = m.user->create_client<std_srvs::srv::SetBool>("/friction_compensation/enable");
  ASSERT_TRUE(m.until([&] { return enable->service_is_ready(); }));
  const auto answer =
    enable->async_send_request(std::make_shared<std_srvs::srv::SetBool::Request>());
  ASSERT_TRUE(m.until([] { return simulated_joints()[0].effort == 1.0; }));
  ASSERT_TRUE(m.switches({}, {"commander", ours}));
  ASSERT_TRUE(m.switches({ours, "commander"}));
  m.step(5);
  for (int k = 0; k < 100; ++k)
  {
    m.step();
    EXPECT_EQ(simulated_joints()[0].effort, 1.0);
  }
}

TEST(InControllerManager, CommandsNoMoreThanTheRobotDescriptionAllows)
{
  Managed m;
  ASSERT_TRUE(m.loads(ours, type));
  ASSERT_TRUE(m.loads("forward", forward_type));
  ASSERT_TRUE(m.switches({ours, "forward"}));
  auto commands =
    m.user->create_publisher<std_msgs::msg::Float64MultiArray>("/forward/commands", 10);
  ASSERT_TRUE(m.until([&] { return commands->get_subscription_count() > 0; }));
  std_msgs::msg::Float64MultiArray command;
  command.data = {20.0, 0.0};
  commands->publish(command);
  EXPECT_TRUE(m.until([] { return simulated_joints()[0].effort == 10.0; }));
}

TEST(InControllerManager, RefusesWhatIsDocumented)
{
  {
    Managed m("    state_interfaces: [position, velocity, temperature]\n");
    ASSERT_TRUE(m.loads(ours, type));
    EXPECT_FALSE(m.switches({ours})) << "the hardware has no temperature";
  }
  {
    Managed m("    gain: 1.5\n");
    EXPECT_FALSE(m.loads(ours, type)) << "a gain with which joints need not come to rest";
  }
  {
    Managed m("    output_mode: goal_offset\n");
    EXPECT_FALSE(m.loads(ours, type)) << "no p_gain";
  }
  Managed m("    effort_meaning: motor\n");
  EXPECT_FALSE(m.loads(ours, type)) << "effort_meaning without effort";
}

}  // namespace

int main(int argc, char ** argv)
{
  testing::InitGoogleTest(&argc, argv);
  rclcpp::init(argc, argv);
  const int result = RUN_ALL_TESTS();
  rclcpp::shutdown();
  return result;
}
