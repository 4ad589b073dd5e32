// SPDX-License-Identifier: MIT
#include "intaglio/models/bitnet_b158.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace intaglio;

namespace {
constexpr auto parameters = [](const auto& model) {
  ir::trace t;
  model.forward(t);
  std::uint64_t ternary = 0, all = 0;
  for (const auto& w : t.graph().weights) {
    const std::uint64_t n = std::uint64_t{w.rows} * w.columns * (w.where == ir::section::period ? t.graph().layers : 1);
    all += n;
    if (w.type == dtype::i2_s) ternary += n;
  }
  return std::pair{all, ternary};
};
// As published: 2,412,820,480 parameters; fable has 8,927,488 of which 7,864,320 are ternary.
static_assert(parameters(models::bitnet_2b_4t::graph()).first == 2'412'820'480);
static_assert(parameters(models::fable::graph()) == std::pair<std::uint64_t, std::uint64_t>{8'927'488, 7'864'320});
}  // namespace

TEST_CASE("BitNet's block is 22 ops over 11 tensors", "[models]") {
  ir::trace t;
  models::bitnet_2b_4t::graph().forward(t);
  CHECK_FALSE(t.failed());
  std::size_t ops = 0, tensors = 0;
  for (const auto& o : t.graph().ops) ops += o.where == ir::section::period;
  for (const auto& w : t.graph().weights) tensors += w.where == ir::section::period;
  CHECK(ops == 22);
  CHECK(tensors == 11);
  CHECK(t.width(t.graph().output) == 128'256);
}
