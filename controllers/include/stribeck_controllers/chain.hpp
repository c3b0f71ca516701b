// Copyright the Stribeck maintainers. SPDX-License-Identifier: Apache-2.0
/// \file
/// Both ends of a controller that adds friction compensation to the references of another: which
/// references are valid, what is commanded, and what remains commanded when it stops. Needs the C++
/// standard library only; nothing here allocates, locks or throws except the checks of a
/// configuration.
#ifndef STRIBECK_CONTROLLERS__CHAIN_HPP_
#define STRIBECK_CONTROLLERS__CHAIN_HPP_

#include <array>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>

#include "stribeck_controllers/compensator.hpp"

namespace stribeck
{

/// Code of what is wrong with a joint, as published: a Doubt below 64, or one of these.
enum class Fault : std::uint8_t
{
  none = 0,
  no_reference = 64,
  limited = 65,
  zero_torque_ended = 66
};

/// Why a joint cannot be compensated in an output mode, in one line; empty if it can.
/// \param kp gain of its firmware, \param supply its supply voltage [V].
inline std::string output_problem(
  const std::string & name, const JointModel & joint, OutputMode mode, double kp, double supply)
{
  if (mode != OutputMode::goal_offset)
  {
    return {};
  }
  const Servo & servo = joint.servo;
  const bool voltage = servo.control == ControlKind::voltage;
  const struct
  {
    bool needed;
    const char * parameter;
    double value;
  } needs[]{
    {true, "p_gain", kp},
    {servo.control != ControlKind::torque, "kt", servo.kt},
    {voltage, "R", servo.resistance},
    {voltage, "supply_voltage", supply}};
  for (const auto & need : needs)
  {
    if (need.needed && !(need.value > 0.0 && std::isfinite(need.value)))
    {
      return "output_mode goal_offset needs friction." + name + "." + need.parameter +
             " above 0, because the offset of the goal is computed from it: set it, or use "
             "output_mode sum";
    }
  }
  return {};
}

/// Bounds of the commands of joints: efforts [N m] or positions [rad].
struct Limits
{
  Vector lower = filled(-infinity), upper = filled(infinity);

  /// Narrow the bounds of a joint; NaN: no bound.
  void narrow(int k, double least, double most) noexcept
  {
    lower[k] = least > lower[k] ? least : lower[k];
    upper[k] = most < upper[k] ? most : upper[k];
  }

  double limited(int k, double value) const noexcept { return clip(value, lower[k], upper[k]); }

  /// Why the bounds of a joint cannot be used, empty if they can.
  std::string problem(int k, const std::string & name) const
  {
    return lower[k] <= upper[k]
             ? std::string()
             : "joint " + name + ": its limits contradict each other, lower " +
                 std::to_string(lower[k]) + ", upper " + std::to_string(upper[k]) +
                 ": correct those of the robot description or friction." + name;
  }
};

/// References from a topic: valid for a time after each message, and never those of before a change
/// of state.
class TopicReferences
{
public:
  double timeout = 0.1;  ///< [s]

  /// What to do in an update: write the values of the message, or that there are none, or nothing.
  enum class Step
  {
    nothing,
    write,
    expire
  };

  /// Begin anew. \param count of the messages so far, which do not count any more.
  void restart(unsigned count) noexcept { count_ = count, age_ = infinity; }

  /// \param count of the messages so far, \param dt period of the update [s].
  Step advance(unsigned count, double dt) noexcept
  {
    if (count != count_)
    {
      count_ = count, age_ = 0.0;
      return Step::write;
    }
    const bool valid = age_ <= timeout;
    age_ += dt;
    return valid && age_ > timeout ? Step::expire : Step::nothing;
  }

private:
  unsigned count_ = 0;
  double age_ = infinity;
};

/// The value of an interface that another thread may lock at the moment of reading: the last one
/// for one cycle, then NaN.
class LastRead
{
public:
  /// \param read nothing if the interface was locked, \param change of the value in the meantime.
  double take(std::optional<double> read, double change = 0.0) noexcept
  {
    missed_ = read.has_value() ? 0 : missed_ + 1;
    value_ = read.has_value() ? *read : missed_ == 1 ? value_ + change : not_a_number;
    return value_;
  }

private:
  double value_ = not_a_number;
  unsigned missed_ = 0;
};

/// Hands joints over from one compensator to another without a step in the torque, and back; as
/// live/handover.py explains.
class Handover
{
public:
  Compensator * present = nullptr;  ///< the one that compensates, or is taking over
  Compensator * leaving = nullptr;  ///< the one that it takes over from
  Compensator * former = nullptr;   ///< the one before the last exchange
  double ramp_time = 0.5;           ///< [s]
  double share = 1.0;               ///< of the present one

  /// Let another compensator of the same joints take over, with the present gain; \returns false
  /// while another one does, or if its gain would not be stable.
  bool exchange(Compensator & next) noexcept
  {
    if (leaving != nullptr || !next.set_gain(present->gain()))
    {
      return false;
    }
    former = present, present = &next;
    if (former->enabled)
    {
      next.enable();
      leaving = former, share = 0.0, since_ = -1.0;
    }
    return true;
  }

  /// Let the one before the last exchange take over again, with what it has learnt.
  bool revert() noexcept { return former != nullptr && exchange(*former); }

  void enable() noexcept
  {
    end();
    present->enable();
  }

  void disable() noexcept
  {
    end();
    present->disable();
  }

  /// A goal that a controller publishes beside its commands, as Compensator::on_goal().
  void on_goal(double arrival, const double * stamp, const Measurement & goal) noexcept
  {
    for (Compensator * one : {leaving, present})
    {
      if (one != nullptr)
      {
        one->on_goal(arrival, stamp, goal);
      }
    }
  }

  void on_telemetry(int joint, double kp, double supply, double temperature) noexcept
  {
    for (Compensator * one : {former, present})
    {
      if (one != nullptr)
      {
        one->on_telemetry(joint, kp, supply, temperature);
      }
    }
  }

  /// The next state, a time after the last one [s].
  void advance(double dt) noexcept
  {
    if (leaving != nullptr)
    {
      since_ = since_ < 0.0 ? 0.0 : since_ + dt;
      const double passed = ramp_time > 0.0 ? since_ / ramp_time - 1.0 : 1.0;
      share = maximum(share, passed < 1.0 ? passed : 1.0);
    }
  }

  /// A value of both by their shares.
  double mixed(double old, double now) const noexcept
  {
    return leaving == nullptr ? now : (1.0 - share) * old + share * now;
  }

  /// Say what was sent; the one that leaves has done so when its share is 0.
  void sent(const Vector & friction) noexcept
  {
    if (leaving == nullptr)
    {
      present->sent(friction);
      return;
    }
    leaving->shared(friction), present->shared(friction);
    if (share >= 1.0)
    {
      end();
    }
  }

private:
  void end() noexcept
  {
    if (leaving != nullptr)
    {
      leaving->disable();
    }
    leaving = nullptr, share = 1.0;
  }

  double since_ = -1.0;
};

/// Commands of joints from references and friction torques.
///
/// An effort without a valid reference is zero. A position without one stays the last reference,
/// without friction. A single missing value in a succession of references is replaced by the last
/// one.
class CommandStage
{
public:
  Limits limits;
  /// valid references; without one, 0 as effort and the last or NaN as position
  Vector reference{};
  Vector command{};   ///< to write; NaN: nothing
  Vector friction{};  ///< friction torque in the commands [N m]
  std::array<Fault, max_joints> fault{};

  void configure(int n, bool efforts) noexcept
  {
    n_ = n, efforts_ = efforts;
    limits = Limits();
    restart();
  }

  /// Forget references and friction, as at a change of state.
  void restart() noexcept
  {
    last_.fill(not_a_number), missed_.fill(0), beyond_.fill(false);
    reference.fill(efforts_ ? 0.0 : not_a_number), command.fill(not_a_number), friction.fill(0.0);
    fault.fill(Fault::none);
  }

  /// The value of a reference, nothing if it could not be read; NaN counts as none.
  void take(int k, std::optional<double> value) noexcept
  {
    const bool given = value.has_value() && std::isfinite(*value);
    missed_[k] = given ? 0 : missed_[k] <= bridged_cycles ? missed_[k] + 1 : missed_[k];
    if (given)
    {
      last_[k] = limits.limited(k, *value);
      beyond_[k] = last_[k] != *value;
    }
    reference[k] = valid(k) || !efforts_ ? last_[k] : 0.0;
  }

  /// Without a reference in this update a joint has none from now on: the last one does not count
  /// for another cycle.
  void drop(int k) noexcept
  {
    if (missed_[k] > 0)
    {
      missed_[k] = bridged_cycles + 1;
      reference[k] = efforts_ ? 0.0 : last_[k];
    }
  }

  /// Whether a joint has a reference.
  bool valid(int k) const noexcept
  {
    return missed_[k] <= bridged_cycles && std::isfinite(last_[k]);
  }

  /// One update with the references taken before: goals and state go to the compensator, references
  /// and its torque into the commands. Friction that ends does so at the joint's rate.
  /// \param now time of the state, \param dt period of the update [s].
  /// \param goal positions and velocities of a controller that gives goals beside efforts.
  void update(
    Compensator & compensator, double now, double dt, const Measurement & measured,
    const Measurement & goal) noexcept
  {
    Handover alone;
    alone.present = &compensator;
    update(alone, now, dt, measured, goal);
  }

  void update(
    Handover & handover, double now, double dt, const Measurement & measured,
    const Measurement & goal) noexcept
  {
    // the references were made before the state
    const double stamp = now - 0.5 * (dt > 0.0 ? dt : 1e-6);
    for (Compensator * one : {handover.leaving, handover.present})
    {
      if (one != nullptr)
      {
        one->on_command(
          now, &stamp,
          {efforts_ ? goal.position : reference.data(), goal.velocity,
           efforts_ ? reference.data() : nullptr});
        one->on_state(now, now, measured);
      }
    }
    handover.advance(dt);
    add(handover, dt);
  }

  /// What remains commanded when the controller stops: no effort, or the position where the joint
  /// is; where that is not known, the last reference. NaN: leave what is there.
  double final_command(int k, double position) const noexcept
  {
    if (efforts_)
    {
      return 0.0;
    }
    const double stays = std::isfinite(position) ? position : last_[k];
    return std::isfinite(stays) ? limits.limited(k, stays) : not_a_number;
  }

private:
  /// Compute the commands, and say to the compensator what was sent.
  void add(Handover & handover, double dt) noexcept
  {
    const Compensator & compensator = *handover.present;
    const Compensator * leaving = handover.leaving;
    Vector sent = compensator.torque;
    for (int k = 0; leaving != nullptr && k < n_; ++k)
    {
      sent[k] = handover.mixed(leaving->torque[k], sent[k]);
    }
    const bool fades =
      compensator.doubt != Doubt::none && compensator.doubt != Doubt::out_of_proportion;
    for (int k = 0; k < n_; ++k)
    {
      const bool referenced = valid(k),
                 ends = !referenced || !compensator.enabled || (fades && sent[k] == 0.0);
      if (ends)
      {
        const bool holds = referenced || (!efforts_ && std::isfinite(reference[k]));
        sent[k] = holds ? faded(friction[k], compensator.fading(k) * dt) : 0.0;
      }
      double wanted = reference[k] + sent[k];
      if (!efforts_)
      {
        wanted = compensator.goal_with(k, reference[k], sent[k]);
        wanted = leaving == nullptr
                   ? wanted
                   : handover.mixed(leaving->goal_with(k, reference[k], sent[k]), wanted);
      }
      command[k] = std::isfinite(wanted) ? limits.limited(k, wanted) : wanted;
      const bool limited = command[k] < wanted || command[k] > wanted;
      if (limited && efforts_)
      {
        sent[k] = command[k] - reference[k];
      }
      fault[k] = static_cast<Fault>(compensator.joint_doubt(k));
      if (!referenced)
      {
        fault[k] = Fault::no_reference;
      }
      else if (fault[k] == Fault::none && (limited || beyond_[k]))
      {
        fault[k] = Fault::limited;
      }
    }
    friction = sent;
    handover.sent(friction);
  }

  /// missing values in succession that are replaced by the last
  static constexpr int bridged_cycles = 1;

  int n_ = 0;
  bool efforts_ = true;
  Vector last_{};
  std::array<int, max_joints> missed_{};
  Mask beyond_{};  ///< the last reference was beyond the limits
};

}  // namespace stribeck

#endif  // STRIBECK_CONTROLLERS__CHAIN_HPP_
