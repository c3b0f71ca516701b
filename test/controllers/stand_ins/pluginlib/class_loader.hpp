// Copyright the Stribeck maintainers. SPDX-License-Identifier: Apache-2.0
// A loader that knows one plug-in, for tests without ROS.
#pragma once
#include <memory>
#include <stdexcept>
#include <string>

#include "inverse_dynamics_solver/inverse_dynamics_solver.hpp"

namespace pluginlib
{
template<class Base>
class ClassLoader
{
public:
  ClassLoader(const std::string &, const std::string &) {}
  std::shared_ptr<Base> createSharedInstance(const std::string & name)
  {
    if (name != "test/Rigid") {
      throw std::runtime_error("no plug-in " + name);
    }
    return std::make_shared<inverse_dynamics_solver::Rigid>();
  }
};
}  // namespace pluginlib
