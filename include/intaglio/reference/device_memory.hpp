// SPDX-License-Identifier: MIT
// The memory of a device that runs a plan, on the CPU, byte for byte as on the device (plan/table.hpp).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "intaglio/kernels/state.hpp"
#include "intaglio/plan/table.hpp"

namespace intaglio::reference {

/// Gives the bytes of weights[slot] of a layer in device layout; layer is 0 for global weights. The bytes must outlive
/// the machine.
using weight_bytes = std::function<std::span<const std::byte>(std::uint32_t slot, std::uint32_t layer)>;

/// The memory of a plan on the CPU, as a device has it.
struct device_memory {
  /// Memory for any sequence of the table, filled with `poison`, so that a read of unwritten bytes shows.
  device_memory(const plan::table& of, weight_bytes from, std::byte poison = std::byte{0xCD})
      : table(&of), weights(std::move(from)) {
    const std::uint64_t arena_bytes =
        (std::max)({of.decode.arena_bytes, of.prefill.arena_bytes, of.logits.arena_bytes, of.verify.arena_bytes});
    arena.assign(arena_bytes, poison);
    for (std::uint32_t layer = 0; layer < of.config->num_hidden_layers; ++layer) {
      keys.emplace_back(of.cache_of(layer).key_bytes, poison);
      values.emplace_back(of.cache_of(layer).value_bytes, poison);
      kept.emplace_back(of.cache_of(layer).kept_bytes, poison);
    }
    state.assign(of.state_bytes() / 4, 0);
    ring.assign(kernels::ring_bytes(of.ring_size) / 4, 0xFFFFFFFFu);
    trace.assign(of.trace.bytes() / 4, 0xFFFFFFFFu);
  }

  const plan::table* table;
  weight_bytes weights;
  std::vector<std::byte> arena;
  std::vector<std::vector<std::byte>> keys, values, kept;  ///< by layer
  std::vector<std::uint32_t> state, ring, trace;           ///< words

  /// Does what the host's feed does: it writes the position and the tokens of a pass; the parameters of sampling stay
  /// unchanged.
  void feed(std::uint32_t position, std::span<const std::uint32_t> tokens) {
    state[kernels::state::position] = position;
    state[kernels::state::count] = static_cast<std::uint32_t>(tokens.size());
    std::copy(tokens.begin(), tokens.end(), state.begin() + kernels::state::tokens);
  }

  /// Bytes of a weight that a dispatch of a layer reads.
  std::span<const std::byte> weight(const plan::operand& of, std::uint32_t layer) const {
    return weights(of.slot, table->weights[of.slot].per_layer ? layer : 0);
  }

  /// The f32 values of a part of the arena.
  std::span<const float> floats(std::uint64_t offset, std::size_t count) const {
    return {reinterpret_cast<const float*>(arena.data() + offset), count};
  }
};

}  // namespace intaglio::reference
