// SPDX-License-Identifier: MIT
// Reads the layers of hybrids in config.json, with Mamba-2, attention, FFNs or mixtures of experts: Granite 4.0 H,
// Nemotron-H and Falcon-H1.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "intaglio/core/family.hpp"
#include "intaglio/io/hf_layers.hpp"

namespace intaglio::io {

/// Reads the kinds of a hybrid's layers, and their sizes.
class hf_hybrids : public hf_layers {
 public:
  using hf_layers::hf_layers;

 protected:
  /// The kinds of layers as letters of Nemotron-H's hybrid_override_pattern; lists are another spelling of it. M is
  /// recurrent, * attention, - only an FFN, E only a mixture of experts. Empty where the file states none.
  [[gnu::cold]] std::string hybrid_kinds(const located_json& text) const {
    const located_json newer = text["layer_types"], older = text["layers_block_type"],
                       types = newer.present() ? newer : older, letters = text["hybrid_override_pattern"];
    const bool sublayers = family_of(out_.config.model_type).single_sublayers;
    const auto kinds_of = [&](const located_json& list) {
      std::string out;
      for (const located_json& layer : list.elements()) {
        const std::string& kind = layer.text();
        if (kind == "mamba" || kind == "linear_attention") out += 'M';
        else if (kind == "attention" || kind == "full_attention") out += '*';
        else if (kind == "mlp" && sublayers) out += '-';
        else if (kind == "moe" && sublayers) out += 'E';
        else layer.refuse(sublayers ? "mamba, attention, mlp or moe" : "mamba or attention");
      }
      return out;
    };
    const std::string listed = kinds_of(types);
    if (newer.present() && older.present() && kinds_of(older) != listed)
      document_.refuse(older.where() + " and " + newer.where(), "the same kinds of layers", "others");
    if (!sublayers || !letters.present()) return listed;
    if (const auto other = letters.text().find_first_not_of("M*-E"); other != std::string::npos)
      document_.refuse(letters.where(), "M, *, - and E, a letter a layer",
                       "'" + printable(letters.text().substr(other, 1)) + "' for layer " + std::to_string(other));
    if (types.present() && listed != letters.text())
      document_.refuse(letters.where() + " and " + types.where(), "the same kinds of layers", "others");
    return letters.text();
  }

  /// Whether a GraniteMoeHybridConfig of transformers has no layer with a state. Then it is a Granite, or one with
  /// experts.
  bool is_dense_hybrid(const located_json& text) const { return hybrid_kinds(text).find('M') == std::string::npos; }

  [[gnu::cold]] void read_dense_hybrid(const located_json& text) {
    if (hybrid_kinds(text).empty()) document_.refuse("layer_types", "attention in all layers", "no such key");
    if (text["position_embedding_type"].text_or("none") != "rope")
      document_.refuse("position_embedding_type", "rope",
                       "'" + printable(text["position_embedding_type"].text_or("none"), 40) + "'");
    if (out_.config.model_type == architecture::granite)
      out_.config.intermediate_size = size(text["shared_intermediate_size"]);
  }

  /// Reads Mamba-2 beside attention. Defaults: transformers' GraniteMoeHybridConfig and NemotronHConfig.
  [[gnu::cold]] void read_state_space(const located_json& text) {
    decoder_config& c = out_.config;
    const bool sublayers = family_of(c.model_type).single_sublayers;
    const std::string kinds = hybrid_kinds(text);
    if (kinds.size() != c.num_hidden_layers || kinds.size() > layer_pattern::max_period)
      document_.refuse(sublayers ? "hybrid_override_pattern" : "layer_types",
                       std::to_string((std::min)(c.num_hidden_layers, layer_pattern::max_period)) + " layers",
                       std::to_string(kinds.size()));
    for (std::uint32_t layer = 0; layer < c.num_hidden_layers; ++layer) {
      if (kinds[layer] == 'M') c.recurrent_layers.add(layer);
      if (kinds[layer] == '-' || kinds[layer] == 'E') c.ffn_layers.add(layer);
      if (kinds[layer] == 'E') c.expert_layers.add(layer);
    }
    if (!c.expert_layers.empty()) read_expert_layers(text);
    c.conv_taps = size_or(text[sublayers ? "conv_kernel" : "mamba_d_conv"], 4);
    const located_json heads = text[sublayers ? "mamba_num_heads" : "mamba_n_heads"];
    c.delta_net = {.key_heads = sublayers ? size_or(text["n_groups"], 8) : size_or(text["mamba_n_groups"], 1),
                   .value_heads = heads.present() ? size(heads) : 128,
                   .key_dim = sublayers ? size_or(text["ssm_state_size"], 128) : size_or(text["mamba_d_state"], 256),
                   .value_dim = sublayers ? size_or(text["mamba_head_dim"], 64) : granite_head(text)};
    if (c.delta_net.key_heads == 0 || c.delta_net.value_heads % c.delta_net.key_heads != 0)
      document_.refuse(heads.where(), "a multiple of the groups of heads, " + std::to_string(c.delta_net.key_heads),
                       std::to_string(c.delta_net.value_heads));
    for (const char* key : {"mamba_conv_bias", "use_conv_bias"})
      if (!text[key].boolean_or(true)) text[key].refuse("true");
    if (const located_json act = text["mamba_hidden_act"]; act.text_or("silu") != "silu") act.refuse("silu");
    if (sublayers && c.hidden_act != activation::relu_squared) text["mlp_hidden_act"].refuse("relu2");
    const bool turns = !sublayers && text["position_embedding_type"].text_or("none") == "rope";
    c.no_rope_layer_interval = turns ? 0 : 1;
    expect_open_steps(text);
  }
  /// Refuses bounds of the steps of states.
  [[gnu::cold]] void expect_open_steps(const located_json& text) const {
    const auto limits = text["time_step_limit"].elements();
    if (limits.empty()) return;
    constexpr double never = 1e18;  // far above any step of a working model
    const bool open =
        limits.size() == 2 && limits[0].number() <= 0 &&
        (limits[1].is_object() ? limits[1]["__float__"].text_or("") == "Infinity" : limits[1].number() >= never);
    if (!open) text["time_step_limit"].refuse("0 and Infinity");
  }
  /// Reads mixtures in layers that have nothing else. The width of their shared expert is separate from the number of
  /// shared experts.
  [[gnu::cold]] void read_expert_layers(const located_json& text) {
    decoder_config& c = out_.config;
    if (const located_json latent = text["moe_latent_size"]; latent.present()) latent.refuse("none");
    for (const char* key : {"n_shared_experts", "n_group", "topk_group"})
      if (const located_json stated = text[key]; stated.present() && stated.natural() != 1) stated.refuse("1");
    if (c.has_dense_layers()) c.dense_intermediate_size = c.intermediate_size;
    c.intermediate_size = size(text["moe_intermediate_size"]);
    c.shared_expert_intermediate_size = size(text["moe_shared_expert_intermediate_size"]);
    c.num_local_experts = size(text["n_routed_experts"]);
    if (c.num_local_experts == 0) text["n_routed_experts"].refuse("a number above 0");
    c.num_experts_per_tok = size(text["num_experts_per_tok"]);
    c.norm_topk_prob = text["norm_topk_prob"].boolean_or(true);
    c.use_expert_bias = true;
    if (const located_json factor = text["routed_scaling_factor"]; factor.present())
      c.routed_scaling_factor = factor.real();
  }
  /// Reads Mamba-2 beside attention. Defaults: transformers' FalconH1Config.
  [[gnu::cold]] void read_attention_beside(const located_json& text) {
    decoder_config& c = out_.config;
    const located_json inner = text["mamba_d_ssm"], wide = text["mamba_d_head"];
    const std::uint32_t heads = size_or(text["mamba_n_heads"], 128), expand = size_or(text["mamba_expand"], 2);
    if (expand > 64) text["mamba_expand"].refuse("at most 64");
    const std::uint32_t values = inner.present() ? size(inner) : inner.is_null() ? expand * c.hidden_size : 1024;
    if (heads == 0 || values % heads != 0)
      document_.refuse("mamba_n_heads", "a divisor of mamba_d_ssm " + std::to_string(values), std::to_string(heads));
    if (wide.present() && !(wide.is_string() && wide.text() == "auto") && size(wide) != values / heads)
      wide.refuse(std::to_string(values / heads) + " as mamba_d_ssm / mamba_n_heads");
    c.conv_taps = size_or(text["mamba_d_conv"], 4);
    c.delta_net = {.key_heads = size_or(text["mamba_n_groups"], 1),
                   .value_heads = heads,
                   .key_dim = size_or(text["mamba_d_state"], 256),
                   .value_dim = values / heads};
    c.mamba_rms_norm = text["mamba_rms_norm"].boolean_or(false);
    if (c.mamba_rms_norm && text["mamba_norm_before_gate"].boolean_or(true))
      document_.refuse("mamba_norm_before_gate", "false beside mamba_rms_norm", "true");
    if (!text["mamba_conv_bias"].boolean_or(true)) text["mamba_conv_bias"].refuse("true");
    if (c.hidden_act != activation::silu) text["hidden_act"].refuse("silu");
    expect_open_steps(text);
  }

  /// Reads Falcon-H1's multipliers, which become factors of matrices. A tied head is the embedding with its factor;
  /// what the head's own factor differs by divides the logits.
  [[gnu::cold]] void read_weight_multipliers(const located_json& text) {
    decoder_config& c = out_.config;
    const auto one = [&](const char* key) {
      if (text[key].present() && !(text[key].number() > 0)) text[key].refuse("a number above 0");
      return text[key].present() ? text[key].number() : 1.;
    };
    const auto several = [&](const char* key, std::size_t count) {
      std::vector<double> out;
      for (const located_json& each : text[key].elements()) {
        if (!(each.number() > 0)) each.refuse("a number above 0");
        out.push_back(each.number());
      }
      if (out.empty()) out.resize(count, 1.);
      if (out.size() != count) text[key].refuse(std::to_string(count) + " numbers");
      return out;
    };
    const double embedding = one("embedding_multiplier"), head = one("lm_head_multiplier"),
                 reads = one("attention_in_multiplier"), scans = one("ssm_in_multiplier");
    const auto of_states = several("ssm_multipliers", 5), of_units = several("mlp_multipliers", 2);
    const std::uint64_t keys = std::uint64_t{c.delta_net.key_heads} * c.delta_net.key_dim;
    const auto add = [&](std::string_view tensor, double factor) {
      out_.factors.push_back({tensor, {{0, static_cast<float>(factor)}}});
    };
    add("token_embd.weight", embedding), add("output.weight", head);
    add("attn_q.weight", reads), add("attn_k.weight", reads * one("key_multiplier")), add("attn_v.weight", reads);
    add("attn_output.weight", one("attention_out_multiplier"));
    add("ssm_in_gate.weight", scans * of_states[0]), add("ssm_in_dt.weight", scans * of_states[4]);
    out_.factors.push_back({"ssm_in_xbc.weight",
                            {{c.delta_net.value_size(), static_cast<float>(scans * of_states[1])},
                             {keys, static_cast<float>(scans * of_states[2])},
                             {keys, static_cast<float>(scans * of_states[3])}}});
    add("ssm_out.weight", one("ssm_out_multiplier"));
    add("ffn_gate.weight", of_units[0]), add("ffn_down.weight", of_units[1]);
    if (out_.tie_word_embeddings.value_or(false)) c.logits_scaling = static_cast<float>(embedding / head);
  }

  /// The width of a head: mamba_d_head, which mamba_expand determines too.
  [[gnu::cold]] std::uint32_t granite_head(const located_json& text) const {
    const located_json wide = text["mamba_d_head"];
    const std::uint64_t expand = text["mamba_expand"].present() ? size(text["mamba_expand"]) : 2,
                        heads = text["mamba_n_heads"].present() ? size(text["mamba_n_heads"]) : 128;
    if (expand > 64) text["mamba_expand"].refuse("at most 64");
    const std::uint64_t inner = expand * out_.config.hidden_size;
    if (heads == 0 || inner % heads != 0)
      document_.refuse("mamba_n_heads", "a divisor of mamba_expand * hidden_size " + std::to_string(inner),
                       std::to_string(heads));
    if (wide.present() && !(wide.is_string() && wide.text() == "auto") && size(wide) != inner / heads)
      wide.refuse(std::to_string(inner / heads) + " as mamba_expand * hidden_size / mamba_n_heads");
    return static_cast<std::uint32_t>(inner / heads);
  }
};

}  // namespace intaglio::io
