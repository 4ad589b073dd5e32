// SPDX-License-Identifier: MIT
// A GGUF file's config: sizes, experts, multipliers, and a check of every key. Key names: llama.cpp's llama-arch.cpp.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "intaglio/core/family.hpp"
#include "intaglio/io/absent_families.hpp"
#include "intaglio/io/gguf_mixtures.hpp"

namespace intaglio::io {

/// Reads the config from the keys of a GGUF file. @throws file_error for a key that is absent, of another type or out
/// of range
class gguf_config : public gguf_mixtures {
 public:
  explicit gguf_config(const gguf& file) : gguf_mixtures(file) {
    const auto stated = file.value<std::string>("general.architecture");
    if (!stated)
      refuse("general.architecture", "one of: " + std::string(family_names(&family::gguf_names).view()), "no such key");
    if (const auto type = file.value<std::string>("general.type"); type.value_or("model") != "model")
      refuse("general.type", "model", printable(*type, 40));
    architecture_ = *stated;
    const family* const found = family_with(&family::gguf_names, architecture_);
    if (found == nullptr) {
      const auto [expected, shown] = unknown_family(architecture_, &family::gguf_names);
      refuse("general.architecture", expected, shown);
    }
    config_.model_type = found->type;
    read();
    check_config(config_, file.path());
  }

 private:
  /// Reads llama.cpp's pooling: 0 none, 1 mean, 2 the first token's (CLS), 3 the last token's, 4 a reranker's score.
  [[gnu::cold]] void read_pooling() {
    const std::uint32_t stated = value("pooling_type").value_or(0);
    if (stated == 1) pooling_ = pooling::mean;
    if (stated == 2) pooling_ = pooling::first;
    if (stated == 3) pooling_ = pooling::last;
    if (stated == 4 && family_of(config_.model_type).encoder) pooling_ = pooling::first;  // of the first token
    else if (stated > 3)
      warn(key("pooling_type") + ": expected 0 .. 3, found " + std::to_string(stated) +
           ": embeddings are of the last token unless another way is asked for");
  }
  /// Reads the keys of encoders. llama.cpp derives their activation from the architecture.
  [[gnu::cold]] void read_encoder() {
    decoder_config& c = config_;
    const family& of = family_of(c.model_type);
    c.hidden_size = required("embedding_length");
    c.num_hidden_layers = required("block_count");
    c.num_attention_heads = c.num_key_value_heads = required("attention.head_count");
    c.intermediate_size = required("feed_forward_length");
    c.max_position_embeddings = required("context_length");
    c.vocab_size = vocab_size();
    const auto eps = real("attention.layer_norm_epsilon");
    if (!eps) refuse(key("attention.layer_norm_epsilon"), "a number", "no such key");
    c.rms_norm_eps = *eps;
    c.rope_theta = real("rope.freq_base").value_or(10'000.f);
    c.no_rope_layer_interval = of.no_rope_interval;
    c.hidden_act = of.act;
    if (const gguf_tensor* kinds = file_.find_tensor("token_types.weight"); kinds != nullptr)
      c.type_vocab_size = static_cast<std::uint32_t>((std::min<std::uint64_t>)(kinds->rows(), 1u << 20));
    expect("attention.head_count_kv", c.num_attention_heads, " as attention.head_count");
    read_head_dim();
    if (!of.learned_positions) read_rope_scaling(false);
    if (of.globals_first) read_windows_from_first();
    else read_windows(false);
    read_experts();
    read_pooling();
    judge_keys();
  }
  [[gnu::cold]] void read() {
    if (family_of(config_.model_type).layer_norms && family_of(config_.model_type).encoder) return read_encoder();
    const bool bitnet = config_.model_type == architecture::bitnet,
               gemma = is_gemma(config_.model_type) && family_of(config_.model_type).head_norms;
    config_.hidden_size = required("embedding_length");
    config_.num_hidden_layers = required("block_count");
    const family& facts = family_of(config_.model_type);
    if (facts.draft_layers) leave_draft_layers();
    read_optional_parts();
    const bool kinds = facts.kinds_of_layers;
    config_.num_attention_heads = required_for_layers("attention.head_count");
    if (facts.default_expert_width != 0)  // in models whose layers all have experts the experts have no other width
      config_.intermediate_size = for_layers("feed_forward_length").value_or(0);
    else if (!kinds && !facts.single_sublayers) config_.intermediate_size = required_for_layers("feed_forward_length");
    config_.no_rope_layer_interval = facts.no_rope_interval;  // no key states it
    if (facts.recurrent == recurrence::short_conv) read_short_conv();
    else if (facts.attention_beside) read_attention_beside();
    else if (facts.recurrent == recurrence::mamba2) read_state_space();
    else if (!kinds)
      config_.num_key_value_heads = for_layers("attention.head_count_kv").value_or(config_.num_attention_heads);
    config_.max_position_embeddings = required("context_length");
    config_.vocab_size = vocab_size();
    const char* const eps_key = facts.layer_norms ? "attention.layer_norm_epsilon" : "attention.layer_norm_rms_epsilon";
    const auto eps = real(eps_key);
    if (!eps) refuse(key(eps_key), "a number", "no such key");
    config_.rms_norm_eps = *eps;
    config_.rope_theta = real("rope.freq_base").value_or(10'000.f);
    if (kinds) read_kinds();
    else if (facts.latent) read_latent();
    else read_head_dim();
    if (facts.streams) read_streams();
    if (facts.dense_products) read_dense_products();
    // In llama.cpp the architecture "bitnet" is the older model with SiLU, computed in floating point.
    config_.hidden_act = architecture_ == "bitnet" ? activation::silu : facts.act;
    config_.activation_type = architecture_ == "bitnet" ? dtype::f32 : dtype::i8;
    // Files of "bitnet-25" have their embedding a second time as the head; other files may too.
    config_.tie_word_embeddings = architecture_ == "bitnet-25" || file_.find_tensor("output.weight") == nullptr ||
                                  (bitnet && head_is_embedding());
    read_rope_scaling(bitnet);
    if (facts.latent) read_latent_scale();
    if (facts.rope_factors) read_rope_factors();
    if (facts.partial_rotary && facts.gguf_rows_in_pairs) refuse_sections();
    if (facts.scaled_queries) end_at_scaled_queries();
    if (family_of(config_.model_type).partial_rotary) read_longrope();
    if (!kinds && !facts.streams) read_windows(gemma);
    read_experts();
    if (facts.may_be_ternary) read_ternary();
    if (family_of(config_.model_type).recurrent == recurrence::delta_net) read_delta_net();
    if (family_of(config_.model_type).multipliers) read_multipliers();
    if (facts.scaled_logits) read_logit_scale();
    if (family_of(config_.model_type).softcaps) {
      const family& of = family_of(config_.model_type);
      config_.attn_logit_softcapping = real("attn_logit_softcapping").value_or(of.attn_softcap);
      config_.final_logit_softcapping = real("final_logit_softcapping").value_or(of.final_softcap);
    }
    read_pooling();
    judge_keys();
  }

  /// Reads Granite's multipliers; as in llama.cpp, 0 means absent.
  [[gnu::cold]] void read_multipliers() {
    const auto multiplier = [&](std::string_view tail, float absent) {
      const float found = real(tail).value_or(0.f);
      return found == 0.f ? absent : found;
    };
    const bool depth = family_of(config_.model_type).depth_scaled;
    const auto layers = static_cast<float>(config_.num_hidden_layers), width = static_cast<float>(config_.hidden_size);
    config_.embedding_multiplier = multiplier("embedding_scale", depth ? 12.f : 1.f);
    config_.attention_multiplier = multiplier("attention.scale", 0.f);
    config_.residual_multiplier = multiplier("residual_scale", depth ? 1.4f / std::sqrt(layers) : 1.f);
    if (!depth && !file_.value<bool>(key("rope.scaling.finetuned")).value_or(true)) config_.no_rope_layer_interval = 1;
    config_.logits_scaling = multiplier("logit_scale", depth ? width / 256 : 1.f);
  }
  /// Reads the factor of logits. Files without it are not computed: llama.cpp has no default for it.
  void read_logit_scale() {
    const auto scale = real("logit_scale");
    if (!scale || !(*scale > 0.f))
      refuse(key("logit_scale"), "a number above 0", scale ? number_text(*scale) : "no such key");
    config_.logits_scaling = 1 / *scale;
  }
  /// Finds whether the layers are ternary from the codecs of all matrices, and the type of their inputs from the codec:
  /// programs that multiply by I2_S round the inputs to int8, those that multiply by TQ1_0 and TQ2_0 do not. Where a
  /// model differs, `convert` writes a key of its own.
  [[gnu::cold]] void read_ternary() {
    bool all = true, some = false, of_fork = false;  // rows that are no whole blocks have another codec
    for (const gguf_tensor& tensor : file_.tensors()) {
      if (!tensor.name.starts_with("blk.") || tensor.dimensions < 2) continue;
      all = all && is_ternary(tensor.type);
      some = some || is_ternary(tensor.type);
      of_fork = of_fork || tensor.type == dtype::i2_s;
    }
    bool ternary = some && (all || of_fork);
    dtype inputs = of_fork ? dtype::i8 : dtype::f32;
    if (const auto stated = file_.value<std::string>(activation_type_key)) {
      if (*stated != name(dtype::i8) && *stated != name(dtype::f32))
        refuse(std::string(activation_type_key), "i8 or f32", "'" + printable(*stated, 40) + "'");
      ternary = true;
      inputs = *stated == name(dtype::i8) ? dtype::i8 : dtype::f32;
    }
    if (!ternary) return;
    if (config_.num_local_experts != 0)
      refuse(key("expert_count"), "0 beside ternary layers", std::to_string(config_.num_local_experts));
    config_.ternary = true;
    config_.activation_type = inputs;
  }
  /// Checks every key under the architecture's prefix: one that is not read, harmless or neutral is a warning.
  [[gnu::cold]] void judge_keys() {
    const std::string prefix = architecture_ + ".";
    constexpr std::size_t named = 16;
    std::size_t unknown = 0;
    for (const gguf_value& each : file_.first().values()) {
      const gguf_key_rule* rule = nullptr;
      if (each.key.starts_with(prefix)) rule = gguf_key_rule_of(std::string_view(each.key).substr(prefix.size()));
      else if (std::any_of(std::begin(gguf_free_prefixes), std::end(gguf_free_prefixes),
                           [&](std::string_view free) { return each.key.starts_with(free); }))
        continue;
      else if (config_.hidden_act == activation::xielu && is_xielu_key(each.key)) continue;
      if (rule != nullptr && has_use(config_, rule->use)) judge(*rule);
      else if (++unknown <= named)
        warn("key '" + printable(each.key, 100) + (rule != nullptr ? "' is not used" : "' is unknown and not read"));
    }
    if (unknown > named) warn("and " + std::to_string(unknown - named) + " more keys are unknown and not read");
  }
  [[gnu::cold]] void judge(const gguf_key_rule& rule) const {
    if (rule.use <= gguf_key_use::experts) return;
    if (rule.use == gguf_key_use::rms_norm && !family_of(config_.model_type).layer_norms) return;
    if (rule.use == gguf_key_use::shared_expert && config_.shared_expert_intermediate_size != 0) return;
    // In a Granite without experts this key is the width of its FFN, as converters write it.
    if (rule.use == gguf_key_use::shared_expert && family_of(config_.model_type).multipliers &&
        value(rule.tail) == config_.intermediate_size)
      return;
    if (rule.use == gguf_key_use::shared_experts && family_of(config_.model_type).shared_experts) return;
    if (rule.use == gguf_key_use::draft_layers && family_of(config_.model_type).draft_layers) return;
    if (rule.use == gguf_key_use::longrope && config_.rope_scaling.type == rope_type::longrope) return;
    if (rule.use == gguf_key_use::scored_router && config_.num_local_experts != 0 &&
        has_scored_router(family_of(config_.model_type)))
      return;
    if (rule.use == gguf_key_use::expert_groups && family_of(config_.model_type).grouped_experts) return;
    const bool multiplies = rule.use == gguf_key_use::multiplier || rule.use == gguf_key_use::neutral_scale ||
                            rule.use == gguf_key_use::logit_scale;
    if (rule.use == gguf_key_use::logit_scale && has_logit_scale(family_of(config_.model_type))) return;
    if (multiplies && family_of(config_.model_type).multipliers) return;
    if (rule.use == gguf_key_use::neutral_head_dim && family_of(config_.model_type).kinds_of_layers) return;
    const bool streams = family_of(config_.model_type).streams;
    if (rule.use == gguf_key_use::streams && streams) return;
    if (rule.use == gguf_key_use::layer_inputs && (streams || family_of(config_.model_type).kinds_of_layers)) return;
    if (rule.use == gguf_key_use::scaled_queries && family_of(config_.model_type).scaled_queries) return;
    if (rule.use == gguf_key_use::yarn_share && has_yarn_share(family_of(config_.model_type))) return;
    if (rule.use == gguf_key_use::softcap && family_of(config_.model_type).softcaps) return;
    const gguf_value& stored = *file_.first().find(key(rule.tail));
    const float found = stored.type == gguf_type::boolean ? (*file_.value<bool>(stored.key) ? 1.f : 0.f)
                                                          : *file_.number<float>(stored.key);
    float neutral = rule.neutral, absent = rule.absent;
    if (rule.use == gguf_key_use::causal && family_of(config_.model_type).encoder) neutral = absent = 0;
    if (const family& of = family_of(config_.model_type); rule.use == gguf_key_use::parallel && of.layer_norms) {
      if (!of.parallel) return;  // llama.cpp's converter writes true for each Stable LM
      neutral = absent = 1;
    }
    if (rule.use == gguf_key_use::rms_norm) neutral = absent = config_.rms_norm_eps;
    if (rule.use == gguf_key_use::neutral_head_dim) neutral = absent = static_cast<float>(config_.head_dim);
    if (rule.use == gguf_key_use::shared_experts && config_.shared_expert_intermediate_size != 0) neutral = absent = 1;
    if (rule.use == gguf_key_use::neutral_scale) {
      neutral = 1.f / std::sqrt(static_cast<float>(config_.attention_scalar())), absent = 0.f;
      if (std::fabs(found - neutral) <= 1e-5f * neutral) return;
    }
    if (const float yarn = config_.rope_scaling.attention_factor; family_of(config_.model_type).unscaled_windows)
      if (rule.use == gguf_key_use::longrope || rule.use == gguf_key_use::yarn_factor)
        if (config_.rope_scaling.type == rope_type::yarn && std::fabs(found - yarn) <= 1e-5f * yarn) return;
    if (found != neutral && found != absent)
      refuse(stored.key, number_text(neutral) + (absent != neutral ? " or " + number_text(absent) : ""),
             number_text(found));
  }
};

}  // namespace intaglio::io
