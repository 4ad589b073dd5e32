// SPDX-License-Identifier: MIT
// Families whose tensors have names of their own in safetensors: how such names become GGUF's, and back.
#pragma once

#include "intaglio/core/compiler.hpp"

#include <array>
#include <optional>
#include <string>
#include <string_view>

namespace intaglio::io {

/// A tensor's name in both conventions, without ".weight" and ".bias"; in a layer, the part after the layer's own.
struct own_part {
  std::string_view hf, gguf;
};
/// The names of a family: what is in front of a layer's number, names of tensors in a layer, and of others.
struct own_names {
  std::string_view layers;
  std::array<own_part, 9> parts;
  std::array<own_part, 8> globals;
  std::string_view model = {};  ///< in front of all names except the head's, in files that are written
};

/// Removes the name of the model inside of a model with a head.
constexpr std::string_view without_model(std::string_view name) {
  for (const std::string_view model : {"bert.", "roberta.", "model.", "transformer.", "gpt_neox."})
    if (name.starts_with(model)) return name.substr(model.size());
  return name;
}

/// The GGUF name of a tensor; absent for other names. Older files call a LayerNorm's weight gamma and its bias beta.
[[gnu::cold]] inline std::optional<std::string> own_gguf_name(std::string_view name, const own_names& names) {
  name = without_model(name);
  const auto dot = name.rfind('.');
  if (dot == name.npos) return std::nullopt;
  std::string end(name.substr(dot));
  if (end == ".gamma") end = ".weight";
  if (end == ".beta") end = ".bias";
  if (end != ".weight" && end != ".bias") return std::nullopt;
  std::string_view part = name.substr(0, dot);
  for (const auto& [hf, gguf] : names.globals)
    if (!hf.empty() && part == hf) return std::string(gguf) + end;
  if (!part.starts_with(names.layers)) return std::nullopt;
  part.remove_prefix(names.layers.size());
  const auto digits = part.find('.');
  if (digits == 0 || digits == part.npos || digits > 6 || part.find_first_not_of("0123456789") != digits ||
      (digits > 1 && part[0] == '0'))
    return std::nullopt;
  for (const auto& [hf, gguf] : names.parts)
    if (!hf.empty() && part.substr(digits + 1) == hf)
      return "blk." + std::string(part.substr(0, digits)) + "." + std::string(gguf) + end;
  return std::nullopt;
}

/// Hugging Face's name of a tensor; absent for other names.
[[gnu::cold]] inline std::optional<std::string> own_hf_name(std::string_view name, const own_names& names) {
  const auto dot = name.rfind('.');
  if (dot == name.npos) return std::nullopt;
  const std::string_view end = name.substr(dot), part = name.substr(0, dot);
  for (const auto& [hf, gguf] : names.globals)
    if (!hf.empty() && part == gguf)
      return std::string(gguf == "output" ? "" : names.model) + std::string(hf) + std::string(end);
  const auto layer = part.find('.', 4);
  if (!part.starts_with("blk.") || layer == part.npos) return std::nullopt;
  for (const auto& [hf, gguf] : names.parts)
    if (!hf.empty() && part.substr(layer + 1) == gguf)
      return std::string(names.model) + std::string(names.layers) + std::string(part.substr(4, layer - 4)) + "." +
             std::string(hf) + std::string(end);
  return std::nullopt;
}

}  // namespace intaglio::io
