// SPDX-License-Identifier: MIT
// Parameters of a model, counted in what it traces; 0 where it does not fit together.
#pragma once

#include <cstdint>

#include "intaglio/ir/trace.hpp"

template <class Model>
constexpr std::uint64_t traced_parameters() {
  intaglio::ir::trace t;
  Model::graph().forward(t);
  std::uint64_t out = 0;
  for (const auto& w : t.graph().weights)
    out += std::uint64_t{w.rows} * w.columns * (w.where == intaglio::ir::section::period ? t.graph().layers : 1);
  return t.failed() ? 0 : out;
}
