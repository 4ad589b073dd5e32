// SPDX-License-Identifier: MIT
// The files of an opened model, which nothing may be written over while it is read.
#pragma once

#include "intaglio/core/compiler.hpp"

#include <filesystem>
#include <set>
#include <string>
#include <system_error>

#include "intaglio/core/error.hpp"
#include "intaglio/io/checkpoint.hpp"
#include "intaglio/platform/path_text.hpp"

namespace intaglio::io {
/// Refuses an output that is a file of the model.
/// @throws argument_error where `out` is one of the files that the model's tensors are in: its values would be lost
[[gnu::cold]] inline void expect_other_file(const checkpoint& model, const std::filesystem::path& out) {
  std::set<const mapped_file*> files;
  for (const checkpoint_tensor& each : model.tensors()) files.insert(each.stored.file);
  for (const mapped_file* const file : files) {
    std::error_code none;
    if (file != nullptr && std::filesystem::equivalent(platform::path_of(file->path()), out, none) && !none)
      throw argument_error("output", "another file than those of the model", printable(out.string(), 240));
  }
}

}  // namespace intaglio::io
