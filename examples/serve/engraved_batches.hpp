// SPDX-License-Identifier: MIT
// The tool's engraved models (examples/tool/engraved_models.hpp) with plans for sessions that decode together.
#pragma once

#include "../tool/engraved_models.hpp"

namespace intaglio::serve {

/// Batches in the order of tool::engraved_models(). @param fast with the shape of fast_batch_shape_of
std::span<const tool::engraved_model> engraved_batches(bool fast);

}  // namespace intaglio::serve
