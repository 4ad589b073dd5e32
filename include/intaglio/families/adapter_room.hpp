// SPDX-License-Identifier: MIT
// The room that a plan has for adapters which a checkpoint holds.
#pragma once

#include "intaglio/io/adapter_set.hpp"
#include "intaglio/plan/adapters.hpp"

namespace intaglio::families {

/// @param of held in the checkpoint that the plan is for (adapter_set::hold_in)
/// @error argument_error: a matrix whose name plans have no room for
inline plan::adapter_room adapter_room_of(const io::adapter_set& of) {
  plan::adapter_room out{of.size(), static_cast<std::uint32_t>(of.rank()), of.type(), {}};
  for (const std::string& each : of.matrices()) {
    if (each.size() >= 48)
      throw argument_error("adapters", "matrices of names under 48 characters", printable(each, 60));
    out.matrices.emplace_back(std::string_view(each));
  }
  return out;
}

}  // namespace intaglio::families
