// SPDX-License-Identifier: MIT
// The keys of a GGUF file by which layers differ: windows, kinds of heads, parallel streams.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "intaglio/core/family.hpp"
#include "intaglio/io/gguf_recurrences.hpp"
#include "intaglio/io/normal_quantile.hpp"

namespace intaglio::io {

/// Reads the keys by which layers differ.
class gguf_layers : public gguf_recurrences {
 public:
  using gguf_recurrences::gguf_recurrences;

 protected:
  /// Leaves out layers that draft tokens. Files count them with the others; they are the last ones.
  [[gnu::cold]] void leave_draft_layers() {
    draft_layers_ = value("nextn_predict_layers").value_or(0);
    if (draft_layers_ >= config_.num_hidden_layers)
      refuse(key("nextn_predict_layers"),
             "a number below " + key("block_count") + " " + std::to_string(config_.num_hidden_layers),
             std::to_string(draft_layers_));
    config_.num_hidden_layers -= draft_layers_;
  }
  /// Finds the parts that only some models of a family have, from the tensors.
  [[gnu::cold]] void read_optional_parts() {
    const family& facts = family_of(config_.model_type);
    if (facts.optional_norms) config_.use_qk_norm = file_.find_tensor("blk.0.attn_q_norm.weight") != nullptr;
    if (facts.optional_biases) config_.attention_bias = has_one_of({"blk.0.attn_q.bias", "blk.0.attn_qkv.bias"});
    if (facts.may_be_ternary && file_.find_tensor("blk.0.attn_q_norm_in.weight") != nullptr)
      config_.projection_norm_eps = real("attention.layer_norm_rms_epsilon").value_or(0.f);
  }

  /// Reads heads, caches and FFNs by kind of layer (Gemma 4).
  [[gnu::cold]] void read_kinds() {
    decoder_config& c = config_;
    c.attention_multiplier = 1.f;
    c.num_kv_shared_layers = value("attention.shared_kv_layers").value_or(0);
    c.hidden_size_per_layer_input = value("embedding_length_per_layer_input").value_or(0);
    read_windows_of_layers();
    c.global_head_dim = required("attention.key_length"), c.head_dim = required("attention.key_length_swa");
    for (const auto& [tail, wide] : {std::pair{"attention.value_length", c.global_head_dim},
                                     {"rope.dimension_count", c.global_head_dim},
                                     {"attention.value_length_swa", c.head_dim},
                                     {"rope.dimension_count_swa", c.head_dim}})
      if (const auto stated = value(tail); stated && *stated != wide)
        refuse(key(tail), std::to_string(wide) + " as the heads are wide", std::to_string(*stated));
    const auto local = [&](std::uint32_t layer) { return c.is_windowed(layer); };
    const auto own = [&](std::uint32_t layer) { return !c.shares_kv(layer); };
    std::tie(c.num_key_value_heads, c.num_global_key_value_heads) = by_kind("attention.head_count_kv", local);
    std::tie(c.intermediate_size, c.shared_intermediate_size) = by_kind("feed_forward_length", own);
    for (std::uint32_t layer = 0; layer < c.num_hidden_layers; ++layer)
      if (!local(layer) && own(layer) &&
          file_.find_tensor("blk." + std::to_string(layer) + ".attn_v.weight") == nullptr)
        c.attention_k_eq_v = true;
    read_turning_pairs();
  }

  /// Reads which layers have the window, one boolean for each.
  [[gnu::cold]] void read_windows_of_layers() {
    decoder_config& c = config_;
    c.sliding_window = required("attention.sliding_window");
    c.rope_local_base_freq = real("rope.freq_base_swa").value_or(10'000.f);
    const std::string pattern = key("attention.sliding_window_pattern");
    const auto windowed = file_.array<bool>(pattern);
    if (!windowed || windowed->size() != c.num_hidden_layers || !set_windows(c, *windowed))
      refuse(pattern, std::to_string(c.num_hidden_layers) + " truths as " + key("block_count"),
             windowed ? std::to_string(windowed->size()) : "no such list");
  }

  /// Reads parallel streams and the sizes that belong to them (Gemma 3n). Ranks and rows that no key states are taken
  /// from the tensors.
  [[gnu::cold]] void read_streams() {
    decoder_config& c = config_;
    c.attention_multiplier = 1.f;
    read_windows_of_layers();
    c.hidden_size_per_layer_input = required("embedding_length_per_layer_input");
    c.altup_num_inputs = required("altup.num_inputs");
    if (value("altup.active_idx").value_or(0) != 0)
      refuse(key("altup.active_idx"), "0", std::to_string(*value("altup.active_idx")));
    const std::string shared = key("attention.shared_kv_layers");  // a float in files of llama.cpp's converter
    const auto count = file_.number<float>(shared);
    if (!count) refuse(shared, "a number", "no such key");
    if (!(*count >= 0 && *count < static_cast<float>(c.num_hidden_layers)) || *count != std::floor(*count))
      refuse(shared, "a whole number below " + key("block_count") + " " + std::to_string(c.num_hidden_layers),
             number_text(*count));
    c.num_kv_shared_layers = static_cast<std::uint32_t>(*count);
    if (const gguf_tensor* left = file_.find_tensor("blk.0.laurel_l.weight"); left != nullptr)
      c.laurel_rank = static_cast<std::uint32_t>((std::min)(left->rows(), config_limits::hidden_size));
    if (const gguf_tensor* inputs = file_.find_tensor("per_layer_token_embd.weight");
        inputs != nullptr && inputs->rows() < c.vocab_size)
      c.vocab_size_per_layer_input = static_cast<std::uint32_t>(inputs->rows());
    read_sparsity();
  }

  /// Reads the standard deviations above the mean of a layer's gates from which features are kept: minus infinity in
  /// layers that keep all. The number becomes a fraction in whole millionths, as config.json states it.
  [[gnu::cold]] void read_sparsity() {
    decoder_config& c = config_;
    const std::string name = key("activation_sparsity_scale");
    const auto each = file_.array<float>(name);
    if (!each || each->size() != c.num_hidden_layers || each->size() > layer_pattern::max_period)
      refuse(name, std::to_string((std::min)(c.num_hidden_layers, layer_pattern::max_period)) + " numbers",
             each ? std::to_string(each->size()) : "no such list");
    float one = 0;
    for (std::uint32_t layer = 0; layer < c.num_hidden_layers; ++layer) {
      const float found = (*each)[layer];
      if (found < -9.f) continue;
      if (!(found <= 9.f)) refuse(name, "minus infinity or a number up to 9", number_text(found));
      if (!c.sparse_layers.empty() && found != one)
        refuse(name, number_text(one) + " as in other layers, or minus infinity",
               number_text(found) + " in layer " + std::to_string(layer));
      one = found;
      c.sparse_layers.add(layer);
    }
    if (c.sparse_layers.empty()) return;
    const double part = std::round(normal_part_below(one) * 1e6) / 1e6,
                 snapped = part > 0 && part < 1 ? normal_quantile(part) : one;
    c.sparse_deviations = std::fabs(snapped - one) < 1e-5 ? static_cast<float>(snapped) : one;
  }

  /// Two numbers: of one kind of layer and of the other kind. The second one is 0 where both are equal.
  template <class Kind>
  [[gnu::cold]] std::pair<std::uint32_t, std::uint32_t> by_kind(std::string_view tail, Kind&& first) const {
    const std::string name = key(tail);
    const gguf_value* stored = file_.first().find(name);
    if (stored == nullptr) refuse(name, "a number", "no such key");
    if (stored->type != gguf_type::array) return {*value(tail), 0};
    const std::vector<std::uint32_t> each = *file_.numbers<std::uint32_t>(name);
    if (each.size() != config_.num_hidden_layers)
      refuse(name, std::to_string(config_.num_hidden_layers) + " numbers as " + key("block_count"),
             std::to_string(each.size()));
    std::array<std::optional<std::uint32_t>, 2> found;
    for (std::uint32_t layer = 0; layer < each.size(); ++layer) {
      auto& of = found[first(layer) ? 0 : 1];
      if (of && *of != each[layer])
        refuse(name, std::to_string(*of) + " as in other layers of the kind of layer " + std::to_string(layer),
               std::to_string(each[layer]));
      of = each[layer];
    }
    const std::uint32_t one = found[0] ? *found[0] : found[1].value_or(0);
    return {one, found[1].value_or(one) == one ? 0 : *found[1]};
  }

  /// Reads the two products after the last norm, hidden_size to some width and back, where the file has them.
  [[gnu::cold]] void read_dense_products() {
    const gguf_tensor* const first = file_.find_tensor("dense_2.weight");
    if (first == nullptr)
      return warn("no dense_2.weight and dense_3.weight: embeddings are those in front of these products");
    config_.dense_features =
        static_cast<std::uint32_t>((std::min)(first->rows(), config_limits::intermediate_size + 1));
    for (const auto& [tail, expected] : {std::pair{"dense_2_feat_in", config_.hidden_size},
                                         {"dense_2_feat_out", config_.dense_features},
                                         {"dense_3_feat_in", config_.dense_features},
                                         {"dense_3_feat_out", config_.hidden_size}})
      if (const auto stated = value(tail); stated.value_or(expected) != expected)
        refuse(key(tail), std::to_string(expected), std::to_string(*stated));
  }

  void read_windows(bool gemma) {
    const auto window = value("attention.sliding_window");
    const gguf_window meaning = family_of(config_.model_type).window;
    if (meaning == gguf_window::refused) {
      if (window.value_or(0) != 0)
        refuse(key("attention.sliding_window"), "0: " + architecture_ + " has no windows here",
               std::to_string(*window));
      return not_used({"attention.sliding_window_pattern", "rope.freq_base_swa"}, architecture_ + " has no windows");
    }
    if (meaning == gguf_window::inert)
      return not_used({"attention.sliding_window", "attention.sliding_window_pattern", "rope.freq_base_swa"},
                      architecture_ + " has no windows");
    const std::uint32_t interval = family_of(config_.model_type).window_interval;
    config_.sliding_window = window.value_or(gemma ? 0 : family_of(config_.model_type).default_window);
    if (interval == 0 && config_.sliding_window >= config_.max_position_embeddings)
      config_.sliding_window = 0;  // a window over all positions
    if (config_.sliding_window == 0)
      return not_used({"attention.sliding_window_pattern", "rope.freq_base_swa"}, "the model has no window");
    config_.sliding_window_pattern = window_pattern(interval);
    if (gemma) config_.rope_local_base_freq = real("rope.freq_base_swa").value_or(10'000.f);
    else if (const auto base = real("rope.freq_base_swa"); base && *base != config_.rope_theta)
      refuse(key("rope.freq_base_swa"), number_text(config_.rope_theta) + " as rope.freq_base", number_text(*base));
    if (config_.sliding_window_pattern == 1 && family_of(config_.model_type).globals_stand)
      refuse(key("attention.sliding_window"), "0 where all layers see all positions",
             std::to_string(config_.sliding_window));
    if (config_.sliding_window_pattern == 1)  // every layer sees all positions
      config_.sliding_window = config_.sliding_window_pattern = 0;
    if (family_of(config_.model_type).unscaled_windows && config_.sliding_window != 0)
      config_.rope_local_base_freq = config_.rope_theta;
    // No key states this: llama.cpp recognises the 27B models, whose scores are scaled otherwise, by their layers.
    if (is_gemma(config_.model_type) && config_.num_hidden_layers == (gemma ? 62u : 46u))
      config_.query_pre_attn_scalar = config_.hidden_size / config_.num_attention_heads;
  }

  /// Reads windows where layer 0 and every n-th layer after it see all positions: n, or one boolean for each layer.
  [[gnu::cold]] void read_windows_from_first() {
    const family& of = family_of(config_.model_type);
    const std::string name = key("attention.sliding_window_pattern");
    const gguf_value* const stored = file_.first().find(name);
    const bool listed = stored != nullptr && stored->type == gguf_type::array;
    const std::vector<bool> windowed = listed ? *file_.array<bool>(name) : std::vector<bool>{};
    std::uint32_t every = of.window_interval;
    if (listed)
      for (every = 1; every < windowed.size() && windowed[every];) ++every;
    else if (stored != nullptr) every = *file_.number<std::uint32_t>(name);
    if (every == 0) refuse(name, "a number from 1", "0");
    config_.rope_local_base_freq = real("rope.freq_base_swa").value_or(10'000.f);
    set_windows_from_first(config_, value("attention.sliding_window").value_or(of.default_window), every);
    if (!listed) return;
    bool alike = windowed.size() == config_.num_hidden_layers;
    for (std::size_t layer = 0; alike && layer < windowed.size(); ++layer)
      alike = windowed[layer] == config_.is_windowed(static_cast<std::uint32_t>(layer));
    if (!alike)
      refuse(name, "false in layer 0 and every " + std::to_string(every) + "th after it, true in the others",
             "another order");
  }

  /// How often a layer sees all keys: the file has a number, or one boolean for each layer.
  std::uint32_t window_pattern(std::uint32_t absent) const {
    const std::string name = key("attention.sliding_window_pattern");
    const gguf_value* stored = file_.first().find(name);
    if (stored == nullptr) return absent;
    if (stored->type != gguf_type::array) return *file_.number<std::uint32_t>(name);
    const std::vector<bool> windowed = *file_.array<bool>(name);
    if (windowed.size() != config_.num_hidden_layers)
      refuse(name, std::to_string(config_.num_hidden_layers) + " values as " + key("block_count"),
             std::to_string(windowed.size()));
    const auto pattern = window_pattern_of(windowed);
    if (!pattern) refuse(name, "false in every n-th layer and true in the others", "another order");
    return *pattern;
  }
};

}  // namespace intaglio::io
