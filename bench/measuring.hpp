// SPDX-License-Identifier: MIT
// What benchmarks of single kernels share.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <numeric>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "examples/tool/warmth.hpp"
#include "intaglio/gpu/queue.hpp"
#include "intaglio/gpu/recorder.hpp"
#include "intaglio/kernels/matmul_layout.hpp"

namespace intaglio::bench {

/// The median of at least one value.
inline double median(std::vector<double> of) {
  const auto middle = of.begin() + static_cast<std::ptrdiff_t>(of.size() / 2);
  std::nth_element(of.begin(), middle, of.end());
  return *middle;
}

/// A SPIR-V module in a file. @throws std::runtime_error
inline std::vector<std::byte> module_in(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  if (text.empty()) throw std::runtime_error(path + ": expected a SPIR-V module, found nothing to read");
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

/// Adds the codec of that name. @return false where the matrices' products have none
inline bool add_codec(std::string_view name, std::vector<kernels::codec>& to) {
  for (std::uint32_t c = 0; c < kernels::codec_table.size(); ++c)
    if (kernels::codec_table[c].name == name) return to.push_back(static_cast<kernels::codec>(c)), true;
  return false;
}

/// Records `length` dispatches of which each waits for the one before: record(recorder, index).
template <class Record>
gpu::recording chain(const gpu::device& on, std::uint32_t length, const Record& record,
                     const gpu::timestamps* points = nullptr) {
  gpu::recorder to(on, "chain", points);
  for (std::uint32_t i = 0; i < length; ++i) {
    record(to, i);
    to.barrier();
  }
  return to.finish();
}
inline void run(gpu::queue& on, const gpu::recording& commands) {
  const VkCommandBuffer handle = commands.handle();
  on.wait(on.submit({&handle, 1}, "chain"), std::chrono::seconds(60));
}
/// Runs a chain once, for what it does.
template <class Record>
void run_once(const gpu::device& on, gpu::queue& queue, const Record& record) {
  run(queue, chain(on, 1, [&](gpu::recorder& to, std::uint32_t) { record(to); }));
}
/// Seconds of a whole chain on a warm device by its timestamps, the median of `turns`.
template <class Record>
double chain_seconds(tool::warmth& on, std::uint32_t length, int turns, const Record& record) {
  const auto times = on.times(length, turns, [&](gpu::recorder& to) {
    for (std::uint32_t i = 0; i < length; ++i) {
      record(to, i);
      if (i + 1 < length) to.barrier();
    }
  });
  return std::accumulate(times.begin(), times.end(), 0.0) * 1e-9;
}

}  // namespace intaglio::bench
