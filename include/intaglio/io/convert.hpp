// SPDX-License-Identifier: MIT
// Rewrites a model as a GGUF file in another codec. The new file appears whole or not at all.
#pragma once

#include <array>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "intaglio/io/checkpoint.hpp"
#include "intaglio/io/codec_encode.hpp"
#include "intaglio/io/gguf_writer.hpp"

namespace intaglio::io {

/// How far a long operation on a file is.
struct file_progress {
  std::uint64_t bytes = 0, total_bytes = 0;
  std::size_t tensors = 0, total_tensors = 0;
  std::string_view tensor;  ///< the one at work
};

struct convert_options {
  dtype codec = dtype::i2_s;           ///< of the matrices: for BitNet i2_s tq1_0 tq2_0 f32 f16 bf16, else f32 f16 bf16 q8_0 q4_0 q4_1 q4_k q6_k
  std::optional<dtype> embedding;      ///< of token embedding and head; by default f16, or the codec where it is f32, f16, bf16 or a Q type
  i2s_layout layout = i2s_layout::block128;  ///< of I2_S tensors in the input; the output is always block128
  std::function<void(const file_progress&)> progress;
};

/// What was written.
struct convert_report {
  std::uint64_t bytes = 0;
  std::vector<std::string> warnings;
};

/// The work of convert, in its steps.
class model_converter {
 public:
  model_converter(const std::filesystem::path& in, const std::filesystem::path& out, const convert_options& options)
      : options_(options), model_(checkpoint::open(in, {options.layout})), writer_(out) {
    report_.warnings = model_.warnings();
    check_codec();
    write_keys(in);
    plan_tensors();
  }

  convert_report run() {
    writer_.begin();
    for (const planned& tensor : plan_) {
      report(tensor.source->stored.name);
      if (tensor.source->role == tensor_role::matrix && bitnet()) write_ternary(tensor);
      else write_values(tensor);
      ++progress_.tensors;
    }
    report("");
    warn_rounded();
    model_.expect_unchanged();
    writer_.finish();
    return std::move(report_);
  }

 private:
  struct planned {
    const checkpoint_tensor* source;
    dtype type;
  };
  static constexpr std::uint64_t chunk_elements = 1 << 20;

  bool bitnet() const { return model_.config().model_type == architecture::bitnet; }
  static bool is_float(dtype type) { return type == dtype::f32 || type == dtype::f16 || type == dtype::bf16; }

  void check_codec() const {
    const dtype codec = options_.codec;
    const bool ternary = codec == dtype::i2_s || codec == dtype::tq1_0 || codec == dtype::tq2_0;
    const bool blocks = codec == dtype::q8_0 || codec == dtype::q4_0 || codec == dtype::q4_1 || codec == dtype::q4_k || codec == dtype::q6_k;
    if (bitnet() ? !(ternary || is_float(codec)) : !(blocks || is_float(codec)))
      throw argument_error("codec", bitnet() ? "i2_s tq1_0 tq2_0 f32 f16 bf16 for a ternary model" : "f32 f16 bf16 q8_0 q4_0 q4_1 q4_k q6_k", std::string(name(codec)));
    if (options_.embedding && (!is_encodable(*options_.embedding) || *options_.embedding == dtype::tq1_0 || *options_.embedding == dtype::tq2_0))
      throw argument_error("embedding", "f32 f16 bf16 q8_0 q4_0 q4_1 q4_k q6_k", std::string(name(*options_.embedding)));
  }

  dtype target(const checkpoint_tensor& tensor) {
    switch (tensor.role) {
      case tensor_role::norm: case tensor_role::factor: return dtype::f32;
      case tensor_role::embedding: {
        const bool ternary = bitnet() && !is_float(options_.codec);
        return whole_blocks(tensor, options_.embedding.value_or(ternary ? dtype::f16 : options_.codec));
      }
      case tensor_role::matrix: break;
    }
    return whole_blocks(tensor, options_.codec);
  }
  dtype whole_blocks(const checkpoint_tensor& tensor, dtype type) {
    if (tensor.stored.columns % info(type).block_elements == 0) return type;
    report_.warnings.push_back(tensor.stored.name + ": rows of " + std::to_string(tensor.stored.columns) + " are no whole blocks of " +
                               std::string(name(type)) + ", written as f16");
    return dtype::f16;
  }

  static std::uint32_t file_type(dtype codec) {
    switch (codec) {  // llama.cpp's LLAMA_FTYPE; 40 is the BitNet fork's
      case dtype::f32: return 0;
      case dtype::f16: return 1;
      case dtype::q4_0: return 2;
      case dtype::q4_1: return 3;
      case dtype::q8_0: return 7;
      case dtype::q4_k: return 14;  // "small": no tensor of more bits
      case dtype::q6_k: return 18;
      case dtype::bf16: return 32;
      case dtype::tq1_0: return 36;
      case dtype::tq2_0: return 37;
      default: return 40;
    }
  }

  void write_keys(const std::filesystem::path& in) {
    std::error_code ignored;
    if (std::filesystem::is_directory(in, ignored)) write_hf_keys();
    else {
      const gguf file = gguf::open(in);
      for (const gguf_value& value : file.first().values())
        if (value.key != "general.file_type" && value.key != "general.alignment" && !value.key.starts_with("split.")) writer_.copy(file.first(), value);
    }
    writer_.set("general.file_type", file_type(options_.codec));
  }

  /// The keys of the published BitNet files (formats as B's convert-hf-to-gguf-bitnet.py writes them). The architecture says the activation:
  /// "bitnet" is SiLU with f32 activations, so a folder's int8 activations get lost with SiLU.
  void write_hf_keys() {
    const decoder_config& c = model_.config();
    const bool silu = c.hidden_act == activation::silu;
    if (!bitnet() || !(silu || c.hidden_act == activation::relu_squared))
      throw argument_error("model", "a Hugging Face folder of a BitNet model with relu2 or silu",
                           printable(model_.stated_architecture()) + " with " + std::string(name(c.hidden_act)));
    if (silu && c.activation_type != dtype::f32)
      report_.warnings.push_back("GGUF has SiLU only with f32 activations (architecture bitnet); the folder's are " + std::string(name(c.activation_type)));
    const std::string stated = silu ? "bitnet" : "bitnet-b1.58", prefix = stated + ".";
    writer_.set("general.architecture", stated);
    std::filesystem::path folder(model_.path());
    if (!folder.has_filename()) folder = folder.parent_path();
    writer_.set("general.name", is_utf8(folder.filename().string()) ? folder.filename().string() : std::string("model"));
    writer_.set("general.quantization_version", std::uint32_t{2});
    writer_.set(prefix + "vocab_size", c.vocab_size);
    writer_.set(prefix + "context_length", c.max_position_embeddings);
    writer_.set(prefix + "embedding_length", c.hidden_size);
    writer_.set(prefix + "block_count", c.num_hidden_layers);
    writer_.set(prefix + "feed_forward_length", c.intermediate_size);
    writer_.set(prefix + "rope.dimension_count", c.head_dim);
    writer_.set(prefix + "attention.head_count", c.num_attention_heads);
    writer_.set(prefix + "attention.head_count_kv", c.num_key_value_heads);
    writer_.set(prefix + "attention.layer_norm_rms_epsilon", c.rms_norm_eps);
    writer_.set(prefix + "rope.freq_base", c.rope_theta);
    if (c.head_dim * c.num_attention_heads != c.hidden_size) {
      writer_.set(prefix + "attention.key_length", c.head_dim);
      writer_.set(prefix + "attention.value_length", c.head_dim);
    }
    if (model_.vocabulary()) write_vocabulary(*model_.vocabulary());
  }

  /// Of a tokenizer.json, which has no scores and says nothing of white space to remove.
  void write_vocabulary(const vocabulary& from) {
    writer_.set("tokenizer.ggml.model", from.model);
    if (from.pre_tokenizer) writer_.set("tokenizer.ggml.pre", *from.pre_tokenizer);
    writer_.set_array<std::string>("tokenizer.ggml.tokens", from.tokens);
    writer_.set_array<std::int32_t>("tokenizer.ggml.token_type", from.token_types);
    if (!from.merges.empty()) writer_.set_array<std::string>("tokenizer.ggml.merges", from.merges);
    const auto id = [&](const char* key, std::optional<std::int64_t> value) {
      if (value && *value >= 0 && *value <= 0xFFFFFFFFll) writer_.set(std::string("tokenizer.ggml.") + key, static_cast<std::uint32_t>(*value));
    };
    id("bos_token_id", from.bos_id);
    id("eos_token_id", from.eos_id);
    id("eot_token_id", from.eot_id);
    id("unknown_token_id", from.unknown_id);
    id("padding_token_id", from.padding_id);
    if (from.add_bos) writer_.set("tokenizer.ggml.add_bos_token", *from.add_bos);
    if (from.add_eos) writer_.set("tokenizer.ggml.add_eos_token", *from.add_eos);
    if (from.add_space_prefix) writer_.set("tokenizer.ggml.add_space_prefix", *from.add_space_prefix);
    if (from.chat_template) writer_.set("tokenizer.chat_template", *from.chat_template);
  }

  void plan_tensors() {
    for (const checkpoint_tensor& tensor : model_.tensors()) {
      const dtype type = target(tensor);
      const std::array<std::uint64_t, 2> shape{tensor.stored.columns, tensor.stored.rows};
      writer_.add_tensor(tensor.stored.name, type, std::span(shape).first(tensor.dimensions));
      plan_.push_back({&tensor, type});
      progress_.total_bytes += tensor.stored.bytes;
    }
    progress_.total_tensors = plan_.size();
    report_.bytes = writer_.data_bytes();
  }

  /// Encodes rows in chunks of bounded memory; `fill` gets the first row and their number and appends their bytes.
  template <class Fill>
  void in_chunks(const planned& tensor, Fill&& fill) {
    const stored_tensor& stored = tensor.source->stored;
    const std::uint64_t step = std::max<std::uint64_t>(1, chunk_elements / stored.columns);
    std::vector<std::byte> bytes;
    const std::uint64_t before = progress_.bytes;
    for (std::uint64_t row = 0; row < stored.rows; row += step) {
      const std::uint64_t some = std::min(step, stored.rows - row);
      bytes.resize(static_cast<std::size_t>(some * row_bytes(tensor.type, stored.columns)));
      fill(row, some, std::span(bytes));
      writer_.write(bytes);
      progress_.bytes = before + static_cast<std::uint64_t>(static_cast<double>(stored.bytes) * static_cast<double>(row + some) / static_cast<double>(stored.rows));
      report(stored.name);
    }
    progress_.bytes = before + stored.bytes;
  }
  void write_values(const planned& tensor) {
    std::vector<float> values;
    in_chunks(tensor, [&](std::uint64_t row, std::uint64_t count, std::span<std::byte> bytes) {
      values.resize(static_cast<std::size_t>(count * tensor.source->stored.columns));
      model_.read_f32(*tensor.source, row, count, values);
      encode_row(tensor.type, values, bytes);
      if (tensor.type == dtype::f16 || tensor.type == dtype::bf16) refuse_overflow(tensor, bytes);
    });
  }
  /// A finite f32 above 65519 has no f16.
  static void refuse_overflow(const planned& tensor, std::span<const std::byte> bytes) {
    std::vector<float> again(bytes.size() / 2);
    decode_row(tensor.type, bytes, again);
    for (const float value : again)
      if (!std::isfinite(value))
        throw file_error(tensor.source->stored.file->path(), tensor.source->stored.offset, "tensor '" + printable(tensor.source->stored_name, 70) + "'",
                         "values that " + std::string(name(tensor.type)) + " can hold", "a larger one");
  }
  void write_ternary(const planned& tensor) {
    const ternary_tensor source = model_.ternary(*tensor.source);
    if (tensor.type == dtype::tq1_0 || tensor.type == dtype::tq2_0 || tensor.type == dtype::f16 || tensor.type == dtype::bf16) {
      const float kept = tensor.type == dtype::bf16 ? f32_from_bf16(bf16_from_f32(source.scale())) : f32_from_f16(f16_from_f32(source.scale()));
      if (!(kept > 0.f) || !std::isfinite(kept))
        throw file_error(tensor.source->stored.file->path(), tensor.source->stored.offset, "tensor '" + printable(tensor.source->stored_name, 70) + "': scale",
                         "one that " + std::string(name(tensor.type)) + " can hold", number_text(source.scale()));
      if (kept != source.scale()) ++rounded_scales_;
    }
    std::vector<std::int8_t> codes;
    in_chunks(tensor, [&](std::uint64_t row, std::uint64_t count, std::span<std::byte> bytes) {
      codes.resize(static_cast<std::size_t>(count * tensor.source->stored.columns));
      source.rows(row, count, codes);
      encode_ternary_rows(tensor.type, codes, source.scale(), bytes);
    });
    if (tensor.type == dtype::i2_s) writer_.write(i2_s_tail(source.scale()));
  }
  void warn_rounded() {
    if (rounded_scales_ != 0) report_.warnings.push_back(std::to_string(rounded_scales_) + " scales were rounded to " + std::string(name(options_.codec)));
  }
  void report(std::string_view tensor) {
    progress_.tensor = tensor;
    if (options_.progress) options_.progress(progress_);
  }

  convert_options options_;
  checkpoint model_;
  gguf_writer writer_;
  convert_report report_;
  std::vector<planned> plan_;
  file_progress progress_;
  std::size_t rounded_scales_ = 0;
};

/// Reads `in` (GGUF or Hugging Face folder) and writes `out`; memory stays bounded whatever the size. Ternary codes and values that fit the
/// codec stay as they are; a scale that f16 cannot hold exactly is rounded, with a warning.
/// @throws file_error for what is wrong with a file, argument_error for a codec that does not go with the model
inline convert_report convert(const std::filesystem::path& in, const std::filesystem::path& out, const convert_options& options = {}) {
  return model_converter(in, out, options).run();
}

}  // namespace intaglio::io
