// SPDX-License-Identifier: MIT
// Blocks of any bits decode; values of any bits encode or are refused, and what was encoded from finite values within
// f16 decodes to finite ones; BCML1 has the same words on both ways. The first byte picks what is done with the rest.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "intaglio/io/bcml1_encode.hpp"
#include "intaglio/io/codec_encode.hpp"

namespace {

using namespace intaglio;
using namespace intaglio::io;

void decode_any(const dtype_info& type, std::span<const std::byte> bytes) {
  const std::size_t blocks = bytes.size() / type.block_bytes;
  std::vector<float> values(blocks * type.block_elements);
  decode_row(type.type, bytes.first(blocks * type.block_bytes), values);
}

void encode_any(const dtype_info& type, std::span<const std::byte> bytes) {
  std::vector<float> values(bytes.size() / 4 / type.block_elements * type.block_elements);
  if (!values.empty()) std::memcpy(values.data(), bytes.data(), 4 * values.size());
  std::vector<std::byte> out(static_cast<std::size_t>(row_bytes(type.type, values.size())));
  float largest = 0.f;
  bool finite = true;
  for (const float value : values) {
    largest = std::max(largest, std::fabs(value));
    finite &= std::isfinite(value);
  }
  try {
    encode_row(type.type, values, out);
    if (!finite && type.block_elements > 1) __builtin_trap();
  } catch (const argument_error&) {
    if (finite) __builtin_trap();
    return;
  }
  if (!finite || largest > 65504.f) return;
  decode_row(type.type, out, values);
  for (const float value : values)
    if (!std::isfinite(value)) __builtin_trap();
}

bool encode_panels(dtype type, std::span<const std::byte> bytes, const bcml1_layout& layout, std::span<std::byte> out,
                   bcml1::path path) {
  try {
    encode_bcml1(type, bytes, layout, out, {.threads = 1, .progress = {}, .path = path});
    return true;
  } catch (const argument_error&) { return false; }
}

void panels(dtype type, std::uint8_t width, std::span<const std::byte> bytes) {
  const std::size_t columns = std::size_t{width} + 1, row = columns * info(type).block_bytes;
  const bcml1_layout layout{bytes.size() / row, columns};
  std::vector<std::byte> fast(static_cast<std::size_t>(layout.bytes())), plain(fast.size());
  const auto whole = bytes.first(static_cast<std::size_t>(layout.rows) * row);
  const bool good = encode_panels(type, whole, layout, fast, bcml1::path::fastest);
  if (good != encode_panels(type, whole, layout, plain, bcml1::path::portable)) __builtin_trap();
  if (!good) return;
  if (fast != plain) __builtin_trap();
  std::vector<float> values(static_cast<std::size_t>(layout.rows * columns));
  decode_bcml1(fast, layout, 0, layout.rows, values);
  for (const float value : values)
    if (!std::isfinite(value)) __builtin_trap();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const auto bytes = std::as_bytes(std::span(data, size)).subspan(2);
  const auto& type = dtype_table[data[0] % std::size(dtype_table)];
  switch (data[0] / 64) {
    case 0:
      if (is_decodable(type.type)) decode_any(type, bytes);
      break;
    case 1:
      if (is_encodable(type.type)) encode_any(type, bytes);
      break;
    default:
      panels(data[0] % 3 == 0 ? dtype::f32 : data[0] % 3 == 1 ? dtype::f16 : dtype::bf16, data[1], bytes);
  }
  return 0;
}
