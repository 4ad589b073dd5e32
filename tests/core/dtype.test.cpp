// SPDX-License-Identifier: MIT
#include "intaglio/core/dtype.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace intaglio;

namespace {
constexpr bool table_in_order() {
  for (const auto& row : dtype_table)
    if (&info(row.type) != &row || dtype_from_name(row.name) != row.type) return false;
  return true;
}
static_assert(table_in_order());
// ggml's ids and blocks, as its headers state them.
static_assert(dtype_from_ggml(0) == dtype::f32 && dtype_from_ggml(1) == dtype::f16 &&
              dtype_from_ggml(30) == dtype::bf16);
static_assert(dtype_from_ggml(34) == dtype::tq1_0 && dtype_from_ggml(35) == dtype::tq2_0 &&
              dtype_from_ggml(36) == dtype::i2_s);
static_assert(!dtype_from_ggml(4) && !dtype_from_ggml(31) && !dtype_from_ggml(99) && !dtype_from_ggml(0xFFFFFFFFu));
static_assert(info(dtype::q4_k).block_elements == 256 && info(dtype::q4_k).block_bytes == 144 &&
              info(dtype::q8_0).block_bytes == 34);
// What this library gave an id itself spells its name in the file.
static_assert(dtype_from_ggml('B' | 'C' << 8 | 'M' << 16 | '1' << 24) == dtype::bcml1 &&
              info(dtype::bcml1).block_bytes == 20);
static_assert(!dtype_from_name("q9_9") && !dtype_from_name(""));
}  // namespace

TEST_CASE("no two types share a name or a ggml id", "[core][dtype]") {
  for (const auto& a : dtype_table)
    for (const auto& b : dtype_table) {
      if (a.type == b.type) continue;
      CHECK(a.name != b.name);
      CHECK((a.ggml_type < 0 || a.ggml_type != b.ggml_type));
    }
}
