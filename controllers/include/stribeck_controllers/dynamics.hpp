// Copyright the Stribeck maintainers. SPDX-License-Identifier: Apache-2.0
/// \file
/// Mass matrix and bias torques of joints, M(q) dv/dt + h(q, v) = tau, for the momentum observer.
/// The rigid-body formulas are those of rigid/rigid_body.py (Featherstone, Rigid Body Dynamics
/// Algorithms, 2008, ch. 5 and 6), as loops.
#ifndef STRIBECK_CONTROLLERS__DYNAMICS_HPP_
#define STRIBECK_CONTROLLERS__DYNAMICS_HPP_

#include <array>
#include <cmath>
#include <cstddef>

#include "stribeck_controllers/motion.hpp"

namespace stribeck
{

using Matrix = std::array<Vector, max_joints>;  ///< (n, n), by rows.

/// Dynamics of n joints in the robot's coordinates.
class Dynamics
{
public:
  virtual ~Dynamics() = default;

  /// M (n, n) [kg m^2] and h = C v + g (n) [N m] at positions q [rad] and velocities v [rad/s].
  virtual void evaluate(
    const Vector & q, const Vector & v, Matrix & mass, Vector & bias) const noexcept = 0;
};

/// Uncoupled joints, each with a constant inertia and the gravity torque of a pendulum.
class IndependentJoints : public Dynamics
{
public:
  int joints = 0;
  Vector inertia{};   ///< with the rotor [kg m^2]
  Vector gravity{};   ///< largest gravity torque (m + m_a / 2) g l [N m], 0 without a load
  Vector q_offset{};  ///< the pendulum hangs at q = -q_offset [rad]

  void evaluate(
    const Vector & q, const Vector &, Matrix & mass, Vector & bias) const noexcept override
  {
    for (int i = 0; i < joints; ++i)
    {
      mass[i].fill(0.0);
      mass[i][i] = inertia[i];
      bias[i] = gravity[i] * std::sin(q[i] + q_offset[i]);
    }
  }
};

/// One joint of a tree and the body that it moves; matrices are in the joint's frame, by rows.
struct TreeJoint
{
  /// index of the joint that carries this one, smaller than its own; -1: base
  int parent = -1;
  bool slides = false;  ///< prismatic instead of revolute
  /// pose of the joint's frame in the parent's, at position 0
  std::array<double, 16> placement{};
  std::array<double, 3> axis{};             ///< unit vector
  std::array<double, 16> pseudo_inertia{};  ///< of the body: second moment of mass of (x, 1)
  double armature = 0.0;                    ///< inertia of the rotor at the joint
};

/// A kinematic tree on a fixed base.
class RigidBodyModel : public Dynamics
{
public:
  int joints = 0;
  std::array<TreeJoint, max_joints> tree{};
  /// acceleration of free fall in the frame of the base [m/s^2]
  std::array<double, 3> gravity{0.0, 0.0, -9.80665};

  void evaluate(
    const Vector & q, const Vector & v, Matrix & mass, Vector & bias) const noexcept override
  {
    std::array<Pose, max_joints> pose;
    std::array<Pose, max_joints> inertia;  // of each body in the frame of the base
    std::array<Rows, max_joints> twist, own, velocity, rate, force;
    for (int i = 0; i < joints; ++i)
    {
      const TreeJoint & joint = tree[i];
      pose[i] = placed(joint, q[i]);
      if (joint.parent >= 0)
      {
        pose[i] = product(pose[joint.parent], pose[i]);
      }
      twist[i] = twist_of(joint, pose[i]);
      inertia[i] = moved(pose[i], joint.pseudo_inertia);
    }
    for (int i = 0; i < joints; ++i)
    {
      const int parent = tree[i].parent;
      for (int e = 0; e < 12; ++e)
      {
        own[i][e] = twist[i][e] * v[i];
        velocity[i][e] = own[i][e] + (parent < 0 ? 0.0 : velocity[parent][e]);
      }
      for (int r = 0; r < 3; ++r)
      {
        for (int c = 0; c < 4; ++c)
        {
          double sum = parent < 0 ? 0.0 : rate[parent][4 * r + c];
          for (int m = 0; m < 3; ++m)
          {
            sum += (2.0 * velocity[i][4 * r + m] - own[i][4 * r + m]) * own[i][4 * m + c];
          }
          rate[i][4 * r + c] = sum;
        }
      }
      Rows acceleration = rate[i];
      for (int r = 0; r < 3; ++r)
      {
        acceleration[4 * r + 3] -= gravity[r];
      }
      force[i] = product(acceleration, inertia[i]);
    }
    for (int i = joints - 1; i > 0; --i)
    {  // from the tips to the base: what each joint carries
      const int parent = tree[i].parent;
      if (parent >= 0)
      {
        for (int e = 0; e < 12; ++e)
        {
          force[parent][e] += force[i][e];
        }
        for (int e = 0; e < 16; ++e)
        {
          inertia[parent][e] += inertia[i][e];
        }
      }
    }
    for (int i = 0; i < joints; ++i)
    {
      bias[i] = inner(twist[i], force[i]);
      mass[i].fill(0.0);
    }
    for (int i = 0; i < joints; ++i)
    {
      const Rows carried = product(twist[i], inertia[i]);
      for (int k = i; k >= 0; k = tree[k].parent)
      {
        mass[i][k] = mass[k][i] = inner(carried, twist[k]);
      }
      mass[i][i] += tree[i].armature;
    }
  }

private:
  using Pose = std::array<double, 16>;
  using Rows = std::array<double, 12>;  // the upper three rows of a (4, 4) matrix

  // Product of the rows of a, three or four of them, with a (4, 4) matrix.
  template <std::size_t N>
  static std::array<double, N> product(const std::array<double, N> & a, const Pose & b) noexcept
  {
    std::array<double, N> c;
    for (std::size_t i = 0; i < N; i += 4)
    {
      for (std::size_t j = 0; j < 4; ++j)
      {
        double sum = 0.0;
        for (std::size_t k = 0; k < 4; ++k)
        {
          sum += a[i + k] * b[4 * k + j];
        }
        c[i + j] = sum;
      }
    }
    return c;
  }

  static double inner(const Rows & a, const Rows & b) noexcept
  {
    double sum = 0.0;
    for (int e = 0; e < 12; ++e)
    {
      sum += a[e] * b[e];
    }
    return sum;
  }

  /// T P T^T
  static Pose moved(const Pose & pose, const Pose & inertia) noexcept
  {
    const Pose left = product(pose, inertia);
    Pose turned;
    for (int i = 0; i < 4; ++i)
    {
      for (int j = 0; j < 4; ++j)
      {
        turned[4 * i + j] = pose[4 * j + i];
      }
    }
    return product(left, turned);
  }

  /// Pose of the joint's frame in that of its parent at a position.
  static Pose placed(const TreeJoint & joint, double position) noexcept
  {
    Pose motion{1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1};
    const double x = joint.axis[0], y = joint.axis[1], z = joint.axis[2];
    if (joint.slides)
    {
      motion[3] = position * x, motion[7] = position * y, motion[11] = position * z;
      return product(joint.placement, motion);
    }
    const double s = std::sin(position), c = 1.0 - std::cos(position);
    motion[0] += c * (-z * z - y * y), motion[1] += -s * z + c * x * y,
      motion[2] += s * y + c * x * z;
    motion[4] += s * z + c * x * y, motion[5] += c * (-z * z - x * x),
      motion[6] += -s * x + c * y * z;
    motion[8] += -s * y + c * x * z, motion[9] += s * x + c * y * z,
      motion[10] += c * (-y * y - x * x);
    return product(joint.placement, motion);
  }

  /// Velocity of points at unit speed of the joint, in the frame of the base: dx/dt = S (x, 1).
  static Rows twist_of(const TreeJoint & joint, const Pose & pose) noexcept
  {
    std::array<double, 3> a{};
    for (int r = 0; r < 3; ++r)
    {
      a[r] = pose[4 * r] * joint.axis[0] + pose[4 * r + 1] * joint.axis[1] +
             pose[4 * r + 2] * joint.axis[2];
    }
    if (joint.slides)
    {
      return {0, 0, 0, a[0], 0, 0, 0, a[1], 0, 0, 0, a[2]};
    }
    const double px = pose[3], py = pose[7], pz = pose[11];
    return {0.0,   -a[2], a[1], a[2] * py - a[1] * pz, a[2], 0.0, -a[0], a[0] * pz - a[2] * px,
            -a[1], a[0],  0.0,  a[1] * px - a[0] * py};
  }
};

}  // namespace stribeck

#endif  // STRIBECK_CONTROLLERS__DYNAMICS_HPP_
