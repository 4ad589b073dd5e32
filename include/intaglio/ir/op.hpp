// SPDX-License-Identifier: MIT
// The vocabulary between layers and passes: values (one activation each), weights, ops. Layers emit ops through
// ir::trace, passes read them; neither knows the other.
#pragma once

#include <array>
#include <cstdint>
#include <iterator>
#include <string_view>
#include <vector>

#include "intaglio/core/decoder_config.hpp"
#include "intaglio/core/layer_pattern.hpp"
#include "intaglio/core/message.hpp"
#include "intaglio/shader/activation.hpp"

namespace intaglio::ir {

/// Index into graph::values; `none` stands for an absent operand.
using value_id = std::int32_t;
using weight_id = std::int32_t;
inline constexpr std::int32_t none = -1;

enum class op_kind : std::uint8_t {
  embedding,    ///< row of the table for each token, times scale; weight [rows, width]; with third the row of what kind
                ///< of text it is of, with second the row of its position are added
  rms_norm,     ///< x / rms(x) * weight, of every head for itself where head_dim is set; without a weight x / rms(x)
  layer_norm,   ///< (x - mean) / sqrt(variance + eps) * weight + second, which may be none
  quantize,     ///< absmax int8 per token
  matmul,       ///< weight [rows, columns] times x; with experts: [experts * rows, columns], by those that the second
                ///< operand chose
  bias,         ///< x + weight, [width]; with experts: of each that the second operand chose
  rope,         ///< NeoX rotation by position
  cache_write,  ///< append k and v to the KV cache
  attention,    ///< grouped-query over the cache, scores times scale; of the last `window` positions unless that is 0,
              ///< and of `ahead` positions of the pass behind them; with a weight, [heads], each head's softmax has one
              ///< score more, whose value is 0
  gated,        ///< act of gate and up
  short_conv,   ///< of each channel over its last `taps` tokens: weight [width, taps], second: a bias, or none
  delta_net,    ///< the gated delta rule over q, k and v, beta and alpha; weight: how fast heads fade, second: a shift
  state_space,  ///< Mamba-2's rule over v, k and q, a gate and steps; weight and second as of delta_net, third: of v
  head_gate,    ///< heads of the first operand, normalised where there is a weight, times silu or sigmoid of the second
  route,        ///< the top_k largest of a token's logits, one an expert, and the softmax over them or over all
  weigh,        ///< sum of what top_k experts gave, times their weights
  add,          ///< sum of two values of one shape
  scale,        ///< x times weight, one number
  streams,      ///< a step by streams that are one behind the other
  adapter,      ///< which of `experts` adapters a token's session has and what its part is times, as route gives them
};
inline constexpr std::string_view op_names[] = {"embedding",  "rms_norm",  "layer_norm",  "quantize",  "matmul",
                                                "bias",       "rope",      "cache_write", "attention", "gated",
                                                "short_conv", "delta_net", "state_space", "head_gate", "route",
                                                "weigh",      "add",       "scale",       "streams",   "adapter"};
static_assert(std::size(op_names) == static_cast<std::size_t>(op_kind::adapter) + 1);
constexpr std::string_view name(op_kind kind) { return op_names[static_cast<std::size_t>(kind)]; }

/// What an op of streams does; the numbers are the kernel's (kernels/streams.hpp).
enum class stream_step : std::uint8_t { take, weigh, predict, correct, spread, append, join, shrink };
constexpr std::string_view name(stream_step step) {
  constexpr std::string_view names[] = {"take", "weigh", "predict", "correct", "spread", "append", "join", "shrink"};
  return names[static_cast<std::size_t>(step)];
}
inline constexpr std::uint32_t most_streams = 8;

/// `ahead` of an attention that sees all positions of its pass.
inline constexpr std::uint32_t all_ahead = 0xffffffffu;

/// Where an op runs: once before the layers, once a layer, once after them.
enum class section : std::uint8_t { prologue, period, epilogue };

/// One activation: `width` elements a token.
struct value {
  dtype type = dtype::f32;
  std::uint32_t width = 0;
  section where = section::prologue;
  text<32> name{};
  bool each_layer = false;  ///< every layer has its own, which stays until the pass ends
};

/// One tensor of the checkpoint. In the period the name has no "blk.N." prefix.
struct weight {
  text<48> name{};
  std::uint32_t rows = 1, columns = 0;
  dtype type = dtype::f32;  ///< i2_s stands for ternary of any codec
  section where = section::prologue;
  std::uint64_t kinds = 0;  ///< in the period: a bit for each kind of block that has it in this type
  float scale = 1;          ///< of a norm: its values are multiplied by it
};

struct op {
  op_kind kind = op_kind::embedding;
  section where = section::prologue;
  std::uint8_t block = 0;  ///< in the period: the kind of block that it is part of
  std::array<value_id, 3> in{none, none, none};
  value_id out = none;
  weight_id weight = none, second = none, third = none;
  float eps = 0, scale = 1;
  rope_parameters rope{};
  std::uint32_t heads = 0, kv_heads = 0, head_dim = 0, window = 0;
  float softcap = 0;        ///< attention: scores s become softcap * tanh(s / softcap); 0: they stay
  std::uint32_t ahead = 0;  ///< attention: positions of the pass behind its own that a token sees
  std::uint32_t taps = 0;   ///< short_conv: tokens that it sees, its own among them
  delta_net_config delta{};
  bool logistic = false;                     ///< head_gate: by sigmoid(gate), not silu(gate)
  expert_score score = expert_score::logit;  ///< route: `second` is a bias of the choice, `eps` is added to the sum,
                                             ///< `scale` is a factor
  float least = 0;                           ///< route: the smallest sum by which scores are divided
  bool multiplied = false;  ///< short_conv: its input is B, C and h, and it gives C conv(B h), not silu(conv(x))
  bool by_layer = false;    ///< gated: up has a place for each layer, one behind the other
  bool over_all = false;    ///< route: the softmax is over all experts, not over those that are chosen
  std::uint32_t experts = 0, top_k = 0;         ///< a mixture of experts: how many there are, and how many a token has
  std::uint32_t streams = 0, stream_index = 0;  ///< streams: how many, and which one is taken
  stream_step step = stream_step::take;         ///< streams
  shader::activation_function act{};
  bool walk = false;  ///< gated: features whose gate is 0 may be left unread, here and in the product behind
  std::uint32_t nearest =
      0;  ///< gated: number of features, those with the largest |gate|, that count for one token; 0: all, by rows
  std::uint32_t traced =
      0;             ///< gated: number of features, those that add most for one token, that are reported; 0: none
  text<48> layer{};  ///< for messages: "blk.*.ffn_down.weight: linear"
};

/// What tracing a model gives. `failure` is empty where everything fits together.
struct graph {
  std::vector<op> ops;
  std::vector<value> values;
  std::vector<weight> weights;
  std::uint32_t layers = 0;                      ///< how many blocks there are in all
  layer_pattern pattern;                         ///< and of which kind each is
  value_id stream_in = none, stream_out = none;  ///< what the period reads and what the next one reads in its place
  std::vector<value_id> block_ends;              ///< by kind: what the block gives and the next one reads
  value_id output = none;                        ///< logits
  value_id head = none;                          ///< what the product of the head gives: `output`, or its input
  text<256> failure;
};

}  // namespace intaglio::ir
