// SPDX-License-Identifier: MIT
// Sessions of an engraved model over several devices: cut_session and cut_batch with the plans that session<Model> and
// batch_session<Model, Shape> have on one device.
#pragma once

#include "intaglio/core/compiler.hpp"

#include <span>

#include "intaglio/runtime/cut_batch.hpp"
#include "intaglio/runtime/cut_session.hpp"
#include "intaglio/runtime/engraved_batch_session.hpp"
#include "intaglio/runtime/engraved_session.hpp"

namespace intaglio {

/// A session<Model, Profiles...> over several devices, given in the order of the stages. @error as the other
/// cut_session
template <class Model, const plan::profile&... Profiles>
basic_session cut_session(std::span<const gpu::device> on, const io::checkpoint& from,
                          const session_options& options = {}, const cut_options& wish = {}) {
  return cut_session(on, runtime::engraved_tables<Model, Profiles...>, from, options, wish,
                     &runtime::modules_of<runtime::engraved_variants<Model, Profiles...>>);
}

/// A batch_session<Model, Shape, Profiles...> over several devices. The shape has to name the pages of all groups of
/// slots. @error as the other cut_batch
template <class Model, plan::batch_shape Shape, const plan::profile&... Profiles>
basic_batch cut_batch(std::span<const gpu::device> on, const io::checkpoint& from, const session_options& options = {},
                      const cut_options& wish = {}) {
  return cut_batch(on, runtime::engraved_batch_tables<Model, Shape, Profiles...>, from, options, wish,
                   &runtime::modules_of<runtime::engraved_batch_variants<Model, Shape, Profiles...>>);
}

}  // namespace intaglio
