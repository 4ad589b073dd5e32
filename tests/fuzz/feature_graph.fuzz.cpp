// SPDX-License-Identifier: MIT
// A layer's graph of any bytes, and a graph's manifest, either read or throw file_error; the links that read are a
// layer's own, at levels that both ends have, and are written as they were read. Seeds: python3 tests/fuzz/seeds.py
// FOLDER
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "intaglio/io/feature_graph.hpp"

namespace {

using namespace intaglio::io;

void read_links(std::span<const std::byte> bytes) {
  constexpr graph_parameters parameters{.links = 2, .construction = 10, .search = 20};
  try {
    const feature_links links = feature_links_of(bytes, 4, parameters, "fuzz");
    if (links.features() != 4 || links.entry >= 4) __builtin_trap();
    for (std::uint32_t f = 0; f < 4; ++f) {
      if (links.level(f) > links.level(links.entry)) __builtin_trap();
      for (std::uint32_t level = 0; level <= links.level(f); ++level) {
        if (links.at(f, level).size() > parameters.most_links(level)) __builtin_trap();
        for (const std::uint32_t other : links.at(f, level))
          if (other >= 4 || other == f || links.level(other) < level) __builtin_trap();
      }
    }
    if (!std::ranges::equal(feature_links_bytes(links, parameters), bytes)) __builtin_trap();
  } catch (const intaglio::file_error&) {}
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::vector<std::byte> bytes(size);
  if (size != 0) std::memcpy(bytes.data(), data, size);
  read_links(bytes);
  if (size >= 12) {  // what else the head must be
    constexpr std::uint32_t head[] = {0x31534e48, 4, 2};
    std::memcpy(bytes.data(), head, sizeof head);
    read_links(bytes);
  }
  try {
    strict_json document("fuzz");
    document.read_text({reinterpret_cast<const char*>(data), size});
    const feature_graph_manifest found = feature_graph_manifest_of(document);
    expect_graph_parameters(found.parameters);
  } catch (const intaglio::file_error&) {}
  return 0;
}
