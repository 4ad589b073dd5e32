// SPDX-License-Identifier: MIT
#include "intaglio/core/decoder_config.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace intaglio;

namespace {
constexpr decoder_config config{.num_attention_heads = 20, .num_key_value_heads = 5, .head_dim = 128};
static_assert(config.q_size() == 2560 && config.kv_size() == 640);
static_assert(config == decoder_config{.num_attention_heads = 20, .num_key_value_heads = 5, .head_dim = 128});
static_assert(config != decoder_config{});
static_assert(config.attention_scalar() == 128 &&
              decoder_config{.head_dim = 128, .query_pre_attn_scalar = 168}.attention_scalar() == 168);
static_assert(!config.is_windowed(0));
constexpr decoder_config mistral{.sliding_window = 4096}, gemma{.sliding_window = 1024, .sliding_window_pattern = 6};
static_assert(mistral.is_windowed(0) && mistral.is_windowed(5));
static_assert(gemma.is_windowed(4) && !gemma.is_windowed(5) && gemma.is_windowed(6) && !gemma.is_windowed(11));
static_assert(decoder_config{.rope_theta = 7.f}.local_rope() == rope_parameters{7.f});
static_assert(decoder_config{.rope_theta = 1e6f, .rope_scaling = {rope_type::linear, 8.f}, .rope_local_base_freq = 1e4f}
                  .local_rope() == rope_parameters{1e4f});
}  // namespace

TEST_CASE("names are those of config.json") {
  CHECK(name(architecture::bitnet) == "bitnet");
  CHECK(name(architecture::llama) == "llama");
  CHECK(name(architecture::gemma3) == "gemma3");
  CHECK(name(activation::relu_squared) == "relu2");
  CHECK(name(activation::silu) == "silu");
  CHECK(name(activation::gelu_tanh) == "gelu_pytorch_tanh");
  CHECK(name(rope_type::plain) == "default");
  CHECK(name(rope_type::linear) == "linear");
  CHECK(name(rope_type::llama3) == "llama3");
  CHECK(name(rope_type::yarn) == "yarn");
}
