// SPDX-License-Identifier: MIT
#include "intaglio/io/model_config.hpp"

#include <catch2/catch_test_macros.hpp>
#include <functional>
#include <limits>
#include <utility>

using namespace intaglio;

namespace {

decoder_config sound() {
  return {.hidden_size = 256,
          .intermediate_size = 1024,
          .num_hidden_layers = 8,
          .num_attention_heads = 4,
          .num_key_value_heads = 2,
          .head_dim = 64,
          .vocab_size = 4096,
          .max_position_embeddings = 512};
}
std::string refusal(const decoder_config& config) {
  try {
    io::check_config(config, "file");
  } catch (const file_error& problem) { return problem.what(); }
  return "accepted";
}

}  // namespace

TEST_CASE("model_config: every field has a range, and an error names key, range and value") {
  CHECK(refusal(sound()) == "accepted");
  using edit = std::function<void(decoder_config&)>;
  const std::vector<std::pair<edit, std::string>> wrong{
      {[](auto& c) { c.hidden_size = 0; }, "file: hidden_size: expected 1 to 1048576, found 0"},
      {[](auto& c) { c.intermediate_size = (1 << 22) + 1; },
       "file: intermediate_size: expected 1 to 4194304, found 4194305"},
      {[](auto& c) { c.num_hidden_layers = 4097; }, "file: num_hidden_layers: expected 1 to 4096, found 4097"},
      {[](auto& c) { c.num_attention_heads = 0; }, "file: num_attention_heads: expected 1 to 65536, found 0"},
      {[](auto& c) { c.num_key_value_heads = 5; }, "file: num_key_value_heads: expected 1 to 4, found 5"},
      {[](auto& c) { c.num_key_value_heads = 3; },
       "file: num_key_value_heads: expected a divisor of num_attention_heads 4, found 3"},
      {[](auto& c) { c.head_dim = 63; }, "file: head_dim: expected an even number, found 63"},
      {[](auto& c) { c.head_dim = 65'536, c.num_attention_heads = 32; },
       "file: num_attention_heads * head_dim: expected at most 1048576, found 2097152"},
      {[](auto& c) { c.vocab_size = 0xFFFFFFFF; }, "file: vocab_size: expected 1 to 16777216, found 4294967295"},
      {[](auto& c) { c.max_position_embeddings = 0; },
       "file: max_position_embeddings: expected 1 to 2147483648, found 0"},
      {[](auto& c) { c.rms_norm_eps = 0.f; }, "file: rms_norm_eps: expected above 0, at most 1, found 0"},
      {[](auto& c) { c.rms_norm_eps = std::numeric_limits<float>::quiet_NaN(); },
       "file: rms_norm_eps: expected above 0, at most 1, found nan"},
      {[](auto& c) { c.rms_norm_eps = 1.5f; }, "file: rms_norm_eps: expected above 0, at most 1, found 1.5"},
      {[](auto& c) { c.rope_theta = 0.5f; }, "file: rope_theta: expected a finite number from 1, found 0.5"},
      {[](auto& c) { c.rope_theta = std::numeric_limits<float>::infinity(); },
       "file: rope_theta: expected a finite number from 1, found inf"},
      {[](auto& c) { c.rope_local_base_freq = 0.5f; },
       "file: rope_local_base_freq: expected a finite number from 1, found 0.5"},
      {[](auto& c) { c.sliding_window = 0xFFFFFFFF; },
       "file: sliding_window: expected 1 to 2147483648, found 4294967295"},
      {[](auto& c) { c.sliding_window_pattern = 4097; },
       "file: sliding_window_pattern: expected 1 to 4096, found 4097"},
      {[](auto& c) { c.query_pre_attn_scalar = 1 << 21; },
       "file: query_pre_attn_scalar: expected 1 to 1048576, found 2097152"},
      {[](auto& c) { c.rope_scaling = {.type = rope_type::linear, .factor = 0.5f}; },
       "file: rope_scaling.factor: expected a finite number from 1, found 0.5"},
      {[](auto& c) { c.rope_scaling = {.type = rope_type::llama3, .factor = 8.f}; },
       "file: rope_scaling.original_max_position_embeddings: expected 1 to 2147483648, found 0"},
      {[](auto& c) {
         c.rope_scaling = {
             .type = rope_type::llama3, .factor = 8.f, .low_freq_factor = 0.f, .original_max_position_embeddings = 64};
       },
       "file: rope_scaling.low_freq_factor: expected a finite number above 0, found 0"},
      {[](auto& c) {
         c.rope_scaling = {
             .type = rope_type::llama3, .factor = 8.f, .high_freq_factor = 1.f, .original_max_position_embeddings = 64};
       },
       "file: rope_scaling.high_freq_factor: expected a finite number above low_freq_factor 1, found 1"}};
  for (const auto& [change, text] : wrong) {
    decoder_config config = sound();
    change(config);
    CHECK(refusal(config) == text);
  }
}

TEST_CASE("model_config: a model whose number of layers says that it has ALiBi is refused") {
  decoder_config config = sound();
  config.model_type = architecture::baichuan;
  CHECK(refusal(config) == "accepted");
  config.num_hidden_layers = 40;
  CHECK(refusal(config) ==
        "file: num_hidden_layers: expected another number: a baichuan with it has ALiBi, which is not computed, found "
        "40");
  config.model_type = architecture::xverse;
  CHECK(refusal(config) == "accepted");
}

TEST_CASE("model_config: every field that differs is listed") {
  CHECK(io::config_differences(sound(), sound()).empty());
  decoder_config other{.model_type = architecture::llama,
                       .hidden_size = 1,
                       .intermediate_size = 2,
                       .num_hidden_layers = 3,
                       .num_attention_heads = 5,
                       .num_key_value_heads = 5,
                       .head_dim = 6,
                       .vocab_size = 7,
                       .max_position_embeddings = 9,
                       .rope_theta = 500'000.f,
                       .rms_norm_eps = 0.5f,
                       .hidden_act = activation::silu,
                       .tie_word_embeddings = false,
                       .activation_type = dtype::f32,
                       .sliding_window = 48};
  other.rope_scaling = {.type = rope_type::llama3, .factor = 8.f, .original_max_position_embeddings = 8192};
  const auto lines = io::config_differences(sound(), other);
  CHECK(lines.size() == 17);
  CHECK(lines.front() == "model_type: engraved bitnet, file llama");
  CHECK(lines[9] == "rope_theta: engraved 10000, file 500000");
  CHECK(lines[10] == "rope_scaling: engraved default, file llama3 by 8, low 1, high 4, from 8192");
  CHECK(lines[14] == "activation_type: engraved i8, file f32");
  CHECK(lines[15] == "sliding_window: engraved 0, file 48");
  CHECK(lines.back() == "query_pre_attn_scalar: engraved 64, file 6");
}

TEST_CASE("model_config: what windowed layers do is compared where there are such, and a scalar is what it comes to") {
  auto one = sound(), other = sound();
  other.sliding_window_pattern = 6, other.rope_local_base_freq = 10'000.f, other.query_pre_attn_scalar = other.head_dim;
  CHECK(io::config_differences(one, other).empty());
  one.sliding_window = other.sliding_window = 32;
  CHECK(io::config_differences(one, other) == std::vector<std::string>{"sliding_window_pattern: engraved 0, file 6",
                                                                       "rope_local_base_freq: engraved 0, file 10000"});
}
