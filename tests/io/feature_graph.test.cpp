// SPDX-License-Identifier: MIT
// The files of a graph; making and searching one is hnsw.test.cpp's.
#include "intaglio/io/feature_graph.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "../shared.hpp"
#include "files.hpp"
#include "intaglio/io/feature_index_build.hpp"

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;
using intaglio::argument_error;
using intaglio::file_error;
using namespace intaglio::io;

namespace {

constexpr graph_parameters two_links{.links = 2, .construction = 10, .search = 20};

/// Four features: 1 is at level 1 too, 2 at levels 1 and 2.
feature_links four() {
  feature_links out;
  out.entry = 2;
  const auto feature = [&](std::vector<std::vector<std::uint32_t>> lists) {
    out.add_feature(static_cast<std::uint32_t>(lists.size()) - 1);
    for (const auto& each : lists) out.add_links(each);
  };
  feature({{1, 2}});
  feature({{0, 2, 3}, {2}});
  feature({{1}, {1}, {}});
  feature({{2, 1, 0}});
  return out;
}
bytes words(std::initializer_list<std::uint32_t> of) {
  const std::vector<std::uint32_t> copy(of);
  const auto view = std::as_bytes(std::span(copy));
  return {view.begin(), view.end()};
}

}  // namespace

TEST_CASE("feature graph: links come back as they were, from bytes that are written down", "[feature_index]") {
  const feature_links links = four();
  CHECK(links.features() == 4);
  CHECK(links.level(2) == 2);
  CHECK(std::ranges::equal(links.at(1, 0), std::vector<std::uint32_t>{0, 2, 3}));
  CHECK(links.at(2, 2).empty());
  const bytes expected = words({0x31534e48, 4, 2, 2, 0, 2, 1, 2, 1, 3, 0, 2, 3, 1, 2, 2, 1, 1, 1, 1, 0, 0, 3, 2, 1, 0});
  const bytes written = feature_links_bytes(links, two_links);
  CHECK((written == expected));
  CHECK(feature_links_of(written, 4, two_links, "x") == links);
}

TEST_CASE("feature graph: whatever a layer's bytes are, they are refused or link features of the layer alone",
          "[feature_index]") {
  const bytes good = feature_links_bytes(four(), two_links);
  for (std::size_t size = 0; size < good.size(); ++size)
    CHECK_THROWS_AS(feature_links_of(std::span(good).first(size), 4, two_links, "x"), file_error);
  std::size_t taken = 0;
  for (std::size_t at = 0; at < good.size(); at += 4)
    for (const std::uint32_t value : {0u, 1u, 2u, 3u, 4u, 5u, 64u, 0x7FFFFFFFu, 0xFFFFFFFFu}) {
      bytes changed = good;
      std::memcpy(changed.data() + at, &value, 4);
      try {
        const feature_links found = feature_links_of(changed, 4, two_links, "x");
        ++taken;
        REQUIRE(found.features() == 4);
        REQUIRE(found.entry < 4);
        for (std::uint32_t f = 0; f < 4; ++f) {
          REQUIRE(found.level(f) <= found.level(found.entry));
          for (std::uint32_t level = 0; level <= found.level(f); ++level) {
            REQUIRE(found.at(f, level).size() <= two_links.most_links(level));
            for (const std::uint32_t other : found.at(f, level))
              REQUIRE((other < 4 && other != f && found.level(other) >= level));
          }
        }
      } catch (const file_error&) {}
    }
  CHECK(taken > good.size() / 4);  // each word as it is, and other links

  const std::pair<bytes, std::string> table[] = {
      {words({0x31534e49, 1, 2, 0, 0, 0}), "offset 0x0: not a layer's graph"},
      {words({0x31534e48, 2, 2, 0, 0, 0}), "offset 0x4: features: expected 1, found 2"},
      {words({0x31534e48, 1, 3, 0, 0, 0}), "offset 0x8: links of a feature: expected 2, found 3"},
      {words({0x31534e48, 1, 2, 1, 0, 0}), "offset 0xc: entry: expected a feature of 1, found 1"},
      {words({0x31534e48, 1, 2, 0, 64, 0}), "offset 0x10: level of feature 0: expected at most 63, found 64"},
      {words({0x31534e48, 1, 2, 0, 0, 5}), "offset 0x14: links of feature 0: expected at most 4, found 5"},
      {words({0x31534e48, 1, 2, 0, 1, 0, 3}), "offset 0x18: links of feature 0: expected at most 2, found 3"},
      {words({0x31534e48, 1, 2, 0, 0, 1, 0}), "offset 0x18: link of feature 0: expected another feature of 1, found 0"},
      {words({0x31534e48, 1, 2, 0, 0, 1, 7}), "found 7"},
      {words({0x31534e48, 1, 2, 0, 0, 0, 0}), "expected the end of the file, found 4 bytes more"},
      {words({0x31534e48, 1, 2, 0, 0, 4}), "expected more, found the end of the file"},
  };
  for (const auto& [each, text] : table)
    CHECK_THROWS_MATCHES(feature_links_of(each, 1, two_links, "x"), file_error,
                         MessageMatches(ContainsSubstring(text)));
  const bytes higher = words({0x31534e48, 2, 2, 0, 1, 0, 1, 1, 0, 0});
  CHECK_THROWS_MATCHES(feature_links_of(higher, 2, two_links, "x"), file_error,
                       MessageMatches(ContainsSubstring(
                           "feature 0 at level 1: expected links with features of that level, found 1 of level 0")));
  const bytes low_entry = words({0x31534e48, 2, 2, 1, 1, 0, 0, 0, 0});
  CHECK_THROWS_MATCHES(
      feature_links_of(low_entry, 2, two_links, "x"), file_error,
      MessageMatches(ContainsSubstring("entry: expected a feature of the highest level, 1, found 1 of level 0")));
}

TEST_CASE("feature graph: the manifest says of which index, how and what; files that do not agree are refused",
          "[feature_index]") {
  const temporary_folder folder;
  build_feature_index(shared("models/stories260k/stories260K-f32.gguf"), folder.path());
  const feature_index index = feature_index::open(folder.path());
  CHECK(feature_graph_layers(index) == 0);
  // All of level 0, one after the other.
  feature_links ring;
  for (std::uint32_t f = 0; f < 172; ++f) {
    ring.add_feature(0);
    ring.add_links(std::vector<std::uint32_t>{(f + 1) % 172});
  }
  const bytes layer = feature_links_bytes(ring, two_links);
  write_bytes(folder / "hnsw-0000.bin", layer);
  const feature_graph_manifest manifest{index.identity(), two_links, {{layer.size(), crc32(layer)}}};
  write_feature_graph_manifest(folder.path(), manifest);
  const feature_graph_manifest found = read_feature_graph_manifest(index);
  CHECK(found.parameters == two_links);
  CHECK(feature_graph_layers(index) == 1);
  CHECK(read_feature_links(index, found, 0) == ring);
  CHECK_THROWS_MATCHES(read_feature_links(index, found, 1), argument_error,
                       MessageMatches(ContainsSubstring("a layer of the graph's 1, found 1")));

  bytes damaged = layer;
  damaged[40] ^= std::byte{1};
  write_bytes(folder / "hnsw-0000.bin", damaged);
  CHECK_THROWS_MATCHES(read_feature_links(index, found, 0), file_error,
                       MessageMatches(ContainsSubstring("hnsw-0000.bin: checksum: expected ")));
  write_bytes(folder / "hnsw-0000.bin", std::span(layer).first(100));
  CHECK_THROWS_MATCHES(
      read_feature_links(index, found, 0), file_error,
      MessageMatches(ContainsSubstring("size: expected " + std::to_string(layer.size()) + " bytes, found 100")));
  std::filesystem::remove(folder / "hnsw-0000.bin");
  CHECK_THROWS_AS(read_feature_links(index, found, 0), file_error);

  const std::string text = [&] {
    const bytes raw = read_bytes(folder / "hnsw.json");
    return std::string(reinterpret_cast<const char*>(raw.data()), raw.size());
  }();
  const auto refused = [&](const std::string& from, const std::string& to, const std::string& expected) {
    std::string changed = text;
    REQUIRE(changed.find(from) != std::string::npos);
    changed.replace(changed.find(from), from.size(), to);
    write_text(folder / "hnsw.json", changed);
    INFO(to);
    CHECK_THROWS_MATCHES(read_feature_graph_manifest(index), file_error, MessageMatches(ContainsSubstring(expected)));
  };
  refused("intaglio feature graph", "graph", "format: expected 'intaglio feature graph'");
  refused("\"version\": 1", "\"version\": 2", "version: expected 1");
  refused("\"links\": 2", "\"links\": 1", "links: expected at least 2");
  refused("\"links\": 2", "\"links\": 257", "links: expected at most 256");
  refused("\"construction\": 10", "\"construction\": 0", "construction: expected at least 1");
  refused("\"search\": 20", "\"search\": -1", "search: expected a natural number");
  refused("hnsw-0000.bin", "../hnsw-0000.bin", "layers[0].file: expected 'hnsw-0000.bin'");
  refused("\"crc32\": \"", "\"crc32\": \"x", "layers[0].crc32: expected 8 hexadecimal digits");
  refused("\"crc32\": \"" + feature_json::hex8(crc32(layer)), "\"crc32\": \"",
          "layers[0].crc32: expected 8 hexadecimal digits");
  refused("\"index\": \"" + feature_json::hex8(index.identity()), "\"index\": \"00c0ffee",
          "a graph of another index: expected " + feature_json::hex8(index.identity()) + ", found 00c0ffee");
  write_feature_graph_manifest(folder.path(), {index.identity(), two_links, std::vector<feature_graph_layer>(6)});
  CHECK_THROWS_MATCHES(read_feature_graph_manifest(index), file_error,
                       MessageMatches(ContainsSubstring("layers: expected at most 5, found 6")));

  CHECK_THROWS_MATCHES(expect_graph_parameters({.links = 1}), argument_error,
                       MessageMatches(ContainsSubstring("links: expected 2 to 256, found 1")));
  CHECK_THROWS_AS(expect_graph_parameters({.construction = 10'001}), argument_error);
  CHECK_THROWS_AS(expect_graph_parameters({.search = 0}), argument_error);
}
