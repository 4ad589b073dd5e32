// SPDX-License-Identifier: MIT
// The kind of block of each layer in a model whose layers differ: a list of kinds that repeats. The list is short where
// kinds alternate, and as long as the model where they follow no rule.
#pragma once

#include "intaglio/core/compiler.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace intaglio {

/// A repeating list: layer l is of kind blocks[l % period]. The last repetition may be incomplete.
struct layer_pattern {
  static constexpr std::uint32_t max_period = 256, max_kinds = 64;  ///< largest list, most kinds
  std::uint32_t period = 1;                                         ///< length of the list
  std::array<std::uint8_t, max_period> blocks{};                    ///< kinds, the first `period` of them

  /// The shortest list that gives these kinds. @param kinds the kind of each layer, at most max_period
  static constexpr layer_pattern of(std::span<const std::uint8_t> kinds) {
    const auto repeats = [&](std::size_t step) {
      for (std::size_t l = step; l < kinds.size(); ++l)
        if (kinds[l] != kinds[l - step]) return false;
      return true;
    };
    layer_pattern out;
    while (out.period < kinds.size() && !repeats(out.period)) ++out.period;
    for (std::uint32_t i = 0; i < out.period && i < kinds.size(); ++i) out.blocks[i] = kinds[i];
    return out;
  }

  /// Kind of a layer.
  constexpr std::uint8_t operator()(std::uint32_t layer) const { return blocks[layer % period]; }
  /// Number of kinds.
  constexpr std::uint32_t kinds() const {
    std::uint32_t most = 0;
    for (std::uint32_t i = 0; i < period; ++i) most = blocks[i] > most ? blocks[i] : most;
    return most + 1;
  }
  /// Whether all layers are of one kind, or the last of each period is of kind 1 and all others of kind 0.
  constexpr bool ends_each_period() const {
    if (kinds() == 1) return period == 1;
    for (std::uint32_t i = 0; i < period; ++i)
      if (blocks[i] != (i + 1 == period ? 1 : 0)) return false;
    return true;
  }
  /// Number of layers of a kind among the first `layers`.
  constexpr std::uint32_t count(std::uint8_t kind, std::uint32_t layers) const {
    return count_any(std::uint64_t{1} << kind, layers);
  }
  /// Number of layers of several kinds among the first `layers`. @param kinds one bit for each kind
  constexpr std::uint32_t count_any(std::uint64_t kinds, std::uint32_t layers) const {
    std::uint32_t out = 0;
    for (std::uint32_t layer = 0; layer < layers; ++layer) out += (1 & kinds >> (*this)(layer)) != 0;
    return out;
  }
  friend constexpr bool operator==(const layer_pattern&, const layer_pattern&) = default;
};

/// Sorts layers into kinds by their traits; kinds are numbered in the order in which they first appear.
/// @tparam Trait what makes kinds differ; compared with ==
template <class Trait>
struct numbered_kinds {
  static constexpr std::size_t most = 8;  ///< largest number of kinds
  layer_pattern pattern;                  ///< the kind of each layer
  std::array<Trait, most> traits{};       ///< by kind, the first `count` of them
  std::uint8_t count = 0;                 ///< kinds that layers have, at most `most`

  /// @param layers at most layer_pattern::max_period  @param trait gives the trait of a layer by its number; there may
  /// be at most `most` different ones
  template <class TraitOf>
  static constexpr numbered_kinds of(std::uint32_t layers, const TraitOf& trait) {
    numbered_kinds out;
    std::array<std::uint8_t, layer_pattern::max_period> kinds{};
    for (std::uint32_t layer = 0; layer < layers; ++layer) {
      const Trait is = trait(layer);
      std::uint8_t at = 0;
      while (at < out.count && !(out.traits[at] == is)) ++at;
      if (at == out.count) out.traits[out.count++] = is;
      kinds[layer] = at;
    }
    out.pattern = layer_pattern::of(std::span<const std::uint8_t>(kinds).first(layers));
    return out;
  }
};

/// A set of a model's layers.
struct layer_set {
  std::array<std::uint64_t, layer_pattern::max_period / 64> words{};  ///< one bit for each layer

  /// Whether the set has a layer.
  constexpr bool has(std::uint32_t layer) const {
    return layer < layer_pattern::max_period && (words[layer / 64] >> layer % 64 & 1) != 0;
  }
  /// Adds a layer.  @param layer below layer_pattern::max_period
  constexpr void add(std::uint32_t layer) { words[layer / 64] |= std::uint64_t{1} << layer % 64; }
  /// Removes a layer.  @param layer below layer_pattern::max_period
  constexpr void remove(std::uint32_t layer) { words[layer / 64] &= ~(std::uint64_t{1} << layer % 64); }
  /// Whether the set has no layer.
  constexpr bool empty() const { return *this == layer_set{}; }
  /// Number of layers of the set among the first `layers`.
  constexpr std::uint32_t count(std::uint32_t layers) const {
    std::uint32_t out = 0;
    for (std::uint32_t layer = 0; layer < layers; ++layer) out += has(layer) ? 1u : 0u;
    return out;
  }
  /// The pattern of the first `layers` layers, at most max_period: kind 0 for layers in the set, 1 for the others.
  constexpr layer_pattern pattern(std::uint32_t layers) const {
    std::array<std::uint8_t, layer_pattern::max_period> kinds{};
    for (std::uint32_t layer = 0; layer < layers && layer < kinds.size(); ++layer) kinds[layer] = has(layer) ? 0 : 1;
    return layer_pattern::of(std::span<const std::uint8_t>(kinds).first(layers < kinds.size() ? layers : kinds.size()));
  }
  /// All layers below `layers` except those that are named. @param others in rising order
  template <class... Others>
  static constexpr layer_set all_but(std::uint32_t layers, Others... others) {
    layer_set out;
    for (std::uint32_t layer = 0; layer < layers; ++layer)
      if (((layer != static_cast<std::uint32_t>(others)) && ...)) out.add(layer);
    return out;
  }
  /// All layers below `layers` except every n-th.
  static constexpr layer_set all_but_every(std::uint32_t n, std::uint32_t layers) {
    layer_set out;
    for (std::uint32_t layer = 0; layer < layers; ++layer)
      if ((layer + 1) % n != 0) out.add(layer);
    return out;
  }
  /// Layer 0 and every n-th layer after it, below `layers`.
  static constexpr layer_set first_and_every(std::uint32_t n, std::uint32_t layers) {
    layer_set out;
    for (std::uint32_t layer = 0; layer < layers && layer < layer_pattern::max_period; layer += n) out.add(layer);
    return out;
  }
  friend constexpr bool operator==(const layer_set&, const layer_set&) = default;
};

}  // namespace intaglio
