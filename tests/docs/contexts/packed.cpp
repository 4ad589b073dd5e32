// SPDX-License-Identifier: MIT
// The code around a snippet that packs a model.
#include <intaglio/models/bitnet_b158.hpp>
#include <intaglio/plan/engrave.hpp>
#include <intaglio/runtime/pack.hpp>

#include <array>

using namespace intaglio;
using Model = models::fable;

void shown() {
  // the block
}
