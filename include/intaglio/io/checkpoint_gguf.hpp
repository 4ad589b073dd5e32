// SPDX-License-Identifier: MIT
// Opens a GGUF model as a checkpoint: config and vocabulary from its keys. Key names: llama.cpp's llama-arch.cpp.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "intaglio/core/family.hpp"
#include "intaglio/io/checkpoint_data.hpp"
#include "intaglio/io/fused_tensors.hpp"
#include "intaglio/io/gguf.hpp"
#include "intaglio/io/gguf_keys.hpp"
#include "intaglio/io/rope_factors.hpp"

namespace intaglio::io {

/// The config that the keys of a GGUF file state. @throws file_error for a key that is absent, of another type or out
/// of range
class gguf_config {
 public:
  explicit gguf_config(const gguf& file) : file_(file) {
    const auto stated = file.value<std::string>("general.architecture");
    const std::string known = "one of: " + std::string(family_names(&family::gguf_names).view());
    if (!stated) refuse("general.architecture", known, "no such key");
    architecture_ = *stated;
    const family* const found = family_with(&family::gguf_names, architecture_);
    if (found == nullptr) refuse("general.architecture", known, "'" + printable(architecture_, 60) + "'");
    config_.model_type = found->type;
    read();
    check_config(config_, file.path());
  }

  const decoder_config& config() const { return config_; }
  const std::string& stated_architecture() const { return architecture_; }
  const std::vector<std::string>& warnings() const { return warnings_; }
  /// Of embeddings, where the file says it.
  std::optional<intaglio::pooling> pooling() const { return pooling_; }

 private:
  /// llama.cpp's numbers: 0 none, 1 mean, 2 the first token's (CLS), 3 the last token's, 4 a score (reranking).
  void read_pooling() {
    const std::uint32_t stated = value("pooling_type").value_or(0);
    if (stated == 1) pooling_ = pooling::mean;
    if (stated == 2) pooling_ = pooling::first;
    if (stated == 3) pooling_ = pooling::last;
    if (stated > 3)
      warn(key("pooling_type") + ": expected 0 .. 3, found " + std::to_string(stated) +
           ": embeddings are of the last token unless another way is asked for");
  }
  void read() {
    const bool bitnet = config_.model_type == architecture::bitnet, gemma = config_.model_type == architecture::gemma3;
    config_.hidden_size = required("embedding_length");
    config_.num_hidden_layers = required("block_count");
    const bool kinds = family_of(config_.model_type).kinds_of_layers;
    config_.num_attention_heads = required_for_layers("attention.head_count");
    if (!kinds) config_.intermediate_size = required_for_layers("feed_forward_length");
    if (family_of(config_.model_type).recurrent == recurrence::short_conv) read_short_conv();
    else if (!kinds)
      config_.num_key_value_heads = for_layers("attention.head_count_kv").value_or(config_.num_attention_heads);
    config_.max_position_embeddings = required("context_length");
    config_.vocab_size = vocab_size();
    const auto eps = real("attention.layer_norm_rms_epsilon");
    if (!eps) refuse(key("attention.layer_norm_rms_epsilon"), "a number", "no such key");
    config_.rms_norm_eps = *eps;
    config_.rope_theta = real("rope.freq_base").value_or(10'000.f);
    if (kinds) read_kinds();
    else read_head_dim();
    // In llama.cpp the architecture "bitnet" is the older model with SiLU, run in floating point.
    config_.hidden_act = is_gemma(config_.model_type)          ? activation::gelu_tanh
                         : bitnet && architecture_ != "bitnet" ? activation::relu_squared
                                                               : activation::silu;
    config_.activation_type = architecture_ == "bitnet" ? dtype::f32 : dtype::i8;
    // Files of "bitnet-25" hold their embedding a second time as the head, others may.
    config_.tie_word_embeddings = architecture_ == "bitnet-25" || file_.find_tensor("output.weight") == nullptr ||
                                  (bitnet && head_is_embedding());
    read_rope_scaling(bitnet);
    if (config_.model_type == architecture::llama) read_rope_factors();
    if (family_of(config_.model_type).partial_rotary) read_longrope();
    if (!kinds) read_windows(gemma);
    read_experts();
    if (family_of(config_.model_type).may_be_ternary && has_ternary_layers())
      config_.ternary = true, config_.activation_type = dtype::f32;
    if (family_of(config_.model_type).recurrent == recurrence::delta_net) read_delta_net();
    config_.no_rope_layer_interval = family_of(config_.model_type).no_rope_interval;  // no key says it
    if (family_of(config_.model_type).multipliers) read_multipliers();
    if (family_of(config_.model_type).softcaps) {
      const family& of = family_of(config_.model_type);
      config_.attn_logit_softcapping = real("attn_logit_softcapping").value_or(of.attn_softcap);
      config_.final_logit_softcapping = real("final_logit_softcapping").value_or(of.final_softcap);
    }
    read_pooling();
    judge_keys();
  }

  /// Value heads of qwen35 are written in turn: of all key heads the first, then the second.
  void read_delta_net() {
    delta_net_config& delta = config_.delta_net;
    config_.conv_taps = required("ssm.conv_kernel");
    delta.key_heads = required("ssm.group_count");
    delta.value_heads = required("ssm.time_step_rank");
    delta.key_dim = required("ssm.state_size");
    const std::uint32_t inner = required("ssm.inner_size");
    if (delta.value_heads == 0 || inner % delta.value_heads != 0)
      refuse(key("ssm.inner_size"),
             "a multiple of " + key("ssm.time_step_rank") + " " + std::to_string(delta.value_heads),
             std::to_string(inner));
    delta.value_dim = inner / delta.value_heads;
    delta.in_turn = config_.model_type == architecture::qwen35;
    if (config_.num_local_experts != 0)
      config_.shared_expert_intermediate_size = required("expert_shared_feed_forward_length");
    const std::uint32_t layers = config_.num_hidden_layers;
    if (layers > layer_pattern::max_period)
      refuse(key("block_count"), "at most " + std::to_string(layer_pattern::max_period) + " of two kinds",
             std::to_string(layers));
    if (const auto listed = file_.array<bool>(key("attention.recurrent_layers"))) {
      if (listed->size() != layers)
        refuse(key("attention.recurrent_layers"), std::to_string(layers) + " values as " + key("block_count"),
               std::to_string(listed->size()));
      for (std::uint32_t layer = 0; layer < layers; ++layer)
        if ((*listed)[layer]) config_.recurrent_layers.add(layer);
      return;
    }
    const std::uint32_t interval = value("full_attention_interval").value_or(4);
    if (interval == 0) refuse(key("full_attention_interval"), "a number above 0", "0");
    config_.recurrent_layers = layer_set::all_but_every(interval, layers);
  }

  /// Layers without heads of keys have a convolution.
  void read_short_conv() {
    const std::string name = key("attention.head_count_kv");
    const gguf_value* stored = file_.first().find(name);
    const std::uint32_t layers = config_.num_hidden_layers;
    const std::string expected = std::to_string(layers) + " numbers as " + key("block_count") +
                                 ", 0 for layers of convolutions and one other number";
    if (stored == nullptr || stored->type != gguf_type::array)
      refuse(name, expected, stored == nullptr ? "no such key" : "one number");
    const std::vector<std::uint32_t> each = *file_.numbers<std::uint32_t>(name);
    if (each.size() != layers || layers > layer_pattern::max_period)
      refuse(name,
             layers > layer_pattern::max_period
                 ? "at most " + std::to_string(layer_pattern::max_period) + " layers of two kinds"
                 : expected,
             std::to_string(each.size()));
    for (std::uint32_t layer = 0; layer < layers; ++layer) {
      if (each[layer] == 0) config_.recurrent_layers.add(layer);
      else if (config_.num_key_value_heads == 0) config_.num_key_value_heads = each[layer];
      else if (each[layer] != config_.num_key_value_heads)
        refuse(name, expected,
               std::to_string(config_.num_key_value_heads) + " and, in layer " + std::to_string(layer) + ", " +
                   std::to_string(each[layer]));
    }
    config_.conv_taps = required("shortconv.l_cache");
  }

  /// As llama.cpp: what is 0 is not there.
  void read_multipliers() {
    const auto multiplier = [&](std::string_view tail, float absent) {
      const float found = real(tail).value_or(0.f);
      return found == 0.f ? absent : found;
    };
    config_.embedding_multiplier = multiplier("embedding_scale", 1.f);
    config_.attention_multiplier = multiplier("attention.scale", 0.f);
    config_.residual_multiplier = multiplier("residual_scale", 1.f);
    config_.logits_scaling = multiplier("logit_scale", 1.f);
  }
  /// Codes of ternary matrices say that the layers are: no key does.
  bool has_ternary_layers() const {
    const auto tensors = file_.tensors();
    return std::any_of(tensors.begin(), tensors.end(), [](const gguf_tensor& tensor) {
      return tensor.name.starts_with("blk.") &&
             (tensor.type == dtype::i2_s || tensor.type == dtype::tq1_0 || tensor.type == dtype::tq2_0);
    });
  }
  void read_experts() {
    const auto experts = value("expert_count"), used = value("expert_used_count");
    const mixtures of = family_of(config_.model_type).experts;
    if (experts.value_or(0) == 0) {
      if (of == mixtures::all) refuse(key("expert_count"), "a number above 0", experts ? "0" : "no such key");
      if (used.value_or(0) != 0) refuse(key("expert_used_count"), "0 without expert_count", std::to_string(*used));
      return;
    }
    if (of == mixtures::none) refuse(key("expert_count"), "0", std::to_string(*experts));
    config_.num_local_experts = *experts;
    // Where dense layers have a width of their own, experts have another key; all layers here have experts.
    if (const auto width = value("expert_feed_forward_length")) config_.intermediate_size = *width;
    else if (of == mixtures::all) refuse(key("expert_feed_forward_length"), "a number", "no such key");
    config_.num_experts_per_tok = required("expert_used_count");
  }

  /// Every key under the architecture's prefix is read, harmless or at its neutral value; the others are named.
  void judge_keys() {
    const std::string prefix = architecture_ + ".";
    constexpr std::size_t named = 16;
    std::size_t unknown = 0;
    for (const gguf_value& each : file_.first().values()) {
      const gguf_key_rule* rule = nullptr;
      if (each.key.starts_with(prefix)) rule = gguf_key_rule_of(std::string_view(each.key).substr(prefix.size()));
      else if (std::any_of(std::begin(gguf_free_prefixes), std::end(gguf_free_prefixes),
                           [&](std::string_view free) { return each.key.starts_with(free); }))
        continue;
      if (rule != nullptr) judge(*rule);
      else if (++unknown <= named) warn("key '" + printable(each.key, 100) + "' is unknown and not read");
    }
    if (unknown > named) warn("and " + std::to_string(unknown - named) + " more keys are unknown and not read");
  }
  void judge(const gguf_key_rule& rule) const {
    if (rule.use == gguf_key_use::read || rule.use == gguf_key_use::harmless) return;
    if (rule.use == gguf_key_use::shared_expert && config_.model_type == architecture::qwen3next) return;
    if (rule.use == gguf_key_use::longrope && config_.rope_scaling.type == rope_type::longrope) return;
    const bool multiplies = rule.use == gguf_key_use::multiplier || rule.use == gguf_key_use::neutral_scale;
    if (multiplies && family_of(config_.model_type).multipliers) return;
    if ((rule.use == gguf_key_use::kinds || rule.use == gguf_key_use::neutral_head_dim) &&
        family_of(config_.model_type).kinds_of_layers)
      return;
    if (rule.use == gguf_key_use::softcap && family_of(config_.model_type).softcaps) return;
    const gguf_value& stored = *file_.first().find(key(rule.tail));
    const float found = stored.type == gguf_type::boolean ? (*file_.value<bool>(stored.key) ? 1.f : 0.f)
                                                          : *file_.number<float>(stored.key);
    float neutral = rule.neutral, absent = rule.absent;
    if (rule.use == gguf_key_use::neutral_head_dim) neutral = absent = static_cast<float>(config_.head_dim);
    if (rule.use == gguf_key_use::neutral_scale) {
      neutral = 1.f / std::sqrt(static_cast<float>(config_.attention_scalar())), absent = 0.f;
      if (std::fabs(found - neutral) <= 1e-5f * neutral) return;
    }
    if (found != neutral && found != absent)
      refuse(stored.key, number_text(neutral) + (absent != neutral ? " or " + number_text(absent) : ""),
             number_text(found));
  }

  std::uint32_t vocab_size() {
    const gguf_tensor* embedding = file_.find_tensor("token_embd.weight");
    if (const auto stated = value("vocab_size")) return *stated;
    if (embedding == nullptr) refuse(key("vocab_size"), "a number", "no such key");
    if (embedding->rows() > config_limits::vocab_size)
      refuse("rows of token_embd.weight", "at most " + std::to_string(config_limits::vocab_size),
             std::to_string(embedding->rows()));
    return static_cast<std::uint32_t>(embedding->rows());
  }
  bool head_is_embedding() const {
    const gguf_tensor *embedding = file_.find_tensor("token_embd.weight"), *head = file_.find_tensor("output.weight");
    if (embedding == nullptr || embedding->type != head->type || embedding->shape != head->shape) return false;
    std::vector<std::byte> one(std::size_t{1} << 20), other(one.size());
    for (std::uint64_t at = 0; at < head->bytes; at += one.size()) {
      const auto some = static_cast<std::size_t>((std::min<std::uint64_t>)(one.size(), head->bytes - at));
      file_.parts()[embedding->part].file().read(embedding->offset + at, std::span(one).first(some));
      file_.parts()[head->part].file().read(head->offset + at, std::span(other).first(some));
      if (!std::equal(one.begin(), one.begin() + static_cast<std::ptrdiff_t>(some), other.begin())) return false;
    }
    return true;
  }
  /// Heads, caches and FFNs by kind of layer, Gemma 4's.
  [[gnu::cold]] void read_kinds() {
    decoder_config& c = config_;
    c.attention_multiplier = 1.f;
    c.num_kv_shared_layers = value("attention.shared_kv_layers").value_or(0);
    c.hidden_size_per_layer_input = value("embedding_length_per_layer_input").value_or(0);
    c.sliding_window = required("attention.sliding_window");
    c.rope_local_base_freq = real("rope.freq_base_swa").value_or(10'000.f);
    const std::string pattern = key("attention.sliding_window_pattern");
    const auto windowed = file_.array<bool>(pattern);
    if (!windowed || windowed->size() != c.num_hidden_layers || !set_windows(c, *windowed))
      refuse(pattern, std::to_string(c.num_hidden_layers) + " truths as " + key("block_count"),
             windowed ? std::to_string(windowed->size()) : "no such list");
    c.global_head_dim = required("attention.key_length");
    c.head_dim = required("attention.key_length_swa");
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
  /// A number of the layers of a kind and that of the others, 0 where they have the same.
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
  /// Pairs that turn are divided by 1, the others by a number so large that they stand.
  [[gnu::cold]] void read_turning_pairs() {
    const gguf_tensor* tensor = file_.find_tensor("rope_freqs.weight");
    if (tensor == nullptr) return;
    const mapped_file& file = file_.parts()[tensor->part].file();
    const std::uint32_t pairs = config_.global_head_dim / 2;
    if (tensor->type != dtype::f32 || tensor->bytes != std::uint64_t{pairs} * sizeof(float))
      throw file_error(file.path(), tensor->offset, "tensor 'rope_freqs.weight'",
                       std::to_string(pairs) + " values of f32",
                       std::to_string(tensor->bytes) + " bytes of " + std::string(name(tensor->type)));
    std::vector<float> factors(pairs);
    file.read(tensor->offset, std::as_writable_bytes(std::span(factors)));
    const auto turning = std::find_if(factors.begin(), factors.end(), [](float f) { return f != 1.f; });
    const auto other = std::find_if(turning, factors.end(), [](float f) { return !(f >= 1e20f); });
    if (turning == factors.begin() || other != factors.end())
      throw file_error(file.path(), tensor->offset, "tensor 'rope_freqs.weight'",
                       "ones, and numbers from 1e20 on behind them",
                       other != factors.end() ? number_text(*other) : number_text(factors.front()));
    if (turning != factors.end()) config_.global_turning_pairs = static_cast<std::uint32_t>(turning - factors.begin());
  }
  void read_head_dim() {
    const std::uint32_t heads = config_.num_attention_heads;
    const auto length = value("attention.key_length"), values = value("attention.value_length");
    if (length) {
      config_.head_dim = *length;
    } else {
      if (heads == 0 || config_.hidden_size % heads != 0)
        refuse(key("attention.head_count"), "a divisor of embedding_length " + std::to_string(config_.hidden_size),
               std::to_string(heads));
      config_.head_dim = config_.hidden_size / heads;
    }
    const std::string wide = std::to_string(config_.head_dim);
    if (values && *values != config_.head_dim)
      refuse(key("attention.value_length"),
             wide + (length ? " as attention.key_length" : " as embedding_length / attention.head_count"),
             std::to_string(*values));
    if (const auto rotated = value("rope.dimension_count");
        rotated && *rotated < config_.head_dim && family_of(config_.model_type).partial_rotary)
      config_.rotary_dim = *rotated;
    else if (rotated && *rotated != config_.head_dim)
      refuse(key("rope.dimension_count"), wide + " as the heads are wide", std::to_string(*rotated));
  }
  /// As llama.cpp: without a type the scaling is linear, and rope.scale_linear is the factor's older key.
  void read_rope_scaling(bool bitnet) {
    const std::string type = file_.value<std::string>(key("rope.scaling.type")).value_or("linear");
    const std::string_view stated = real("rope.scaling.factor") ? "rope.scaling.factor" : "rope.scale_linear";
    const float factor = real(stated).value_or(1.f);
    if (type != "none" && type != "linear" && type != "yarn")
      refuse(key("rope.scaling.type"), "none, linear or yarn", "'" + printable(type, 40) + "'");
    if (factor == 1.f) return;
    if (type == "none") return warn("key '" + key(stated) + "' is not used: " + key("rope.scaling.type") + " is none");
    if (!std::isfinite(factor) || factor < 1.f) refuse(key(stated), "a finite number from 1", number_text(factor));
    if (bitnet) refuse(key(stated), "1: a BitNet is not scaled", number_text(factor));
    config_.rope_scaling = {.type = rope_type::linear, .factor = factor};
    if (type == "yarn") read_yarn(factor);
  }
  /// As llama.cpp, whose ramp begins and ends with whole pairs.
  void read_yarn(float factor) {
    config_.rope_scaling = {.type = rope_type::yarn,
                            .factor = factor,
                            .low_freq_factor = real("rope.scaling.yarn_beta_slow").value_or(1.f),
                            .high_freq_factor = real("rope.scaling.yarn_beta_fast").value_or(32.f),
                            .original_max_position_embeddings =
                                value("rope.scaling.original_context_length").value_or(config_.max_position_embeddings),
                            .attention_factor = yarn_attention_factor(factor)};
    if (const auto mixed = real("rope.scaling.yarn_ext_factor"); mixed && *mixed == 0.f)
      refuse(key("rope.scaling.yarn_ext_factor"), "no such key, or -1, with rope.scaling.type yarn", "0");
  }
  /// Llama 3.1's scaling comes as what each inverse frequency is divided by.
  [[gnu::cold]] void read_rope_factors() {
    const gguf_tensor* tensor = file_.find_tensor("rope_freqs.weight");
    if (tensor == nullptr) return;
    const mapped_file& file = file_.parts()[tensor->part].file();
    if (tensor->type != dtype::f32 || tensor->bytes != std::uint64_t{config_.head_dim} / 2 * sizeof(float))
      throw file_error(file.path(), tensor->offset, "tensor 'rope_freqs.weight'",
                       std::to_string(config_.head_dim / 2) + " values of f32",
                       std::to_string(tensor->bytes) + " bytes of " + std::string(name(tensor->type)));
    std::vector<float> factors(static_cast<std::size_t>(tensor->bytes / sizeof(float)));
    file.read(tensor->offset, std::as_writable_bytes(std::span(factors)));
    const auto scaling = llama3_scaling_of(factors, config_.rope_theta);
    if (scaling && scaling->type == rope_type::plain) return;  // ones change nothing
    if (scaling && config_.rope_scaling.type != rope_type::plain)
      throw file_error(file.path(), tensor->offset, "tensor 'rope_freqs.weight' beside " + key("rope.scaling.factor"),
                       "one of the two", scaling_text(config_.rope_scaling) + " and " + scaling_text(*scaling));
    if (scaling) config_.rope_scaling = *scaling;
    else
      throw file_error(file.path(), tensor->offset, "tensor 'rope_freqs.weight'",
                       "factors of Llama 3.1's RoPE scaling (low_freq_factor 1, high_freq_factor 4)",
                       "others for rope_theta " + number_text(config_.rope_theta));
  }
  /// Factors of longrope are two tensors; without them nothing is scaled.
  [[gnu::cold]] void read_longrope() {
    const std::uint32_t pairs = (config_.rotary_dim != 0 ? config_.rotary_dim : config_.head_dim) / 2;
    bool any = false;
    for (const auto& [tail, to] : {std::pair{"rope_factors_short.weight", &config_.rope_factors.short_factor},
                                   {"rope_factors_long.weight", &config_.rope_factors.long_factor}}) {
      const gguf_tensor* tensor = file_.find_tensor(tail);
      if (tensor == nullptr && !any) continue;
      any = true;
      if (tensor == nullptr || tensor->type != dtype::f32 || tensor->bytes != std::uint64_t{pairs} * sizeof(float) ||
          pairs > longrope_factors::most)
        throw file_error(file_.path(), tensor == nullptr ? std::nullopt : std::optional(tensor->offset),
                         "tensor '" + std::string(tail) + "'",
                         std::to_string((std::min<std::size_t>)(pairs, longrope_factors::most)) + " values of f32",
                         tensor == nullptr
                             ? "none"
                             : std::to_string(tensor->bytes) + " bytes of " + std::string(name(tensor->type)));
      file_.parts()[tensor->part].file().read(tensor->offset, std::as_writable_bytes(std::span(*to).first(pairs)));
    }
    if (!any) return;
    if (file_.find_tensor("rope_factors_short.weight") == nullptr)
      throw file_error(file_.path(), std::nullopt, "tensor 'rope_factors_short.weight'",
                       std::to_string(pairs) + " values of f32", "none");
    rope_scaling_config& out = config_.rope_scaling;
    out = {.type = rope_type::longrope};
    out.original_max_position_embeddings =
        value("rope.scaling.original_context_length").value_or(config_.max_position_embeddings);
    out.attention_factor =
        real("rope.scaling.attn_factor")
            .value_or(longrope_attention_factor(config_.max_position_embeddings, out.original_max_position_embeddings));
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
      config_.sliding_window = 0;  // all of them
    if (config_.sliding_window == 0)
      return not_used({"attention.sliding_window_pattern", "rope.freq_base_swa"}, "the model has no window");
    config_.sliding_window_pattern = window_pattern(interval);
    if (gemma) config_.rope_local_base_freq = real("rope.freq_base_swa").value_or(10'000.f);
    else if (const auto base = real("rope.freq_base_swa"); base && *base != config_.rope_theta)
      refuse(key("rope.freq_base_swa"), number_text(config_.rope_theta) + " as rope.freq_base", number_text(*base));
    if (config_.sliding_window_pattern == 1)  // every layer sees all
      config_.sliding_window = config_.sliding_window_pattern = 0;
    // No key says it: llama.cpp knows the 27B models, whose scores are scaled otherwise, by their layers.
    if (is_gemma(config_.model_type) && config_.num_hidden_layers == (gemma ? 62u : 46u))
      config_.query_pre_attn_scalar = config_.hidden_size / config_.num_attention_heads;
  }
  /// How often a layer sees all keys: a number, or for each layer whether it has the window.
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
  [[gnu::cold]] void not_used(std::initializer_list<std::string_view> tails, std::string_view why) {
    for (const std::string_view tail : tails)
      if (file_.first().find(key(tail)) != nullptr) warn("key '" + key(tail) + "' is not used: " + std::string(why));
  }

  std::string key(std::string_view tail) const { return architecture_ + "." + std::string(tail); }
  std::optional<std::uint32_t> value(std::string_view tail) const { return file_.number<std::uint32_t>(key(tail)); }
  std::optional<float> real(std::string_view tail) const { return file_.value<float>(key(tail)); }
  std::uint32_t required(std::string_view tail) const {
    const auto found = value(tail);
    if (!found) refuse(key(tail), "a number", "no such key");
    return *found;
  }
  /// A number that all layers share: once, or once for each layer.
  std::optional<std::uint32_t> for_layers(std::string_view tail) const {
    const std::string name = key(tail);
    const gguf_value* stored = file_.first().find(name);
    if (stored == nullptr || stored->type != gguf_type::array) return value(tail);
    const std::vector<std::uint32_t> each = *file_.numbers<std::uint32_t>(name);
    if (each.size() != config_.num_hidden_layers || each.empty())
      refuse(name, std::to_string(config_.num_hidden_layers) + " numbers as " + key("block_count"),
             std::to_string(each.size()));
    const auto other = std::find_if(each.begin(), each.end(), [&](std::uint32_t n) { return n != each.front(); });
    if (other != each.end())
      refuse(name, "one number for all layers",
             std::to_string(each.front()) + " and, in layer " + std::to_string(other - each.begin()) + ", " +
                 std::to_string(*other));
    return each.front();
  }
  std::uint32_t required_for_layers(std::string_view tail) const {
    const auto found = for_layers(tail);
    if (!found) refuse(key(tail), "a number", "no such key");
    return *found;
  }
  void warn(const std::string& line) { warnings_.push_back(in_file(file_.path(), line)); }
  [[noreturn]] void refuse(std::string_view what, std::string expected, std::string found) const {
    const gguf_value* at = file_.first().find(what);
    throw file_error(file_.path(), at == nullptr ? std::nullopt : std::optional(at->offset),
                     "key '" + std::string(what) + "'", std::move(expected), std::move(found));
  }

  const gguf& file_;
  std::string architecture_;
  decoder_config config_;
  std::optional<intaglio::pooling> pooling_;
  std::vector<std::string> warnings_;
};

/// Phi-3's special tokens take the white space behind them along, which no key says: llama.cpp knows the model by its
/// name.
inline void add_phi3_rules(std::string name, vocabulary& out) {
  for (char& c : name)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + 32);
  if (name.find("phi-3") == std::string::npos && name.find("phi3") == std::string::npos) return;
  for (std::size_t id = 0; id < out.tokens.size() && id < out.token_types.size(); ++id) {
    const auto type = static_cast<token_type>(out.token_types[id]);
    const std::string& text = out.tokens[id];
    const bool special = type == token_type::control || type == token_type::user_defined;
    if (special && text != "<unk>" && text != "<s>" && text != "<|endoftext|>")
      out.added.push_back({.id = static_cast<std::int64_t>(id), .rstrip = true});
  }
}

/// The tokenizer.* keys, with what llama.cpp takes for keys that are absent. @throws file_error for a key of another
/// type
[[gnu::cold]] inline vocabulary gguf_vocabulary(const gguf& file) {
  vocabulary out;
  out.source = file.path();
  out.architecture = file.value<std::string>("general.architecture").value_or("");
  out.model = file.value<std::string>("tokenizer.ggml.model").value_or("");
  out.pre_tokenizer = file.value<std::string>("tokenizer.ggml.pre");
  out.tokens = file.array<std::string>("tokenizer.ggml.tokens").value_or(std::vector<std::string>{});
  out.scores = file.array<float>("tokenizer.ggml.scores").value_or(std::vector<float>{});
  out.token_types = file.array<std::int32_t>("tokenizer.ggml.token_type").value_or(std::vector<std::int32_t>{});
  out.merges = file.array<std::string>("tokenizer.ggml.merges").value_or(std::vector<std::string>{});
  const auto id = [&](std::string_view key) -> std::optional<std::int64_t> {
    return file.number<std::int64_t>("tokenizer.ggml." + std::string(key));
  };
  out.bos_id = id("bos_token_id");
  out.eos_id = id("eos_token_id");
  out.eot_id = id("eot_token_id");
  out.eom_id = id("eom_token_id");
  out.unknown_id = id("unknown_token_id");
  out.padding_id = id("padding_token_id");
  for (const std::uint32_t end :
       file.array<std::uint32_t>(std::string(end_ids_key)).value_or(std::vector<std::uint32_t>{}))
    out.end_ids.push_back(end);
  out.add_bos = file.value<bool>("tokenizer.ggml.add_bos_token");
  out.add_eos = file.value<bool>("tokenizer.ggml.add_eos_token");
  out.add_space_prefix = file.value<bool>("tokenizer.ggml.add_space_prefix");
  out.remove_extra_whitespaces = file.value<bool>("tokenizer.ggml.remove_extra_whitespaces");
  out.chat_template = file.value<std::string>("tokenizer.chat_template");
  if (out.model == "gemma4") {  // merges in their order, as in tokenizer.json; the scores say nothing
    out.model = "llama";
    out.scores.clear();
  } else if (out.model == "llama" && out.tokens.size() > 2) {  // llama.cpp's defaults for such a vocabulary
    if (!out.unknown_id) out.unknown_id = 0;
    if (!out.bos_id) out.bos_id = 1;
    if (!out.eos_id) out.eos_id = 2;
  }
  add_phi3_rules(file.value<std::string>("general.name").value_or(""), out);
  return out;
}

/// Turns an opened GGUF into a checkpoint.
[[gnu::cold]] inline checkpoint checkpoint_from_gguf(gguf file, const checkpoint_options& options) {
  checkpoint_builder builder(file.path(), options);
  const gguf_config config(file);
  builder.config() = config.config();
  builder.stated_architecture() = config.stated_architecture();
  builder.pooling() = config.pooling();
  for (const std::string& line : file.warnings()) builder.add_warning(line);
  for (const std::string& line : config.warnings()) builder.add_warning(line);
  if (const gguf_value* tokens = file.first().find("tokenizer.ggml.tokens");
      tokens != nullptr && tokens->count > config.config().vocab_size)
    throw file_error(file.path(), tokens->offset, "tokenizer.ggml.tokens has more tokens than the embedding has rows",
                     "at most " + std::to_string(config.config().vocab_size), std::to_string(tokens->count));
  builder.vocabulary() = gguf_vocabulary(file);
  const std::vector<gguf_tensor> tensors = file.tensors();
  std::vector<const mapped_file*> files;
  for (gguf_part& part : std::move(file).release_parts())
    files.push_back(builder.adopt(std::move(part).release_file()));
  for (const gguf_tensor& tensor : tensors) {
    checkpoint_tensor out;
    out.stored = {tensor.name,        tensor.type,   tensor.rows(), tensor.columns(),
                  files[tensor.part], tensor.offset, tensor.bytes};
    out.stored_name = tensor.name;
    out.dimensions = tensor.dimensions;
    if (out.dimensions == 2 && out.stored.rows == config.config().num_local_experts &&
        tensor.name.ends_with("_exps.bias")) {  // one behind the other
      out.dimensions = 1;
      out.stored.columns *= std::exchange(out.stored.rows, 1);
    }
    add_parts(builder, std::move(out), [&](checkpoint_tensor& each) {
      const decoder_config& c = config.config();
      if (family_of(c.model_type).gguf_rows_in_pairs || c.rotary_dim != 0) each.rows_in_pairs = c.head_dim;
      each.rotary_dim = c.rotary_dim;
    });
  }
  return std::move(builder).finish();
}

inline checkpoint checkpoint::open_gguf(const std::filesystem::path& path, const checkpoint_options& options) {
  return checkpoint_from_gguf(gguf::open(path), options);
}
inline checkpoint checkpoint::open_gguf(mapped_file file, const checkpoint_options& options) {
  return checkpoint_from_gguf(gguf::from_file(std::move(file)), options);
}
inline checkpoint checkpoint::open_gguf(std::span<const std::byte> bytes, const std::string& name,
                                        const checkpoint_options& options) {
  return checkpoint_from_gguf(gguf::from_memory(bytes, name), options);
}

}  // namespace intaglio::io
