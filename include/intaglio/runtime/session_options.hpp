// SPDX-License-Identifier: MIT
// Options for loading a session.
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

/// Progress of a load.
struct load_progress {
  std::uint64_t bytes_done = 0, bytes_total = 0;      ///< bytes of weights: loaded; in all
  std::uint32_t tensors_done = 0, tensors_total = 0;  ///< tensors of the plan: loaded; in all
  double seconds_left = 0;                            ///< estimated from the speed so far
};
/// Called from the loading thread, about once a piece, and after the weights between pipelines, proofs and recordings,
/// at least every 50 ms while it waits for pipelines. An exception that it throws ends the load and reaches the caller;
/// what is under way is finished, and nothing else begins.
using load_callback = std::function<void(const load_progress&)>;
/// Called by the loading thread between two steps of a load. An exception that it throws ends the load. May be empty.
using load_look = std::function<void()>;

/// From which memory a device reads the weights of a packed file.
enum class weight_storage : std::uint8_t {
  automatic,        ///< mapped where host and device share memory and the driver allows it, else copied
  copied,           ///< in device memory
  mapped,           ///< in the mapped file, also across a bus
  features_mapped,  ///< FFN weights in the mapped file, other weights in device memory
};

}  // namespace intaglio::runtime

namespace intaglio {

/// Progress of a load, as session_options::progress receives it.
using load_progress = runtime::load_progress;

/// Options for loading a session.
struct session_options {
  runtime::load_callback progress{};  ///< receives the progress of the load; an exception ends the load
  std::optional<std::string>
      cache_folder{};             ///< for compiled pipelines; absent: gpu::default_cache_folder(), empty: none
  double submit_budget_ms = 250;  ///< no submission is planned to take the device longer
  bool prove_kernels = true;  ///< compare each kernel with the reference when it first runs on this device and driver
  bool find_first_nan =
      false;  ///< debugging: where logits are not finite, the error names the first such state; feeds all tokens anew
  /// Number of threads that repack weights. 0: the number that the machine has.
  unsigned load_threads = 0;
  /// Memory from which the device reads a packed file's weights.
  runtime::weight_storage storage = runtime::weight_storage::automatic;
  std::optional<std::uint64_t> weight_budget{};  ///< bytes of weights that device memory may hold: FFNs of the last
                                                 ///< layers that do not fit are read across the bus
  const io::feature_changes* patch = nullptr;    ///< changes to the features of FFNs (docs/walk.md), read while loading
  io::template_renderer templates{};    ///< renders chat templates that the library does not know: io::jinja_renderer()
  io::checkpoint_options checkpoint{};  ///< how an I2_S file is laid out
};

}  // namespace intaglio
