// SPDX-License-Identifier: MIT
// index.json of a feature index: its model, its files, and the offsets of a layer's vectors in them (docs/walk.md).
#pragma once

#include "intaglio/core/compiler.hpp"

#include <array>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "intaglio/core/checked.hpp"
#include "intaglio/core/decoder_config.hpp"
#include "intaglio/core/family.hpp"
#include "intaglio/io/atomic_file.hpp"
#include "intaglio/io/feature_rows.hpp"
#include "intaglio/io/model_config.hpp"
#include "intaglio/io/strict_json.hpp"

namespace intaglio::io {
/// Value of `format` in the manifest of an index, and the manifest's name.
inline constexpr std::string_view feature_index_format = "intaglio feature index", feature_index_file = "index.json";
inline constexpr std::uint64_t feature_index_version = 1;  ///< version that is written and read
/// Blocks begin at multiples of this, so that a mapping can be handed to a device.
inline constexpr std::uint64_t feature_block_alignment = 4096;

/// The vectors of one kind of a layer, [features, hidden_size], at `offset` of the layer's file.
struct feature_block {
  dtype type = dtype::f32;  ///< i2_s: ternary words
  float scale = 1.f;        ///< scale of ternary words
  std::uint64_t offset = 0, bytes = 0;
  std::uint32_t crc32 = 0;
};
/// The vectors of a layer: its file, and where each kind of vector is in it.
struct feature_layer {
  std::string file;  ///< name of the file beside index.json
  std::uint32_t features = 0;
  std::array<feature_block, 3> blocks{};  ///< by feature_vector
  const feature_block& operator[](feature_vector which) const { return blocks[static_cast<std::size_t>(which)]; }
  feature_block& operator[](feature_vector which) { return blocks[static_cast<std::size_t>(which)]; }
  /// Bytes of the layer's file.
  std::uint64_t bytes() const { return blocks.back().offset + blocks.back().bytes; }
};

/// The manifest of a feature index. Its config has only the fields that identify the model and that other layouts need:
/// see read_feature_manifest.
struct feature_manifest {
  std::string source;  ///< name of the model's file or folder
  std::string codec;   ///< as requested: "own", "f32", ...
  decoder_config config;
  std::vector<feature_layer> layers;  ///< only the first ones while the index is being made
  bool complete() const { return layers.size() == config.num_hidden_layers; }
};

/// Number of features of a layer. A mixture has those of its experts, one expert after the other.
constexpr std::uint32_t features_of_layer(const decoder_config& c) {
  return c.intermediate_size * (c.num_local_experts == 0 ? 1 : c.num_local_experts);
}

namespace feature_json {
/// A number as eight hexadecimal digits.
inline std::string hex8(std::uint32_t value) {
  std::array<char, 9> text{};
  std::snprintf(text.data(), text.size(), "%08x", value);
  return text.data();
}
/// The value whose name() a text is. @throws file_error for another text
template <class Enum>
Enum named(const located_json& field, const std::vector<Enum>& all) {
  std::string names;
  for (const Enum each : all) {
    if (field.text() == name(each)) return each;
    names += (names.empty() ? "one of: " : ", ") + std::string(name(each));
  }
  field.refuse(names);
}
/// A number up to `most`. @throws file_error for any other value
inline std::uint32_t u32(const located_json& field, std::uint64_t most) {
  const std::uint64_t value = field.natural();
  if (value > most) field.refuse("at most " + std::to_string(most));
  return static_cast<std::uint32_t>(value);
}
inline float real(const located_json& field) {  ///< a finite f32
  const auto value = static_cast<float>(field.number());
  if (!std::isfinite(value)) field.refuse("a finite number");
  return value;
}

/// Reads a checksum that hex8 wrote.
inline std::uint32_t sum(const located_json& field) {
  const std::string& text = field.text();
  std::uint32_t out = 0;
  for (const char digit : text) {
    const auto at = std::string_view("0123456789abcdef").find(digit);
    if (text.size() != 8 || at == std::string_view::npos) field.refuse("8 hexadecimal digits");
    out = out << 4 | static_cast<std::uint32_t>(at);
  }
  if (text.empty()) field.refuse("8 hexadecimal digits");
  return out;
}
/// Reads where a block is, and its type. @throws file_error where it does not fit the layer
inline feature_block block(const located_json& field, std::uint64_t features, std::uint64_t columns,
                           std::uint64_t begin) {
  feature_block out;
  const auto type = feature_type_from_name(field["type"].text());
  if (!type) field["type"].refuse("the type of an index's vectors");
  out.type = *type;
  if (columns % feature_row_step(*type) != 0)
    field["type"].refuse("a type whose blocks divide hidden_size " + std::to_string(columns));
  if (*type == dtype::i2_s) {
    out.scale = real(field["scale"]);
    if (!(out.scale > 0.f)) field["scale"].refuse("a number above 0");
  }
  out.offset = field["offset"].natural();
  if (out.offset != checked_size{begin}.round_up(feature_block_alignment).value())
    field["offset"].refuse(std::to_string(checked_size{begin}.round_up(feature_block_alignment).value()));
  out.bytes = field["bytes"].natural();
  const std::uint64_t wanted = features * feature_row_bytes(*type, columns);
  if (out.bytes != wanted)
    field["bytes"].refuse(std::to_string(wanted) + " for " + std::to_string(features) + " vectors of " +
                          std::to_string(columns));
  out.crc32 = sum(field["crc32"]);
  return out;
}

}  // namespace feature_json

/// Name of a layer's file: layer-0007.bin.
inline std::string feature_layer_file(std::uint32_t layer) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "layer-%04u.bin", layer);
  return text.data();
}
/// Reads an index's manifest.
/// @param document a manifest that was read
/// @throws file_error for a document that is no manifest, or that contradicts itself
inline feature_manifest feature_manifest_of(strict_json& document) {
  const located_json root(document.path(), "", &document.root());
  if (root["format"].text_or("") != feature_index_format)
    root["format"].refuse("'" + std::string(feature_index_format) + "'");
  if (root["version"].natural() != feature_index_version) root["version"].refuse(std::to_string(feature_index_version));
  feature_manifest out;
  out.source = root["source"].text();
  out.codec = root["codec"].text();
  const located_json config = root["config"];
  decoder_config& c = out.config;
  std::vector<architecture> known;
  for (const family& each : families_table) known.push_back(each.type);
  c.model_type = feature_json::named(config["model_type"], known);
  c.hidden_act = feature_json::named<activation>(config["hidden_act"],
                                                 {activation::relu_squared, activation::silu, activation::gelu_tanh});
  c.hidden_size = feature_json::u32(config["hidden_size"], config_limits::hidden_size);
  c.intermediate_size = feature_json::u32(config["intermediate_size"], config_limits::intermediate_size);
  c.num_hidden_layers = feature_json::u32(config["num_hidden_layers"], config_limits::num_hidden_layers);
  c.num_attention_heads = feature_json::u32(config["num_attention_heads"], config_limits::num_attention_heads);
  c.num_key_value_heads = feature_json::u32(config["num_key_value_heads"], config_limits::num_attention_heads);
  c.head_dim = feature_json::u32(config["head_dim"], config_limits::head_dim);
  c.vocab_size = feature_json::u32(config["vocab_size"], config_limits::vocab_size);
  c.rope_theta = feature_json::real(config["rope_theta"]);
  c.sliding_window = feature_json::u32(config["sliding_window"], config_limits::max_position_embeddings);
  if (config["num_local_experts"].present()) {
    c.num_local_experts = feature_json::u32(config["num_local_experts"], config_limits::num_local_experts);
    c.num_experts_per_tok = feature_json::u32(config["num_experts_per_tok"], c.num_local_experts);
    if (c.num_local_experts == 0) config["num_local_experts"].refuse("at least 1");
    if (c.num_experts_per_tok == 0) config["num_experts_per_tok"].refuse("at least 1");
    if (c.intermediate_size > config_limits::intermediate_size / c.num_local_experts)
      config["num_local_experts"].refuse("at most " + std::to_string(config_limits::intermediate_size) +
                                         " features of all");
  }
  if (c.hidden_size == 0) config["hidden_size"].refuse("at least 1");
  if (c.intermediate_size == 0) config["intermediate_size"].refuse("at least 1");
  if (c.num_hidden_layers == 0) config["num_hidden_layers"].refuse("at least 1");
  const auto layers = root["layers"].elements();
  if (layers.size() > c.num_hidden_layers)
    root["layers"].refuse("at most num_hidden_layers " + std::to_string(c.num_hidden_layers));
  for (std::uint32_t i = 0; i < layers.size(); ++i) {
    feature_layer layer;
    layer.file = layers[i]["file"].text();
    if (layer.file != feature_layer_file(i)) layers[i]["file"].refuse("'" + feature_layer_file(i) + "'");
    layer.features = feature_json::u32(layers[i]["features"], config_limits::intermediate_size);
    if (layer.features != features_of_layer(c))
      layers[i]["features"].refuse("intermediate_size " + std::to_string(c.intermediate_size) +
                                   (c.num_local_experts == 0
                                        ? std::string()
                                        : " of each of " + std::to_string(c.num_local_experts) + " experts"));
    std::uint64_t end = 0;
    for (const feature_vector which : feature_vectors) {
      layer[which] =
          feature_json::block(layers[i][std::string(name(which)).c_str()], layer.features, c.hidden_size, end);
      end = layer[which].offset + layer[which].bytes;
    }
    out.layers.push_back(std::move(layer));
  }
  return out;
}
/// Reads the manifest of an index, index.json.
/// @param folder of the index
/// @throws file_error
inline feature_manifest read_feature_manifest(const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / feature_index_file;
  strict_json document(path.string());
  document.read_file(path);
  return feature_manifest_of(document);
}

/// Replaces the manifest atomically and flushes it to the disk. @throws file_error
inline void write_feature_manifest(const std::filesystem::path& folder, const feature_manifest& manifest) {
  using json = nlohmann::ordered_json;
  const decoder_config& c = manifest.config;
  json out{{"format", feature_index_format},
           {"version", feature_index_version},
           {"source", manifest.source},
           {"codec", manifest.codec}};
  out["config"] = {{"model_type", name(c.model_type)},
                   {"hidden_act", name(c.hidden_act)},
                   {"hidden_size", c.hidden_size},
                   {"intermediate_size", c.intermediate_size},
                   {"num_hidden_layers", c.num_hidden_layers},
                   {"num_attention_heads", c.num_attention_heads},
                   {"num_key_value_heads", c.num_key_value_heads},
                   {"head_dim", c.head_dim},
                   {"vocab_size", c.vocab_size},
                   {"rope_theta", c.rope_theta},
                   {"sliding_window", c.sliding_window}};
  if (c.num_local_experts != 0)
    out["config"]["num_local_experts"] = c.num_local_experts,
    out["config"]["num_experts_per_tok"] = c.num_experts_per_tok;
  out["layers"] = json::array();
  for (const feature_layer& layer : manifest.layers) {
    json entry{{"file", layer.file}, {"features", layer.features}};
    for (const feature_vector which : feature_vectors) {
      const feature_block& block = layer[which];
      json& to = entry[std::string(name(which))] = {{"type", feature_type_name(block.type)}};
      if (block.type == dtype::i2_s) to["scale"] = block.scale;
      to["offset"] = block.offset;
      to["bytes"] = block.bytes;
      to["crc32"] = feature_json::hex8(block.crc32);
    }
    out["layers"].push_back(std::move(entry));
  }
  const std::string text = out.dump(1, ' ', false, json::error_handler_t::replace) + "\n";
  atomic_file file(folder / feature_index_file);
  file.write(std::as_bytes(std::span(text)));
  file.commit();
}

}  // namespace intaglio::io
