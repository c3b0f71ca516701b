// Copyright the Stribeck maintainers. SPDX-License-Identifier: Apache-2.0
/// \file
/// Live friction compensation of n joints: states and commands in, friction torque out; zero for
/// states that cannot be trusted. The counterpart of live/compensator.py and live/loads.py of the
/// Python package, with states of all joints in their order (names and partial states are a matter
/// of messages). After configure() nothing allocates, locks or throws.
#ifndef STRIBECK_CONTROLLERS__COMPENSATOR_HPP_
#define STRIBECK_CONTROLLERS__COMPENSATOR_HPP_

#include <array>
#include <cmath>
#include <string>
#include <utility>

#include "stribeck_controllers/feedforward.hpp"

namespace stribeck
{

/// Time constant of the motor torque without the feed-forward torque [s].
constexpr double load_filter = 0.05;
constexpr double modelled_share = 0.48;  ///< Part of a modelled weight that counts as load.
/// Torque as a fraction of the largest, and velocity [rad/s], at which slopes of a firmware are
/// taken.
constexpr double small = 1e-3;
/// Efforts beyond this multiple of the stall torque are impossible.
constexpr double largest_effort = 10.0;
/// Without a state for this long, simulated time does not count [s].
constexpr double standstill = 1.0;

/// Measured values of all joints in the robot's coordinates; a null pointer means that the field is
/// not given.
struct Measurement
{
  const double * position = nullptr;  ///< [rad]
  const double * velocity = nullptr;  ///< [rad/s]; without it the slope of the positions is used
  const double * effort = nullptr;    ///< [N m]
};

/// Estimate of the present friction of the joints, for diagnostics.
struct Account
{
  Vector dry, viscous, offset, certainty, contact, energy;
};

/// A torque that is nearer to zero by a reach, not beyond it [N m].
inline double faded(double torque, double reach) noexcept
{
  return sign_of(torque) * maximum(std::abs(torque) - reach, 0.0);
}

/// Friction compensation of a set of joints. Large (some 400 kB): a member or a static object, not
/// on a stack.
class Compensator
{
public:
  bool enabled = false;
  Doubt doubt = Doubt::not_enabled;
  Vector torque{};  ///< friction torque in the robot's coordinates [N m]
  /// Why single joints have no torque while the others are compensated: not_enabled
  /// (JointModel::enabled), frozen (a position that stands still at a nonzero velocity), or driven
  /// (less friction than guaranteed; off until enable() or until a goal leads the joint).
  std::array<Doubt, max_joints> off{};

  Compensator() = default;
  Compensator(const Compensator &) = delete;
  Compensator & operator=(const Compensator &) = delete;

  /// Set joints and settings; not for use in a real-time loop.
  /// \param dynamics dynamics of the joints, in the robot's coordinates; nullptr: nothing is
  /// learnt. Kept by reference.
  /// \returns why they cannot be used, empty if they can.
  std::string configure(
    int n, const std::array<JointModel, max_joints> & joints, const Settings & settings,
    const Dynamics * dynamics = nullptr)
  {
    if (n < 1 || n > max_joints)
    {
      return "expected 1 to " + std::to_string(max_joints) + " joints, found " + std::to_string(n);
    }
    std::string problem = gain_problem(n, joints, settings.gain, settings.effort_meaning);
    for (int k = 0; problem.empty() && k < n; ++k)
    {
      problem = joint_problem(k, joints[k], settings);
    }
    const Vector bandwidth = viscous_lag(n, joints, 1.0, dynamics);
    for (int k = 0; problem.empty() && settings.mode != OutputMode::goal_offset && k < n; ++k)
    {
      if (bandwidth[k] * settings.loop_delay > 1.0)
      {
        problem = "joint " + std::to_string(k + 1) + ": with a loop delay of " +
                  std::to_string(1e3 * settings.loop_delay) +
                  " ms it might not come to rest without a goal: shorten the delay";
      }
    }
    if (!problem.empty())
    {
      return problem;
    }
    n_ = n, joints_ = joints, settings_ = settings;
    servos_.reset(), servos_.joints = static_cast<std::size_t>(n);
    admission_.state_timeout = settings.state_timeout, admission_.state_lag = settings.state_lag;
    for (int k = 0; k < n; ++k)
    {
      const JointModel & joint = joints_[k];
      const double fastest = times_to_full_torque * joint.max_torque;
      slew_[k] = settings.slew > 0.0 ? settings.slew : fastest;
      fading_[k] = maximum(slew_[k], fastest);
      each_[k].admission.state_timeout = settings.state_timeout,
      each_[k].admission.state_lag = settings.state_lag;
      each_[k].admission.plausibility.resolution[0] = joint.resolution / joint.ratio;
      each_[k].admission.plausibility.moving_velocity[0] =
        joint.tuning.moving_velocity / joint.ratio;
      stall_[k] = joint.servo.stall();
      servos_.supply[k] = joint.servo.nominal_supply;
      servos_.identified[k] = joint.temperature;
      admission_.plausibility.resolution[k] = joint.resolution / joint.ratio;
      admission_.plausibility.moving_velocity[k] = joint.tuning.moving_velocity / joint.ratio;
    }
    observed_ = dynamics != nullptr && settings.adapt;
    feed_forward_.configure(n, joints_, settings_, dynamics, &servos_.warmth);
    latency_.reset();
    feed_forward_.expect(
      bandwidth, settings.mode == OutputMode::goal_offset ? &latency_ : nullptr);
    matter_ = settings.effort_meaning != EffortMeaning::none && feed_forward_.load_dependent;
    const bool blind =
      settings.mode == OutputMode::goal_offset && settings.effort_meaning == EffortMeaning::none;
    weights_ = blind && feed_forward_.load_dependent ? dynamics : nullptr;
    steepest_ = 0.0;
    for (int k = 0; weights_ != nullptr && k < n_; ++k)
    {
      const JointModel & joint = joints_[k];
      const double slope = load_feedback(joint.law, joint.friction, joint.max_torque);
      steepest_ = joint.enabled ? maximum(steepest_, slope) : steepest_;
    }
    commands_.reset(), goals_.reset(), admission_.reset(), controller_.clear();
    own_.delay = controller_.delay = settings.loop_delay;
    state_arrival_ = -infinity, enabled = false;
    fall_to_zero(Doubt::not_enabled);
    return {};
  }

  int joints() const noexcept { return n_; }
  double gain() const noexcept { return feed_forward_.gain; }

  /// Why a joint has no torque: that of all joints, or its own.
  Doubt joint_doubt(int k) const noexcept { return doubt != Doubt::none ? doubt : off[k]; }

  /// Rate at which the torque of a joint may fade to zero, in the robot's coordinates [N m/s].
  double fading(int k) const noexcept { return fading_[k] * joints_[k].ratio; }

  /// Largest gain with which every joint comes to rest at a goal that rests.
  ///  Towards the goal the torque is g B, away from it a g B with a = Tuning::overshoot_fraction:
  /// an oscillation loses energy for g (1 + a) < 2, here with friction that is smaller than
  /// identified by the factor `safety`, or with delays that do the same. Besides, the gain is
  /// bounded by the friction's growth with the motor torque.
  double largest_gain() const noexcept
  {
    double most = 2.0;
    for (int k = 0; k < n_; ++k)
    {
      if (!joints_[k].enabled)
      {
        continue;
      }
      most = minimum(most, safety * 2.0 / (1.0 + joints_[k].tuning.overshoot_fraction));
      const double slope =
        load_feedback(joints_[k].law, joints_[k].friction, joints_[k].max_torque);
      if (settings_.effort_meaning != EffortMeaning::none && slope > 0.0)
      {
        most = minimum(most, (1.0 - 1e-9) * largest_feedback / slope);
      }
    }
    return most;
  }
  /// The last state, nullptr while it is not trusted.
  const State * trusted_state() const noexcept
  {
    return enabled && has_state_ && doubt == Doubt::none && all_trusted() ? &state_ : nullptr;
  }

  /// Friction of a joint at rest and the largest torque of its motor, in the robot's coordinates [N
  /// m].
  double level(int k) const noexcept
  {
    return feed_forward_.at_rest[k] * std::abs(joints_[k].gear());
  }
  double largest_torque(int k) const noexcept { return stall_[k] * std::abs(joints_[k].gear()); }

  bool learns() const noexcept { return feed_forward_.observes; }

  /// Speed at which the compensation of a joint ends that it drives, in the coordinates of its
  /// parameter file [rad/s].
  double speed_bound(int k) const noexcept { return feed_forward_.speed_limit.bound(k); }

  /// Learnt friction of a joint; that of the parameter file before anything is learnt.
  Learned learned(int k) const noexcept
  {
    return learns() ? feed_forward_.observer.learned(k) : Learned{};
  }

  /// Start with scales learnt in an earlier run (n of them), or with the parameter files alone
  /// (nullptr).
  void recall(const Learned * learned) noexcept { feed_forward_.recall(learned); }

  /// Delay of the clock of the goals or commands relative to that of the states, 0 if negligible
  /// [s].
  double clock_difference() const noexcept
  {
    return goals_.difference != 0.0 ? goals_.difference : commands_.difference;
  }

  /// Start, with a ramp of the torque.
  void enable() noexcept
  {
    enabled = true;
    feed_forward_.begin();
    servos_.advance(infinity);
    admission_.restart();
    for (JointState & joint : each_)
    {
      joint.restart();
    }
    fall_to_zero(Doubt::no_states_yet);
  }

  /// Set the torque to zero until enable().
  void disable() noexcept
  {
    enabled = false;
    fall_to_zero(Doubt::not_enabled);
  }

  /// Whether a gain would be stable.
  bool accepts_gain(double gain) const noexcept
  {
    return gain_is_stable(n_, joints_, gain, settings_.effort_meaning);
  }

  /// Whether the loads are the gravity torques of the model, as efforts are not measured; zero
  /// where friction would then amplify itself at this gain.
  bool loads_modelled() const noexcept
  {
    return weights_ != nullptr && gain() * steepest_ < largest_feedback;
  }

  /// Set the gain from the next state on; \returns false for a gain that would not be stable: the
  /// old one stays.
  bool set_gain(double gain) noexcept
  {
    if (!accepts_gain(gain))
    {
      return false;
    }
    feed_forward_.gain = settings_.gain = gain;
    return true;
  }

  /// Firmware gain, supply voltage [V] and temperature [deg C] of a joint, NaN where unknown.
  /// \param stamp with one, they apply to states stamped at least 0.1 s later; NaN: at once.
  void on_telemetry(
    int joint, double kp, double supply, double temperature, double stamp = not_a_number) noexcept
  {
    if (joint >= 0 && joint < n_)
    {
      servos_.take(joint, kp, supply, temperature, stamp, enabled);
    }
  }

  /// Command of a controller: position, velocity and effort, null pointers where not given.
  /// \param arrival time on a steady clock; \param stamp time on the clock of the states, if it has
  /// one [s].
  /// \param now current time on the clock of the stamps, if that is simulated [s].
  void on_command(
    double arrival, const double * stamp, const Measurement & command,
    const double * now = nullptr) noexcept
  {
    take_ = {given(command.position), given(command.velocity), given(command.effort)};
    if (stored(commands_, arrival, stamp, now) && observed_)
    {
      if (stamp != nullptr)
      {
        controller_.add(*stamp, take_.effort);
      }
      else if (admission_.has_stamp)
      {
        controller_.add(admission_.stamp, take_.effort);
      }
    }
  }

  /// Goal that a controller publishes beside its commands; after the first one, goals inside
  /// commands are ignored.
  void on_goal(
    double arrival, const double * stamp, const Measurement & goal,
    const double * now = nullptr) noexcept
  {
    take_ = {given(goal.position), given(goal.velocity), filled(not_a_number)};
    stored(goals_, arrival, stamp, now);
  }

  /// Friction torque for a measured state [N m], also in torque; zero if the state is not trusted.
  ///  A single state that is repeated, late or jumps is treated as lost: the torque stays until
  /// states time out.
  const Vector & on_state(
    double arrival, double stamp, const Measurement & measured,
    const double * now = nullptr) noexcept
  {
    if (!enabled)
    {
      return torque;
    }
    switch (follow(arrival, now == nullptr ? arrival : *now, stamp, measured))
    {
      case Verdict::usable:
        break;
      case Verdict::bridged:
        admission_.bridged(admission_.reason);
        if (!(doubt == Doubt::none && arrival - state_arrival_ <= settings_.state_timeout))
        {
          fall_to_zero(admission_.reason);
          rejected_ = stamp;
        }
        break;
      case Verdict::doubtful:
        admission_.doubted(stamp);
        fall_to_zero(admission_.reason);
        break;
    }
    return torque;
  }

  /// Set the torque to zero if the states are stale at a time on the steady clock [s]; \returns
  /// whether it did so.
  /// \param time current time on the clock of the stamps, if that is simulated [s].
  bool expire(double now, const double * time = nullptr) noexcept
  {
    const double silence = now - state_arrival_;
    if (doubt != Doubt::none || silence <= settings_.state_timeout)
    {
      return false;
    }
    if (time != nullptr && admission_.has_stamp && silence <= standstill)
    {
      const double behind = admission_.clock.known ? admission_.clock.offset : 0.0;
      if (*time - admission_.stamp - behind <= settings_.state_timeout)
      {
        return false;
      }
    }
    fall_to_zero(Doubt::expired);
    return true;
  }

  /// Reduce another source's friction torque [N m] towards zero at the slew limit during dt [s];
  /// also sets torque.
  const Vector & fade(const Vector & other, double dt) noexcept
  {
    for (int k = 0; k < n_; ++k)
    {
      applied_[k] = faded(other[k] / joints_[k].gear(), slew_[k] * dt);
      torque[k] = joints_[k].gear() * applied_[k];
    }
    return torque;
  }

  /// Say which friction torques were sent instead of those of the last state, in the robot's
  /// coordinates [N m].
  ///  What limits or a missing reference left out has not acted: it is not learnt as friction, and
  /// the slew limit starts from what was sent.
  void sent(const Vector & friction) noexcept
  {
    for (int k = 0; k < n_; ++k)
    {
      if (friction[k] != torque[k])
      {
        applied_[k] = friction[k] / joints_[k].gear();
      }
    }
    torque = friction;
    if (observed_)
    {
      own_.correct(friction);
    }
  }

  /// Say which friction torques were sent while two compensators share the joints: as sent(), but
  /// the slew limit starts from the own torque.
  void shared(const Vector & friction) noexcept
  {
    if (doubt == Doubt::none)
    {
      slewed_ = shares_ ? slewed_ : applied_;
      shares_ = true;
      sent(friction);
    }
  }

  /// Position to command so that the firmware of a servo adds a torque to that for a position, both
  /// in the robot's coordinates [rad], [N m]; the position itself where that is not possible.
  double goal_with(int k, double position, double friction) const noexcept
  {
    const double gear = joints_[k].gear(), goal = gear * (position - joints_[k].offset);
    const double found = position + firmware_offset(k, goal, friction / gear) / gear;
    return std::isfinite(found) ? found : position;
  }

  /// Values to send: efforts [N m], goals [rad] or currents [A]; \returns false without a fresh
  /// command to pass on.
  bool output(double now, Vector & values) const noexcept
  {
    values = torque;
    if (settings_.mode == OutputMode::friction_only)
    {
      return true;
    }
    if (settings_.mode == OutputMode::current)
    {
      for (int k = 0; k < n_; ++k)
      {
        values[k] =
          joints_[k].sign * joints_[k].servo.current(clip(applied_[k], -stall_[k], stall_[k]));
      }
      return true;
    }
    const Command * command = commands_.latest(now, settings_.command_timeout);
    const bool sum = settings_.mode == OutputMode::sum;
    if (command == nullptr || !finite(sum ? command->effort : command->position, n_))
    {
      return false;
    }
    for (int k = 0; k < n_; ++k)
    {
      const double goal = joints_[k].gear() * (command->position[k] - joints_[k].offset);
      values[k] = sum ? command->effort[k] + torque[k]
                      : command->position[k] +
                          firmware_offset(k, goal, applied_[k] + feed_forward_of(k, *command)) /
                            joints_[k].gear();
    }
    return sum || finite(values, n_);
  }

  /// Offset of the goal that makes the firmware of a servo add a torque, in its coordinates [rad];
  /// 0 without its gain.
  double firmware_offset(int k, double goal, double wanted) const noexcept
  {
    const Servo & servo = joints_[k].servo;
    const double kp = servos_.kp[k], supply = servos_.supply[k];
    if (!(kp > 0.0))
    {
      return 0.0;
    }
    double acting = 0.0;  // matters where the iron saturates
    if (servo.saturation > 0.0 && has_state_)
    {
      acting = servo.torque(goal, state_.position[k], state_.velocity[k], kp, supply);
      acting = std::isfinite(acting) ? acting : 0.0;
    }
    const double possible = clip(acting + wanted, -stall_[k], stall_[k]) - acting;
    return servo.goal_offset(possible, kp, supply, acting);
  }

  /// External torque on a joint, the half-width of its band of 97 % and the threshold of contact,
  /// in the robot's coordinates; \returns false without a model of the dynamics, or while states
  /// are not trusted.
  bool external_torque(int k, double & found, double & band, double & threshold) const noexcept
  {
    const double gear = joints_[k].gear();
    found = gear * feed_forward_.observer.external[k];
    band = std::abs(gear * feed_forward_.observer.external_band[k]);
    threshold = std::abs(gear * feed_forward_.observer.external_threshold[k]);
    return learns() && doubt == Doubt::none;
  }

  /// Measured delay from the goal of a joint to its position and half-width of its 95 % interval
  /// [s]; NaN and infinite without a measurement.
  void goal_delay(int k, double & delay, double & half_width) const noexcept
  {
    delay = latency_.delay[k], half_width = latency_.half_width[k];
  }

  /// Estimate of the present friction.
  Account account() const noexcept
  {
    const Vector & scale = feed_forward_.tracking.scale;
    Account found{scale, scale, filled(0.0), filled(0.0), feed_forward_.contact.share, filled(0.0)};
    for (int k = 0; k < n_; ++k)
    {
      found.energy[k] = feed_forward_.tank.share(k);
      if (learns())
      {
        const FrictionObserver & observer = feed_forward_.observer;
        found.dry[k] = observer.scales[k].dry, found.viscous[k] = observer.scales[k].viscous;
        found.offset[k] = joints_[k].gear() * observer.offset[k],
        found.certainty[k] = observer.certainty[k];
      }
    }
    return found;
  }

private:
  // -- configuration

  static bool gain_is_stable(
    int n, const std::array<JointModel, max_joints> & joints, double gain,
    EffortMeaning meaning) noexcept
  {
    if (!(std::isfinite(gain) && 0.0 <= gain && gain <= 2.0))
    {
      return false;
    }
    for (int k = 0; meaning != EffortMeaning::none && k < n; ++k)
    {
      const double slope = load_feedback(joints[k].law, joints[k].friction, joints[k].max_torque);
      if (joints[k].enabled && gain * slope >= largest_feedback)
      {
        return false;
      }
    }
    return true;
  }

  static std::string gain_problem(
    int n, const std::array<JointModel, max_joints> & joints, double gain, EffortMeaning meaning)
  {
    if (gain_is_stable(n, joints, gain, meaning))
    {
      return {};
    }
    return "a gain of " + std::to_string(gain) +
           " is not possible: it must be in [0, 2], and its product with the increase of friction "
           "per motor torque below 0.9, "
           "otherwise the compensation is unstable: choose a smaller gain, or effort_meaning none";
  }

  static std::string joint_problem(int k, const JointModel & joint, const Settings & settings)
  {
    const std::string which = "joint " + std::to_string(k + 1) + ": ";
    const FrictionValues & p = joint.friction;
    if (!(joint.max_torque > 0.0 && std::isfinite(joint.max_torque)))
    {
      return which + "max_torque must be positive, found " + std::to_string(joint.max_torque);
    }
    if (!(std::abs(joint.sign) == 1.0 && joint.ratio > 0.0 && std::isfinite(joint.ratio) &&
          std::isfinite(joint.offset)))
    {
      return which + "sign must be 1 or -1, ratio positive, and offset finite";
    }
    if (const Refusal refusal = refused_value(joint.law, p); refusal.name != nullptr)
    {
      return which + refusal.name + " must be " + refusal.valid + ", found " +
             std::to_string(refusal.found);
    }
    const Conditions rest{};
    for (const FrictionValues & side : {p, negative_values(joint.law, p)})
    {
      double friction = 0.0;
      friction = joint.law.has(Term::coulomb) ? friction + value::coulomb(side, rest) : friction;
      friction = joint.law.has(Term::fading_coulomb) ? friction + value::fading_coulomb(side, rest)
                                                     : friction;
      if (friction < -1e-9)
      {
        return which +
               "friction_base + friction_stribeck, the friction at rest, must be zero or positive, "
               "found " +
               std::to_string(friction);
      }
    }
    const bool needs_constant =
      settings.mode == OutputMode::current ||
      (settings.mode == OutputMode::goal_offset && joint.servo.control != ControlKind::torque);
    if (needs_constant && !(joint.servo.kt > 0.0))
    {
      return which + "its output mode needs the torque constant kt";
    }
    return {};
  }

  /// Bandwidth of the viscous friction times a delay.
  static Vector viscous_lag(
    int n, const std::array<JointModel, max_joints> & joints, double delay,
    const Dynamics * dynamics)
  {
    const Vector zero = filled(0.0);
    Matrix mass{};
    Vector bias{}, found{};
    if (dynamics != nullptr)
    {
      dynamics->evaluate(zero, zero, mass, bias);
    }
    for (int k = 0; k < n; ++k)
    {
      const JointModel & joint = joints[k];
      const double rotor = joint.armature == 0.0 ? infinity : joint.armature;
      const double inertia = dynamics != nullptr ? mass[k][k] / (joint.ratio * joint.ratio) : rotor;
      found[k] = largest_viscous_slope(joint.law, joint.friction, full_speed) * delay / inertia;
    }
    return found;
  }

  // -- inputs

  Vector given(const double * values) const noexcept
  {
    Vector found = filled(not_a_number);
    for (int k = 0; values != nullptr && k < n_; ++k)
    {
      found[k] = values[k];
    }
    return found;
  }

  bool stored(
    Commands & commands, double arrival, const double * stamp, const double * now) noexcept
  {
    return commands.add(
      n_, arrival, stamp != nullptr, stamp == nullptr ? 0.0 : *stamp, take_, admission_.clock.known,
      admission_.clock.offset, settings_.command_timeout, now != nullptr,
      now == nullptr ? 0.0 : *now);
  }

  /// Command for a state, with separate goals where there are any, the goal's velocity and age;
  /// \returns whether there is one.
  bool command_before(
    double stamp, double arrival, Command & found, Vector & rate, double & age) const noexcept
  {
    const double timeout = settings_.command_timeout, late = admission_.late;
    const Command * command = commands_.before(stamp, arrival, timeout, late, rate, age);
    if (goals_.empty())
    {
      if (command != nullptr)
      {
        found = *command;
      }
      return command != nullptr;
    }
    const Command * goal = goals_.before(stamp, arrival, timeout, late, rate, age);
    const Vector nothing = filled(not_a_number);
    if (goal == nullptr && command == nullptr)
    {
      return false;
    }
    found = {
      goal == nullptr ? nothing : goal->position, goal == nullptr ? nothing : goal->velocity,
      command == nullptr ? nothing : command->effort};
    return true;
  }

  // -- states

  Verdict follow(double arrival, double now, double stamp, const Measurement & measured) noexcept
  {
    Doubt gap = Doubt::none;
    bool before = false;
    Verdict verdict = admission_.place(now, stamp, gap, before);
    if (verdict != Verdict::usable)
    {
      return verdict;
    }
    if (gap != Doubt::none)
    {
      fall_to_zero(gap);
      if (gap == Doubt::jumped_back)
      {
        feed_forward_.tracking.begin();
      }
    }
    State & state = state_;
    state.stamp = stamp, state.q = given(measured.position), state.v = given(measured.velocity);
    const Vector effort = given(measured.effort);
    double dt = 0.0;
    if (settings_.isolate_joints)
    {
      admit_each(stamp, before, measured.velocity != nullptr, dt);
    }
    else
    {
      verdict =
        admission_.measured(n_, stamp, before, state.q, measured.velocity != nullptr, state.v, dt);
      if (verdict != Verdict::usable)
      {
        return verdict;
      }
    }
    servos_.advance(stamp);
    for (int k = 0; k < n_; ++k)
    {
      if (
        settings_.mode == OutputMode::goal_offset && !(servos_.kp[k] > 0.0) &&
        !lost(k, Doubt::no_firmware_gain))
      {
        return doubtful(Doubt::no_firmware_gain);
      }
      state.position[k] = joints_[k].gear() * (state.q[k] - joints_[k].offset);
      state.velocity[k] = joints_[k].gear() * state.v[k];
    }
    has_state_ = true;
    Vector wanted;
    if (!wanted_torque(effort, arrival, dt, wanted))
    {
      return Verdict::doubtful;
    }
    if (!finite(wanted, n_))
    {
      return doubtful(Doubt::out_of_proportion);
    }
    // The torque rises from zero from the last rejected state on, which may be later than the last
    // accepted one.
    double rise = dt;
    if (doubt != Doubt::none)
    {
      const double since = stamp - rejected_, positive = since > 0.0 ? since : 0.0;
      rise = positive < dt ? positive : dt;
    }
    state_arrival_ = arrival, doubt = gap;
    applied_ = shares_ ? slewed_ : applied_;
    shares_ = false;
    for (int k = 0; k < n_; ++k)
    {
      off[k] = !joints_[k].enabled                  ? Doubt::not_enabled
               : each_[k].doubt != Doubt::none      ? each_[k].doubt
               : admission_.frozen[k]               ? Doubt::frozen
               : feed_forward_.speed_limit.ended[k] ? Doubt::driven
                                                    : Doubt::none;
      const double risen = settings_.ramp_time != 0.0 ? ramp_[k] + rise / settings_.ramp_time : 1.0;
      ramp_[k] = risen < 1.0 ? risen : 1.0;
      if (off[k] != Doubt::none)
      {
        ramp_[k] = 0.0;
        applied_[k] = settings_.isolate_joints ? faded(applied_[k], fading_[k] * rise) : 0.0;
        torque[k] = joints_[k].gear() * applied_[k];
        continue;
      }
      const double ramped = ramp_[k] < 1.0 ? ramp_[k] * wanted[k] : wanted[k],
                   reach = slew_[k] * rise;
      applied_[k] = minimum(maximum(ramped, applied_[k] - reach), applied_[k] + reach);
      torque[k] = joints_[k].gear() * applied_[k];
    }
    if (observed_)
    {
      own_.add(stamp, torque);
    }
    measure_latency(stamp);
    return Verdict::usable;
  }

  /// Compare the positions with the goals sent, where goals are commanded.
  void measure_latency(double stamp) noexcept
  {
    if (settings_.mode != OutputMode::goal_offset || !wish_.given)
    {
      return;
    }
    Vector sent{}, lag{}, bend{};
    for (int k = 0; k < n_; ++k)
    {
      const JointModel & joint = joints_[k];
      const double kp = servos_.kp[k], supply = servos_.supply[k], goal = wish_.goal[k];
      sent[k] = goal + firmware_offset(k, goal, applied_[k] + feed_forward_of(k, take_));
      if (!(kp > 0.0))
      {
        continue;
      }
      const double torque_of_offset = small * joint.max_torque;
      const double possible = clip(torque_of_offset, -stall_[k], stall_[k]);
      const double per_torque =
        joint.servo.goal_offset(possible, kp, supply, 0.0) / torque_of_offset;
      const double braked = (joint.servo.torque(0.0, 0.0, 0.0, kp, supply) -
                             joint.servo.torque(0.0, 0.0, small, kp, supply)) /
                            small;
      const double drag = (std::isfinite(braked) ? braked : 0.0) +
                          viscous_friction(joint.law, joint.friction, 1.0, 1.0);
      lag[k] = drag * per_torque, bend[k] = joint.armature * per_torque;
    }
    latency_.update(n_, stamp, state_.position, sent, lag, bend, wish_.age);
  }

  /// Check the values of each joint by itself. A joint whose state jumps goes on at its last
  /// velocity until its state times out; one whose state cannot be trusted stays where it was, and
  /// gets no torque.
  void admit_each(double stamp, bool before, bool has_velocity, double & dt) noexcept
  {
    const double elapsed = before ? stamp - admission_.stamp : 0.0;
    dt = elapsed < longest_step ? elapsed : longest_step;
    admission_.has_stamp = true, admission_.stamp = stamp;
    admission_.bridged(Doubt::none);
    for (int k = 0; k < n_; ++k)
    {
      JointState & joint = each_[k];
      joint.admit(stamp, has_velocity, elapsed, settings_.state_timeout, state_.q[k], state_.v[k]);
      if (joint.doubt != Doubt::none)
      {
        feed_forward_.tracking.restart(k);
      }
    }
  }

  /// Take the torque of a joint away if joints are isolated; \returns whether they are.
  bool lost(int k, Doubt why) noexcept
  {
    if (settings_.isolate_joints)
    {
      each_[k].doubt = why;
    }
    return settings_.isolate_joints;
  }

  /// Whether the states of all joints are trusted.
  bool all_trusted() const noexcept
  {
    bool all = !admission_.any_frozen;
    for (int k = 0; k < n_; ++k)
    {
      all = all && each_[k].doubt == Doubt::none;
    }
    return all;
  }

  /// Feed-forward torque before ramp and slew limit; \returns false for an impossible effort where
  /// one is needed.
  bool wanted_torque(const Vector & effort, double arrival, double dt, Vector & wanted) noexcept
  {
    Wish & wish = wish_;
    Vector rate;
    wish.given = command_before(state_.stamp, arrival, take_, rate, wish.age);
    for (int k = 0; k < n_; ++k)
    {
      const JointModel & joint = joints_[k];
      wish.goal[k] = wish.given ? joint.gear() * (take_.position[k] - joint.offset) : not_a_number;
      wish.rate[k] = wish.given ? joint.gear() * rate[k] : 0.0;
      wish.known[k] =
        wish.given && (std::isfinite(wish.goal[k]) || std::isfinite(take_.velocity[k]));
    }
    Loads loads{filled(0.0), filled(0.0), matter_};
    const bool trusted = all_trusted();
    if (loads_modelled())
    {
      if (trusted)
      {  // the weight depends on the positions of all joints
        model_loads(loads);
      }
    }
    else if (matter_ && !estimate_loads(effort, wish.given ? &take_ : nullptr, dt, loads))
    {
      return false;
    }
    // After a clipped time step, accelerations would be mistaken for friction.
    Vector acting;
    const bool known = trusted && observed_ && dt < longest_step && acting_torque(effort, acting);
    if (!trusted)
    {
      feed_forward_.suspend();
    }
    wanted = feed_forward_.torque(state_, wish, loads, known ? &acting : nullptr, applied_, dt);
    return true;
  }

  /// Loads of a slow motion, from the gravity torque of the model, at most those of the motors at
  /// stall.
  void model_loads(Loads & loads) const noexcept
  {
    Matrix mass{};
    Vector weight{};
    weights_->evaluate(state_.q, filled(0.0), mass, weight);
    for (int k = 0; k < n_; ++k)
    {
      loads.motor[k] = modelled_share * clipped(weight[k] / joints_[k].gear(), stall_[k]);
      loads.external[k] = -loads.motor[k];
    }
    loads.matter = true;
  }

  /// Motor torque that acts at this state, in the robot's coordinates [N m]; \returns whether it is
  /// known.
  bool acting_torque(const Vector & effort, Vector & acting) noexcept
  {
    if (settings_.mode != OutputMode::sum)
    {
      acting = effort;
      return settings_.effort_meaning == EffortMeaning::motor && finite(effort, n_);
    }
    own_.delay = controller_.delay = feed_forward_.loop_delay();
    const Vector * own = own_.at(state_.stamp);
    const Vector * controller = controller_.at(state_.stamp);
    if (own == nullptr || controller == nullptr || !finite(*controller, n_))
    {
      return false;
    }
    acting = filled(0.0);
    for (int k = 0; k < n_; ++k)
    {
      acting[k] = (*own)[k] + (*controller)[k];
    }
    return true;
  }

  /// Motor torque without the feed-forward torque, and external torque; \returns false for an
  /// impossible one.
  bool estimate_loads(
    const Vector & effort, const Command * command, double dt, Loads & loads) noexcept
  {
    Vector measured = filled(0.0), motor = filled(0.0);
    bool controlled = command != nullptr && controller_torque(*command, motor);
    for (int k = 0; k < n_; ++k)
    {
      measured[k] = effort[k] / joints_[k].gear();
    }
    if (settings_.effort_meaning == EffortMeaning::link)
    {
      if (!possible(measured) || (controlled && !possible(motor)))
      {
        return false;
      }
      for (int k = 0; k < n_; ++k)
      {
        loads.external[k] = -measured[k];
        loads.motor[k] = controlled ? motor[k] : measured[k];
      }
      return true;
    }
    if (controlled)
    {
      has_filtered_ = false;
    }
    if (!possible(controlled ? motor : measured))
    {
      return false;
    }
    const double share = minimum(1.0, dt / load_filter);
    for (int k = 0; k < n_; ++k)
    {
      if (controlled)
      {
        loads.motor[k] = motor[k];
      }
      else
      {
        const double apart = measured[k] - applied_[k];
        filtered_[k] = has_filtered_ ? filtered_[k] + share * (apart - filtered_[k]) : apart;
        loads.motor[k] = filtered_[k];
      }
      loads.external[k] = -loads.motor[k];
    }
    has_filtered_ = !controlled;
    return true;
  }

  /// The controller's torque without friction compensation; \returns whether the output mode
  /// determines it.
  bool controller_torque(const Command & command, Vector & found) const noexcept
  {
    if (settings_.mode == OutputMode::sum)
    {
      for (int k = 0; k < n_; ++k)
      {
        found[k] = command.effort[k] / joints_[k].gear();
      }
      return finite(found, n_);
    }
    if (settings_.mode != OutputMode::goal_offset)
    {
      return false;
    }
    for (int k = 0; k < n_; ++k)
    {
      const double goal =
        wish_.goal[k] + firmware_offset(k, wish_.goal[k], feed_forward_of(k, command));
      if (!(std::isfinite(goal) && servos_.kp[k] > 0.0))
      {
        return false;
      }
      found[k] = joints_[k].servo.torque(
        goal, state_.position[k], state_.velocity[k], servos_.kp[k], servos_.supply[k]);
    }
    return finite(found, n_);
  }

  /// Feed-forward torque that a controller sends beside its goal, 0 if it sends none, in the
  /// servo's coordinates [N m].
  double feed_forward_of(int k, const Command & command) const noexcept
  {
    return std::isfinite(command.effort[k]) ? command.effort[k] / joints_[k].gear() : 0.0;
  }

  /// Whether loads are possible; if joints are isolated, those of the others are set to zero
  /// instead.
  bool possible(Vector & load) noexcept
  {
    bool all = true;
    for (int k = 0; k < n_; ++k)
    {
      if (std::abs(load[k]) <= largest_effort * stall_[k])
      {
        continue;
      }
      if (lost(k, std::isfinite(load[k]) ? Doubt::effort_impossible : Doubt::effort_not_finite))
      {
        load[k] = 0.0;
        continue;
      }
      all = false;
    }
    if (!all)
    {
      admission_.reason = finite(load, n_) ? Doubt::effort_impossible : Doubt::effort_not_finite;
    }
    return all;
  }

  Verdict doubtful(Doubt why) noexcept
  {
    admission_.reason = why;
    return Verdict::doubtful;
  }

  void fall_to_zero(Doubt why) noexcept
  {
    doubt = why;
    rejected_ = -infinity, has_filtered_ = has_state_ = false;
    ramp_.fill(0.0), off.fill(Doubt::none), shares_ = false;
    applied_.fill(0.0), torque.fill(0.0);
    admission_.forget_slope();
    own_.clear();
    latency_.restart();
    feed_forward_.restart();
  }

  /// State of one joint that is admitted by itself, see Settings::isolate_joints.
  struct JointState
  {
    StateAdmission<1> admission;  ///< of one joint
    Doubt doubt = Doubt::none;    ///< why it has no torque
    double since = 0.0;           ///< time since its last usable state [s]
    double q = 0.0, v = 0.0;      ///< what the law was given last [rad], [rad/s]
    bool known = false;           ///< whether there was a usable state

    void restart() noexcept
    {
      admission.reset();
      doubt = Doubt::none, known = false, since = 0.0;
    }

    /// Check position and velocity after a time step [s], and replace those that cannot be used.
    void admit(
      double stamp, bool has_velocity, double elapsed, double timeout, double & at,
      double & speed) noexcept
    {
      std::array<double, 1> position{at}, velocity{speed};
      Doubt gap = Doubt::none;
      bool before = false;
      double step = 0.0;
      Verdict verdict = admission.place(stamp, stamp, gap, before);
      if (verdict == Verdict::usable)
      {
        verdict = admission.measured(1, stamp, before, position, has_velocity, velocity, step);
      }
      since += elapsed;
      if (verdict == Verdict::usable)
      {
        // its own states had stopped, not all
        const bool anew = gap != Doubt::none && elapsed > 0.0;
        q = position[0], v = velocity[0], known = true, since = 0.0,
        doubt = anew ? gap : Doubt::none;
      }
      else if (verdict == Verdict::bridged && known && doubt == Doubt::none && since <= timeout)
      {
        admission.bridged(admission.reason);
        q += v * elapsed;
      }
      else
      {
        verdict == Verdict::bridged ? admission.bridged(admission.reason)
                                    : admission.doubted(stamp);
        admission.forget_slope();
        doubt = admission.reason, v = 0.0;
      }
      at = q, speed = v;
    }
  };

  int n_ = 0;
  std::array<JointModel, max_joints> joints_{};
  Settings settings_;
  FeedForward feed_forward_;
  StateAdmission<max_joints> admission_;
  ServoStates servos_;
  Commands commands_, goals_;
  Delayed own_, controller_;
  GoalLatency latency_;
  State state_{};
  Wish wish_{};
  Command take_{};
  std::array<JointState, max_joints> each_{};
  Vector slew_{}, fading_{}, stall_{}, applied_{}, slewed_{}, filtered_{}, ramp_{};
  const Dynamics * weights_ = nullptr;  ///< whose gravity torques are the loads
  /// largest growth of friction with the motor torque, where they are
  double steepest_ = 0.0;
  bool observed_ = false, matter_ = false, has_filtered_ = false, has_state_ = false,
       shares_ = false;
  double state_arrival_ = -infinity, rejected_ = -infinity;
};

}  // namespace stribeck

#endif  // STRIBECK_CONTROLLERS__COMPENSATOR_HPP_
