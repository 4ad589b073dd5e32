// SPDX-License-Identifier: MIT
// config.json of encoders: BERT, RoBERTa, XLM-RoBERTa and Nomic's BERT. Keys and defaults: transformers' BertConfig,
// RobertaConfig and XLMRobertaConfig, nomic-ai/nomic-bert-2048's NomicBertConfig.
#pragma once

#include "intaglio/core/compiler.hpp"

#include <cstdint>
#include <string>

#include "intaglio/io/hf_streams.hpp"

namespace intaglio::io {

/// Reads what encoders state.
class hf_encoder : public hf_streams {
 public:
  using hf_streams::hf_streams;

 protected:
  [[gnu::cold]] void read_encoder(const json_place& root) {
    decoder_config& c = out_.config;
    family_of(c.model_type).learned_positions ? read_bert(root) : read_nomic_bert(root);
    c.type_vocab_size = size_or(root["type_vocab_size"], 2);
    c.num_key_value_heads = c.num_attention_heads;
    if (c.num_attention_heads == 0 || c.hidden_size % c.num_attention_heads != 0)
      document_.refuse("number of heads", "a divisor of the hidden size " + std::to_string(c.hidden_size),
                       std::to_string(c.num_attention_heads));
    c.head_dim = c.hidden_size / c.num_attention_heads;
    c.no_rope_layer_interval = family_of(c.model_type).no_rope_interval;
    out_.tie_word_embeddings = true;
  }

 private:
  std::uint32_t size_or(const json_place& place, std::uint32_t absent) const {
    return place.present() ? size(place) : absent;
  }

  [[gnu::cold]] void read_bert(const json_place& root) {
    decoder_config& c = out_.config;
    c.hidden_size = size_or(root["hidden_size"], 768);
    c.intermediate_size = size_or(root["intermediate_size"], 3072);
    c.num_hidden_layers = size_or(root["num_hidden_layers"], 12);
    c.num_attention_heads = size_or(root["num_attention_heads"], 12);
    c.vocab_size = size_or(root["vocab_size"], 30'522);
    c.max_position_embeddings = size_or(root["max_position_embeddings"], 512);
    // A RoBERTa's positions begin behind that of its padding.
    if (out_.model_type != "bert") {
      const std::uint64_t padding = root["pad_token_id"].present() ? root["pad_token_id"].natural() : 1;
      if (padding + 1 >= c.max_position_embeddings)
        root["pad_token_id"].refuse("an id whose position is before the last");
      out_.position_offset = static_cast<std::uint32_t>(padding) + 1;
      c.max_position_embeddings -= out_.position_offset;
    }
    c.rms_norm_eps = root["layer_norm_eps"].present() ? root["layer_norm_eps"].real() : 1e-12f;
    if (const json_place type = root["position_embedding_type"]; type.text_or("absolute") != "absolute")
      type.refuse("absolute");
    if (root["is_decoder"].boolean_or(false)) root["is_decoder"].refuse("false");
    const json_place act = root["hidden_act"];
    const std::string word = act.text_or("gelu");
    if (word == "gelu") c.hidden_act = activation::gelu;
    else if (word == "gelu_new" || word == "gelu_pytorch_tanh") c.hidden_act = activation::gelu_tanh;
    else act.refuse("gelu, gelu_new or gelu_pytorch_tanh");
  }

  [[gnu::cold]] void read_nomic_bert(const json_place& root) {
    decoder_config& c = out_.config;
    c.hidden_size = size(root["n_embd"]);
    c.intermediate_size = size_or(root["n_inner"], 4 * c.hidden_size);
    c.num_hidden_layers = size(root["n_layer"]);
    c.num_attention_heads = size(root["n_head"]);
    c.vocab_size = size(root["vocab_size"]);
    // Behind these positions angles would be scaled by the length of the text, and rotary_scaling_factor says how.
    c.max_position_embeddings =
        root["max_trained_positions"].present() ? size(root["max_trained_positions"]) : size(root["n_positions"]);
    c.rms_norm_eps = root["layer_norm_epsilon"].present() ? root["layer_norm_epsilon"].real() : 1e-5f;
    c.rope_theta = root["rotary_emb_base"].present() ? root["rotary_emb_base"].real() : 10'000.f;
    for (const char* key : {"rotary_emb_interleaved", "qkv_proj_bias", "mlp_fc1_bias", "mlp_fc2_bias", "prenorm",
                            "parallel_block", "parallel_block_tied_norm", "causal", "use_rms_norm",
                            "moe_every_n_layers", "scale_attn_by_inverse_layer_idx"})
      if (!root[key].is_nothing()) root[key].refuse("none");
    if (!root["scale_attn_weights"].boolean_or(true)) root["scale_attn_weights"].refuse("true");
    if (const json_place part = root["rotary_emb_fraction"]; part.present() && part.number() != 1.0) part.refuse("1");
    if (root["rotary_emb_scale_base"].present()) root["rotary_emb_scale_base"].refuse("none");
    c.hidden_act = activation::silu;
    if (const json_place act = root["activation_function"]; act.text_or("swiglu") != "swiglu") act.refuse("swiglu");
  }
};

}  // namespace intaglio::io
