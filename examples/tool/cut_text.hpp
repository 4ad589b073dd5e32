// SPDX-License-Identifier: MIT
// A model's cut over devices in words, as JSON or as a page, for `intaglio plan`.
#pragma once

#include "commands.hpp"
#include "engraved_models.hpp"

#include <string>

namespace intaglio::tool {

enum class cut_form { words, json, page };

/// Stages, their bytes and what crosses. Nothing is loaded; without devices to open, each stage is for the profile.
/// @param over of it devices and cut
/// @throws argument_error: a cut that is none; out_of_memory: a stage that does not fit its device
std::string cut_text(const engraved_model& model, const model_options& over, bool for_cpu, const common_options& common,
                     cut_form form);

}  // namespace intaglio::tool
