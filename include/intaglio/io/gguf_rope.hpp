// SPDX-License-Identifier: MIT
// The keys of a GGUF file for the rotary embedding.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "intaglio/core/family.hpp"
#include "intaglio/io/gguf_fields.hpp"
#include "intaglio/io/rope_factors.hpp"

namespace intaglio::io {

/// Reads the rotary embedding.
class gguf_rope : public gguf_fields {
 public:
  using gguf_fields::gguf_fields;

 protected:
  /// Reads the scaling of the rotary embedding. As in llama.cpp it is linear without a type, and rope.scale_linear is
  /// an older key of the factor.
  [[gnu::cold]] void read_rope_scaling(bool bitnet) {
    const std::string type = file_.value<std::string>(key("rope.scaling.type")).value_or("linear");
    const std::string_view stated = real("rope.scaling.factor") ? "rope.scaling.factor" : "rope.scale_linear";
    const float factor = real(stated).value_or(1.f);
    if (stated.ends_with("factor")) not_used({"rope.scale_linear"}, "rope.scaling.factor is there");
    if (type == "longrope" && family_of(config_.model_type).partial_rotary) return;  // read_longrope reads it
    if (type != "none" && type != "linear" && type != "yarn")
      refuse(key("rope.scaling.type"), "none, linear or yarn", "'" + printable(type, 40) + "'");
    if (factor == 1.f) return;
    if (type == "none") return warn("key '" + key(stated) + "' is not used: " + key("rope.scaling.type") + " is none");
    if (!std::isfinite(factor) || factor < 1.f) refuse(key(stated), "a finite number from 1", number_text(factor));
    if (bitnet) refuse(key(stated), "1: a BitNet is not scaled", number_text(factor));
    config_.rope_scaling = {.type = rope_type::linear, .factor = factor};
    if (type == "yarn") read_yarn(factor);
  }

  /// Checks sections, which are for images: for text all sections have the same position. In families that rotate
  /// neighbouring channels, files with sections have their rows in another order.
  void refuse_sections() {
    if (const auto sections = file_.numbers<std::uint32_t>(key("rope.dimension_sections")))
      refuse(key("rope.dimension_sections"), "no such key: rows of q and k are in another order beside it",
             std::to_string(sections->size()) + " numbers");
  }

  /// Reads YaRN's keys. As in llama.cpp the ramp begins and ends at whole pairs.
  void read_yarn(float factor) {
    config_.rope_scaling = {.type = rope_type::yarn,
                            .factor = factor,
                            .low_freq_factor = real("rope.scaling.yarn_beta_slow").value_or(1.f),
                            .high_freq_factor = real("rope.scaling.yarn_beta_fast").value_or(32.f),
                            .original_max_position_embeddings =
                                value("rope.scaling.original_context_length").value_or(config_.max_position_embeddings),
                            .attention_factor = yarn_attention_factor(factor)};
    if (const auto mixed = real("rope.scaling.yarn_ext_factor"); mixed && *mixed == 0.f)
      refuse(key("rope.scaling.yarn_ext_factor"), "no such key, or -1, with rope.scaling.type yarn", "0");
  }

  /// Ends the context where queries begin to be scaled: they are multiplied by 1 + scale * log(1 + floor(position /
  /// original context)), which is 1 up to there. As in llama.cpp, sines and cosines are divided by the factor that
  /// YaRN's share gives.
  [[gnu::cold]] void end_at_scaled_queries() {
    rope_scaling_config& scaling = config_.rope_scaling;
    if (const float share = real("rope.scaling.yarn_log_multiplier").value_or(0.f);
        share != 0.f && scaling.type == rope_type::yarn)
      scaling.attention_factor /= yarn_attention_factor(scaling.factor, share);
    if (real("attention.temperature_scale").value_or(0.f) == 0.f) return;
    const std::uint32_t original = value("rope.scaling.original_context_length").value_or(0);
    if (original == 0)
      refuse(key("rope.scaling.original_context_length"),
             "a number above 0 beside " + key("attention.temperature_scale"), "0 or no such key");
    config_.max_position_embeddings = (std::min)(config_.max_position_embeddings, original);
  }

  /// Reads Llama 3.1's scaling, which is a divisor for each inverse frequency.
  [[gnu::cold]] void read_rope_factors() {
    const gguf_tensor* tensor = file_.find_tensor("rope_freqs.weight");
    if (tensor == nullptr) return;
    const mapped_file& file = file_.parts()[tensor->part].file();
    if (tensor->type != dtype::f32 || tensor->bytes != std::uint64_t{config_.head_dim} / 2 * sizeof(float))
      throw file_error(file.path(), tensor->offset, "tensor 'rope_freqs.weight'",
                       std::to_string(config_.head_dim / 2) + " values of f32",
                       std::to_string(tensor->bytes) + " bytes of " + std::string(name(tensor->type)));
    std::vector<float> factors(static_cast<std::size_t>(tensor->bytes / sizeof(float)));
    file.read(tensor->offset, std::as_writable_bytes(std::span(factors)));
    const auto scaling = llama3_scaling_of(factors, config_.rope_theta);
    if (scaling && scaling->type == rope_type::plain) return;  // factors of 1 change nothing
    if (scaling && config_.rope_scaling.type != rope_type::plain)
      throw file_error(file.path(), tensor->offset, "tensor 'rope_freqs.weight' beside " + key("rope.scaling.factor"),
                       "one of the two", scaling_text(config_.rope_scaling) + " and " + scaling_text(*scaling));
    if (scaling) config_.rope_scaling = *scaling;
    else
      throw file_error(file.path(), tensor->offset, "tensor 'rope_freqs.weight'",
                       "factors of Llama 3.1's RoPE scaling (low_freq_factor 1, high_freq_factor 4)",
                       "others for rope_theta " + number_text(config_.rope_theta));
  }

  /// Reads the two tensors of longrope's factors; without them nothing is scaled.
  [[gnu::cold]] void read_longrope() {
    const std::uint32_t pairs = (config_.rotary_dim != 0 ? config_.rotary_dim : config_.head_dim) / 2;
    bool any = false;
    for (const auto& [tail, to] : {std::pair{"rope_factors_short.weight", &config_.rope_factors.short_factor},
                                   {"rope_factors_long.weight", &config_.rope_factors.long_factor}}) {
      const gguf_tensor* tensor = file_.find_tensor(tail);
      if (tensor == nullptr && !any) continue;
      any = true;
      if (tensor == nullptr || tensor->type != dtype::f32 || tensor->bytes != std::uint64_t{pairs} * sizeof(float) ||
          pairs > longrope_factors::most)
        throw file_error(file_.path(), tensor == nullptr ? std::nullopt : std::optional(tensor->offset),
                         "tensor '" + std::string(tail) + "'",
                         std::to_string((std::min<std::size_t>)(pairs, longrope_factors::most)) + " values of f32",
                         tensor == nullptr
                             ? "none"
                             : std::to_string(tensor->bytes) + " bytes of " + std::string(name(tensor->type)));
      file_.parts()[tensor->part].file().read(tensor->offset, std::as_writable_bytes(std::span(*to).first(pairs)));
    }
    if (!any) return;
    if (file_.find_tensor("rope_factors_short.weight") == nullptr)
      throw file_error(file_.path(), std::nullopt, "tensor 'rope_factors_short.weight'",
                       std::to_string(pairs) + " values of f32", "none");
    rope_scaling_config& out = config_.rope_scaling;
    out = {.type = rope_type::longrope};
    out.original_max_position_embeddings =
        value("rope.scaling.original_context_length").value_or(config_.max_position_embeddings);
    out.attention_factor =
        real("rope.scaling.attn_factor")
            .value_or(longrope_attention_factor(config_.max_position_embeddings, out.original_max_position_embeddings));
  }

  /// Reads which pairs are rotated: their factor is 1, and the factor of the others is so large that they do not turn.
  [[gnu::cold]] void read_turning_pairs() {
    const gguf_tensor* tensor = file_.find_tensor("rope_freqs.weight");
    if (tensor == nullptr) return;
    const mapped_file& file = file_.parts()[tensor->part].file();
    const std::uint32_t pairs = config_.global_head_dim / 2;
    if (tensor->type != dtype::f32 || tensor->bytes != std::uint64_t{pairs} * sizeof(float))
      throw file_error(file.path(), tensor->offset, "tensor 'rope_freqs.weight'",
                       std::to_string(pairs) + " values of f32",
                       std::to_string(tensor->bytes) + " bytes of " + std::string(name(tensor->type)));
    std::vector<float> factors(pairs);
    file.read(tensor->offset, std::as_writable_bytes(std::span(factors)));
    const auto turning = std::find_if(factors.begin(), factors.end(), [](float f) { return f != 1.f; });
    const auto other = std::find_if(turning, factors.end(), [](float f) { return !(f >= 1e20f); });
    if (turning == factors.begin() || other != factors.end())
      throw file_error(file.path(), tensor->offset, "tensor 'rope_freqs.weight'",
                       "ones, and numbers from 1e20 on after them",
                       other != factors.end() ? number_text(*other) : number_text(factors.front()));
    if (turning != factors.end()) config_.global_turning_pairs = static_cast<std::uint32_t>(turning - factors.begin());
  }
};

}  // namespace intaglio::io
