// SPDX-License-Identifier: MIT
// The codecs in which a file's model is computed.
#pragma once

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "intaglio/core/family.hpp"
#include "intaglio/families/planned_family.hpp"
#include "intaglio/io/checkpoint_data.hpp"
#include "intaglio/kernels/matmul_layout.hpp"

namespace intaglio::families {

/// The codecs that layers, embedding and head can be planned for, from the coarsest to the finest by bits of a weight.
inline constexpr auto planned_codecs = [] {
  std::array<dtype, kernels::codec_table.size()> out{};
  for (std::size_t i = 0; i < out.size(); ++i) {
    const dtype type = kernels::codec_table[i].type;
    const auto bits = [](dtype of) { return info(of).block_bytes * 256 / info(of).block_elements; };
    std::size_t at = i;  // among equal ones the later number comes first: bf16, f16
    for (; at > 0 && bits(out[at - 1]) >= bits(type); --at) out[at] = out[at - 1];
    out[at] = type;
  }
  return out;
}();
/// Whether plans compute with weights of this type.
constexpr bool is_planned(dtype type) {
  return std::find(planned_codecs.begin(), planned_codecs.end(), type) != planned_codecs.end();
}

/// The codec whose kernels read a type's blocks. BCML1 is computed as Q4_1, which has the same values; other types are
/// themselves.
constexpr dtype computed_in(dtype type) { return type == dtype::bcml1 ? dtype::q4_1 : type; }

/// A weight of a packed file, parsed from the words that describe it (plan/weight_identity.hpp).
struct packed_tensor {
  std::string_view layers;  ///< "*", "0-3,7"; empty: a weight outside of the layers
  std::string_view name;    ///< "attn_q.weight"
  dtype type;
};
/// The tensors of a packed file that have a codec. Each matrix of a merged weight is a tensor of its own.
inline std::vector<packed_tensor> packed_tensors(const io::packed_image& image) {
  std::vector<packed_tensor> out;
  for (const io::packed_weight& each : image.weights) {
    const std::string_view words = each.layout;
    const std::size_t end = words.find(": ");
    std::optional<dtype> type;
    for (std::size_t at = end; !type && at < words.size();) {
      const std::size_t begin = words.find_first_not_of(": ", at), after = words.find(' ', begin);
      if (begin == std::string_view::npos) break;
      type = dtype_from_name(words.substr(begin, after - begin));
      at = after;
    }
    if (!type) continue;
    for (std::size_t at = 0; at < end;) {  // "blk.*.attn_q.weight 4096 + blk.*.attn_k.weight 1024"
      std::string_view name = words.substr(at, words.find(' ', at) - at), layers;
      if (name.starts_with("blk.")) {
        layers = name.substr(4, name.find('.', 4) - 4);
        name.remove_prefix((std::min)(name.size(), 5 + layers.size()));
      }
      out.push_back({layers, name, *type});
      const std::size_t next = words.find(" + ", at);
      at = next >= end ? end : next + 3;
    }
  }
  return out;
}
/// Whether a list such as "0-3,7" has a layer; "*" has all of them.
inline bool lists_layer(std::string_view list, std::uint32_t layer) {
  if (list == "*") return true;
  while (!list.empty()) {
    const std::string_view part = list.substr(0, list.find(','));
    list.remove_prefix((std::min)(list.size(), part.size() + 1));
    std::uint32_t first = 0, last = 0;
    const auto read = std::from_chars(part.data(), part.data() + part.size(), first);
    last = first;
    if (read.ptr != part.data() + part.size()) std::from_chars(read.ptr + 1, part.data() + part.size(), last);
    if (first <= layer && layer <= last) return true;
  }
  return false;
}

/// The types of each layer's matrices. They are gathered one by one; then equal sets of types are merged.
class layer_types {
 public:
  explicit layer_types(std::uint32_t layers) : of_layer_(layers) {}

  void add(std::uint32_t layer, std::string_view name, dtype type) {
    if (layer < of_layer_.size()) of_layer_[layer].insert_or_assign(std::string(name), type);
  }
  /// Writes the result. Where all matrices have one type it is `layers`; else the type of each matrix of each set is
  /// listed.
  void into(weight_types& out) const {
    std::vector<const matrices*> sets;
    for (const matrices& each : of_layer_) {
      std::size_t set = 0;
      while (set < sets.size() && *sets[set] != each) ++set;
      if (set == sets.size()) sets.push_back(&each);
      out.sets.push_back(static_cast<std::uint8_t>((std::min)(set, std::size_t{255})));
    }
    std::optional<dtype> one;
    bool uniform = true;
    for (std::size_t set = 0; set < sets.size(); ++set)
      for (const auto& [name, type] : *sets[set]) {
        uniform = uniform && type == one.value_or(type);
        one = type;
        out.matrices.push_back({name, type, static_cast<std::uint8_t>((std::min)(set, std::size_t{255}))});
      }
    if (uniform || sets.size() < 2) out.sets.clear();
    if (!uniform) return;
    out.matrices.clear();
    out.layers = one.value_or(out.layers);
  }

 private:
  using matrices = std::map<std::string, dtype>;
  std::vector<matrices> of_layer_;
};

/// The types in which a file's weights are computed: the codec of each matrix, or f16 where no plan computes in that
/// codec.
struct file_types {
  weight_types types;     ///< `layers` is the finest type that any layer has
  bool recoded = false;   ///< some matrices have codecs that no plan computes in
  std::string list = {};  ///< the file's codecs, each with a tensor that has it
};
/// Whether this is a matrix outside of the layers with its own codec that is neither the embedding nor the head.
constexpr bool is_global_matrix(std::string_view name) {
  return name.starts_with("per_layer_") || name.starts_with("altup_") || name.starts_with("dense_");
}
/// The types in which the weights of a file are computed.
inline file_types types_of(const io::checkpoint& file) {
  file_types out;
  if (family_of(file.config().model_type).ternary) return out;
  weight_types& types = out.types;
  layer_types layers(file.config().num_hidden_layers);
  std::optional<dtype> head;
  if (file.packed() != nullptr) {
    types.layers = dtype_from_name(file.packed()->codec).value_or(dtype::f16);
    types.embedding = graph::head_type(types.layers, file.config().hidden_size);
    for (const packed_tensor& each : packed_tensors(*file.packed())) {
      if (each.layers.empty() && each.name == "token_embd.weight") types.embedding = each.type;
      if (each.layers.empty() && each.name == "output.weight") head = each.type;
      if (each.layers.empty() && is_global_matrix(each.name))
        types.globals.push_back({std::string(each.name), each.type});
      for (std::uint32_t layer = 0; !each.layers.empty() && layer < file.config().num_hidden_layers; ++layer)
        if (!each.name.starts_with("ffn_gate_inp") && lists_layer(each.layers, layer))
          layers.add(layer, each.name, each.type);
    }
    types.head = head.value_or(types.embedding);
    layers.into(types);
    return out;
  }
  const auto rank = [](dtype type) {
    return std::find(planned_codecs.begin(), planned_codecs.end(), type) - planned_codecs.begin();
  };
  std::vector<dtype> seen;
  bool any = false;
  for (const auto& tensor : file.tensors()) {
    const std::string_view name = tensor.stored.name;
    if (tensor.role != io::tensor_role::matrix && tensor.role != io::tensor_role::embedding) continue;
    if (name.ends_with(".ffn_gate_inp.weight") || name.ends_with(".ffn_gate_inp_shexp.weight"))
      continue;  // the router is f32, whatever the other matrices are
    if (tensor.role == io::tensor_role::matrix && file.config().ternary) continue;
    const dtype stored = computed_in(tensor.stored.type), type = is_planned(stored) ? stored : dtype::f16;
    if (std::find(seen.begin(), seen.end(), stored) == seen.end()) {
      seen.push_back(stored);
      out.list += (out.list.empty() ? "" : ", ") + std::string(intaglio::name(tensor.stored.type)) + " from " +
                  tensor.stored.name;
      out.recoded = out.recoded || stored != type;
    }
    if (name == "token_embd.weight") types.embedding = type;
    if (name == "output.weight") head = type;
    std::uint32_t layer = 0;
    if (is_global_matrix(name)) types.globals.push_back({std::string(name), type});
    if (!name.starts_with("blk.")) continue;
    const auto [end, failure] = std::from_chars(name.data() + 4, name.data() + name.size(), layer);
    if (failure != std::errc{} || end == name.data() + name.size()) continue;
    layers.add(layer, name.substr(static_cast<std::size_t>(end - name.data()) + 1), type);
    if (!any || rank(type) > rank(types.layers)) types.layers = type;
    any = true;
  }
  types.head = head.value_or(types.embedding);
  layers.into(types);
  return out;
}

}  // namespace intaglio::families
