// SPDX-License-Identifier: MIT
// Malformed blocks of every codec in a model's file: scales that are no numbers, any bytes as codes, blocks cut.
#include <array>
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <cstdint>
#include <vector>

#include "bad_files.hpp"
#include "intaglio/io/codec.hpp"
#include "shared.hpp"

using intaglio::dtype;
using intaglio::dtype_info;

namespace {

/// Whether all values of a block are numbers.
bool is_finite(const dtype_info& type, const bytes& block) {
  std::vector<float> values(type.block_elements);
  intaglio::io::decode_row(type.type, block, values);
  return std::all_of(values.begin(), values.end(), [](float value) { return std::isfinite(value); });
}

/// Blocks of zeros in which some bytes at one offset are all ones, or the f16 NaN, and whose values are no numbers
/// then: the bytes are of a scale.
std::vector<bytes> blocks_with_bad_scales(const dtype_info& type) {
  std::vector<bytes> out;
  const bytes ones(4, std::byte{0xFF}), nan{std::byte{0}, std::byte{0x7E}}, one{std::byte{0xFF}};
  for (const bytes& pattern : {nan, one, ones})
    for (std::size_t at = 0; at + pattern.size() <= type.block_bytes; ++at) {
      bytes block(type.block_bytes);
      std::copy(pattern.begin(), pattern.end(), block.begin() + static_cast<std::ptrdiff_t>(at));
      if (!is_finite(type, block)) out.push_back(block);
    }
  return out;
}

/// A sound model whose last tensor is a matrix of a codec.
struct coded_file {
  gguf_image image = gguf_image::of(shared("conformance/llama-tiny/gguf/llama-tiny-q4_k_m.gguf"));
  const dtype_info& type;

  explicit coded_file(const dtype_info& of) : type(of) {
    auto matrix = image.tensor_at("blk.0.ffn_up.weight");
    std::erase_if(image.tensors, [&](const auto& each) { return each.name == matrix.name; });
    matrix.type = static_cast<std::uint32_t>(type.ggml_type);
    matrix.data.assign(matrix.shape[0] / type.block_elements * type.block_bytes * matrix.shape[1], std::byte{0});
    image.tensors.push_back(matrix);
  }
  gguf_image::tensor& matrix() { return image.tensors.back(); }
  /// Puts a block instead of the last one.
  void end_with(const bytes& block) {
    std::copy(block.begin(), block.end(), matrix().data.end() - static_cast<std::ptrdiff_t>(block.size()));
  }
};

}  // namespace

TEST_CASE("malformed GGUF: blocks of every codec that are no numbers, or cut, are refused", "[gguf][bad]") {
  const temporary_folder folder;
  const auto path = folder / "bad.gguf";
  bad_file_judge judge;
  std::size_t codecs = 0;
  for (const dtype_info& type : intaglio::dtype_table) {
    if (type.ggml_type < 0 || type.block_elements == 1) continue;
    if (type.type == dtype::i2_s || type.type == dtype::bcml1) continue;  // of whole matrices: bad_gguf_files.hpp
    const std::string named(type.name);
    CAPTURE(named);
    ++codecs;
    coded_file made(type);
    const auto put = [&](const std::string& what, bool sound) {
      const bytes file = made.image.build();
      write_bytes(path, file);
      if (!sound) return judge.judge(named + ": " + what, path, file.size(), verdict::refused);
      const auto report = intaglio::io::check(path);
      for (const auto& finding : report.errors) FAIL_CHECK(finding.text);
    };
    put("zeros", true);
    const std::vector<bytes> faults = blocks_with_bad_scales(type);
    CHECK(faults.empty() == (type.type == dtype::nvfp4));  // whose scales are numbers, whatever their bits
    for (std::size_t i = 0; i < faults.size(); i += (std::max<std::size_t>)(1, faults.size() - 1)) {
      made.end_with(faults[i]);
      put("a scale that is no number", false);
    }
    for (const unsigned value : {0x01u, 0x3Bu, 0x7Cu, 0x7Fu, 0x80u, 0xFFu}) {  // any bits, as an oracle reads them
      const bytes block(type.block_bytes, static_cast<std::byte>(value));
      made.end_with(block);
      put("bytes of " + std::to_string(value), is_finite(type, block));
    }
    coded_file cut(type);
    for (const std::size_t missing : {std::size_t{1}, std::size_t{type.block_bytes}}) {
      bytes file = cut.image.build();
      const std::size_t padding = (32 - cut.matrix().data.size() % 32) % 32;
      file.resize(file.size() - padding - missing);
      write_bytes(path, file);
      judge.judge(named + ": cut by " + std::to_string(missing), path, file.size(), verdict::refused);
    }
    --cut.matrix().shape[0];
    write_bytes(path, cut.image.build());
    judge.judge(named + ": a row that is not whole blocks", path, cut.image.build().size(), verdict::refused);
  }
  CHECK(codecs == 25);
  CHECK(judge.count() >= 3 * codecs);
}
