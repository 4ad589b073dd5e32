// SPDX-License-Identifier: MIT
// A journal of any bytes beside an index either reads or throws file_error, as it is and with its head and checksums
// made right. What reads has finite vectors for every feature, and takes another change, which is there when it is read
// again. Seeds: python3 tests/fuzz/seeds.py FOLDER
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <string_view>
#include <vector>

#include "intaglio/io/feature_patch.hpp"
#include "temporary_folder.hpp"

namespace {

using namespace intaglio;
constexpr std::uint32_t width = 8, features = 3, layers = 2;

/// Two layers of three features, 8 wide.
struct edited_index {
  temporary_folder folder;
  io::feature_index index;
  edited_index() : index(made(folder.path())) {}
  static void put(const std::filesystem::path& file, std::span<const std::byte> bytes) {
    std::ofstream(file, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  }
  static io::feature_index made(const std::filesystem::path& to) {
    io::feature_manifest manifest;
    manifest.codec = "own";
    decoder_config& c = manifest.config;
    c.model_type = architecture::llama;
    c.hidden_act = activation::silu;
    c.hidden_size = width, c.intermediate_size = features, c.num_hidden_layers = layers;
    c.num_attention_heads = 2, c.num_key_value_heads = 1, c.head_dim = 4, c.vocab_size = 8;
    c.rope_theta = 10000;
    for (std::uint32_t l = 0; l < layers; ++l) {
      io::feature_layer layer{io::feature_layer_file(l), features, {}};
      std::vector<std::byte> bytes(2 * io::feature_block_alignment + sizeof(float) * width * features);
      for (std::size_t i = 0; i < 3; ++i) {
        layer.blocks[i] = {dtype::f32, 1.f, i * io::feature_block_alignment, sizeof(float) * width * features, 0};
        layer.blocks[i].crc32 = io::crc32(std::span(bytes).subspan(static_cast<std::size_t>(layer.blocks[i].offset),
                                                                   sizeof(float) * width * features));
      }
      put(to / layer.file, bytes);
      manifest.layers.push_back(layer);
    }
    io::write_feature_manifest(to, manifest);
    return io::feature_index::open(to, {.threads = 1});
  }
  std::filesystem::path journal() const { return folder / io::feature_patch::default_file; }
};
const edited_index& at() {
  static const edited_index the;
  return the;
}

/// Head and checksums as a writer would have them.
void reseal(std::vector<std::byte>& bytes) {
  const auto set = [&](std::size_t offset, std::uint32_t value) { std::memcpy(bytes.data() + offset, &value, 4); };
  const auto get = [&](std::size_t offset) {
    std::uint32_t out = 0;
    std::memcpy(&out, bytes.data() + offset, 4);
    return out;
  };
  if (bytes.size() < 16) return;
  std::memcpy(bytes.data(), "INTPATC1", 8);
  set(8, at().index.identity());
  set(12, width);
  for (std::size_t begin = 16; bytes.size() - begin >= 20;) {
    set(begin, 0x54504649);
    const std::uint32_t edit = get(begin + 4);
    const std::size_t length = 20 + (edit == 1 || edit == 2 ? 3 * 4 * width : 0);
    if (length > bytes.size() - begin) return;
    set(begin + length - 4, io::crc32(std::span(bytes).subspan(begin, length - 4)));
    begin += length;
  }
}

void read_all(std::span<const std::byte> bytes, bool writes) {
  edited_index::put(at().journal(), bytes);
  try {
    std::size_t changes = 0;
    {
      io::feature_patch patch(at().index, at().journal(), writes);
      changes = patch.changes();
      for (std::uint32_t layer = 0; layer < layers; ++layer) {
        const std::uint32_t count = patch.features(layer);
        if (count < features || count > features + changes || patch.next_feature(layer) > count) __builtin_trap();
        std::vector<float> values(std::size_t{count} * width);
        for (const io::feature_vector which : io::feature_vectors) {
          patch.read_f32(layer, which, 0, count, values);
          for (const float value : values)
            if (!std::isfinite(value)) __builtin_trap();
        }
      }
      if (patch.changed().size() > changes) __builtin_trap();
      if (!writes) return;
      patch.apply({io::feature_edit::remove, 1, 0, {}});
    }
    const io::feature_patch again(at().index, at().journal(), false);
    if (again.changes() != changes + 1 || !again.is_removed(1, 0)) __builtin_trap();
  } catch (const file_error& problem) {
    if (std::string_view(problem.what()).size() > 1000) __builtin_trap();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::vector<std::byte> bytes(size);
  if (size != 0) std::memcpy(bytes.data(), data, size);
  const bool writes = size != 0 && data[size - 1] % 16 == 0;  // each flushes to the disk
  read_all(bytes, writes);
  reseal(bytes);
  read_all(bytes, writes);
  return 0;
}
