// Copyright the Stribeck maintainers. SPDX-License-Identifier: Apache-2.0
/// \file
/// The terms of friction laws: written by controllers/generate.py from model/terms of the Python
/// package; do not edit.
// clang-format off
#ifndef STRIBECK_CONTROLLERS__TERMS_HPP_
#define STRIBECK_CONTROLLERS__TERMS_HPP_

#include <array>
#include <cmath>
#include <cstdint>
#include <string_view>

namespace stribeck
{
/// A term of a friction law.
enum class Term : std::uint32_t
{
  coulomb = 1u << 0,  ///< Coulomb friction
  fading_coulomb = 1u << 1,  ///< the Stribeck effect (friction that falls with speed)
  symmetric_load = 1u << 2,  ///< friction that grows with the load
  fading_symmetric_load = 1u << 3,  ///< friction that grows with the load
  directional_load = 1u << 4,  ///< friction that grows with the load
  fading_directional_load = 1u << 5,  ///< friction that grows with the load
  quadratic_load = 1u << 6,  ///< the quadratic load term
  stribeck = 1u << 7,  ///< the Stribeck effect (friction that falls with speed)
  viscous = 1u << 8,  ///< viscous friction
  asymmetric = 1u << 9,  ///< friction that differs by direction
  offset = 1u << 10,  ///< the offset torque
  position = 1u << 11,  ///< friction that depends on the position
  ripple = 1u << 12,  ///< the torque ripple
  second_ripple = 1u << 13,  ///< the second torque ripple
};

/// Terms of a friction budget.
struct Law
{
  std::uint32_t terms = 0;

  /// Whether the law has a term.
  constexpr bool has(Term term) const noexcept { return has(static_cast<std::uint32_t>(term)); }

  /// Whether the law has one of several terms.
  constexpr bool has(std::uint32_t some) const noexcept { return (terms & some) != 0u; }

  /// Add a term, or take it off.
  constexpr void set(Term term, bool present = true) noexcept
  {
    const auto bit = static_cast<std::uint32_t>(term);
    terms = present ? terms | bit : terms & ~bit;
  }
};

/// The law M1 to M6, by its number; M1 for any other number.
inline Law law_numbered(int number) noexcept
{
  switch (number) {
    case 2: return {0x183u};  // coulomb, fading_coulomb, stribeck, viscous
    case 3: return {0x105u};  // coulomb, symmetric_load, viscous
    // coulomb, fading_coulomb, symmetric_load, fading_symmetric_load, stribeck, viscous
    case 4: return {0x18fu};
    // coulomb, fading_coulomb, directional_load, fading_directional_load, stribeck, viscous
    case 5: return {0x1b3u};
    // coulomb, fading_coulomb, directional_load, fading_directional_load, quadratic_load, stribeck,
    // viscous
    case 6: return {0x1f3u};
    default: return {0x101u};
  }
}

/// Values of a law, named as in parameter files; those that the law lacks are not used.
struct FrictionValues
{
  double friction_base = 0.0;  ///< K_c [N m]
  double friction_stribeck = 0.0;  ///< K_c^s [N m]
  double load_friction_base = 0.0;  ///< K_l [1]
  double load_friction_stribeck = 0.0;  ///< K_l^s [1]
  double load_friction_motor = 0.0;  ///< K_m [1]
  double load_friction_external = 0.0;  ///< K_e [1]
  double load_friction_motor_stribeck = 0.0;  ///< K_m^s [1]
  double load_friction_external_stribeck = 0.0;  ///< K_e^s [1]
  double load_friction_motor_quad = 0.0;  ///< K_m^q [1/(N m)]
  double load_friction_external_quad = 0.0;  ///< K_e^q [1/(N m)]
  double dtheta_stribeck = 1.0;  ///< v_s [rad/s]
  double alpha = 1.0;  ///< alpha [1]
  double friction_viscous = 0.0;  ///< K_v [N m s/rad]
  double friction_base_negative = 0.0;  ///< K_c^- [N m]
  double friction_viscous_negative = 0.0;  ///< K_v^- [N m s/rad]
  double torque_offset = 0.0;  ///< tau_0 [N m]
  double friction_slope = 0.0;  ///< s [N m/rad]
  double friction_curve = 0.0;  ///< c [N m/rad^2]
  double friction_centre = 0.0;  ///< theta_c [rad]
  double friction_reach = 1000.0;  ///< r [rad]
  double ripple_order = 0.0;  ///< n [1]
  double ripple_cosine = 0.0;  ///< a [N m]
  double ripple_sine = 0.0;  ///< b [N m]
  double second_ripple_order = 0.0;  ///< n [1]
  double second_ripple_cosine = 0.0;  ///< a [N m]
  double second_ripple_sine = 0.0;  ///< b [N m]
};

/// The values that parameters of the same names have.
template<class Parameters>
FrictionValues values_of(const Parameters & p)
{
  return {p.friction_base, p.friction_stribeck, p.load_friction_base,
    p.load_friction_stribeck, p.load_friction_motor, p.load_friction_external,
    p.load_friction_motor_stribeck, p.load_friction_external_stribeck, p.load_friction_motor_quad,
    p.load_friction_external_quad, p.dtheta_stribeck, p.alpha,
    p.friction_viscous, p.friction_base_negative, p.friction_viscous_negative,
    p.torque_offset, p.friction_slope, p.friction_curve,
    p.friction_centre, p.friction_reach, p.ripple_order,
    p.ripple_cosine, p.ripple_sine, p.second_ripple_order,
    p.second_ripple_cosine, p.second_ripple_sine};
}

/// Names of all values.
constexpr const char * value_names[] = {"friction_base", "friction_stribeck", "load_friction_base",
    "load_friction_stribeck", "load_friction_motor", "load_friction_external",
    "load_friction_motor_stribeck", "load_friction_external_stribeck", "load_friction_motor_quad",
    "load_friction_external_quad", "dtheta_stribeck", "alpha",
    "friction_viscous", "friction_base_negative", "friction_viscous_negative",
    "torque_offset", "friction_slope", "friction_curve",
    "friction_centre", "friction_reach", "ripple_order",
    "ripple_cosine", "ripple_sine", "second_ripple_order",
    "second_ripple_cosine", "second_ripple_sine"};

/// The value with a name; a null pointer for an unknown one.
inline double * value_named(FrictionValues & p, std::string_view name) noexcept
{
  if (name == "friction_base") {return &p.friction_base;}
  if (name == "friction_stribeck") {return &p.friction_stribeck;}
  if (name == "load_friction_base") {return &p.load_friction_base;}
  if (name == "load_friction_stribeck") {return &p.load_friction_stribeck;}
  if (name == "load_friction_motor") {return &p.load_friction_motor;}
  if (name == "load_friction_external") {return &p.load_friction_external;}
  if (name == "load_friction_motor_stribeck") {return &p.load_friction_motor_stribeck;}
  if (name == "load_friction_external_stribeck") {return &p.load_friction_external_stribeck;}
  if (name == "load_friction_motor_quad") {return &p.load_friction_motor_quad;}
  if (name == "load_friction_external_quad") {return &p.load_friction_external_quad;}
  if (name == "dtheta_stribeck") {return &p.dtheta_stribeck;}
  if (name == "alpha") {return &p.alpha;}
  if (name == "friction_viscous") {return &p.friction_viscous;}
  if (name == "friction_base_negative") {return &p.friction_base_negative;}
  if (name == "friction_viscous_negative") {return &p.friction_viscous_negative;}
  if (name == "torque_offset") {return &p.torque_offset;}
  if (name == "friction_slope") {return &p.friction_slope;}
  if (name == "friction_curve") {return &p.friction_curve;}
  if (name == "friction_centre") {return &p.friction_centre;}
  if (name == "friction_reach") {return &p.friction_reach;}
  if (name == "ripple_order") {return &p.ripple_order;}
  if (name == "ripple_cosine") {return &p.ripple_cosine;}
  if (name == "ripple_sine") {return &p.ripple_sine;}
  if (name == "second_ripple_order") {return &p.second_ripple_order;}
  if (name == "second_ripple_cosine") {return &p.second_ripple_cosine;}
  if (name == "second_ripple_sine") {return &p.second_ripple_sine;}
  return nullptr;
}

/// The law and its further terms: those that are switched on, or whose coefficients are not all
/// zero.
template<class Parameters>
Law law_of(int number, const Parameters & p)
{
  Law law = law_numbered(number);
  law.set(Term::asymmetric, p.asymmetric);
  law.set(Term::offset, p.torque_offset != 0.0);
  law.set(Term::position, p.friction_slope != 0.0 || p.friction_curve != 0.0);
  law.set(Term::ripple, p.ripple_cosine != 0.0 || p.ripple_sine != 0.0);
  law.set(Term::second_ripple, p.second_ripple_cosine != 0.0 || p.second_ripple_sine != 0.0);
  return law;
}

/// A value that cannot be: its name (a null pointer: there is none), what it must be, and what it
/// is.
struct Refusal
{
  const char * name = nullptr, * valid = nullptr;
  double found = 0.0;
};

/// The first value that the law cannot have.
inline Refusal refused_value(const Law & law, const FrictionValues & p) noexcept
{
  if (!(p.friction_base >= 0.0 && std::isfinite(p.friction_base))) {
    return {"friction_base", "zero or positive", p.friction_base};
  }
  if (!(std::isfinite(p.friction_stribeck))) {
    return {"friction_stribeck", "finite", p.friction_stribeck};
  }
  if (!(p.load_friction_base >= 0.0 && std::isfinite(p.load_friction_base))) {
    return {"load_friction_base", "zero or positive", p.load_friction_base};
  }
  if (!(p.load_friction_stribeck >= 0.0 && std::isfinite(p.load_friction_stribeck))) {
    return {"load_friction_stribeck", "zero or positive", p.load_friction_stribeck};
  }
  if (!(p.load_friction_motor >= 0.0 && std::isfinite(p.load_friction_motor))) {
    return {"load_friction_motor", "zero or positive", p.load_friction_motor};
  }
  if (!(p.load_friction_external >= 0.0 && std::isfinite(p.load_friction_external))) {
    return {"load_friction_external", "zero or positive", p.load_friction_external};
  }
  if (!(p.load_friction_motor_stribeck >= 0.0 && std::isfinite(p.load_friction_motor_stribeck))) {
    return {"load_friction_motor_stribeck", "zero or positive", p.load_friction_motor_stribeck};
  }
  if (!(p.load_friction_external_stribeck >= 0.0 &&
    std::isfinite(p.load_friction_external_stribeck))) {
    return {"load_friction_external_stribeck", "zero or positive",
      p.load_friction_external_stribeck};
  }
  if (!(p.load_friction_motor_quad >= 0.0 && std::isfinite(p.load_friction_motor_quad))) {
    return {"load_friction_motor_quad", "zero or positive", p.load_friction_motor_quad};
  }
  if (!(p.load_friction_external_quad >= 0.0 && std::isfinite(p.load_friction_external_quad))) {
    return {"load_friction_external_quad", "zero or positive", p.load_friction_external_quad};
  }
  if (!(p.dtheta_stribeck >= 0.0 && std::isfinite(p.dtheta_stribeck))) {
    return {"dtheta_stribeck", "zero or positive", p.dtheta_stribeck};
  }
  if (!(p.alpha >= 0.0 && std::isfinite(p.alpha))) {return {"alpha", "zero or positive", p.alpha};}
  if (!(p.friction_viscous >= 0.0 && std::isfinite(p.friction_viscous))) {
    return {"friction_viscous", "zero or positive", p.friction_viscous};
  }
  if (!(p.friction_base_negative >= 0.0 && std::isfinite(p.friction_base_negative))) {
    return {"friction_base_negative", "zero or positive", p.friction_base_negative};
  }
  if (!(p.friction_viscous_negative >= 0.0 && std::isfinite(p.friction_viscous_negative))) {
    return {"friction_viscous_negative", "zero or positive", p.friction_viscous_negative};
  }
  if (!(std::isfinite(p.torque_offset))) {return {"torque_offset", "finite", p.torque_offset};}
  if (!(std::isfinite(p.friction_slope))) {return {"friction_slope", "finite", p.friction_slope};}
  if (!(std::isfinite(p.friction_curve))) {return {"friction_curve", "finite", p.friction_curve};}
  if (!(std::isfinite(p.friction_centre))) {
    return {"friction_centre", "finite", p.friction_centre};
  }
  if (!(p.friction_reach >= 0.0 && std::isfinite(p.friction_reach))) {
    return {"friction_reach", "zero or positive", p.friction_reach};
  }
  if (!(p.ripple_order >= 0.0 && std::isfinite(p.ripple_order))) {
    return {"ripple_order", "zero or positive", p.ripple_order};
  }
  if (!(std::isfinite(p.ripple_cosine))) {return {"ripple_cosine", "finite", p.ripple_cosine};}
  if (!(std::isfinite(p.ripple_sine))) {return {"ripple_sine", "finite", p.ripple_sine};}
  if (!(p.second_ripple_order >= 0.0 && std::isfinite(p.second_ripple_order))) {
    return {"second_ripple_order", "zero or positive", p.second_ripple_order};
  }
  if (!(std::isfinite(p.second_ripple_cosine))) {
    return {"second_ripple_cosine", "finite", p.second_ripple_cosine};
  }
  if (!(std::isfinite(p.second_ripple_sine))) {
    return {"second_ripple_sine", "finite", p.second_ripple_sine};
  }
  if (law.has(Term::stribeck) && !(p.dtheta_stribeck > 0.0)) {
    return {"dtheta_stribeck", "positive", p.dtheta_stribeck};
  }
  if (law.has(Term::stribeck) && !(p.alpha > 0.0)) {return {"alpha", "positive", p.alpha};}
  return {};
}

/// The values that count for motion in negative direction.
inline FrictionValues negative_values(const Law & law, FrictionValues p) noexcept
{
  if (law.has(Term::asymmetric)) {
    p.friction_base = p.friction_base_negative;
    p.friction_viscous = p.friction_viscous_negative;
  }
  return p;
}

/// Whether the budget differs by the direction of motion.
inline bool differs_by_direction(const Law & law) noexcept
{
  return law.has(Term::asymmetric);
}

/// What friction depends on: velocity and its magnitude [rad/s], torques [N m], position [rad].
struct Conditions
{
  double velocity, speed, motor, external, position;
};

/// Values of the terms [N m], of a weight [1].
namespace value
{
inline double coulomb(const FrictionValues & p, const Conditions &) noexcept
{
  return p.friction_base;
}
inline double fading_coulomb(const FrictionValues & p, const Conditions &) noexcept
{
  return p.friction_stribeck;
}
inline double symmetric_load(const FrictionValues & p, const Conditions & x) noexcept
{
  return p.load_friction_base * std::abs(x.motor - x.external);
}
inline double fading_symmetric_load(const FrictionValues & p, const Conditions & x) noexcept
{
  return p.load_friction_stribeck * std::abs(x.motor - x.external);
}
inline double directional_load(const FrictionValues & p, const Conditions & x) noexcept
{
  return std::abs((p.load_friction_motor * x.motor) - (p.load_friction_external * x.external));
}
inline double fading_directional_load(const FrictionValues & p, const Conditions & x) noexcept
{
  const double t0 = (p.load_friction_motor_stribeck * x.motor) -
    (p.load_friction_external_stribeck * x.external);
  return std::abs(t0);
}
inline double quadratic_load(const FrictionValues & p, const Conditions & x) noexcept
{
  const double t0 = std::abs(x.motor);
  const double t1 = std::abs(x.external);
  const double t2 = (t0 > t1) ? ((p.load_friction_external_quad * x.external) * x.external)
    : ((t0 < t1) ? ((p.load_friction_motor_quad * x.motor) * x.motor) : 0.0);
  return ((x.motor * x.external) < 0.0) ? t2 : 0.0;
}
inline double stribeck(const FrictionValues & p, const Conditions & x) noexcept
{
  const double t0 = x.speed / p.dtheta_stribeck;
  return std::exp(-std::exp(p.alpha * std::log(t0 >= 1e-30 || t0 != t0 ? t0 : 1e-30)));
}
inline double viscous(const FrictionValues & p, const Conditions & x) noexcept
{
  return p.friction_viscous * x.speed;
}
inline double offset(const FrictionValues & p, const Conditions &) noexcept
{
  return p.torque_offset;
}
inline double position(const FrictionValues & p, const Conditions & x) noexcept
{
  const double t0 = x.position - p.friction_centre;
  const double t1 = t0 <= p.friction_reach || t0 != t0 ? t0 : p.friction_reach;
  const double t2 = -p.friction_reach;
  const double t3 = t1 >= t2 || t1 != t1 ? t1 : t2;
  return t3 * (p.friction_slope + (t3 * p.friction_curve));
}
inline double ripple(const FrictionValues & p, const Conditions & x) noexcept
{
  const double t0 = p.ripple_order * x.position;
  return (p.ripple_cosine * std::cos(t0)) + (p.ripple_sine * std::sin(t0));
}
inline double second_ripple(const FrictionValues & p, const Conditions & x) noexcept
{
  const double t0 = p.second_ripple_order * x.position;
  return (p.second_ripple_cosine * std::cos(t0)) + (p.second_ripple_sine * std::sin(t0));
}
}  // namespace value

/// Their slopes in the speed [N m s/rad].
namespace speed_slope
{
inline double viscous(const FrictionValues & p, const Conditions &) noexcept
{
  return p.friction_viscous;
}
}  // namespace speed_slope

/// Their slopes in the motor torque [1].
namespace motor_slope
{
inline double symmetric_load(const FrictionValues & p, const Conditions & x) noexcept
{
  const double t0 = x.motor + (-x.external);
  return (t0 > 0.0 ? 1.0 : t0 < 0.0 ? -1.0 : t0) * p.load_friction_base;
}
inline double fading_symmetric_load(const FrictionValues & p, const Conditions & x) noexcept
{
  const double t0 = x.motor + (-x.external);
  return (t0 > 0.0 ? 1.0 : t0 < 0.0 ? -1.0 : t0) * p.load_friction_stribeck;
}
inline double directional_load(const FrictionValues & p, const Conditions & x) noexcept
{
  const double t0 = (x.motor * p.load_friction_motor) + (-(p.load_friction_external * x.external));
  return p.load_friction_motor * (t0 > 0.0 ? 1.0 : t0 < 0.0 ? -1.0 : t0);
}
inline double fading_directional_load(const FrictionValues & p, const Conditions & x) noexcept
{
  const double t0 = (x.motor * p.load_friction_motor_stribeck) +
    (-(p.load_friction_external_stribeck * x.external));
  return p.load_friction_motor_stribeck * (t0 > 0.0 ? 1.0 : t0 < 0.0 ? -1.0 : t0);
}
inline double quadratic_load(const FrictionValues & p, const Conditions & x) noexcept
{
  const double t0 = std::abs(x.motor);
  const double t1 = std::abs(x.external);
  const double t2 = (t0 < t1)
    ? ((p.load_friction_motor_quad * x.motor) + (x.motor * p.load_friction_motor_quad)) : 0.0;
  return ((x.motor * x.external) < 0.0) ? ((t0 > t1) ? 0.0 : t2) : 0.0;
}
}  // namespace motor_slope

/// Terms that lower the friction, too.
constexpr std::uint32_t signed_terms = 0x800u;

/// Terms that depend on the torques.
constexpr std::uint32_t loaded_terms = 0x7cu;

/// Torques beside motor and external torque.
constexpr std::uint32_t offset_terms = 0x3400u;

/// Coulomb friction and terms without fixed sign, together at least zero [N m].
inline double static_friction(const Law & law, const FrictionValues & p,
  const Conditions & x) noexcept
{
  double total = 0.0;
  if (law.has(Term::coulomb)) {total = total + value::coulomb(p, x);}
  if (law.has(Term::position)) {total = total + value::position(p, x);}
  return law.has(signed_terms) && total < 0.0 ? 0.0 : total;
}

/// Dry friction that is the same in both directions [N m].
inline double shared_friction(const Law & law, const FrictionValues & p,
  const Conditions & x) noexcept
{
  double total = 0.0;
  if (law.has(Term::symmetric_load)) {total = total + value::symmetric_load(p, x);}
  if (law.has(Term::directional_load)) {total = total + value::directional_load(p, x);}
  if (law.has(Term::stribeck)) {
    double fading = 0.0;
    if (law.has(Term::fading_coulomb)) {fading = fading + value::fading_coulomb(p, x);}
    if (law.has(Term::fading_symmetric_load)) {
      fading = fading + value::fading_symmetric_load(p, x);
    }
    if (law.has(Term::fading_directional_load)) {
      fading = fading + value::fading_directional_load(p, x);
    }
    if (law.has(Term::quadratic_load)) {fading = fading + value::quadratic_load(p, x);}
    total = total + value::stribeck(p, x) * fading;
  }
  return total;
}

/// Viscous friction [N m].
inline double viscous_part(const Law & law, const FrictionValues & p, const Conditions & x) noexcept
{
  double total = 0.0;
  if (law.has(Term::viscous)) {total = total + value::viscous(p, x);}
  return total;
}

/// Slope of the viscous friction [N m s/rad].
inline double viscous_slope(const Law & law, const FrictionValues & p,
  const Conditions & x) noexcept
{
  double total = 0.0;
  if (law.has(Term::viscous)) {total = total + speed_slope::viscous(p, x);}
  return total;
}

/// Torque beside motor and external torque [N m].
inline double offset_torque(const Law & law, const FrictionValues & p,
  const Conditions & x) noexcept
{
  double total = 0.0;
  if (law.has(Term::offset)) {total = total + value::offset(p, x);}
  if (law.has(Term::ripple)) {total = total + value::ripple(p, x);}
  if (law.has(Term::second_ripple)) {total = total + value::second_ripple(p, x);}
  return total;
}

/// Largest slope of each load-dependent term in the motor torque [1].
using LoadSlopes = std::array<double, 5>;

/// Raise the largest slopes to those at some conditions.
inline void widen(LoadSlopes & largest, const Law & law, const FrictionValues & p,
  const Conditions & x) noexcept
{
  const auto larger = [](double a, double b) {return std::abs(b) > a ? std::abs(b) : a;};
  largest[0] = law.has(Term::symmetric_load)
    ? larger(largest[0], motor_slope::symmetric_load(p, x)) : 0.0;
  largest[1] = law.has(Term::fading_symmetric_load)
    ? larger(largest[1], motor_slope::fading_symmetric_load(p, x)) : 0.0;
  largest[2] = law.has(Term::directional_load)
    ? larger(largest[2], motor_slope::directional_load(p, x)) : 0.0;
  largest[3] = law.has(Term::fading_directional_load)
    ? larger(largest[3], motor_slope::fading_directional_load(p, x)) : 0.0;
  largest[4] = law.has(Term::quadratic_load)
    ? larger(largest[4], motor_slope::quadratic_load(p, x)) : 0.0;
}

}  // namespace stribeck
// clang-format on

#endif  // STRIBECK_CONTROLLERS__TERMS_HPP_
