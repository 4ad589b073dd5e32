// SPDX-License-Identifier: MIT
// The keys of config.json about parallel streams (Gemma 3n).
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include "intaglio/core/number_text.hpp"
#include "intaglio/io/hf_hybrids.hpp"
#include "intaglio/io/normal_quantile.hpp"

namespace intaglio::io {

/// Reads streams and the sizes that belong to them. Defaults: transformers' Gemma3nTextConfig.
class hf_streams : public hf_hybrids {
 public:
  using hf_hybrids::hf_hybrids;

 protected:
  [[gnu::cold]] void read_streams(const located_json& text) {
    decoder_config& c = out_.config;
    c.attention_multiplier = 1.f;
    c.num_key_value_heads = size_or(text["num_key_value_heads"], 2);
    c.vocab_size = size_or(text["vocab_size"], 262'400);
    c.max_position_embeddings = size_or(text["max_position_embeddings"], 32'768);
    c.num_kv_shared_layers = size_or(text["num_kv_shared_layers"], 15);
    c.hidden_size_per_layer_input = size_or(text["hidden_size_per_layer_input"], 256);
    c.vocab_size_per_layer_input = size_or(text["vocab_size_per_layer_input"], 262'144);
    if (c.vocab_size_per_layer_input == c.vocab_size) c.vocab_size_per_layer_input = 0;
    c.altup_num_inputs = size_or(text["altup_num_inputs"], 4);
    c.laurel_rank = size_or(text["laurel_rank"], 64);
    if (size_or(text["altup_active_idx"], 0) != 0) text["altup_active_idx"].refuse("0");
    if (!text["altup_correct_scale"].boolean_or(true)) text["altup_correct_scale"].refuse("true");
    if (const located_json clip = text["altup_coef_clip"]; clip.is_null() || (clip.present() && clip.number() != 120.0))
      document_.refuse(clip.where(), "120", clip.present() ? number_text(clip.real()) : "null");
    read_sparsity(text["activation_sparsity_pattern"]);
  }

  /// The width of all FFNs; the file states it once, or once for each layer.
  [[gnu::cold]] std::uint32_t width_of_layers(const located_json& field, std::uint32_t layers) const {
    if (!field.present() || field.is_number()) return size(field);
    const auto each = field.elements();
    if (each.size() != layers)
      document_.refuse(field.where(), std::to_string(layers) + " numbers as num_hidden_layers",
                       std::to_string(each.size()));
    for (const located_json& layer : each)
      if (size(layer) != size(each.front()))
        layer.refuse(std::to_string(size(each.front())) + " as in layer 0: one width for all layers");
    return each.empty() ? 0 : size(each.front());
  }

 private:
  /// Reads for each layer the fraction of features that is left out: 0, or one other number.
  [[gnu::cold]] void read_sparsity(const located_json& list) {
    decoder_config& c = out_.config;
    constexpr double usual = 0.95;
    constexpr std::uint32_t usual_layers = 10;
    double part = 0;
    if (list.present()) {
      const auto layers = list.elements();
      if (layers.size() != c.num_hidden_layers || layers.size() > layer_pattern::max_period)
        document_.refuse(list.where(),
                         std::to_string((std::min)(c.num_hidden_layers, layer_pattern::max_period)) + " numbers",
                         std::to_string(layers.size()));
      for (std::uint32_t layer = 0; layer < layers.size(); ++layer) {
        const double found = layers[layer].number();
        if (found == 0) continue;
        if (!(found > 0 && found < 1)) layers[layer].refuse("a number from 0, below 1");
        if (part != 0 && found != part)
          layers[layer].refuse("0, or " + number_text(static_cast<float>(part)) + " as in other layers");
        part = found;
        c.sparse_layers.add(layer);
      }
    } else if (c.num_hidden_layers > usual_layers) {
      part = usual;
      c.sparse_layers = layer_set::all_but(usual_layers);
    }
    if (part != 0) c.sparse_deviations = static_cast<float>(normal_quantile(part));
  }
};

}  // namespace intaglio::io
