// SPDX-License-Identifier: MIT
// The vocabulary between layers and passes: values (one activation each), weights, and ops. Layers write ops through
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

/// An index into graph::values; `none` stands for an absent operand.
using value_id = std::int32_t;
/// Index of a weight in a graph.
using weight_id = std::int32_t;
/// The index of no value or weight.
inline constexpr std::int32_t none = -1;

/// The operations that layers emit.
enum class op_kind : std::uint8_t {
  embedding,    ///< row of the table for each token, times scale; weight [rows, width]; adds the row of `third` for the
                ///< kind of the token's text and the row of `second` for its position
  rms_norm,     ///< x / rms(x) * weight; separately for every head where head_dim is set; x / rms(x) without a weight
  layer_norm,   ///< (x - mean) / sqrt(variance + eps) * weight + second; second may be none
  quantize,     ///< int8 with the absolute maximum of each token as its scale
  matmul,       ///< weight [rows, columns] times x; with experts: weight [experts * rows, columns], of the experts that
                ///< the second operand chose
  bias,         ///< x + weight, [width]; with experts: the biases of the experts that the second operand chose
  rope,         ///< NeoX rotation by position
  cache_write,  ///< append k and v to the KV cache
  attention,    ///< grouped-query over the cache, scores times scale; over the last `window` positions (0: all) and
                ///< `ahead` positions of the pass after them; with a weight, [heads], each head's softmax has one more
                ///< score, whose value is 0
  gated,        ///< act(gate) * up
  short_conv,   ///< convolution of each channel over its last `taps` tokens: weight [width, taps], second: a bias, or
                ///< none
  delta_net,    ///< the gated delta rule over q, k and v, beta and alpha; weight: decay of each head, second: a shift
  state_space,  ///< Mamba-2's rule over v, k and q, a gate and steps; weight and second as for delta_net, third: factor
                ///< of v
  head_gate,    ///< heads of the first operand, normalised where there is a weight, times silu or sigmoid of the second
  route,        ///< the top_k largest of a token's logits, one logit for each expert, and the softmax over them or over
                ///< all
  weigh,        ///< sum of the results of top_k experts times their weights
  add,          ///< sum of two values of the same shape
  scale,        ///< x times weight, a single number
  streams,      ///< a step of AltUp over streams that are one after the other
  adapter,      ///< the adapter of a token's session, of `experts` adapters, and the factor of its product, as route
                ///< gives experts
  every_expert,  ///< all `experts` in order, each with the weight 1, as route gives experts
  join,          ///< each of `heads` heads of the first operand, followed by the same head of the second
};
/// Names of the operations, in the order of the enumeration.
inline constexpr std::string_view op_names[] = {
    "embedding", "rms_norm", "layer_norm", "quantize",  "matmul",       "bias",      "rope",  "cache_write",
    "attention", "gated",    "short_conv", "delta_net", "state_space",  "head_gate", "route", "weigh",
    "add",       "scale",    "streams",    "adapter",   "every_expert", "join"};
static_assert(std::size(op_names) == static_cast<std::size_t>(op_kind::join) + 1);
/// The name of an operation.
constexpr std::string_view name(op_kind kind) { return op_names[static_cast<std::size_t>(kind)]; }

/// The steps of an op of kind streams; the numbers are the kernel's (kernels/streams.hpp).
enum class stream_step : std::uint8_t { take, weigh, predict, correct, spread, append, join, shrink };
/// The name of a step of parallel streams.
constexpr std::string_view name(stream_step step) {
  constexpr std::string_view names[] = {"take", "weigh", "predict", "correct", "spread", "append", "join", "shrink"};
  return names[static_cast<std::size_t>(step)];
}
/// The largest number of parallel streams.
inline constexpr std::uint32_t most_streams = 8;

/// The value of `ahead` for attention that sees all positions of its pass.
inline constexpr std::uint32_t all_ahead = 0xffffffffu;

/// Where an op runs: once before the layers, once for each layer, or once after them.
enum class section : std::uint8_t { prologue, period, epilogue };

/// One activation: `width` elements for each token.
struct value {
  dtype type = dtype::f32;
  std::uint32_t width = 0;
  section where = section::prologue;
  text<32> name{};
  bool each_layer = false;  ///< every layer has its own value, which stays until the pass ends
};

/// One tensor of the checkpoint. In the period its name has no "blk.N." prefix.
struct weight {
  text<48> name{};
  std::uint32_t rows = 1, columns = 0;
  dtype type = dtype::f32;  ///< i2_s stands for ternary weights of any codec
  section where = section::prologue;
  std::uint64_t kinds = 0;  ///< in the period: one bit for each kind of block that has the weight in this type
  float scale = 1;          ///< norms: factor of the weight's values
};

/// An operation of a graph: its operands, its result, and the numbers that define it.
struct op {
  op_kind kind = op_kind::embedding;
  section where = section::prologue;
  std::uint8_t block = 0;  ///< in the period: the kind of block that has the op
  std::array<value_id, 3> in{none, none, none};
  value_id out = none;
  weight_id weight = none, second = none, third = none;
  float eps = 0, scale = 1;
  rope_parameters rope{};
  std::uint32_t heads = 0, kv_heads = 0, head_dim = 0, window = 0;
  std::uint32_t value_dim = 0;  ///< attention, cache_write: channels of a value; 0: head_dim
  float softcap = 0;            ///< attention: scores s become softcap * tanh(s / softcap); 0: they stay unchanged
  std::uint32_t ahead = 0;      ///< attention: positions of the pass after its own that a token sees
  std::uint32_t taps = 0;       ///< short_conv: number of tokens that it sees, its own included
  delta_net_config delta{};
  bool logistic = false;                      ///< head_gate: sigmoid(gate); else silu(gate)
  expert_score score = expert_score::logit;   ///< route: kind of scores; `second` is a bias of the choice, `eps` is
                                              ///< added to the sum, `scale` is a factor
  float least = 0;                            ///< route: the smallest sum by which scores are divided
  std::uint32_t groups = 0, groups_used = 0;  ///< route: groups of experts, and number of groups of a token; 0: none
  bool multiplied = false;  ///< short_conv: the input is B, C and h and the result C conv(B h); else silu(conv(x))
  bool by_layer = false;    ///< gated: up has a part for each layer, one after the other
  bool over_all = false;    ///< route: the softmax is over all experts, not over the chosen ones
  std::uint32_t experts = 0, top_k = 0;         ///< mixture of experts: number of experts, and number of experts of a
                                                ///< token
  std::uint32_t streams = 0, stream_index = 0;  ///< streams: number of streams, and the one that is read
  stream_step step = stream_step::take;         ///< streams: the step
  shader::activation_function act{};
  bool walk = false;  ///< gated: features whose gate is 0 may be left unread, here and in the down product
  std::uint32_t nearest =
      0;  ///< gated: number of features with the largest |gate| that are computed for one token; 0: all, by rows
  std::uint32_t traced =
      0;  ///< gated: number of features that are reported for one token, largest contributions first; 0: none
  text<48> layer{};  ///< for messages: "blk.*.ffn_down.weight: linear"
};

/// The result of tracing a model. `failure` is empty where everything fits together.
struct graph {
  std::vector<op> ops;
  std::vector<value> values;
  std::vector<weight> weights;
  std::uint32_t layers = 0;                      ///< number of blocks
  layer_pattern pattern;                         ///< the kind of each block
  value_id stream_in = none, stream_out = none;  ///< input of the first block, and output of the last
  std::vector<value_id> block_ends;              ///< by kind: the output of its block, which the next block reads
  value_id output = none;                        ///< logits
  value_id head = none;                          ///< result of the head's product: `output`, or its input
  text<256> failure;
};

}  // namespace intaglio::ir
