// SPDX-License-Identifier: MIT
// What workgroups of all layers in one dispatch exchange in a layer of a batch's pass: places behind each other,
// in the order in which the shader has them.
#pragma once

#include "intaglio/core/compiler.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string_view>

namespace intaglio::kernels {

/// Steps of a layer in their order; before: in the layer before, or where the pass begins.
enum class layer_step : std::uint8_t { before, qkv, attention, projection, gate_up, down };

/// Bytes that one step writes before a step waits for them: a later one, or itself where workgroups share its sums.
struct exchange_place {
  std::string_view name;  ///< as in the shader
  std::uint64_t bytes = 0;
  layer_step written = layer_step::before, read = layer_step::before;
};

class exchange_places {
 public:
  constexpr exchange_places() = default;
  constexpr exchange_places(std::initializer_list<exchange_place> list) : count_(list.size()) {
    std::copy(list.begin(), list.end(), items_.begin());
  }
  constexpr void add(const exchange_place& place) { items_[count_++] = place; }
  constexpr std::span<const exchange_place> all() const { return std::span(items_).first(count_); }
  /// Bytes of one layer's exchange.
  constexpr std::uint64_t bytes() const {
    std::uint64_t out = 0;
    for (const exchange_place& each : all()) out += each.bytes;
    return out;
  }

 private:
  std::array<exchange_place, 20> items_{};
  std::size_t count_ = 0;
};

}  // namespace intaglio::kernels
