// SPDX-License-Identifier: MIT
// config.json of a Hugging Face model as a decoder_config. Keys and defaults: transformers' configuration classes.
#pragma once

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "intaglio/core/array_view.hpp"
#include "intaglio/core/family.hpp"
#include "intaglio/io/absent_families.hpp"
#include "intaglio/io/hf_keys.hpp"
#include "intaglio/io/hf_layer_norms.hpp"
#include "intaglio/io/renamed_keys.hpp"

namespace intaglio::io {

/// Reads a config.json; every error names file, key, expected and found.
class hf_config_reader : public hf_layer_norms {
 public:
  using hf_layer_norms::hf_layer_norms;

  [[gnu::cold]] hf_config read() {
    const located_json root(document_.path(), "", &document_.root());
    if (!root.is_object()) document_.refuse("config.json", "a JSON object", std::string(document_.root().type_name()));
    // Multimodal repositories have the text model's fields in an object of its own.
    const located_json text = root["text_config"].present() ? root["text_config"] : root;
    out_.model_type = stated_type(root, text);
    const family* found = stated_family(text);
    const std::vector<renamed_key> renamed = rename_keys(
        document_, root["text_config"].present() ? document_.root()["text_config"] : document_.root(), out_.model_type);
    try {
      read_renamed(root, text, found);
    } catch (const file_error& problem) { throw with_folder_name(problem, renamed); }
    return out_;
  }

 private:
  /// Reads a config whose keys have their usual names.
  [[gnu::cold]] void read_renamed(const located_json& root, const located_json& text, const family* found) {
    state_rotation(document_, root["text_config"].present() ? document_.root()["text_config"] : document_.root(),
                   out_.model_type);
    const bool both_ways = found->encoder;
    out_.config.model_type = found->type;
    if (found->layer_norms && found->encoder) {
      read_encoder(text);
      read_quantization(root["quantization_config"]);
      judge_keys(root, text);
      check_config(out_.config, document_.path());
      return;
    }
    if (found->type == architecture::granitehybrid) {
      found = hybrid_family(text);
      out_.config.model_type = found->type;
    }
    if (found->loose_sizes) read_loose_sizes(text);
    else read_sizes(text);
    if (out_.model_type == "granitemoehybrid" && found->recurrent == recurrence::none) read_dense_hybrid(text);
    if (found->latent) read_latent(text);
    read_rope(text);
    if (found->latent) read_latent_scale(text);
    read_windows(text);
    read_activation(text);
    read_softcaps(text);
    if (found->kinds_of_layers) read_kinds(text);
    if (found->streams) read_streams(text);
    // "vision" is among the tokens of an image, of which a text model has none.
    if (const located_json both = text["use_bidirectional_attention"];
        !(found->kinds_of_layers && both.is_string() && both.text() == "vision") &&
        both.boolean_or(both_ways) != both_ways)
      document_.refuse("use_bidirectional_attention", both_ways ? "true" : "false", both_ways ? "false" : "true");
    for (const char* key :
         {"attention_bias", "attention_out_bias", "mlp_bias", "mamba_proj_bias", "projectors_bias", "use_bias"})
      out_.states_biases = text[key].boolean_or(false) || out_.states_biases;
    read_experts(text);
    read_optional_parts(text);
    read_layers_without_rope(text);
    if (found->recurrent == recurrence::short_conv) read_short_conv(text);
    if (found->recurrent == recurrence::delta_net) read_delta_net(text);
    if (found->attention_beside) read_attention_beside(text);
    else if (found->recurrent == recurrence::mamba2) read_state_space(text);
    if (found->multipliers) read_multipliers(text);
    if (found->layer_norms) read_layer_norms(text);
    read_tie(root, text, *found);
    if (found->weight_multipliers) read_weight_multipliers(text);
    read_quantization(root["quantization_config"].present() ? root["quantization_config"]
                                                            : text["quantization_config"]);
    judge_keys(root, text);
    check_config(out_.config, document_.path());
  }

  /// The model_type. Ling 2.0 states that of the first Ling.
  [[gnu::cold]] static std::string stated_type(const located_json& root, const located_json& text) {
    const std::string type = text["model_type"].text_or(root["model_type"].text_or(""));
    const located_json classes = root["architectures"];
    const bool second = type == "bailing_moe" && classes.present() && !classes.elements().empty() &&
                        classes.elements().front().text() == "BailingMoeV2ForCausalLM";
    return second ? "bailing_moe_v2" : type;
  }

  /// Reads whether the head is the embedding.
  [[gnu::cold]] void read_tie(const located_json& root, const located_json& text, const family& of) {
    const located_json tied =
        root["tie_word_embeddings"].present() ? root["tie_word_embeddings"] : text["tie_word_embeddings"];
    if (const located_json embedding = text["tie_embedding"]; of.embedding_norm && embedding.present())
      out_.tie_word_embeddings = embedding.boolean_or(true);
    else if (tied.present() || of.weight_multipliers) out_.tie_word_embeddings = tied.boolean_or(false);
    else if (is_gemma(out_.config.model_type) || of.embedding_norm || of.tied) out_.tie_word_embeddings = true;
  }

  /// The family of model_type. A Gemma 3 whose tokens see each other is a separate family.
  [[gnu::cold]] const family* stated_family(const located_json& text) const {
    const family* const found = family_named(out_.model_type);
    if (found == nullptr) {
      const auto [expected, stated] = unknown_family(out_.model_type, &family::config_names);
      document_.refuse("model_type", expected, stated);
    }
    const bool both_ways = found->type == architecture::gemma3 && text["use_bidirectional_attention"].boolean_or(false);
    return both_ways ? &family_of(architecture::gemma_embedding) : found;
  }

  /// The family of a Granite 4.0, some of which have attention in all layers.
  [[gnu::cold]] const family* hybrid_family(const located_json& text) const {
    if (const std::string norm = text["normalization_function"].text_or("rmsnorm"); norm != "rmsnorm")
      document_.refuse("normalization_function", "rmsnorm", "'" + printable(norm, 40) + "'");
    if (!is_dense_hybrid(text)) return &family_of(architecture::granitehybrid);
    const bool experts = text["num_local_experts"].present() && text["num_local_experts"].natural() != 0;
    return &family_of(experts ? architecture::granitemoe : architecture::granite);
  }

  /// Warns of every key that is not read.
  [[gnu::cold]] void judge_keys(const located_json& root, const located_json& text) {
    const auto judge = [&](const located_json& object, array_view<const config_key_rule> rules,
                           std::string_view family) { judge_config_keys(object, rules, family, out_.warnings); };
    std::vector<config_key_rule> rules(std::begin(hf_key_rules), std::end(hf_key_rules));
    rules.insert(rules.end(), std::begin(renamed_key_rules), std::end(renamed_key_rules));
    rules.insert(rules.end(), std::begin(hf_layer_norm_key_rules), std::end(hf_layer_norm_key_rules));
    judge(text, rules, out_.model_type);
    if (root["text_config"].present()) {
      std::vector<config_key_rule> outer(std::begin(hf_outer_key_rules), std::end(hf_outer_key_rules));
      for (const config_key_rule& rule : rules)
        if (rule.use != config_key_use::read) outer.push_back(rule);
      judge(root, outer, out_.model_type);
    }
    for (const char* key : {"rope_scaling", "rope_parameters"}) {
      const located_json rope = text[key];
      judge(rope, hf_rope_key_rules, type_of(rope));
      for (const char* kind : {"full_attention", "sliding_attention"})
        judge(rope[kind], hf_rope_key_rules, type_of(rope[kind]));
    }
    if (is_ternary(out_.config)) judge(root["quantization_config"], hf_quantization_key_rules, out_.model_type);
  }

  /// Reads Granite's and MiniCPM's multipliers. Defaults: transformers' GraniteConfig.
  [[gnu::cold]] void read_multipliers(const located_json& text) {
    decoder_config& c = out_.config;
    for (const auto& [key, to] : {std::pair{"embedding_multiplier", &c.embedding_multiplier},
                                  {"attention_multiplier", &c.attention_multiplier},
                                  {"residual_multiplier", &c.residual_multiplier},
                                  {"logits_scaling", &c.logits_scaling}}) {
      if (to == &c.attention_multiplier && family_of(c.model_type).depth_scaled) continue;
      if (*to = text[key].present() ? text[key].real() : 1.f; !(*to > 0.f)) text[key].refuse("a number above 0");
    }
  }

  [[gnu::cold]] void read_softcaps(const located_json& text) {
    decoder_config& c = out_.config;
    for (const auto& [key, to] : {std::pair{"attn_logit_softcapping", &c.attn_logit_softcapping},
                                  {"final_logit_softcapping", &c.final_logit_softcapping}}) {
      const family& of = family_of(c.model_type);
      if (!text[key].is_null()) *to = key[0] == 'a' ? of.attn_softcap : of.final_softcap;
      if (!text[key].present()) continue;
      if (!of.softcaps) text[key].refuse("none");
      if (*to = text[key].real(); !(*to > 0.f)) text[key].refuse("a number above 0");
    }
  }

  /// Reads parts that only some models of a family have, and layers that draft tokens. Defaults: transformers'
  /// Glm4MoeConfig and HunYuanDenseV1Config.
  [[gnu::cold]] void read_optional_parts(const located_json& text) {
    decoder_config& c = out_.config;
    const family& of = family_of(c.model_type);
    if (of.optional_norms) c.use_qk_norm = text["use_qk_norm"].boolean_or(of.turned_norms);
    if (of.optional_biases) c.attention_bias = text["attention_bias"].boolean_or(of.usual_biases);
    if (const located_json drafts = text["num_nextn_predict_layers"]; of.draft_layers && drafts.present())
      out_.draft_layers = size(drafts);
    if (!of.turned_norms) return;
    if (const std::string norm = text["norm_type"].text_or("rms"); norm != "rms" && norm != "hf_rms")
      document_.refuse("norm_type", "rms or hf_rms", "'" + printable(norm, 40) + "'");
  }

  [[gnu::cold]] void read_sizes(const located_json& text) {
    decoder_config& c = out_.config;
    // The published configs of Gemma 3 leave out what Gemma3TextConfig has by default.
    const bool gemma = is_gemma(c.model_type) && family_of(c.model_type).norms_after,
               second = c.model_type == architecture::gemma2;
    const auto gemma_size_or = [&](const char* key, std::uint32_t absent) {
      return gemma && !text[key].present() ? absent : size(text[key]);
    };
    c.hidden_size = size(text["hidden_size"]);
    const bool convolves = family_of(c.model_type).recurrent == recurrence::short_conv;
    const bool experts_only = has_shared_expert(family_of(c.model_type)) && !text["intermediate_size"].present();
    const bool sublayers = family_of(c.model_type).single_sublayers;
    if (sublayers && !text["num_hidden_layers"].present())
      c.num_hidden_layers = static_cast<std::uint32_t>(hybrid_kinds(text).size());
    else c.num_hidden_layers = size(text["num_hidden_layers"]);
    const located_json inner = text["intermediate_size"];
    const bool adjusts = convolves && family_of(c.model_type).experts == mixtures::none;
    c.intermediate_size = adjusts                           ? short_conv_ffn(text)
                          : experts_only                    ? 0
                          : family_of(c.model_type).streams ? width_of_layers(inner, c.num_hidden_layers)
                                                            : size(inner);
    c.num_attention_heads = gemma_size_or("num_attention_heads", 8);
    const bool mistral = out_.model_type == "mistral" || out_.model_type == "mixtral";
    c.num_key_value_heads = text["num_key_value_heads"].present()               ? size(text["num_key_value_heads"])
                            : gemma                                             ? 4
                            : mistral && !text["num_key_value_heads"].is_null() ? (std::min)(8u, c.num_attention_heads)
                                                                                : c.num_attention_heads;
    c.vocab_size = gemma_size_or("vocab_size", second ? 256'000 : 262'208);
    c.max_position_embeddings = gemma_size_or("max_position_embeddings", second ? 8192 : 131'072);
    expect_same(text["head_dim"], text["attention_head_dim"]);
    const bool elsewhere = (sublayers || family_of(c.model_type).turned_norms) && !text["head_dim"].present();
    if (family_of(c.model_type).latent) {
      c.head_dim = 0;  // read_latent reads it
    } else if (const located_json own = text[elsewhere ? "attention_head_dim" : "head_dim"]; own.present()) {
      c.head_dim = size(own);
    } else if (const std::uint32_t usual = family_of(c.model_type).default_head_dim; usual != 0) {
      c.head_dim = usual;
    } else {
      if (c.num_attention_heads == 0 || c.hidden_size % c.num_attention_heads != 0)
        document_.refuse("num_attention_heads", "a divisor of hidden_size " + std::to_string(c.hidden_size),
                         std::to_string(c.num_attention_heads));
      c.head_dim = c.hidden_size / c.num_attention_heads;
    }
    if (gemma && !has_layer_inputs(family_of(c.model_type)))
      c.query_pre_attn_scalar = gemma_size_or("query_pre_attn_scalar", 256);
    if (c.query_pre_attn_scalar == c.head_dim) c.query_pre_attn_scalar = 0;
    for (const char* other : {"rms_norm_eps", "norm_eps"})
      if (sublayers) expect_same(text[other], text["layer_norm_epsilon"]);
    c.rms_norm_eps = sublayers   ? text["layer_norm_epsilon"].present() ? text["layer_norm_epsilon"].real() : 1e-5f
                     : convolves ? text["norm_eps"].present() ? text["norm_eps"].real() : 1e-5f
                     : gemma && !text["rms_norm_eps"].present() ? 1e-6f
                                                                : read_eps(text);
  }

  [[gnu::cold]] void read_activation(const located_json& text) {
    const bool gemma = is_gemma(out_.config.model_type);
    const bool sublayers = family_of(out_.config.model_type).single_sublayers;
    const bool loose = family_of(out_.config.model_type).loose_sizes;
    const located_json field = text[sublayers                                      ? "mlp_hidden_act"
                                    : loose && text["activation"].present()        ? "activation"
                                    : loose                                        ? "activation_function"
                                    : gemma && text["hidden_activation"].present() ? "hidden_activation"
                                                                                   : "hidden_act"];
    const std::string act = field.text_or(std::string(name(family_of(out_.config.model_type).act)));
    if (const bool own = family_of(out_.config.model_type).act == activation::xielu; own || act == "xielu") {
      if (!own || act != "xielu")  // the parameters of xIELU belong to the layers of a family
        document_.refuse(field.where(), own ? "xielu" : "relu2, silu or gelu_pytorch_tanh",
                         "'" + printable(act, 40) + "'");
      out_.config.hidden_act = activation::xielu;
    } else if (act == "relu2") out_.config.hidden_act = activation::relu_squared;
    else if (act == "silu") out_.config.hidden_act = activation::silu;
    else if (act == "gelu_pytorch_tanh" || (act == "gelu_new" && family_of(out_.config.model_type).layer_norms))
      out_.config.hidden_act = activation::gelu_tanh;
    else if (act == "gelu" && family_of(out_.config.model_type).act == activation::gelu)
      out_.config.hidden_act = activation::gelu;
    // Gemma's first files say gelu for it; transformers takes hidden_activation, and the tanh form without.
    else if (act == "gelu" && out_.config.model_type == architecture::gemma)
      out_.config.hidden_act = activation::gelu_tanh;
    else document_.refuse(field.where(), "relu2, silu or gelu_pytorch_tanh", "'" + printable(act, 40) + "'");
  }

  /// Reads the quantization_config of a BitNet (BitNetQuantConfig). The packed form's scale multiplies for
  /// autobitlinear and divides for bitlinear, which is the default.
  [[gnu::cold]] void read_quantization(const located_json& quantization) {
    if (!quantization.present()) return;
    if (family_of(out_.config.model_type).block_biases && quantization["quant_method"].text_or("") == "mxfp4") return;
    const bool ternary = family_of(out_.config.model_type).may_be_ternary && out_.config.num_local_experts == 0 &&
                         quantization["quant_method"].text_or("") == "bitnet";
    if (out_.config.model_type != architecture::bitnet && !ternary)
      document_.refuse(quantization.where() + ".quant_method", "none for " + out_.model_type,
                       "'" + printable(quantization["quant_method"].text_or("not stated"), 40) + "'");
    if (const std::string method = quantization["quant_method"].text_or("bitnet"); method != "bitnet")
      document_.refuse("quantization_config.quant_method", "bitnet", "'" + printable(method, 40) + "'");
    const std::string linear = quantization["linear_class"].text_or("bitlinear");
    if (linear != "bitlinear" && linear != "autobitlinear")
      document_.refuse("quantization_config.linear_class", "bitlinear or autobitlinear",
                       "'" + printable(linear, 40) + "'");
    if (quantization["use_rms_norm"].boolean_or(false)) {
      if (!ternary) document_.refuse("quantization_config.use_rms_norm", "false", "true");
      const located_json eps = quantization["rms_norm_eps"];
      out_.config.projection_norm_eps = eps.present() ? eps.real() : 1e-6f;  // BitNetQuantConfig's
    }
    out_.scale_divides = linear == "bitlinear";
    if (!ternary) return;
    out_.config.ternary = true;
    out_.config.activation_type = dtype::i8;
  }
};

/// Reads a config.json. @throws file_error
inline hf_config read_hf_config(const std::filesystem::path& path) { return hf_config_reader(path).read(); }

}  // namespace intaglio::io
