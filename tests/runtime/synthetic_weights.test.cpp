// SPDX-License-Identifier: MIT
// Made-up weights on the CPU reference: they stay finite, and as many gates are zero as was asked for.
#include "intaglio/runtime/synthetic_weights.hpp"

#include <catch2/catch_test_macros.hpp>
#include <cmath>

#include "gpu/checked_device.hpp"
#include "intaglio/reference/machine.hpp"
#include "runtime/tables.hpp"

using namespace intaglio;

namespace {

/// All weights in host memory: each slot's pattern, repeated, the same in all layers.
std::vector<std::vector<std::byte>> weights_of(const plan::table& of, const runtime::synthetic_options& options) {
  std::vector<std::vector<std::byte>> out;
  std::uint64_t random = options.seed * 2 + 1;
  for (const plan::weight& w : of.weights) {
    const auto pattern = runtime::synthetic_pattern(w, options, random);
    auto& bytes = out.emplace_back(w.bytes);
    for (std::size_t at = 0; at < bytes.size(); at += 4 * pattern.size())
      std::memcpy(bytes.data() + at, pattern.data(), std::min(bytes.size() - at, 4 * pattern.size()));
  }
  return out;
}

/// Share of zeros among the gated values of all layers, for some tokens.
double zeros_of(const runtime::synthetic_options& options, const plan::table& table = fable_table()) {
  const auto weights = weights_of(table, options);
  reference::machine run(table,
                         [&](std::uint32_t slot, std::uint32_t) { return std::span<const std::byte>(weights[slot]); });
  std::size_t zeros = 0, all = 0;
  for (std::uint32_t position = 0; position < 3; ++position) {
    const std::uint32_t token = 7 + 100 * position;
    run.feed(position, {&token, 1});
    run.run(table.decode, [&](const plan::dispatch& d, std::uint32_t) {
      const auto& face = kernels::interface_of(d.kernel);
      if (d.kernel != kernels::kernel::walk_gate_up &&
          (d.kernel != kernels::kernel::ternary_matmul || d.specialization[face.specialization_index("epilogue")] !=
                                                              static_cast<std::uint32_t>(kernels::epilogue::gated)))
        return;
      for (const float each : run.floats(d.push[face.push_index("output")].offset, table.config->intermediate_size)) {
        REQUIRE(std::isfinite(each));
        zeros += each == 0;
        ++all;
      }
    });
  }
  REQUIRE(all == 3u * table.config->num_hidden_layers * table.config->intermediate_size);
  return static_cast<double>(zeros) / static_cast<double>(all);
}

}  // namespace

TEST_CASE("the share of zero gates is what was asked for") {
  const double natural = zeros_of({});
  CHECK((natural > 0.4 && natural < 0.6));
  for (const double wanted : {0.0, 0.3, 0.7, 0.95, 1.0}) {
    const double found = zeros_of({.relu_zeros = wanted});
    CAPTURE(wanted, found);
    CHECK(std::abs(found - wanted) < 0.03);
  }
  CHECK(std::abs(zeros_of({.relu_zeros = 0.7}, fable_walk_table()) - 0.7) < 0.03);
}

TEST_CASE("a share that is none is refused") {
  const checked_device on;
  for (const double wrong : {-0.1, 1.5, std::nan("")})
    CHECK_THROWS_AS(runtime::synthetic_weights(on.device, fable_table(), {.relu_zeros = wrong}), argument_error);
}
