// Copyright the Stribeck maintainers. SPDX-License-Identifier: Apache-2.0
/// \file
/// Friction of joints for inverse dynamics: of a velocity, and under the torque that a motion needs
/// without friction. Needs the C++ standard library only.
#ifndef STRIBECK_CONTROLLERS__JOINT_FRICTION_HPP_
#define STRIBECK_CONTROLLERS__JOINT_FRICTION_HPP_

#include <cmath>
#include <functional>
#include <stdexcept>
#include <string>

#include "stribeck_controllers/law.hpp"

namespace stribeck
{

/// Law and values of one joint, and the largest torque of its motor [N m].
struct JointFriction
{
  Law law;
  FrictionValues values;
  double max_torque = 0.0;
  bool enabled = true;  ///< whether there is a torque against its friction
};

/// Torque against the friction of a motion without load [N m]: sgn(v) tau_f^m(0, 0) - tau_0; 0 at
/// rest, where its direction is open.
inline double friction_without_load(
  const JointFriction & joint, double velocity, double position = 0.0) noexcept
{
  return joint.enabled
           ? cancelling_torque(
               joint.law, joint.values, sign_of(velocity), velocity, 0.0, 0.0, {}, position)
           : 0.0;
}

/// Torque against the friction of a motion for which the joint needs a torque tau besides [N m].
///
/// The solution of tau_ff = sgn(v) tau_f^m(tau + tau_ff, -tau) - tau_0: the motor gives tau and
/// tau_ff, and the other torques on the joint, inertia among them, are -tau. 0 at rest.
///
/// \param torque tau, of inertia, Coriolis effects and gravity [N m].
inline double friction_under_load(
  const JointFriction & joint, double velocity, double torque, double position = 0.0) noexcept
{
  constexpr int steps = 8;  // the first step solves pieces without a kink
  const double share = joint.enabled ? sign_of(velocity) : 0.0;
  double found = 0.0;
  for (int k = 0; k < steps && share != 0.0; ++k)
  {
    found = feed_forward_torque(
      joint.law, joint.values, share, velocity, torque, -torque, {}, found, joint.max_torque,
      position);
  }
  return found;
}

/// A joint from named values, those of the section `friction` of an export to ros2_control.
///
/// \param number_of the value with a name, or its second argument if there is none.
/// \throws std::invalid_argument for a law that does not exist, values that cannot be, and no
/// torque limit.
inline JointFriction joint_friction(
  const std::string & name, const std::string & law, bool asymmetric,
  const std::function<double(const std::string &, double)> & number_of)
{
  struct Named : FrictionValues
  {
    bool asymmetric = false;
  };
  if (law.size() != 2 || law[0] != 'm' || law[1] < '1' || law[1] > '6')
  {
    throw std::invalid_argument(name + ".law: expected m1 to m6, found '" + law + "'");
  }
  Named given;
  given.asymmetric = asymmetric;
  for (const char * key : value_names)
  {
    double & value = *value_named(given, key);
    value = number_of(key, value);
  }
  JointFriction joint{law_of(law[1] - '0', given), given, number_of("max_torque", 0.0)};
  const Refusal refused = refused_value(joint.law, joint.values);
  if (refused.name != nullptr)
  {
    throw std::invalid_argument(
      name + "." + refused.name + ": must be " + refused.valid + ", found " +
      std::to_string(refused.found));
  }
  if (!(joint.max_torque > 0.0 && std::isfinite(joint.max_torque)))
  {
    throw std::invalid_argument(
      name + ".max_torque: must be positive, found " + std::to_string(joint.max_torque));
  }
  return joint;
}

}  // namespace stribeck

#endif  // STRIBECK_CONTROLLERS__JOINT_FRICTION_HPP_
