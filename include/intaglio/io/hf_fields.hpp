// SPDX-License-Identifier: MIT
// The content of a config.json, and the document that its readers read.
#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "intaglio/core/family.hpp"
#include "intaglio/io/hf_keys.hpp"
#include "intaglio/io/model_config.hpp"
#include "intaglio/io/strict_json.hpp"
#include "intaglio/io/weight_factors.hpp"

namespace intaglio::io {

/// The content of a config.json.
struct hf_config {
  decoder_config config;
  std::string model_type;                   ///< of the text model
  std::optional<bool> tie_word_embeddings;  ///< absent where the file leaves it to the family and the tensors
  bool scale_divides = false;   ///< packed ternary matrices: W = code / weight_scale (linear_class bitlinear); false: W
                                ///< = code * weight_scale
  bool states_biases = false;   ///< attention_bias or mlp_bias is set; the tensors say whether the biases are
                                ///< zeros
  bool rotated_halves = false;  ///< latent attention: rotated rows i and i + n / 2 belong together; else neighbours do
  std::uint32_t draft_layers = 0;      ///< layers after the last one, which draft tokens and are not read
  std::uint32_t position_offset = 0;   ///< rows of position_embd in front of the one for a text's first position
  std::vector<weight_factor> factors;  ///< of matrices, by which reading multiplies them
  std::vector<std::string> warnings;
};

/// The document, and the config that was read from it so far.
class hf_fields {
 public:
  [[gnu::cold]] explicit hf_fields(const std::filesystem::path& path) : document_(path.string()) {
    constexpr std::uint64_t most = std::uint64_t{1} << 20;
    const mapped_file file(path);
    if (file.size() > most)
      throw file_error(file.path(), std::nullopt, "too large for a config",
                       "at most " + std::to_string(most) + " bytes", std::to_string(file.size()));
    std::string text(static_cast<std::size_t>(file.size()), '\0');
    file.read(0, std::as_writable_bytes(std::span(text)));
    document_.read_text(text);
  }

 protected:
  std::uint32_t size(const located_json& field) const {
    const std::uint64_t value = field.natural();
    if (value > (std::numeric_limits<std::uint32_t>::max)()) field.refuse("a number below 2^32");
    return static_cast<std::uint32_t>(value);
  }
  std::uint32_t size_or(const located_json& field, std::uint32_t absent) const {
    return field.present() ? size(field) : absent;
  }

  /// Requires that two keys for one number are equal, where both are there.
  [[gnu::cold]] void expect_same(const located_json& one, const located_json& other) const {
    if (one.present() && other.present() && one.number() != other.number())
      document_.refuse(one.where() + " and " + other.where(), "one value",
                       number_text(one.real()) + " and " + number_text(other.real()));
  }

  /// The type of a scaling, for which older files have the key `type`. @throws file_error where both keys are there
  /// with two types
  [[gnu::cold]] static std::string type_of(const located_json& scaling) {
    const located_json newer = scaling["rope_type"], older = scaling["type"];
    const auto spelt = [](const std::string& type) {  // types with two names; text has no positions of images
      return type == "su" ? "longrope" : type == "mrope" ? "default" : type;
    };
    if (newer.present() && older.present() && spelt(newer.text()) != spelt(older.text()))
      throw file_error(scaling.file(), std::nullopt, newer.where() + " and " + older.where(), "one type",
                       "'" + printable(newer.text(), 40) + "' and '" + printable(older.text(), 40) + "'");
    return newer.text_or(older.text_or("default"));
  }

  /// Whether hf_key_rules says that the model type has a key, so that it is read.
  [[gnu::cold]] bool has_key(std::string_view key) const {
    return std::any_of(std::begin(hf_key_rules), std::end(hf_key_rules),
                       [&](const config_key_rule& rule) { return rule.key == key && rule.is_of(out_.model_type); });
  }

  [[gnu::cold]] void expect_type(const located_json& scaling, const std::string& expected) const {
    if (const std::string type = type_of(scaling); type != expected)
      document_.refuse(scaling.where() + ".rope_type", expected, "'" + printable(type, 40) + "'");
  }

  strict_json document_;
  hf_config out_;
};

}  // namespace intaglio::io
