// SPDX-License-Identifier: MIT
// config.json of encoders: BERT, RoBERTa, XLM-RoBERTa, Nomic's BERT and ModernBERT. Keys and defaults: transformers'
// BertConfig, RobertaConfig, XLMRobertaConfig and ModernBertConfig, nomic-ai/nomic-bert-2048's NomicBertConfig.
#pragma once

#include "intaglio/core/compiler.hpp"

#include <cstdint>
#include <string>
#include <tuple>

#include "intaglio/io/hf_streams.hpp"

namespace intaglio::io {

/// Reads the keys of encoders.
class hf_encoder : public hf_streams {
 public:
  using hf_streams::hf_streams;

 protected:
  [[gnu::cold]] void read_encoder(const located_json& root) {
    decoder_config& c = out_.config;
    const family& of = family_of(c.model_type);
    if (of.learned_positions) read_bert(root);
    else if (of.bare_norms) read_modern_bert(root);
    else read_nomic_bert(root);
    if (!of.bare_norms) c.type_vocab_size = size_or(root["type_vocab_size"], 2);
    c.num_key_value_heads = c.num_attention_heads;
    if (c.num_attention_heads == 0 || c.hidden_size % c.num_attention_heads != 0)
      document_.refuse("number of heads", "a divisor of the hidden size " + std::to_string(c.hidden_size),
                       std::to_string(c.num_attention_heads));
    c.head_dim = c.hidden_size / c.num_attention_heads;
    c.no_rope_layer_interval = family_of(c.model_type).no_rope_interval;
    out_.tie_word_embeddings = true;
  }

 private:
  /// The sizes of BERT and ModernBERT, which share these keys, and the defaults of each.
  struct encoder_sizes {
    std::uint32_t intermediate_size, num_hidden_layers, vocab_size, max_position_embeddings;
  };
  [[gnu::cold]] void read_encoder_sizes(const located_json& root, const encoder_sizes& absent) {
    decoder_config& c = out_.config;
    c.hidden_size = size_or(root["hidden_size"], 768);
    c.intermediate_size = size_or(root["intermediate_size"], absent.intermediate_size);
    c.num_hidden_layers = size_or(root["num_hidden_layers"], absent.num_hidden_layers);
    c.num_attention_heads = size_or(root["num_attention_heads"], 12);
    c.vocab_size = size_or(root["vocab_size"], absent.vocab_size);
    c.max_position_embeddings = size_or(root["max_position_embeddings"], absent.max_position_embeddings);
  }
  /// @return false where it is another activation
  bool reads_gelu(const located_json& act) {
    const std::string word = act.text_or("gelu");
    const bool by_tanh = word == "gelu_new" || word == "gelu_pytorch_tanh";
    out_.config.hidden_act = by_tanh ? activation::gelu_tanh : activation::gelu;
    return by_tanh || word == "gelu";
  }

  [[gnu::cold]] void read_bert(const located_json& root) {
    decoder_config& c = out_.config;
    read_encoder_sizes(
        root,
        {.intermediate_size = 3072, .num_hidden_layers = 12, .vocab_size = 30'522, .max_position_embeddings = 512});
    // Positions of a RoBERTa begin after the padding's id.
    if (out_.model_type != "bert") {
      const std::uint64_t padding = root["pad_token_id"].present() ? root["pad_token_id"].natural() : 1;
      if (padding + 1 >= c.max_position_embeddings)
        root["pad_token_id"].refuse("an id whose position is before the last");
      out_.position_offset = static_cast<std::uint32_t>(padding) + 1;
      c.max_position_embeddings -= out_.position_offset;
    }
    c.rms_norm_eps = root["layer_norm_eps"].present() ? root["layer_norm_eps"].real() : 1e-12f;
    if (const located_json type = root["position_embedding_type"]; type.text_or("absolute") != "absolute")
      type.refuse("absolute");
    if (root["is_decoder"].boolean_or(false)) root["is_decoder"].refuse("false");
    if (!reads_gelu(root["hidden_act"])) root["hidden_act"].refuse("gelu, gelu_new or gelu_pytorch_tanh");
  }

  /// Reads a ModernBERT. transformers 4 has a key for each of the two bases, transformers 5 rope_parameters for each
  /// kind of layer.
  [[gnu::cold]] void read_modern_bert(const located_json& root) {
    decoder_config& c = out_.config;
    read_encoder_sizes(
        root,
        {.intermediate_size = 1152, .num_hidden_layers = 22, .vocab_size = 50'368, .max_position_embeddings = 8192});
    c.rms_norm_eps = root["norm_eps"].present() ? root["norm_eps"].real() : 1e-5f;
    const located_json parameters = root["rope_parameters"];
    if (parameters.present()) expect_kinds_alone(parameters);
    for (const auto& [key, kind, absent, to] :
         {std::tuple{"global_rope_theta", "full_attention", 160'000.f, &c.rope_theta},
          {"local_rope_theta", "sliding_attention", 10'000.f, &c.rope_local_base_freq}}) {
      const located_json own = root[key], inner = parameters[kind]["rope_theta"];
      expect_same(own, inner);
      *to = inner.present() ? inner.real() : own.present() ? own.real() : absent;
      if (parameters[kind].present()) expect_type(parameters[kind], "default");
    }
    if (root["rope_scaling"].present()) expect_type(root["rope_scaling"], "default");
    for (const char* key : {"norm_bias", "attention_bias", "mlp_bias"})
      if (root[key].boolean_or(false)) root[key].refuse("false");
    if (const located_json act = root["hidden_activation"]; act.text_or("gelu") == "silu")
      c.hidden_act = activation::silu;
    else if (!reads_gelu(act)) act.refuse("gelu, gelu_new, gelu_pytorch_tanh or silu");
    read_modern_windows(root);
  }

  /// Reads windows: layer 0 and every n-th layer after it see all positions, the others half of local_attention on each
  /// side.
  [[gnu::cold]] void read_modern_windows(const located_json& root) {
    decoder_config& c = out_.config;
    const family& of = family_of(c.model_type);
    const located_json interval = root["global_attn_every_n_layers"];
    const std::uint32_t every = size_or(interval, of.window_interval);
    if (every == 0) interval.refuse("a number from 1");
    const std::uint32_t window = size_or(root["local_attention"], of.default_window);
    if (const located_json half = root["sliding_window"]; half.present() && half.natural() != window / 2)
      half.refuse("half of local_attention, " + std::to_string(window / 2));
    if (const located_json types = root["layer_types"]; types.present()) {
      const auto each = types.elements();
      if (each.size() != c.num_hidden_layers)
        types.refuse(std::to_string(c.num_hidden_layers) + " values as num_hidden_layers");
      for (std::size_t layer = 0; layer < each.size(); ++layer)
        if (each[layer].text() != (layer % every == 0 ? "full_attention" : "sliding_attention"))
          each[layer].refuse("full_attention in layer 0 and every " + std::to_string(every) +
                             "th after it, sliding_attention in the others");
    }
    set_windows_from_first(c, window, every);
  }

  [[gnu::cold]] void read_nomic_bert(const located_json& root) {
    decoder_config& c = out_.config;
    c.hidden_size = size(root["n_embd"]);
    c.intermediate_size = size_or(root["n_inner"], 4 * c.hidden_size);
    c.num_hidden_layers = size(root["n_layer"]);
    c.num_attention_heads = size(root["n_head"]);
    c.vocab_size = size(root["vocab_size"]);
    // After these positions angles would be scaled by the length of the text, and rotary_scaling_factor would say how.
    c.max_position_embeddings =
        root["max_trained_positions"].present() ? size(root["max_trained_positions"]) : size(root["n_positions"]);
    c.rms_norm_eps = root["layer_norm_epsilon"].present() ? root["layer_norm_epsilon"].real() : 1e-5f;
    c.rope_theta = root["rotary_emb_base"].present() ? root["rotary_emb_base"].real() : 10'000.f;
    for (const char* key : {"rotary_emb_interleaved", "qkv_proj_bias", "mlp_fc1_bias", "mlp_fc2_bias", "prenorm",
                            "parallel_block", "parallel_block_tied_norm", "causal", "use_rms_norm",
                            "moe_every_n_layers", "scale_attn_by_inverse_layer_idx"})
      if (!root[key].is_unwritten()) root[key].refuse("none");
    if (!root["scale_attn_weights"].boolean_or(true)) root["scale_attn_weights"].refuse("true");
    if (const located_json part = root["rotary_emb_fraction"]; part.present() && part.number() != 1.0) part.refuse("1");
    if (root["rotary_emb_scale_base"].present()) root["rotary_emb_scale_base"].refuse("none");
    c.hidden_act = activation::silu;
    if (const located_json act = root["activation_function"]; act.text_or("swiglu") != "swiglu") act.refuse("swiglu");
  }
};

}  // namespace intaglio::io
