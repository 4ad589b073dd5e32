// SPDX-License-Identifier: MIT
// How a session is made.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "intaglio/io/chat_message.hpp"
#include "intaglio/io/checkpoint_options.hpp"

namespace intaglio::io {
class feature_changes;
}

namespace intaglio::runtime {

/// How far a load has come.
struct load_progress {
  std::uint64_t bytes_done = 0, bytes_total = 0;      ///< of weights: loaded; in all
  std::uint32_t tensors_done = 0, tensors_total = 0;  ///< of the plan: loaded; in all
  double seconds_left = 0;                            ///< at the speed so far
};
/// Called from the loading thread, about once a piece; what it throws ends the load and reaches the caller.
using load_callback = std::function<void(const load_progress&)>;

/// Where a device reads the weights of a packed file.
enum class weight_place : std::uint8_t {
  automatic,        ///< mapped where host and device share memory and the driver takes it, else copied
  copied,           ///< in memory of the device
  mapped,           ///< where the file is mapped, also across a bus
  features_mapped,  ///< the FFNs' where the file is mapped, the others in memory of the device
};

}  // namespace intaglio::runtime

namespace intaglio {

/// How far a load has come, as session_options::progress is told.
using load_progress = runtime::load_progress;

/// How a session is made.
struct session_options {
  runtime::load_callback progress{};  ///< told how far the load has come; what it throws ends the load
  std::optional<std::string>
      cache_folder{};             ///< of compiled pipelines; absent: gpu::default_cache_folder(), empty: none
  double submit_budget_ms = 250;  ///< no submission is planned to take the device longer
  bool prove_kernels = true;  ///< hold each kernel against the reference when it first runs on this device and driver
  bool find_first_nan =
      false;  ///< debugging: where logits are no numbers, the error names the first state that is none; feeds all anew
  unsigned load_threads = 0;                                       ///< that repack weights; 0: as the machine has
  runtime::weight_place place = runtime::weight_place::automatic;  ///< where the device reads a packed file's weights
  std::optional<std::uint64_t> weight_budget{};  ///< bytes of weights that device memory may take: FFNs of the last
                                                 ///< layers that it does not take are read across the bus
  const io::feature_changes* patch = nullptr;    ///< changes to the features of FFNs (docs/walk.md), read while loading
  io::template_renderer templates{};    ///< of chat templates that the library does not know: io::jinja_renderer()
  io::checkpoint_options checkpoint{};  ///< how an I2_S file is laid out
};

}  // namespace intaglio
