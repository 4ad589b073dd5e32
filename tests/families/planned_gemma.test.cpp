// SPDX-License-Identifier: MIT
#include <catch2/catch_test_macros.hpp>

#include "intaglio/families/planned_family.hpp"
#include "intaglio/families/published_models.hpp"

using namespace intaglio;
using families::planned_of;

TEST_CASE("a Gemma 3n has one stream's caches, and as many streams as its config says in its arena", "[families]") {
  const plan::planned made = planned_of(models::gemma3n_e4b_config, {dtype::q8_0, dtype::q8_0, dtype::q8_0}, "gemma3n",
                                        plan::profiles::portable, 4096);
  const plan::table& table = made.table();
  CHECK(plan::verify(table).empty());
  for (std::uint32_t layer = 0; layer < 35; ++layer) {
    const bool global = layer % 5 == 4;
    CHECK(table.cache_owner(layer) == (layer < 20 ? layer : global ? 19 : 18));
    CHECK(table.cache_of(layer).shared == (layer >= 20));
  }
  // Each of the first ten layers cuts its gates off.
  // A laurel's rank of 64 is no whole block of Q4_K.
  const plan::planned coded = planned_of(models::gemma3n_e2b_config, {dtype::q4_k, dtype::q4_k, dtype::q4_k}, "gemma3n",
                                         plan::profiles::portable, 4096);
  CHECK(plan::verify(coded.table()).empty());
  std::size_t steps = 0, cuts = 0;
  for (const plan::dispatch& call : table.decode.period) {
    if (call.kernel != kernels::kernel::streams) continue;
    const auto k = kernels::constants_of<kernels::streams_kernel>(call.specialization);
    ++steps;
    cuts += k.step == static_cast<std::uint32_t>(ir::stream_step::shrink) ? 1 : 0;
    CHECK((k.streams == 4 || k.streams == 1));
  }
  CHECK((steps == 6 * 5 + 2 && cuts == 2));  // of six kinds of layers two are sparse
}
