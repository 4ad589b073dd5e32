// SPDX-License-Identifier: MIT
// In which codecs a file's model is computed.
#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "intaglio/core/family.hpp"
#include "intaglio/families/planned_family.hpp"
#include "intaglio/io/checkpoint_data.hpp"

namespace intaglio::families {

/// The codecs that layers, embedding and head can be planned for, from the coarsest to the finest.
inline constexpr std::array planned_codecs{dtype::q4_0, dtype::q4_1, dtype::q4_k, dtype::q6_k,
                                           dtype::q8_0, dtype::bf16, dtype::f16,  dtype::f32};
constexpr bool is_planned(dtype type) {
  return std::find(planned_codecs.begin(), planned_codecs.end(), type) != planned_codecs.end();
}

/// The codec whose kernels take a type's blocks: Q4_1's for BCML1, whose values are the same; else the type itself.
constexpr dtype computed_in(dtype type) { return type == dtype::bcml1 ? dtype::q4_1 : type; }

/// The codec in which a packed file holds a tensor, from the words that say what each weight is
/// (plan/weight_identity.hpp).
inline std::optional<dtype> packed_type(const io::packed_image& image, std::string_view tensor) {
  for (const io::packed_weight& each : image.weights) {
    const std::string_view words = each.layout;
    if (!words.starts_with(tensor)) continue;
    std::size_t at = words.find(": ");
    while (at != std::string_view::npos && at + 1 < words.size()) {
      const std::size_t begin = words.find_first_not_of(": ", at), end = words.find(' ', begin);
      if (begin == std::string_view::npos) break;
      if (const auto type = dtype_from_name(words.substr(begin, end - begin))) return type;
      at = end;
    }
  }
  return std::nullopt;
}

/// What a file's weights are computed in: their own codec, where they have one in common that products are computed
/// with. Of several the finest, so that nothing is held coarser than the file has it; f16 where none is.
struct file_types {
  weight_types types;
  bool recoded = false;   ///< some are in other codecs than these: layers of several, or one that no plan computes in
  std::string list = {};  ///< the file's codecs, each with a tensor that has it
};
inline file_types types_of(const io::checkpoint& file) {
  file_types out;
  if (family_of(file.config().model_type).ternary) return out;
  weight_types& types = out.types;
  if (file.packed() != nullptr) {
    types.layers = dtype_from_name(file.packed()->codec).value_or(dtype::f16);
    const dtype other = graph::head_type(types.layers, file.config().hidden_size);
    types.embedding = packed_type(*file.packed(), "token_embd.weight").value_or(other);
    types.head = packed_type(*file.packed(), "output.weight").value_or(types.embedding);
    return out;
  }
  const auto rank = [](dtype type) {
    return std::find(planned_codecs.begin(), planned_codecs.end(), type) - planned_codecs.begin();
  };
  std::vector<dtype> seen;
  for (const auto& tensor : file.tensors()) {
    const dtype stored = computed_in(tensor.stored.type), type = is_planned(stored) ? stored : dtype::f16;
    const bool table = tensor.stored.name == "token_embd.weight", head = tensor.stored.name == "output.weight";
    if (tensor.stored.name.ends_with(".ffn_gate_inp.weight")) continue;  // the router's is f32 whatever the others are
    if (table) types.embedding = types.head = type;
    if (head) types.head = type;
    const bool layers = !table && !head && tensor.role == io::tensor_role::matrix;
    if (layers ? std::find(seen.begin(), seen.end(), stored) != seen.end() : stored == type || !(table || head))
      continue;
    out.list += (out.list.empty() ? "" : ", ") + std::string(name(tensor.stored.type)) + " from " + tensor.stored.name;
    out.recoded = out.recoded || stored != type || (layers && !seen.empty());
    if (!layers) continue;
    if (seen.empty() || rank(type) > rank(types.layers)) types.layers = type;
    seen.push_back(stored);
  }
  return out;
}

}  // namespace intaglio::families
