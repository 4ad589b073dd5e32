// SPDX-License-Identifier: MIT
// config.json of a Hugging Face model as a decoder_config. Keys and defaults: transformers' configuration classes.
#pragma once

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "intaglio/core/family.hpp"
#include "intaglio/io/hf_keys.hpp"
#include "intaglio/io/model_config.hpp"
#include "intaglio/io/rope_factors.hpp"
#include "intaglio/io/strict_json.hpp"

namespace intaglio::io {

/// What a config.json states.
struct hf_config {
  decoder_config config;
  std::string model_type;                   ///< of the text model
  std::optional<bool> tie_word_embeddings;  ///< absent where the file leaves it to the family and the tensors
  bool scale_divides =
      false;  ///< packed ternary matrices: W = code / weight_scale (linear_class bitlinear), else times it
  bool states_biases = false;  ///< attention_bias or mlp_bias: the tensors say whether they are zeros
  std::vector<std::string> warnings;
};

/// Reads the fields; every error names file, key, expected and found.
class hf_config_reader {
 public:
  [[gnu::cold]] explicit hf_config_reader(const std::filesystem::path& path) : document_(path.string()) {
    constexpr std::uint64_t most = std::uint64_t{1} << 20;
    const mapped_file file(path);
    if (file.size() > most)
      throw file_error(file.path(), std::nullopt, "too large for a config",
                       "at most " + std::to_string(most) + " bytes", std::to_string(file.size()));
    std::string text(static_cast<std::size_t>(file.size()), '\0');
    file.read(0, std::as_writable_bytes(std::span(text)));
    document_.read_text(text);
  }

  [[gnu::cold]] hf_config read() {
    const json_place root(document_.path(), "", &document_.root());
    if (!root.is_object()) document_.refuse("config.json", "a JSON object", std::string(document_.root().type_name()));
    // Multimodal repositories keep the text model's fields in an object of their own.
    const json_place text = root["text_config"].present() ? root["text_config"] : root;
    out_.model_type = text["model_type"].text_or(root["model_type"].text_or(""));
    const family* const found = family_named(out_.model_type);
    if (found == nullptr)
      document_.refuse("model_type", "one of: " + std::string(family_names().view()),
                       "'" + printable(out_.model_type, 60) + "'");
    out_.config.model_type = found->type;
    read_sizes(text);
    if (out_.model_type == "granitemoehybrid") read_dense_hybrid(text);
    read_rope(text);
    read_windows(text);
    read_activation(text);
    read_softcaps(text);
    if (found->kinds_of_layers) read_kinds(text);
    // "vision" is among the tokens of an image, of which a text model has none.
    if (const json_place both = text["use_bidirectional_attention"];
        !(found->kinds_of_layers && both.is_string() && both.text() == "vision") && both.boolean_or(false))
      document_.refuse("use_bidirectional_attention", "false", "true");
    for (const char* key : {"attention_bias", "mlp_bias"})
      out_.states_biases = text[key].boolean_or(false) || out_.states_biases;
    read_experts(text);
    read_layers_without_rope(text);
    if (found->recurrent == recurrence::short_conv) read_short_conv(text);
    if (found->recurrent == recurrence::delta_net) read_delta_net(text);
    if (found->multipliers) read_multipliers(text);
    const json_place tied =
        root["tie_word_embeddings"].present() ? root["tie_word_embeddings"] : text["tie_word_embeddings"];
    if (const json_place embedding = text["tie_embedding"]; found->embedding_norm && embedding.present())
      out_.tie_word_embeddings = embedding.boolean_or(true);
    else if (tied.present()) out_.tie_word_embeddings = tied.boolean_or(true);
    else if (is_gemma(out_.config.model_type) || found->embedding_norm) out_.tie_word_embeddings = true;
    read_quantization(root["quantization_config"].present() ? root["quantization_config"]
                                                            : text["quantization_config"]);
    judge_keys(root, text);
    check_config(out_.config, document_.path());
    return out_;
  }

 private:
  /// Heads, caches and FFNs by kind of layer. Defaults: transformers' Gemma4TextConfig.
  [[gnu::cold]] void read_kinds(const json_place& text) {
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
    if (const json_place words = text["vocab_size_per_layer_input"];
        c.hidden_size_per_layer_input != 0 && words.present() && size(words) != c.vocab_size)
      words.refuse(std::to_string(c.vocab_size) + " as vocab_size");
    if (text["enable_moe_block"].boolean_or(false))
      document_.refuse("enable_moe_block", "false: mixtures of experts beside an FFN are not computed", "true");
    const json_place global = text["rope_parameters"]["full_attention"];
    if (!global.present()) document_.refuse("rope_parameters.full_attention", "an object", "no such key");
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
  /// Warns of every key that nobody reads.
  [[gnu::cold]] void judge_keys(const json_place& root, const json_place& text) {
    const auto judge = [&](const json_place& object, std::span<const config_key_rule> rules, std::string_view family) {
      judge_config_keys(object, rules, family, out_.warnings);
    };
    judge(text, hf_key_rules, out_.model_type);
    if (root["text_config"].present()) {
      std::vector<config_key_rule> outer(std::begin(hf_outer_key_rules), std::end(hf_outer_key_rules));
      for (const config_key_rule& rule : hf_key_rules)
        if (rule.use != config_key_use::read) outer.push_back(rule);
      judge(root, outer, out_.model_type);
    }
    for (const char* key : {"rope_scaling", "rope_parameters"}) {
      const json_place rope = text[key];
      judge(rope, hf_rope_key_rules, type_of(rope));
      for (const char* kind : {"full_attention", "sliding_attention"})
        judge(rope[kind], hf_rope_key_rules, type_of(rope[kind]));
    }
    if (is_ternary(out_.config)) judge(root["quantization_config"], hf_quantization_key_rules, out_.model_type);
  }

  /// Which layers have a short convolution, by a list of kinds or one of the others' numbers. Defaults: transformers'
  /// Lfm2Config.
  [[gnu::cold]] void read_short_conv(const json_place& text) {
    decoder_config& c = out_.config;
    c.conv_taps = text["conv_L_cache"].present() ? size(text["conv_L_cache"]) : 3;
    read_recurrent_layers(text, "conv");
  }
  /// Defaults: transformers' Qwen3NextConfig and Qwen3_5TextConfig, which agree in these.
  [[gnu::cold]] void read_delta_net(const json_place& text) {
    decoder_config& c = out_.config;
    const auto size_or = [&](const char* key, std::uint32_t absent) {
      return text[key].present() ? size(text[key]) : absent;
    };
    c.conv_taps = size_or("linear_conv_kernel_dim", 4);
    c.delta_net = {.key_heads = size_or("linear_num_key_heads", 16),
                   .value_heads = size_or("linear_num_value_heads", 32),
                   .key_dim = size_or("linear_key_head_dim", 128),
                   .value_dim = size_or("linear_value_head_dim", 128)};
    if (c.num_local_experts != 0) c.shared_expert_intermediate_size = size_or("shared_expert_intermediate_size", 512);
    if (!text["attn_output_gate"].boolean_or(true)) text["attn_output_gate"].refuse("true");
    if (text["layer_types"].present()) return read_recurrent_layers(text, "linear_attention");
    const std::uint32_t interval = size_or("full_attention_interval", 4);
    if (c.num_hidden_layers > layer_pattern::max_period)
      document_.refuse("num_hidden_layers", "at most " + std::to_string(layer_pattern::max_period) + " of two kinds",
                       std::to_string(c.num_hidden_layers));
    if (interval == 0) text["full_attention_interval"].refuse("a number above 0");
    c.recurrent_layers = layer_set::all_but_every(interval, c.num_hidden_layers);
  }
  /// @param kind in layer_types
  [[gnu::cold]] void read_recurrent_layers(const json_place& text, std::string_view kind) {
    decoder_config& c = out_.config;
    const json_place types = text["layer_types"], numbers = text["full_attn_idxs"];
    if (c.num_hidden_layers > layer_pattern::max_period)
      document_.refuse("num_hidden_layers", "at most " + std::to_string(layer_pattern::max_period) + " of two kinds",
                       std::to_string(c.num_hidden_layers));
    if (!types.present() && !numbers.present())
      document_.refuse("layer_types", "one for each of " + std::to_string(c.num_hidden_layers) + " layers",
                       "no such key");
    if (!types.present()) {
      c.recurrent_layers = layer_set::all_but(c.num_hidden_layers);
      for (const json_place& each : numbers.elements()) {
        const std::uint32_t layer = size(each);
        if (layer >= c.num_hidden_layers || !c.recurrent_layers.has(layer))
          each.refuse("numbers of layers below " + std::to_string(c.num_hidden_layers) + ", each once");
        c.recurrent_layers.remove(layer);
      }
      return;
    }
    const auto layers = types.elements();
    if (layers.size() != c.num_hidden_layers)
      document_.refuse(types.where(), std::to_string(c.num_hidden_layers) + " entries", std::to_string(layers.size()));
    for (std::uint32_t layer = 0; layer < c.num_hidden_layers; ++layer) {
      const std::string& found = layers[layer].text();
      if (found == kind) c.recurrent_layers.add(layer);
      else if (found != "full_attention") layers[layer].refuse(std::string(kind) + " or full_attention");
    }
  }
  /// transformers' Lfm2Config: block_ff_dim goes before intermediate_size; two thirds of it, times a multiplier, in
  /// whole multiples, unless block_auto_adjust_ff_dim is false.
  [[gnu::cold]] std::uint32_t short_conv_ffn(const json_place& text) const {
    const json_place stated = text["block_ff_dim"].present() ? text["block_ff_dim"] : text["intermediate_size"];
    std::uint64_t out = size(stated);
    if (!text["block_auto_adjust_ff_dim"].boolean_or(true)) return static_cast<std::uint32_t>(out);
    out = 2 * out / 3;
    if (const json_place by = text["block_ffn_dim_multiplier"]; by.present()) {
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

  /// A list with 0 for each layer that does not turn, or how often one comes.
  [[gnu::cold]] void read_layers_without_rope(const json_place& text) {
    decoder_config& c = out_.config;
    const json_place list = text["no_rope_layers"], interval = text["no_rope_layer_interval"];
    const std::uint32_t usual = family_of(c.model_type).no_rope_interval;
    if (usual != 0) c.no_rope_layer_interval = interval.present() ? size(interval) : usual;
    if (!list.present()) return;
    const auto layers = list.elements();
    if (layers.empty()) return;
    if (layers.size() != c.num_hidden_layers)
      document_.refuse(list.where(), std::to_string(c.num_hidden_layers) + " entries", std::to_string(layers.size()));
    const auto first =
        std::find_if(layers.begin(), layers.end(), [](const json_place& each) { return each.natural() == 0; });
    const auto every = first == layers.end() ? std::size_t{0} : static_cast<std::size_t>(first - layers.begin()) + 1;
    if (usual == 0 && every != 0)
      document_.refuse(list.where(), "none for " + out_.model_type, "layers without rotation");
    for (std::size_t layer = 0; layer < layers.size(); ++layer)
      if ((layers[layer].natural() == 0) != (every != 0 && (layer + 1) % every == 0))
        document_.refuse(list.where(), "0 for every n-th layer and 1 for the others", "another order");
    c.no_rope_layer_interval = static_cast<std::uint32_t>(every);
  }
  /// Of transformers' GraniteMoeHybridConfig those models that have neither states nor experts: Granites.
  [[gnu::cold]] void read_dense_hybrid(const json_place& text) {
    const json_place types = text["layer_types"].present() ? text["layer_types"] : text["layers_block_type"];
    if (!types.present()) document_.refuse("layer_types", "attention in all layers", "no such key");
    for (const json_place& layer : types.elements())
      if (layer.text() != "attention") layer.refuse("attention in all layers");
    if (text["position_embedding_type"].text_or("none") != "rope")
      document_.refuse("position_embedding_type", "rope",
                       "'" + printable(text["position_embedding_type"].text_or("none"), 40) + "'");
    if (const std::string norm = text["normalization_function"].text_or("rmsnorm"); norm != "rmsnorm")
      document_.refuse("normalization_function", "rmsnorm", "'" + printable(norm, 40) + "'");
    out_.config.intermediate_size = size(text["shared_intermediate_size"]);
  }
  /// Defaults: transformers' GraniteConfig.
  [[gnu::cold]] void read_multipliers(const json_place& text) {
    decoder_config& c = out_.config;
    for (const auto& [key, to] : {std::pair{"embedding_multiplier", &c.embedding_multiplier},
                                  {"attention_multiplier", &c.attention_multiplier},
                                  {"residual_multiplier", &c.residual_multiplier},
                                  {"logits_scaling", &c.logits_scaling}})
      if (*to = text[key].present() ? text[key].real() : 1.f; !(*to > 0.f)) text[key].refuse("a number above 0");
  }

  [[gnu::cold]] void read_softcaps(const json_place& text) {
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

  /// Defaults: transformers' MixtralConfig and Qwen3MoeConfig.
  [[gnu::cold]] void read_experts(const json_place& text) {
    decoder_config& c = out_.config;
    const bool mixtral = out_.model_type == "mixtral", all = family_of(c.model_type).experts == mixtures::all,
               next = c.model_type == architecture::qwen3next;
    const auto size_or = [&](const json_place& place, std::uint32_t absent) {
      return place.present() ? size(place) : absent;
    };
    if (mixtral || all) {
      const json_place count = text[mixtral || !text["num_experts"].present() ? "num_local_experts" : "num_experts"];
      c.num_local_experts = size_or(count, mixtral ? 8 : next ? 512 : 128);
      c.num_experts_per_tok = size_or(text["num_experts_per_tok"], mixtral ? 2 : next ? 10 : 8);
      if (c.num_local_experts == 0) document_.refuse(count.where(), "a number above 0", "0");
    }
    if (all) {
      const bool all_biased = family_of(c.model_type).block_biases;  // gpt-oss, whose intermediate_size is the experts'
      c.intermediate_size = size_or(text["moe_intermediate_size"], all_biased ? c.intermediate_size : next ? 512 : 768);
      c.norm_topk_prob = text["norm_topk_prob"].boolean_or(all_biased || next);
      if (const json_place limit = text["swiglu_limit"]; all_biased && limit.present() && limit.number() != 7.0)
        limit.refuse("7");
      if (all_biased) {
        expect_same(text["experts_per_token"], text["num_experts_per_tok"]);
        for (const char* rope : {"rope_scaling", "rope_parameters"})
          expect_same(text["initial_context_length"], text[rope]["original_max_position_embeddings"]);
      }
      if (text["decoder_sparse_step"].present() && text["decoder_sparse_step"].natural() != 1)
        text["decoder_sparse_step"].refuse("1: experts in all layers");
    }
    for (const char* key : {"num_experts", "num_local_experts"})
      if (!mixtral && !all && text[key].present() && text[key].natural() != 0)
        document_.refuse(key, "0", std::to_string(text[key].natural()));
  }

  [[gnu::cold]] void read_sizes(const json_place& text) {
    decoder_config& c = out_.config;
    // The published configs of Gemma 3 leave out what Gemma3TextConfig has by default.
    const bool gemma = is_gemma(c.model_type), second = c.model_type == architecture::gemma2;
    const auto size_or = [&](const char* key, std::uint32_t absent) {
      return gemma && !text[key].present() ? absent : size(text[key]);
    };
    c.hidden_size = size(text["hidden_size"]);
    const bool convolves = family_of(c.model_type).recurrent == recurrence::short_conv;
    const bool experts_only = c.model_type == architecture::qwen3next && !text["intermediate_size"].present();
    c.intermediate_size = convolves ? short_conv_ffn(text) : experts_only ? 0 : size(text["intermediate_size"]);
    c.num_hidden_layers = size(text["num_hidden_layers"]);
    c.num_attention_heads = size_or("num_attention_heads", 8);
    const bool mistral = out_.model_type == "mistral" || out_.model_type == "mixtral";
    c.num_key_value_heads = text["num_key_value_heads"].present()               ? size(text["num_key_value_heads"])
                            : gemma                                             ? 4
                            : mistral && !text["num_key_value_heads"].is_null() ? (std::min)(8u, c.num_attention_heads)
                                                                                : c.num_attention_heads;
    c.vocab_size = size_or("vocab_size", second ? 256'000 : 262'208);
    c.max_position_embeddings = size_or("max_position_embeddings", second ? 8192 : 131'072);
    if (text["head_dim"].present()) {
      c.head_dim = size(text["head_dim"]);
    } else if (const std::uint32_t usual = family_of(c.model_type).default_head_dim; usual != 0) {
      c.head_dim = usual;
    } else {
      if (c.num_attention_heads == 0 || c.hidden_size % c.num_attention_heads != 0)
        document_.refuse("num_attention_heads", "a divisor of hidden_size " + std::to_string(c.hidden_size),
                         std::to_string(c.num_attention_heads));
      c.head_dim = c.hidden_size / c.num_attention_heads;
    }
    if (gemma && !family_of(c.model_type).kinds_of_layers)
      c.query_pre_attn_scalar = size_or("query_pre_attn_scalar", 256);
    if (c.query_pre_attn_scalar == c.head_dim) c.query_pre_attn_scalar = 0;
    c.rms_norm_eps = convolves ? text["norm_eps"].present() ? text["norm_eps"].real() : 1e-5f
                     : gemma && !text["rms_norm_eps"].present() ? 1e-6f
                                                                : text["rms_norm_eps"].real();
  }
  std::uint32_t size(const json_place& place) const {
    const std::uint64_t value = place.natural();
    if (value > (std::numeric_limits<std::uint32_t>::max)()) place.refuse("a number below 2^32");
    return static_cast<std::uint32_t>(value);
  }

  /// transformers 4 has rope_theta and rope_scaling, transformers 5 rope_parameters, for Gemma one set for each kind of
  /// layer.
  [[gnu::cold]] void read_rope(const json_place& text) {
    const bool gemma = is_gemma(out_.config.model_type) && out_.config.model_type != architecture::gemma2;
    json_place parameters = text["rope_parameters"];
    const json_place local = parameters["sliding_attention"];
    if (parameters["full_attention"].present()) parameters = parameters["full_attention"];
    const json_place theta = parameters["rope_theta"].present() ? parameters["rope_theta"] : text["rope_theta"];
    expect_same(text["rope_theta"], parameters["rope_theta"]);
    // The families' own defaults, in transformers' configuration classes.
    const float absent = gemma || out_.model_type == "mixtral" || out_.model_type == "lfm2" ? 1e6f
                         : out_.model_type == "gpt_oss"                                     ? 150'000.f
                         : out_.config.model_type == architecture::bitnet                   ? 5e5f
                                                                                            : 10'000.f;
    out_.config.rope_theta = theta.present() ? theta.real() : absent;
    if (gemma) {
      const json_place base = local["rope_theta"].present() ? local["rope_theta"] : text["rope_local_base_freq"];
      out_.config.rope_local_base_freq = base.present() ? base.real() : 10'000.f;
      if (local.present()) expect_type(local, "default");
    }
    if (family_of(out_.config.model_type).kinds_of_layers) return;  // read_kinds
    for (const json_place& place : {text, parameters})
      if (const json_place part = place["partial_rotary_factor"]; part.present() && part.number() != 1.0)
        read_partial_rotary(part);
    if (family_of(out_.config.model_type).recurrent == recurrence::delta_net &&
        !text["partial_rotary_factor"].present() && !parameters["partial_rotary_factor"].present())
      out_.config.rotary_dim = out_.config.head_dim / 4;
    const json_place scaling = text["rope_scaling"].present() ? text["rope_scaling"] : parameters;
    if (!scaling.present()) return;
    const std::string type = type_of(scaling);
    if (text["rope_scaling"].present() && parameters.present()) {  // both spellings at once
      if (type_of(parameters) != type) expect_type(parameters, type);
      for (const char* key : {"factor", "low_freq_factor", "high_freq_factor", "original_max_position_embeddings",
                              "beta_fast", "beta_slow", "attention_factor", "mscale", "mscale_all_dim"})
        expect_same(text["rope_scaling"][key], parameters[key]);
    }
    if (type == "default") return;
    if (out_.config.model_type == architecture::bitnet) return expect_type(scaling, "default");
    rope_scaling_config& out = out_.config.rope_scaling;
    if (type == "linear") out.type = rope_type::linear;
    else if (type == "llama3") out.type = rope_type::llama3;
    else if (type == "yarn") out.type = rope_type::yarn;
    else if ((type == "longrope" || type == "su") && family_of(out_.config.model_type).partial_rotary)
      return read_longrope(text, scaling);
    else expect_type(scaling, "default, linear, llama3 or yarn");
    out.factor = scaling["factor"].real();
    if (out.type == rope_type::linear) return;
    if (out.type == rope_type::yarn) {
      read_yarn(scaling);
    } else {
      out.low_freq_factor = scaling["low_freq_factor"].real();
      out.high_freq_factor = scaling["high_freq_factor"].real();
    }
    // transformers: the outer key comes first, and without either the scaling starts from the context as it is.
    const json_place outer = text["original_max_position_embeddings"],
                     inner = scaling["original_max_position_embeddings"];
    out.original_max_position_embeddings = outer.present()   ? size(outer)
                                           : inner.present() ? size(inner)
                                                             : out_.config.max_position_embeddings;
  }
  /// Defaults: transformers' _compute_yarn_parameters.
  [[gnu::cold]] void read_yarn(const json_place& scaling) {
    rope_scaling_config& out = out_.config.rope_scaling;
    const auto real_or = [&](const char* key, float absent) {
      return scaling[key].present() ? scaling[key].real() : absent;
    };
    out.high_freq_factor = real_or("beta_fast", 32.f);
    out.low_freq_factor = real_or("beta_slow", 1.f);
    out.truncate = scaling["truncate"].boolean_or(true);
    const float one = real_or("mscale", 0.f), all = real_or("mscale_all_dim", 0.f);
    const float usual = one != 0.f && all != 0.f
                            ? yarn_attention_factor(out.factor, one) / yarn_attention_factor(out.factor, all)
                            : yarn_attention_factor(out.factor);
    out.attention_factor = real_or("attention_factor", usual);
  }
  /// The first channels of a head turn.
  [[gnu::cold]] void read_partial_rotary(const json_place& part) {
    decoder_config& c = out_.config;
    if (!family_of(c.model_type).partial_rotary) part.refuse("1");
    const double wide = c.head_dim * part.number();
    if (!(wide >= 2) || wide > c.head_dim || static_cast<std::uint32_t>(wide) % 2 != 0)
      part.refuse("an even number of channels from 2 to head_dim");
    c.rotary_dim = static_cast<std::uint32_t>(wide);
    if (c.rotary_dim == c.head_dim) c.rotary_dim = 0;
  }
  /// transformers' _compute_longrope_parameters; `factor` is not read where the original length is stated.
  [[gnu::cold]] void read_longrope(const json_place& text, const json_place& scaling) {
    decoder_config& c = out_.config;
    rope_scaling_config& out = c.rope_scaling;
    out.type = rope_type::longrope;
    const json_place outer = text["original_max_position_embeddings"],
                     inner = scaling["original_max_position_embeddings"];
    out.original_max_position_embeddings = size(outer.present() ? outer : inner);
    const std::size_t pairs = (c.rotary_dim != 0 ? c.rotary_dim : c.head_dim) / 2;
    for (const auto& [key, to] :
         {std::pair{"short_factor", &c.rope_factors.short_factor}, {"long_factor", &c.rope_factors.long_factor}}) {
      const auto factors = scaling[key].elements();
      if (factors.size() != pairs || pairs > longrope_factors::most)
        document_.refuse(scaling[key].where(),
                         std::to_string((std::min)(pairs, longrope_factors::most)) + " factors, one a pair of channels",
                         std::to_string(factors.size()));
      for (std::size_t i = 0; i < pairs; ++i)
        if ((*to)[i] = factors[i].real(); !((*to)[i] >= 1e-3f)) factors[i].refuse("a number from 0.001");
    }
    out.attention_factor =
        scaling["attention_factor"].present()
            ? scaling["attention_factor"].real()
            : longrope_attention_factor(c.max_position_embeddings, out.original_max_position_embeddings);
  }
  /// Two keys for one number, where both are there.
  [[gnu::cold]] void expect_same(const json_place& one, const json_place& other) const {
    if (one.present() && other.present() && one.number() != other.number())
      document_.refuse(one.where() + " and " + other.where(), "one value",
                       number_text(one.real()) + " and " + number_text(other.real()));
  }
  static std::string type_of(const json_place& scaling) {
    return scaling["rope_type"].text_or(scaling["type"].text_or("default"));
  }
  [[gnu::cold]] void expect_type(const json_place& scaling, const std::string& expected) const {
    if (const std::string type = type_of(scaling); type != expected)
      document_.refuse(scaling.where() + ".rope_type", expected, "'" + printable(type, 40) + "'");
  }

  /// Windows: Mistral's and, where it has any, Mixtral's are in all layers, Gemma 3's in all but every sixth.
  /// transformers 5 lists the kind of each layer.
  [[gnu::cold]] void read_windows(const json_place& text) {
    decoder_config& c = out_.config;
    const std::uint32_t interval = family_of(c.model_type).window_interval;
    const bool mistral = out_.model_type == "mistral", mixtral = out_.model_type == "mixtral";
    // Qwen's key of a window is inert unless another one says so.
    if (text["use_sliding_window"].boolean_or(false) && text["sliding_window"].present())
      document_.refuse("use_sliding_window", "false", "true");
    const bool phi = family_of(c.model_type).windows;
    if (interval == 0 && !mistral && !mixtral && !phi) return;
    if (text["sliding_window"].present()) c.sliding_window = size(text["sliding_window"]);
    else if (!mixtral && !phi && !text["sliding_window"].is_null())
      c.sliding_window = mistral ? 4096 : family_of(c.model_type).default_window;
    if (phi && c.sliding_window >= c.max_position_embeddings) c.sliding_window = 0;  // all of them
    if (c.sliding_window == 0) return;
    for (const char* key : {"_sliding_window_pattern", "sliding_window_pattern"})
      if (text[key].present()) c.sliding_window_pattern = size(text[key]);
    if (c.sliding_window_pattern == 0) c.sliding_window_pattern = interval;
    if (text["layer_types"].present()) read_layer_types(text["layer_types"]);
    if (c.sliding_window_pattern == 1 && !family_of(c.model_type).kinds_of_layers)
      c.sliding_window = c.sliding_window_pattern = 0;
  }
  [[gnu::cold]] void read_layer_types(const json_place& list) {
    decoder_config& c = out_.config;
    std::vector<bool> windowed;
    for (const json_place& layer : list.elements()) {
      const std::string& type = layer.text();
      if (type != "sliding_attention" && type != "full_attention") layer.refuse("sliding_attention or full_attention");
      windowed.push_back(type == "sliding_attention");
    }
    if (windowed.size() != c.num_hidden_layers)
      document_.refuse(list.where(), std::to_string(c.num_hidden_layers) + " entries", std::to_string(windowed.size()));
    const auto fits = [&] {
      for (std::uint32_t layer = 0; layer < c.num_hidden_layers; ++layer)
        if (windowed[layer] != c.is_windowed(layer)) return false;
      return true;
    };
    if (fits()) return;
    if (!set_windows(c, windowed))
      document_.refuse(list.where(), "full_attention in every n-th layer and sliding_attention in the others",
                       "another order");
  }

  [[gnu::cold]] void read_activation(const json_place& text) {
    const bool gemma = is_gemma(out_.config.model_type);
    const json_place place =
        gemma && text["hidden_activation"].present() ? text["hidden_activation"] : text["hidden_act"];
    const std::string act = place.text_or(std::string(name(family_of(out_.config.model_type).act)));
    if (act == "relu2") out_.config.hidden_act = activation::relu_squared;
    else if (act == "silu") out_.config.hidden_act = activation::silu;
    else if (act == "gelu_pytorch_tanh") out_.config.hidden_act = activation::gelu_tanh;
    else document_.refuse(place.where(), "relu2, silu or gelu_pytorch_tanh", "'" + printable(act, 40) + "'");
  }

  /// BitNetQuantConfig: the packed form's scale multiplies for autobitlinear and divides for bitlinear, which is the
  /// default.
  [[gnu::cold]] void read_quantization(const json_place& quantization) {
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
    if (quantization["use_rms_norm"].boolean_or(false))
      document_.refuse("quantization_config.use_rms_norm", "false", "true");
    out_.scale_divides = linear == "bitlinear";
    if (!ternary) return;
    out_.config.ternary = true;
    out_.config.activation_type = dtype::f32;
    out_.warnings.push_back(in_file(document_.path(),
                                    "inputs of ternary layers are computed in f32; transformers "
                                    "rounds them to int8"));
  }

  strict_json document_;
  hf_config out_;
};

/// @throws file_error
inline hf_config read_hf_config(const std::filesystem::path& path) { return hf_config_reader(path).read(); }

}  // namespace intaglio::io
