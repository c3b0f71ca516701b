// Copyright the Stribeck maintainers. SPDX-License-Identifier: Apache-2.0
/// \file
/// Time and heap allocations of an update of the controller, without ROS: references, seven joints
/// with law M6, rigid-body dynamics and learning, faults of a state and of a reference now and
/// then, and commands within limits.
///
///     update_time [STEPS] [--free-running] [--without-model]
///
/// One update each millisecond (clock_nanosleep), or without waiting; without a model of the
/// dynamics nothing is learnt. Prints JSON: times in microseconds, the number of allocations after
/// configuring, and the final torque.
#include <time.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <vector>

#include "stribeck_controllers/chain.hpp"

namespace
{
long allocations = 0;
}

[[gnu::noinline]] void * operator new(std::size_t size)
{
  ++allocations;
  void * found = std::malloc(size);
  return found != nullptr ? found : (std::abort(), nullptr);
}
[[gnu::noinline]] void operator delete(void * place) noexcept { std::free(place); }
[[gnu::noinline]] void operator delete(void * place, std::size_t) noexcept { std::free(place); }

using namespace stribeck;

namespace
{

double seconds()
{
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

void wait_until(double time)
{
  timespec until{};
  until.tv_sec = static_cast<time_t>(time);
  until.tv_nsec = static_cast<long>(1e9 * (time - std::floor(time)));
  clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr);
}

JointModel joint()
{
  JointModel model;
  model.law = law_numbered(6);
  FrictionValues & p = model.friction;
  p.friction_base = 0.4, p.friction_stribeck = 0.2, p.friction_viscous = 0.3,
  p.dtheta_stribeck = 0.2, p.alpha = 1.3;
  p.load_friction_motor = 0.08, p.load_friction_external = 0.05,
  p.load_friction_motor_stribeck = 0.02;
  p.load_friction_external_stribeck = 0.01, p.load_friction_motor_quad = 0.001,
  p.load_friction_external_quad = 0.001;
  model.servo.output_max = 80.0;
  model.armature = 0.1, model.max_torque = 20.0, model.resolution = 1e-5;
  model.tuning = Tuning::of_resolution(1e-5);
  return model;
}

void chain(RigidBodyModel & model, int n)
{
  model.joints = n;
  for (int k = 0; k < n; ++k)
  {
    TreeJoint & joint = model.tree[k];
    joint.parent = k - 1;
    joint.placement = {1, 0, 0, 0, 0, 0, -1, 0, 0, 1, 0, 0.2, 0, 0, 0, 1};
    joint.axis = {0, 0, 1};
    const double m = 2.0, z = 0.1;
    joint.pseudo_inertia = {0.01,  0, 0, 0,     0, 0.01, 0, 0, 0, 0, 0.01 + m * z * z,
                            m * z, 0, 0, m * z, m};
    joint.armature = 0.1;
  }
}

}  // namespace

int main(int count, char ** arguments)
{
  const long steps = count > 1 ? std::atol(arguments[1]) : 10000;
  const auto chosen = [&](const char * option)
  {
    return std::any_of(
      arguments + std::min(count, 2), arguments + count,
      [option](const char * given) { return std::strcmp(given, option) == 0; });
  };
  const bool waits = !chosen("--free-running");
  constexpr int n = 7;
  const auto model = std::make_unique<RigidBodyModel>();
  const auto compensator = std::make_unique<Compensator>();
  chain(*model, n);
  std::array<JointModel, max_joints> joints{};
  joints.fill(joint());
  Settings settings;
  settings.effort_meaning = EffortMeaning::motor, settings.isolate_joints = true;
  const std::string problem =
    compensator->configure(n, joints, settings, chosen("--without-model") ? nullptr : model.get());
  if (!problem.empty())
  {
    std::fprintf(stderr, "%s\n", problem.c_str());
    return 1;
  }
  CommandStage stage;
  stage.configure(n, true);
  for (int j = 0; j < n; ++j)
  {
    stage.limits.narrow(j, -60.0, 60.0);
  }
  compensator->enable();
  std::vector<double> times(static_cast<std::size_t>(steps));
  double q[n], v[n], tau[n];
  const long before = allocations;
  const double begin = seconds();
  for (long k = 0; k < steps; ++k)
  {
    const double time = 1e-3 * static_cast<double>(k);
    for (int j = 0; j < n; ++j)
    {
      const double w = 1.0 + 0.2 * j;
      q[j] = 0.5 * std::sin(w * time), v[j] = 0.5 * w * std::cos(w * time),
      tau[j] = 2.0 * std::sin(3.0 * time);
    }
    const bool faulty = k % 2000 > 1990;
    q[1] = faulty ? not_a_number : q[1];
    if (waits)
    {
      wait_until(begin + time);
    }
    const double from = seconds();
    for (int j = 0; j < n; ++j)
    {
      stage.take(j, faulty && j == 2 ? not_a_number : tau[j]);
    }
    stage.update(*compensator, time, 1e-3, {q, v, tau}, {q, v});
    times[static_cast<std::size_t>(k)] = 1e6 * (seconds() - from);
  }
  const long allocated = allocations - before;
  std::sort(times.begin(), times.end());
  const auto quantile = [&times](double share)
  {
    const double last = static_cast<double>(times.size() - 1);
    return times[static_cast<std::size_t>(share * last)];
  };
  std::printf(
    "{\"steps\": %ld, \"p50_us\": %.3f, \"p99_us\": %.3f, \"p999_us\": %.3f, \"max_us\": %.3f, "
    "\"allocations\": %ld, "
    "\"learns\": %s, \"torque\": %.6f}\n",
    steps, quantile(0.5), quantile(0.99), quantile(0.999), times.back(), allocated,
    compensator->learns() ? "true" : "false", stage.friction[0]);
  return compensator->doubt == Doubt::none ? 0 : 1;
}
