// Copyright the Stribeck maintainers. SPDX-License-Identifier: Apache-2.0
/// \file
/// Settings, joint models, and the wanted feed-forward torque of joints before ramp and slew limit,
/// as live/settings.py, compensation.py and feedforward.py of the Python package, which explain the
/// method. Values of a joint are in the coordinates of its parameter file unless stated otherwise.
#ifndef STRIBECK_CONTROLLERS__FEEDFORWARD_HPP_
#define STRIBECK_CONTROLLERS__FEEDFORWARD_HPP_

#include <array>
#include <cmath>

#include "stribeck_controllers/latency.hpp"
#include "stribeck_controllers/observer.hpp"

namespace stribeck
{

/// Without a goal: largest fraction of the guaranteed friction cancelled.
constexpr double safety = 0.85;
/// Time in which the extra torque grows by the friction at rest [s].
constexpr double stick_time = 0.4;
constexpr double release_time = 0.03;  ///< Time constant with which that torque decays [s].
/// Fraction of the friction that is considered to hold a joint.
constexpr double held_friction = 0.9;
/// Presliding lengths beyond which friction is fully developed.
constexpr double beyond_presliding = 3.0;
/// Shortest time constant of the momentum residual [s].
constexpr double residual_time = 0.02;
/// Shortest time constant of the momentum residual, in loop times.
constexpr double residual_loops = 4.0;
/// Largest bandwidth times delay of the loop through the error [rad].
constexpr double loop_share = 0.3;
constexpr double retuned = 0.5;  ///< Period with which the tuning is adapted [s].
/// A goal without position ends when it is at rest for this long [s].
constexpr double unled_time = 0.1;
constexpr double largest_learned = 1.25;  ///< Largest factor by which learning raises the gain.
constexpr double whole = 0.99;            ///< Gain above which all friction is to be cancelled.
/// Default slew limit, in torque limits per second [1/s].
constexpr double times_to_full_torque = 50.0;

enum class OutputMode
{
  friction_only,
  sum,
  goal_offset,
  current
};
enum class EffortMeaning
{
  motor,
  link,
  none
};

/// Settings of a compensator; see live/settings.py.
struct Settings
{
  OutputMode mode = OutputMode::sum;
  EffortMeaning effort_meaning = EffortMeaning::none;
  double gain = 0.8;
  double state_timeout = 0.04;   ///< [s]
  double command_timeout = 0.1;  ///< [s]
  double ramp_time = 0.5;        ///< [s]
  double slew = 0.0;             ///< [N m/s]; 0: default
  /// the goals are those of an impedance controller, which must stay compliant
  bool impedance = false;
  bool adapt = true;  ///< learn the present friction of joints whose dynamics are known
  double certain_fraction = 0.25;  ///< guaranteed fraction of the identified friction
  double loop_delay = 0.0;         ///< [s]; 0: two periods of the states
  double state_lag = 0.1;          ///< [s]
  double learned_gain = 1.0;
  /// a state that cannot be trusted concerns its own joint only, else all; C++ only
  bool isolate_joints = false;
  AdaptationSettings adaptation;
};

enum class ControlKind
{
  voltage,
  current,
  torque
};

/// Firmware control law and motor of a servo; see model/actuator.py.
struct Servo
{
  /// Smallest torque per current of a saturated motor, relative to the unsaturated one.
  static constexpr double least_constant = 0.01;

  ControlKind control = ControlKind::torque;
  double gain = 1.0;                    ///< output per K_p and rad of position error
  double damping = 0.0;                 ///< of the current and torque laws
  double output_max = infinity;         ///< largest duty [1], current [A] or torque [N m]
  bool coasts = false;                  ///< drive/coast bridge
  double kt = not_a_number;             ///< torque constant [N m/A]
  double resistance = not_a_number;     ///< winding resistance [ohm], NaN if unknown
  double current_limit = not_a_number;  ///< of the phase, NaN without one [A]
  double saturation = 0.0;              ///< fall of the torque constant with current [1/A]
  double ratio = 1.0;                   ///< torque multiplier of the torque law
  double nominal_supply = 0.0;          ///< [V]
  double rated_supply = 0.0;            ///< highest rated [V]

  /// Motor torque for a goal, with proportional control [N m].
  double torque(
    double goal, double position, double velocity, double kp, double supply) const noexcept
  {
    const double error = goal - position;
    if (control == ControlKind::torque)
    {
      return clip(ratio * gain * kp * error - damping * velocity, -output_max, output_max);
    }
    const double back_emf = kt * velocity;
    if (control == ControlKind::current)
    {
      double current = gain * kp * error - damping * std::sqrt(kp) * velocity;
      if (!std::isnan(resistance))
      {
        current =
          clip(current, (-supply - back_emf) / resistance, (supply - back_emf) / resistance);
      }
      return kt * clip(current, -output_max, output_max);
    }
    double voltage = clip(gain * kp * error, -output_max, output_max) * supply;
    if (!std::isnan(current_limit))
    {
      const double reach = resistance * current_limit;
      voltage = clip(clip(voltage, back_emf - reach, back_emf + reach), -supply, supply);
    }
    const double driven = coasts ? std::abs(voltage) / supply : 1.0;
    const double torque = kt / resistance * (voltage - driven * back_emf);
    return torque / (1.0 + saturation / kt * std::abs(torque));
  }

  /// Torque at standstill with full output and the highest rated supply [N m].
  double stall() const noexcept { return torque(1e9, 0.0, 0.0, 1.0, rated_supply); }

  /// Winding current of a motor torque, finite also for torques that a saturated motor does not
  /// reach [A].
  double current(double torque) const noexcept
  {
    const double left = 1.0 - saturation / kt * std::abs(torque);
    return torque / (kt * (left > least_constant ? left : least_constant));
  }

  /// Offset of the goal that makes the firmware add a torque to the one that acts [rad].
  double goal_offset(double torque, double kp, double supply, double acting) const noexcept
  {
    if (control == ControlKind::voltage)
    {
      return (current(acting + torque) - current(acting)) * resistance / (supply * gain * kp);
    }
    return torque / ((control == ControlKind::current ? kt : ratio) * gain * kp);
  }
};

/// Friction model, limits and coordinates of one joint.
struct JointModel
{
  Law law;
  FrictionValues friction;
  Servo servo;
  double armature = 0.0;    ///< rotor inertia at the output shaft, 0 if unknown [kg m^2]
  double max_torque = 0.0;  ///< bound of the feed-forward torque [N m]
  double resolution = 0.0;  ///< smallest step of the measured position [rad]
  /// at which the friction was identified, NaN if unknown [deg C]
  double temperature = not_a_number;
  double sign = 1.0;    ///< of the joint against the servo
  double ratio = 1.0;   ///< turns of the servo per turn of the joint
  double offset = 0.0;  ///< position of the joint at servo position 0 [rad]
  /// false: the joint has no torque, the others are compensated
  bool enabled = true;
  Tuning tuning;

  double gear() const noexcept { return sign * ratio; }

  /// Friction without load at the onset of motion [N m].
  double at_rest() const noexcept
  {
    const Budget budget = friction_budget(law, friction, 0.0, 0.0, 0.0);
    return maximum(maximum(budget.positive, budget.negative), 1e-9);
  }
};

/// Motor and external torques on the transmissions [N m], and whether the friction depends on them.
struct Loads
{
  Vector motor, external;
  bool matter;
};

/// A measured state: in the robot's coordinates (q, v) and in those of the parameter files.
struct State
{
  double stamp;
  Vector q, v, position, velocity;
};

/// Goals of a controller: positions (NaN where unknown) [rad], velocities [rad/s], joints that have
/// either.
struct Wish
{
  bool given;
  Vector goal, rate;
  double age;  ///< time from the goals to the state [s]
  Mask known;
};

/// Computes the wanted feed-forward torque of joints.
class FeedForward
{
public:
  double gain = 0.8;
  GoalPath path;
  Travel travel;
  Turning turning;
  Contact contact;
  TrackingScale tracking;
  EnergyTank tank;
  SpeedLimit speed_limit;
  FrictionObserver observer;
  bool observes = false;  ///< whether the observer exists; it begins with the first states
  /// joints whose friction is that at the velocity of the goal
  Mask by_goal{};
  /// time by which positions follow the goals that the torque goes with [s]
  Vector lag{};
  Vector at_rest{}, limit{};
  bool load_dependent = false;
  std::array<Tuning, max_joints> tuning{};

  void configure(
    int n, const std::array<JointModel, max_joints> & joints, const Settings & settings,
    const Dynamics * dynamics, const Vector * warmth) noexcept
  {
    n_ = n, joints_ = &joints, settings_ = &settings, warmth_ = warmth, gain = settings.gain;
    observer.residual.dynamics = dynamics;
    by_goal.fill(false), lag.fill(0.0), latency_ = nullptr;
    observes = has_recalled_ = load_dependent = false;
    for (int k = 0; k < n; ++k)
    {
      const JointModel & joint = joints[k];
      at_rest[k] = joint.at_rest(), limit[k] = joint.max_torque;
      load_dependent = load_dependent || joint.law.has(loaded_terms);
      rotors_[k] = joint.armature == 0.0 ? infinity : joint.armature;
      tank.capacity[k] = tank_stroke * at_rest[k];
      speed_limit.configure(k, tank.capacity[k], joint.ratio);
      speed_limit.set_inertia(k, rotors_[k]);
      const double slope = load_feedback(joint.law, joint.friction, joint.max_torque);
      steepest_[k] = settings.effort_meaning != EffortMeaning::none && slope > 0.0
                       ? largest_feedback / slope
                       : infinity;
      observer.joints[k] = {joint.law, joint.friction, at_rest[k], joint.gear()};
    }
    tank.forget();
    begin();
    restart();
  }

  /// Start anew, also the joints whose compensation has ended; keep what was learnt.
  void begin() noexcept { tank.restart(), tracking.begin(), speed_limit.ended.fill(false); }

  /// Say what the delay of position servos is compared with: the bandwidth of the viscous friction,
  /// [1/s]. \param latency what measures the delay, nullptr for outputs other than goals.
  void expect(const Vector & bandwidth, const GoalLatency * latency) noexcept
  {
    bandwidth_ = bandwidth, latency_ = latency;
    wait();
  }

  /// Nothing can be learnt from a state: forget the motion that led to it.
  void suspend() noexcept
  {
    if (observes)
    {
      observer.restart();
    }
  }

  /// Forget the motion but keep what was learnt.
  void restart() noexcept
  {
    solution_.fill(0.0), boost_.fill(0.0), steep_.fill(0.0), unled_.fill(infinity),
      guaranteed_.fill(0.0);
    period_ = 0.0, since_tuned_ = infinity;
    for (int k = 0; k < n_; ++k)
    {
      tuning[k] = (*joints_)[k].tuning;
    }
    path.restart(), travel.restart(), turning.restart(), contact.restart(), tracking.restart(),
      speed_limit.restart();
    suspend();
  }

  /// Start with scales learnt earlier, or with none (nullptr). Without a goal, they count once
  /// motion confirmed them.
  void recall(const Learned * learned) noexcept
  {
    observes = false, has_recalled_ = learned != nullptr;
    tank.forget();
    for (int k = 0; has_recalled_ && k < n_; ++k)
    {
      recalled_[k] = learned[k];
    }
  }

  /// Time from a measurement to the torque computed from it [s].
  double loop_delay() const noexcept
  {
    return settings_->loop_delay != 0.0 ? settings_->loop_delay : 2.0 * period_;
  }

  /// Feed-forward torque of the law [N m].
  /// \param acting motor torque that acts at this state, in the robot's coordinates, nullptr if
  /// unknown.
  /// \param applied feed-forward torque contained in it.
  Vector torque(
    const State & state, const Wish & wish, const Loads & loads, const Vector * acting,
    const Vector & applied, double dt) noexcept
  {
    period_ = period_ != 0.0 ? period_ + 0.05 * (dt - period_) : dt;
    const bool observing = observer.residual.dynamics != nullptr && settings_->adapt &&
                           acting != nullptr && period_ > 0.0;
    const Mask known = known_joints(wish, dt);
    int led_count = 0;
    for (int k = 0; k < n_; ++k)
    {
      led_count += known[k];
    }
    if (!observing && led_count == 0)
    {
      return without_goal(state, loads, applied, dt);
    }
    Vector deadband{}, presliding{}, command_velocity{}, moving{}, motion{}, behind{}, error{};
    tune(dt);
    for (int k = 0; k < n_; ++k)
    {
      const Tuning & t = tuning[k];
      deadband[k] = t.deadband, presliding[k] = t.presliding,
      command_velocity[k] = t.command_velocity;
      moving[k] = formulas::threshold(t.moving_velocity, known[k], steep_[k], travel.bends[k]);
    }
    travel.update(n_, state.position, state.velocity, deadband, dt);
    Vector present{};
    for (int k = 0; k < n_; ++k)
    {
      present[k] = formulas::present(wish.goal[k], wish.rate[k], wish.age - lag[k]);
      motion[k] =
        formulas::measured(state.velocity[k], travel.velocity[k], travel.step[k], moving[k]);
      behind[k] = formulas::behind(present[k], state.position[k], deadband[k]);
      error[k] = formulas::error_share(present[k], state.position[k], deadband[k]);
    }
    path.update(n_, wish.goal, wish.rate, behind, motion, dt, presliding, command_velocity, error);
    turning.update(n_, state.position, motion, presliding);
    Mask leads{};
    for (int k = 0; k < n_; ++k)
    {
      track(k, wish.rate[k], behind[k], known[k], dt);
      leads[k] = known[k] && path.leads[k];
      const double surely = formulas::surely_present(
        wish.goal[k], wish.rate[k], wish.age - lag[k], state.velocity[k], travel.direction[k]);
      const bool shown = formulas::leading(
        known[k], surely, travel.extreme[k], travel.direction[k], travel.since[k], deadband[k]);
      const bool slow = std::abs(travel.velocity[k]) < 0.1 * moving[k];
      const double speed = state.velocity[k];
      tank.update(
        k, applied[k], guaranteed_[k], slow ? 0.0 : speed, known[k] ? shown : slow, dt,
        loop(k));
      speed_limit.update(k, applied[k], speed, travel.velocity[k], shown, dt);
    }
    if (observing)
    {
      observe(state, *acting, motion, loads, leads, wish.rate, applied, known, dt);
    }
    Vector led{}, direction{}, share{}, at{}, certain{};
    std::array<Scales, max_joints> scales{};
    const double reach = reached();
    for (int k = 0; k < n_; ++k)
    {
      const Tuning & t = tuning[k];
      led[k] = path.share(k) * (known[k] ? 1.0 : 0.0);
      const double pushed = observing && observes ? observer.pushed[k] : 0.0,
                   moved = std::abs(motion[k]);
      direction[k] = moved * turning.share[k] + (1.0 - moved) * pushed;
      if (led_count > 0)
      {
        const double intended = formulas::intended(
          state.velocity[k], state.position[k], present[k], wish.rate[k], moving[k], t.deadband,
          t.error_width, t.command_velocity, t.overshoot_fraction);
        direction[k] = formulas::direction(
          motion[k], behind[k], path.direction[k], path.leads[k], led[k], known[k], intended,
          direction[k], t.error_width, t.overshoot_fraction);
      }
      const double strong = strength(k, known[k], led[k], reach, scales[k]);
      share[k] = strong * direction[k];
      const double most = observes ? strong * maximum(scales[k].dry, scales[k].viscous) : strong;
      certain[k] = minimum(settings_->certain_fraction / maximum(most, 1e-9), 1.0);
      at[k] = !observes ? state.velocity[k]
                        : formulas::law_velocity(
                            wish.rate[k], state.velocity[k], travel.velocity[k], motion[k],
                            path.direction[k], leads[k], led[k]);
      if (by_goal[k] && known[k])
      {
        at[k] = std::isnan(wish.rate[k]) ? 0.0 : wish.rate[k];
      }
    }
    solution_ = law_torque(share, state.position, at, loads, scales);
    for (int k = 0; k < n_; ++k)
    {
      guaranteed_[k] = solution_[k] * certain[k];
    }
    return bounded(solution_, direction, led, leads, behind, wish.rate, dt);
  }

private:
  /// Take the larger of the declared and the measured delay of each position servo.
  void wait() noexcept
  {
    for (int k = 0; k < n_; ++k)
    {
      const double declared = settings_->loop_delay;
      if (latency_ != nullptr)
      {
        const double measured = latency_->delay[k];
        lag[k] = measured > declared ? measured : declared;
      }
      by_goal[k] = bandwidth_[k] * maximum(declared, lag[k]) > 1.0;
    }
  }

  /// Time from a measurement of a joint to the torque computed from it, and one period [s].
  double loop(int k) const noexcept { return maximum(loop_delay(), lag[k]) + period_; }

  /// Adapt the scale of a joint to its errors; above 1 it counts beside learnt friction, too. It
  /// rises above 1 only where a controller follows the goals by itself, and all friction is to be
  /// cancelled: a position servo lags behind its goal without any friction, and impedance must
  /// yield.
  void track(int k, double rate, double behind, bool known, double dt) noexcept
  {
    const double full = gain * largest_learned;
    const double least = maximum(observes ? reached() : gain, 1e-9);
    const bool rises = minimum(settings_->learned_gain, full) >= whole && settings_->adapt &&
                       !settings_->impedance && settings_->mode != OutputMode::goal_offset;
    const double upper =
      minimum(rises ? settings_->adaptation.scale_upper / least : 1.0, steepest_[k] / least);
    double most = maximum(upper, 1.0), floor = 0.0;
    const double going = std::abs(travel.velocity[k]) < 0.1 * tuning[k].moving_velocity ? 0.0 : 1.0;
    // The firmware of a position servo stops the joint by itself, long before its answer is seen.
    const bool servo = settings_->mode == OutputMode::goal_offset;
    const double loop = servo ? 0.0 : loop_delay() + period_, ratio = std::abs((*joints_)[k].ratio);
    const double allowed = TrackingScale::slack(at_rest[k], loop, rotors_[k], ratio);
    const double first = TrackingScale::first(gain, allowed);
    if (observes)
    {
      const double learned = formulas::learned_gain(gain, 1.0, observer.certainty[k], reached());
      most = TrackingScale::most_beyond(
        most, learned, observer.certainty[k], observer.scales[k], observer.wrong[k],
        contact.share[k], observer.sudden[k], allowed);
      // At standstill before a goal at rest an obstacle may hold the joint.
      most = known && (path.moves[k] > 0.0 || going > 0.0) ? most : 1.0;
      floor = first + (1.0 - first) * observer.certainty[k];
    }
    const double slip = std::isfinite(rate) ? rate - travel.velocity[k] : 0.0;
    // Without a period this is the first state of a sequence.
    const double start = servo || period_ > 0.0 ? first : not_a_number;
    tracking.update(
      k, behind, slip, path.direction[k], path.moves[k], going, (*joints_)[k].tuning.error_width,
      most, dt, start, loop, floor);
  }

  Mask known_joints(const Wish & wish, double dt) noexcept
  {
    Mask known{};
    for (int k = 0; k < n_; ++k)
    {
      if (!wish.given)
      {
        unled_[k] = unled_[k] + dt;
        continue;
      }
      unled_[k] =
        formulas::unled(unled_[k], wish.goal[k], wish.rate[k], tuning[k].command_velocity, dt);
      known[k] = wish.known[k] && unled_[k] < unled_time;
    }
    return known;
  }

  /// Torque of joints without goal and observer: a fraction of the identified friction.
  Vector without_goal(
    const State & state, const Loads & loads, const Vector & applied, double dt) noexcept
  {
    Vector motion{}, presliding{}, share{};
    const double part = (gain < 1.0 ? gain : 1.0) *
                        (settings_->certain_fraction < 1.0 ? settings_->certain_fraction : 1.0);
    for (int k = 0; k < n_; ++k)
    {
      const double speed = state.velocity[k];
      speed_limit.update(k, applied[k], speed, speed_limit.smoothed(k, speed, dt), false, dt);
      motion[k] = formulas::moving(state.velocity[k], tuning[k].moving_velocity);
      presliding[k] = tuning[k].presliding;
    }
    turning.update(n_, state.position, motion, presliding);
    for (int k = 0; k < n_; ++k)
    {
      share[k] = part * (std::abs(motion[k]) * turning.share[k]);
    }
    solution_ = law_torque(share, state.position, state.velocity, loads, {});
    return solution_;
  }

  /// Largest gain with learnt friction.
  double reached() const noexcept
  {
    const double learned = settings_->learned_gain, most = gain * largest_learned;
    const double reached = most < learned ? most : learned;
    return gain > reached ? gain : reached;
  }

  /// Gain of a joint, and the scales of its identified friction.
  double strength(int k, bool known, double led, double reach, Scales & scales) const noexcept
  {
    const double least_gain = (gain < 1.0 ? gain : 1.0) * settings_->certain_fraction;
    if (!observes)
    {
      return known ? faded(gain * (*warmth_)[k] * tracking.scale[k], least_gain, tank.share(k))
                   : least_gain;
    }
    if (known)
    {
      const double steepest = steepest_[k] / maximum(reach, 1e-9), full = tank.share(k);
      const double learned = formulas::learned_gain(gain, led, observer.certainty[k], reach);
      const double floor = least_gain / maximum(learned, 1e-9);
      const double more = tracking.scale[k];
      scales = {
        faded(minimum(observer.scales[k].dry * more, steepest), floor, full),
        faded(observer.scales[k].viscous * more, floor, full)};
      return learned;
    }
    const double dry_share = tank.free_share(k), viscous_share = dry_share * observer.met[k];
    // What motion has shown not to be there is not guaranteed either.
    const double certain = settings_->certain_fraction / safety;
    const Scales least{
      minimum(certain, observer.scales[k].dry), minimum(certain, observer.scales[k].viscous)};
    scales.dry = least.dry + dry_share * (maximum(observer.surely[k].dry, least.dry) - least.dry);
    scales.viscous =
      least.viscous +
      viscous_share * (maximum(observer.surely[k].viscous, least.viscous) - least.viscous);
    return safety * (reach < 1.0 ? reach : 1.0);
  }

  /// A gain or scale that falls to the guaranteed one with the share of a tank.
  static double faded(double full, double least, double share) noexcept
  {
    const double floor = minimum(full, least);
    return share < 1.0 ? floor + share * (full - floor) : full;
  }

  /// Torque of the law within the limits, with a Newton step from the last solution where friction
  /// depends on it [N m].
  Vector law_torque(
    const Vector & share, const Vector & position, const Vector & velocity, const Loads & loads,
    const std::array<Scales, max_joints> & scales) const noexcept
  {
    Vector found = filled(0.0);
    for (int k = 0; k < n_; ++k)
    {
      const JointModel & joint = (*joints_)[k];
      found[k] = loads.matter && load_dependent
                   ? feed_forward_torque(
                       joint.law, joint.friction, share[k], velocity[k], loads.motor[k],
                       loads.external[k], scales[k], solution_[k], limit[k], position[k])
                   : clipped(
                       cancelling_torque(
                         joint.law, joint.friction, share[k], velocity[k], loads.motor[k],
                         loads.external[k], scales[k], position[k]),
                       limit[k]);
    }
    return found;
  }

  /// The torque with the learnt offset, zero where opposite to the direction, faded out at a
  /// contact.
  Vector bounded(
    const Vector & torque, const Vector & direction, const Vector & led, const Mask & leads,
    const Vector & behind, const Vector & rate, double dt) noexcept
  {
    if (!observes)
    {
      return torque;
    }
    Vector found = torque;
    const double release = std::exp(-dt / release_time);
    for (int k = 0; k < n_; ++k)
    {
      const double way = path.direction[k], touching = contact.share[k];
      boost_[k] = formulas::stuck(
        boost_[k], dt / stick_time, observer.doubtful[k], release, leads[k], follows(k, rate[k]),
        way, behind[k], touching);
      if (gain == 0.0)
      {
        continue;
      }
      found[k] = settings_->impedance
                   ? torque[k] * (1.0 - touching)
                   : formulas::with_offset(
                       torque[k], led[k] * tank.share(k), direction[k], observer.offset[k],
                       boost_[k] * tank.share(k), way, at_rest[k], limit[k], touching);
    }
    return found;
  }

  bool follows(int k, double rate) const noexcept
  {
    return formulas::following(
      travel.direction[k], travel.velocity[k], path.direction[k], rate, tuning[k].command_velocity);
  }

  void observe(
    const State & state, const Vector & acting, const Vector & motion, const Loads & loads,
    const Mask & leads, const Vector & rate, const Vector & applied, const Mask & known,
    double dt) noexcept
  {
    if (!observes)
    {  // its time constant depends on the period of the states
      const double slowest = residual_loops * (loop_delay() + period_);
      observer.begin(
        n_, slowest > residual_time ? slowest : residual_time, settings_->adaptation,
        has_recalled_ ? recalled_.data() : nullptr, *warmth_);
      observes = true;
    }
    if (!observer.update(state.q, state.v, acting, applied, dt))
    {
      return;
    }
    Motion seen{state.position, state.velocity, {}, loads.motor, loads.external, leads, {}, {},
                motion};
    Mask held{}, rests{}, met{};
    for (int k = 0; k < n_; ++k)
    {
      const bool beyond =
        travel.distance(k) > beyond_presliding * tuning[k].presliding + tuning[k].deadband;
      seen.follows[k] = leads[k] && follows(k, rate[k]) && beyond;
      seen.free[k] = beyond && !known[k];
      seen.direction[k] = leads[k] ? path.direction[k] : motion[k];
    }
    const double elapsed = observer.conclude(seen);
    for (int k = 0; k < n_; ++k)
    {
      if (observer.learning[k])
      {
        tank.fill(k, std::abs(observer.torque[k] * state.velocity[k]) * elapsed);
      }
      held[k] = std::abs(observer.torque[k]) < held_friction * observer.scales[k].dry * at_rest[k];
      rests[k] = known[k] && path.moves[k] < 0.5;
      met[k] = observer.touched[k] * path.direction[k] < 0.0;
    }
    contact.update(
      n_, observer.contact, held, leads, seen.follows, path.direction, elapsed, rests, met);
  }

  /// Widths large enough for the loop through motion or error to be stable despite its delay.
  void tune(double dt) noexcept
  {
    since_tuned_ += dt;
    if (since_tuned_ < retuned || period_ == 0.0)
    {
      return;
    }
    const bool seen = observes && observer.residual.has_inertia;
    if (seen || observer.residual.dynamics == nullptr)
    {
      since_tuned_ = 0.0;
    }
    wait();
    for (int k = 0; k < n_; ++k)
    {
      const JointModel & joint = (*joints_)[k];
      const double time = loop(k), slow = time / loop_share * (time / loop_share);
      const double inertia =
        seen ? observer.residual.inertia[k][k] / (joint.ratio * joint.ratio) : rotors_[k];
      const double friction =
        (observes ? observer.scales[k].dry * maximum(tracking.scale[k], 1.0)
                  : maximum(gain * tracking.scale[k], 1.0)) *
        at_rest[k];
      steep_[k] = friction * time / inertia;
      speed_limit.set_inertia(k, inertia);
      tuning[k] = joint.tuning;
      tuning[k].error_width = maximum(joint.tuning.error_width, 1.5 * friction * slow / inertia);
    }
  }

  int n_ = 0;
  const std::array<JointModel, max_joints> * joints_ = nullptr;
  const Settings * settings_ = nullptr;
  const Vector * warmth_ = nullptr;
  Vector solution_{}, boost_{}, steep_{}, unled_{}, rotors_{}, steepest_{};
  Vector bandwidth_{};
  const GoalLatency * latency_ = nullptr;
  Vector guaranteed_{};  ///< part of the last torque that the guaranteed friction takes [N m]
  double period_ = 0.0, since_tuned_ = infinity;
  bool has_recalled_ = false;
  std::array<Learned, max_joints> recalled_{};
};

}  // namespace stribeck

#endif  // STRIBECK_CONTROLLERS__FEEDFORWARD_HPP_
