// Copyright the Stribeck maintainers. SPDX-License-Identifier: Apache-2.0
/// \file
/// The friction laws M1 to M6 and the torque that cancels them. Needs the C++ standard library
/// only.
///
/// A law gives a budget tau_f^m >= 0, the largest torque with which friction can oppose a motion:
///
///     M1  K_v |v| + K_c
///     M2  M1 + s K_c^s
///     M3  M1 + K_l |tau_m - tau_e|
///     M4  M3 + s (K_c^s + K_l^s |tau_m - tau_e|)
///     M5  M1 + |K_m tau_m - K_e tau_e| + s (K_c^s + |K_m^s tau_m - K_e^s tau_e|)
///     M6  M5 + s Q, Q = K_e^q tau_e^2 if |tau_m| > |tau_e|, K_m^q tau_m^2 if |tau_m| < |tau_e|,
///         where tau_m tau_e < 0, else 0
///
/// with the Stribeck weight s = exp(-|v / v_s|^alpha), velocity v [rad/s], motor torque tau_m and
/// external torque tau_e at the output shaft [N m]. Source: Duclusaud et al., "Extended Friction
/// Models for the Physics Simulation of Servo Actuators", eqs. (3), (6)-(10). The terms are in
/// terms.hpp. The same formulas, in the same order of operations, as model/law.py and
/// live/friction.py of the Python package; tests hold the two to each other.
#ifndef STRIBECK_CONTROLLERS__LAW_HPP_
#define STRIBECK_CONTROLLERS__LAW_HPP_

#include <cmath>
#include <limits>

#include "stribeck_controllers/terms.hpp"

namespace stribeck
{

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

/// Smaller of two numbers; NaN if one of them is.
inline double minimum(double a, double b) noexcept { return a <= b || a != a ? a : b; }

/// Larger of two numbers; NaN if one of them is.
inline double maximum(double a, double b) noexcept { return a >= b || a != a ? a : b; }

/// x clipped to +- limit.
inline double clipped(double x, double limit) noexcept
{
  return minimum(maximum(x, -limit), limit);
}

/// x clipped to [lower, upper].
inline double clip(double x, double lower, double upper) noexcept
{
  return minimum(maximum(x, lower), upper);
}

/// -1, 0 or 1; NaN for NaN.
inline double sign_of(double x) noexcept { return x > 0.0 ? 1.0 : x < 0.0 ? -1.0 : x; }

/// Budgets against positive and negative motion [N m].
struct Budget
{
  double positive, negative;
};

/// Ratio of present to identified friction [1]: of all friction except viscous friction, and of
/// viscous friction.
struct Scales
{
  double dry = 1.0, viscous = 1.0;
};

/// Largest friction that feed-forward torque may add by loading the transmission, relative to that
/// torque [1].
constexpr double largest_feedback = 0.9;
constexpr double full_speed = 10.0;  ///< Speed up to which viscous friction counts [rad/s].
/// Step for the slope of the budget, as a fraction of the torque limit.
constexpr double probe_share = 1e-7;

/// The budgets of a law (see the head of this file).
inline Budget friction_budget(
  const Law & law, const FrictionValues & p, double motor, double external, double velocity,
  double position = 0.0) noexcept
{
  const Conditions x{velocity, std::abs(velocity), motor, external, position};
  const double shared = shared_friction(law, p, x);
  const double positive = viscous_part(law, p, x) + static_friction(law, p, x) + shared;
  if (!differs_by_direction(law))
  {
    return {positive, positive};
  }
  const FrictionValues q = negative_values(law, p);
  return {positive, viscous_part(law, q, x) + static_friction(law, q, x) + shared};
}

/// tau_stop = -(J / dt v + tau): torque that stops the joint within one step, tau the sum of all
/// others [N m].
inline double stopping_torque(
  double velocity, double net_torque, double inertia, double dt) noexcept
{
  return -(inertia / dt * velocity + net_torque);
}

/// tau_f = clip(tau_stop, [-tau_f^m+, tau_f^m-]) [N m]; + and - are the directions of the next
/// motion.
inline double friction_torque(double stop, const Budget & budget) noexcept
{
  return clip(stop, -budget.positive, budget.negative);
}

/// Viscous part of the budget against motion in a direction, K_v^+- |v| [N m].
inline double viscous_friction(
  const Law & law, const FrictionValues & p, double direction, double velocity) noexcept
{
  const Conditions x{velocity, std::abs(velocity), 0.0, 0.0, 0.0};
  return direction < 0.0 && differs_by_direction(law)
           ? viscous_part(law, negative_values(law, p), x)
           : viscous_part(law, p, x);
}

/// Largest slope of the viscous friction at a speed, of both directions [N m s/rad].
inline double largest_viscous_slope(
  const Law & law, const FrictionValues & p, double speed) noexcept
{
  const Conditions x{speed, speed, 0.0, 0.0, 0.0};
  return maximum(viscous_slope(law, p, x), viscous_slope(law, negative_values(law, p), x));
}

/// share (s_c (tau_f^m - K_v |v|) + s_v K_v |v|) - |share| tau_0: torque that cancels a fraction of
/// the friction [N m].
///
/// \param share gain times direction of the motion, in [-2, 2].
/// \param motor motor torque, including the feed-forward torque [N m].
/// \param scales s_c and s_v.
inline double cancelling_torque(
  const Law & law, const FrictionValues & p, double share, double velocity, double motor,
  double external, const Scales & scales = {}, double position = 0.0) noexcept
{
  const Budget budget = friction_budget(law, p, motor, external, velocity, position);
  double against = share > 0.0 ? budget.positive : budget.negative;
  against = scales.dry * against +
            (scales.viscous - scales.dry) * viscous_friction(law, p, share, velocity);
  return law.has(offset_terms)
           ? share * against -
               std::abs(share) * offset_torque(law, p, {0.0, 0.0, 0.0, 0.0, position})
           : share * against;
}

/// A point next to the guess of a torque, on the side of the solution.
inline double probed(double guess, double probe, double share) noexcept
{
  return guess + (share < 0.0 ? -probe : probe);
}

/// One Newton step from a guess towards the solution of x = f(x), clipped to +- limit.
///
/// \param here, there f at probed(guess, probe, share) and at probed(guess, wider, share).
inline double fixed_point(
  double guess, double share, double probe, double wider, double here, double there,
  double limit) noexcept
{
  const double near = probed(guess, probe, share), other = probed(guess, wider, share);
  const double slope = clipped((there - here) / (other - near), largest_feedback);
  return clipped(near + (here - near) / (1.0 - slope), limit);
}

/// Largest slope of the budget over motor torque at rest: the sum of the largest slope of each term
/// [1].
inline double load_feedback(const Law & law, const FrictionValues & p, double torque_max) noexcept
{
  LoadSlopes largest{};
  for (int i = -4; i <= 4; ++i)
  {
    for (int k = -4; k <= 4; ++k)
    {
      widen(largest, law, p, {0.0, 0.0, torque_max * 0.25 * i, 2.0 * torque_max * 0.25 * k, 0.0});
    }
  }
  double sum = 0.0;
  for (const double slope : largest)
  {
    sum = sum + slope;
  }
  return sum;
}

/// Feed-forward torque of one joint within +- limit [N m]: g (d tau_f^m(tau_m + tau_ff, tau_e) -
/// |d| tau_0).
///
/// \param share gain times direction.
/// \param motor motor torque of the controller alone [N m].
/// \param guess feed-forward torque of the previous cycle, from which one Newton step leads to the
/// fixed point [N m].
inline double feed_forward_torque(
  const Law & law, const FrictionValues & p, double share, double velocity, double motor,
  double external, const Scales & scales, double guess, double limit,
  double position = 0.0) noexcept
{
  const double probe = probe_share * limit, wider = 2.0 * probe_share * limit;
  const double here = cancelling_torque(
    law, p, share, velocity, motor + probed(guess, probe, share), external, scales, position);
  const double there = cancelling_torque(
    law, p, share, velocity, motor + probed(guess, wider, share), external, scales, position);
  return fixed_point(guess, share, probe, wider, here, there, limit);
}

}  // namespace stribeck

#endif  // STRIBECK_CONTROLLERS__LAW_HPP_
