// SPDX-License-Identifier: MIT
#include "runtime/tables.hpp"

#include "intaglio/graph/layers/walk_ffn.hpp"
#include "intaglio/models/bitnet_b158.hpp"
#include "intaglio/plan/engrave.hpp"

using namespace intaglio;

namespace {

constexpr decoder_config bitnet_tiny_config{.model_type = architecture::bitnet,
                                            .hidden_size = 256,
                                            .intermediate_size = 768,
                                            .num_hidden_layers = 3,
                                            .num_attention_heads = 4,
                                            .num_key_value_heads = 2,
                                            .head_dim = 64,
                                            .vocab_size = 1024,
                                            .max_position_embeddings = 1024,
                                            .rope_theta = 500'000.f,
                                            .rms_norm_eps = 1e-5f};
using bitnet_tiny = models::bitnet_b158<bitnet_tiny_config>;
constexpr decoder_config bitnet_tiny_silu_config = [] {
  auto out = bitnet_tiny_config;
  out.hidden_act = activation::silu;
  out.activation_type = dtype::f32;
  return out;
}();
using bitnet_tiny_silu = models::bitnet_b158<bitnet_tiny_silu_config>;
using bitnet_tiny_silu_f32 = models::bitnet_b158<bitnet_tiny_silu_config, dtype::i2_s, dtype::f32, dtype::f32>;
constexpr decoder_config bitnet_tiny_untied_config = [] {
  auto out = bitnet_tiny_config;
  out.tie_word_embeddings = false;
  return out;
}();
constexpr decoder_config bitnet_middle_config{.model_type = architecture::bitnet,
                                              .hidden_size = 2048,
                                              .intermediate_size = 5632,
                                              .num_hidden_layers = 6,
                                              .num_attention_heads = 16,
                                              .num_key_value_heads = 4,
                                              .head_dim = 128,
                                              .vocab_size = 32'000,
                                              .max_position_embeddings = 256,
                                              .rope_theta = 10'000.f,
                                              .rms_norm_eps = 1e-5f};
template <const decoder_config& c>
using walked = models::bitnet_b158<c, dtype::i2_s, dtype::i8, dtype::f16, graph::walk_ffn>;
// The keys are held in f32 here, since its goldens come from a cache that rounds nothing.
constexpr plan::profile exact_cpu = [] {
  auto out = plan::profiles::cpu;
  out.cache_element = kernels::element::f32;
  return out;
}();
constexpr plan::profile exact_portable = [] {
  auto out = plan::profiles::portable;
  out.cache_element = kernels::element::f32;
  return out;
}();

constexpr plan::profile exact_screened = [] {
  auto out = plan::profiles::screened;
  out.cache_element = kernels::element::f32;
  return out;
}();

}  // namespace

const plan::table& fable_table() { return plan::engraved<models::fable, exact_cpu>::table; }
const plan::table& fable_portable_table() { return plan::engraved<models::fable, exact_portable>::table; }
const plan::table& fable_screened_table() { return plan::engraved<models::fable, exact_screened>::table; }
const plan::table& fable_short_table() { return plan::engraved<models::fable, exact_cpu, 64>::table; }
const plan::table& bitnet_tiny_table() { return plan::engraved<bitnet_tiny, exact_cpu>::table; }
const plan::table& bitnet_tiny_portable_table() { return plan::engraved<bitnet_tiny, exact_portable>::table; }
const plan::table& bitnet_tiny_silu_table() { return plan::engraved<bitnet_tiny_silu, exact_cpu>::table; }
const plan::table& bitnet_tiny_silu_portable_table() { return plan::engraved<bitnet_tiny_silu, exact_portable>::table; }
const plan::table& bitnet_tiny_silu_f32_table() { return plan::engraved<bitnet_tiny_silu_f32, exact_cpu>::table; }
const plan::table& bitnet_tiny_silu_f32_portable_table() {
  return plan::engraved<bitnet_tiny_silu_f32, exact_portable>::table;
}
const plan::table& bitnet_tiny_untied_table() {
  return plan::engraved<models::bitnet_b158<bitnet_tiny_untied_config>, exact_cpu>::table;
}
const plan::table& fable_walk_table() { return plan::engraved<walked<models::fable_config>, exact_cpu>::table; }
const plan::table& fable_walk_portable_table() {
  return plan::engraved<walked<models::fable_config>, exact_portable>::table;
}
const plan::table& bitnet_tiny_walk_table() { return plan::engraved<walked<bitnet_tiny_config>, exact_cpu>::table; }
const plan::table& bitnet_middle_table() {
  return plan::engraved<models::bitnet_b158<bitnet_middle_config>, exact_cpu>::table;
}
