// Copyright the Stribeck maintainers. SPDX-License-Identifier: Apache-2.0
// Reads parameters (name, kind, value) up to an empty line, then rows of position, velocity, acceleration of two joints; writes friction
// without load and torque of each.
#include <iostream>
#include <sstream>

#include "../../controllers/src/friction_inverse_dynamics.cpp"

int main()
{
  auto given = std::make_shared<rclcpp::node_interfaces::NodeParametersInterface>();
  std::string line, name, kind, word;
  while (std::getline(std::cin, line) && !line.empty()) {
    std::istringstream words(line);
    words >> name >> kind;
    std::vector<std::string> all;
    while (words >> word) {
      all.push_back(word);
    }
    auto & value = given->all[name].value;
    if (kind == "int") {value = static_cast<std::int64_t>(std::stoll(all.at(0)));}
    if (kind == "float") {value = std::stod(all.at(0));}
    if (kind == "bool") {value = all.at(0) == "True";}
    if (kind == "str") {value = all.at(0);}
    if (kind == "list") {value = all;}
  }
  stribeck_controllers::FrictionInverseDynamicsSolver solver;
  try {
    solver.initialize(given, "arm");
    std::cout.precision(17);
    Eigen::VectorXd q(2), v(2), a(2);
    while (std::cin >> q[0] >> q[1] >> v[0] >> v[1] >> a[0] >> a[1]) {
      const Eigen::VectorXd friction = solver.getFrictionVector(v), torque = solver.getTorques(q, v, a);
      std::cout << friction[0] << ' ' << friction[1] << ' ' << torque[0] << ' ' << torque[1] << '\n';
    }
    solver.getFrictionVector(Eigen::VectorXd::Zero(3));
  } catch (const std::exception & error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
  return 0;
}
