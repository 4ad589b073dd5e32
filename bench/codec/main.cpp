// SPDX-License-Identifier: MIT
// Speed of encoding and decoding each codec on one core, and of BCML1 on all, beside a copy of the same memory in the
// same run. usage: codec [ROWS COLUMNS [RUNS]]
#include <intaglio/io/bcml1_encode.hpp>
#include <intaglio/io/codec.hpp>
#include <intaglio/io/codec_encode.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <vector>

using namespace intaglio;

namespace {

/// The best of `runs` times, in seconds.
double best(unsigned runs, const std::function<void()>& work) {
  double least = 1e30;
  for (unsigned i = 0; i < runs; ++i) {
    const auto start = std::chrono::steady_clock::now();
    work();
    least = std::min(least, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  return least;
}

/// Sums of twelve uniform numbers: near enough to a normal distribution of weights with standard deviation 0.02.
std::vector<float> weights(std::size_t count) {
  std::vector<float> out(count);
  std::uint64_t state = 1;
  for (float& value : out) {
    std::uint64_t sum = 0;
    for (int i = 0; i < 3; ++i) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      for (int part = 0; part < 4; ++part) sum += (state >> (16 * part)) & 0xFFFFu;
    }
    value = 0.02f * (static_cast<float>(sum) / 65536.f - 6.f);
  }
  return out;
}

}  // namespace

int main(int count, char** arguments) {
  const auto number = [&](int at, std::uint64_t otherwise) {
    return at < count ? std::strtoull(arguments[at], nullptr, 10) : otherwise;
  };
  const io::bcml1_layout layout{number(1, 4096), number(2, 4096)};
  const auto runs = static_cast<unsigned>(number(3, 5));
  if (layout.rows == 0 || layout.columns == 0 || layout.columns % 256 != 0 || layout.rows > 65536 ||
      layout.columns > 65536 || runs == 0) {
    std::fprintf(stderr, "codec: expected ROWS 1..65536, COLUMNS a multiple of 256 up to 65536, RUNS from 1\n");
    return 2;
  }
  const auto size = static_cast<std::size_t>(layout.rows * layout.columns);
  const std::vector<float> values = weights(size);
  std::vector<float> decoded(size);
  std::vector<std::byte> halves(2 * size), copy(2 * size);
  io::encode_row(dtype::f16, values, halves);

  const double f16_bytes = static_cast<double>(halves.size()), elements = static_cast<double>(size);
  const double copying = best(runs, [&] {
    std::memcpy(copy.data(), halves.data(), halves.size());
    asm volatile("" : : "r"(copy.data()) : "memory");
  });
  std::printf("%llu x %llu values, best of %u runs\n\n", static_cast<unsigned long long>(layout.rows),
              static_cast<unsigned long long>(layout.columns), runs);
  std::printf("copy of the f16 matrix       %8.0f MB/s\n", f16_bytes / copying / 1e6);
  std::vector<std::byte> panels(static_cast<std::size_t>(layout.bytes()));
  const auto compress = [&](const char* what, const io::bcml1_options& options) {
    const double seconds = best(runs, [&] { io::encode_bcml1(dtype::f16, halves, layout, panels, options); });
    std::printf("%-28s %8.0f MB/s of f16\n", what, f16_bytes / seconds / 1e6);
  };
  compress("bcml1, one core", {.threads = 1, .progress = {}, .path = io::bcml1::path::fastest});
  compress("bcml1, one core, portable", {.threads = 1, .progress = {}, .path = io::bcml1::path::portable});
  compress("bcml1, all cores", {.threads = 0, .progress = {}, .path = io::bcml1::path::fastest});

  std::printf("\n%-8s %18s %18s %18s\n", "one core", "encode, M values/s", "decode, M values/s", "decode, MB/s read");
  for (const auto& row : dtype_table) {
    const bool is_panels = row.type == dtype::bcml1;
    if (!is_panels && !(io::is_encodable(row.type) && io::is_decodable(row.type))) continue;
    std::vector<std::byte> bytes(
        static_cast<std::size_t>(is_panels ? layout.bytes() : layout.rows * io::row_bytes(row.type, layout.columns)));
    const double encoding = best(runs, [&] {
      if (is_panels) io::encode_bcml1(dtype::f32, std::as_bytes(std::span(values)), layout, bytes);
      else io::encode_row(row.type, values, bytes);
    });
    const double decoding = best(runs, [&] {
      if (is_panels) io::decode_bcml1(bytes, layout, 0, layout.rows, decoded);
      else io::decode_row(row.type, bytes, decoded);
    });
    std::printf("%-8s %18.0f %18.0f %18.0f\n", row.name.data(), elements / encoding / 1e6, elements / decoding / 1e6,
                static_cast<double>(bytes.size()) / decoding / 1e6);
  }
  return 0;
}
