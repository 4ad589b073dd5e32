// SPDX-License-Identifier: MIT
// Weights of a plan's true shapes with made-up values, straight into device memory: speed without a file. Ternary codes are random with
// a third of each, norms are 1, dense values are small, so that activations stay finite.
#pragma once

#include <cstring>

#include "intaglio/core/float16.hpp"
#include "intaglio/gpu/transfer.hpp"
#include "intaglio/runtime/weight_memory.hpp"

namespace intaglio::runtime {

/// Next of a 64-bit xorshift; state must not be 0.
constexpr std::uint64_t next_random(std::uint64_t& state) {
  state ^= state << 13;
  state ^= state >> 7;
  return state ^= state << 17;
}

/// One 32-bit word of a weight of the given layout.
inline std::uint32_t synthetic_word(const plan::weight& w, std::uint64_t& random) {
  switch (w.layout) {
    case plan::weight_layout::vector_f32: return std::bit_cast<std::uint32_t>(1.f);
    case plan::weight_layout::ternary_scales: return std::bit_cast<std::uint32_t>(0.02f);
    case plan::weight_layout::ternary_tiles: {
      const auto word = static_cast<std::uint32_t>(next_random(random));
      const std::uint32_t threes = word & (word >> 1) & 0x55555555u;  // code 3 becomes 1
      return word & ~(threes << 1);
    }
    case plan::weight_layout::matrix: break;
  }
  const auto small = [&] { return static_cast<float>(static_cast<std::int32_t>(next_random(random) >> 40) - (1 << 23)) * 0x1p-28f; };
  if (w.element == kernels::element::f32) return std::bit_cast<std::uint32_t>(small());
  const auto half = [&] { return w.element == kernels::element::f16 ? f16_from_f32(small()) : bf16_from_f32(small()); };
  const std::uint32_t low = half();
  return low | static_cast<std::uint32_t>(half()) << 16;
}

/// Memory for all weights, filled. A mebibyte of values a weight is made and repeated.
/// @error out_of_memory, device_lost, device_error
inline weight_memory synthetic_weights(const gpu::device& on, const plan::table& of, std::uint64_t seed = 1) {
  weight_memory out = allocate_weights(on, of);
  gpu::transfer uploads(on);
  std::uint64_t random = seed * 2 + 1;
  std::vector<std::uint32_t> pattern;
  for (std::uint32_t slot = 0; slot < of.weights.size(); ++slot) {
    const plan::weight& w = of.weights[slot];
    pattern.resize(static_cast<std::size_t>(std::min<std::uint64_t>((w.bytes + 3) / 4, 1u << 18)));
    for (auto& word : pattern) word = synthetic_word(w, random);
    const std::uint64_t period = std::uint64_t{4} * pattern.size();
    for (std::uint32_t layer = 0; layer < (w.per_layer ? of.config->num_hidden_layers : 1); ++layer) {
      const auto& item = out.placed.items[out.first[slot] + layer];
      uploads.upload(out.placed.buffers[item.buffer], item.offset, item.bytes, [&](std::span<std::byte> into, std::uint64_t at) {
        for (std::size_t done = 0; done < into.size();) {
          const std::uint64_t phase = (at + done) % period;
          const auto length = static_cast<std::size_t>(std::min<std::uint64_t>(period - phase, into.size() - done));
          std::memcpy(into.data() + done, reinterpret_cast<const std::byte*>(pattern.data()) + phase, length);
          done += length;
        }
      });
    }
  }
  uploads.finish();
  return out;
}

}  // namespace intaglio::runtime
