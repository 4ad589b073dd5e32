// SPDX-License-Identifier: MIT
// The keys of config.json by which layers differ: windows, recurrences, kinds of heads.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "intaglio/io/hf_rope.hpp"

namespace intaglio::io {

/// Reads the keys by which layers differ.
class hf_layers : public hf_rope {
 public:
  using hf_rope::hf_rope;

 protected:
  /// Reads heads, caches and FFNs by kind of layer. Defaults: transformers' Gemma4TextConfig.
  [[gnu::cold]] void read_kinds(const located_json& text) {
    decoder_config& c = out_.config;
    c.attention_multiplier = 1.f;
    c.global_head_dim = text["global_head_dim"].present() ? size(text["global_head_dim"]) : 512;
    c.attention_k_eq_v = text["attention_k_eq_v"].boolean_or(false);
    if (c.attention_k_eq_v && text["num_global_key_value_heads"].present())
      c.num_global_key_value_heads = size(text["num_global_key_value_heads"]);
    if (text["num_kv_shared_layers"].present()) c.num_kv_shared_layers = size(text["num_kv_shared_layers"]);
    if (c.num_kv_shared_layers != 0 && text["use_double_wide_mlp"].boolean_or(false)) {
      if (c.intermediate_size > config_limits::intermediate_size / 2)
        text["intermediate_size"].refuse("at most " + std::to_string(config_limits::intermediate_size / 2) +
                                         " beside use_double_wide_mlp");
      c.shared_intermediate_size = 2 * c.intermediate_size;
    }
    if (text["hidden_size_per_layer_input"].present())
      c.hidden_size_per_layer_input = size(text["hidden_size_per_layer_input"]);
    if (const located_json words = text["vocab_size_per_layer_input"];
        c.hidden_size_per_layer_input != 0 && words.present() && size(words) != c.vocab_size)
      words.refuse(std::to_string(c.vocab_size) + " as vocab_size");
    if (text["enable_moe_block"].boolean_or(false)) {
      if (c.shared_intermediate_size != 0)
        document_.refuse("use_double_wide_mlp", "false beside enable_moe_block", "true");
      c.num_local_experts = size(text["num_experts"]);
      c.num_experts_per_tok = size(text["top_k_experts"]);
      c.shared_expert_intermediate_size = std::exchange(c.intermediate_size, size(text["moe_intermediate_size"]));
    }
    const located_json global = text["rope_parameters"]["full_attention"];
    if (!global.present()) document_.refuse("rope_parameters.full_attention", "an object", "no such key");
    for (const located_json& object : {text, text["rope_scaling"]}) expect_stated_by_kind(object, global);
    if (type_of(global) == "proportional") {
      const double part = global["partial_rotary_factor"].present() ? global["partial_rotary_factor"].number() : 1.0;
      if (!(part > 0 && part <= 1)) global["partial_rotary_factor"].refuse("a number above 0, at most 1");
      c.global_turning_pairs = static_cast<std::uint32_t>(part * c.global_head_dim / 2);
      if (c.global_turning_pairs == 0) global["partial_rotary_factor"].refuse("a part of one pair of channels or more");
      if (c.global_turning_pairs == c.global_head_dim / 2) c.global_turning_pairs = 0;
    } else {
      expect_type(global, "default");
    }
  }

  /// Reads which layers have a short convolution, from a list of kinds or a list of the other layers' numbers.
  /// Defaults: transformers' Lfm2Config.
  [[gnu::cold]] void read_short_conv(const located_json& text) {
    decoder_config& c = out_.config;
    c.conv_taps = text["conv_L_cache"].present() ? size(text["conv_L_cache"]) : 3;
    const located_json types = text["layer_types"], numbers = text["full_attn_idxs"];
    expect_two_kinds();
    if (!types.present() && !numbers.present())
      document_.refuse("layer_types", "one for each of " + std::to_string(c.num_hidden_layers) + " layers",
                       "no such key");
    if (numbers.present()) read_full_attention_numbers(numbers);
    read_recurrent_types(types, "conv", numbers, "");
  }

  /// Reads delta rules. Defaults: transformers' Qwen3NextConfig and Qwen3_5TextConfig, which agree in these.
  [[gnu::cold]] void read_delta_net(const located_json& text) {
    decoder_config& c = out_.config;
    c.conv_taps = size_or(text["linear_conv_kernel_dim"], 4);
    c.delta_net = {.key_heads = size_or(text["linear_num_key_heads"], 16),
                   .value_heads = size_or(text["linear_num_value_heads"], 32),
                   .key_dim = size_or(text["linear_key_head_dim"], 128),
                   .value_dim = size_or(text["linear_value_head_dim"], 128)};
    if (!text["attn_output_gate"].boolean_or(true)) text["attn_output_gate"].refuse("true");
    const located_json stated = text["full_attention_interval"];
    const std::uint32_t interval = size_or(stated, 4);
    if (interval == 0) stated.refuse("a number above 0");
    expect_two_kinds();
    c.recurrent_layers = layer_set::all_but_every(interval, c.num_hidden_layers);
    read_recurrent_types(text["layer_types"], "linear_attention", stated, " by " + std::to_string(interval));
  }

  /// Refuses more layers than a set of layers may have.
  [[gnu::cold]] void expect_two_kinds() const {
    if (const std::uint32_t layers = out_.config.num_hidden_layers; layers > layer_pattern::max_period)
      document_.refuse("num_hidden_layers", "at most " + std::to_string(layer_pattern::max_period) + " of two kinds",
                       std::to_string(layers));
  }

  /// Reads which layers are recurrent from a list of the other layers' numbers.
  [[gnu::cold]] void read_full_attention_numbers(const located_json& numbers) {
    decoder_config& c = out_.config;
    c.recurrent_layers = layer_set::all_but(c.num_hidden_layers);
    for (const located_json& each : numbers.elements()) {
      const std::uint32_t layer = size(each);
      if (layer >= c.num_hidden_layers || !c.recurrent_layers.has(layer))
        each.refuse("numbers of layers below " + std::to_string(c.num_hidden_layers) + ", each once");
      c.recurrent_layers.remove(layer);
    }
  }

  /// Reads which layers are recurrent from layer_types, if present. Where another key stated it, both have to agree.
  /// @param kind the name of recurrent layers in the list
  /// @param other the other key, whose layers the config has  @param value its value, for the error
  [[gnu::cold]] void read_recurrent_types(const located_json& types, std::string_view kind, const located_json& other,
                                          const std::string& value) {
    if (!types.present()) return;
    decoder_config& c = out_.config;
    const layer_set stated = std::exchange(c.recurrent_layers, {});
    const auto layers = types.elements();
    if (layers.size() != c.num_hidden_layers)
      document_.refuse(types.where(), std::to_string(c.num_hidden_layers) + " entries", std::to_string(layers.size()));
    for (std::uint32_t layer = 0; layer < c.num_hidden_layers; ++layer) {
      const std::string& found = layers[layer].text();
      if (found == kind) c.recurrent_layers.add(layer);
      else if (found != "full_attention") layers[layer].refuse(std::string(kind) + " or full_attention");
      if (other.present() && stated.has(layer) != c.recurrent_layers.has(layer))
        document_.refuse(other.where() + " and " + layers[layer].where(), "one kind of layer",
                         std::string(stated.has(layer) ? kind : "full_attention") + value + " and " + found);
    }
  }

  /// The width of LFM2's FFN. As in transformers' Lfm2Config, block_ff_dim goes before intermediate_size. The width is
  /// two thirds of it, times a multiplier, rounded up to a multiple, unless block_auto_adjust_ff_dim is false.
  [[gnu::cold]] std::uint32_t short_conv_ffn(const located_json& text) const {
    const located_json stated = text["block_ff_dim"].present() ? text["block_ff_dim"] : text["intermediate_size"];
    std::uint64_t out = size(stated);
    if (!text["block_auto_adjust_ff_dim"].boolean_or(true)) return static_cast<std::uint32_t>(out);
    out = 2 * out / 3;
    if (const located_json by = text["block_ffn_dim_multiplier"]; by.present()) {
      if (!(by.number() > 0 && by.number() <= 16)) by.refuse("a number above 0 and up to 16");
      out = static_cast<std::uint64_t>(by.number() * static_cast<double>(out));
    }
    const std::uint64_t step = text["block_multiple_of"].present() ? size(text["block_multiple_of"]) : 256;
    if (step == 0) text["block_multiple_of"].refuse("a number above 0");
    out = (out + step - 1) / step * step;
    if (out > config_limits::intermediate_size)
      stated.refuse("at most " + std::to_string(config_limits::intermediate_size) + " units of a layer");
    return static_cast<std::uint32_t>(out);
  }

  /// Reads the layers without rotation: a list with 0 for each of them, or the interval between them.
  [[gnu::cold]] void read_layers_without_rope(const located_json& text) {
    decoder_config& c = out_.config;
    const located_json list = text["no_rope_layers"], interval = text["no_rope_layer_interval"];
    const std::uint32_t usual = family_of(c.model_type).no_rope_interval;
    if (usual != 0) c.no_rope_layer_interval = interval.present() ? size(interval) : usual;
    if (!list.present()) return;
    const auto layers = list.elements();
    if (layers.empty()) return;
    if (layers.size() != c.num_hidden_layers)
      document_.refuse(list.where(), std::to_string(c.num_hidden_layers) + " entries", std::to_string(layers.size()));
    const auto first =
        std::find_if(layers.begin(), layers.end(), [](const located_json& each) { return each.natural() == 0; });
    const auto every = first == layers.end() ? std::size_t{0} : static_cast<std::size_t>(first - layers.begin()) + 1;
    if (usual == 0 && every != 0)
      document_.refuse(list.where(), "none for " + out_.model_type, "layers without rotation");
    for (std::size_t layer = 0; layer < layers.size(); ++layer)
      if ((layers[layer].natural() == 0) != (every != 0 && (layer + 1) % every == 0))
        document_.refuse(list.where(), "0 for every n-th layer and 1 for the others", "another order");
    if (const std::uint32_t step = c.no_rope_layer_interval; interval.present())
      for (std::size_t layer = 0; layer < layers.size(); ++layer)
        if ((layers[layer].natural() == 0) != (step != 0 && (layer + 1) % step == 0))
          document_.refuse(interval.where() + " and " + layers[layer].where(), "the same layers without rotation",
                           std::to_string(step) + " and " + std::to_string(layers[layer].natural()));
    c.no_rope_layer_interval = static_cast<std::uint32_t>(every);
  }

  /// Reads windows: Mistral and some Mixtrals have them in all layers, Gemma 3 in all but every sixth.
  /// transformers 5 lists the kind of each layer.
  [[gnu::cold]] void read_windows(const located_json& text) {
    decoder_config& c = out_.config;
    const std::uint32_t interval = family_of(c.model_type).window_interval;
    const bool mistral = out_.model_type == "mistral", mixtral = out_.model_type == "mixtral";
    // Qwen's key of a window has no effect unless another key says so.
    if (text["use_sliding_window"].boolean_or(false) && !text["sliding_window"].is_null())  // absent: 4096
      document_.refuse("use_sliding_window", "false", "true");
    if (family_of(c.model_type).scaled_queries && text["sliding_window"].present())
      text["sliding_window"].refuse("none");
    if (family_of(c.model_type).late_windows) return refuse_late_windows(text);
    const bool phi = family_of(c.model_type).windows;
    if (interval == 0 && !mistral && !mixtral && !phi) {
      if (family_of(c.model_type).recurrent == recurrence::none && out_.model_type != "granitemoehybrid")
        expect_full_attention(text["layer_types"]);
      return;
    }
    if (text["sliding_window"].present()) c.sliding_window = size(text["sliding_window"]);
    else if (!mixtral && !phi && !text["sliding_window"].is_null())
      c.sliding_window = mistral || (family_of(c.model_type).globals_stand && !family_of(c.model_type).needs_window)
                             ? 4096
                             : family_of(c.model_type).default_window;
    if (c.sliding_window == 0) return expect_full_attention(text["layer_types"]);
    if (phi && c.sliding_window >= c.max_position_embeddings) c.sliding_window = 0;  // a window over all positions
    if (c.sliding_window == 0) return;
    read_window_pattern(text);
    if (c.sliding_window_pattern == 1 && family_of(c.model_type).globals_stand)
      document_.refuse("sliding_window", "none where all layers see all positions", std::to_string(c.sliding_window));
    if (c.sliding_window_pattern == 1 && !family_of(c.model_type).kinds_of_layers)
      c.sliding_window = c.sliding_window_pattern = 0;
    if (family_of(c.model_type).unscaled_windows && c.sliding_window != 0) read_unscaled_windows(text);
  }

  /// Reads the rotation of layers with a window: that of the others without their scaling.
  [[gnu::cold]] void read_unscaled_windows(const located_json& text) {
    decoder_config& c = out_.config;
    c.rope_local_base_freq = c.rope_theta;
    const located_json local = text["rope_parameters"]["sliding_attention"];
    if (!local.present()) return;
    expect_type(local, "default");
    if (const located_json theta = local["rope_theta"]; theta.present() && theta.real() != c.rope_theta)
      theta.refuse(number_text(c.rope_theta) + " as in full_attention");
  }

  /// Refuses windows of the last layers.
  [[gnu::cold]] void refuse_late_windows(const located_json& text) const {
    const located_json first = text["max_window_layers"];
    if (text["sliding_window"].present() && first.present() && size(first) < out_.config.num_hidden_layers)
      first.refuse("num_hidden_layers or more: no layer has a window");
    expect_full_attention(text["layer_types"]);
  }

  /// Refuses layers of other kinds than attention to all positions.
  [[gnu::cold]] static void expect_full_attention(const located_json& types) {
    for (const located_json& layer : types.elements())
      if (layer.text() != "full_attention") layer.refuse("full_attention");
  }

  /// The interval in EXAONE's letters: "LLLG" is 4, where L is a layer with a window.
  [[gnu::cold]] static std::uint32_t letters(const located_json& field) {
    const std::string word = field.text();
    if (word.empty() || word.size() > layer_pattern::max_period || word.find('G') + 1 != word.size() ||
        word.find_first_not_of('L') + 1 != word.size())
      field.refuse("letters L and one G at the end, or a number");
    return static_cast<std::uint32_t>(word.size());
  }

  /// Reads which layers have the window: every n-th has none, or layer_types lists the kind of each layer.
  [[gnu::cold]] void read_window_pattern(const located_json& text) {
    decoder_config& c = out_.config;
    std::string stated;  // the key that was read last
    for (const char* key : {"_sliding_window_pattern", "sliding_window_pattern"}) {
      const located_json found = text[key];
      if (!found.present() || !has_key(key)) continue;
      const std::uint32_t every = found.is_string() ? letters(found) : size(found);
      if (every == 0) found.refuse("a number above 0 beside sliding_window");
      if (!stated.empty() && every != c.sliding_window_pattern)
        document_.refuse(stated + " and " + key, "one value",
                         std::to_string(c.sliding_window_pattern) + " and " + std::to_string(every));
      c.sliding_window_pattern = every;
      stated = key;
    }
    if (c.sliding_window_pattern == 0) c.sliding_window_pattern = family_of(c.model_type).window_interval;
    if (text["layer_types"].present()) read_layer_types(text["layer_types"], stated);
  }

  /// @param pattern the key that said which layers have the window; empty where none did
  [[gnu::cold]] void read_layer_types(const located_json& list, const std::string& pattern) {
    decoder_config& c = out_.config;
    std::vector<bool> windowed;
    for (const located_json& layer : list.elements()) {
      const std::string& type = layer.text();
      if (type != "sliding_attention" && type != "full_attention") layer.refuse("sliding_attention or full_attention");
      windowed.push_back(type == "sliding_attention");
    }
    if (windowed.size() != c.num_hidden_layers)
      document_.refuse(list.where(), std::to_string(c.num_hidden_layers) + " entries", std::to_string(windowed.size()));
    std::uint32_t layer = 0;
    while (layer < c.num_hidden_layers && windowed[layer] == c.is_windowed(layer)) ++layer;
    if (layer == c.num_hidden_layers) return;
    if (!pattern.empty())
      document_.refuse(pattern + " and " + list.where() + "[" + std::to_string(layer) + "]", "one kind of layer",
                       std::to_string(c.sliding_window_pattern) + " and " +
                           (windowed[layer] ? "sliding_attention" : "full_attention"));
    if (!set_windows(c, windowed))
      document_.refuse(list.where(), "full_attention in every n-th layer and sliding_attention in the others",
                       "another order");
  }
};

}  // namespace intaglio::io
