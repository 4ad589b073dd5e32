// SPDX-License-Identifier: MIT
// session<Model>: the engraved plans of a model, loaded onto a device. Only the constructors know the plans, so a
// program that writes `extern template class intaglio::session<Model>;` in all but one file compiles them once.
#pragma once

#include "intaglio/core/compiler.hpp"

#include <array>
#include <filesystem>

#include "intaglio/plan/engrave.hpp"
#include "intaglio/runtime/basic_session.hpp"

namespace intaglio {

/// A model ready to run.
/// @tparam Profiles what the program carries plans for; by default CPU drivers and any GPU. One is picked by device.
template <class Model, const plan::profile&... Profiles>
class session : public basic_session {
 public:
  /// Opens a GGUF file (or the first part of a split one) or a Hugging Face folder and loads it.
  /// @error mismatch_error, file_error; device_error, out_of_memory, device_lost
  session(const gpu::device& on, const std::filesystem::path& path, const session_options& options = {})
      : session(on, gpu::translated([&] { return io::checkpoint::open(path, options.checkpoint); }), options) {}
  session(const gpu::device& on, const io::checkpoint& from, const session_options& options = {})
      : basic_session(on, tables, from, options, &runtime::modules_of<plan::kernels_used(tables)>) {}

 private:
  static constexpr std::size_t count = sizeof...(Profiles) == 0 ? 2 : sizeof...(Profiles);
  static constexpr std::array<const plan::table*, count> list() {
    if constexpr (sizeof...(Profiles) == 0)
      return {&plan::engraved<Model, plan::profiles::cpu>::table,
              &plan::engraved<Model, plan::profiles::portable>::table};
    else return {&plan::engraved<Model, Profiles>::table...};
  }
  static constexpr std::array<const plan::table*, count> tables = list();
};

}  // namespace intaglio
