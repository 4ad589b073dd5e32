// SPDX-License-Identifier: MIT
#include "intaglio/plan/resident.hpp"

#include <catch2/catch_test_macros.hpp>

#include "intaglio/models/bitnet_b158.hpp"

using namespace intaglio;

namespace {
constexpr kernels::element f16 = kernels::element::f16, f32 = kernels::element::f32;
constexpr decoder_config two_b = models::bitnet_2b_4t::config;

constexpr bool fits(decoder_config c, std::uint32_t workgroups = 132, std::uint32_t context = 4096) {
  return plan::resident_fits(c, f16, workgroups, context);
}
template <class Change>
constexpr bool fits_with(Change change) {
  decoder_config c = two_b;
  change(c);
  return fits(c);
}

// The widest product of 2B fills every subgroup of 132 workgroups, so slightly fewer workgroups are not enough.
constexpr auto gated = plan::resident_share_of(two_b.hidden_size, 2 * two_b.intermediate_size, 132);
static_assert(gated.groups == 27 && gated.slices == 1 && gated.part == 160);
constexpr auto down = plan::resident_share_of(two_b.intermediate_size, two_b.hidden_size, 132);
static_assert(down.groups == 5 && down.slices == 6 && down.part == 72);
}  // namespace

TEST_CASE("shapes that workgroups which wait for each other can do", "[plan][resident]") {
  CHECK(fits(two_b));
  CHECK(fits(models::fable::config, 132, 512));
  CHECK(fits(two_b, 144));
  CHECK_FALSE(fits(two_b, 100));  // more groups of rows than subgroups
  CHECK_FALSE(fits(two_b, two_b.num_attention_heads));
  CHECK_FALSE(plan::resident_fits(two_b, f32, 132, 4096));
  CHECK_FALSE(fits_with([](decoder_config& c) { c.head_dim = 256, c.num_attention_heads = 10; }));
  CHECK_FALSE(
      fits_with([](decoder_config& c) { c.head_dim = 80, c.num_attention_heads = 32, c.num_key_value_heads = 8; }));
  CHECK_FALSE(fits_with([](decoder_config& c) { c.hidden_size = 4112; }));
  CHECK_FALSE(fits_with([](decoder_config& c) { c.intermediate_size = 8208; }));
  CHECK_FALSE(
      fits_with([](decoder_config& c) { c.num_hidden_layers = 120; }));  // their addresses leave the shared memory
}

TEST_CASE("shapes with a form for long contexts", "[plan][resident]") {
  const auto fits_long = [](decoder_config c, std::uint32_t workgroups, std::uint32_t context) {
    return plan::resident_long_fits(c, workgroups, context);
  };
  CHECK(plan::resident_long_from(two_b, 132) == 1600);
  CHECK(fits_long(two_b, 132, 4096));
  CHECK(fits_long(two_b, 132, 17 * 256));
  CHECK_FALSE(fits_long(two_b, 132, 17 * 256 + 1));  // 90 spans of three heads, 45 pairs of them of the fourth
  CHECK_FALSE(fits_long(two_b, 132, 1600));
  decoder_config c = two_b;
  c.num_key_value_heads = 4;  // five heads share keys and values
  CHECK_FALSE(fits_long(c, 132, 4096));
  c = two_b;
  c.num_hidden_layers = 60;
  CHECK(fits(c));
  CHECK_FALSE(fits_long(c, 132, 4096));  // their addresses and the sums of two heads leave the shared memory
}

TEST_CASE("every tile of a product is in one slice", "[plan][resident]") {
  for (std::uint32_t columns = 16; columns <= 8192; columns += 16)
    for (const std::uint32_t rows : {4u, 512u, 2560u, 3840u, 13824u}) {
      const auto share = plan::resident_share_of(columns, rows, 132);
      CAPTURE(columns, rows);
      REQUIRE(share.slices >= 1);
      REQUIRE(share.groups * share.slices <= kernels::layers::resident_subgroups);
      REQUIRE(share.slices * share.part >= columns / 16);
      REQUIRE((share.slices - 1) * share.part < columns / 16);  // none is empty
    }
}

TEST_CASE("the modules of 2B find room in the shared memory of a workgroup", "[plan][resident]") {
  const auto bytes = [](std::string_view module) {
    return kernels::shared_memory_bytes(module,
                                        {kernels::given<&kernels::layers_kernel::constants::workgroup_size>(1024),
                                         kernels::given<&kernels::layers_kernel::constants::hidden_size>(2560),
                                         kernels::given<&kernels::layers_kernel::constants::intermediate_size>(6912),
                                         kernels::given<&kernels::layers_kernel::constants::layers>(30),
                                         kernels::given<&kernels::layers_kernel::constants::head_dim>(128),
                                         kernels::given<&kernels::layers_kernel::constants::heads>(20),
                                         kernels::given<&kernels::layers_kernel::constants::ffns_before>(0),
                                         kernels::given<&kernels::layers_kernel::constants::ffns_after>(1)});
  };
  // Input and what is read after it, sums, largest, tasks, addresses and scales of 30 layers, rotations, attention's
  // sums, the fresh query, key and value, the residual.
  const auto declared = [](std::uint64_t input, std::uint64_t attention) {
    return input + 128 * 4 + 32 * 4 + 32 * 4 + 16 * 16 + 5 * 24 + 4 * 32 * 8 + 30 * (21 * 8 + 12 * 4) + 64 * 8 +
           attention + 64 * 8 + 64 * 16 + 4 + 12 + 4;
  };
  const auto is_about = [](std::uint64_t found, std::uint64_t sum) { return found >= sum && found <= sum + 64; };
  CHECK(is_about(bytes("layers"), declared(6912 + 48 * 16, 2 * 32 * 4 + 32 * 32 * 16 + 32 * 16)));
  // Sums of values of an octet of two heads are where a product's input is; four queries, maxima, totals and factors.
  CHECK(is_about(bytes("layers_long"), declared(64 * 32 * 16, 4 * 32 * 16 + 3 * 32 * 16)));
}
TEST_CASE("a module finds no room where a constant that its memory depends on is missing", "[plan][resident]") {
  CHECK(kernels::shared_memory_bytes("norm_quantize",
                                     {kernels::given<&kernels::norm_quantize_kernel::constants::workgroup_size>(32),
                                      kernels::given<&kernels::norm_quantize_kernel::constants::width>(1024)}) < 1024);
  CHECK(kernels::shared_memory_bytes("norm_quantize",
                                     {kernels::given<&kernels::norm_quantize_kernel::constants::workgroup_size>(32)}) ==
        ~std::uint64_t{0});
  CHECK(kernels::shared_memory_bytes("no such module", {}) == ~std::uint64_t{0});
}
