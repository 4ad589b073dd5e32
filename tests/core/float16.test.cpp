// SPDX-License-Identifier: MIT
#include "intaglio/core/float16.hpp"

#include <catch2/catch_test_macros.hpp>
#include <cmath>

using namespace intaglio;

namespace {
static_assert(f32_from_f16(0x3C00) == 1.f && f32_from_f16(0xC000) == -2.f && f32_from_f16(0x7BFF) == 65504.f &&
              f32_from_f16(0x0001) == 0x1p-24f);
static_assert(f16_from_f32(65504.f) == 0x7BFF && f16_from_f32(65519.99f) == 0x7BFF && f16_from_f32(65520.f) == 0x7C00);
static_assert(f16_from_f32(0x1p-25f) == 0x0000 && f16_from_f32(0x1.000002p-25f) == 0x0001 &&
              f16_from_f32(-0.f) == 0x8000);
static_assert(f16_from_f32(1.f + 0x1p-11f) == 0x3C00 && f16_from_f32(1.f + 0x3p-11f) == 0x3C02, "ties go to even");
static_assert(bf16_from_f32(1.f) == 0x3F80 && f32_from_bf16(0xBF80) == -1.f);
static_assert(bf16_from_f32(1.f + 0x1p-8f) == 0x3F80 && bf16_from_f32(1.f + 0x3p-8f) == 0x3F82);
}  // namespace

TEST_CASE("every half survives the way through f32", "[core][float16]") {
  for (std::uint32_t bits = 0; bits < 65536; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    const float wide = f32_from_f16(half), brain = f32_from_bf16(half);
    if (std::isnan(wide)) CHECK(std::isnan(f32_from_f16(f16_from_f32(wide))));
    else CHECK(f16_from_f32(wide) == half);
    if (std::isnan(brain)) CHECK(std::isnan(f32_from_bf16(bf16_from_f32(brain))));
    else CHECK(bf16_from_f32(brain) == half);
  }
}

TEST_CASE("rounding to a half picks the nearest", "[core][float16]") {
  for (std::uint32_t bits = 0; bits < 0x7BFF; ++bits) {
    const float low = f32_from_f16(static_cast<std::uint16_t>(bits)),
                high = f32_from_f16(static_cast<std::uint16_t>(bits + 1)), middle = (low + high) / 2;
    CHECK(f16_from_f32(std::nextafter(middle, low)) == bits);
    CHECK(f16_from_f32(std::nextafter(middle, high)) == bits + 1);
    CHECK(f16_from_f32(middle) == (bits % 2 == 0 ? bits : bits + 1));
  }
}
