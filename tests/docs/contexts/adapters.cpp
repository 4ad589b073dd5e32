// SPDX-License-Identifier: MIT
// The code around a snippet that plans a model with adapters.
#include <intaglio/families/adapter_room.hpp>
#include <intaglio/families/file_types.hpp>
#include <intaglio/families/planned_family.hpp>
#include <intaglio/io/checkpoint.hpp>

using namespace intaglio;

void shown(const plan::profile& profile, std::uint32_t context, const plan::batch_shape& shape) {
  // the block
}
