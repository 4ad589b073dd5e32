// SPDX-License-Identifier: MIT
// The server's only unit that knows model types.
#include "engraved_batches.hpp"

#include INTAGLIO_ENGRAVED_HEADER

#include <intaglio/plan/engrave_batch.hpp>

#include <vector>

#include "batch_shape.hpp"

namespace intaglio::serve {
namespace {

template <class Model, const plan::profile& Profile, auto Shape>
constexpr const plan::table& batch_of =
    plan::engraved_batch<Model, Profile,
                         Shape(Model::config, Profile, Model::config.max_position_embeddings, 0)>::table;

template <auto Shape>
std::span<const tool::engraved_model> batches_by() {
  static const std::vector<tool::engraved_model> list = std::apply(
      []<class... Model>(const tool::named_model<Model>&... entries) {
        return std::vector<tool::engraved_model>{{entries.name, batch_of<Model, plan::profiles::cpu, Shape>,
                                                  batch_of<Model, plan::profiles::portable, Shape>}...};
      },
      ::engraved_models);
  return list;
}

}  // namespace

std::span<const tool::engraved_model> engraved_batches(bool fast) {
  return fast ? batches_by<fast_batch_shape_of>() : batches_by<batch_shape_of>();
}

}  // namespace intaglio::serve
