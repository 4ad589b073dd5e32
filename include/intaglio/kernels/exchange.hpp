// SPDX-License-Identifier: MIT
// The exchange between workgroups of a resident batch dispatch in one layer: values stored one after the other, in the
// order of the shader.
#pragma once

#include "intaglio/core/compiler.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string_view>

#include "intaglio/core/array_view.hpp"

namespace intaglio::kernels {

/// The steps of a layer in order. before: a step of the previous layer, or the beginning of the pass.
enum class layer_step : std::uint8_t { before, qkv, attention, projection, gate_up, down };

/// One value of the exchange: bytes that one step writes before a step waits for them. That is a later step, or the
/// same one where workgroups share its sums.
struct exchange_range {
  std::string_view name;  ///< as in the shader
  std::uint64_t bytes = 0;
  layer_step written = layer_step::before, read = layer_step::before;
};

/// The values that workgroups exchange in one layer, in the order of their offsets.
class exchange_ranges {
 public:
  constexpr exchange_ranges() = default;
  constexpr exchange_ranges(std::initializer_list<exchange_range> list) : count_(list.size()) {
    std::copy(list.begin(), list.end(), items_.begin());
  }
  constexpr void add(const exchange_range& range) { items_[count_++] = range; }
  constexpr array_view<const exchange_range> all() const { return std::span(items_).first(count_); }
  /// Bytes of one layer's exchange.
  constexpr std::uint64_t bytes() const {
    std::uint64_t out = 0;
    for (const exchange_range& each : all()) out += each.bytes;
    return out;
  }

 private:
  std::array<exchange_range, 20> items_{};
  std::size_t count_ = 0;
};

}  // namespace intaglio::kernels
