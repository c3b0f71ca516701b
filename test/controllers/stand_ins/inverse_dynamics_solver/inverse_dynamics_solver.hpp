// Copyright the Stribeck maintainers. SPDX-License-Identifier: Apache-2.0
// The virtual functions of unisa-acg/inverse-dynamics-solver (commit 24aeb34), for tests without ROS.
#pragma once
#include <Eigen/Core>
#include <string>

#include "rclcpp/parameter.hpp"

namespace inverse_dynamics_solver
{
class InverseDynamicsSolver
{
public:
  virtual ~InverseDynamicsSolver() = default;
  virtual void initialize(
    rclcpp::node_interfaces::NodeParametersInterface::ConstSharedPtr = nullptr, const std::string & = "",
    const std::string & = "") = 0;
  virtual Eigen::MatrixXd getInertiaMatrix(const Eigen::VectorXd &) const = 0;
  virtual Eigen::VectorXd getCoriolisVector(const Eigen::VectorXd &, const Eigen::VectorXd &) const = 0;
  virtual Eigen::VectorXd getGravityVector(const Eigen::VectorXd &) const = 0;
  virtual Eigen::VectorXd getFrictionVector(const Eigen::VectorXd &) const = 0;
  virtual Eigen::VectorXd getTorques(
    const Eigen::VectorXd & q, const Eigen::VectorXd & v, const Eigen::VectorXd & a) const
  {
    return getInertiaMatrix(q) * a + getCoriolisVector(q, v) + getGravityVector(q);
  }
};

/// Links that each move alone: inertia of 0.1 kg m², 2 N m of gravity per radian.
class Rigid : public InverseDynamicsSolver
{
public:
  void initialize(
    rclcpp::node_interfaces::NodeParametersInterface::ConstSharedPtr, const std::string &,
    const std::string &) override {}
  Eigen::MatrixXd getInertiaMatrix(const Eigen::VectorXd & q) const override
  {
    return 0.1 * Eigen::MatrixXd::Identity(q.size(), q.size());
  }
  Eigen::VectorXd getCoriolisVector(const Eigen::VectorXd &, const Eigen::VectorXd & v) const override { return 0.0 * v; }
  Eigen::VectorXd getGravityVector(const Eigen::VectorXd & q) const override { return 2.0 * q; }
  Eigen::VectorXd getFrictionVector(const Eigen::VectorXd & v) const override { return 0.0 * v; }
};
}  // namespace inverse_dynamics_solver
