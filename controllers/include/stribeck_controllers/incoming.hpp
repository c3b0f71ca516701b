// Copyright the Stribeck maintainers. SPDX-License-Identifier: Apache-2.0
/// \file
/// What arrives in a live loop: states, commands and telemetry, each admitted, ordered and applied
/// by its stamp, as live/states/incoming.py, admission.py, plausibility.py and servo_state.py of
/// the Python package. All values are in the order of the joints; names and partial states are a
/// matter of messages and not known here.
#ifndef STRIBECK_CONTROLLERS__INCOMING_HPP_
#define STRIBECK_CONTROLLERS__INCOMING_HPP_

#include <array>
#include <cmath>
#include <cstddef>

#include "stribeck_controllers/motion.hpp"

namespace stribeck
{

/// Largest time step with which the friction law computes [s].
constexpr double longest_step = 0.05;
/// Goals further apart in time are not differentiated [s].
constexpr double longest_command_step = 0.05;
constexpr double command_filter = 0.02;  ///< Time constant of the slope of the goals [s].
/// Largest drift between the clocks of machines [s/s].
constexpr double clock_drift = 2e-4;
/// Commands whose delays agree within this have one clock [s].
constexpr double clock_jitter = 0.05;
/// So many agreeing delays are those of a different clock.
constexpr int agreeing_commands = 3;
constexpr double agreeing_time = 0.1;  ///< Shortest time for which they agree [s].
/// Largest difference of clocks that is made up for [s].
constexpr double largest_clock_difference = 5.0;
/// Telemetry applies to states stamped this much later [s].
constexpr double telemetry_delay = 0.1;
constexpr double lowest_supply = 0.5;  ///< Lowest plausible supply voltage [V].
/// Relative decrease of friction per kelvin [1/K].
constexpr double friction_per_kelvin = 0.01;
/// A position constant for this long while moving is frozen [s].
constexpr double frozen_time = 0.05;
constexpr double frozen_steps = 4.0;  ///< Steps by which it should have moved.
/// Least net motion, as a fraction of the distance.
constexpr double one_way = 0.5;
/// Time constant and delay of velocities that are filtered [s].
constexpr double stopping_time = 0.07;
/// Position step assumed until one has been seen [rad].
constexpr double coarsest_step = 0.003;
/// Change of position that the velocity need not explain [rad].
constexpr double largest_misfit = 0.05;

/// Why there is no torque, or why the sequence of states has just begun anew.
enum class Doubt
{
  none,
  not_enabled,
  no_states_yet,
  late,
  stamp_not_finite,
  repeated,
  out_of_order,
  jumped_back,
  gap,
  not_finite,
  jump,
  frozen,
  no_firmware_gain,
  effort_not_finite,
  effort_impossible,
  out_of_proportion,
  expired,
  driven,
};

/// One line about a doubt.
inline const char * text_of(Doubt doubt) noexcept
{
  switch (doubt)
  {
    case Doubt::none:
      return "";
    case Doubt::not_enabled:
      return "not enabled";
    case Doubt::no_states_yet:
      return "no valid states yet";
    case Doubt::late:
      return "states arrive late";
    case Doubt::stamp_not_finite:
      return "a time stamp is not a number";
    case Doubt::repeated:
      return "time does not advance: a state was received twice";
    case Doubt::out_of_order:
      return "a state was received after a later one";
    case Doubt::jumped_back:
      return "time jumped back";
    case Doubt::gap:
      return "no states for longer than state_timeout";
    case Doubt::not_finite:
      return "position or velocity is not a number, or is impossibly large";
    case Doubt::jump:
      return "a position jumps further than the velocity allows";
    case Doubt::frozen:
      return "a position is constant although its velocity is not zero";
    case Doubt::no_firmware_gain:
      return "the firmware gain is not known";
    case Doubt::effort_not_finite:
      return "effort is not a number, but effort_meaning needs one";
    case Doubt::effort_impossible:
      return "the effort exceeds 10 times the stall torque, which is impossible: is it in N m?";
    case Doubt::out_of_proportion:
      return "position, velocity or effort is impossibly large";
    case Doubt::expired:
      return "no states for longer than state_timeout";
    case Doubt::driven:
      return "a joint is fast without a reference, in the direction of its friction torque: "
             "something else moves it, or its friction is less than the guaranteed fraction of the "
             "identified friction";
  }
  return "";
}

/// A fixed number of values, first in first out; when full, the oldest goes.
template <typename T, std::size_t Capacity>
class Ring
{
public:
  std::size_t size() const noexcept { return size_; }
  bool empty() const noexcept { return size_ == 0; }
  void clear() noexcept { begin_ = size_ = 0; }
  T & operator[](std::size_t k) noexcept { return values_[(begin_ + k) % Capacity]; }
  const T & operator[](std::size_t k) const noexcept { return values_[(begin_ + k) % Capacity]; }
  T & back() noexcept { return (*this)[size_ - 1]; }
  const T & back() const noexcept { return (*this)[size_ - 1]; }

  void pop() noexcept
  {
    begin_ = (begin_ + 1) % Capacity;
    --size_;
  }

  T & push(const T & value) noexcept
  {
    if (size_ == Capacity)
    {
      pop();
    }
    T & place = (*this)[size_++];
    place = value;
    return place;
  }

private:
  std::array<T, Capacity> values_{};
  std::size_t begin_ = 0, size_ = 0;
};

/// Command of a controller: positions [rad], velocities [rad/s], efforts [N m]; NaN where not
/// given.
struct Command
{
  Vector position, velocity, effort;
};

/// Delay between the stamps of a stream and their arrivals, split into clock difference and
/// lateness.
class StreamClock
{
public:
  bool known = false;
  double offset = 0.0;  ///< clock difference, once known [s]

  void restart() noexcept { known = false, arrival_ = not_a_number; }

  double lag(double arrival, double stamp) noexcept
  {
    const double behind = arrival - stamp;
    if (!known || !(behind > offset))
    {
      offset = behind;
    }
    else
    {
      const double passed = arrival - arrival_, elapsed = passed > 0.0 ? passed : 0.0;
      const double drifted = offset + clock_drift * elapsed;
      offset = drifted < behind ? drifted : behind;
    }
    known = true, arrival_ = arrival;
    return behind - offset;
  }

private:
  double arrival_ = not_a_number;
};

/// The last commands of a controller; those with a stamp apply to states that are stamped after
/// them.
class Commands
{
public:
  double difference = 0.0;  ///< delay of the commands' clock relative to that of the states [s]
  double beyond = 0.0;      ///< the same if it is too large to be made up for [s]

  bool empty() const noexcept { return kept_.empty(); }

  void reset() noexcept
  {
    kept_.clear();
    has_returned_ = false, agreeing_ = 0, clock_at_ = least_ = not_a_number, since_ = infinity;
    difference = beyond = 0.0;
  }

  /// Store a command; NaN stamps mean none. \returns whether it was accepted.
  bool add(
    int n, double arrival, bool stamped, double stamp, const Command & command, bool behind_known,
    double states_behind, double timeout, bool simulated, double now) noexcept
  {
    if (!std::isfinite(stamped ? stamp : arrival))
    {
      return false;
    }
    const double come = simulated ? now : arrival;
    if (
      stamped && behind_known &&
      !in_time(arrival, come - stamp - states_behind, timeout, simulated))
    {
      if (!simulated || (!kept_.empty() && stamp < kept_.back().stamp))
      {
        // An old command, or the first one after a backward jump of time that the states have not
        // shown yet.
        returned_ = {true, stamp, arrival, command, filled(0.0)};
        has_returned_ = true;
        return false;
      }
      // simulated time went on during a pause: it counts for the law, but is not passed on
      arrival = -infinity;
    }
    if (has_returned_ && stamped && !kept_.empty() && stamp < kept_.back().stamp)
    {
      kept_.clear();
      kept_.push(returned_);
    }
    has_returned_ = false;
    const Vector rate = velocity(n, arrival, stamped, stamp, command);
    kept_.push({stamped, stamped ? stamp : 0.0, arrival, command, rate});
    return true;
  }

  /// The last command, if it arrived within the timeout before now; else nullptr.
  const Command * latest(double now, double timeout) const noexcept
  {
    return kept_.empty() || !(now - kept_.back().arrival <= timeout) ? nullptr
                                                                     : &kept_.back().command;
  }

  /// The last command before a state, its velocity and its age; nullptr if it is older than the
  /// timeout.
  /// \param late how much later than usual the state arrived [s].
  const Command * before(
    double stamp, double arrival, double timeout, double late, Vector & rate,
    double & age) const noexcept
  {
    age = stamp - returned_.stamp;
    if (has_returned_ && difference == 0.0 && 0.0 < age && age <= timeout)
    {
      rate = returned_.rate;
      return &returned_.command;
    }
    for (std::size_t k = kept_.size(); k-- > 0;)
    {
      const Kept & kept = kept_[k];
      age = arrival - late - kept.arrival;
      if (kept.stamped)
      {
        age = stamp - kept.stamp - difference;
      }
      else if (age < 0.0 && k == 0)
      {
        age = 0.0;
      }
      if (age > 0.0 || (!kept.stamped && age == 0.0))
      {
        if (age <= timeout)
        {
          rate = kept.rate;
          return &kept.command;
        }
        break;
      }
    }
    rate.fill(0.0), age = 0.0;
    return nullptr;
  }

private:
  struct Kept
  {
    bool stamped;
    double stamp, arrival;
    Command command;
    Vector rate;
  };

  bool in_time(double arrival, double behind, double timeout, bool simulated) noexcept
  {
    if (simulated)
    {
      return behind <= timeout;
    }
    if (std::abs(behind) <= 0.5 * timeout)
    {
      agreeing_ = 0, least_ = not_a_number, difference = beyond = 0.0;
      return true;
    }
    const double before = kept_.empty() ? -infinity : kept_.back().arrival;
    const bool alike = std::abs(behind - least_) <= clock_jitter && arrival > before;
    const double drifted = least_ + clock_drift * (arrival - clock_at_);
    agreeing_ = alike ? agreeing_ + 1 : 0;
    least_ = alike && drifted < behind ? drifted : behind;
    since_ = alike ? since_ : arrival;
    clock_at_ = arrival;
    if (agreeing_ >= agreeing_commands && arrival - since_ >= agreeing_time)
    {
      const bool possible = std::abs(behind) <= largest_clock_difference + clock_jitter;
      difference = possible ? least_ : 0.0, beyond = possible ? 0.0 : least_;
    }
    return behind <= timeout || difference != 0.0;
  }

  Vector velocity(
    int n, double arrival, bool stamped, double stamp, const Command & command) noexcept
  {
    Vector slope = filled(0.0), found = filled(0.0);
    if (!kept_.empty())
    {
      const Kept & last = kept_.back();
      const double elapsed =
        (stamped ? stamp : arrival) - (last.stamped ? last.stamp : last.arrival);
      if (elapsed < 0.0)
      {
        kept_.clear();
      }
      else if (elapsed == 0.0)
      {
        slope = last.rate;
      }
      else if (elapsed <= longest_command_step)
      {
        const double share = minimum(1.0, elapsed / command_filter);
        for (int k = 0; k < n; ++k)
        {
          const double change = (command.position[k] - last.command.position[k]) / elapsed;
          slope[k] = last.rate[k] + share * (change - last.rate[k]);
        }
      }
    }
    for (int k = 0; k < n; ++k)
    {
      const double rate = std::isfinite(command.velocity[k]) ? command.velocity[k] : slope[k];
      found[k] = std::isfinite(rate) ? rate : 0.0;
    }
    return found;
  }

  Ring<Kept, 128> kept_;
  Kept returned_{};
  bool has_returned_ = false;
  int agreeing_ = 0;
  double clock_at_ = not_a_number, least_ = not_a_number, since_ = infinity;
};

/// Plausibility of measured states: frozen positions, and jumps that no joint can make. Of at most
/// `Capacity` joints: one that is checked by itself touches a few lines of the processor's cache.
template <std::size_t Capacity>
class Plausibility
{
public:
  using Values = std::array<double, Capacity>;
  using Truths = std::array<bool, Capacity>;

  Values resolution{};       ///< known position steps [rad]
  Values moving_velocity{};  ///< velocity above which a joint moves [rad/s]
  Truths late{};             ///< joints whose position is frozen

  void restart() noexcept
  {
    known_ = false;
    moved_at_.fill(0.0), late.fill(false);
    speed_.fill(0.0), still_.fill(0.0), missed_.fill(0.0), way_.fill(0.0),
      seen_.fill(coarsest_step);
  }

  /// Whether a state cannot follow the previous one; nothing is stored.
  bool jumps(int n, const Values & at, const Values & speed, double dt) const noexcept
  {
    if (!known_)
    {
      return false;
    }
    for (int k = 0; k < n; ++k)
    {
      const double measured = std::isfinite(speed[k]) ? speed[k] : speed_[k];
      const double mean = 0.5 * (measured + speed_[k]);
      const double larger = maximum(std::abs(measured), std::abs(speed_[k]));
      const double misfit = std::abs(at[k] - at_[k] - mean * dt);
      if (misfit > largest_misfit + 8.0 * resolution[k] + larger * dt && unusual(n, at, speed, dt))
      {
        return true;
      }
    }
    return false;
  }

  /// Whether no position has changed for some time: then all of the state may be an old one.
  bool stale(int n) const noexcept
  {
    for (int k = 0; k < n; ++k)
    {
      if (still_[k] < frozen_time)
      {
        return false;
      }
    }
    return true;
  }

  /// Update with a state; \returns whether a position is frozen: that of a joint whose present
  /// velocity says that it moves.
  bool frozen(int n, const Values & at, const Values & speed, double dt) noexcept
  {
    const bool before = known_;
    bool any_stands = false;
    for (int k = 0; before && k < n; ++k)
    {
      any_stands = any_stands || at[k] - at_[k] == 0.0;
    }
    const Values last = at_;
    at_ = at, speed_ = speed, known_ = true;
    late.fill(false);
    if (!before)
    {
      moved_at_ = speed;
      return false;
    }
    if (!any_stands)
    {
      still_.fill(0.0), missed_.fill(0.0), way_.fill(0.0);
      moved_at_ = speed;
      return false;
    }
    bool found = false;
    const double forgotten = 1.0 - minimum(dt / frozen_time, 1.0);
    for (int k = 0; k < n; ++k)
    {
      const double change = std::abs(at[k] - last[k]);
      const bool stands = change == 0.0, moves = std::abs(speed[k]) > 0.5 * moving_velocity[k];
      seen_[k] = stands ? seen_[k] : minimum(seen_[k], change);
      moved_at_[k] = stands ? moved_at_[k] : speed[k];
      const double kept = moves ? 1.0 : forgotten, missed = moves ? speed[k] * dt : 0.0;
      still_[k] = stands ? still_[k] + dt : 0.0;
      missed_[k] = stands ? kept * missed_[k] + missed : 0.0;
      way_[k] = stands ? kept * way_[k] + std::abs(missed) : 0.0;
      const double steps =
        maximum(frozen_steps * maximum(resolution[k], seen_[k]), one_way * way_[k]);
      const double least = maximum(steps, stopping_time * std::abs(moved_at_[k]));
      late[k] = still_[k] >= frozen_time && moves && std::abs(missed_[k]) > least;
      found = found || late[k];
    }
    return found;
  }

private:
  /// The changes that are looked at more closely; the bound is on the sum over the joints.
  bool unusual(int n, const Values & at, const Values & speed, double dt) const noexcept
  {
    double change = 0.0, largest = 0.0, fastest = 0.0, squares = 0.0;
    for (int k = 0; k < n; ++k)
    {
      const double c = at[k] - at_[k];
      change += c * c, squares += speed[k] * speed[k];
      largest = maximum(largest, std::abs(c)), fastest = maximum(fastest, std::abs(speed[k]));
    }
    constexpr double reach = largest_misfit * largest_misfit;
    if (change <= reach && !(squares * dt * dt > reach))
    {
      return false;
    }
    return !(largest <= largest_misfit && !(fastest * dt > largest_misfit));
  }

  Values at_{}, speed_{}, still_{}, missed_{}, way_{}, seen_{};
  Values moved_at_{};  ///< velocity at the last change of each position [rad/s]
  bool known_ = false;
};

/// Result of a check of a state: usable, skipped while the last torque stays for a moment, or not
/// to be trusted.
enum class Verdict
{
  usable,
  bridged,
  doubtful
};

/// Checks each state of n joints against the previous ones.
template <std::size_t Capacity>
class StateAdmission
{
public:
  using Values = std::array<double, Capacity>;
  using Truths = std::array<bool, Capacity>;

  StreamClock clock;
  Plausibility<Capacity> plausibility;
  double state_timeout = 0.04, state_lag = 0.1;
  bool has_stamp = false;
  double stamp = 0.0;          ///< stamp of the last accepted state, if there is one [s]
  double late = 0.0;           ///< how much later than usual the last state arrived [s]
  Doubt reason = Doubt::none;  ///< why the last state was not usable
  Truths frozen{};             ///< joints that are not trusted in the last state
  bool any_frozen = false;

  void restart() noexcept
  {
    has_stamp = false;
    clock.restart();
    plausibility.restart();
  }

  void reset() noexcept
  {
    restart();
    forget_slope();
    bridged_ = Doubt::none;
  }

  void forget_slope() noexcept { slope_.fill(0.0), has_position_ = false; }

  /// Remember why a state was skipped.
  void bridged(Doubt why) noexcept { bridged_ = why; }

  /// Skip a rejected state, but remember its stamp as that of the last state. A frozen position
  /// keeps its history.
  void doubted(double when) noexcept
  {
    if (std::isfinite(when) && !(has_stamp && when == stamp))
    {
      has_stamp = true, stamp = when;
      plausibility.restart();
    }
  }

  /// Check how a state follows the previous one.
  /// \param gap why the sequence starts anew with this state, none if it does not.
  /// \param before whether there is a state before it in the sequence.
  Verdict place(double now, double at, Doubt & gap, bool & before) noexcept
  {
    gap = Doubt::none, before = false;
    if (!std::isfinite(at))
    {
      return refused(Verdict::doubtful, Doubt::stamp_not_finite);
    }
    if (has_stamp && at < stamp - state_timeout)
    {
      clock.restart();  // time jumped back
    }
    late = clock.lag(now, at);
    if (late > state_lag)
    {
      return refused(Verdict::bridged, Doubt::late);
    }
    if (!has_stamp)
    {
      return Verdict::usable;
    }
    if (at == stamp)
    {
      return refused(Verdict::bridged, Doubt::repeated);
    }
    if (stamp - state_timeout < at && at < stamp)
    {
      return refused(Verdict::bridged, Doubt::out_of_order);
    }
    if (0.0 < at - stamp && at - stamp <= state_timeout)
    {
      before = true;
      return Verdict::usable;
    }
    gap = Doubt::jumped_back;
    if (at > stamp)
    {
      gap = bridged_ == Doubt::none ? Doubt::gap : bridged_;
    }
    plausibility.restart();
    return Verdict::usable;
  }

  /// Check the values of a state; velocities are those measured, or if not given, those of the
  /// filtered slope.
  Verdict measured(
    int n, double when, bool before, const Values & at, bool has_velocity, Values & speed,
    double & dt) noexcept
  {
    const double elapsed = before ? when - stamp : 0.0;
    dt = elapsed < longest_step ? elapsed : longest_step;
    if (!possible(at, n) || (has_velocity && !possible(speed, n)))
    {
      return refused(Verdict::doubtful, Doubt::not_finite);
    }
    if (before && plausibility.jumps(n, at, speed, elapsed))
    {
      return refused(Verdict::bridged, Doubt::jump);
    }
    has_stamp = true, stamp = when, bridged_ = Doubt::none;
    frozen.fill(false), any_frozen = false;
    if (!has_velocity)
    {
      if (has_position_ && dt > 0.0)
      {
        const double share = minimum(1.0, dt / slope_time);
        for (int k = 0; k < n; ++k)
        {
          slope_[k] = slope_[k] + share * ((at[k] - last_position_[k]) / dt - slope_[k]);
        }
      }
      last_position_ = at, has_position_ = true;
      speed = slope_;
    }
    if ((dt > 0.0 || !before) && plausibility.frozen(n, at, speed, dt) && has_velocity)
    {
      if (plausibility.stale(n))
      {
        return refused(Verdict::doubtful, Doubt::frozen);
      }
      frozen = plausibility.late, any_frozen = true;
    }
    return Verdict::usable;
  }

private:
  Verdict refused(Verdict verdict, Doubt why) noexcept
  {
    reason = why;
    return verdict;
  }

  Values slope_{}, last_position_{};
  bool has_position_ = false;
  Doubt bridged_ = Doubt::none;
};

/// Firmware gain, supply voltage and temperature of servos, each applied from the right state on.
class ServoStates
{
public:
  std::size_t joints = 0;
  Vector kp{};      ///< firmware gains, NaN where unknown
  Vector supply{};  ///< supply voltages, nominal where unknown [V]
  Vector warmth{};  ///< ratio of the friction at the present temperature to the identified friction
  /// temperature at which the friction was identified, NaN if unknown [deg C]
  Vector identified{};

  void reset() noexcept
  {
    kp.fill(not_a_number), warmth.fill(1.0);
    waiting_.clear();
  }

  /// Store a message; values that are NaN or impossible are ignored. A stamp that is not finite: it
  /// applies at once.
  void take(
    int joint, double gain, double voltage, double temperature, double stamp, bool wait) noexcept
  {
    if (!std::isfinite(stamp))
    {
      set({0.0, joint, gain, voltage, temperature});
      return;
    }
    if (!waiting_.empty() && stamp < waiting_.back().stamp)
    {
      waiting_.clear();  // time jumped back
    }
    waiting_.push({stamp, joint, gain, voltage, temperature});
    while (!waiting_.empty() && (waiting_.size() > waiting_telemetry * joints || !wait))
    {
      next();
    }
  }

  /// Apply all telemetry that is due for a state with this stamp [s].
  void advance(double stamp) noexcept
  {
    while (!waiting_.empty() && waiting_[0].stamp + telemetry_delay < stamp)
    {
      next();
    }
  }

private:
  static constexpr std::size_t waiting_telemetry = 128,
                               capacity = waiting_telemetry * max_joints + 1;
  struct Told
  {
    double stamp;
    int joint;
    double kp, supply, temperature;
  };

  void next() noexcept
  {
    set(waiting_[0]);
    waiting_.pop();
  }

  void set(const Told & told) noexcept
  {
    const int k = told.joint;
    if (std::isfinite(told.temperature) && std::isfinite(identified[k]))
    {
      warmth[k] = 1.0 - clip(friction_per_kelvin * (told.temperature - identified[k]), 0.0, 0.5);
    }
    if (std::isfinite(told.kp) && told.kp >= 0.0)
    {
      kp[k] = told.kp;
    }
    if (std::isfinite(told.supply) && told.supply > lowest_supply)
    {
      supply[k] = told.supply;
    }
  }

  Ring<Told, capacity> waiting_;
};

}  // namespace stribeck

#endif  // STRIBECK_CONTROLLERS__INCOMING_HPP_
