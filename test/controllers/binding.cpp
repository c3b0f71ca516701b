// C functions around the headers of controllers/, for the tests.
#include <cstring>
#include <string>

#include "stribeck_controllers/chain.hpp"

using namespace stribeck;

namespace
{

// Mass matrix and bias torques that the caller computes.
struct GivenDynamics : Dynamics
{
  int joints = 0;
  Matrix mass{};
  Vector bias{};

  void take(const double * rows, const double * h)
  {
    for (int k = 0; k < joints; ++k) {
      std::memcpy(mass[k].data(), rows + joints * k, sizeof(double) * joints);
    }
    std::memcpy(bias.data(), h, sizeof(double) * joints);
  }

  void evaluate(const Vector &, const Vector &, Matrix & m, Vector & h) const noexcept override { m = mass, h = bias; }
};

struct Held
{
  Compensator compensator;
  IndependentJoints independent;
  RigidBodyModel bodies;
  GivenDynamics given;
  std::string problem;
  bool isolates = false;
  CommandStage stage;
  Handover handover;
  TopicReferences topic;
};

constexpr int value_columns = sizeof(FrictionValues) / sizeof(double);

FrictionValues friction_of(const double * v)
{
  FrictionValues values;
  std::memcpy(static_cast<void *>(&values), v, sizeof(values));
  return values;
}

Law law_of(const double * v)
{
  return {static_cast<std::uint32_t>(*v)};
}

constexpr int joint_columns = 1 + value_columns + 12 + 4 + 3 + 6 + 1;

JointModel joint_of(const double * v)
{
  JointModel joint;
  joint.law = law_of(v), v += 1;
  joint.friction = friction_of(v), v += value_columns;
  Servo & servo = joint.servo;
  servo.control = static_cast<ControlKind>(static_cast<int>(*v++));
  for (double * place : {&servo.gain, &servo.damping, &servo.output_max}) {
    *place = *v++;
  }
  servo.coasts = *v++ != 0.0;
  for (double * place : {&servo.kt, &servo.resistance, &servo.current_limit, &servo.saturation, &servo.ratio,
      &servo.nominal_supply, &servo.rated_supply, &joint.armature, &joint.max_torque, &joint.resolution, &joint.temperature, &joint.sign,
      &joint.ratio, &joint.offset, &joint.tuning.deadband, &joint.tuning.error_width,
      &joint.tuning.command_velocity, &joint.tuning.moving_velocity, &joint.tuning.overshoot_fraction, &joint.tuning.presliding})
  {
    *place = *v++;
  }
  joint.enabled = *v != 0.0;
  return joint;
}

const double * put(double * to, const Vector & from, int n)
{
  std::memcpy(to, from.data(), sizeof(double) * n);
  return to;
}

}  // namespace

extern "C" {

int capacity() { return max_joints; }

Held * created() { return new Held; }

void destroyed(Held * held) { delete held; }

// Law: its terms as bits, and all values, per row; states: share, velocity, motor, external, dry, viscous, guess, limit.
// Out: budgets, cancelling torque, feed-forward torque.
void laws(int rows, const double * law, const double * values, const double * state, double * out)
{
  for (int k = 0; k < rows; ++k, ++law, values += value_columns, state += 8, out += 4) {
    const Law l = law_of(law);
    const FrictionValues p = friction_of(values);
    const Budget budget = friction_budget(l, p, state[2], state[3], state[1]);
    const Scales scales{state[4], state[5]};
    out[0] = budget.positive, out[1] = budget.negative;
    out[2] = cancelling_torque(l, p, state[0], state[1], state[2], state[3], scales);
    out[3] = feed_forward_torque(l, p, state[0], state[1], state[2], state[3], scales, state[6], state[7]);
  }
}

// Dynamics: 0 none; 1 independent joints, rows of inertia, gravity, offset; 2 bodies, rows of parent, slides, placement,
// axis, pseudo-inertia, armature; 3 what the caller computes, mass matrix and bias torques.
const char * configured(
  Held * held, int n, const double * joints, const double * s, int kind, const double * dynamics,
  const double * gravity)
{
  std::array<JointModel, max_joints> models{};
  for (int k = 0; k < n && k < max_joints; ++k) {
    models[k] = joint_of(joints + joint_columns * k);
  }
  Settings settings;
  settings.mode = static_cast<OutputMode>(static_cast<int>(s[0]));
  settings.effort_meaning = static_cast<EffortMeaning>(static_cast<int>(s[1]));
  settings.impedance = s[2] != 0.0, settings.adapt = s[3] != 0.0;
  AdaptationSettings & a = settings.adaptation;
  const double * v = s + 4;
  for (double * place : {&settings.gain, &settings.state_timeout, &settings.command_timeout, &settings.ramp_time,
      &settings.slew, &settings.certain_fraction, &settings.loop_delay, &settings.state_lag, &settings.learned_gain,
      &a.scale_lower, &a.scale_upper, &a.offset_limit, &a.prior, &a.together, &a.drift, &a.wander, &a.noise})
  {
    *place = *v++;
  }
  settings.isolate_joints = held->isolates;
  const Dynamics * model = nullptr;
  if (kind == 1) {
    held->independent.joints = n;
    for (int k = 0; k < n; ++k) {
      held->independent.inertia[k] = dynamics[3 * k];
      held->independent.gravity[k] = dynamics[3 * k + 1];
      held->independent.q_offset[k] = dynamics[3 * k + 2];
    }
    model = &held->independent;
  } else if (kind == 2) {
    held->bodies.joints = n;
    std::memcpy(held->bodies.gravity.data(), gravity, 3 * sizeof(double));
    for (int k = 0; k < n; ++k, dynamics += 38) {
      TreeJoint & joint = held->bodies.tree[k];
      joint.parent = static_cast<int>(dynamics[0]), joint.slides = dynamics[1] != 0.0;
      std::memcpy(joint.placement.data(), dynamics + 2, 16 * sizeof(double));
      std::memcpy(joint.axis.data(), dynamics + 18, 3 * sizeof(double));
      std::memcpy(joint.pseudo_inertia.data(), dynamics + 21, 16 * sizeof(double));
      joint.armature = dynamics[37];
    }
    model = &held->bodies;
  } else if (kind == 3) {
    held->given.joints = n;
    held->given.take(dynamics, dynamics + n * n);
    model = &held->given;
  }
  held->problem = held->compensator.configure(n, models, settings, model);
  return held->problem.c_str();
}

void evaluated(const Held * held, int kind, const double * q, const double * v, double * mass, double * bias)
{
  const Dynamics & model = kind == 1 ? static_cast<const Dynamics &>(held->independent) : held->bodies;
  const int n = kind == 1 ? held->independent.joints : held->bodies.joints;
  Vector at{}, speed{}, h{};
  Matrix m{};
  std::memcpy(at.data(), q, sizeof(double) * n), std::memcpy(speed.data(), v, sizeof(double) * n);
  model.evaluate(at, speed, m, h);
  for (int k = 0; k < n; ++k) {
    put(mass + n * k, m[k], n);
  }
  put(bias, h, n);
}

void enabled(Held * held) { held->compensator.enable(); }
void disabled(Held * held) { held->compensator.disable(); }
int gain_set(Held * held, double gain) { return held->compensator.set_gain(gain); }

void told(Held * held, int joint, double kp, double supply, double temperature, double stamp)
{
  held->compensator.on_telemetry(joint, kp, supply, temperature, stamp);
}

void commanded(
  Held * held, int goal, double arrival, const double * stamp, const double * position, const double * velocity,
  const double * effort, const double * now)
{
  const Measurement command{position, velocity, effort};
  if (goal) {
    held->compensator.on_goal(arrival, stamp, command, now);
  } else {
    held->compensator.on_command(arrival, stamp, command, now);
  }
}

void measured(
  Held * held, double arrival, double stamp, const double * position, const double * velocity,
  const double * effort, const double * now)
{
  held->compensator.on_state(arrival, stamp, {position, velocity, effort}, now);
}

int expired(Held * held, double now, const double * time) { return held->compensator.expire(now, time); }

void faded(Held * held, const double * torque, double dt)
{
  Vector other{};
  std::memcpy(other.data(), torque, sizeof(double) * held->compensator.joints());
  held->compensator.fade(other, dt);
}

const char * torques(const Held * held, double * out)
{
  put(out, held->compensator.torque, held->compensator.joints());
  return text_of(held->compensator.doubt);
}

// Why single joints have no torque: 0 they have, 1 frozen, 2 driven, 3 not enabled; speeds at which compensation ends.
void offs(const Held * held, double * why, double * speed)
{
  for (int k = 0; k < held->compensator.joints(); ++k) {
    const Doubt off = held->compensator.off[k];
    why[k] = off == Doubt::none ? 0.0 : off == Doubt::frozen ? 1.0 : off == Doubt::driven ? 2.0 :
      off == Doubt::not_enabled ? 3.0 : -1.0;
    speed[k] = held->compensator.speed_bound(k);
  }
}

int outputs(const Held * held, double now, double * out)
{
  Vector values;
  const bool found = held->compensator.output(now, values);
  put(out, values, held->compensator.joints());
  return found;
}

int separated(const Held * held, double * out)
{
  const int n = held->compensator.joints();
  bool known = true;
  for (int k = 0; k < n; ++k) {
    known = held->compensator.external_torque(k, out[k], out[n + k], out[2 * n + k]) && known;
  }
  return known;
}

void goal_delays(const Held * held, double * out)
{
  const int n = held->compensator.joints();
  for (int k = 0; k < n; ++k) {
    held->compensator.goal_delay(k, out[k], out[n + k]);
  }
}

void accounted(const Held * held, double * out)
{
  const Account account = held->compensator.account();
  const int n = held->compensator.joints();
  for (const Vector * row : {&account.dry, &account.viscous, &account.offset, &account.certainty, &account.contact,
      &account.energy})
  {
    put(out, *row, n), out += n;
  }
}

int learnt(const Held * held, double * out)
{
  for (int k = 0; k < held->compensator.joints(); ++k, out += 4) {
    const Learned found = held->compensator.learned(k);
    out[0] = found.dry, out[1] = found.viscous, out[2] = found.deviation_dry, out[3] = found.deviation_viscous;
  }
  return held->compensator.learns();
}

// One cycle of many robots with n joints each: effort, goal and goal velocity (null: none), position, velocity (null: none),
// mass matrices and bias torques (null: without dynamics). Returns how many are in doubt.
int stepped(
  int count, Held * const * held, int n, double now, const double * effort, const double * goal, const double * rate,
  const double * position, const double * velocity, const double * mass, const double * bias, double * torque)
{
  const double before = now - 1e-6;
  int doubts = 0;
  for (int k = 0; k < count; ++k) {
    Compensator & ours = held[k]->compensator;
    const int at = n * k;
    if (mass != nullptr) {
      held[k]->given.take(mass + n * at, bias + at);
    }
    ours.on_command(now, &before, {nullptr, nullptr, effort + at});
    if (goal != nullptr) {
      ours.on_goal(now, &before, {goal + at, rate + at});
    }
    ours.on_state(now, now, {position + at, velocity == nullptr ? nullptr : velocity + at, nullptr});
    put(torque + at, ours.torque, n);
    doubts += *text_of(ours.doubt) != '\0';
  }
  return doubts;
}

void recalled(Held * held, const double * rows)
{
  Learned learned[max_joints];
  for (int k = 0; rows != nullptr && k < held->compensator.joints(); ++k, rows += 4) {
    learned[k] = {rows[0], rows[1], rows[2], rows[3]};
  }
  held->compensator.recall(rows == nullptr ? nullptr : learned);
}

void isolated(Held * held, int isolates) { held->isolates = isolates != 0; }

double largest_gain(const Held * held) { return held->compensator.largest_gain(); }

const char * code_text(int code) { return code < 64 ? text_of(static_cast<Doubt>(code)) : ""; }

void learning(const Held * held, double * out)
{
  const Account account = held->compensator.account();
  put(out, account.dry, held->compensator.joints());
}

// -- both ends of the controller

void staged(Held * held, int efforts, const double * lower, const double * upper)
{
  held->stage.configure(held->compensator.joints(), efforts != 0);
  held->handover = Handover();
  held->handover.present = &held->compensator;
  for (int k = 0; k < held->compensator.joints(); ++k) {
    held->stage.limits.narrow(k, lower[k], upper[k]);
  }
}

const char * limits_problem(Held * held, int joint)
{
  held->problem = held->stage.limits.problem(joint, "a");
  return held->problem.c_str();
}

// Hands over to the compensator of another, or back to the former one without.
int stage_exchanged(Held * held, Held * other, double ramp_time)
{
  held->handover.ramp_time = ramp_time;
  return other == nullptr ? held->handover.revert() : held->handover.exchange(other->compensator);
}

void stage_restarted(Held * held) { held->stage.restart(); }

void stage_switched(Held * held, int on)
{
  if (on) {
    held->compensator.enable();
    held->compensator.sent(held->stage.friction);
  } else {
    held->compensator.disable();
  }
}

// A null pointer for what is not given; locked: references that cannot be read in this update.
void stage_updated(
  Held * held, double now, double dt, const double * reference, const double * locked, const double * position,
  const double * velocity, const double * effort, const double * goal, const double * goal_velocity, double * out)
{
  const int n = held->compensator.joints();
  for (int k = 0; k < n; ++k) {
    held->stage.take(k, locked[k] != 0.0 ? std::nullopt : std::optional<double>(reference[k]));
  }
  held->stage.update(held->handover, now, dt, {position, velocity, effort}, {goal, goal_velocity});
  put(out, held->stage.command, n), put(out + n, held->stage.friction, n);
  for (int k = 0; k < n; ++k) {
    out[2 * n + k] = static_cast<double>(held->stage.fault[k]);
  }
}

double final_command(const Held * held, int joint, double position)
{
  return held->stage.final_command(joint, position);
}

void topic_restarted(Held * held, double timeout, unsigned count)
{
  held->topic.timeout = timeout;
  held->topic.restart(count);
}

int topic_advanced(Held * held, unsigned count, double dt) { return static_cast<int>(held->topic.advance(count, dt)); }

void last_reads(int count, const double * values, const double * locked, double change, double * out)
{
  LastRead read;
  for (int k = 0; k < count; ++k) {
    out[k] = read.take(locked[k] != 0.0 ? std::nullopt : std::optional<double>(values[k]), change);
  }
}

const char * output_checked(Held * held, const double * joint, int mode, double kp, double supply)
{
  held->problem = output_problem("a", joint_of(joint), static_cast<OutputMode>(mode), kp, supply);
  return held->problem.c_str();
}

}  // extern "C"
