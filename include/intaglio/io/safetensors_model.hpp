// SPDX-License-Identifier: MIT
// The safetensors of a Hugging Face folder: model.safetensors, or shards listed by model.safetensors.index.json.
#pragma once

#include "intaglio/io/safetensors.hpp"
#include "intaglio/io/weight_files.hpp"

namespace intaglio::io {

/// A model in one or several safetensors files.
using safetensors_model = weight_files<safetensors_file>;

}  // namespace intaglio::io
