// SPDX-License-Identifier: MIT
#include "intaglio/core/decoder_config.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace intaglio;

namespace {
constexpr decoder_config config{.num_attention_heads = 20, .num_key_value_heads = 5, .head_dim = 128};
static_assert(config.q_size() == 2560 && config.kv_size() == 640);
static_assert(config == decoder_config{.num_attention_heads = 20, .num_key_value_heads = 5, .head_dim = 128});
static_assert(config != decoder_config{});
}  // namespace

TEST_CASE("names are those of config.json") {
  CHECK(name(architecture::bitnet) == "bitnet");
  CHECK(name(architecture::llama) == "llama");
  CHECK(name(architecture::gemma3) == "gemma3");
  CHECK(name(activation::relu_squared) == "relu2");
  CHECK(name(activation::silu) == "silu");
  CHECK(name(activation::gelu_tanh) == "gelu_pytorch_tanh");
}
