// SPDX-License-Identifier: MIT
// The only unit that knows model types; everything after it works on tables.
#include "engraved_models.hpp"

#include INTAGLIO_ENGRAVED_HEADER

#include <intaglio/plan/engrave.hpp>
#include <intaglio/plan/profile.hpp>

#include <vector>

namespace intaglio::tool {
namespace {

template <class Model>
engraved_model tables_of(const named_model<Model>& entry) {
  return {entry.name, plan::engraved<Model, plan::profiles::cpu>::table,
          plan::engraved<Model, plan::profiles::portable>::table, [](const plan::profile& target, plan::ffn_form form) {
            return plan::planned::of<Model>(target, Model::config.max_position_embeddings, {}, form);
          }};
}

}  // namespace

std::span<const engraved_model> engraved_models() {
  static const std::vector<engraved_model> list = std::apply(
      [](const auto&... entries) { return std::vector<engraved_model>{tables_of(entries)...}; }, ::engraved_models);
  return list;
}

}  // namespace intaglio::tool
