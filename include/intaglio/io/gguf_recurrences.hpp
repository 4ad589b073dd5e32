// SPDX-License-Identifier: MIT
// The keys of a GGUF file about layers with a recurrent state: gated delta rules, Mamba-2, short convolutions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "intaglio/core/family.hpp"
#include "intaglio/io/gguf_rope.hpp"

namespace intaglio::io {

/// Reads the keys of recurrent layers.
class gguf_recurrences : public gguf_rope {
 public:
  using gguf_rope::gguf_rope;

 protected:
  /// Reads the heads of a recurrent state with their rows and columns, and the taps of the convolution in front of it.
  [[gnu::cold]] void read_state_sizes() {
    delta_net_config& sizes = config_.delta_net;
    config_.conv_taps = required("ssm.conv_kernel");
    sizes.key_heads = required("ssm.group_count"), sizes.value_heads = required("ssm.time_step_rank");
    sizes.key_dim = required("ssm.state_size");
    const std::uint32_t inner = required("ssm.inner_size");
    if (sizes.value_heads == 0 || inner % sizes.value_heads != 0)
      refuse(key("ssm.inner_size"),
             "a multiple of " + key("ssm.time_step_rank") + " " + std::to_string(sizes.value_heads),
             std::to_string(inner));
    sizes.value_dim = inner / sizes.value_heads;
  }

  /// Reads delta rules. Value heads of qwen35 and qwen35moe are in turn: the first of every key head, then the second.
  void read_delta_net() {
    read_state_sizes();
    config_.delta_net.in_turn = has_values_in_turn(family_of(config_.model_type));
    const std::uint32_t layers = config_.num_hidden_layers;
    if (layers > layer_pattern::max_period)
      refuse(key("block_count"), "at most " + std::to_string(layer_pattern::max_period) + " of two kinds",
             std::to_string(layers));
    const auto listed = file_.array<bool>(key("attention.recurrent_layers"));
    const std::uint32_t interval = value("full_attention_interval").value_or(4);
    if (listed) {
      if (listed->size() != layers)
        refuse(key("attention.recurrent_layers"), std::to_string(layers) + " values as " + key("block_count"),
               std::to_string(listed->size()));
      for (std::uint32_t layer = 0; layer < layers; ++layer)
        if ((*listed)[layer]) config_.recurrent_layers.add(layer);
      if (!value("full_attention_interval")) return;
    }
    if (interval == 0) refuse(key("full_attention_interval"), "a number above 0", "0");
    const layer_set all_others = layer_set::all_but_every(interval, layers);
    if (listed && !(config_.recurrent_layers == all_others))
      refuse(key("full_attention_interval"), "the layers of attention.recurrent_layers", std::to_string(interval));
    config_.recurrent_layers = all_others;
  }

  /// Reads Mamba-2 layers. Nemotron-H also has layers with only an FFN, which are those with a width, and layers with
  /// only a mixture, which also have a router.
  [[gnu::cold]] void read_state_space() {
    decoder_config& c = config_;
    delta_net_config& sizes = c.delta_net;
    read_state_sizes();
    if (sizes.key_heads == 0 || sizes.value_heads % sizes.key_heads != 0)
      refuse(key("ssm.time_step_rank"),
             "a multiple of " + key("ssm.group_count") + " " + std::to_string(sizes.key_heads),
             std::to_string(sizes.value_heads));
    read_layers_without_keys();
    c.no_rope_layer_interval = 1;
    if (!family_of(c.model_type).single_sublayers) {
      if (file_.value<bool>(key("rope.scaling.finetuned")).value_or(true)) c.no_rope_layer_interval = 0;
      return;
    }
    const std::string name = key("feed_forward_length");
    const std::vector<std::uint32_t> each = numbers_of_layers(name, "a number for layers of FFNs and 0 for others");
    for (std::uint32_t layer = 0; layer < each.size(); ++layer) {
      if (each[layer] == 0) continue;
      const bool mixture = file_.find_tensor("blk." + std::to_string(layer) + ".ffn_gate_inp.weight") != nullptr;
      std::uint32_t& width = mixture ? c.intermediate_size : c.dense_intermediate_size;
      if (!c.recurrent_layers.has(layer) || (width != 0 && width != each[layer]))
        refuse(name, "0 where " + key("attention.head_count_kv") + " is not, and one other number",
               std::to_string(each[layer]) + " in layer " + std::to_string(layer));
      c.recurrent_layers.remove(layer);
      c.ffn_layers.add(layer);
      if (mixture) c.expert_layers.add(layer);
      width = each[layer];
    }
    if (c.expert_layers.empty()) c.intermediate_size = std::exchange(c.dense_intermediate_size, 0);
  }

  /// Reads a key with a number for each layer, at most layer_pattern::max_period of them.
  [[gnu::cold]] std::vector<std::uint32_t> numbers_of_layers(const std::string& name, std::string_view which) const {
    const gguf_value* stored = file_.first().find(name);
    const std::uint32_t layers = config_.num_hidden_layers;
    const std::string expected =
        std::to_string(layers) + " numbers as " + key("block_count") + ", " + std::string(which);
    if (stored == nullptr || stored->type != gguf_type::array)
      refuse(name, expected, stored == nullptr ? "no such key" : "one number");
    std::vector<std::uint32_t> each = *file_.numbers<std::uint32_t>(name);
    if (each.size() != layers || layers > layer_pattern::max_period)
      refuse(name,
             layers > layer_pattern::max_period
                 ? "at most " + std::to_string(layer_pattern::max_period) + " layers of several kinds"
                 : expected,
             std::to_string(each.size()));
    return each;
  }

  /// Reads short convolutions (LFM2).
  void read_short_conv() {
    read_layers_without_keys();
    config_.conv_taps = required("shortconv.l_cache");
  }

  /// Marks layers without key heads as recurrent.
  [[gnu::cold]] void read_layers_without_keys() {
    const std::string name = key("attention.head_count_kv");
    const std::vector<std::uint32_t> each =
        numbers_of_layers(name, "0 for layers without attention and one other number");
    for (std::uint32_t layer = 0; layer < each.size(); ++layer) {
      if (each[layer] == 0) config_.recurrent_layers.add(layer);
      else if (config_.num_key_value_heads == 0) config_.num_key_value_heads = each[layer];
      else if (each[layer] != config_.num_key_value_heads)
        refuse(name, "0 for layers without attention and one other number",
               std::to_string(config_.num_key_value_heads) + " and, in layer " + std::to_string(layer) + ", " +
                   std::to_string(each[layer]));
    }
  }
};

}  // namespace intaglio::io
