// Copyright the Stribeck maintainers. SPDX-License-Identifier: Apache-2.0
// What the plug-in of inverse dynamics uses of rclcpp, for tests without ROS.
#pragma once
#include <map>
#include <memory>
#include <string>
#include <variant>
#include <vector>
#include <cstdint>

namespace rclcpp
{
enum class ParameterType { PARAMETER_INTEGER, PARAMETER_DOUBLE, PARAMETER_OTHER };

struct Parameter
{
  std::variant<std::int64_t, double, bool, std::string, std::vector<std::string>> value;
  ParameterType get_type() const
  {
    return value.index() < 2 ? static_cast<ParameterType>(value.index()) : ParameterType::PARAMETER_OTHER;
  }
  std::int64_t as_int() const { return std::get<std::int64_t>(value); }
  double as_double() const { return std::get<double>(value); }
  bool as_bool() const { return std::get<bool>(value); }
  const std::string & as_string() const { return std::get<std::string>(value); }  // references, as in rclcpp
  const std::vector<std::string> & as_string_array() const { return std::get<std::vector<std::string>>(value); }
};

namespace node_interfaces
{
struct NodeParametersInterface
{
  using ConstSharedPtr = std::shared_ptr<const NodeParametersInterface>;
  std::map<std::string, Parameter> all;
  bool has_parameter(const std::string & name) const { return all.count(name) > 0; }
  Parameter get_parameter(const std::string & name) const { return all.at(name); }
};
}  // namespace node_interfaces
}  // namespace rclcpp
