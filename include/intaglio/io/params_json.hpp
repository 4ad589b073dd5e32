// SPDX-License-Identifier: MIT
// params.json of Meta's and Mistral's own checkpoints as a decoder_config. Keys and defaults: mistral-inference's
// TransformerArgs, llama-models' ModelArgs and, where neither states them, the values that the published models were
// trained with.
#pragma once

#include <cmath>
#include <filesystem>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "intaglio/io/hf_keys.hpp"
#include "intaglio/io/model_config.hpp"
#include "intaglio/io/strict_json.hpp"

namespace intaglio::io {

/// The content of a params.json.
struct original_params {
  decoder_config config;
  std::optional<bool> tied;           ///< absent: the model has a separate head where there is an output.weight
  bool states_vocabulary = false;     ///< false: vocab_size is 0, as in Llama 2, which leaves it to the tokenizer
  bool states_context = false;        ///< false: max_position_embeddings comes from the published models
  std::vector<std::string> warnings;  ///< about keys that are not read
};

/// @throws file_error naming file, key, expected and found
[[gnu::cold]] inline original_params read_params_json(const std::filesystem::path& path) {
  strict_json document(path.string());
  constexpr std::uint64_t most = std::uint64_t{1} << 20;
  if (const mapped_file file(path); file.size() > most)
    throw file_error(file.path(), std::nullopt, "too large for params.json",
                     "at most " + std::to_string(most) + " bytes", std::to_string(file.size()));
  document.read_file(path);
  const json_place root(document.path(), "", &document.root());
  if (!root.is_object()) document.refuse("params.json", "a JSON object", std::string(document.root().type_name()));
  const auto size = [](const json_place& place) {
    const std::uint64_t value = place.natural();
    if (value > (std::numeric_limits<std::uint32_t>::max)()) place.refuse("a number below 2^32");
    return static_cast<std::uint32_t>(value);
  };
  const auto size_or = [&](const char* key, std::uint32_t absent) {
    return root[key].present() ? size(root[key]) : absent;
  };
  const auto real_or = [&](const char* key, float absent) { return root[key].present() ? root[key].real() : absent; };
  for (const char* key : {"quantization", "vision_encoder", "lora"})
    if (root[key].present()) root[key].refuse("none");
  if (!root["causal"].boolean_or(true)) root["causal"].refuse("true");
  if (root["use_biases"].boolean_or(false)) root["use_biases"].refuse("false");

  original_params out;
  const bool scaled = root["use_scaled_rope"].boolean_or(false);
  judge_config_keys(root, original_key_rules, scaled ? "scaled" : "a model without use_scaled_rope", out.warnings);
  judge_config_keys(root["moe"], original_expert_key_rules, "params.json", out.warnings);
  decoder_config& c = out.config;
  c.model_type = architecture::llama;
  c.hidden_act = activation::silu;
  c.hidden_size = size(root["dim"]);
  c.num_hidden_layers = size(root["n_layers"]);
  c.num_attention_heads = size(root["n_heads"]);
  c.num_key_value_heads = size_or("n_kv_heads", c.num_attention_heads);
  if (root["head_dim"].present()) {
    c.head_dim = size(root["head_dim"]);
  } else {
    if (c.num_attention_heads == 0 || c.hidden_size % c.num_attention_heads != 0)
      document.refuse("n_heads", "a divisor of dim " + std::to_string(c.hidden_size),
                      std::to_string(c.num_attention_heads));
    c.head_dim = c.hidden_size / c.num_attention_heads;
  }
  if (root["hidden_dim"].present()) {
    c.intermediate_size = size(root["hidden_dim"]);
  } else {
    // llama-models: FeedForward.
    const std::uint64_t multiple = size_or("multiple_of", 256);
    if (multiple == 0) root["multiple_of"].refuse("a number above 0");
    const double factor = root["ffn_dim_multiplier"].present() ? root["ffn_dim_multiplier"].number() : 1.0;
    if (!(factor > 0.0 && factor < 16.0)) root["ffn_dim_multiplier"].refuse("a number above 0, below 16");
    const auto two_thirds = std::uint64_t{8} * c.hidden_size / 3;
    const auto wanted = static_cast<std::uint64_t>(factor * static_cast<double>(two_thirds));
    const std::uint64_t whole = (wanted + multiple - 1) / multiple * multiple;
    if (whole > config_limits::intermediate_size)
      document.refuse("multiple_of", "an inner width of at most " + std::to_string(config_limits::intermediate_size),
                      std::to_string(whole));
    c.intermediate_size = static_cast<std::uint32_t>(whole);
  }
  if (const json_place experts = root["moe"]; experts.present()) {  // mistral-inference, MoeArgs
    c.num_local_experts = size(experts["num_experts"]);
    c.num_experts_per_tok = size(experts["num_experts_per_tok"]);
    if (c.num_local_experts == 0) experts["num_experts"].refuse("a number above 0");
  }
  c.rms_norm_eps = real_or("norm_eps", 1e-5f);
  c.rope_theta = real_or("rope_theta", 10'000.f);
  if (scaled)
    c.rope_scaling = {rope_type::llama3, real_or("rope_scaling_factor", 8.f), 1.f,
                      real_or("rope_high_freq_factor", 4.f), 8192};
  c.sliding_window = size_or("sliding_window", 0);
  if (root["tied_embeddings"].present()) out.tied = root["tied_embeddings"].boolean_or(false);
  // -1: the value was not known when the file was written.
  const json_place vocabulary = root["vocab_size"];
  out.states_vocabulary = vocabulary.present() && !(vocabulary.is_number() && vocabulary.number() == -1.0);
  if (out.states_vocabulary) c.vocab_size = size(vocabulary);
  const json_place context =
      root["max_position_embeddings"].present() ? root["max_position_embeddings"] : root["max_seq_len"];
  out.states_context = context.present();
  c.max_position_embeddings = out.states_context                        ? size(context)
                              : c.rope_scaling.type != rope_type::plain ? 131'072
                              : root["multiple_of"].present()           ? (c.rope_theta > 10'000.f ? 8192 : 4096)
                                                                        : 32'768;
  return out;
}

}  // namespace intaglio::io
