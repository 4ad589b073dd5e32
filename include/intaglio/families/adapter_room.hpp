// SPDX-License-Identifier: MIT
// The space that a plan reserves for the LoRA adapters of a checkpoint.
#pragma once

#include "intaglio/io/adapter_set.hpp"
#include "intaglio/plan/adapters.hpp"

namespace intaglio::families {

/// The space for a set of adapters. @param of adapters in the checkpoint that the plan is for (adapter_set::hold_in)
/// @error argument_error: a matrix whose name plans do not know
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
