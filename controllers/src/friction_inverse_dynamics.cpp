// Copyright the Stribeck maintainers. SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <inverse_dynamics_solver/inverse_dynamics_solver.hpp>
#include <pluginlib/class_list_macros.hpp>
#include <pluginlib/class_loader.hpp>
#include <rclcpp/parameter.hpp>

#include "stribeck_controllers/joint_friction.hpp"

namespace stribeck_controllers
{

/// Identified friction on top of a solver of rigid dynamics.
///
/// Parameters below the given namespace: `rigid_solver`, the plug-in with inertia, Coriolis and
/// gravity torques, which is initialised with the same namespace; `joints`, in its order;
/// `friction.JOINT` with law, values and `max_torque`, as `stribeck export --format ros2_control`
/// writes them. The node has to declare its parameters from overrides.
class FrictionInverseDynamicsSolver : public inverse_dynamics_solver::InverseDynamicsSolver
{
public:
  /// \throws std::invalid_argument for parameters that are missing or cannot be.
  void initialize(
    rclcpp::node_interfaces::NodeParametersInterface::ConstSharedPtr parameters,
    const std::string & space = "", const std::string & robot_description = "") override
  {
    if (!parameters)
    {
      throw std::invalid_argument(
        "the friction parameters of the joints are missing: set them as parameters of the node");
    }
    const std::string prefix = space.empty() ? "" : space + ".";
    const auto value = [&](const std::string & name)
    {
      if (!parameters->has_parameter(prefix + name))
      {
        throw std::invalid_argument("parameter " + prefix + name + " is missing");
      }
      return parameters->get_parameter(prefix + name);
    };
    solver_ = loader_.createSharedInstance(value("rigid_solver").as_string());
    solver_->initialize(parameters, space, robot_description);
    joints_.clear();
    // A copy, because the loop would outlive the parameter that contains the names.
    const std::vector<std::string> names = value("joints").as_string_array();
    for (const std::string & joint : names)
    {
      const std::string own = "friction." + joint + ".";
      const auto number = [&](const std::string & name, double otherwise)
      {
        const std::string full = prefix + own + name;
        if (!parameters->has_parameter(full))
        {
          return otherwise;
        }
        const auto given = parameters->get_parameter(full);
        return given.get_type() == rclcpp::ParameterType::PARAMETER_INTEGER
                 ? static_cast<double>(given.as_int())
                 : given.as_double();
      };
      const bool has = parameters->has_parameter(prefix + own + "asymmetric");
      const bool asymmetric =
        has && parameters->get_parameter(prefix + own + "asymmetric").as_bool();
      joints_.push_back(
        stribeck::joint_friction(joint, value(own + "law").as_string(), asymmetric, number));
      if (parameters->has_parameter(prefix + own + "enabled"))
      {
        joints_.back().enabled = parameters->get_parameter(prefix + own + "enabled").as_bool();
      }
    }
  }

  Eigen::MatrixXd getInertiaMatrix(const Eigen::VectorXd & position) const override
  {
    return solver().getInertiaMatrix(position);
  }

  Eigen::VectorXd getCoriolisVector(
    const Eigen::VectorXd & position, const Eigen::VectorXd & velocity) const override
  {
    return solver().getCoriolisVector(position, velocity);
  }

  Eigen::VectorXd getGravityVector(const Eigen::VectorXd & position) const override
  {
    return solver().getGravityVector(position);
  }

  /// Torque against friction of joints without load [N m]; 0 at rest.
  Eigen::VectorXd getFrictionVector(const Eigen::VectorXd & velocity) const override
  {
    Eigen::VectorXd torque(checked(velocity));
    for (Eigen::Index k = 0; k < torque.size(); ++k)
    {
      torque[k] =
        stribeck::friction_without_load(joints_[static_cast<std::size_t>(k)], velocity[k]);
    }
    return torque;
  }

  /// Torque of a motion with friction, which grows with the torque of rigid dynamics where the law
  /// says so [N m].
  Eigen::VectorXd getTorques(
    const Eigen::VectorXd & position, const Eigen::VectorXd & velocity,
    const Eigen::VectorXd & acceleration) const override
  {
    Eigen::VectorXd torque = solver().getTorques(position, velocity, acceleration);
    checked(torque), checked(velocity), checked(position);
    for (Eigen::Index k = 0; k < torque.size(); ++k)
    {
      torque[k] += stribeck::friction_under_load(
        joints_[static_cast<std::size_t>(k)], velocity[k], torque[k], position[k]);
    }
    return torque;
  }

private:
  const inverse_dynamics_solver::InverseDynamicsSolver & solver() const
  {
    if (!solver_)
    {
      throw std::logic_error("initialize the solver before using it");
    }
    return *solver_;
  }

  /// The values, one for each joint.
  const Eigen::VectorXd & checked(const Eigen::VectorXd & values) const
  {
    if (values.size() != static_cast<Eigen::Index>(joints_.size()))
    {
      throw std::invalid_argument(
        "expected " + std::to_string(joints_.size()) + " joints, found " +
        std::to_string(values.size()));
    }
    return values;
  }

  pluginlib::ClassLoader<inverse_dynamics_solver::InverseDynamicsSolver> loader_{
    "inverse_dynamics_solver",
    "inverse_dynamics_solver::InverseDynamicsSolver"};  // outlives what it loaded
  std::shared_ptr<inverse_dynamics_solver::InverseDynamicsSolver> solver_;
  std::vector<stribeck::JointFriction> joints_;
};

}  // namespace stribeck_controllers

PLUGINLIB_EXPORT_CLASS(
  stribeck_controllers::FrictionInverseDynamicsSolver,
  inverse_dynamics_solver::InverseDynamicsSolver)
