// SPDX-License-Identifier: MIT
// How weights are loaded, and how much is loaded so far.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <thread>

#include "intaglio/io/feature_changes.hpp"
#include "intaglio/runtime/mapped_weights.hpp"
#include "intaglio/runtime/session_options.hpp"

namespace intaglio::runtime {

/// Options of loading weights into memory.
struct load_options {
  load_callback progress{};
  /// Threads that repack, or read and check; 0: the machine's number, at least two.
  unsigned threads = 0;
  std::uint64_t largest_piece = 0;  ///< largest single allocation of device memory; 0: the device's limit
  /// Whether data goes through staging buffers even where the host can write device memory.
  bool staged = false;
  const io::feature_changes* patch = nullptr;          ///< changes to the features of FFNs; null for a packed file
  weight_storage storage = weight_storage::automatic;  ///< for a packed file
  std::optional<std::uint64_t>
      budget{};  ///< bytes of weights that device memory may hold; FFNs of the last layers then stay in host memory

  /// @param most number of threads that are useful
  unsigned threads_up_to(unsigned most) const {
    return threads != 0 ? threads : std::clamp(std::thread::hardware_concurrency(), 2u, most);
  }
  /// Whether the host writes device memory directly. Memory of GPUs is slower to read than to write, so weights are
  /// copied there.
  bool in_place(const gpu::device& on) const { return !staged && on.description().type == gpu::device_type::cpu; }
};

/// Reports the progress of a load to a callback. Used by one thread.
class load_meter {
 public:
  /// Reports that nothing is done yet. @param report may be empty; must outlive the meter  @error what it throws
  load_meter(const load_callback& report, std::uint64_t bytes, std::uint32_t tensors)
      : report_(report), start_(std::chrono::steady_clock::now()) {
    at_.bytes_total = bytes;
    at_.tensors_total = tensors;
    add(0, 0);
  }
  /// @error what the callback throws
  void add(std::uint64_t bytes, std::uint32_t tensors) {
    at_.bytes_done += bytes;
    at_.tensors_done += tensors;
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
    if (at_.bytes_done != 0)
      at_.seconds_left =
          seconds * static_cast<double>(at_.bytes_total - at_.bytes_done) / static_cast<double>(at_.bytes_done);
    if (report_) report_(at_);
  }
  const load_progress& now() const { return at_; }

 private:
  const load_callback& report_;
  std::chrono::steady_clock::time_point start_;
  load_progress at_;
};

/// Number of checkpoint tensors in one layer of a weight; 0 for a weight that is stored beside another weight of the
/// same tensor.
inline std::uint32_t tensors_of(const plan::weight& w) {
  using layout = plan::weight_layout;
  return w.layout == layout::ternary_scales || w.layout == layout::row_codes || w.layout == layout::row_scales ||
                 w.layout == layout::column_norms
             ? 0
             : w.source_count;
}

}  // namespace intaglio::runtime
