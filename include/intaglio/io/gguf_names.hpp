// SPDX-License-Identifier: MIT
// What the name of a GGUF file says: which part of a split model it is, and whether it is a model at all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "intaglio/core/compiler.hpp"

namespace intaglio::io {

/// PREFIX, 2 and 5 of "PREFIX-00002-of-00005.gguf".
struct gguf_split {
  std::string_view prefix;            ///< a view of the name; empty where the name is no part's
  std::uint32_t part = 0, parts = 0;  ///< from 1; 0: no part of a split model
};

/// Reads the part from a file's name. The ending may be of any case.
constexpr gguf_split gguf_split_of(std::string_view file) {
  constexpr std::string_view tail = "-00000-of-00000.gguf";
  if (file.size() <= tail.size()) return {};
  const std::string_view end = file.substr(file.size() - tail.size());
  std::uint32_t numbers[2]{};
  for (std::size_t i = 0; i < tail.size(); ++i) {
    const char c = end[i] >= 'A' && end[i] <= 'Z' ? static_cast<char>(end[i] - 'A' + 'a') : end[i];
    if (tail[i] != '0') {
      if (c != tail[i]) return {};
    } else if (c < '0' || c > '9') return {};
    else numbers[i > 6] = numbers[i > 6] * 10 + static_cast<std::uint32_t>(c - '0');
  }
  if (numbers[0] == 0 || numbers[0] > numbers[1]) return {};
  return {file.substr(0, file.size() - tail.size()), numbers[0], numbers[1]};
}

/// The file name of part `number` (from 0) of the model that `file` is a part of: PREFIX-00001-of-00003.gguf.
[[gnu::cold]] inline std::string gguf_part_name(const std::string& file, unsigned number, unsigned count) {
  const auto digits = [](unsigned value) {
    const std::string text = std::to_string(value);
    return std::string(text.size() < 5 ? 5 - text.size() : 0, '0') + text;
  };
  // PREFIX is as long in every part's name.
  constexpr std::size_t tail = std::string_view("-00001-of-00001.gguf").size();
  return (file.size() > tail ? file.substr(0, file.size() - tail) : "") + "-" + digits(number + 1) + "-of-" +
         digits(count) + ".gguf";
}

/// Whether a file of this name can be opened as a model: a whole GGUF file, or the first part of a split one. Image
/// projectors (`mmproj`) and importance matrices (`imatrix`) are GGUF files too, but no models.
inline bool names_gguf_model(std::string_view file) {
  std::string name(file);
  for (char& c : name)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return name.ends_with(".gguf") && name.find("mmproj") == std::string::npos &&
         name.find("imatrix") == std::string::npos && gguf_split_of(name).part <= 1;
}

}  // namespace intaglio::io
