// SPDX-License-Identifier: MIT
// The fusion rules by name: the ops that each merges, and why that pays off.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "intaglio/core/message.hpp"

namespace intaglio::plan {

/// A rewrite rule: the ops that it merges, and why that pays off. Index 0 is for an op that has a kernel of its own.
struct rule {
  std::string_view name, merges, reason;
};
/// The rules, by their number; number 0 is no rule.
inline constexpr std::array rules{
    rule{"", "", ""},
    rule{"norm_quantize", "rms_norm, quantize", "the normalised values are read once and leave as int8"},
    rule{"stack_qkv", "3 matmuls of one input, rope, rope, cache_write",
         "one read of the input; q is rotated and k, v go to the cache where the sums are"},
    rule{"gate_up", "2 matmuls of one input, gated",
         "gate and up of a feature end in one subgroup, so the product needs no memory"},
    rule{"residual_add", "matmul, add", "the stream is updated in place"},
    rule{"norm_head", "rms_norm, matmul", "the last norm is computed by every workgroup of the head"},
    rule{"screened_head", "norm_head in two steps",
         "rows as int8 give bounds of all logits; those that may win are computed exactly"},
    rule{"norm_float", "rms_norm, products of f32 inputs",
         "every workgroup finds the root mean square for itself, so the normalised input needs no memory"},
    rule{"stack_plain", "3 matmuls of one input, or 2",
         "one read of the input; biases, norms or a v of another codec come before q and k are rotated, so the sums go "
         "to memory"},
    rule{"turn", "3 biases, 3 rms_norms, rope, rope, cache_write",
         "a head's bias, norm, rotation and its way to the cache in one workgroup"},
    rule{"norm_add", "rms_norm, add, scale", "the stream is updated in place"},
    rule{"bias_add", "bias, add", "the stream is updated in place"},
    rule{"bias_act", "bias, gated", "the bias is added where the activation is"},
    rule{"expert_sum", "weigh, add", "what the experts gave is weighed on its way to the stream"},
    rule{"quantize_f16", "rms_norm, in front of products of f32 inputs",
         "in a chunk the product reads activations many times: once as f16, in a dispatch of their own"},
    rule{"norm_prologue", "norm_quantize, ternary_matmul",
         "for one token each workgroup normalises and quantises for itself: a dispatch and a barrier less"},
    rule{"unrolled", "norm_head and norm_prologue, taken apart",
         "products without loops read memory best on a CPU driver; one workgroup normalises for all of theirs"},
    rule{"nearest", "2 matmuls of one input, gated",
         "for one token the gates alone are computed whole; up vectors are read of the nearest features only"},
    rule{"gated", "gated",
         "gate and up of two codecs are two products, so the sums go to memory; its activation is a kernel's own"},
    rule{"expert_biases", "2 biases, gated; bias, weigh, add",
         "which bias an expert's product has is the token's choice, so the next kernel that reads both adds it"},
    rule{"gate_add", "head_gate, add", "the stream is updated in place"},
    rule{"by_features", "matmul, add", "the down vectors of the features that count, one after the other"},
};
/// The index of a rule by its name; 0 where no rule has the name.
constexpr std::uint8_t rule_index(std::string_view name) {
  for (std::uint8_t i = 1; i < rules.size(); ++i)
    if (are_equal(rules[i].name, name)) return i;
  return 0;
}

}  // namespace intaglio::plan
