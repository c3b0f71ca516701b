// Copyright the Stribeck maintainers. SPDX-License-Identifier: Apache-2.0
/// \file
/// Zero-torque mode: joints that bear their own weight, so that a hand guides them; the counterpart
/// of live/guiding.py and live/zero_torque.py of the Python package, which explain it. The
/// compensator's torque against friction comes on top.
#ifndef STRIBECK_CONTROLLERS__GUIDING_HPP_
#define STRIBECK_CONTROLLERS__GUIDING_HPP_

#include <cmath>
#include <cstdint>

#include "stribeck_controllers/dynamics.hpp"
#include "stribeck_controllers/incoming.hpp"

namespace stribeck
{

constexpr double hold_bandwidth = 25.0;  ///< Of the hold [rad/s].
/// Largest bandwidth of the hold times the delay of the loop [rad].
constexpr double hold_loop_share = 0.2;
constexpr double brake_bandwidth = 20.0;     ///< Of the brake of fast joints [rad/s].
constexpr double hold_rising = 0.2;          ///< Time constant of the hold at standstill [s].
constexpr double hold_falling = 0.05;        ///< Time constant of the hold in motion [s].
constexpr double guided_still = 0.02;        ///< Speed below which a joint stands still [rad/s].
constexpr double hold_friction_share = 0.1;  ///< Share of the friction at rest in the hold.
/// Level of the hold from which on a joint has come to rest.
constexpr double hold_rests = 0.99;
/// Share of its limit above which the hold keeps a joint, not friction.
constexpr double hold_bears = 0.5;

/// Torques of guided joints without those against friction, in the robot's coordinates.
class Guiding
{
public:
  int joints = 0;
  Vector level{};    ///< friction at rest [N m]
  Vector limit{};    ///< torque limits [N m]
  Vector fastest{};  ///< speeds above which joints are braked [rad/s]
  double gravity_error = 0.1, ramp_time = 0.5;
  double bandwidth = hold_bandwidth;
  double share = 1.0;  ///< of the torques that bear, which falls while the mode is being left
  bool ended = false;  ///< the mode has been left and all joints rest
  /// joints that the hold keeps at rest, because their friction is too small
  Mask holding{};

  void begin() noexcept
  {
    has_anchor_ = false, begun_ = 0.0, released_ = -1.0, share = 1.0, ended = false;
    still_.fill(1.0), holding.fill(false);
  }

  /// Leave the mode: joints are damped and borne less and less.
  void release() noexcept { released_ = released_ > 0.0 ? released_ : 0.0; }

  /// Torque at positions q [rad] and velocities v [rad/s], 0 from the state on at which the mode
  /// has ended. \param inertia diagonal of the mass matrix, \param gravity weight.
  Vector torque(
    const Vector & q, const Vector & v, const Matrix & inertia, const Vector & gravity,
    double dt) noexcept
  {
    begun_ += dt;
    const double left = ramp_time != 0.0 ? maximum(1.0 - begun_ / ramp_time, 0.0) : 0.0;
    const bool leaves = released_ >= 0.0;
    if (leaves)
    {
      released_ += dt;
      share = ramp_time != 0.0 ? maximum(1.0 - released_ / ramp_time, 0.0) : 0.0;
    }
    Vector found{};
    bool all = true;
    for (int k = 0; k < joints; ++k)
    {
      if (!has_anchor_)
      {
        anchor_[k] = q[k];
      }
      const double mass = inertia[k][k], speed = std::abs(v[k]), weight = gravity[k];
      const bool still = speed < guided_still;
      const double part = 1.0 - std::exp(-dt / (still ? hold_rising : hold_falling));
      still_[k] = still_[k] + part * ((still ? 1.0 : 0.0) - still_[k]);
      const double rest =
        still_[k] * (gravity_error * std::abs(weight) + hold_friction_share * level[k]);
      const double most = rest + left * maximum(limit[k] - rest, 0.0);
      const double stiffness = mass * bandwidth * bandwidth, damping = 2.0 * mass * bandwidth;
      anchor_[k] = q[k] + bounded(anchor_[k] - q[k], most / stiffness);
      const double held = bounded(stiffness * (anchor_[k] - q[k]) - damping * v[k], most);
      const bool rests = still && still_[k] > hold_rests;
      holding[k] = rests && left == 0.0 && std::abs(held) > hold_bears * most;
      all = all && rests;
      const double slows =
        leaves ? -damping * v[k]
               : -brake_bandwidth * mass * sign_of(v[k]) * maximum(speed - fastest[k], 0.0);
      found[k] = bounded(share * (weight + held) + slows, limit[k]);
    }
    has_anchor_ = true;
    ended = leaves && share == 0.0 && all;
    return ended ? filled(0.0) : found;
  }

private:
  static double bounded(double value, double most) noexcept
  {
    return minimum(maximum(value, -most), most);
  }

  Vector anchor_{}, still_{};
  double begun_ = 0.0, released_ = -1.0;
  bool has_anchor_ = false;
};

/// Begins and ends the zero-torque mode of joints whose dynamics are known.
class ZeroTorque
{
public:
  /// Why the mode is off, or is being left.
  enum class Reason : std::uint8_t
  {
    none,
    not_begun,
    left,
    hot,
    states_lost,
    commanded,
    switched_off
  };

  Guiding guiding;
  bool on = false;
  Reason reason = Reason::not_begun;
  double hottest = infinity;  ///< temperature of a motor at which the mode ends [deg C]
  double timeout = 0.04;      ///< without states for longer than this the weight begins to fade [s]
  const Dynamics * dynamics = nullptr;

  /// Hold the joints where they are at the next state, and let go within the ramp time.
  void begin(double now) noexcept
  {
    guiding.begin();
    on = true, reason = Reason::none, seen_ = now, has_stamp_ = has_weight_ = false;
  }

  /// Leave the mode with damping.
  void release(Reason why) noexcept
  {
    if (on && reason == Reason::none)
    {
      guiding.release();
      reason = why;
    }
  }

  /// Leave it at once.
  void stop(Reason why) noexcept
  {
    if (on)
    {
      on = false, reason = why;
    }
  }

  /// Torque without that against friction, 0 while the mode is off.
  /// \param now time on a steady clock [s]. \param q positions, nullptr while states are not
  /// trusted; \param v velocities.
  /// \param stamp of the state [s]. \param temperature of the motors, NaN where unknown [deg C].
  Vector torque(
    double now, const Vector * q, const Vector * v, double stamp,
    const Vector & temperature) noexcept
  {
    if (!on)
    {
      return filled(0.0);
    }
    if (q == nullptr || v == nullptr)
    {
      return lost(now);
    }
    for (int k = 0; k < guiding.joints; ++k)
    {
      if (temperature[k] >= hottest)
      {
        release(Reason::hot);
      }
    }
    const Vector rest = filled(0.0);
    dynamics->evaluate(*q, rest, mass_, weight_);
    const double passed = has_stamp_ ? maximum(stamp - stamp_, 0.0) : 0.0;
    seen_ = now, stamp_ = stamp, has_stamp_ = has_weight_ = true;
    const Vector found = guiding.torque(*q, *v, mass_, weight_, minimum(passed, longest_step));
    on = !guiding.ended;
    return found;
  }

private:
  /// The weight at the last pose, which fades after the time-out.
  Vector lost(double now) noexcept
  {
    const double over = maximum(now - seen_ - timeout, 0.0), ramp = guiding.ramp_time;
    const double share = ramp != 0.0 ? maximum(1.0 - over / ramp, 0.0) : over == 0.0 ? 1.0 : 0.0;
    Vector found = filled(0.0);
    if (!has_weight_ || share == 0.0)
    {
      stop(Reason::states_lost);
      return found;
    }
    if (reason == Reason::none)
    {
      guiding.begin();
    }
    for (int k = 0; k < guiding.joints; ++k)
    {
      const double limit = guiding.limit[k];
      found[k] = share * guiding.share * minimum(maximum(weight_[k], -limit), limit);
    }
    return found;
  }

  Matrix mass_{};
  Vector weight_{};
  double seen_ = 0.0, stamp_ = 0.0;
  bool has_stamp_ = false, has_weight_ = false;
};

}  // namespace stribeck

#endif  // STRIBECK_CONTROLLERS__GUIDING_HPP_
