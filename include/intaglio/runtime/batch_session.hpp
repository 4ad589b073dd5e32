// SPDX-License-Identifier: MIT
// batch_session<Model, Shape>: sessions of one model that decode together, with the engraved plans. Only the
// constructors know the plans.
#pragma once

#include "intaglio/core/compiler.hpp"

#include <array>
#include <filesystem>

#include "intaglio/plan/engrave_batch.hpp"
#include "intaglio/runtime/basic_batch.hpp"

namespace intaglio {

/// A model ready to serve.
/// @tparam Shape how many sessions at once, and the pages of their KV caches
/// @tparam Profiles what the program carries plans for; by default CPU drivers and any GPU. One is picked by device.
template <class Model, plan::batch_shape Shape, const plan::profile&... Profiles>
class batch_session : public basic_batch {
 public:
  /// Opens a GGUF file (or the first part of a split one) or a Hugging Face folder and loads it.
  /// @error mismatch_error, file_error; device_error, out_of_memory, device_lost
  batch_session(const gpu::device& on, const std::filesystem::path& path, const session_options& options = {})
      : batch_session(on, gpu::translated([&] { return io::checkpoint::open(path, options.checkpoint); }), options) {}
  batch_session(const gpu::device& on, const io::checkpoint& from, const session_options& options = {})
      : basic_batch(on, tables, from, options, &runtime::modules_of<plan::kernels_used(tables)>) {}

 private:
  static constexpr std::size_t count = sizeof...(Profiles) == 0 ? 2 : sizeof...(Profiles);
  static constexpr std::array<const plan::table*, count> list() {
    if constexpr (sizeof...(Profiles) == 0)
      return {&plan::engraved_batch<Model, plan::profiles::cpu, Shape>::table,
              &plan::engraved_batch<Model, plan::profiles::portable, Shape>::table};
    else return {&plan::engraved_batch<Model, Profiles, Shape>::table...};
  }
  static constexpr std::array<const plan::table*, count> tables = list();
};

}  // namespace intaglio
