// SPDX-License-Identifier: MIT
// Opens a GGUF model as a checkpoint: config and vocabulary from its keys. Key names: llama.cpp's llama-arch.cpp.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "intaglio/io/checkpoint_data.hpp"
#include "intaglio/io/gguf.hpp"
#include "intaglio/io/rope_factors.hpp"

namespace intaglio::io {

/// The config that the keys of a GGUF file state. @throws file_error for a key that is absent, of another type or out
/// of range
class gguf_config {
 public:
  explicit gguf_config(const gguf& file) : file_(file) {
    const auto stated = file.value<std::string>("general.architecture");
    if (!stated) refuse("general.architecture", "one of: " + std::string(known), "no such key");
    architecture_ = *stated;
    if (architecture_ == "bitnet" || architecture_ == "bitnet-b1.58" || architecture_ == "bitnet-25")
      config_.model_type = architecture::bitnet;
    else if (architecture_ == "llama") config_.model_type = architecture::llama;
    else if (architecture_ == "gemma3") config_.model_type = architecture::gemma3;
    else refuse("general.architecture", "one of: " + std::string(known), "'" + printable(architecture_, 60) + "'");
    read();
    check_config(config_, file.path());
  }

  const decoder_config& config() const { return config_; }
  const std::string& stated_architecture() const { return architecture_; }
  const std::vector<std::string>& warnings() const { return warnings_; }

 private:
  static constexpr std::string_view known = "bitnet, bitnet-b1.58, bitnet-25, llama, gemma3";

  void read() {
    const bool bitnet = config_.model_type == architecture::bitnet, gemma = config_.model_type == architecture::gemma3;
    config_.hidden_size = required("embedding_length");
    config_.intermediate_size = required("feed_forward_length");
    config_.num_hidden_layers = required("block_count");
    config_.num_attention_heads = required("attention.head_count");
    config_.num_key_value_heads = value("attention.head_count_kv").value_or(config_.num_attention_heads);
    config_.max_position_embeddings = required("context_length");
    config_.vocab_size = vocab_size();
    config_.rms_norm_eps = real("attention.layer_norm_rms_epsilon").value_or(-1.f);
    if (config_.rms_norm_eps == -1.f) refuse(key("attention.layer_norm_rms_epsilon"), "a number", "no such key");
    config_.rope_theta = real("rope.freq_base").value_or(10'000.f);
    read_head_dim();
    // In llama.cpp the architecture "bitnet" is the older model with SiLU, run in floating point.
    config_.hidden_act = gemma                                 ? activation::gelu_tanh
                         : bitnet && architecture_ != "bitnet" ? activation::relu_squared
                                                               : activation::silu;
    config_.activation_type = architecture_ == "bitnet" ? dtype::f32 : dtype::i8;
    // Files of "bitnet-25" hold their embedding a second time as the head, others may.
    config_.tie_word_embeddings = architecture_ == "bitnet-25" || file_.find_tensor("output.weight") == nullptr ||
                                  (bitnet && head_is_embedding());
    read_rope_scaling(bitnet);
    if (config_.model_type == architecture::llama) read_rope_factors();
    read_windows(gemma);
    if (const auto experts = value("expert_count"); experts && *experts != 0) {
      if (config_.model_type != architecture::llama) refuse(key("expert_count"), "0", std::to_string(*experts));
      config_.num_local_experts = *experts;
      config_.num_experts_per_tok = required("expert_used_count");
    }
    if (const auto cap = real("final_logit_softcapping"); cap && *cap != 0.f)
      refuse(key("final_logit_softcapping"), "0", number_text(*cap));
  }

  std::uint32_t vocab_size() {
    if (const auto stated = value("vocab_size")) return *stated;
    const gguf_tensor* embedding = file_.find_tensor("token_embd.weight");
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
  void read_head_dim() {
    const std::uint32_t heads = config_.num_attention_heads;
    if (const auto length = value("attention.key_length")) {
      config_.head_dim = *length;
      if (const auto other = value("attention.value_length"); other && *other != *length)
        refuse(key("attention.value_length"), std::to_string(*length) + " as attention.key_length",
               std::to_string(*other));
    } else {
      if (heads == 0 || config_.hidden_size % heads != 0)
        refuse(key("attention.head_count"), "a divisor of embedding_length " + std::to_string(config_.hidden_size),
               std::to_string(heads));
      config_.head_dim = config_.hidden_size / heads;
    }
    if (const auto rotated = value("rope.dimension_count"); rotated && *rotated != config_.head_dim)
      refuse(key("rope.dimension_count"), std::to_string(config_.head_dim) + " as the heads are wide",
             std::to_string(*rotated));
  }
  void read_rope_scaling(bool bitnet) {
    const auto type = file_.value<std::string>(key("rope.scaling.type"));
    const float factor = real("rope.scaling.factor").value_or(1.f);
    if (!type || *type == "none" || (*type == "linear" && factor == 1.f)) return;
    if (*type != "linear") refuse(key("rope.scaling.type"), "none or linear", "'" + printable(*type, 40) + "'");
    if (!std::isfinite(factor) || factor <= 0.f)
      refuse(key("rope.scaling.factor"), "a finite number above 0", number_text(factor));
    if (bitnet)
      refuse(key("rope.scaling.type"), "none, or linear with factor 1",
             "'" + *type + "' with factor " + number_text(factor));
    config_.rope_scaling = {.type = rope_type::linear, .factor = factor};
  }
  /// Llama 3.1's scaling comes as what each inverse frequency is divided by.
  void read_rope_factors() {
    const gguf_tensor* tensor = file_.find_tensor("rope_freqs.weight");
    if (tensor == nullptr) return;
    const mapped_file& file = file_.parts()[tensor->part].file();
    if (tensor->type != dtype::f32 || tensor->bytes != std::uint64_t{config_.head_dim} / 2 * sizeof(float))
      throw file_error(file.path(), tensor->offset, "tensor 'rope_freqs.weight'",
                       std::to_string(config_.head_dim / 2) + " values of f32",
                       std::to_string(tensor->bytes) + " bytes of " + std::string(name(tensor->type)));
    std::vector<float> factors(static_cast<std::size_t>(tensor->bytes / sizeof(float)));
    file.read(tensor->offset, std::as_writable_bytes(std::span(factors)));
    if (const auto scaling = llama3_scaling_of(factors, config_.rope_theta)) config_.rope_scaling = *scaling;
    else
      throw file_error(file.path(), tensor->offset, "tensor 'rope_freqs.weight'",
                       "factors of Llama 3.1's RoPE scaling (low_freq_factor 1, high_freq_factor 4)",
                       "others for rope_theta " + number_text(config_.rope_theta));
  }
  void read_windows(bool gemma) {
    config_.sliding_window = gemma                      ? required("attention.sliding_window")
                             : architecture_ == "llama" ? value("attention.sliding_window").value_or(0)
                                                        : 0;
    if (!gemma || config_.sliding_window == 0) return;
    config_.sliding_window_pattern = value("attention.sliding_window_pattern").value_or(6);
    config_.rope_local_base_freq = real("rope.freq_base_swa").value_or(10'000.f);
    // No key says it: llama.cpp knows the 27B, whose scores are scaled otherwise, by its layers.
    if (config_.num_hidden_layers == 62)
      config_.query_pre_attn_scalar = config_.hidden_size / config_.num_attention_heads;
  }

  std::string key(std::string_view tail) const { return architecture_ + "." + std::string(tail); }
  std::optional<std::uint32_t> value(std::string_view tail) const { return file_.value<std::uint32_t>(key(tail)); }
  std::optional<float> real(std::string_view tail) const { return file_.value<float>(key(tail)); }
  std::uint32_t required(std::string_view tail) const {
    const auto found = value(tail);
    if (!found) refuse(key(tail), "a number", "no such key");
    return *found;
  }
  [[noreturn]] void refuse(std::string_view what, std::string expected, std::string found) const {
    const gguf_value* at = file_.first().find(what);
    throw file_error(file_.path(), at == nullptr ? std::nullopt : std::optional(at->offset),
                     "key '" + std::string(what) + "'", std::move(expected), std::move(found));
  }

  const gguf& file_;
  std::string architecture_;
  decoder_config config_;
  std::vector<std::string> warnings_;
};

/// The tokenizer.* keys as they are. @throws file_error for a key of another type
inline vocabulary gguf_vocabulary(const gguf& file) {
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
    const auto found = file.value<std::uint32_t>("tokenizer.ggml." + std::string(key));
    return found ? std::optional<std::int64_t>(*found) : std::nullopt;
  };
  out.bos_id = id("bos_token_id");
  out.eos_id = id("eos_token_id");
  out.eot_id = id("eot_token_id");
  out.unknown_id = id("unknown_token_id");
  out.padding_id = id("padding_token_id");
  out.add_bos = file.value<bool>("tokenizer.ggml.add_bos_token");
  out.add_eos = file.value<bool>("tokenizer.ggml.add_eos_token");
  out.add_space_prefix = file.value<bool>("tokenizer.ggml.add_space_prefix");
  out.remove_extra_whitespaces = file.value<bool>("tokenizer.ggml.remove_extra_whitespaces");
  out.chat_template = file.value<std::string>("tokenizer.chat_template");
  return out;
}

/// Turns an opened GGUF into a checkpoint.
inline checkpoint checkpoint_from_gguf(gguf file, const checkpoint_options& options) {
  checkpoint_builder builder(file.path(), options);
  const gguf_config config(file);
  builder.config() = config.config();
  builder.stated_architecture() = config.stated_architecture();
  for (const std::string& line : file.warnings()) builder.warn(line);
  for (const std::string& line : config.warnings()) builder.warn(line);
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
    const bool turns = tensor.name.ends_with(".attn_q.weight") || tensor.name.ends_with(".attn_k.weight");
    if (turns && config.config().model_type == architecture::llama) out.rows_in_pairs = config.config().head_dim;
    builder.add(std::move(out));
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
