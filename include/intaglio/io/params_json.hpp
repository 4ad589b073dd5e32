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

/// The keys of a params.json that is being read.
class original_keys {
 public:
  /// @throws file_error: `document` is no JSON object
  explicit original_keys(strict_json& document) : document_(document), root_(document.path(), "", &document.root()) {
    if (!root_.is_object()) document.refuse("params.json", "a JSON object", std::string(document.root().type_name()));
  }
  located_json operator[](const char* key) const { return root_[key]; }
  const located_json& root() const { return root_; }

  static std::uint32_t size(const located_json& field) {
    const std::uint64_t value = field.natural();
    if (value > (std::numeric_limits<std::uint32_t>::max)()) field.refuse("a number below 2^32");
    return static_cast<std::uint32_t>(value);
  }
  std::uint32_t size_or(const char* key, std::uint32_t absent) const {
    return root_[key].present() ? size(root_[key]) : absent;
  }
  float real_or(const char* key, float absent) const { return root_[key].present() ? root_[key].real() : absent; }

  /// Width of a head, which is stated or a part of the stream.
  std::uint32_t head_dim(const decoder_config& c) const {
    if (root_["head_dim"].present()) return size(root_["head_dim"]);
    if (c.num_attention_heads == 0 || c.hidden_size % c.num_attention_heads != 0)
      document_.refuse("n_heads", "a divisor of dim " + std::to_string(c.hidden_size),
                       std::to_string(c.num_attention_heads));
    return c.hidden_size / c.num_attention_heads;
  }
  /// Inner width of the FFN, which is stated or computed as llama-models' FeedForward computes it.
  std::uint32_t intermediate_size(std::uint32_t hidden_size) const {
    if (root_["hidden_dim"].present()) return size(root_["hidden_dim"]);
    const std::uint64_t multiple = size_or("multiple_of", 256);
    if (multiple == 0) root_["multiple_of"].refuse("a number above 0");
    const double factor = root_["ffn_dim_multiplier"].present() ? root_["ffn_dim_multiplier"].number() : 1.0;
    if (!(factor > 0.0 && factor < 16.0)) root_["ffn_dim_multiplier"].refuse("a number above 0, below 16");
    const auto two_thirds = std::uint64_t{8} * hidden_size / 3;
    const auto wanted = static_cast<std::uint64_t>(factor * static_cast<double>(two_thirds));
    const std::uint64_t whole = (wanted + multiple - 1) / multiple * multiple;
    if (whole > config_limits::intermediate_size)
      document_.refuse("multiple_of", "an inner width of at most " + std::to_string(config_limits::intermediate_size),
                       std::to_string(whole));
    return static_cast<std::uint32_t>(whole);
  }
  /// Positions of the context that a file states. @return absent: it states none
  std::optional<std::uint32_t> context() const {
    const located_json stated =
        root_["max_position_embeddings"].present() ? root_["max_position_embeddings"] : root_["max_seq_len"];
    return stated.present() ? std::optional(size(stated)) : std::nullopt;
  }
  /// Positions of the context of the published models whose files state none.
  std::uint32_t published_context(const decoder_config& c) const {
    if (c.rope_scaling.type != rope_type::plain) return 131'072;
    if (!root_["multiple_of"].present()) return 32'768;
    return c.rope_theta > 10'000.f ? 8192 : 4096;
  }

 private:
  strict_json& document_;
  located_json root_;
};
/// Reads params.json.
/// @throws file_error naming file, key, expected and found
[[gnu::cold]] inline original_params read_params_json(const std::filesystem::path& path) {
  strict_json document(path.string());
  constexpr std::uint64_t most = std::uint64_t{1} << 20;
  if (const mapped_file file(path); file.size() > most)
    throw file_error(file.path(), std::nullopt, "too large for params.json",
                     "at most " + std::to_string(most) + " bytes", std::to_string(file.size()));
  document.read_file(path);
  const original_keys keys(document);
  for (const char* key : {"quantization", "vision_encoder", "lora"})
    if (keys[key].present()) keys[key].refuse("none");
  if (!keys["causal"].boolean_or(true)) keys["causal"].refuse("true");
  if (keys["use_biases"].boolean_or(false)) keys["use_biases"].refuse("false");

  original_params out;
  const bool scaled = keys["use_scaled_rope"].boolean_or(false);
  judge_config_keys(keys.root(), original_key_rules, scaled ? "scaled" : "a model without use_scaled_rope",
                    out.warnings);
  judge_config_keys(keys["moe"], original_expert_key_rules, "params.json", out.warnings);
  decoder_config& c = out.config;
  c.model_type = architecture::llama;
  c.hidden_act = activation::silu;
  c.hidden_size = keys.size(keys["dim"]);
  c.num_hidden_layers = keys.size(keys["n_layers"]);
  c.num_attention_heads = keys.size(keys["n_heads"]);
  c.num_key_value_heads = keys.size_or("n_kv_heads", c.num_attention_heads);
  c.head_dim = keys.head_dim(c);
  c.intermediate_size = keys.intermediate_size(c.hidden_size);
  if (const located_json experts = keys["moe"]; experts.present()) {  // mistral-inference, MoeArgs
    c.num_local_experts = keys.size(experts["num_experts"]);
    c.num_experts_per_tok = keys.size(experts["num_experts_per_tok"]);
    if (c.num_local_experts == 0) experts["num_experts"].refuse("a number above 0");
  }
  c.rms_norm_eps = keys.real_or("norm_eps", 1e-5f);
  c.rope_theta = keys.real_or("rope_theta", 10'000.f);
  if (scaled)
    c.rope_scaling = {rope_type::llama3, keys.real_or("rope_scaling_factor", 8.f), 1.f,
                      keys.real_or("rope_high_freq_factor", 4.f), 8192};
  c.sliding_window = keys.size_or("sliding_window", 0);
  if (keys["tied_embeddings"].present()) out.tied = keys["tied_embeddings"].boolean_or(false);
  // -1: the value was not known when the file was written.
  const located_json vocabulary = keys["vocab_size"];
  out.states_vocabulary = vocabulary.present() && !(vocabulary.is_number() && vocabulary.number() == -1.0);
  if (out.states_vocabulary) c.vocab_size = keys.size(vocabulary);
  const std::optional<std::uint32_t> context = keys.context();
  out.states_context = context.has_value();
  c.max_position_embeddings = context ? *context : keys.published_context(c);
  return out;
}

}  // namespace intaglio::io
