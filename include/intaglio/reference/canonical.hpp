// SPDX-License-Identifier: MIT
// The order of floating-point operations that every kernel keeps (docs/kernels.md), in plain C++: 32 virtual lanes and
// a butterfly. Every product that is added to a sum goes through `product`, so no compiler fuses the two into one
// rounding, whatever its flags.
#pragma once

#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "intaglio/core/float16.hpp"
#include "intaglio/kernels/arithmetic.hpp"
#include "intaglio/kernels/catalogue.hpp"

namespace intaglio::reference {

/// Number of partial sums of a product in the order of sums that all devices have.
inline constexpr std::size_t virtual_lanes = 32;

using kernels::arithmetic::product;

/// The sum over the lanes: lane v with v ^ 16, then 8, 4, 2, 1, always lower + higher.
inline float butterfly(std::array<float, virtual_lanes> lanes) {
  for (std::size_t step = virtual_lanes / 2; step != 0; step /= 2)
    for (std::size_t v = 0; v < step; ++v) lanes[v] += lanes[v + step];
  return lanes[0];
}

/// The sum of a[i] * b[i] as the head computes it. Virtual lane v takes 8 neighbours of every 256 into 8 accumulators,
/// and each product is rounded before it is added. The accumulators are then summed pairwise.
inline float dot(std::span<const float> a, std::span<const float> b) {
  constexpr std::size_t per_lane = 8;
  std::array<std::array<float, per_lane>, virtual_lanes> sums{};
  for (std::size_t i = 0; i < a.size(); ++i) {
    float& sum = sums[i / per_lane % virtual_lanes][i % per_lane];
    sum += product(a[i], b[i]);
  }
  std::array<float, virtual_lanes> lanes{};
  for (std::size_t v = 0; v < virtual_lanes; ++v) {
    auto& s = sums[v];
    for (std::size_t width = per_lane; width > 1; width /= 2)
      for (std::size_t j = 0; j < width / 2; ++j) s[j] = s[2 * j] + s[2 * j + 1];
    lanes[v] = s[0];
  }
  return butterfly(lanes);
}

/// The inverse of the root mean square of x, [width]. Quads sum the squares of blocks of 128; lane v then sums blocks
/// v, v + 32, ...; each sum ends with a butterfly.
inline float inverse_rms(std::span<const float> x, float eps) {
  constexpr std::size_t block = 4 * virtual_lanes;
  const auto square = [&](std::size_t i) { return i < x.size() ? product(x[i], x[i]) : 0.0f; };
  std::array<float, virtual_lanes> sums{};
  for (std::size_t b = 0; b * block < x.size(); ++b) {
    std::array<float, virtual_lanes> quads{};
    for (std::size_t v = 0; v < virtual_lanes; ++v) {
      const std::size_t i = b * block + 4 * v;
      quads[v] = (square(i) + square(i + 1)) + (square(i + 2) + square(i + 3));
    }
    sums[b % virtual_lanes] += butterfly(quads);
  }
  const float mean = butterfly(sums) / static_cast<float>(x.size()) + eps;
  return std::isfinite(mean) ? 1.0f / std::sqrt(mean) : std::numeric_limits<float>::quiet_NaN();
}

/// Computes y = rms_norm(x) * w, all [width]. The weight comes first, so that the largest |y| is the largest |x * w|
/// times the factor, exactly.
inline void rms_norm(std::span<const float> x, std::span<const float> weight, float eps, std::span<float> y) {
  const float r = inverse_rms(x, eps);
  for (std::size_t i = 0; i < x.size(); ++i) y[i] = product(product(x[i], weight[i]), r);
}

/// The mean of x, [width]: each of 32 sums takes quads v, v + 32, ... in order; these sums are then added in order.
inline float mean(std::span<const float> x) {
  std::array<float, virtual_lanes> sums{};
  for (std::size_t quad = 0; quad < x.size() / 4; ++quad)
    sums[quad % virtual_lanes] += (x[4 * quad] + x[4 * quad + 1]) + (x[4 * quad + 2] + x[4 * quad + 3]);
  float all = 0;
  for (const float sum : sums) all += sum;
  return all / static_cast<float>(x.size());
}

/// Computes y = (x - mean) / sqrt(variance + eps) * w + b, all [width], width a multiple of 4; y may be x, and b empty.
inline void layer_norm(std::span<const float> x, std::span<const float> weight, std::span<const float> bias, float eps,
                       std::span<float> y) {
  const float center = mean(x);
  std::vector<float> centered(x.begin(), x.end());
  for (float& value : centered) value -= center;
  rms_norm(centered, weight, eps, y);
  for (std::size_t i = 0; i < bias.size(); ++i) y[i] += bias[i];
}

/// Elements of caches and dense weights, read and written as the kernels do. `bytes` holds them in little-endian order
/// without gaps.
class elements {
 public:
  elements(std::span<std::byte> bytes, kernels::element type) : bytes_(bytes), type_(type) {}

  static constexpr std::size_t size_bytes(kernels::element type) { return type == kernels::element::f32 ? 4 : 2; }
  std::size_t size() const { return bytes_.size() / size_bytes(type_); }

  float operator[](std::size_t index) const { return read(bytes_, type_, index); }
  static float read(std::span<const std::byte> bytes, kernels::element type, std::size_t index) {
    if (type == kernels::element::f32) return std::bit_cast<float>(word(bytes, index * 4, 4));
    const auto half = static_cast<std::uint16_t>(word(bytes, index * 2, 2));
    return type == kernels::element::f16 ? f32_from_f16(half) : f32_from_bf16(half);
  }
  void store(std::size_t index, float value) {
    const std::size_t count = size_bytes(type_);
    const std::uint32_t bits = type_ == kernels::element::f32   ? std::bit_cast<std::uint32_t>(value)
                               : type_ == kernels::element::f16 ? f16_from_f32(value)
                                                                : bf16_from_f32(value);
    for (std::size_t b = 0; b < count; ++b) bytes_[index * count + b] = static_cast<std::byte>(bits >> (8 * b));
  }

 private:
  static std::uint32_t word(std::span<const std::byte> bytes, std::size_t at, std::size_t count) {
    std::uint32_t out = 0;
    for (std::size_t b = 0; b < count; ++b) out |= static_cast<std::uint32_t>(bytes[at + b]) << (8 * b);
    return out;
  }
  std::span<std::byte> bytes_;
  kernels::element type_;
};

}  // namespace intaglio::reference
