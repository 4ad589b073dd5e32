// SPDX-License-Identifier: MIT
// One dispatch of a plan on the CPU, with access to its operands and constants by name.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "intaglio/plan/dispatch.hpp"
#include "intaglio/reference/device_memory.hpp"
#include "intaglio/reference/norm_quantize.hpp"

namespace intaglio::reference {

struct dispatch_call {
  dispatch_call(device_memory& memory, const plan::dispatch& of, std::uint32_t in_layer)
      : m(memory), d(of), layer(in_layer) {}

  device_memory& m;
  const plan::dispatch& d;
  std::uint32_t layer;

  const kernels::kernel_interface& face() const { return kernels::interface_of(d.kernel); }
  std::uint32_t constant(std::string_view name) const { return d.specialization[face().specialization_index(name)]; }
  float real(std::string_view name) const { return std::bit_cast<float>(constant(name)); }
  kernels::element element(std::string_view name) const { return static_cast<kernels::element>(constant(name)); }

  /// The memory behind an address, typed, from the address to the end of its allocation.
  template <class T>
  std::span<T> memory(std::string_view name) const {
    const plan::operand& o = d.push[face().push_index(name)];
    switch (o.where) {
      case plan::region::arena:
        return typed<T>(m.arena, o.offset + layer * o.layer_stride);
      case plan::region::keys:
        return typed<T>(m.keys[m.table->cache_owner(layer)], o.offset);
      case plan::region::values:
        return typed<T>(m.values[m.table->cache_owner(layer)], o.offset);
      case plan::region::kept:
        return typed<T>(m.kept[layer], o.offset);
      default:
        return {};
    }
  }
  template <class T>
  std::span<const T> weight(std::string_view name) const {
    const plan::operand& o = d.push[face().push_index(name)];
    if (o.where != plan::region::weight) return {};
    const auto bytes = m.weights(o.slot, m.table->weights[o.slot].per_layer ? layer : 0);
    return {reinterpret_cast<const T*>(bytes.data()), bytes.size() / sizeof(T)};
  }
  template <class T>
  static std::span<T> typed(std::vector<std::byte>& bytes, std::uint64_t offset) {
    return {reinterpret_cast<T*>(bytes.data() + offset), (bytes.size() - offset) / sizeof(T)};
  }

  std::uint32_t position() const { return m.state[kernels::state::position]; }
  std::uint32_t tokens() const {
    return (std::min)(m.state[kernels::state::count], d.groups[1] * (std::max)(1u, tile()));
  }
  std::uint32_t tile() const {
    if (d.kernel == kernels::kernel::attention_chunk) return kernels::attention_tile;
    if (d.kernel == kernels::kernel::matmul_chunk) return constant("max_tokens");  // groups[1] has rows
    if (d.kernel == kernels::kernel::attention_f16) return kernels::attention_f16_tile(constant("head_dim"));
    return face().specialization_index("tile_tokens") < face().specialization_count() ? constant("tile_tokens") : 1;
  }

  /// The weight of the norm in front of a quantisation; empty where there is no norm.
  std::span<const float> norm_of(std::size_t width) const {
    return static_cast<kernels::prologue>(constant("prologue")) == kernels::prologue::quantize
               ? std::span<const float>{}
               : weight<float>("norm_weight").first(width);
  }
  /// Rows of the input, normalised where the prologue says so.
  std::vector<float> input_behind_norm(std::size_t rows, std::size_t columns) const {
    const auto input = memory<float>("input").first(rows * columns);
    std::vector<float> y(input.begin(), input.end());
    if (static_cast<kernels::prologue>(constant("prologue")) == kernels::prologue::norm)
      for (std::size_t at = 0; at < y.size(); at += columns)
        reference::rms_norm(input.subspan(at, columns), weight<float>("norm_weight"), real("eps"),
                            std::span(y).subspan(at, columns));
    return y;
  }
};

/// The reference of a kernel: a dispatch_call with `run()`. Each kernel has one in reference/calls/.
template <class Kernel>
struct call_of;
/// Base of the calls of kernels that have no reference of their own: their reference is a run of each session by
/// itself.
struct has_no_call {};
/// Whether a kernel has a reference. The reference of resident kernels, which run all layers, is the chain of single
/// dispatches.
template <class Kernel>
concept has_call = !kernels::all_layers<Kernel> && !std::is_base_of_v<has_no_call, call_of<Kernel>>;

}  // namespace intaglio::reference
