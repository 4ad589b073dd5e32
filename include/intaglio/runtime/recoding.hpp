// SPDX-License-Identifier: MIT
// Tensors of a file that a plan stores in another codec than the file does, and whether that changes their values.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "intaglio/io/checkpoint_data.hpp"
#include "intaglio/runtime/weight_image.hpp"

namespace intaglio::runtime {

/// Tensors that are converted from one codec to another when they are loaded.
struct recoding {
  dtype stored = dtype::f32, computed = dtype::f32;
  std::size_t tensors = 0;
  std::string first;  ///< name of the first of them
};

/// Whether every value of `stored` is a value of `computed`: f32 holds the values of every codec, Q4_1 those of BCML1.
/// bf16 fits f16 except for numbers below 2^-14, which no trained table depends on.
constexpr bool is_exact(dtype stored, dtype computed) {
  return stored == computed || computed == dtype::f32 || (stored == dtype::bcml1 && computed == dtype::q4_1) ||
         (stored == dtype::bf16 && computed == dtype::f16);
}

/// Every pair of codecs between which loading the file for this plan converts, except for norms and ternary matrices;
/// empty for a packed file.
inline std::vector<recoding> recodings(const io::checkpoint& file, const plan::table& of) {
  std::vector<recoding> out;
  const auto add = [&](const std::string& name, dtype computed) {
    const io::checkpoint_tensor* tensor = file.find(name);
    if (tensor == nullptr || tensor->stored.type == computed || io::is_vector(tensor->role)) return;
    const auto same = [&](const recoding& each) {
      return each.stored == tensor->stored.type && each.computed == computed;
    };
    const auto found = std::find_if(out.begin(), out.end(), same);
    if (found == out.end()) out.push_back({tensor->stored.type, computed, 1, name});
    else ++found->tensors;
  };
  for (const plan::weight& weight : of.weights) {
    using enum plan::weight_layout;
    if (weight.layout != matrix && weight.layout != row_groups) continue;
    const dtype computed = weight_image::dtype_of(weight.codec);
    for (std::uint8_t s = 0; s < weight.source_count; ++s)
      for (std::uint32_t layer = 0; layer < (weight.per_layer ? of.config->num_hidden_layers : 1); ++layer)
        if (of.has(weight, layer))
          add((weight.per_layer ? "blk." + std::to_string(layer) + "." : "") + std::string(weight.sources[s].view()),
              computed);
  }
  return out;
}

/// Text for messages: "4 tensors of q6_k as q4_k, the first: blk.0.attn_v.weight".
inline std::string recoding_text(const recoding& of) {
  return std::to_string(of.tensors) + (of.tensors == 1 ? " tensor of " : " tensors of ") +
         std::string(name(of.stored)) + " as " + std::string(name(of.computed)) +
         (of.tensors == 1 ? ": " : ", the first: ") + of.first;
}

}  // namespace intaglio::runtime
