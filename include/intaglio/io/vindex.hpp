// SPDX-License-Identifier: MIT
// LARQL's layout of a feature index: index.json of version 2, gate_vectors.bin, up_features.bin and down_features.bin,
// each without a header. Facts: chrishayuk/larql, crates/larql-vindex (config, extract, format) and
// docs/vindex-format-spec.md. Its other files are neither read nor written.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "intaglio/core/square_root.hpp"
#include "intaglio/io/feature_index_build.hpp"
#include "intaglio/io/sha256.hpp"

namespace intaglio::io {

/// The files of vectors, by feature_vector.
inline constexpr std::array<const char*, 3> vindex_files{"gate_vectors.bin", "up_features.bin", "down_features.bin"};

/// Whether a folder's index.json is LARQL's; false for one of this library or none.
inline bool is_vindex(const std::filesystem::path& folder) {
  std::error_code ignored;
  const auto path = folder / feature_index_file;
  if (!std::filesystem::is_regular_file(path, ignored)) return false;
  strict_json document(path.string());
  document.read_file(path);
  return document.root().is_object() && !document.root().contains("format") && document.root().contains("layers");
}

/// A LARQL index as a source of vectors. Gate is f32 or f16, up and down are f32.
class vindex_features : public feature_source {
 public:
  /// @throws file_error for an index.json that is not LARQL's or uses unsupported features (experts, quantised gates),
  /// files of another size, checksums (SHA-256) that differ
  explicit vindex_features(const std::filesystem::path& folder) : folder_(folder), path_(folder.string()) {
    const auto path = folder / feature_index_file;
    strict_json document(path.string());
    document.read_file(path);
    const located_json root(document.path(), "", &document.root());
    if (root["version"].natural() != 2) root["version"].refuse("2");
    read_config(root);
    if (root["quant"].text_or("none") != "none") root["quant"].refuse("'none'");
    const std::string dtype_text = root["dtype"].text_or("f32");
    if (dtype_text != "f32" && dtype_text != "f16") root["dtype"].refuse("'f32' or 'f16'");
    types_ = {dtype_text == "f16" ? dtype::f16 : dtype::f32, dtype::f32, dtype::f32};
    for (const char* file : vindex_files) files_.push_back(std::make_unique<mapped_file>(folder / file));
    read_layers(root);
    check_sums(root["checksums"]);
  }

  const std::string& path() const override { return path_; }
  const decoder_config& config() const override { return config_; }
  void expect_unchanged() const override {
    for (const auto& file : files_) file->expect_unchanged();
  }
  feature_layer describe(std::uint32_t) override {
    feature_layer out;
    out.features = config_.intermediate_size;
    for (std::size_t i = 0; i < 3; ++i) out.blocks[i].type = types_[i];
    return out;
  }
  void stream(std::uint32_t layer, feature_vector which, unsigned, const feature_sink& sink) override {
    const auto kind = static_cast<std::size_t>(which);
    const std::uint64_t row = row_bytes(types_[kind], config_.hidden_size),
                        step = (std::max<std::uint64_t>)(row, chunk_bytes / row * row),
                        whole = row * config_.intermediate_size;
    std::vector<std::byte> bytes;
    for (std::uint64_t at = 0; at < whole; at += step) {
      bytes.resize(static_cast<std::size_t>((std::min)(step, whole - at)));
      files_[kind]->read(offset(layer, which) + at, bytes);
      if (const auto fault = find_feature_fault(types_[kind], bytes))
        throw file_error(files_[kind]->path(), offset(layer, which) + at + fault->byte,
                         std::string(name(which)) + " vectors of layer " + std::to_string(layer), "finite numbers",
                         std::string(fault->found));
      sink(bytes);
    }
  }
  void expect_agreement(const feature_index& index, std::uint32_t layer) override {
    std::vector<std::byte> wanted, found;
    for (const feature_vector which : feature_vectors)
      for (const std::uint64_t feature :
           sampled(config_.intermediate_size, 8, 3 * layer + static_cast<std::uint64_t>(which))) {
        const dtype type = types_[static_cast<std::size_t>(which)];
        const std::uint64_t row = row_bytes(type, config_.hidden_size);
        wanted.resize(static_cast<std::size_t>(row));
        found.resize(wanted.size());
        files_[static_cast<std::size_t>(which)]->read(offset(layer, which) + feature * row, wanted);
        if (index.layer(layer)[which].type != type) refuse_feature(index, layer, which, feature, path_);
        index.read_rows(layer, which, feature, 1, found);
        if (wanted != found) refuse_feature(index, layer, which, feature, path_);
      }
  }

 private:
  static constexpr std::uint64_t chunk_bytes = 1 << 20;

  void read_config(const located_json& root) {
    const located_json family = root["family"], detail = root["model_config"];
    const std::string& text = family.text();
    if (text.starts_with("gemma3"))
      config_.model_type = architecture::gemma3, config_.hidden_act = activation::gelu_tanh;
    else if (text == "llama" || text == "mistral")
      config_.model_type = architecture::llama, config_.hidden_act = activation::silu;
    else family.refuse("one of: gemma3, llama, mistral");
    config_.hidden_size = feature_json::u32(root["hidden_size"], config_limits::hidden_size);
    config_.intermediate_size = feature_json::u32(root["intermediate_size"], config_limits::intermediate_size);
    config_.num_hidden_layers = feature_json::u32(root["num_layers"], config_limits::num_hidden_layers);
    config_.vocab_size = feature_json::u32(root["vocab_size"], config_limits::vocab_size);
    for (const char* key : {"hidden_size", "intermediate_size", "num_layers"})
      if (root[key].natural() == 0) root[key].refuse("at least 1");
    if (!detail.present()) return;
    if (detail["moe"].present()) detail["moe"].refuse("no experts");
    config_.head_dim = feature_json::u32(detail["head_dim"], config_limits::head_dim);
    config_.num_attention_heads = feature_json::u32(detail["num_q_heads"], config_limits::num_attention_heads);
    config_.num_key_value_heads = feature_json::u32(detail["num_kv_heads"], config_limits::num_attention_heads);
    config_.rope_theta = feature_json::real(detail["rope_base"]);
    if (detail["sliding_window"].present())
      config_.sliding_window = feature_json::u32(detail["sliding_window"], config_limits::max_position_embeddings);
  }
  /// Reads the layers, which may be in any order; each has the offset of its gates.
  void read_layers(const located_json& root) {
    gates_.assign(config_.num_hidden_layers, nowhere);
    const std::uint64_t gate_bytes = row_bytes(types_[0], config_.hidden_size) * config_.intermediate_size;
    for (const located_json& each : root["layers"].elements()) {
      const std::uint64_t layer = each["layer"].natural();
      if (layer >= gates_.size() || gates_[static_cast<std::size_t>(layer)] != nowhere)
        each["layer"].refuse("each layer under " + std::to_string(gates_.size()) + " once");
      if (each["num_experts"].present()) each["num_experts"].refuse("no experts");
      if (each["num_features"].natural() != config_.intermediate_size)
        each["num_features"].refuse("intermediate_size " + std::to_string(config_.intermediate_size));
      if (each["length"].natural() != gate_bytes) each["length"].refuse(std::to_string(gate_bytes));
      const std::uint64_t at = each["offset"].natural();
      if (!range_inside(at, gate_bytes, files_[0]->size()))
        each["offset"].refuse("vectors inside " + std::string(vindex_files[0]) + " of " +
                              std::to_string(files_[0]->size()) + " bytes");
      gates_[static_cast<std::size_t>(layer)] = at;
    }
    for (std::size_t layer = 0; layer < gates_.size(); ++layer)
      if (gates_[layer] == nowhere) root["layers"].refuse("an offset for layer " + std::to_string(layer));
    for (std::size_t kind = 1; kind < 3; ++kind) {
      const std::uint64_t wanted =
          std::uint64_t{4} * config_.hidden_size * config_.intermediate_size * config_.num_hidden_layers;
      if (files_[kind]->size() != wanted)
        throw file_error(files_[kind]->path(), std::nullopt, "size", std::to_string(wanted) + " bytes",
                         std::to_string(files_[kind]->size()));
    }
  }
  /// Compares the checksums of the files for which the manifest has one.
  void check_sums(const located_json& sums) const {
    std::vector<std::byte> bytes;
    for (std::size_t kind = 0; kind < 3; ++kind) {
      const located_json wanted = sums[vindex_files[kind]];
      if (!wanted.present()) continue;
      sha256 sum;
      for (std::uint64_t at = 0; at < files_[kind]->size(); at += bytes.size()) {
        bytes.resize(static_cast<std::size_t>((std::min<std::uint64_t>)(chunk_bytes, files_[kind]->size() - at)));
        files_[kind]->read(at, bytes);
        sum.add(bytes);
      }
      if (const std::string found = sum.hex(); found != wanted.text())
        throw file_error(files_[kind]->path(), std::nullopt, "SHA-256", printable(wanted.text(), 80), found);
    }
  }
  std::uint64_t offset(std::uint32_t layer, feature_vector which) const {
    return which == feature_vector::gate ? gates_[layer]
                                         : std::uint64_t{4} * config_.hidden_size * config_.intermediate_size * layer;
  }

  static constexpr std::uint64_t nowhere = ~std::uint64_t{0};
  std::filesystem::path folder_;
  std::string path_;
  decoder_config config_;
  std::array<dtype, 3> types_{};
  std::vector<std::unique_ptr<mapped_file>> files_;
  std::vector<std::uint64_t> gates_;
};

/// Makes a feature index from LARQL's, with the vectors' types and bytes. The options codec and layout have no effect.
/// @throws as build_feature_index and vindex_features
inline feature_build_report import_vindex(const std::filesystem::path& from, const std::filesystem::path& folder,
                                          const feature_build_options& options = {}) {
  vindex_features source(from);
  return feature_index_builder(source, "larql", folder, options).run();
}

/// Writes LARQL's layout of an index: gate is f16 where all gates are, else f32; up and down are f32. Each file is
/// replaced atomically, index.json last. Memory is bounded as in reading.
/// @throws file_error
inline void export_vindex(const feature_index& index, const std::filesystem::path& folder,
                          const std::function<void(const file_progress&)>& progress = {}) {
  using json = nlohmann::ordered_json;
  const decoder_config& c = index.config();
  if (c.num_local_experts != 0)
    throw file_error((index.path() / feature_index_file).string(), std::nullopt, "layers in LARQL's layout",
                     "one FFN each", std::to_string(c.num_local_experts) + " experts");
  const locked_folder lock(folder);
  bool half = true;
  for (std::uint32_t layer = 0; layer < index.layers(); ++layer)
    half &= index.layer(layer)[feature_vector::gate].type == dtype::f16;
  json checksums = json::object(), layers = json::array();
  file_progress at;
  at.total_tensors = std::size_t{3} * index.layers();
  for (const feature_vector which : feature_vectors)
    at.total_bytes += std::uint64_t{which == feature_vector::gate && half ? 2u : 4u} * c.hidden_size *
                      c.intermediate_size * index.layers();
  for (const feature_vector which : feature_vectors) {
    const char* const file_name = vindex_files[static_cast<std::size_t>(which)];
    const dtype type = which == feature_vector::gate && half ? dtype::f16 : dtype::f32;
    atomic_file file(folder / file_name);
    sha256 sum;
    const std::uint64_t step = (std::max<std::uint64_t>)(1, (std::uint64_t{1} << 18) / c.hidden_size);
    std::vector<float> values;
    std::vector<std::byte> bytes;
    for (std::uint32_t layer = 0; layer < index.layers(); ++layer) {
      const std::uint64_t begin = file.size(), features = index.layer(layer).features;
      for (std::uint64_t first = 0; first < features; first += step) {
        const std::uint64_t count = (std::min)(step, features - first);
        bytes.resize(static_cast<std::size_t>(count * row_bytes(type, c.hidden_size)));
        if (type == index.layer(layer)[which].type) index.read_rows(layer, which, first, count, bytes);
        else {
          values.resize(static_cast<std::size_t>(count * c.hidden_size));
          index.read_f32(layer, which, first, count, values);
          encode_row(type, values, bytes);
        }
        file.write(bytes);
        sum.add(bytes);
        at.bytes += bytes.size();
        at.tensor = file_name;
        if (progress) progress(at);
      }
      ++at.tensors;
      if (which == feature_vector::gate)
        layers.push_back(
            {{"layer", layer}, {"num_features", features}, {"offset", begin}, {"length", file.size() - begin}});
    }
    file.commit();
    checksums[file_name] = sum.hex();
  }
  const bool gemma = c.model_type == architecture::gemma3;
  json out{{"version", 2},
           {"model", index.manifest().source},
           {"family", name(c.model_type)},
           {"checksums", checksums},
           {"num_layers", c.num_hidden_layers},
           {"hidden_size", c.hidden_size},
           {"intermediate_size", c.intermediate_size},
           {"vocab_size", c.vocab_size},
           {"embed_scale", gemma ? square_root(static_cast<float>(c.hidden_size)) : 1.f},
           {"extract_level", "browse"},
           {"dtype", half ? "f16" : "f32"},
           {"quant", "none"},
           {"layers", layers},
           {"down_top_k", 0},
           {"has_model_weights", false},
           {"model_config",
            {{"model_type", name(c.model_type)},
             {"head_dim", c.head_dim},
             {"num_q_heads", c.num_attention_heads},
             {"num_kv_heads", c.num_key_value_heads},
             {"rope_base", c.rope_theta},
             {"sliding_window", c.sliding_window == 0 ? json(nullptr) : json(c.sliding_window)}}}};
  const std::string text = out.dump(1, ' ', false, json::error_handler_t::replace) + "\n";
  atomic_file file(folder / feature_index_file);
  file.write(std::as_bytes(std::span(text)));
  file.commit();
}

}  // namespace intaglio::io
