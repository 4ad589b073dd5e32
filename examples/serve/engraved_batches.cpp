// SPDX-License-Identifier: MIT
// The server's only unit that knows model types.
#include "engraved_batches.hpp"

#include INTAGLIO_ENGRAVED_HEADER

#include <intaglio/plan/engrave_batch.hpp>

#include <vector>

#include "batch_shape.hpp"

namespace intaglio::serve {
namespace {

template <class Model, const plan::profile& Profile>
constexpr const plan::table& batch_of = plan::engraved_batch<Model, Profile, batch_shape_of(Model::config, Profile, Model::config.max_position_embeddings)>::table;

template <class Model>
tool::engraved_model tables_of(const tool::named_model<Model>& entry) {
  return {entry.name, batch_of<Model, plan::profiles::cpu>, batch_of<Model, plan::profiles::portable>};
}

}  // namespace

std::span<const tool::engraved_model> engraved_batches() {
  static const std::vector<tool::engraved_model> list =
      std::apply([](const auto&... entries) { return std::vector<tool::engraved_model>{tables_of(entries)...}; }, ::engraved_models);
  return list;
}

}  // namespace intaglio::serve
