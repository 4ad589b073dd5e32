// SPDX-License-Identifier: MIT
// An architecture of one's own: two half-size gated steps around the attention, in ternary weights. `half_step` is a
// layer and `quick_gelu` an activation that the library does not have; everything else does not know that: the compiler
// plans and proves the whole, writes the activation into the kernels, and it runs with random weights.
#include <intaglio/graph/layers/embedding.hpp>
#include <intaglio/graph/layers/linear.hpp>
#include <intaglio/graph/layers/rms_norm.hpp>
#include <intaglio/graph/layers/self_attention.hpp>
#include <intaglio/plan/engrave.hpp>
#include <intaglio/plan/explain.hpp>
#include <intaglio/runtime/load_session.hpp>
#include <intaglio/runtime/synthetic_weights.hpp>

#include <cstdio>

using namespace intaglio;
using namespace intaglio::graph;

/// An activation is an expression over values of a shader. The compiler checks their types; the reference computes the
/// same expression on the CPU.
struct quick_gelu {
  static constexpr std::string_view name = "quick_gelu";
  constexpr shader::real operator()(shader::real gate) const { return gate / (1.0f + exp(-1.702f * gate)); }
};

/// down(norm(quick_gelu(gate x) * up x)); a layer is its equations, one a line.
/// @shape  x, out: [tokens, width] f32
struct half_step {
  std::string_view gate, up, norm, down;
  std::uint32_t width, inner;

  constexpr ir::value_id forward(ir::trace& t, ir::value_id x) const {
    const ir::value_id h = t.quantize(x, gate);
    const ir::value_id g = t.matmul(h, gate, inner, width, dtype::i2_s);
    const ir::value_id u = t.matmul(h, up, inner, width, dtype::i2_s);
    const ir::value_id y = t.rms_norm(t.gated(g, u, quick_gelu{}), norm, 1e-5f);
    return t.matmul(t.quantize(y, down), down, width, inner, dtype::i2_s);
  }
};

inline constexpr decoder_config macaron_config{.hidden_size = 512,
                                               .intermediate_size = 768,
                                               .num_hidden_layers = 12,
                                               .num_attention_heads = 8,
                                               .num_key_value_heads = 2,
                                               .head_dim = 64,
                                               .vocab_size = 8192,
                                               .max_position_embeddings = 1024,
                                               .rope_theta = 10'000.f,
                                               .rms_norm_eps = 1e-5f};

struct macaron {
  static constexpr std::string_view name = "macaron";
  static constexpr const decoder_config& config = macaron_config;

  static constexpr auto graph() {
    constexpr const decoder_config& c = config;
    return embedding{"token_embd.weight", c.vocab_size, c.hidden_size} |
           repeat(c.num_hidden_layers,
                  residual(rms_norm{"first_norm.weight", c.rms_norm_eps} |
                           half_step{"first_gate.weight", "first_up.weight", "first_sub_norm.weight",
                                     "first_down.weight", c.hidden_size, c.intermediate_size}) |
                      residual(rms_norm{"attn_norm.weight", c.rms_norm_eps} | self_attention<dtype::i2_s>{c} |
                               rms_norm{"attn_sub_norm.weight", c.rms_norm_eps} |
                               linear<dtype::i2_s>{"attn_output.weight", c.q_size(), c.hidden_size}) |
                      residual(rms_norm{"last_norm.weight", c.rms_norm_eps} |
                               half_step{"last_gate.weight", "last_up.weight", "last_sub_norm.weight",
                                         "last_down.weight", c.hidden_size, c.intermediate_size})) |
           rms_norm{"output_norm.weight", c.rms_norm_eps} | lm_head{"token_embd.weight", c.vocab_size, c.hidden_size};
  }
};

int main() try {
  const gpu::device device;
  const plan::table* const both[] = {&plan::engraved<macaron, plan::profiles::cpu>::table,
                                     &plan::engraved<macaron, plan::profiles::portable>::table};
  const plan::device_class seen = runtime::class_of(device);
  const plan::table& table = runtime::choose_table(both, seen);
  std::fputs(plan::explain(table, table.model).c_str(), stdout);

  gpu::pipeline_cache cache(device, gpu::default_cache_folder(),
                            table.hash);  // each kernel is compared with the reference before its first use
  const auto run = runtime::proven_executor(device, table, runtime::synthetic_weights(device, table), cache, true);
  const std::uint32_t first = 1, count = 16;
  run->begin(runtime::pass_kind::decode, 0, {&first, 1}, {}, count);
  for (; run->completed() < count; run->wait())
    while (run->may_submit()) run->submit(250, count);
  std::printf("\nThe plan and the kernels are proven. With random weights %s draws:", device.label().c_str());
  for (std::uint32_t i = 0; i < count; ++i) std::printf(" %u", run->drawn(i));
  std::puts("");
} catch (const error& problem) { return std::fprintf(stderr, "%s\n", problem.what()), 3; }
