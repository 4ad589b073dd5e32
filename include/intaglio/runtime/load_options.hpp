// SPDX-License-Identifier: MIT
// How weights are loaded, and how far that has come.
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

struct load_options {
  load_callback progress{};
  unsigned threads = 0;                        ///< that repack, or read and check; 0: two or more, as the machine has
  std::uint64_t largest_piece = 0;             ///< of device memory in one allocation; 0: the device's limit
  bool staged = false;                         ///< copy through staging buffers also where the host sees device memory
  const io::feature_changes* patch = nullptr;  ///< changes to the features of FFNs; of a packed file none may be
  weight_place place = weight_place::automatic;  ///< of a packed file's
  std::optional<std::uint64_t>
      budget{};  ///< bytes of weights that device memory may take; FFNs of the last layers then are in the host's

  /// @param most of threads that are of use
  unsigned threads_up_to(unsigned most) const {
    return threads != 0 ? threads : std::clamp(std::thread::hardware_concurrency(), 2u, most);
  }
  /// Whether the host fills device memory where it is. GPUs' memory is not read as fast as it is written, so theirs
  /// is copied to.
  bool in_place(const gpu::device& on) const { return !staged && on.description().type == gpu::device_type::cpu; }
};

/// Tells a callback how far a load has come. Used by one thread.
class load_meter {
 public:
  /// Says that nothing is done yet. @param tell may be empty; must outlive it  @error what it throws
  load_meter(const load_callback& tell, std::uint64_t bytes, std::uint32_t tensors)
      : tell_(tell), start_(std::chrono::steady_clock::now()) {
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
    if (tell_) tell_(at_);
  }
  const load_progress& now() const { return at_; }

 private:
  const load_callback& tell_;
  std::chrono::steady_clock::time_point start_;
  load_progress at_;
};

/// Tensors of the checkpoint that a layer of a weight stands for; none for what is beside another weight of the same
/// tensor.
inline std::uint32_t tensors_of(const plan::weight& w) {
  using layout = plan::weight_layout;
  return w.layout == layout::ternary_scales || w.layout == layout::row_codes || w.layout == layout::row_scales ||
                 w.layout == layout::column_norms
             ? 0
             : w.source_count;
}

}  // namespace intaglio::runtime
