// SPDX-License-Identifier: MIT
// The keys of config.json for the rotary embedding.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "intaglio/io/hf_fields.hpp"
#include "intaglio/io/rope_factors.hpp"

namespace intaglio::io {

/// The rotation that transformers takes for a model_type whose config.json states none, where it is not the family's.
struct default_rotation {
  std::string_view model_type;
  double theta;              ///< 0: differs from one version to another, so that the file has to state it
  const char* scaling = "";  ///< rope_parameters
};
/// Defaults: transformers 5.24's configuration classes.
inline constexpr auto default_rotations = std::to_array<default_rotation>({
    {"smollm3", 2e6},
    {"qwen2_vl", 1e6},
    {"qwen2_vl_text", 1e6},
    {"qwen2_5_vl", 1e6},
    {"qwen2_5_vl_text", 1e6},
    {"qwen3_vl", 0},
    {"qwen3_vl_text", 0},
    {"qwen3_vl_moe", 0},
    {"qwen3_vl_moe_text", 0},
    {"cohere", 0},
    {"exaone", 0},
    {"gpt_oss", 150'000,
     R"({"rope_type":"yarn","factor":32,"beta_fast":32,"beta_slow":1,"truncate":false,)"
     R"("original_max_position_embeddings":4096})"},
    {"ministral3", 1e6,
     R"({"rope_type":"yarn","rope_theta":1e6,"factor":16,"beta_fast":32,"beta_slow":1,"mscale":1,"mscale_all_dim":1,)"
     R"("original_max_position_embeddings":16384,"llama_4_scaling_beta":0.1})"},
});

/// Gives a config the rotation that it does not state. @throws file_error where there is no one default
[[gnu::cold]] inline void state_rotation(const strict_json& document, nlohmann::json& text,
                                         std::string_view model_type) {
  const auto has = [](const nlohmann::json& object, const char* key) {
    const auto at = object.is_object() ? object.find(key) : object.end();
    return at != object.end() && !at->is_null();
  };
  for (const default_rotation& row : default_rotations) {
    if (row.model_type != model_type) continue;
    if (!has(text, "rope_scaling") && !has(text, "rope_parameters") && *row.scaling != 0) {
      strict_json scaling(document.path());
      scaling.read_text(row.scaling);
      text["rope_parameters"] = scaling.root();
    }
    if (has(text, "rope_theta")) continue;
    if (has(text, "rope_parameters") && has(text["rope_parameters"], "rope_theta")) continue;
    if (has(text, "rope_scaling") && has(text["rope_scaling"], "rope_theta")) continue;
    if (row.theta == 0) document.refuse("rope_theta", "a number: versions of transformers take different ones", "none");
    text["rope_theta"] = row.theta;
  }
}

/// Reads the rotary embedding.
class hf_rope : public hf_fields {
 public:
  using hf_fields::hf_fields;

 protected:
  /// The family's default base, from transformers' configuration classes.
  float default_theta() const {
    const family& of = family_of(out_.config.model_type);
    const bool gemma = is_gemma(of.type) && of.head_norms;
    if (gemma || out_.model_type == "mixtral" || of.recurrent == recurrence::short_conv) return 1e6f;
    return of.block_biases ? 150'000.f : of.default_theta;
  }

  /// Reads the rotation. transformers 4 has rope_theta and rope_scaling, transformers 5 rope_parameters, with one set
  /// for each kind of layer in Gemma.
  [[gnu::cold]] void read_rope(const located_json& text) {
    const family& of = family_of(out_.config.model_type);
    const bool gemma = is_gemma(of.type) && of.head_norms;
    located_json parameters = text["rope_parameters"];
    const located_json local = parameters["sliding_attention"], older = text["rope_scaling"];
    for (const located_json& kind : {older["full_attention"], older["sliding_attention"]})
      if (kind.present()) kind.refuse("none: rope_parameters has the kinds of layers");
    if (local.present() && !gemma && !(of.unscaled_windows && text["sliding_window"].present()))
      local.refuse("none: all layers are rotated alike");
    if (parameters["full_attention"].present()) {
      expect_kinds_alone(parameters);
      parameters = parameters["full_attention"];
    }
    const located_json theta = stated_in(text, older, parameters, "rope_theta");
    out_.config.rope_theta = theta.present() ? theta.real() : default_theta();
    if (gemma) read_local_base(text, local);
    const located_json turning = stated_in(text, older, parameters, "partial_rotary_factor");
    if (of.kinds_of_layers) return expect_type(older, "default");  // read_kinds reads it
    if (turning.present() && turning.number() != 1.0) read_partial_rotary(turning);
    if (const std::uint32_t part = of.default_rotary_part; part != 0 && !turning.present())
      out_.config.rotary_dim = out_.config.head_dim / part;
    const located_json scaling = older.present() ? older : parameters;
    if (!scaling.present()) return;
    const std::string type = type_of(scaling);
    if (older.present() && parameters.present()) expect_one_scaling(older, parameters);
    if (type == "default" || (type == "mrope" && out_.model_type.starts_with("qwen2_"))) return;  // for images
    if (of.ternary || of.alpha_rope) return of.alpha_rope ? read_alpha(scaling, type) : expect_type(scaling, "default");
    if (type == "dynamic") return end_at_dynamic(scaling);
    rope_scaling_config& out = out_.config.rope_scaling;
    if (type == "linear") out.type = rope_type::linear;
    else if (type == "llama3") out.type = rope_type::llama3;
    else if (type == "yarn") out.type = rope_type::yarn;
    else if ((type == "longrope" || type == "su") && of.partial_rotary) return read_longrope(text, scaling);
    else expect_type(scaling, "default, dynamic, linear, llama3 or yarn");
    out.factor = scaling["factor"].real();
    if (out.type == rope_type::linear) return;
    if (out.type == rope_type::yarn) {
      read_yarn(scaling);
    } else {
      out.low_freq_factor = scaling["low_freq_factor"].real();
      out.high_freq_factor = scaling["high_freq_factor"].real();
    }
    // transformers: the outer key goes first; without either key the scaling starts from the unscaled context.
    const located_json outer = text["original_max_position_embeddings"],
                       inner = scaling["original_max_position_embeddings"];
    out.original_max_position_embeddings = outer.present()   ? size(outer)
                                           : inner.present() ? size(inner)
                                                             : out_.config.max_position_embeddings;
    if (const located_json beta = scaling["llama_4_scaling_beta"]; beta.present() && beta.number() != 0) {
      if (!of.scaled_queries) beta.refuse("none");
      // Queries are multiplied by 1 + beta * log(1 + floor(position / original)), which is 1 up to there.
      out_.config.max_position_embeddings =
          (std::min)(out_.config.max_position_embeddings, out.original_max_position_embeddings);
    }
  }

  /// Reads the rotation of layers with a window, which has another base than that of the others.
  [[gnu::cold]] void read_local_base(const located_json& text, const located_json& local) {
    const located_json inner = local["rope_theta"], older = text["rope_local_base_freq"];
    expect_same(older, inner);
    out_.config.rope_local_base_freq = inner.present()                                      ? inner.real()
                                       : older.present() && has_key("rope_local_base_freq") ? older.real()
                                                                                            : 10'000.f;
    if (local.present()) expect_type(local, "default");
  }

  /// A number that may be in three objects, and is equal where several of them have it.
  [[gnu::cold]] located_json stated_in(const located_json& text, const located_json& older, const located_json& newer,
                                       const char* key) const {
    const located_json outer = text[key], middle = older[key], inner = newer[key];
    expect_same(outer, middle);
    expect_same(outer, inner);
    expect_same(middle, inner);
    return inner.present() ? inner : middle.present() ? middle : outer;
  }

  /// Refuses a rotation beside those of kinds of layers, where it is not that of the layers that see all positions.
  [[gnu::cold]] void expect_kinds_alone(const located_json& parameters) const {
    expect_type(parameters, "default");
    expect_stated_by_kind(parameters, parameters["full_attention"]);
  }

  /// Refuses numbers of a rotation in an object, where the rotation of a kind of layers has others or none.
  [[gnu::cold]] void expect_stated_by_kind(const located_json& object, const located_json& kind) const {
    for (const char* key : {"rope_theta", "partial_rotary_factor"}) {
      const located_json beside = object[key], inner = kind[key];
      expect_same(beside, inner);
      if (beside.present() && !inner.present()) beside.refuse("none beside the kinds of layers");
    }
  }

  /// Requires that both spellings of a scaling say the same.
  [[gnu::cold]] void expect_one_scaling(const located_json& one, const located_json& other) const {
    const std::string type = type_of(one);
    if (type_of(other) != type) expect_type(other, type);
    for (const config_key_rule& rule : hf_rope_key_rules) {
      // rope_theta and partial_rotary_factor may be in one of three objects: stated_in compares them.
      if (rule.families == nullptr || !rule.is_of(type)) continue;
      const std::string key(rule.key.view());
      const located_json first = one[key.c_str()], second = other[key.c_str()];
      if (first.is_number() && second.is_number()) expect_same(first, second);
      else if (!first.equals(second)) second.refuse("the value of " + first.where());
    }
  }

  /// Checks a dynamic scaling, which gives texts past the original context a larger base. The context ends there.
  [[gnu::cold]] void end_at_dynamic(const located_json& scaling) {
    if (scaling["alpha"].present()) scaling["alpha"].refuse("none");
    if (const located_json factor = scaling["factor"]; !(factor.number() >= 1)) factor.refuse("a number from 1");
    std::uint32_t& context = out_.config.max_position_embeddings;
    if (const located_json original = scaling["original_max_position_embeddings"]; original.present())
      context = (std::min)(context, size(original));
  }

  /// Reads `alpha`: the base is multiplied by alpha^(d / (d - 2)) for heads of d channels, at every position.
  /// transformers' HunYuanDenseV1RotaryEmbedding reads nothing else of the object.
  [[gnu::cold]] void read_alpha(const located_json& scaling, const std::string& type) {
    if (type != "dynamic") expect_type(scaling, "default or dynamic");
    const located_json alpha = scaling["alpha"];
    if (!alpha.present() || !(alpha.number() > 0)) alpha.refuse("a number above 0");
    for (const char* key : {"factor", "mscale", "mscale_all_dim"})
      if (scaling[key].present() && scaling[key].number() != 1.0) scaling[key].refuse("1 beside alpha");
    const double wide = out_.config.head_dim;
    if (wide <= 2) document_.refuse("head_dim", "more than 2 beside alpha", std::to_string(out_.config.head_dim));
    out_.config.rope_theta =
        static_cast<float>(double{out_.config.rope_theta} * std::pow(alpha.number(), wide / (wide - 2)));
  }

  /// Reads YaRN. Defaults: transformers' _compute_yarn_parameters.
  [[gnu::cold]] void read_yarn(const located_json& scaling) {
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

  /// Reads which part of a head's channels is rotated: the first ones.
  [[gnu::cold]] void read_partial_rotary(const located_json& part) {
    decoder_config& c = out_.config;
    if (!family_of(c.model_type).partial_rotary) part.refuse("1");
    const double wide = c.head_dim * part.number();
    if (!(wide >= 2) || wide > c.head_dim || static_cast<std::uint32_t>(wide) % 2 != 0)
      part.refuse("an even number of channels from 2 to head_dim");
    c.rotary_dim = static_cast<std::uint32_t>(wide);
    if (c.rotary_dim == c.head_dim) c.rotary_dim = 0;
  }

  /// Reads longrope. In transformers' _compute_longrope_parameters `factor` is not read where the original length is
  /// stated.
  [[gnu::cold]] void read_longrope(const located_json& text, const located_json& scaling) {
    decoder_config& c = out_.config;
    rope_scaling_config& out = c.rope_scaling;
    out.type = rope_type::longrope;
    const located_json outer = text["original_max_position_embeddings"],
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
};

}  // namespace intaglio::io
