// SPDX-License-Identifier: MIT
// The models that this build of the tool was engraved with. Which those are says the header INTAGLIO_ENGRAVED_HEADER
// (default_models.hpp, or what `intaglio engrave` wrote): a constant `engraved_models` of named_model entries.
#pragma once

#include <intaglio/io/checkpoint_data.hpp>
#include <intaglio/plan/table.hpp>

#include <span>
#include <string>
#include <string_view>

namespace intaglio::tool {

/// A model's plans, one for each kind of device.
struct engraved_model {
  std::string_view name;
  plan::table cpu, portable;
  const decoder_config& config() const { return *cpu.config; }
  const plan::table& table(bool for_cpu) const { return for_cpu ? cpu : portable; }
};

std::span<const engraved_model> engraved_models();

/// @throws argument_error listing the names that there are
const engraved_model& engraved_model_by_name(const std::string& name);

/// The engraved model whose config is that of the file.
/// @throws mismatch_error with the differences from the nearest one, and the command that engraves the right one
const engraved_model& engraved_model_of(const io::checkpoint& file);

}  // namespace intaglio::tool
