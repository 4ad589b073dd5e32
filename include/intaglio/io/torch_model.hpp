// SPDX-License-Identifier: MIT
// PyTorch's files of a Hugging Face folder: pytorch_model.bin, or shards listed by pytorch_model.bin.index.json.
#pragma once

#include "intaglio/io/torch_file.hpp"
#include "intaglio/io/weight_files.hpp"

namespace intaglio::io {

/// A model in one or several files of torch.save.
using torch_model = weight_files<torch_file>;

}  // namespace intaglio::io
