// Copyright the Stribeck maintainers. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <type_traits>
#define PLUGINLIB_EXPORT_CLASS(derived, base) static_assert(std::is_base_of<base, derived>::value, "no plug-in of this base");
