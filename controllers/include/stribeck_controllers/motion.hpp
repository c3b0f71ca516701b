// Copyright the Stribeck maintainers. SPDX-License-Identifier: Apache-2.0
/// \file
/// Direction of the measured and of the intended motion of joints, as live/direction/motion.py,
/// travel.py, goals.py and feedforward_formulas.py of the Python package, which explain the method.
/// Needs the C++ standard library only.
#ifndef STRIBECK_CONTROLLERS__MOTION_HPP_
#define STRIBECK_CONTROLLERS__MOTION_HPP_

#include <array>
#include <cmath>

#include "stribeck_controllers/law.hpp"

#ifndef STRIBECK_MAX_JOINTS
#define STRIBECK_MAX_JOINTS 16
#endif

namespace stribeck
{

/// Capacity; the number of joints is chosen when configuring.
constexpr int max_joints = STRIBECK_MAX_JOINTS;
using Vector = std::array<double, max_joints>;  ///< One number per joint.
using Mask = std::array<bool, max_joints>;      ///< One truth value per joint.

/// A vector with the same number for all joints.
inline Vector filled(double value) noexcept
{
  Vector v;
  v.fill(value);
  return v;
}

/// Whether the first n values are finite.
template <std::size_t Capacity>
bool finite(const std::array<double, Capacity> & v, int n) noexcept
{
  for (int k = 0; k < n; ++k)
  {
    if (!std::isfinite(v[k]))
    {
      return false;
    }
  }
  return true;
}

/// Larger positions [rad] and velocities [rad/s] are no measurements; their squares would overflow
/// to infinity and NaN.
inline constexpr double largest_measurement = 1e9;

/// Whether n values are numbers of at most that size.
template <std::size_t Capacity>
bool possible(const std::array<double, Capacity> & v, int n) noexcept
{
  for (int k = 0; k < n; ++k)
  {
    if (!(std::abs(v[k]) <= largest_measurement))
    {
      return false;
    }
  }
  return true;
}

/// Time constant of velocities computed as the slope of positions [s].
constexpr double slope_time = 0.02;
constexpr double finest = 1e-4;  ///< Finest position resolution assumed [rad].
/// Smallest presliding length derived from a resolution [rad].
constexpr double smallest_presliding = 1e-3;

/// Behaviour of one joint at rest and at reversals, in the coordinates of its parameter file.
struct Tuning
{
  /// position error below which a joint at rest has no intended motion [rad]
  double deadband = 0.0046;
  /// error beyond the dead-band at which the intention is full [rad]
  double error_width = 0.012;
  double command_velocity = 0.1;  ///< commanded velocity at which the intention is full [rad/s]
  /// measured velocity above which the motion alone decides [rad/s]
  double moving_velocity = 0.3;
  /// fraction that remains when a joint moves away from a goal at rest
  double overshoot_fraction = 0.3;
  /// displacement after a reversal within which friction changes sign [rad]
  double presliding = 0.0031;

  /// Tuning for a joint with a position resolution [rad].
  static Tuning of_resolution(double resolution) noexcept
  {
    const double step = maximum(resolution, finest), moving = 4.0 * step / slope_time;
    return {3.0 * step, 8.0 * step, moving / 3.0,
            moving,     0.3,        maximum(2.0 * step, smallest_presliding)};
  }
};

/// A goal that repeats the measured position is at most so late [s].
constexpr double latest_repeat = 0.1;
/// Distance by which a goal is ahead of its joint, in dead-bands.
constexpr double ahead_share = 0.5;
/// A goal faster than this fraction of the command velocity leads fully [1].
constexpr double leading = 0.1;
/// Time constant with which a resting goal stops leading a joint past it [s].
constexpr double led_time = 0.1;
/// Longest time that a goal at rest leads a joint that has not arrived [s].
constexpr double arrival_time = 1.0;
/// Time constant with which a joint at its goal loses its torque [s].
constexpr double hold_time = 60.0;
/// Time constant with which an opposite motion overrides a goal [s].
constexpr double conflict_time = 0.01;
constexpr double smoothing_time = 0.03;  ///< Time constant of the smoothed velocity [s].
/// Time constant of the estimate of the velocity noise [s].
constexpr double noise_time = 1.0;

namespace formulas
{

/// Odd, smooth step from -1 at -1 to 1 at 1.
inline double smooth_step(double x) noexcept
{
  x = clipped(x, 1.0);
  return x * (1.5 - 0.5 * x * x);
}

/// Direction of a measured motion in [-1, 1], from its velocity alone.
inline double moving(double velocity, double moving_velocity) noexcept
{
  const double u = clipped(velocity / moving_velocity, 1.0), size = std::abs(u);
  return u * size * (3.0 - 2.0 * size);
}

/// Goal minus position, 0 without a goal [rad].
inline double error_of(double goal, double position) noexcept
{
  return std::isfinite(goal) ? goal - position : 0.0;
}

/// Direction of the actual or intended motion from the error and the goal's velocity.
inline double intended(
  double speed, double position, double goal, double rate, double moving_velocity, double deadband,
  double error_width, double command_velocity, double overshoot_fraction) noexcept
{
  const double error = error_of(goal, position), within = clipped(error, deadband);
  const double commanded = rate / command_velocity;
  const double intention = smooth_step((error - within) / error_width + commanded);
  const double motion = moving(speed, moving_velocity);
  const double direction = motion + (1.0 - std::abs(motion)) * intention;
  const double led = minimum(std::abs(commanded), 1.0);
  const double retreat = maximum(-motion * within / maximum(deadband, 1e-9), 0.0);
  return direction * (1.0 - (1.0 - overshoot_fraction) * (1.0 - led) * retreat);
}

/// Time since a goal last gave a position or a significant velocity [s].
inline double unled(
  double unled, double goal, double rate, double command_velocity, double dt) noexcept
{
  return std::isfinite(goal) || std::abs(rate) >= leading * command_velocity ? 0.0 : unled + dt;
}

/// Standard deviation of white noise from the mean square of its second differences.
inline double noise(double bends) noexcept { return std::sqrt(bends / 6.0); }

/// Velocity above which a joint counts as moving [rad/s].
inline double threshold(double moving_velocity, bool known, double steep, double bends) noexcept
{
  return maximum(moving_velocity, maximum((known ? 6.0 : 2.0) * steep, 4.0 * noise(bends)));
}

/// Direction of the measured motion; from the smoothed velocity where velocities are coarsely
/// quantised.
inline double measured(double speed, double smooth, double step, double moving_velocity) noexcept
{
  return moving(2.0 * step > moving_velocity ? smooth : speed, moving_velocity);
}

/// Where a goal of that age is now [rad].
inline double present(double goal, double rate, double age) noexcept { return goal + rate * age; }

/// The same, less in the direction of motion by what the velocity may have changed meanwhile [rad].
inline double surely_present(
  double goal, double rate, double age, double speed, double direction) noexcept
{
  return present(goal, rate, age) - direction * std::abs(rate - speed) * std::abs(age);
}

/// Error beyond the dead-band, 0 without a goal [rad].
inline double behind(double goal, double position, double deadband) noexcept
{
  const double error = error_of(goal, position);
  return error - clipped(error, deadband);
}

/// Error divided by the dead-band, clipped to [-1, 1], 0 without a goal.
inline double error_share(double goal, double position, double deadband) noexcept
{
  return clipped(error_of(goal, position) / maximum(deadband, 1e-9), 1.0);
}

/// Whether a goal shows that it is one: it is ahead of where its joint has been since the last
/// reversal, some time ago, or it has no position.
inline bool leading(
  bool known, double goal, double extreme, double direction, double since, double deadband) noexcept
{
  const bool is_ahead =
    (goal - extreme) * direction > ahead_share * deadband && since > latest_repeat;
  return known && (is_ahead || !std::isfinite(goal));
}

/// Direction along the path of the goal, where one is known, else that of a free joint.
inline double direction(
  double motion, double behind, double path, bool leads, double led, bool known, double intended,
  double free, double error_width, double overshoot_fraction) noexcept
{
  const double ahead = minimum(maximum(-behind * path / error_width, 0.0), 1.0);
  const double moves = leads ? motion : 0.0;
  const double along =
    (1.0 - (1.0 - overshoot_fraction) * ahead) * (moves + (1.0 - std::abs(moves)) * path);
  return known ? led * along + (1.0 - led) * intended : free;
}

/// Velocity at which the law is evaluated [rad/s]: with a goal the slower of goal and joint.
inline double law_velocity(
  double rate, double speed, double smooth, double motion, double path, bool leads,
  double led) noexcept
{
  double slower = maximum(smooth * path, 0.0);
  slower = rate != 0.0 ? minimum(std::abs(rate), slower) : slower;
  return leads ? led * slower * path + (1.0 - led) * speed : std::abs(motion) > 0.1 ? speed : 0.0;
}

/// Whether a joint moves with its goal.
inline bool following(
  double direction, double velocity, double path, double rate, double command_velocity) noexcept
{
  const double along = direction * path > 0.0 ? velocity * path : 0.0;
  return along > maximum(0.2 * std::abs(rate), 0.3 * command_velocity);
}

/// Extra torque of a joint that sticks although its goal moves on, as a fraction of the friction at
/// rest.
inline double stuck(
  double boost, double growth, double most, double release, bool leads, bool follows, double path,
  double behind, double contact) noexcept
{
  const bool sticks = leads && !follows && path * behind > 0.0 && contact < 0.5;
  return sticks ? minimum(boost + growth, most) : boost * release;
}

/// Gain that grows from gain to reached with the certainty of the learnt friction.
inline double learned_gain(double gain, double led, double certainty, double reached) noexcept
{
  return gain + led * certainty * (reached - gain);
}

/// Torque with the learnt offset [N m], zero if opposite to the direction, clipped, and faded at a
/// contact.
inline double with_offset(
  double torque, double led, double direction, double offset, double boost, double path,
  double at_rest, double limit, double contact) noexcept
{
  const double added = torque + led * std::abs(direction) * offset + boost * path * at_rest;
  return clipped(direction * added > 0.0 ? added : 0.0, limit) * (1.0 - contact);
}

/// How far friction has reversed after a motion, in [-1, 1] (P. R. Dahl, "A Solid Friction Model",
/// 1968).
inline double turned(double share, double change, double length) noexcept
{
  const double sign = sign_of(change);
  return sign + (share - sign) * std::exp(-std::abs(change) / length);
}

}  // namespace formulas

/// Recent motion of joints: smoothed velocity, its noise, and the distance from the last reversal.
class Travel
{
public:
  Vector velocity{}, direction{}, step{}, bends{};
  Vector extreme{};  ///< furthest position in that direction since the last reversal [rad]
  Vector since{};    ///< time since the last reversal [s]

  void restart() noexcept
  {
    velocity.fill(0.0), direction.fill(0.0), step.fill(infinity), bends.fill(0.0), since.fill(0.0);
    position_.fill(0.0), turn_.fill(0.0), extreme.fill(0.0);
    begun_ = has_before_ = false;
  }

  /// Update with a state; backward motion by less than the hysteresis [rad] is not a reversal.
  void update(
    int n, const Vector & position, const Vector & speed, const Vector & hysteresis,
    double dt) noexcept
  {
    position_ = position;
    if (!begun_)
    {
      turn_ = extreme = position, velocity = speed, begun_ = true;
      return;
    }
    const double of_bends = minimum(1.0, dt / noise_time),
                 of_speed = minimum(1.0, dt / smoothing_time);
    for (int k = 0; k < n; ++k)
    {
      const double size = std::abs(speed[k]);
      step[k] = size > 0.0 ? minimum(step[k], size) : step[k];
      if (has_before_)
      {
        const double bend = speed[k] - 2.0 * last_[k] + earlier_[k];
        bends[k] = bends[k] + of_bends * (bend * bend - bends[k]);
      }
      velocity[k] = velocity[k] + of_speed * (speed[k] - velocity[k]);
      const double change = position[k] - extreme[k];
      const bool begins = direction[k] == 0.0 && std::abs(change) > hysteresis[k];
      since[k] = since[k] + dt;
      if (begins || change * direction[k] < -hysteresis[k])
      {
        since[k] = 0.0;
        turn_[k] = extreme[k];
        direction[k] = sign_of(change);
      }
      extreme[k] = change * direction[k] > 0.0 ? position[k] : extreme[k];
    }
    earlier_ = has_before_ ? last_ : speed;
    last_ = speed, has_before_ = true;
  }

  /// Distance from the last reversal, 0 before any [rad].
  double distance(int k) const noexcept
  {
    return std::abs(position_[k] - turn_[k]) * (direction[k] != 0.0 ? 1.0 : 0.0);
  }

private:
  Vector position_{}, turn_{}, last_{}, earlier_{};
  bool begun_ = false, has_before_ = false;
};

/// How far the friction of joints has reversed with their motion.
class Turning
{
public:
  Vector share{};
  bool begun = false;

  void restart() noexcept { share.fill(0.0), begun = false; }

  /// \param motion direction of motion, used at the first state only.
  void update(int n, const Vector & position, const Vector & motion, const Vector & length) noexcept
  {
    for (int k = 0; k < n; ++k)
    {
      share[k] =
        begun ? formulas::turned(share[k], position[k] - position_[k], length[k]) : motion[k];
    }
    position_ = position, begun = true;
  }

private:
  Vector position_{};
};

/// Direction in which goals lead joints, from friction that reverses along the path of the goals.
class GoalPath
{
public:
  Vector direction{}, led{};
  Vector moves{};  ///< weight with which the velocity of a goal leads, in [0, 1]
  Mask leads{};    ///< joints whose goal moves, or that have not arrived at it yet

  void restart() noexcept
  {
    direction.fill(0.0), led.fill(0.0), moves.fill(0.0), conflict_.fill(0.0), leads.fill(false);
    goal_.fill(not_a_number), resting_.fill(infinity);
  }

  /// \param behind error beyond the dead-band [rad]; \param error error divided by the dead-band,
  /// in [-1, 1].
  void update(
    int n, const Vector & goal, const Vector & rate, const Vector & behind, const Vector & motion,
    double dt, const Vector & presliding, const Vector & command_velocity,
    const Vector & error) noexcept
  {
    const double of_conflict = minimum(1.0, dt / conflict_time);
    for (int k = 0; k < n; ++k)
    {
      const double step = rate[k] * dt, change = goal[k] - goal_[k];
      // A goal that steps back against its velocity is noise.
      const double along = change * step < 0.0 ? 0.0 : change;
      const double d = direction[k] =
        formulas::turned(direction[k], std::isfinite(change) ? along : step, presliding[k]);
      goal_[k] = goal[k];
      moves[k] = minimum(std::abs(rate[k]) / (leading * command_velocity[k]), 1.0);
      const double resting = moves[k] >= 1.0 ? 0.0 : resting_[k] + dt;
      const bool arrived = behind[k] * d <= 0.0 || resting > arrival_time;
      resting_[k] = arrived && moves[k] < 1.0 ? infinity : resting;
      leads[k] = resting_[k] < infinity || moves[k] > 0.5;
      const double ahead = maximum(-error[k] * d, 0.0);
      const double fading = std::exp(-dt * (ahead / led_time + (1.0 - ahead) / hold_time));
      led[k] = maximum(resting_[k] < infinity ? led[k] : led[k] * fading, moves[k]);
      conflict_[k] = conflict_[k] + of_conflict * (maximum(-motion[k] * d, 0.0) - conflict_[k]);
    }
  }

  /// Weight of the direction of the goal, in [0, 1].
  double share(int k) const noexcept { return led[k] * (1.0 - minimum(2.0 * conflict_[k], 1.0)); }

private:
  Vector goal_{}, resting_{}, conflict_{};
};

}  // namespace stribeck

#endif  // STRIBECK_CONTROLLERS__MOTION_HPP_
