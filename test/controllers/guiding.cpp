// Copyright the Stribeck maintainers. SPDX-License-Identifier: Apache-2.0
// C functions around guiding.hpp, for comparison with live/zero_torque.py.
#include <algorithm>

#include "stribeck_controllers/guiding.hpp"

namespace
{
using namespace stribeck;

IndependentJoints dynamics;
ZeroTorque zero;

Vector vector_of(int n, const double * values)
{
  Vector found{};
  std::copy(values, values + n, found.begin());
  return found;
}
}  // namespace

extern "C" {

// s: gravity error, ramp time, bandwidth, hottest, time-out.
void configured(
  int n, const double * inertia, const double * weight, const double * offset, const double * level,
  const double * limit, const double * fastest, const double * s)
{
  dynamics.joints = zero.guiding.joints = n;
  dynamics.inertia = vector_of(n, inertia), dynamics.gravity = vector_of(n, weight);
  dynamics.q_offset = vector_of(n, offset);
  zero.guiding.level = vector_of(n, level), zero.guiding.limit = vector_of(n, limit);
  zero.guiding.fastest = vector_of(n, fastest);
  zero.guiding.gravity_error = s[0], zero.guiding.ramp_time = s[1], zero.guiding.bandwidth = s[2];
  zero.hottest = s[3], zero.timeout = s[4];
  zero.dynamics = &dynamics;
}

void begun(double now) { zero.begin(now); }
void released() { zero.release(ZeroTorque::Reason::left); }

// Torque of a state, or without one; returns whether the mode is on.
int updated(double now, const double * q, const double * v, double stamp, const double * temperature, double * out)
{
  const int n = zero.guiding.joints;
  const Vector none{};
  const Vector at = q == nullptr ? none : vector_of(n, q), speed = v == nullptr ? none : vector_of(n, v);
  const Vector found = zero.torque(
    now, q == nullptr ? nullptr : &at, q == nullptr ? nullptr : &speed, stamp, vector_of(n, temperature));
  std::copy(found.begin(), found.begin() + n, out);
  for (int k = 0; k < n; ++k) {
    out[n + k] = zero.guiding.holding[k];
  }
  return zero.on;
}

}  // extern "C"
