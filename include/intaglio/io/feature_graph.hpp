// SPDX-License-Identifier: MIT
// A graph over the gates of a feature index (docs/walk.md, "HNSW"): files beside the index with each layer's links,
// checked by checksums and bounds when they are read. This header handles only the files; hnsw.hpp makes and searches
// graphs with hnswlib.
#pragma once

#include "intaglio/core/compiler.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "intaglio/io/atomic_file.hpp"
#include "intaglio/io/crc32.hpp"
#include "intaglio/io/feature_index.hpp"
#include "intaglio/io/mapped_file.hpp"
#include "intaglio/io/strict_json.hpp"
#include "intaglio/platform/path_text.hpp"

namespace intaglio::io {
/// Value of `format` in the manifest of a graph, and the manifest's name.
inline constexpr std::string_view feature_graph_format = "intaglio feature graph", feature_graph_file = "hnsw.json";
inline constexpr std::uint64_t feature_graph_version = 1;  ///< version that is written and read

/// Parameters of the graph. @source Malkov & Yashunin 2016: M, efConstruction and ef
struct graph_parameters {
  std::uint32_t links = 16;         ///< of a feature at a level, twice the number at the lowest
  std::uint32_t construction = 40;  ///< candidates for a new feature's links
  std::uint32_t search = 2000;      ///< candidates of a search
  friend bool operator==(const graph_parameters&, const graph_parameters&) = default;
  /// The number of links that a feature may have at a level.
  std::uint32_t most_links(std::uint32_t level) const { return level == 0 ? 2 * links : links; }
};
namespace graph_limits {
/// The fewest links, and the largest value of each other parameter.
inline constexpr std::uint32_t least_links = 2, links = 256, construction = 10'000, search = 1'000'000, level = 63;
}  // namespace graph_limits
/// Refuses parameters out of range. @throws argument_error
inline void expect_graph_parameters(const graph_parameters& of) {
  const auto expect = [](const char* name, std::uint32_t value, std::uint32_t least, std::uint32_t most) {
    if (value < least || value > most)
      throw argument_error(name, std::to_string(least) + " to " + std::to_string(most), std::to_string(value));
  };
  expect("links", of.links, graph_limits::least_links, graph_limits::links);
  expect("construction", of.construction, 1, graph_limits::construction);
  expect("search", of.search, 1, graph_limits::search);
}

/// The links of each feature of a layer at each of its levels. A search begins at the entry, whose level is the
/// highest.
class feature_links {
 public:
  std::uint32_t entry = 0;

  std::uint32_t features() const { return static_cast<std::uint32_t>(levels_.size()); }
  /// The highest level of a feature; it also has all lower levels.
  std::uint32_t level(std::uint32_t feature) const { return levels_[feature]; }
  std::span<const std::uint32_t> at(std::uint32_t feature, std::uint32_t level) const {
    const std::size_t list = lists_[feature] + level;
    return std::span(links_).subspan(begins_[list], begins_[list + 1] - begins_[list]);
  }
  /// Adds the next feature, with this highest level.
  void add_feature(std::uint32_t level) {
    lists_.push_back(begins_.size() - 1);
    levels_.push_back(static_cast<std::uint8_t>(level));
  }
  /// Adds the next level's links of the feature that was added last.
  void add_links(std::span<const std::uint32_t> of) {
    links_.insert(links_.end(), of.begin(), of.end());
    begins_.push_back(links_.size());
  }
  friend bool operator==(const feature_links&, const feature_links&) = default;

 private:
  std::vector<std::uint8_t> levels_;       ///< [features]
  std::vector<std::size_t> lists_;         ///< index of a feature's first list
  std::vector<std::size_t> begins_ = {0};  ///< of each list in links_, and the end
  std::vector<std::uint32_t> links_;
};

/// Name of a layer's file: hnsw-0007.bin.
inline std::string feature_graph_layer_file(std::uint32_t layer) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "hnsw-%04u.bin", layer);
  return text.data();
}

/// The file of a layer, words of 32 bits: "HNS1", features, links, entry. Then each feature has its level and, from
/// level 0 on, the number of its links and the linked features.
inline std::vector<std::byte> feature_links_bytes(const feature_links& of, const graph_parameters& parameters) {
  std::vector<std::uint32_t> words{0x31534e48u, of.features(), parameters.links, of.entry};
  for (std::uint32_t f = 0; f < of.features(); ++f) {
    words.push_back(of.level(f));
    for (std::uint32_t level = 0; level <= of.level(f); ++level) {
      const auto links = of.at(f, level);
      words.push_back(static_cast<std::uint32_t>(links.size()));
      words.insert(words.end(), links.begin(), links.end());
    }
  }
  const auto bytes = std::as_bytes(std::span(words));
  return {bytes.begin(), bytes.end()};
}

/// Reads a layer's file. Whatever the bytes are, the result links only features of the layer, at levels that both have.
/// @throws file_error naming the offset
inline feature_links feature_links_of(std::span<const std::byte> bytes, std::uint32_t features,
                                      const graph_parameters& parameters, const std::string& path) {
  std::uint64_t at = 0;
  const auto refuse = [&](const std::string& what, const std::string& expected, std::uint64_t found) {
    throw file_error(path, at - 4, what, expected, std::to_string(found));
  };
  const auto next = [&] {
    if (bytes.size() - at < 4) throw file_error(path, at, "links", "more", "the end of the file");
    std::uint32_t out = 0;
    std::memcpy(&out, bytes.data() + at, 4);
    at += 4;
    return out;
  };
  if (const auto found = next(); found != 0x31534e48u) refuse("not a layer's graph", "HNS1", found);
  if (const auto found = next(); found != features) refuse("features", std::to_string(features), found);
  if (const auto found = next(); found != parameters.links)
    refuse("links of a feature", std::to_string(parameters.links), found);
  feature_links out;
  out.entry = next();
  if (out.entry >= features) refuse("entry", "a feature of " + std::to_string(features), out.entry);
  std::vector<std::uint32_t> links;
  std::uint32_t highest = 0;
  for (std::uint32_t f = 0; f < features; ++f) {
    const std::uint32_t level = next();
    if (level > graph_limits::level)
      refuse("level of feature " + std::to_string(f), "at most " + std::to_string(graph_limits::level), level);
    highest = (std::max)(highest, level);
    out.add_feature(level);
    for (std::uint32_t l = 0; l <= level; ++l) {
      const std::uint32_t count = next(), most = parameters.most_links(l);
      if (count > most) refuse("links of feature " + std::to_string(f), "at most " + std::to_string(most), count);
      links.clear();
      for (std::uint32_t i = 0; i < count; ++i) {
        links.push_back(next());
        if (links.back() >= features || links.back() == f)
          refuse("link of feature " + std::to_string(f), "another feature of " + std::to_string(features),
                 links.back());
      }
      out.add_links(links);
    }
  }
  if (at != bytes.size())
    throw file_error(path, at, "links", "the end of the file", std::to_string(bytes.size() - at) + " bytes more");
  for (std::uint32_t f = 0; f < features; ++f)
    for (std::uint32_t l = 1; l <= out.level(f); ++l)
      for (const std::uint32_t other : out.at(f, l))
        if (out.level(other) < l)
          throw file_error(path, std::nullopt, "feature " + std::to_string(f) + " at level " + std::to_string(l),
                           "links with features of that level",
                           std::to_string(other) + " of level " + std::to_string(out.level(other)));
  if (out.level(out.entry) != highest)
    throw file_error(path, 12, "entry", "a feature of the highest level, " + std::to_string(highest),
                     std::to_string(out.entry) + " of level " + std::to_string(out.level(out.entry)));
  return out;
}
/// Length and checksum of a layer's file.
struct feature_graph_layer {
  std::uint64_t bytes = 0;
  std::uint32_t crc32 = 0;
};
/// The manifest hnsw.json: the index, the parameters, and the length and checksum of each layer's file.
struct feature_graph_manifest {
  std::uint32_t index = 0;  ///< feature_index::identity
  graph_parameters parameters;
  std::vector<feature_graph_layer> layers;  ///< only the first ones while the graph is being made
};
/// Reads hnsw.json.
/// @throws file_error for a document that is no manifest, or has invalid values
inline feature_graph_manifest feature_graph_manifest_of(strict_json& document) {
  const located_json root(document.path(), "", &document.root());
  if (root["format"].text_or("") != feature_graph_format)
    root["format"].refuse("'" + std::string(feature_graph_format) + "'");
  if (root["version"].natural() != feature_graph_version) root["version"].refuse(std::to_string(feature_graph_version));
  feature_graph_manifest out;
  out.index = feature_json::sum(root["index"]);
  const auto number = [&](const char* name, std::uint32_t least, std::uint32_t most) {
    const std::uint32_t value = feature_json::u32(root[name], most);
    if (value < least) root[name].refuse("at least " + std::to_string(least));
    return value;
  };
  out.parameters = {number("links", graph_limits::least_links, graph_limits::links),
                    number("construction", 1, graph_limits::construction), number("search", 1, graph_limits::search)};
  const auto layers = root["layers"].elements();
  if (layers.size() > config_limits::num_hidden_layers)
    root["layers"].refuse("at most " + std::to_string(config_limits::num_hidden_layers));
  for (std::uint32_t i = 0; i < layers.size(); ++i) {
    if (layers[i]["file"].text() != feature_graph_layer_file(i))
      layers[i]["file"].refuse("'" + feature_graph_layer_file(i) + "'");
    out.layers.push_back({layers[i]["bytes"].natural(), feature_json::sum(layers[i]["crc32"])});
  }
  return out;
}

/// Reads the manifest of the graph beside an index, with the layers made so far. @throws file_error, also for a graph
/// of another index
inline feature_graph_manifest read_feature_graph_manifest(const feature_index& index) {
  const auto path = index.path() / feature_graph_file;
  strict_json document(path.string());
  document.read_file(path);
  feature_graph_manifest out = feature_graph_manifest_of(document);
  if (out.index != index.identity())
    throw file_error(path.string(), std::nullopt, "a graph of another index", feature_json::hex8(index.identity()),
                     feature_json::hex8(out.index));
  if (out.layers.size() > index.layers())
    throw file_error(path.string(), std::nullopt, "layers", "at most " + std::to_string(index.layers()),
                     std::to_string(out.layers.size()));
  return out;
}
/// Replaces the manifest atomically and flushes it to the disk. @throws file_error
inline void write_feature_graph_manifest(const std::filesystem::path& folder, const feature_graph_manifest& manifest) {
  using json = nlohmann::ordered_json;
  json out{{"format", feature_graph_format},
           {"version", feature_graph_version},
           {"index", feature_json::hex8(manifest.index)},
           {"links", manifest.parameters.links},
           {"construction", manifest.parameters.construction},
           {"search", manifest.parameters.search},
           {"layers", json::array()}};
  for (std::uint32_t i = 0; i < manifest.layers.size(); ++i)
    out["layers"].push_back({{"file", feature_graph_layer_file(i)},
                             {"bytes", manifest.layers[i].bytes},
                             {"crc32", feature_json::hex8(manifest.layers[i].crc32)}});
  const std::string text = out.dump(1) + "\n";
  atomic_file file(folder / feature_graph_file);
  file.write(std::as_bytes(std::span(text)));
  file.commit();
}

/// Reads a layer's links and checks them against the manifest: length, checksum, then every link.
/// @throws argument_error for a layer that the graph does not have; file_error
inline feature_links read_feature_links(const feature_index& index, const feature_graph_manifest& manifest,
                                        std::uint32_t layer) {
  if (layer >= manifest.layers.size())
    throw argument_error("layer", "a layer of the graph's " + std::to_string(manifest.layers.size()),
                         std::to_string(layer));
  const auto path = index.path() / platform::path_of(feature_graph_layer_file(layer));
  const mapped_file file(path);
  const feature_graph_layer& wanted = manifest.layers[layer];
  if (file.size() != wanted.bytes)
    throw file_error(path.string(), std::nullopt, "size", std::to_string(wanted.bytes) + " bytes",
                     std::to_string(file.size()));
  std::vector<std::byte> bytes(static_cast<std::size_t>(file.size()));
  file.read(0, bytes);
  if (const std::uint32_t found = crc32(bytes); found != wanted.crc32)
    throw file_error(path.string(), std::nullopt, "checksum", feature_json::hex8(wanted.crc32),
                     feature_json::hex8(found));
  return feature_links_of(bytes, index.layer(layer).features, manifest.parameters, path.string());
}

/// Number of layers of the graph beside an index; 0 where there is none. @throws file_error as
/// read_feature_graph_manifest
inline std::uint32_t feature_graph_layers(const feature_index& index) {
  std::error_code ignored;
  return std::filesystem::exists(index.path() / feature_graph_file, ignored)
             ? static_cast<std::uint32_t>(read_feature_graph_manifest(index).layers.size())
             : 0;
}

}  // namespace intaglio::io
