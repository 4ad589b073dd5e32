// SPDX-License-Identifier: MIT
#include "intaglio/runtime/executor.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "gpu/checked_device.hpp"
#include "intaglio/runtime/load_session.hpp"
#include "intaglio/runtime/synthetic_weights.hpp"
#include "runtime/tables.hpp"

using namespace intaglio;
using Catch::Matchers::ContainsSubstring;

TEST_CASE("executor: a pass of more tokens than it has room for is refused before anything is written") {
  checked_device on;
  const plan::table& table = fable_table();
  runtime::executor run(on.device, table, runtime::synthetic_weights(on.device, table),
                        runtime::usable_classes(on.device).front(), nullptr);
  const std::vector<std::uint32_t> tokens(table.prefill.max_tokens + 1, 7);
  CHECK_THROWS_WITH(run.begin(runtime::pass_kind::prefill, 0, tokens, {}, 1),
                    ContainsSubstring("tokens of a pass") &&
                        ContainsSubstring("at most " + std::to_string(tokens.size() - 1)) &&
                        ContainsSubstring(std::to_string(tokens.size())));
  CHECK_THROWS_AS(run.begin(runtime::pass_kind::decode, 0, std::span(tokens).first(2), {}, 1), argument_error);
  CHECK_FALSE(run.pending());
  CHECK(run.counters().jobs == 0);
  run.begin(runtime::pass_kind::prefill, 0, std::span(tokens).first(table.prefill.max_tokens), {}, 1);
  CHECK(run.pending());
  run.drain();
}
