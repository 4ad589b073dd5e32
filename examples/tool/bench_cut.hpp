// SPDX-License-Identifier: MIT
// bench over several devices.
#pragma once

#include "commands.hpp"

namespace intaglio::tool {

/// Speed of a model that is cut, and what a token takes in each stage.
/// @throws argument_error: options of bench that a cut has not
void bench_cut(const bench_options& options, const common_options& common);

}  // namespace intaglio::tool
