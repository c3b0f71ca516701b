// Copyright the Stribeck maintainers. SPDX-License-Identifier: Apache-2.0
/// \file
/// The present friction of joints, learnt from motion: momentum residual, Kalman filters of scales
/// and offsets, contact detection and energy tank, as live/learning/residual.py, adaptation.py,
/// observer.py, contact.py and energy.py of the Python package, which give formulas and sources.
#ifndef STRIBECK_CONTROLLERS__OBSERVER_HPP_
#define STRIBECK_CONTROLLERS__OBSERVER_HPP_

#include <array>
#include <cmath>

#include "stribeck_controllers/dynamics.hpp"
#include "stribeck_controllers/incoming.hpp"

namespace stribeck
{

constexpr double learning_period = 0.004;  ///< Shortest period of learning [s].
constexpr double model_period = 0.005;     ///< Shortest period of evaluating the dynamics [s].
constexpr double reversed = 0.7;           ///< Smoothed direction above which a reversal is over.
/// Relative error of the modelled weight that an offset may hold.
constexpr double model_error = 0.1;
/// Deviation of a residual that may be a contact, of the friction at rest.
constexpr double surprise = 0.4;
/// Time for which such a deviation is treated as a contact [s].
constexpr double surprise_time = 0.3;
/// Ratio to the largest possible friction above which it is a contact.
constexpr double contact_margin = 1.15;
/// Torques beyond this multiple of the friction at rest restart the observer.
constexpr double absurd = 1e100;
constexpr double pi = 3.14159265358979323846;
/// Mean time from one false alarm of the robot to the next [s].
constexpr double alarm_period = 600.0;
constexpr double band_quantile = 2.17;  ///< Standard deviations of a band of 97 %.
/// The same that shows the controller's intention fully, while a joint rests.
constexpr double pushed_share = 0.6;
/// Controller's torque beside gravity that drives a joint, of the friction at rest.
constexpr double driven_share = 0.3;
/// Time constant of the normalised innovation squared [s].
constexpr double normalised_time = 10.0;
/// Share of the time that torques of free motion are outside their band.
constexpr double outside_share = 0.03;
/// Relative change of the band's factor while they are outside [1/s].
constexpr double conformal_rate = 1.0;
constexpr double narrowest = 0.1, widest = 10.0;  ///< Bounds of that factor.
/// Motion for which the assumed noise counts in the mean [s].
constexpr double assumed_time = 1.0;
/// Friction at rest that is none [N m]: bands are fractions of it.
constexpr double no_friction = 1e-6;
/// Least deviation of the external torque, as a fraction of the friction at rest.
constexpr double least_error = 0.02;
/// Standard deviations between estimated and guaranteed friction.
constexpr double sure_deviations = 2.0;
/// Standard deviation of the change since an earlier run.
constexpr double recalled_deviation = 0.15;
/// Time constant with which the torque fades at a contact [s].
constexpr double contact_time = 0.05;
constexpr double patience = 0.5;           ///< Shortest duration of a contact [s].
constexpr double longest_patience = 30.0;  ///< Longest duration of a contact [s].
/// Time since its goal came to rest for which a joint may be found to have met something [s].
constexpr double stop_time = 0.3;
/// Capacity of a tank: work of the friction at rest over this distance [rad].
constexpr double tank_stroke = 1.5;
constexpr double tank_fading = 0.3;  ///< Fill level below which the torque fades.
/// Kinetic energy at which compensation ends, in capacities of the tank.
constexpr double ending_energy = 2.0;
/// Bounds of that speed, in the robot's coordinates [rad/s].
constexpr double slowest_end = 2.0, fastest_end = 10.0;
constexpr double kept_torques = 1.0;  ///< Longest delay of states after sent torques [s].

/// How fast and how far friction may change; see live/learning/adaptation.py.
struct AdaptationSettings
{
  double scale_lower = 0.05, scale_upper = 2.2, offset_limit = 0.6, prior = 0.5, together = 0.8,
         drift = 0.05;
  double wander = 0.3, noise = 0.15;
};

/// Learnt friction of one joint: scales and their standard deviations [1].
struct Learned
{
  double dry = 1.0, viscous = 1.0, deviation_dry = 0.0, deviation_viscous = 0.0;
};

/// Torques with a delay: they act later than they are sent. At most 2048 are kept, 1 s at 2 kHz.
class Delayed
{
public:
  double delay = 0.0;  ///< [s]

  void clear() noexcept { sent_.clear(); }

  void add(double time, const Vector & value) noexcept
  {
    if (!sent_.empty() && time < sent_.back().time)
    {
      sent_.clear();
    }
    sent_.push({time, value});
    drop(time - kept_torques);
  }

  /// Replace the value that was added last.
  void correct(const Vector & value) noexcept
  {
    if (!sent_.empty())
    {
      sent_.back().value = value;
    }
  }

  /// The value that acts at a time: the last one sent at least the delay before; nullptr if there
  /// is none.
  const Vector * at(double time) noexcept
  {
    drop(time);
    return sent_.empty() ? nullptr : &sent_[0].value;
  }

private:
  struct Sent
  {
    double time;
    Vector value;
  };

  void drop(double time) noexcept
  {
    while (sent_.size() > 1 && sent_[1].time <= time - delay + 1e-9)
    {
      sent_.pop();
    }
  }

  Ring<Sent, 2048> sent_;
};

/// Contact state of joints: a torque against the motion that exceeds all friction must not be
/// cancelled. Where the goal rests, the torque goes at once and nothing is tried again.
class Contact
{
public:
  Vector share{};  ///< degree of contact, smoothed, in [0, 1]

  void restart() noexcept
  {
    touched_.fill(0.0), since_.fill(0.0), share.fill(0.0), patience_.fill(patience);
    rested_.fill(infinity);
  }

  /// \param rests joints whose goal rests. \param met joints on which something outside acts
  /// against its path.
  void update(
    int n, const Mask & beyond, const Mask & held, const Mask & led, const Mask & follows,
    const Vector & path, double dt, const Mask & rests, const Mask & met) noexcept
  {
    const double part = minimum(1.0, dt / contact_time);
    for (int k = 0; k < n; ++k)
    {
      const double way = sign_of(path[k]);
      const double before = rested_[k];
      rested_[k] = rests[k] ? before + dt : 0.0;
      // Not in passing, as a goal that turns back.
      const bool rested = before > 0.0 && rests[k] && rested_[k] <= stop_time;
      const bool stopped = !follows[k] && rested && (beyond[k] || met[k]);
      const bool begins = stopped || (!follows[k] && led[k] && beyond[k]);
      since_[k] = begins || touched_[k] == 0.0 ? 0.0 : since_[k] + dt;
      const bool tries = held[k] && !rests[k] && since_[k] > patience_[k];
      const double longer = minimum(2.0 * patience_[k], longest_patience);
      patience_[k] = follows[k] ? patience : tries ? longer : patience_[k];
      const double kept = !follows[k] && !tries && way * touched_[k] > 0.0 ? touched_[k] : 0.0;
      touched_[k] = begins ? way : kept;
      share[k] = stopped && way != 0.0 ? 1.0 : share[k] + part * (std::abs(touched_[k]) - share[k]);
    }
  }

private:
  Vector touched_{}, since_{}, patience_{}, rested_{};
};

/// Scales of the friction torques of joints without a model of their dynamics, from the errors with
/// which they follow their goals, as live/learning/tracking.py explains.
class TrackingScale
{
public:
  Vector scale{};

  void begin() noexcept { scale.fill(1.0), begun_.fill(false), restart(); }

  /// Largest scale where friction is learnt from momentum, too: it completes the gain to 1 and adds
  /// what the observer may have missed; 1 before motion and at a contact.
  /// \param most largest scale by all other bounds. \param gain of learnt friction.
  /// \param wrong error of the modelled weight, per friction at rest. \param allowed slack().
  static double most_beyond(
    double most, double gain, double certainty, const Scales & scales, double wrong, double contact,
    bool sudden, double allowed) noexcept
  {
    const double learnt = maximum(maximum(scales.dry, scales.viscous), least_learnt);
    const double largest =
      minimum((1.0 + missed + wrong / learnt) / maximum(gain, 1e-9), most / learnt);
    const double room = minimum(largest - 1.0, allowed / maximum(gain * learnt, 1e-9));
    const double beyond = certainty * maximum(room, 0.0);
    return sudden ? 1.0 : 1.0 + beyond * maximum(1.0 - contact / untouched, 0.0);
  }

  /// Part of the friction by which a torque may be too large: it drives a joint beyond its goal for
  /// two loop times.
  static double slack(double friction, double loop, double inertia, double ratio) noexcept
  {
    const double time = reaction * maximum(loop, 1e-9);
    return 2.0 * (slip_way * ratio) * inertia / (friction * time * time);
  }

  /// Largest scale to begin with.
  static double first(double gain, double allowed) noexcept
  {
    return minimum((least_friction + allowed) / maximum(gain, 1e-9), 1.0);
  }

  void restart() noexcept
  {
    way_.fill(0.0), reach_.fill(0.0), passed_.fill(false), ahead_.fill(false);
  }

  /// Forget the motion of one joint but keep its scale.
  void restart(int k) noexcept { way_[k] = reach_[k] = 0.0, passed_[k] = ahead_[k] = false; }

  /// \param behind goal minus position beyond the dead-band [rad].
  /// \param slip velocity of the goal minus that of the joint [rad/s].
  /// \param path direction of the path of the goal.
  /// \param moves weight with which the velocity of the goal leads.
  /// \param going 1 for a joint that moves, 0 at standstill.
  /// \param width error width [rad].
  /// \param most largest scale, not below 1.
  /// \param start largest scale to begin with, not a number while the loop time is not known.
  /// \param loop time until a torque shows in the error [s].
  /// \param least smallest scale.
  void update(
    int k, double behind, double slip, double path, double moves, double going, double width,
    double most, double dt, double start, double loop, double least) noexcept
  {
    if (!begun_[k] && std::isfinite(start))
    {
      scale[k] = minimum(scale[k], start), begun_[k] = true;
    }
    const double way = sign_of(path);
    const double along = behind * way, error = along / width,
                 predicted = (behind + lead * slip) * way / width;
    passed_[k] = along >= 0.0 || (way == way_[k] && passed_[k]);
    reach_[k] = maximum(way == way_[k] && !(along > 0.0 && ahead_[k]) ? reach_[k] : 0.0, along);
    ahead_[k] = along < 0.0 || (along == 0.0 && ahead_[k]);
    way_[k] = way;
    const double counts = passed_[k] && -along > natural * reach_[k] ? 1.0 : 0.0,
                 step = dt / follow_time * moves;
    const double rise = dt / maximum(follow_time, follow_loops * loop) * moves;
    const double z = clipped(predicted, 1.0), wound = maximum(scale[k] - 1.0, 0.0);
    const double followed =
      error > 0.0
        ? scale[k] - wound * (1.0 - std::exp(step * minimum(z, 0.0))) + rise * maximum(z, 0.0)
        : scale[k] * std::exp(step * counts * minimum(z, 0.0));
    const double rest = dt * (1.0 - moves), still = error > 0.0 ? 1.0 - going : 0.0;
    const double fallen =
      followed * std::exp(-rest / fall_time * going * counts * minimum(maximum(-error, 0.0), 1.0));
    const double excess = maximum(fallen - 1.0, 0.0);
    const double rested = fallen - excess * (1.0 - std::exp(-rest / return_time * still));
    scale[k] = maximum(minimum(rested, most), least);
  }

private:
  static constexpr double fall_time = 0.1, follow_time = 0.5, return_time = 1.0, lead = 0.2;  // [s]
  static constexpr double natural = 0.2;  // of the largest error on the way to the goal
  static constexpr double follow_loops = 20.0, reaction = 2.0;  // loop times
  // [rad], of the identified friction
  static constexpr double slip_way = 0.02, least_friction = 0.3;
  static constexpr double least_learnt = 0.5;  // scale that leaves as much room as smaller ones
  static constexpr double missed = 0.1;        // part of the friction that the observer may miss
  static constexpr double untouched = 0.25;    // degree of contact from which a lag is no friction
  Vector way_{}, reach_{};
  Mask passed_{}, ahead_{}, begun_{};
};

/// Energy tanks of joints, which limit what compensation adds to joints whose goal shows no
/// intention of its own.
class EnergyTank
{
public:
  Vector capacity{}, content{};
  /// largest energy that torques on their way have drawn since the tank was refilled [J]
  Vector reserve{};
  /// work of the friction learnt from motion under goals in this run, at most the capacity [J]
  Vector filled{};

  void restart() noexcept { content = capacity, reserve.fill(0.0); }

  /// Scales have been replaced: nothing is known of them yet.
  void forget() noexcept { filled.fill(0.0); }

  /// Account for friction that has been learnt, by its work [J].
  void fill(int k, double work) noexcept { filled[k] = minimum(filled[k] + work, capacity[k]); }

  /// \param delay time for which a torque still acts after a state that would have ended it [s].
  void update(
    int k, double torque, double certain, double velocity, bool refilled, double dt,
    double delay) noexcept
  {
    const double drawn =
      maximum(maximum(torque * velocity, 0.0) - std::abs(certain * velocity), 0.0);
    content[k] = refilled ? capacity[k] : maximum(content[k] - drawn * dt, 0.0);
    reserve[k] = refilled ? 0.0 : maximum(reserve[k], drawn * delay);
  }

  /// Remaining fraction of the torque beyond the guaranteed friction, in [0, 1].
  double share(int k) const noexcept { return share_of(k, content[k]); }

  /// The same of a joint without a goal: nothing until friction has been learnt in this run.
  double free_share(int k) const noexcept { return share_of(k, minimum(content[k], filled[k])); }

private:
  double share_of(int k, double left) const noexcept
  {
    return minimum(maximum((left - reserve[k]) / (tank_fading * capacity[k]), 0.0), 1.0);
  }
};

/// Ends the compensation of joints that it drives, which friction above the guaranteed fraction
/// excludes.
class SpeedLimit
{
public:
  Mask ended{};

  /// \param capacity of the tank [J]; \param ratio turns of the servo per turn of the joint.
  void configure(int k, double capacity, double ratio) noexcept
  {
    energy_[k] = ending_energy * capacity;
    slowest_[k] = slowest_end * ratio * (slowest_end * ratio);
    fastest_[k] = fastest_end * ratio * (fastest_end * ratio);
  }

  /// The inertia from now on; infinite where unknown [kg m^2].
  void set_inertia(int k, double inertia) noexcept
  {
    const bool known = std::isfinite(inertia);
    const double allowed = minimum(maximum(2.0 * energy_[k] / inertia, slowest_[k]), fastest_[k]);
    squared_[k] = known ? allowed : fastest_[k];
    least_[k] = known ? 0.375 * inertia * squared_[k] : 0.0;
  }

  void restart() noexcept { speed_.fill(0.0), work_.fill(0.0); }

  /// The velocity of a joint, smoothed [rad/s].
  double smoothed(int k, double velocity, double dt) const noexcept
  {
    return speed_[k] + minimum(1.0, dt / smoothing_time) * (velocity - speed_[k]);
  }

  /// Speed at which compensation ends [rad/s].
  double bound(int k) const noexcept { return std::sqrt(squared_[k]); }

  /// \param smoothed velocity smoothed with smoothing_time; \param led whether the joint's goal is
  /// known to lead it.
  void update(int k, double torque, double velocity, double smoothed, bool led, double dt) noexcept
  {
    speed_[k] = smoothed;
    const double squared = speed_[k] * speed_[k];
    const bool fast = squared >= 0.25 * squared_[k] && !led;
    work_[k] = fast ? work_[k] + maximum(torque * velocity, 0.0) * dt : 0.0;
    ended[k] = (ended[k] && !led) || (fast && squared >= squared_[k] && work_[k] >= least_[k]);
  }

private:
  Vector energy_{}, slowest_{}, fastest_{}, squared_{}, least_{}, speed_{}, work_{};
};

/// Unmodelled torque of joints, in the coordinates of the dynamics: generalised-momentum observer.
class MomentumResidual
{
public:
  const Dynamics * dynamics = nullptr;
  double time_constant = 0.02;
  bool has_inertia = false;
  Matrix inertia{};
  Vector bias{};  ///< torque that the model needs beside the inertial one [N m]

  void restart() noexcept
  {
    has_inertia = has_momentum_ = false, age_ = infinity;
    bias.fill(0.0), lacking_.fill(0.0);
  }

  /// The residual after a step, with the known motor torque that acts at this measurement [N m].
  Vector update(
    int n, const Vector & q, const Vector & v, const Vector & torque, double dt) noexcept
  {
    age_ += dt;
    const bool had = has_inertia, anew = !had || age_ >= model_period;
    Vector earlier = filled(0.0);
    if (anew)
    {
      for (int k = 0; had && k < n; ++k)
      {
        earlier[k] = product(n, inertia[k], v);
      }
      dynamics->evaluate(q, v, inertia, bias);
      has_inertia = true, age_ = 0.0;
    }
    const double share = -std::expm1(-dt / time_constant);
    const double rate = dt > 0.0 ? share / dt : 1.0 / time_constant;
    Vector residual = filled(0.0);
    for (int k = 0; k < n; ++k)
    {
      const double momentum = product(n, inertia[k], v);
      if (!has_momentum_)
      {
        momentum_[k] = momentum;
      }
      else if (anew && had)
      {
        momentum_[k] += momentum - earlier[k];
      }
      lacking_[k] = lacking_[k] + share * (torque[k] - bias[k] - lacking_[k]);
      residual[k] = rate * (momentum - momentum_[k]) - lacking_[k];
      momentum_[k] = momentum_[k] + share * (momentum - momentum_[k]);
    }
    has_momentum_ = true;
    return residual;
  }

private:
  static double product(int n, const Vector & row, const Vector & v) noexcept
  {
    double sum = 0.0;
    for (int k = 0; k < n; ++k)
    {
      sum += row[k] * v[k];
    }
    return sum;
  }

  Vector lacking_{}, momentum_{};
  bool has_momentum_ = false;
  double age_ = infinity;
};

/// Kalman filter of the Coulomb scale, the viscous scale and the offset of one joint with friction
/// level at rest.
class ScaleFilter
{
public:
  std::array<double, 3> state{1.0, 1.0, 0.0};
  std::array<std::array<double, 3>, 3> covariance{};
  /// relative standard deviation of the friction at the last motion used for learning
  double deviation = 0.5;

  void reset(double level, const AdaptationSettings & settings) noexcept
  {
    level_ = level, settings_ = settings;
    state = {1.0, 1.0, 0.0}, covariance = {};
    covariance[0][0] = covariance[1][1] = settings.prior * settings.prior;
    covariance[0][1] = covariance[1][0] = settings.together * (settings.prior * settings.prior);
    covariance[2][2] = 0.1 * 0.1;
    deviation = settings.prior;
  }

  /// Clip the state to its bounds.
  void restrict_state() noexcept
  {
    for (int i = 0; i < 3; ++i)
    {
      state[i] = clip(state[i], i < 2 ? settings_.scale_lower : -settings_.offset_limit, upper(i));
    }
  }

  /// Residual minus its prediction, as a fraction of the friction at rest.
  double innovation(double residual, double coulomb, double viscous) const noexcept
  {
    const double predicted = coulomb / level_ * state[0] + viscous / level_ * state[1] + state[2];
    return -residual / level_ - predicted;
  }

  /// Variance of the friction by its scales, as a fraction of that at rest squared.
  double variance(double coulomb, double viscous) const noexcept
  {
    const double x = coulomb / level_, y = viscous / level_;
    return x * x * covariance[0][0] + 2.0 * x * y * covariance[0][1] + y * y * covariance[1][1];
  }

  /// Update with a residual; \param moving whether the motion allows learning friction.
  /// \param offset_limit bound of the offset in this motion, per friction at rest.
  void update(
    double residual, double coulomb, double viscous, bool moving, double smoothing, double dt,
    double offset_limit) noexcept
  {
    const std::array<double, 3> x{coulomb / level_, viscous / level_, 1.0};
    const double surprised = innovation(residual, coulomb, viscous);
    auto cov = covariance;
    for (int i = 0; i < 3; ++i)
    {
      const double growth = i < 2 ? settings_.drift : settings_.wander;
      cov[i][i] += growth * growth * (moving ? dt : 0.0);
    }
    std::array<double, 3> product{};
    double variance = 0.0;
    for (int i = 0; i < 3; ++i)
    {
      product[i] = cov[i][0] * x[0] + cov[i][1] * x[1] + cov[i][2] * x[2];
      variance += product[i] * x[i];
    }
    const double noise =
      settings_.noise * settings_.noise * maximum(smoothing / maximum(dt, 1e-6), 1.0);
    const double total = variance + noise, taken = (moving ? 1.0 : 0.0) / total;
    for (int i = 0; i < 3; ++i)
    {
      const double gain = product[i] * taken;
      state[i] = state[i] + gain * surprised;
      for (int j = 0; j < 3; ++j)
      {
        covariance[i][j] = cov[i][j] - gain * product[j];
      }
    }
    const double most = moving ? offset_limit : infinity;
    for (int i = 0; i < 3; ++i)
    {
      state[i] = i < 2 ? clip(state[i], settings_.scale_lower, settings_.scale_upper)
                       : clip(state[i], -most, most);
    }
    if (moving)
    {
      deviation = std::sqrt(variance * noise / total) / maximum(std::abs(x[0] + x[1]), 0.3);
    }
  }

private:
  double upper(int i) const noexcept
  {
    return i < 2 ? settings_.scale_upper : settings_.offset_limit;
  }

  double level_ = 1.0;
  AdaptationSettings settings_;
};

/// What the observer knows about the law of one joint.
struct ObservedJoint
{
  Law law;
  FrictionValues values;
  double level = 1.0;  ///< friction at rest [N m]
  double gear = 1.0;   ///< from torques of the servo to those of the joint
};

/// A measured state in the coordinates of the parameter files [rad], [rad/s], [N m].
struct Motion
{
  Vector position, velocity, direction, motor, external;
  Mask led, follows;
  Mask free;        ///< joints without a goal that have moved beyond their presliding
  Vector measured;  ///< direction of the measured motion
};

/// Scales and offset of the friction of joints, from the momentum residual of their dynamics.
class FrictionObserver
{
public:
  MomentumResidual residual;
  std::array<ObservedJoint, max_joints> joints{};
  Vector torque{};              ///< residual torque [N m]
  Vector external{};            ///< external torque [N m]
  Vector external_band{};       ///< half-width of its pointwise band of 97 % [N m]
  Vector external_threshold{};  ///< beyond it, it is a contact [N m]
  Mask contact{};               ///< joints on which more than friction acts against the motion
  /// joints whose residual has just changed by more than friction and an error of the model explain
  Mask sudden{};
  /// sign of an external torque beyond the threshold of an alarm of one joint and an error of the
  /// model's gravity, else 0
  Vector touched{};
  Vector wrong{};   ///< error of the modelled weight, as a fraction of the friction at rest
  Mask learning{};  ///< joints that learnt from the last residual
  std::array<Scales, max_joints> scales{}, surely{};  ///< estimates, and lower bounds
  Vector offset{};     ///< residual that the scaled friction does not explain [N m]
  Vector certainty{};  ///< from 0 before any motion to 1
  /// largest excess of the friction at rest over the estimate, as a fraction
  Vector doubtful{};
  Vector met{};  ///< fraction of the present viscous friction covered by learning
  /// direction in which the controller pushes a joint by more than its weight, in [-1, 1]
  Vector pushed{};

  /// Begin with scales learnt earlier, or else with the identified friction at the present
  /// temperature.
  void begin(
    int n, double time_constant, const AdaptationSettings & settings, const Learned * learned,
    const Vector & warmth) noexcept
  {
    n_ = n, settings_ = settings, residual.time_constant = time_constant;
    const double crossings =
      std::acos(std::exp(-learning_period / time_constant)) / (pi * learning_period);
    alarm_ = std::sqrt(2.0 * std::log(maximum(alarm_period * n * crossings, 1.0)));
    alarm_of_one_ = std::sqrt(2.0 * std::log(maximum(alarm_period * crossings, 1.0)));
    fastest_.fill(0.0), excess_.fill(1.0), factor_.fill(1.0), taught_.fill(assumed_time);
    restart();
    for (int k = 0; k < n; ++k)
    {
      ScaleFilter & filter = filters_[k];
      filter.reset(joints[k].level, settings);
      if (learned == nullptr)
      {
        filter.state[0] = filter.state[1] = warmth[k];
      }
      else
      {
        const Learned & found = learned[k];
        const double prior = settings.prior * settings.prior,
                     since = recalled_deviation * recalled_deviation;
        filter.state[0] = found.dry, filter.state[1] = found.viscous;
        const double dry = found.deviation_dry * found.deviation_dry + since;
        const double viscous = found.deviation_viscous * found.deviation_viscous + since;
        filter.covariance[0][0] = prior < dry ? prior : dry;
        filter.covariance[1][1] = prior < viscous ? prior : viscous;
        filter.covariance[0][1] = filter.covariance[1][0] = 0.0;
      }
      filter.restrict_state();
    }
    settle();
  }

  /// Forget the motion but keep what was learnt.
  void restart() noexcept
  {
    residual.restart();
    for (Vector & v : friction_)
    {
      v.fill(0.0);
    }
    for (Vector & v : moved_)
    {
      v.fill(0.0);
    }
    torque.fill(0.0), contact.fill(false), sudden.fill(false), surprised_.fill(0.0);
    touched.fill(0.0);
    impulse_.fill(0.0), elapsed_ = 0.0;
    drive_.fill(0.0), driving_.fill(0.0), pushed.fill(0.0);
    external.fill(0.0), external_band.fill(infinity), external_threshold.fill(infinity);
  }

  /// Update with a state in the robot's coordinates; \returns whether conclude() is due.
  /// \param applied friction torque in the acting one, in the coordinates of the parameter files.
  bool update(
    const Vector & q, const Vector & v, const Vector & acting, const Vector & applied,
    double dt) noexcept
  {
    const Vector found = residual.update(n_, q, v, acting, dt);
    for (int k = 0; k < n_; ++k)
    {
      impulse_[k] = impulse_[k] + found[k] * dt;
      driving_[k] =
        driving_[k] + ((acting[k] - residual.bias[k]) / joints[k].gear - applied[k]) * dt;
    }
    elapsed_ += dt;
    return elapsed_ >= learning_period;
  }

  /// Learn from the residual and detect contacts; \returns the time since the last call [s].
  double conclude(const Motion & motion) noexcept
  {
    const double elapsed = elapsed_, share = -std::expm1(-elapsed / residual.time_constant);
    elapsed_ = 0.0;
    Mask moving{};
    Vector unexplained{}, budget{}, most{};
    bool any = false, sound = true;
    for (int k = 0; k < n_; ++k)
    {
      const ObservedJoint & joint = joints[k];
      torque[k] = impulse_[k] / maximum(elapsed, 1e-9) / joint.gear;
      const double drive = driving_[k] / maximum(elapsed, 1e-9);
      impulse_[k] = driving_[k] = 0.0;
      drive_[k] = drive_[k] + share * (drive - drive_[k]);
      const double beyond =
        (std::abs(drive_[k]) / joint.level - driven_share) / (pushed_share - driven_share);
      pushed[k] = sign_of(drive_[k]) * minimum(maximum(beyond, 0.0), 1.0);
      budget[k] = cancelling_torque(
        joint.law, joint.values, motion.direction[k], motion.velocity[k], motion.motor[k],
        motion.external[k], {}, motion.position[k]);
      sound = sound && (std::abs(torque[k]) + std::abs(budget[k])) / joint.level < absurd;
    }
    if (!sound)
    {
      restart();
      learning.fill(false);
      return elapsed;
    }
    for (int k = 0; k < n_; ++k)
    {
      const ObservedJoint & joint = joints[k];
      const double d = motion.direction[k], whole = budget[k];
      const double viscous_now =
        d * viscous_friction(joint.law, joint.values, d, motion.velocity[k]);
      const double tau_0 =
        offset_torque(joint.law, joint.values, {0.0, 0.0, 0.0, 0.0, motion.position[k]});
      const double now[3] = {whole + std::abs(d) * tau_0 - viscous_now, viscous_now, d};
      const double agrees = d == 0.0 ? 0.0 : clipped(motion.measured[k] / d, 1.0);
      for (int i = 0; i < 3; ++i)
      {
        friction_[i][k] = friction_[i][k] + share * (now[i] - friction_[i][k]);
        moved_[i][k] = moved_[i][k] + share * (agrees * now[i] - moved_[i][k]);
      }
      const double dry = friction_[0][k], viscous = friction_[1][k], direction = friction_[2][k];
      const double friction = unexplained[k] = torque[k] - std::abs(direction) * tau_0;
      separate(k, friction);
      const double base =
        upper_[k].dry * maximum(std::abs(dry), joint.level) + upper_[k].viscous * std::abs(viscous);
      wrong[k] = model_error * std::abs(residual.bias[k] / joint.gear) / joint.level;
      const double explicable = beyond_noise_[k] + wrong[k] * joint.level;
      touched[k] = std::abs(external[k]) > explicable ? sign_of(external[k]) : 0.0;
      most[k] = settings_.offset_limit + wrong[k];
      bool foreign = exceeds(friction, direction, base, most[k], joint.level);
      contact[k] = exceeds(friction, direction, base, offset_size_[k], joint.level);
      const double innovation = filters_[k].innovation(friction, dry, viscous);
      const bool surprising = std::abs(innovation) > surprise + 3.0 * filters_[k].deviation;
      surprised_[k] = surprising ? surprised_[k] + elapsed : 0.0;
      foreign = foreign || (surprising && surprised_[k] < surprise_time);
      const double explained = surprise + 3.0 * filters_[k].deviation + wrong[k];
      sudden[k] = std::abs(innovation) > explained && surprised_[k] < surprise_time;
      const bool driven = drive_[k] * direction > driven_share * joint.level && motion.free[k];
      moving[k] = std::abs(direction) > reversed &&
                  ((motion.led[k] && motion.follows[k]) || driven) && !foreign;
      calibrate(k, moving[k] ? elapsed : 0.0);
      any = any || moving[k];
    }
    learning = moving;
    if (!any)
    {
      meet();
      return elapsed;
    }
    for (int k = 0; k < n_; ++k)
    {
      filters_[k].update(
        unexplained[k], friction_[0][k], friction_[1][k], moving[k], residual.time_constant,
        elapsed, most[k]);
      fastest_[k] = moving[k] ? maximum(fastest_[k], std::abs(friction_[1][k])) : fastest_[k];
    }
    settle();
    return elapsed;
  }

  /// Scales to start from in a later run.
  Learned learned(int k) const noexcept
  {
    const ScaleFilter & filter = filters_[k];
    return {
      filter.state[0], filter.state[1], std::sqrt(filter.covariance[0][0]),
      std::sqrt(filter.covariance[1][1])};
  }

private:
  /// External torque of a joint and its band, as live/learning/external.py explains.
  void separate(int k, double unexplained) noexcept
  {
    const ScaleFilter & filter = filters_[k];
    const double level = joints[k].level, dry = moved_[0][k], viscous = moved_[1][k];
    const double free = maximum(1.0 - std::abs(moved_[2][k]), 0.0);
    const double held = free * (scales[k].dry + 2.0 * std::sqrt(filter.covariance[0][0])) * level;
    const double whole = unexplained + scales[k].dry * dry + scales[k].viscous * viscous;
    const bool outside = std::abs(whole) > held;
    external[k] = outside ? whole : 0.0;
    spread_[k] = filter.variance(dry, viscous) + settings_.noise * settings_.noise;
    const double factor = 1.0 + minimum(std::abs(moved_[2][k]), 1.0) * (excess_[k] - 1.0);
    const double spread = std::sqrt(factor * spread_[k]) * level;
    width_[k] = band_quantile * factor_[k] * spread;
    external_band[k] = width_[k] + held + (outside ? 0.0 : std::abs(whole));
    loose_[k] = maximum(std::abs(external[k]) - held, 0.0);
    external_threshold[k] = alarm_ * spread + held;
    beyond_noise_[k] = alarm_of_one_ * spread + held;
    if (!(level > no_friction))
    {
      external_band[k] = external_threshold[k] = beyond_noise_[k] = infinity;
    }
  }

  /// Correct the band of a joint by its torque in a motion that teaches friction. \param taught
  /// time of it since the last call [s].
  void calibrate(int k, double taught) noexcept
  {
    const double found = loose_[k] / joints[k].level, least = least_error / settings_.noise;
    taught_[k] = minimum(taught_[k] + taught, normalised_time);
    const double share = taught / taught_[k];
    excess_[k] =
      maximum(excess_[k] + share * (found * found / spread_[k] - excess_[k]), least * least);
    const double change =
      conformal_rate * taught * ((loose_[k] > width_[k] ? 1.0 : 0.0) - outside_share);
    factor_[k] = minimum(maximum(factor_[k] * (1.0 + change), narrowest), widest);
  }

  static bool exceeds(
    double friction, double direction, double base, double offset, double level) noexcept
  {
    const bool against = std::abs(direction) > reversed && friction * direction < 0.0;
    return against && std::abs(friction) > contact_margin * (base + offset * level);
  }

  /// Update the estimates that hold until the next call of conclude().
  void settle() noexcept
  {
    for (int k = 0; k < n_; ++k)
    {
      const ScaleFilter & filter = filters_[k];
      const double dry = filter.state[0], viscous = filter.state[1], most = settings_.scale_upper;
      const double spread_dry = sure_deviations * std::sqrt(filter.covariance[0][0]);
      const double spread_viscous = sure_deviations * std::sqrt(filter.covariance[1][1]);
      upper_[k] = {minimum(dry + spread_dry, most), minimum(viscous + spread_viscous, most)};
      offset_size_[k] = std::abs(filter.state[2]);
      scales[k] = {dry, viscous};
      offset[k] = filter.state[2] * joints[k].level;
      const double spread = filter.deviation / (0.5 * settings_.prior);
      certainty[k] = maximum(1.0 - spread * spread, 0.0);
      doubtful[k] = spread_dry + minimum(offset_size_[k], settings_.offset_limit) + 0.1;
      const double lowest = dry - spread_dry - offset_size_[k];
      surely[k] = {lowest, minimum(viscous - spread_viscous, lowest)};
    }
    meet();
  }

  void meet() noexcept
  {
    for (int k = 0; k < n_; ++k)
    {
      met[k] = minimum(fastest_[k] / maximum(std::abs(friction_[1][k]), 1e-9), 1.0);
    }
  }

  int n_ = 0;
  AdaptationSettings settings_;
  double alarm_ = 0.0;         ///< standard deviations of the threshold of an alarm
  double alarm_of_one_ = 0.0;  ///< the same of a robot of one joint
  Vector beyond_noise_{};      ///< threshold of an alarm of one joint [N m]
  std::array<ScaleFilter, max_joints> filters_{};
  /// dry and viscous friction and direction, filtered like the residual
  std::array<Vector, 3> friction_{};
  std::array<Vector, 3> moved_{};  ///< the same in the direction of the measured motion
  std::array<Scales, max_joints> upper_{};
  Vector offset_size_{}, surprised_{}, impulse_{}, fastest_{}, drive_{}, driving_{};
  Vector excess_{}, taught_{}, factor_{}, width_{}, loose_{}, spread_{};
  double elapsed_ = 0.0;
};

}  // namespace stribeck

#endif  // STRIBECK_CONTROLLERS__OBSERVER_HPP_
