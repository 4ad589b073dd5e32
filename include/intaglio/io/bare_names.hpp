// SPDX-License-Identifier: MIT
// Tensors that llama.cpp's files name without the ending ".weight".
#pragma once

#include <string>
#include <string_view>

#include "intaglio/core/family.hpp"

namespace intaglio::io {

/// The ending of such a tensor's name in a file.
inline constexpr std::string_view bare_norm = ".ffn_norm";

/// The model's name of a tensor of a GGUF file.
inline std::string name_with_ending(const family& of, std::string name) {
  if (of.bare_ffn_norm && name.starts_with("blk.") && name.ends_with(bare_norm)) name += ".weight";
  return name;
}
/// The name under which a GGUF file has a tensor of the model.
inline std::string name_in_gguf(const family& of, std::string name) {
  constexpr std::string_view ending = ".weight";
  const std::string bare = name.substr(0, name.size() - (name.ends_with(ending) ? ending.size() : 0));
  return name_with_ending(of, bare) == name ? bare : name;
}

}  // namespace intaglio::io
