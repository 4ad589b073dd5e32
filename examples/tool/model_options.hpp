// SPDX-License-Identifier: MIT
// --model and what belongs to it, without the library's readers, so that the command line does not pay for them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace intaglio::io {
class adapter_set;
}

namespace intaglio::tool {

/// --model and what belongs to it.
struct model_options {
  std::string path;                              ///< empty: the embedded model
  std::string i2s_layout = "block128";           ///< block128, block64 or rows4
  std::optional<std::uint64_t> weight_budget{};  ///< bytes, of commands that load
  std::uint32_t context = 0;                     ///< positions, of commands that load; 0: what fits, or as engraved
  std::string cache_type{};                      ///< of the KV cache, of commands that load; empty: the profile's own
  std::string codec{};                           ///< to compute in, whatever the file's; empty: the file's own
  std::vector<std::string> devices{};            ///< over which it is cut, as --device names one; empty: one device
  std::vector<std::string> lora{};               ///< adapters, FILE or FILE:SCALE (io/lora_adapter.hpp)
  io::adapter_set* beside = nullptr;             ///< that sessions choose among: the model is opened with them
  bool mpi = false;                              ///< a stage on each rank of MPI
  std::vector<std::uint32_t> cut{};              ///< layers in front of each cut; empty: chosen
  bool embedded() const { return path.empty(); }
  /// The model's path as errors name it.
  std::string shown() const { return embedded() ? "fable.gguf (embedded)" : path; }
};

}  // namespace intaglio::tool
