// Copyright the Stribeck maintainers. SPDX-License-Identifier: Apache-2.0
// The controller inside a controller_manager, behind other controllers, on simulated joints and in simulated time:
// a controller manager gives its controllers the time of its node's clock, whatever update() is called with.
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <future>
#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "control_msgs/msg/joint_trajectory_controller_state.hpp"
#include "controller_manager/controller_manager.hpp"
#include "controller_manager_msgs/srv/switch_controller.hpp"
#include "friction_joints.hpp"
#include "rclcpp/rclcpp.hpp"
#include "rosgraph_msgs/msg/clock.hpp"
#include "std_msgs/msg/bool.hpp"
#include "std_msgs/msg/float64_multi_array.hpp"
#include "std_msgs/msg/string.hpp"
#include "trajectory_msgs/msg/joint_trajectory.hpp"

namespace
{

using namespace std::chrono_literals;
using controller_interface::return_type;
using stribeck_controllers::simulated_joints;

constexpr double rate = 250.0, missing = std::numeric_limits<double>::quiet_NaN();
const std::string ours = "friction_compensation", type = "stribeck_controllers/FrictionCompensationController";

std::string robot()
{
  std::string joints, controlled, parent = "base";
  for (const std::string name : {"shoulder", "elbow"}) {
    joints += "<joint name=\"" + name + "\" type=\"revolute\"><parent link=\"" + parent + "\"/><child link=\"" + name +
      "_link\"/><axis xyz=\"0 1 0\"/><limit lower=\"-3\" upper=\"3\" effort=\"10\" velocity=\"5\"/></joint><link name=\"" +
      name + "_link\"/>";
    controlled += "<joint name=\"" + name + "\"><command_interface name=\"effort\"/><state_interface name=\"position\"/>"
      "<state_interface name=\"velocity\"/></joint>";
    parent = name + "_link";
  }
  return "<robot name=\"test\"><link name=\"base\"/>" + joints + "<ros2_control name=\"joints\" type=\"system\"><hardware>"
    "<plugin>stribeck_controllers/FrictionJoints</plugin></hardware>" + controlled + "</ros2_control></robot>";
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
)" + further + R"(
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
      ("stribeck_" + std::to_string(getpid()) + "_" + std::to_string(count++) + ".yaml")).string();
    std::ofstream(file_) << parameters(further);
    auto options = controller_manager::get_cm_node_options();
    options.arguments({"--ros-args", "--params-file", file_});
    executor = std::make_shared<rclcpp::executors::SingleThreadedExecutor>();
    manager = std::make_shared<controller_manager::ControllerManager>(
      executor, robot(), true, "controller_manager", "", options);
    for (const char * name : {"friction_compensation", "joint_trajectory_controller", "forward"}) {
      const std::string key = std::string(name) + ".params_file";
      if (!manager->has_parameter(key)) {
        manager->declare_parameter(key, std::vector<std::string>{file_});
      } else {
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

  /// Periods of the loop; after each, messages are served, and `done` is waited for, for 1 s at most.
  template<typename Condition>
  void step(int count, Condition done)
  {
    for (int k = 0; k < count; ++k) {
      cycle();
      const auto latest = std::chrono::steady_clock::now() + 1s;
      for (int more = 3; more > 0 && std::chrono::steady_clock::now() < latest; more -= done()) {
        std::this_thread::sleep_for(100us);  // messages are sent by other threads, and not to all at once
        executor->spin_some();
      }
    }
  }

  void step(int count = 1) { step(count, [] { return true; }); }

  template<typename Condition>
  bool until(Condition condition)
  {
    for (int k = 0; k < 5000 && !condition(); ++k) {
      step();
    }
    return condition();
  }

  bool loads(const std::string & name, const std::string & kind)
  {
    return meanwhile([&] {
      return manager->load_controller(name, kind) != nullptr && manager->configure_controller(name) == return_type::OK;
    });
  }

  /// What another thread does while the loop runs. It holds a lock while it waits for the loop to take a new list of
  /// controllers, and callbacks of the controller manager want that lock: nothing is served meanwhile.
  template<typename Action>
  bool meanwhile(Action action)
  {
    auto done = std::async(std::launch::async, action);
    while (done.wait_for(100us) != std::future_status::ready) {
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
    return meanwhile([&] {
      return manager->switch_controller(
        start, stop, controller_manager_msgs::srv::SwitchController::Request::STRICT, true,
        rclcpp::Duration::from_seconds(10.0)) == return_type::OK;
    });
  }

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
  }

  /// One period of simulated time, on /clock, until the controller manager has it.
  void advance()
  {
    time_ += rclcpp::Duration::from_seconds(1.0 / rate);
    rosgraph_msgs::msg::Clock message;
    message.clock = time_;
    for (int tries = 0; tries < 100 && manager->now() != time_; ++tries) {
      clock_->publish(message);
      for (int k = 0; k < 1000 && manager->now() != time_; ++k) {
        std::this_thread::sleep_for(20us);
      }
    }
    ASSERT_EQ(manager->now(), time_) << "the controller manager does not follow /clock";
  }

  std::string file_;
  rclcpp::Time time_{10, 0, RCL_ROS_TIME};
  rclcpp::Publisher<rosgraph_msgs::msg::Clock>::SharedPtr clock_;
};

const std::string jtc = "joint_trajectory_controller", jtc_type = "joint_trajectory_controller/JointTrajectoryController";
const std::string forward_type = "forward_command_controller/ForwardCommandController";

/// Error of the trajectory controller [rad], in a motion of 8 s, over a whole cycle of 4 s from the third second on.
double tracked(Managed & m, bool compensated)
{
  auto enable = m.user->create_publisher<std_msgs::msg::Bool>("/friction_compensation/enable", 10);
  auto paths = m.user->create_publisher<trajectory_msgs::msg::JointTrajectory>("/" + jtc + "/joint_trajectory", 10);
  double sum = 0.0;
  int count = 0, heard = 0;
  bool measuring = false;
  auto states = m.user->create_subscription<control_msgs::msg::JointTrajectoryControllerState>(
    "/" + jtc + "/controller_state", rclcpp::SensorDataQoS().keep_last(50),
    [&](const control_msgs::msg::JointTrajectoryControllerState & state) {
      ++heard;
      for (double error : state.error.positions) {
        sum += measuring ? error * error : 0.0, count += measuring;
      }
    });
  std::string doubt = "?";
  auto doubts = m.user->create_subscription<std_msgs::msg::String>(
    "/friction_compensation/doubt", 10, [&](const std_msgs::msg::String & text) { doubt = text.data; });
  EXPECT_TRUE(m.until([&] { return enable->get_subscription_count() > 0 && paths->get_subscription_count() > 0; }));
  std_msgs::msg::Bool on;
  on.data = compensated;
  enable->publish(on);
  EXPECT_TRUE(m.until([&] { return heard > 0 && doubt.empty() == compensated; })) << doubt;
  trajectory_msgs::msg::JointTrajectory path;
  path.joint_names = {"shoulder", "elbow"};
  for (int k = 1; k <= 400; ++k) {
    const double t = 0.02 * k, w = 0.5 * M_PI, a = 0.5 * (1.0 - std::cos(w * t));
    const double v = k < 400 ? 0.5 * w * std::sin(w * t) : 0.0;
    trajectory_msgs::msg::JointTrajectoryPoint point;
    point.positions = {a, -a}, point.velocities = {v, -v};
    point.time_from_start = rclcpp::Duration::from_seconds(t);
    path.points.push_back(point);
  }
  paths->publish(path);
  const auto go = [&](int steps) {
      for (int k = 0; k < steps; ++k) {  // goals reach our controller as they would in real time: one period late
        m.step(1, [&heard, before = heard] { return heard > before; });
      }
    };
  go(500);
  measuring = true;
  go(1000);
  measuring = false;
  go(550);
  EXPECT_GT(count, 1900);
  EXPECT_TRUE(doubt.empty() == compensated) << doubt;
  for (const auto & joint : simulated_joints()) {
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
  for (const auto & controller : m.manager->get_loaded_controllers()) {
    EXPECT_EQ(controller.c->get_lifecycle_state().label(), "active") << controller.info.name;
    EXPECT_EQ(controller.c->is_in_chained_mode(), controller.info.name == ours);
  }
  const double with = tracked(m, true), without = tracked(m, false);
  RecordProperty("with", std::to_string(with)), RecordProperty("without", std::to_string(without));
  if (const char * figures = std::getenv("STRIBECK_FIGURES")) {
    std::ofstream(figures) << "{\"with\": " << with << ", \"without\": " << without << "}\n";
  }
  EXPECT_LT(with, 0.5 * without);
}

TEST(InControllerManager, IsUnloadedAndLoadedAgain)
{
  Managed m;
  for (int k = 0; k < 2; ++k) {
    ASSERT_TRUE(m.loads(ours, type));
    ASSERT_TRUE(m.switches({ours}));
    m.step(20);
    ASSERT_TRUE(m.switches({}, {ours}));
    ASSERT_TRUE(m.unloads(ours));
  }
}

TEST(InControllerManager, WritesTheLastReferenceWhereOneIsNotANumber)
{
  Managed m("    enabled: false\n");
  ASSERT_TRUE(m.loads(ours, type));
  ASSERT_TRUE(m.switches({ours}));
  auto references = m.user->create_publisher<std_msgs::msg::Float64MultiArray>("/friction_compensation/reference", 10);
  ASSERT_TRUE(m.until([&] { return references->get_subscription_count() > 0; }));
  std_msgs::msg::Float64MultiArray reference;
  reference.data = {0.2, -0.1};
  references->publish(reference);
  ASSERT_TRUE(m.until([] { return simulated_joints()[0].effort == 0.2 && simulated_joints()[1].effort == -0.1; }));
  reference.data = {missing, -0.15};
  references->publish(reference);
  ASSERT_TRUE(m.until([] { return simulated_joints()[1].effort == -0.15; }));
  m.step(50);
  EXPECT_EQ(simulated_joints()[0].effort, 0.2);
}

TEST(InControllerManager, PassesTheReferenceOnWhileStatesAreNotNumbersAndReturns)
{
  Managed m;
  ASSERT_TRUE(m.loads(ours, type));
  ASSERT_TRUE(m.loads("forward", forward_type));
  ASSERT_TRUE(m.switches({ours, "forward"}));
  auto commands = m.user->create_publisher<std_msgs::msg::Float64MultiArray>("/forward/commands", 10);
  ASSERT_TRUE(m.until([&] { return commands->get_subscription_count() > 0; }));
  std_msgs::msg::Float64MultiArray command;
  command.data = {0.5, 0.5};
  commands->publish(command);
  const auto compensated = [] { return simulated_joints()[0].effort > 0.51; };
  ASSERT_TRUE(m.until(compensated));
  simulated_joints()[0].spoiled = true;
  m.step(2);
  for (int k = 0; k < 50; ++k) {
    m.step();
    EXPECT_EQ(simulated_joints()[0].effort, 0.5);
    EXPECT_EQ(simulated_joints()[1].effort, 0.5);
  }
  simulated_joints()[0].spoiled = false;
  EXPECT_TRUE(m.until(compensated)) << "friction returns with good states";
}

TEST(InControllerManager, LeavesTheReferenceWithoutFrictionWhenItIsDeactivated)
{
  Managed m;
  ASSERT_TRUE(m.loads(ours, type));
  ASSERT_TRUE(m.loads("forward", forward_type));
  ASSERT_TRUE(m.switches({ours, "forward"}));
  auto commands = m.user->create_publisher<std_msgs::msg::Float64MultiArray>("/forward/commands", 10);
  ASSERT_TRUE(m.until([&] { return commands->get_subscription_count() > 0; }));
  std_msgs::msg::Float64MultiArray command;
  command.data = {0.5, 0.5};
  commands->publish(command);
  ASSERT_TRUE(m.until([] { return simulated_joints()[0].effort > 0.51; }));
  ASSERT_TRUE(m.switches({}, {"forward", ours}));
  m.step(5);
  EXPECT_EQ(simulated_joints()[0].effort, 0.5);
}

TEST(InControllerManager, RefusesWhatIsDocumented)
{
  {
    Managed m("    state_interfaces: [position, velocity, temperature]\n");
    ASSERT_TRUE(m.loads(ours, type));
    EXPECT_FALSE(m.switches({ours})) << "the hardware has no temperature";
  }
  {
    Managed m("    gain: 5.0\n");
    EXPECT_FALSE(m.loads(ours, type)) << "gain out of range";
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
