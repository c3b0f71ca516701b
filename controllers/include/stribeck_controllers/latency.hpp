// Copyright the Stribeck maintainers. SPDX-License-Identifier: Apache-2.0
/// \file
/// Measured time from the goals of position servos to their positions, as live/learning/latency.py
/// of the Python package, which explains the method. Needs the C++ standard library only.
#ifndef STRIBECK_CONTROLLERS__LATENCY_HPP_
#define STRIBECK_CONTROLLERS__LATENCY_HPP_

#include <array>
#include <cmath>

#include "stribeck_controllers/motion.hpp"

namespace stribeck
{

/// Delays of the goals of joints, in the coordinates of the parameter files.
class GoalLatency
{
public:
  Vector delay = filled(not_a_number);   ///< from a goal to the position, NaN if not identified [s]
  Vector half_width = filled(infinity);  ///< of its 95 % interval [s]

  /// Forget everything.
  void reset() noexcept
  {
    alternating_.fill(0.0), square_.fill(0.0), period_ = 0.0;
    for (int i = 0; i < grid; ++i)
    {
      signed_[i].fill(0.0), plain_[i].fill(0.0), squares_[i].fill(0.0);
    }
    delay.fill(not_a_number), half_width.fill(infinity);
    restart();
  }

  /// Forget the motion but keep what was measured.
  void restart() noexcept
  {
    stamp_ = -infinity, covered_ = since_concluded_ = 0.0, count_ = 0;
    direction_.fill(0.0), since_.fill(0.0);
  }

  /// Take in a state and the goal sent in response. \param goal with all offsets [rad].
  /// \param lag D/K of each joint [s]. \param bend J/K of each joint [s^2].
  /// \param age of the goal [s].
  void update(
    int n, double stamp, const Vector & position, const Vector & goal, const Vector & lag,
    const Vector & bend, double age) noexcept
  {
    const double elapsed = stamp - stamp_;
    const bool known = finite(goal, n);
    if (!(0.0 <= elapsed && elapsed <= gap && known))
    {
      restart();
      if (known)
      {
        stamp_ = stamp;
        for (int i = 0; i < stages; ++i)
        {
          position_[i] = position, goal_[i] = goal;
        }
        keep(stamp - age);
      }
      return;
    }
    if (elapsed < shortest - 1e-9)
    {
      return;
    }
    stamp_ = stamp, covered_ = covered_ + elapsed;
    period_ = period_ != 0.0 ? period_ + 0.05 * (elapsed - period_) : elapsed;
    const double share = -std::expm1(-rate * elapsed);
    for (int k = 0; k < n; ++k)
    {
      double at = position[k], wanted = goal[k];
      for (int i = 0; i < stages; ++i)
      {
        at = position_[i][k] = position_[i][k] + share * (at - position_[i][k]);
        wanted = goal_[i][k] = goal_[i][k] + share * (wanted - goal_[i][k]);
      }
    }
    keep(stamp - age);
    Vector expected{};
    Mask counts{};
    bool any = false;
    for (int k = 0; k < n; ++k)
    {
      const double first = position_[0][k], second = position_[1][k], third = position_[2][k];
      const double velocity = rate * (second - third);
      const double acceleration = rate * rate * (first - 2.0 * second + third);
      const double direction = std::abs(velocity) > slowest ? sign_of(velocity) : 0.0;
      const bool same = direction == direction_[k] && direction != 0.0;
      direction_[k] = direction;
      since_[k] = same ? since_[k] + elapsed : 0.0;
      counts[k] = since_[k] >= settled;
      any = any || counts[k];
      expected[k] = third + lag[k] * velocity + bend[k] * acceleration;
    }
    if (covered_ > longest + shortest && any)
    {
      add(n, stamp, expected, counts, elapsed);
    }
    since_concluded_ += elapsed;
    if (since_concluded_ >= concluded)
    {
      since_concluded_ = 0.0;
      conclude(n);
    }
  }

private:
  static constexpr double longest = 0.4, spacing = 0.01, shortest = 0.005, gap = 0.1;  // [s]
  static constexpr double rate = 20.0;                                                 // [1/s]
  static constexpr double slowest = 0.03;                                              // [rad/s]
  static constexpr double settled = 0.15, memory = 20.0, correlated = 0.2;             // [s]
  static constexpr double least_motion = 2.0, widest = 0.01, concluded = 0.25;         // [s]
  static constexpr double normal = 1.96;
  static constexpr int grid = 41, kept = 84, stages = 3;

  void keep(double stamp) noexcept
  {
    const double before = count_ > 0 ? times_[newest_] + 1e-6 : -infinity;
    newest_ = (newest_ + 1) % kept;
    times_[newest_] = maximum(stamp, before), goals_[newest_] = goal_[stages - 1];
    count_ = count_ < kept ? count_ + 1 : kept;
  }

  /// Place of what was kept so many samples before the newest.
  int place(int before) const noexcept { return (newest_ - before + kept) % kept; }

  void add(
    int n, double stamp, const Vector & expected, const Mask & counts, double elapsed) noexcept
  {
    const double forgotten = std::exp(-elapsed / memory);
    Vector weight{}, left_over{};
    for (int k = 0; k < n; ++k)
    {
      weight[k] = counts[k] ? elapsed : 0.0, left_over[k] = counts[k] ? forgotten : 1.0;
      alternating_[k] = left_over[k] * alternating_[k] + weight[k] * direction_[k];
      square_[k] = left_over[k] * square_[k] + weight[k];
    }
    int back = 0;  // samples since the goal of a delay
    for (int i = 0; i < grid; ++i)
    {
      const double wanted = stamp - i * spacing;
      while (back + 2 < count_ && times_[place(back + 1)] >= wanted)
      {
        ++back;
      }
      const int after = place(back), before = place(back + 1);
      const double share = (wanted - times_[before]) / (times_[after] - times_[before]);
      for (int k = 0; k < n; ++k)
      {
        const double goal =
          goals_[before][k] + share * (goals_[after][k] - goals_[before][k]);
        const double left = goal - expected[k];
        signed_[i][k] = left_over[k] * signed_[i][k] + weight[k] * direction_[k] * left;
        plain_[i][k] = left_over[k] * plain_[i][k] + weight[k] * left;
        squares_[i][k] = left_over[k] * squares_[i][k] + weight[k] * left * left;
      }
    }
  }

  /// Minima of the residual sums of squares.
  void conclude(int n) noexcept
  {
    for (int k = 0; k < n; ++k)
    {
      const double whole = square_[k], sign = alternating_[k], part = maximum(whole, 1e-9);
      const double free = maximum(whole - sign * sign / part, 1e-9);
      std::array<double, grid> squares{};
      int least = 0;
      for (int i = 0; i < grid; ++i)
      {
        const double aside = signed_[i][k] - sign * plain_[i][k] / part;
        squares[i] = squares_[i][k] - plain_[i][k] * plain_[i][k] / part;
        squares[i] = squares[i] - (free > 1e-6 * whole ? aside * aside / free : 0.0);
        least = squares[i] < squares[least] ? i : least;
      }
      const int inner = least < 1 ? 1 : least > grid - 2 ? grid - 2 : least;
      const double low = squares[inner - 1], middle = squares[inner], high = squares[inner + 1];
      const double bend = maximum(low - 2.0 * middle + high, 1e-30);
      const double spread =
        maximum(middle, 0.0) / maximum(whole - 2.0 * correlated, correlated);
      const double half =
        normal * std::sqrt(2.0 * correlated * spread * spacing * spacing / bend);
      const double found = spacing * (inner + 0.5 * (low - high) / bend) - 0.5 * period_;
      const bool sound = least == inner && whole >= least_motion && half <= widest;
      delay[k] = sound ? maximum(found, 0.0) : not_a_number;
      half_width[k] = sound ? half : infinity;
    }
  }

  Vector alternating_{}, square_{};  ///< sums of the sign of motion, and of the time [s]
  /// sums over the products of what is left of a goal with the sign, 1 and itself
  std::array<Vector, grid> signed_{}, plain_{}, squares_{};
  std::array<Vector, stages> position_{}, goal_{};
  std::array<double, kept> times_{};
  std::array<Vector, kept> goals_{};
  int newest_ = 0, count_ = 0;
  double stamp_ = -infinity, covered_ = 0.0, since_concluded_ = 0.0, period_ = 0.0;
  Vector direction_{}, since_{};
};

}  // namespace stribeck

#endif  // STRIBECK_CONTROLLERS__LATENCY_HPP_
