// SPDX-License-Identifier: MIT
#include "intaglio/runtime/choose_table.hpp"

#include <catch2/catch_test_macros.hpp>

#include "intaglio/models/bitnet_b158.hpp"
#include "intaglio/plan/planned.hpp"

using namespace intaglio;

TEST_CASE("a device gets the plan of the strongest class that it meets, else one that can be proven for it") {
  const plan::planned narrow = plan::planned::of<models::fable>(plan::profiles::cpu),
                      portable = plan::planned::of<models::fable>(plan::profiles::portable);
  const plan::table* tables[] = {&narrow.table(), &portable.table()};
  const auto chosen = [&](const plan::device_class& of) {
    return &runtime::choose_table(tables, of) == &portable.table() ? "portable" : "narrow";
  };
  CHECK(chosen(plan::classes::h100) == std::string_view("portable"));
  CHECK(chosen(plan::classes::llvmpipe) == std::string_view("narrow"));
  for (const plan::device_class* none : {&plan::classes::mali, &plan::classes::v3d, &plan::classes::least}) {
    CHECK_FALSE(none->meets(plan::classes::baseline));
    CHECK(chosen(*none) == std::string_view(none == &plan::classes::mali ? "portable" : "narrow"));
  }
  plan::device_class little = plan::classes::cpu;  // meets no class
  little.shared_memory_bytes = 16384;
  CHECK(chosen(little) == std::string_view("narrow"));
  plan::device_class nothing = plan::classes::least;  // for which nothing can be proven
  nothing.shared_memory_bytes = 1024;
  CHECK(chosen(nothing) == std::string_view("narrow"));
}
