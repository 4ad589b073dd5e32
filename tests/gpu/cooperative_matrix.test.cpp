// SPDX-License-Identifier: MIT
#include <intaglio/gpu/cooperative_matrix.hpp>

#include <catch2/catch_test_macros.hpp>

#include "gpu/checked_device.hpp"

using namespace intaglio;

namespace {

gpu::matrix_shape int8_shape() {
  using enum gpu::matrix_element;
  return {
      .m = 16, .n = 16, .k = 32, .a = s8, .b = s8, .c = s32, .result = s32, .scope = gpu::matrix_shape::subgroup_scope};
}

}  // namespace

TEST_CASE("the structs are as Vulkan has them") {
  CHECK(sizeof(gpu::matrix_shape) == 56);
  CHECK(offsetof(gpu::matrix_shape, m) == 16);
  CHECK(offsetof(gpu::matrix_shape, a) == 28);
  CHECK(offsetof(gpu::matrix_shape, scope) == 48);
  CHECK(offsetof(gpu::cooperative_matrix_features, cooperativeMatrix) == 16);
}

TEST_CASE("a shape reads as a product") {
  CHECK(int8_shape().text() == "16x16x32 s8 s8 s32");
  CHECK(gpu::name(static_cast<gpu::matrix_element>(1000141000)) == "other");
}

TEST_CASE("int8 products want their very shape, for a subgroup, without saturation") {
  CHECK_FALSE(gpu::multiplies_int8({}));
  CHECK(gpu::multiplies_int8({{}, int8_shape()}));
  const auto without = [](auto change) {
    gpu::matrix_shape shape = int8_shape();
    change(shape);
    return !gpu::multiplies_int8({shape});
  };
  CHECK(without([](gpu::matrix_shape& s) { s.n = 8; }));
  gpu::matrix_shape narrow = int8_shape();
  narrow.n = 8;
  CHECK(gpu::multiplies_int8({narrow}, 8));
  CHECK_FALSE(gpu::multiplies_int8({int8_shape()}, 8));
  CHECK(without([](gpu::matrix_shape& s) { s.b = gpu::matrix_element::u8; }));
  CHECK(without([](gpu::matrix_shape& s) { s.result = gpu::matrix_element::f32; }));
  CHECK(without([](gpu::matrix_shape& s) { s.saturates = VK_TRUE; }));
  CHECK(without([](gpu::matrix_shape& s) { s.scope = 2; }));
}

TEST_CASE("products of f16 want sums in f32") {
  using enum gpu::matrix_element;
  const gpu::matrix_shape shape{.m = 16,
                                .n = 16,
                                .k = 16,
                                .a = f16,
                                .b = f16,
                                .c = f32,
                                .result = f32,
                                .scope = gpu::matrix_shape::subgroup_scope};
  CHECK(gpu::multiplies_f16({int8_shape(), shape}));
  CHECK_FALSE(gpu::multiplies_f16({int8_shape()}));
  CHECK_FALSE(gpu::multiplies_f16({shape}, 8));
  gpu::matrix_shape other = shape;
  other.c = other.result = f16;
  CHECK_FALSE(gpu::multiplies_f16({other}));
  other = shape;
  other.k = 8;
  CHECK_FALSE(gpu::multiplies_f16({other}));
}

TEST_CASE("a device lists shapes exactly where it has the feature") {
  const checked_device on;
  CHECK(on.device.description().matrix_shapes.empty() !=
        gpu::contains(on.device.description().features, gpu::feature::cooperative_matrix));
}
