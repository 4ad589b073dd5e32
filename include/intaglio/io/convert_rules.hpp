// SPDX-License-Identifier: MIT
// The codec that convert gives each tensor, and the conversions that it refuses.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "intaglio/core/family.hpp"
#include "intaglio/io/bcml1_encode.hpp"
#include "intaglio/io/checkpoint.hpp"
#include "intaglio/io/codec_encode.hpp"
#include "intaglio/io/convert_options.hpp"
#include "intaglio/io/fused_tensors.hpp"
#include "intaglio/io/rope_factors.hpp"

namespace intaglio::io {

/// The value of general.file_type in a GGUF file: llama.cpp's LLAMA_FTYPE; 40 comes from the fork for BitNet. Absent
/// where the codec has none.
constexpr std::optional<std::uint32_t> gguf_file_type(dtype codec) {
  switch (codec) {
    case dtype::f32:
      return 0;
    case dtype::f16:
      return 1;
    case dtype::q4_0:
      return 2;
    case dtype::q4_1:
      return 3;
    case dtype::q8_0:
      return 7;
    case dtype::q5_0:
      return 8;
    case dtype::q5_1:
      return 9;
    case dtype::q2_k:
      return 10;
    case dtype::q3_k:
      return 11;  // "small", as those below: no tensor of more bits
    case dtype::q4_k:
      return 14;
    case dtype::q5_k:
      return 16;
    case dtype::q6_k:
      return 18;
    case dtype::iq4_nl:
      return 25;
    case dtype::mxfp4:
      return 38;
    case dtype::bf16:
      return 32;
    case dtype::tq1_0:
      return 36;
    case dtype::tq2_0:
      return 37;
    case dtype::bcml1:
      return static_cast<std::uint32_t>(bcml1_ggml_type);
    case dtype::i2_s:
      return 40;
    default:
      return std::nullopt;
  }
}

/// The RoPE scalings of a model that GGUF stores as tensors, where the model itself has no such tensors.
inline std::vector<std::pair<std::string, std::vector<float>>> gguf_rope_factors(const checkpoint& model) {
  const decoder_config& c = model.config();
  std::vector<std::pair<std::string, std::vector<float>>> out;
  if (c.rope_scaling.type == rope_type::llama3 && model.find("rope_freqs.weight") == nullptr) {
    std::vector<float> factors(c.head_dim / 2);
    for (std::size_t i = 0; i < factors.size(); ++i)
      factors[i] = static_cast<float>(llama3_factor(c.rope_scaling, c.rope_theta, i, factors.size()));
    out.emplace_back("rope_freqs.weight", std::move(factors));
  }
  if (family_of(c.model_type).kinds_of_layers) {  // channels that are not rotated are divided by a number so large that
                                                  // they do not turn
    std::vector<float> factors(c.head_dim_of(false) / 2, 1.f);
    if (const std::uint32_t turning = c.global_turning_pairs; turning != 0)
      std::fill(factors.begin() + turning, factors.end(), 1e30f);
    out.emplace_back("rope_freqs.weight", std::move(factors));
  }
  if (c.rope_scaling.type != rope_type::longrope || model.find("rope_factors_long.weight") != nullptr) return out;
  const auto pairs = static_cast<std::ptrdiff_t>((c.rotary_dim != 0 ? c.rotary_dim : c.head_dim) / 2);
  const longrope_factors& both = c.rope_factors;
  out.emplace_back("rope_factors_long.weight",
                   std::vector<float>(both.long_factor.begin(), both.long_factor.begin() + pairs));
  out.emplace_back("rope_factors_short.weight",
                   std::vector<float>(both.short_factor.begin(), both.short_factor.begin() + pairs));
  return out;
}

/// Chooses the type of each tensor of a converted model. Norms and factors stay f32; matrices get the codec; for
/// embedding and head see convert_options. Rows that are no whole blocks of a codec are written as f16, with a warning.
class conversion_rules {
 public:
  /// Refers to all arguments, which outlive it. @param warnings gets a line for each tensor whose rows do not fit
  conversion_rules(const convert_options& options, const checkpoint& model, bool to_safetensors,
                   std::vector<std::string>& warnings)
      : options_(&options), model_(&model), to_safetensors_(to_safetensors), warnings_(&warnings) {}

  /// Whether the matrices are ternary.
  bool bitnet() const { return is_ternary(config()); }

  /// @error argument_error: a codec that does not go with the model or the file's kind
  void check() const {
    const dtype codec = options_->codec;
    const bool ternary = codec == dtype::i2_s || codec == dtype::tq1_0 || codec == dtype::tq2_0;
    if (to_safetensors_ && !is_float(codec))
      throw argument_error("codec", "f32 f16 bf16 for safetensors", std::string(name(codec)));
    if (bitnet() ? !(ternary || is_float(codec)) : !(is_blocks(codec) || codec == dtype::bcml1 || is_float(codec)))
      throw argument_error(
          "codec", bitnet() ? "i2_s tq1_0 tq2_0 f32 f16 bf16 for a ternary model" : float_and_block_types() + " bcml1",
          std::string(name(codec)));
    if (const family& of = family_of(config().model_type); to_safetensors_ && (of.qkv_by_head || of.transposed))
      throw argument_error("output", "a GGUF file: safetensors of this family have q, k and v by head or transposed",
                           "a safetensors file");
    if (codec == dtype::bcml1 && has_fused_matrices(family_of(config().model_type)))
      throw argument_error("codec", "another than bcml1, whose panels hold no matrices one after the other",
                           std::string(name(codec)));
    if (!options_->embedding) return;
    if (to_safetensors_ ? !is_float(*options_->embedding)
                        : !(is_blocks(*options_->embedding) || is_float(*options_->embedding)))
      throw argument_error("embedding", to_safetensors_ ? "f32 f16 bf16 for safetensors" : float_and_block_types(),
                           std::string(name(*options_->embedding)));
  }

  /// The type that a tensor is written in.
  dtype target(const checkpoint_tensor& tensor) const {
    switch (tensor.role) {
      case tensor_role::norm:
      case tensor_role::bias:
      case tensor_role::factor:
      case tensor_role::taps:
      case tensor_role::table:
        return dtype::f32;
      case tensor_role::embedding: {
        const bool apart = options_->codec == dtype::bcml1 || (bitnet() && !is_float(options_->codec));
        return whole_blocks(tensor, options_->embedding.value_or(apart ? dtype::f16 : options_->codec));
      }
      case tensor_role::matrix:
        break;
    }
    if (tensor.stored.name.ends_with(".ffn_gate_inp.weight") ||
        tensor.stored.name.ends_with(".ffn_gate_inp_shexp.weight"))
      return dtype::f32;  // the choice of experts is not rounded, as in llama-quantize
    return whole_blocks(tensor, options_->codec);
  }

 private:
  const decoder_config& config() const { return model_->config(); }
  static bool is_float(dtype type) { return type == dtype::f32 || type == dtype::f16 || type == dtype::bf16; }
  static bool is_blocks(dtype type) {
    return is_encodable(type) && !is_float(type) && type != dtype::tq1_0 && type != dtype::tq2_0;
  }

  static std::string float_and_block_types() {
    std::string out = "f32 f16 bf16";
    for (const auto& row : dtype_table)
      if (is_blocks(row.type)) out.append(" ").append(row.name);
    return out;
  }
  dtype whole_blocks(const checkpoint_tensor& tensor, dtype type) const {
    if (tensor.stored.columns % info(type).block_elements == 0) return type;
    warnings_->push_back(
        in_file(model_->path(), tensor.stored.name + ": rows of " + std::to_string(tensor.stored.columns) +
                                    " are no whole blocks of " + std::string(name(type)) + ", written as f16"));
    return dtype::f16;
  }

  const convert_options* options_;
  const checkpoint* model_;
  bool to_safetensors_;
  std::vector<std::string>* warnings_;
};

}  // namespace intaglio::io
