// SPDX-License-Identifier: MIT
#include "intaglio/io/model_config.hpp"

#include <catch2/catch_test_macros.hpp>
#include <functional>
#include <limits>
#include <utility>

using namespace intaglio;

namespace {

decoder_config sound() {
  return {.hidden_size = 256, .intermediate_size = 1024, .num_hidden_layers = 8, .num_attention_heads = 4, .num_key_value_heads = 2, .head_dim = 64,
          .vocab_size = 4096, .max_position_embeddings = 512};
}
std::string refusal(const decoder_config& config) {
  try {
    io::check_config(config, "file");
  } catch (const file_error& problem) {
    return problem.what();
  }
  return "accepted";
}

}  // namespace

TEST_CASE("model_config: every field has a range, and an error names key, range and value") {
  CHECK(refusal(sound()) == "accepted");
  using edit = std::function<void(decoder_config&)>;
  const std::vector<std::pair<edit, std::string>> wrong{
      {[](auto& c) { c.hidden_size = 0; }, "file: hidden_size: expected 1 to 1048576, found 0"},
      {[](auto& c) { c.intermediate_size = (1 << 22) + 1; }, "file: intermediate_size: expected 1 to 4194304, found 4194305"},
      {[](auto& c) { c.num_hidden_layers = 4097; }, "file: num_hidden_layers: expected 1 to 4096, found 4097"},
      {[](auto& c) { c.num_attention_heads = 0; }, "file: num_attention_heads: expected 1 to 65536, found 0"},
      {[](auto& c) { c.num_key_value_heads = 5; }, "file: num_key_value_heads: expected 1 to 4, found 5"},
      {[](auto& c) { c.num_key_value_heads = 3; }, "file: num_key_value_heads: expected a divisor of num_attention_heads 4, found 3"},
      {[](auto& c) { c.head_dim = 63; }, "file: head_dim: expected an even number, found 63"},
      {[](auto& c) { c.head_dim = 65'536, c.num_attention_heads = 32; }, "file: num_attention_heads * head_dim: expected at most 1048576, found 2097152"},
      {[](auto& c) { c.vocab_size = 0xFFFFFFFF; }, "file: vocab_size: expected 1 to 16777216, found 4294967295"},
      {[](auto& c) { c.max_position_embeddings = 0; }, "file: max_position_embeddings: expected 1 to 2147483648, found 0"},
      {[](auto& c) { c.rms_norm_eps = 0.f; }, "file: rms_norm_eps: expected above 0, at most 1, found 0"},
      {[](auto& c) { c.rms_norm_eps = std::numeric_limits<float>::quiet_NaN(); }, "file: rms_norm_eps: expected above 0, at most 1, found nan"},
      {[](auto& c) { c.rms_norm_eps = 1.5f; }, "file: rms_norm_eps: expected above 0, at most 1, found 1.5"},
      {[](auto& c) { c.rope_theta = 0.5f; }, "file: rope_theta: expected a finite number from 1, found 0.5"},
      {[](auto& c) { c.rope_theta = std::numeric_limits<float>::infinity(); }, "file: rope_theta: expected a finite number from 1, found inf"}};
  for (const auto& [change, text] : wrong) {
    decoder_config config = sound();
    change(config);
    CHECK(refusal(config) == text);
  }
}

TEST_CASE("model_config: every field that differs is listed") {
  CHECK(io::config_differences(sound(), sound()).empty());
  decoder_config other{.model_type = architecture::llama, .hidden_size = 1, .intermediate_size = 2, .num_hidden_layers = 3, .num_attention_heads = 5,
                       .num_key_value_heads = 5, .head_dim = 6, .vocab_size = 7, .max_position_embeddings = 9, .rope_theta = 500'000.f, .rms_norm_eps = 0.5f,
                       .hidden_act = activation::silu, .tie_word_embeddings = false, .activation_type = dtype::f32};
  const auto lines = io::config_differences(sound(), other);
  CHECK(lines.size() == 14);
  CHECK(lines.front() == "model_type: engraved bitnet, file llama");
  CHECK(lines[9] == "rope_theta: engraved 10000, file 500000");
  CHECK(lines.back() == "activation_type: engraved i8, file f32");
}
