// SPDX-License-Identifier: MIT
// One dispatch of a plan on the CPU, with access to its operands and constants.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "intaglio/plan/dispatch.hpp"
#include "intaglio/reference/device_memory.hpp"
#include "intaglio/reference/norm_quantize.hpp"

namespace intaglio::reference {

/// A dispatch on the CPU, with access to the memory behind its operands.
struct dispatch_call {
  dispatch_call(device_memory& memory, const plan::dispatch& of, std::uint32_t in_layer)
      : m(memory), d(of), layer(in_layer) {}

  device_memory& m;
  const plan::dispatch& d;
  std::uint32_t layer;

  /// The memory behind an address, typed, from the address to the end of its allocation.
  template <class T>
  std::span<T> memory(kernels::push_id id) const {
    const plan::operand& o = d[id];
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
  std::span<const T> weight(kernels::push_id id) const {
    const plan::operand& o = d[id];
    if (o.where != plan::region::weight) return {};
    const auto bytes = m.weights(o.slot, m.table->weights[o.slot].per_layer ? layer : 0);
    return {reinterpret_cast<const T*>(bytes.data()), bytes.size() / sizeof(T)};
  }
  template <class T>
  static std::span<T> typed(std::vector<std::byte>& bytes, std::uint64_t offset) {
    return {reinterpret_cast<T*>(bytes.data() + offset), (bytes.size() - offset) / sizeof(T)};
  }

  std::uint32_t position() const { return m.state[kernels::state::position]; }
};

/// A dispatch of a kernel on the CPU: its constants `k`, and the indices of its operands `at`.
template <class Kernel>
struct kernel_call : dispatch_call {
  kernel_call(device_memory& memory, const plan::dispatch& of, std::uint32_t in_layer)
      : dispatch_call(memory, of, in_layer), k(plan::constants_of<Kernel>(of)) {}

  const typename Kernel::constants k;
  static constexpr auto at = kernels::push_ids<Kernel>;

  std::uint32_t tokens() const {
    return (std::min)(m.state[kernels::state::count], d.groups[1] * (std::max)(1u, tile()));
  }
  std::uint32_t tile() const {
    if constexpr (Kernel::id == kernels::kernel::attention_chunk) return kernels::attention_tile;
    else if constexpr (Kernel::id == kernels::kernel::matmul_chunk) return k.max_tokens;  // groups[1] has rows
    else if constexpr (Kernel::id == kernels::kernel::attention_f16) return kernels::attention_f16_tile(k.head_dim);
    else if constexpr (requires { k.tile_tokens; }) return k.tile_tokens;
    else return 1;
  }

  /// The weight of the norm in front of a quantisation; empty where there is no norm.
  std::span<const float> norm_of(std::size_t width) const {
    return k.prologue == kernels::prologue::quantize ? std::span<const float>{}
                                                     : this->template weight<float>(at.norm_weight).first(width);
  }
  /// Rows of the input, normalised where the prologue says so.
  std::vector<float> input_after_norm(std::size_t rows, std::size_t columns) const {
    const auto input = this->template memory<float>(at.input).first(rows * columns);
    std::vector<float> y(input.begin(), input.end());
    if (k.prologue == kernels::prologue::norm)
      for (std::size_t first = 0; first < y.size(); first += columns)
        reference::rms_norm(input.subspan(first, columns), this->template weight<float>(at.norm_weight), k.eps,
                            std::span(y).subspan(first, columns));
    return y;
  }
};

/// The reference of a kernel: a kernel_call with `run()`. Each kernel has one in reference/calls/.
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
