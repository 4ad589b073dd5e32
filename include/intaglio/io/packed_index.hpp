// SPDX-License-Identifier: MIT
// The index of a packed file (docs/packed.md) as bytes: codec, config, vocabulary, weights and their checksums. One
// list of fields serves for writing and reading.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "intaglio/core/checked.hpp"
#include "intaglio/core/decoder_config.hpp"
#include "intaglio/core/error.hpp"
#include "intaglio/core/pooling.hpp"
#include "intaglio/io/packed_image.hpp"
#include "intaglio/io/vocabulary.hpp"

namespace intaglio::io {

/// Appends fields, little-endian: texts and lists after a u32 count, optionals after a byte that is 0 or 1.
class packed_index_writer {
 public:
  template <class T>
  void number(const T& value, const char*, std::uint64_t = 0) {
    const auto bytes = std::as_bytes(std::span(&value, 1));
    out_.insert(out_.end(), bytes.begin(), bytes.end());
  }
  void flag(const bool& value, const char* what) { number(static_cast<std::uint8_t>(value), what); }
  void text(const std::string& value, const char* what) {
    number(static_cast<std::uint32_t>(value.size()), what);
    const auto bytes = std::as_bytes(std::span(value));
    out_.insert(out_.end(), bytes.begin(), bytes.end());
  }
  template <class T, class Each>
  void list(const std::vector<T>& items, std::size_t, const char* what, Each&& each) {
    number(static_cast<std::uint32_t>(items.size()), what);
    for (const T& item : items) each(item);
  }
  template <class T, class Each>
  void maybe(const std::optional<T>& item, const char* what, Each&& each) {
    flag(item.has_value(), what);
    if (item) each(*item);
  }

  std::vector<std::byte> bytes() && { return std::move(out_); }

 private:
  std::vector<std::byte> out_;
};

/// Reads fields that packed_index_writer wrote. Every count is compared with the remaining bytes before memory is
/// reserved.
class packed_index_reader {
 public:
  /// @param at offset of the bytes in the file
  packed_index_reader(std::span<const std::byte> bytes, std::uint64_t at, const std::string& path)
      : bytes_(bytes), offset_(at), path_(&path) {}

  /// @param most the largest value, 0: any
  template <class T>
  void number(T& value, const char* what, std::uint64_t most = 0) {
    const std::uint64_t start = at();
    std::memcpy(&value, take(sizeof(T), what).data(), sizeof(T));
    if constexpr (std::is_enum_v<T>) expect(start, static_cast<std::uint64_t>(value), most, what);
    else if constexpr (std::is_unsigned_v<T>)
      if (most != 0) expect(start, value, most, what);
  }
  void flag(bool& value, const char* what) {
    std::uint8_t byte = 0;
    number(byte, what, 1);
    value = byte == 1;
  }
  void text(std::string& value, const char* what) {
    std::uint32_t size = 0;
    number(size, what);
    const auto bytes = take(size, what);
    value.assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
  /// @param least smallest number of bytes of an item
  template <class T, class Each>
  void list(std::vector<T>& items, std::size_t least, const char* what, Each&& each) {
    const std::uint64_t start = at();
    std::uint32_t count = 0;
    number(count, what);
    if (count > bytes_.size() / least)
      refuse(start, std::string(what) + ": entries",
             "at most " + std::to_string(bytes_.size() / least) + ", for which bytes are left", std::to_string(count));
    items.resize(count);
    for (T& item : items) each(item);
  }
  template <class T, class Each>
  void maybe(std::optional<T>& item, const char* what, Each&& each) {
    bool there = false;
    flag(there, what);
    if (there) each(item.emplace());
  }

  std::uint64_t at() const { return offset_; }
  std::size_t left() const { return bytes_.size(); }
  [[noreturn]] void refuse(std::uint64_t offset, std::string what, std::string expected, std::string found) const {
    throw file_error(*path_, offset, std::move(what), std::move(expected), std::move(found));
  }

 private:
  std::span<const std::byte> take(std::size_t count, const char* what) {
    if (count > bytes_.size())
      refuse(at(), std::string(what) + " runs past the end of the index", std::to_string(count) + " bytes",
             std::to_string(bytes_.size()));
    const auto out = bytes_.first(count);
    bytes_ = bytes_.subspan(count);
    offset_ += count;
    return out;
  }
  void expect(std::uint64_t start, std::uint64_t value, std::uint64_t most, const char* what) const {
    if (value > most) refuse(start, what, "at most " + std::to_string(most), std::to_string(value));
  }

  std::span<const std::byte> bytes_;
  std::uint64_t offset_;
  const std::string* path_;
};

/// The content of the index.
struct packed_index {
  std::string codec, stated_architecture;
  bool states_context = true;
  std::optional<intaglio::pooling> pooling;
  decoder_config config;
  std::optional<io::vocabulary> vocabulary;
  std::vector<packed_weight> weights;
  std::vector<std::uint64_t> sums;
};

/// The fields of a config's mixtures and of their routers. @tparam Config decoder_config, const for writing
template <class Stream, class Config>
void packed_mixture(Stream& with, Config& c) {
  with.number(c.num_local_experts, "num_local_experts");
  with.number(c.num_experts_per_tok, "num_experts_per_tok");
  with.flag(c.norm_topk_prob, "norm_topk_prob");
  with.number(c.routed_scaling_factor, "routed_scaling_factor");
  with.flag(c.use_expert_bias, "use_expert_bias");
  with.number(c.n_group, "n_group");
  with.number(c.topk_group, "topk_group");
  with.number(c.num_dense_layers, "num_dense_layers");
  with.number(c.dense_intermediate_size, "dense_intermediate_size");
  with.number(c.dense_features, "dense_features");
}

/// All fields of an index in their order. @tparam Index packed_index, const for writing
template <class Stream, class Index>
void packed_fields(Stream& with, Index& index) {
  with.text(index.codec, "codec");
  with.text(index.stated_architecture, "architecture");
  with.flag(index.states_context, "states_context");
  with.maybe(index.pooling, "pooling",
             [&](auto& value) { with.number(value, "pooling", static_cast<std::uint64_t>(last_pooling)); });
  auto& c = index.config;
  with.number(c.model_type, "model_type", static_cast<std::uint64_t>(last_architecture));
  with.number(c.hidden_act, "hidden_act", static_cast<std::uint64_t>(last_activation));
  with.number(c.activation_type, "activation_type", static_cast<std::uint64_t>(dtype::f64));
  with.flag(c.tie_word_embeddings, "tie_word_embeddings");
  with.number(c.hidden_size, "hidden_size");
  with.number(c.intermediate_size, "intermediate_size");
  with.number(c.num_hidden_layers, "num_hidden_layers");
  with.number(c.num_attention_heads, "num_attention_heads");
  with.number(c.num_key_value_heads, "num_key_value_heads");
  with.number(c.head_dim, "head_dim");
  with.number(c.vocab_size, "vocab_size");
  with.number(c.max_position_embeddings, "max_position_embeddings");
  with.number(c.rope_theta, "rope_theta");
  with.number(c.rms_norm_eps, "rms_norm_eps");
  with.number(c.rope_scaling.type, "rope_scaling.type", static_cast<std::uint64_t>(rope_type::longrope));
  with.number(c.rope_scaling.factor, "rope_scaling.factor");
  with.number(c.rope_scaling.low_freq_factor, "rope_scaling.low_freq_factor");
  with.number(c.rope_scaling.high_freq_factor, "rope_scaling.high_freq_factor");
  with.number(c.rope_scaling.original_max_position_embeddings, "rope_scaling.original_max_position_embeddings");
  with.number(c.rope_scaling.attention_factor, "rope_scaling.attention_factor");
  with.flag(c.rope_scaling.truncate, "rope_scaling.truncate");
  with.number(c.sliding_window, "sliding_window");
  with.number(c.sliding_window_pattern, "sliding_window_pattern");
  with.number(c.rope_local_base_freq, "rope_local_base_freq");
  with.number(c.query_pre_attn_scalar, "query_pre_attn_scalar");
  packed_mixture(with, c);
  with.number(c.no_rope_layer_interval, "no_rope_layer_interval");
  with.number(c.rotary_dim, "rotary_dim");
  for (auto* has : {&c.use_qk_norm, &c.attention_bias, &c.mamba_rms_norm}) with.flag(*has, "parts of some models");
  for (auto& word : c.recurrent_layers.words) with.number(word, "recurrent_layers");
  for (auto& word : c.ffn_layers.words) with.number(word, "ffn_layers");
  for (auto& word : c.expert_layers.words) with.number(word, "expert_layers");
  with.number(c.conv_taps, "conv_taps");
  with.number(c.type_vocab_size, "type_vocab_size");
  for (auto* size : {&c.delta_net.key_heads, &c.delta_net.value_heads, &c.delta_net.key_dim, &c.delta_net.value_dim})
    with.number(*size, "linear_attention");
  with.flag(c.delta_net.in_turn, "linear_attention");
  with.number(c.shared_expert_intermediate_size, "shared_expert_intermediate_size");
  with.flag(c.ternary, "ternary");
  with.number(c.global_head_dim, "global_head_dim");
  with.number(c.num_global_key_value_heads, "num_global_key_value_heads");
  with.number(c.global_turning_pairs, "global_turning_pairs");
  with.flag(c.attention_k_eq_v, "attention_k_eq_v");
  for (auto& word : c.full_attention_layers.words) with.number(word, "full_attention_layers");
  with.number(c.num_kv_shared_layers, "num_kv_shared_layers");
  with.number(c.shared_intermediate_size, "shared_intermediate_size");
  with.number(c.hidden_size_per_layer_input, "hidden_size_per_layer_input");
  with.number(c.vocab_size_per_layer_input, "vocab_size_per_layer_input");
  for (auto* size : {&c.altup_num_inputs, &c.laurel_rank, &c.q_lora_rank, &c.kv_lora_rank, &c.v_head_dim})
    with.number(*size, "altup_num_inputs to v_head_dim");
  for (auto& word : c.sparse_layers.words) with.number(word, "sparse_layers");
  with.number(c.sparse_deviations, "sparse_deviations");
  for (auto& factor : c.rope_factors.short_factor) with.number(factor, "short_factor");
  for (auto& factor : c.rope_factors.long_factor) with.number(factor, "long_factor");
  with.number(c.embedding_multiplier, "embedding_multiplier");
  with.number(c.attention_multiplier, "attention_multiplier");
  with.number(c.residual_multiplier, "residual_multiplier");
  for (auto* one : {&c.logits_scaling, &c.attn_logit_softcapping, &c.final_logit_softcapping, &c.projection_norm_eps})
    with.number(*one, "logits_scaling to projection_norm_eps");
  with.maybe(index.vocabulary, "vocabulary", [&](auto& words) {
    const auto text = [&](auto& value) { with.text(value, "vocabulary"); };
    const auto number = [&](auto& value) { with.number(value, "vocabulary"); };
    const auto flag = [&](auto& value) { with.flag(value, "vocabulary"); };
    text(words.architecture);
    text(words.model);
    with.maybe(words.pre_tokenizer, "pre_tokenizer", text);
    with.list(words.tokens, 4, "tokens", text);
    with.list(words.scores, 4, "scores", number);
    with.list(words.token_types, 4, "token_types", number);
    with.list(words.merges, 4, "merges", text);
    for (auto* id : {&words.bos_id, &words.eos_id, &words.eot_id, &words.eom_id, &words.unknown_id, &words.padding_id})
      with.maybe(*id, "id of a special token", number);
    with.list(words.end_ids, 8, "ends of a generation", number);
    with.list(words.added, 12, "added tokens", [&](auto& token) {
      number(token.id);
      for (auto* rule : {&token.single_word, &token.lstrip, &token.rstrip, &token.normalized}) flag(*rule);
    });
    text(words.charsmap);
    for (auto* rule : {&words.nfc, &words.doubles_separator, &words.spaces.merged, &words.spaces.end_stripped,
                       &words.spaces.split, &words.spaces.words})
      flag(*rule);
    for (auto* way : {&words.add_bos, &words.add_eos, &words.add_space_prefix, &words.remove_extra_whitespaces,
                      &words.space_prefix_once, &words.ignore_merges, &words.lowercase, &words.strip_accents})
      with.maybe(*way, "way of the tokenizer", flag);
    with.maybe(words.chat_template, "chat_template", text);
  });
  with.list(index.weights, 16, "weights", [&](auto& weight) {
    with.text(weight.layout, "layout");
    with.number(weight.copies, "copies");
    with.number(weight.bytes, "bytes");
  });
  with.list(index.sums, 8, "checksums", [&](auto& sum) { with.number(sum, "checksum"); });
}

}  // namespace intaglio::io
