// SPDX-License-Identifier: MIT
// Nearest gates for many vectors at once on the device: time of a batch, the time to read the gates, which is its lower
// bound, and plain search on one core of the host. The default is a layer of Gemma-3 4B's shape in bf16. The lists are
// compared with those of the host where sums are exact.
#include <intaglio/runtime/gate_search.hpp>
#include <intaglio/runtime/kernel_proof.hpp>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <random>

using namespace intaglio;

namespace {

double milliseconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

int main(int count, char** arguments) {
  const auto number = [&](int at, std::uint32_t otherwise) {
    return count > at ? static_cast<std::uint32_t>(std::strtoul(arguments[at], nullptr, 10)) : otherwise;
  };
  const std::uint32_t width = number(1, 2560), features = number(2, 10240), top = number(3, 10), most = number(4, 64);
  if (count > 5 || width == 0 || features == 0 || top == 0 || most == 0) {
    std::fprintf(stderr, "usage: gates [WIDTH [FEATURES [TOP [BATCH]]]]\n");
    return 2;
  }
  try {
    std::mt19937 random(1);
    // Whole numbers: exact in bf16, their sums in f32.
    std::vector<float> gate(std::size_t{width} * features), x(std::size_t{width} * most);
    for (float& value : gate) value = static_cast<float>(random() % 15) - 7;
    for (float& value : x) value = static_cast<float>(random() % 15) - 7;
    std::vector<std::byte> rows(2 * gate.size());
    for (std::size_t i = 0; i < gate.size(); ++i) {
      const auto bits = static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(gate[i]) >> 16);
      std::memcpy(rows.data() + 2 * i, &bits, 2);
    }
    const gpu::device on;
    runtime::gate_search search(on, kernels::codec::bf16, width, features, top, most);
    auto start = std::chrono::steady_clock::now();
    search.load(rows);
    std::printf("%s\n%u gates of %u in bf16, %.1f MB, there in %.1f ms; the nearest %u\n", on.label().c_str(), features,
                width, static_cast<double>(rows.size()) / 1e6, milliseconds_since(start), search.count());
    start = std::chrono::steady_clock::now();
    const auto host = io::nearest_gates(gate, std::span(x).first(width), top);
    const double plain = milliseconds_since(start);
    for (std::uint32_t batch = 1; batch <= most; batch *= 2) {
      const auto part = std::span(x).first(std::size_t{width} * batch);
      auto found = search.nearest(part);
      double best = 1e30;
      for (int run = 0; run < 10; ++run) {
        start = std::chrono::steady_clock::now();
        found = search.nearest(part);
        best = std::min(best, milliseconds_since(start));
      }
      for (std::size_t i = 0; i < host.size(); ++i)
        if (found[0][i].feature != host[i].feature || found[0][i].score != host[i].score)
          throw error("the device's list is not the host's");
      std::printf("batch %2u: %8.3f ms, %8.3f ms a vector\n", batch, best, best / batch);
    }
    std::printf("host, one core, f32: %8.3f ms a vector\n", plain);
    return 0;
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "gates: %s\n", failure.what());
    return 1;
  }
}
