// SPDX-License-Identifier: MIT
// A feature index's manifest of any bytes either reads or throws file_error; what reads has its blocks one after the
// other, as large as their vectors. Seeds: python3 tests/fuzz/seeds.py FOLDER
#include <cstddef>
#include <cstdint>

#include "intaglio/io/feature_manifest.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace intaglio::io;
  try {
    strict_json document("fuzz");
    document.read_text({reinterpret_cast<const char*>(data), size});
    const feature_manifest found = feature_manifest_of(document);
    if (found.layers.size() > found.config.num_hidden_layers) __builtin_trap();
    for (const feature_layer& layer : found.layers) {
      std::uint64_t end = 0;
      for (const feature_block& block : layer.blocks) {
        if (block.offset < end || block.offset - end >= feature_block_alignment || block.bytes == 0) __builtin_trap();
        if (block.bytes != layer.features * feature_row_bytes(block.type, found.config.hidden_size)) __builtin_trap();
        end = block.offset + block.bytes;
      }
      if (layer.bytes() != end || layer.file.find('/') != std::string::npos) __builtin_trap();
    }
  } catch (const intaglio::file_error&) {}
  return 0;
}
