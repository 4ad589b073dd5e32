// SPDX-License-Identifier: MIT
// Prints a sum of what each encoder writes for random blocks. tests/flags/run compiles this with flags that let
// compilers fuse products with sums, and compares.
#include <cstdint>
#include <cstdio>
#include <span>
#include <vector>

#include <intaglio/io/bcml1_encode.hpp>
#include <intaglio/io/codec_encode.hpp>

using namespace intaglio;

// FNV-1a
static std::uint64_t sum_of(std::span<const std::byte> bytes) {
  std::uint64_t sum = 14695981039346656037u;
  for (const std::byte each : bytes) sum = (sum ^ static_cast<std::uint64_t>(each)) * 1099511628211u;
  return sum;
}

int main() {
  constexpr std::size_t count = 256 * 4096;
  std::vector<float> values;
  std::uint32_t state = 1;
  while (values.size() < count) {
    state = state * 1664525u + 1013904223u;
    values.push_back(static_cast<float>(static_cast<std::int32_t>(state)) / static_cast<float>(1u << 31));
  }
  for (const auto& row : dtype_table) {
    if (!io::is_encodable(row.type)) continue;
    std::vector<std::byte> bytes(io::row_bytes(row.type, count));
    io::encode_row(row.type, values, bytes);
    std::printf("%.*s %016llx\n", static_cast<int>(row.name.size()), row.name.data(),
                static_cast<unsigned long long>(sum_of(bytes)));
  }
  for (const auto path : {io::bcml1::path::portable, io::bcml1::path::fastest}) {
    constexpr std::size_t blocks = 4096;
    std::vector<std::uint32_t> words(std::size_t{5} * 64 * blocks);  // of one row of a panel of 64
    io::bcml1::encode_blocks(dtype::f32, std::as_bytes(std::span(values)).data(), blocks, words.data(), path);
    std::printf("BCML1 %016llx\n", static_cast<unsigned long long>(sum_of(std::as_bytes(std::span(words)))));
  }
}
