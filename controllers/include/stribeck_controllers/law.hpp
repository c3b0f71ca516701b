// Copyright the Stribeck maintainers. SPDX-License-Identifier: Apache-2.0
/// \file
/// The friction laws M1 to M6 and the torque that cancels them. Needs the C++ standard library only.
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
/// with the Stribeck weight s = exp(-|v / v_s|^alpha), velocity v [rad/s], motor torque tau_m and external torque tau_e at
/// the output shaft [N m]. Source: Duclusaud et al., "Extended Friction Models for the Physics Simulation of Servo
/// Actuators", eqs. (3), (6)-(10). The same formulas, in the same order of operations, as core/friction.py and
/// core/compensation.py of the Python package; tests hold the two to each other.
#ifndef STRIBECK_CONTROLLERS__LAW_HPP_
#define STRIBECK_CONTROLLERS__LAW_HPP_

#include <cmath>
#include <limits>

namespace stribeck
{

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

/// Smaller of two numbers; NaN if one of them is.
inline double minimum(double a, double b) noexcept { return a <= b || a != a ? a : b; }

/// Larger of two numbers; NaN if one of them is.
inline double maximum(double a, double b) noexcept { return a >= b || a != a ? a : b; }

/// x clipped to +- limit.
inline double clipped(double x, double limit) noexcept { return minimum(maximum(x, -limit), limit); }

/// x clipped to [lower, upper].
inline double clip(double x, double lower, double upper) noexcept { return minimum(maximum(x, lower), upper); }

/// -1, 0 or 1; NaN for NaN.
inline double sign_of(double x) noexcept { return x > 0.0 ? 1.0 : x < 0.0 ? -1.0 : x; }

/// How the budget grows with the torques on the transmission.
enum class Load { none, symmetric, directional };

/// Terms of a friction budget.
struct Law
{
  bool stribeck = false;    ///< terms that fade with velocity
  Load load = Load::none;
  bool quadratic = false;   ///< the quadratic term of M6; needs stribeck and a directional load
  bool asymmetric = false;  ///< separate Coulomb and viscous friction of negative motion
  bool offset = false;      ///< a constant torque beside motor and external torque
};

/// The law M1 to M6, by its number; M1 for any other number.
inline Law law_numbered(int number) noexcept
{
  switch (number) {
    case 2: return {true, Load::none, false, false, false};
    case 3: return {false, Load::symmetric, false, false, false};
    case 4: return {true, Load::symmetric, false, false, false};
    case 5: return {true, Load::directional, false, false, false};
    case 6: return {true, Load::directional, true, false, false};
    default: return {};
  }
}

/// Values of a law, named as in parameter files [N m, N m s/rad, rad/s, 1]; those that the law lacks are not used.
struct FrictionValues
{
  double friction_base = 0.0;
  double friction_stribeck = 0.0;
  double load_friction_base = 0.0;
  double load_friction_stribeck = 0.0;
  double load_friction_motor = 0.0;
  double load_friction_external = 0.0;
  double load_friction_motor_stribeck = 0.0;
  double load_friction_external_stribeck = 0.0;
  double load_friction_motor_quad = 0.0;
  double load_friction_external_quad = 0.0;
  double dtheta_stribeck = 1.0;
  double alpha = 1.0;
  double friction_viscous = 0.0;
  double friction_base_negative = 0.0;
  double friction_viscous_negative = 0.0;
  double torque_offset = 0.0;
};

/// Budgets against positive and negative motion [N m].
struct Budget
{
  double positive, negative;
};

/// Ratio of present to identified friction [1]: of all friction except viscous friction, and of viscous friction.
struct Scales
{
  double dry = 1.0, viscous = 1.0;
};

constexpr double smallest_ratio = 1e-30;     ///< Velocities below this share of the Stribeck velocity count as rest.
constexpr double largest_feedback = 0.9;     ///< Largest friction that feed-forward torque may add by loading the
                                             ///< transmission, relative to that torque [1].
constexpr double probe_share = 1e-7;         ///< Step for the slope of the budget, as a fraction of the torque limit.

/// s = exp(-|v / v_s|^alpha), 1 at rest.
inline double stribeck_weight(double velocity, double dtheta_stribeck, double alpha) noexcept
{
  const double ratio = maximum(std::abs(velocity) / dtheta_stribeck, smallest_ratio);
  return std::exp(-std::exp(alpha * std::log(ratio)));
}

/// The term Q of M6 at rest [N m], zero unless the torques oppose each other.
inline double quadratic_friction(const FrictionValues & p, double motor, double external) noexcept
{
  if (!(motor * external < 0.0)) {
    return 0.0;
  }
  if (std::abs(motor) > std::abs(external)) {
    return p.load_friction_external_quad * external * external;
  }
  return std::abs(motor) < std::abs(external) ? p.load_friction_motor_quad * motor * motor : 0.0;
}

/// The budgets of a law (see the head of this file).
inline Budget friction_budget(
  const Law & law, const FrictionValues & p, double motor, double external, double velocity) noexcept
{
  const double speed = std::abs(velocity);
  double load = 0.0, fading = law.stribeck ? p.friction_stribeck : 0.0;
  if (law.load == Load::symmetric) {
    const double transmitted = std::abs(motor - external);
    load = p.load_friction_base * transmitted;
    if (law.stribeck) {
      fading = fading + p.load_friction_stribeck * transmitted;
    }
  } else if (law.load == Load::directional) {
    load = std::abs(p.load_friction_motor * motor - p.load_friction_external * external);
    if (law.stribeck) {
      fading = fading + std::abs(
        p.load_friction_motor_stribeck * motor - p.load_friction_external_stribeck * external);
    }
  }
  if (law.quadratic) {
    fading = fading + quadratic_friction(p, motor, external);
  }
  if (law.stribeck) {
    load = load + stribeck_weight(velocity, p.dtheta_stribeck, p.alpha) * fading;
  }
  const double positive = p.friction_viscous * speed + p.friction_base + load;
  if (!law.asymmetric) {
    return {positive, positive};
  }
  return {positive, p.friction_viscous_negative * speed + p.friction_base_negative + load};
}

/// tau_stop = -(J / dt v + tau): torque that stops the joint within one step, tau the sum of all others [N m].
inline double stopping_torque(double velocity, double net_torque, double inertia, double dt) noexcept
{
  return -(inertia / dt * velocity + net_torque);
}

/// tau_f = clip(tau_stop, [-tau_f^m+, tau_f^m-]) [N m]; + and - are the directions of the next motion.
inline double friction_torque(double stop, const Budget & budget) noexcept
{
  return clip(stop, -budget.positive, budget.negative);
}

/// Viscous part of the budget against motion in a direction, K_v^+- |v| [N m].
inline double viscous_friction(
  const Law & law, const FrictionValues & p, double direction, double velocity) noexcept
{
  const bool negative = law.asymmetric && direction < 0.0;
  return (negative ? p.friction_viscous_negative : p.friction_viscous) * std::abs(velocity);
}

/// share (s_c (tau_f^m - K_v |v|) + s_v K_v |v|) - |share| tau_0: torque that cancels a fraction of the friction [N m].
///
/// \param share gain times direction of the motion, in [-2, 2].
/// \param motor motor torque, including the feed-forward torque [N m].
/// \param scales s_c and s_v.
inline double cancelling_torque(
  const Law & law, const FrictionValues & p, double share, double velocity, double motor, double external,
  const Scales & scales = {}) noexcept
{
  const Budget budget = friction_budget(law, p, motor, external, velocity);
  double against = share > 0.0 ? budget.positive : budget.negative;
  against = scales.dry * against + (scales.viscous - scales.dry) * viscous_friction(law, p, share, velocity);
  return law.offset ? share * against - std::abs(share) * p.torque_offset : share * against;
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
  double guess, double share, double probe, double wider, double here, double there, double limit) noexcept
{
  const double near = probed(guess, probe, share), other = probed(guess, wider, share);
  const double slope = clipped((there - here) / (other - near), largest_feedback);
  return clipped(near + (here - near) / (1.0 - slope), limit);
}

/// Largest slope of the budget over motor torque at rest [1].
inline double load_feedback(const Law & law, const FrictionValues & p, double torque_max) noexcept
{
  double slope = 0.0;
  if (law.load == Load::symmetric) {
    slope = std::abs(p.load_friction_base) + (law.stribeck ? std::abs(p.load_friction_stribeck) : 0.0);
  } else if (law.load == Load::directional) {
    slope = std::abs(p.load_friction_motor) + (law.stribeck ? std::abs(p.load_friction_motor_stribeck) : 0.0);
  }
  return law.quadratic ? slope + 2.0 * p.load_friction_motor_quad * torque_max : slope;
}

/// Feed-forward torque of one joint within +- limit [N m]: g (d tau_f^m(tau_m + tau_ff, tau_e) - |d| tau_0).
///
/// \param share gain times direction.
/// \param motor motor torque of the controller alone [N m].
/// \param guess feed-forward torque of the previous cycle, from which one Newton step leads to the fixed point [N m].
inline double feed_forward_torque(
  const Law & law, const FrictionValues & p, double share, double velocity, double motor, double external,
  const Scales & scales, double guess, double limit) noexcept
{
  const double probe = probe_share * limit, wider = 2.0 * probe_share * limit;
  const double here = cancelling_torque(
    law, p, share, velocity, motor + probed(guess, probe, share), external, scales);
  const double there = cancelling_torque(
    law, p, share, velocity, motor + probed(guess, wider, share), external, scales);
  return fixed_point(guess, share, probe, wider, here, there, limit);
}

}  // namespace stribeck

#endif  // STRIBECK_CONTROLLERS__LAW_HPP_
