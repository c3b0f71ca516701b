// Copyright the Stribeck maintainers. SPDX-License-Identifier: Apache-2.0
// The plug-in is found by its name in the installed package.
#include <gtest/gtest.h>

#include <memory>

#include "controller_interface/chainable_controller_interface.hpp"
#include "pluginlib/class_loader.hpp"

TEST(LoadFrictionCompensationController, IsFoundByItsName)
{
  pluginlib::ClassLoader<controller_interface::ChainableControllerInterface> loader(
    "controller_interface", "controller_interface::ChainableControllerInterface");
  const auto controller =
    loader.createSharedInstance("stribeck_controllers/FrictionCompensationController");
  ASSERT_NE(controller, nullptr);
  EXPECT_TRUE(controller->is_chainable());
}
