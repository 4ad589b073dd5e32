// SPDX-License-Identifier: MIT
// Runs one dispatch of a plan on the device with made-up activations instead of all operands that are not weights.
// Proofs of kernels share this code.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "intaglio/core/float16.hpp"
#include "intaglio/gpu/queue.hpp"
#include "intaglio/gpu/recorder.hpp"
#include "intaglio/gpu/transfer.hpp"
#include "intaglio/kernels/cache_layout.hpp"
#include "intaglio/kernels/state.hpp"
#include "intaglio/reference/cached.hpp"
#include "intaglio/runtime/kernel_set.hpp"
#include "intaglio/runtime/weight_memory.hpp"

namespace intaglio::runtime {

namespace proofs {

/// Reads elements that a dispatch wrote.
template <class T>
std::vector<T> read(const gpu::buffer& from, std::size_t first, std::size_t count) {
  std::vector<T> out(count);
  std::memcpy(out.data(), from.mapped().data() + first * sizeof(T), count * sizeof(T));
  return out;
}

/// The largest difference, relative to the largest expected value; infinite where a value is not a number.
inline double apart(std::span<const float> found, std::span<const float> expected) {
  double largest = 1e-30, out = 0;
  for (const float x : expected) largest = (std::max)(largest, std::abs(static_cast<double>(x)));
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const double each = std::abs(static_cast<double>(found[i]) - static_cast<double>(expected[i])) / largest;
    if (std::isnan(each)) return HUGE_VAL;  // larger than any fault
    out = (std::max)(out, each);
  }
  return out;
}

/// Converts f16 or f32 bytes to floats.
inline std::vector<float> cache_floats(std::span<const std::byte> bytes, std::size_t element) {
  std::vector<float> out(bytes.size() / element);
  for (std::size_t i = 0; i < out.size(); ++i) {
    std::uint16_t half = 0;
    if (element == 4) std::memcpy(&out[i], bytes.data() + 4 * i, 4);
    else std::memcpy(&half, bytes.data() + 2 * i, 2), out[i] = f32_from_f16(half);
  }
  return out;
}
/// Largest difference between the beginning of caches and the expected values.
[[gnu::cold]] inline double caches_apart(const gpu::buffer& keys, std::span<const std::byte> k,
                                         const gpu::buffer& values, std::span<const std::byte> v, std::size_t element) {
  return (std::max)(apart(cache_floats(keys.mapped().first(k.size()), element), cache_floats(k, element)),
                    apart(cache_floats(values.mapped().first(v.size()), element), cache_floats(v, element)));
}

}  // namespace proofs

/// Runs dispatches one at a time; the caller sets the dispatch and its tokens before each run.
class kernel_trial {
 public:
  kernel_trial(const gpu::device& on, const plan::table& of, const kernel_set& kernels, const weight_memory& weights)
      : table(&of), set(&kernels), device_(on), weights_(&weights), queue_(on), transfer_(on, std::uint64_t{1} << 20) {}

  static constexpr std::uint32_t position = 3;  ///< of the first token, unless a proof sets another

  const plan::table* table;
  const kernel_set* set;
  std::uint32_t tokens = 1;  ///< number of tokens given to this dispatch
  std::uint32_t width = 1;   ///< number of tokens that a pass of its sequence has room for
  bool batched = false;

  void seed(std::uint32_t with) noexcept { random_ = with; }

  /// A pseudo-random number of 24 bits.
  std::uint32_t next() {
    random_ = random_ * 1664525u + 1013904223u;
    return random_ >> 8;
  }
  /// A pseudo-random number in (-2, 2).
  float number() { return (static_cast<float>(next()) * 0x1p-24f - 0.5f) * 4.0f; }
  std::vector<float> floats(std::size_t count) {
    std::vector<float> out(count);
    for (float& x : out) x = number();
    return out;
  }
  /// A buffer of zeros that the host can read.
  gpu::buffer room(std::uint64_t bytes) const {
    gpu::buffer out(device_, (std::max<std::uint64_t>)(bytes, 4), gpu::placement::readback, "a kernel's proof");
    std::memset(out.mapped().data(), 0, out.mapped().size());
    return out;
  }
  /// @param elements smallest size of the buffer; it has zeros after the values
  template <class T>
  gpu::buffer filled(const std::vector<T>& values, std::size_t elements) const {
    gpu::buffer out = room((std::max)(elements, values.size()) * sizeof(T));
    std::memcpy(out.mapped().data(), values.data(), values.size() * sizeof(T));
    return out;
  }
  /// Elements of a weight of layer 0 as they are on the device.
  template <class T>
  std::vector<T> weight(const plan::operand& what, std::uint64_t first, std::uint64_t count) {
    const auto& item = weights_->placed.items[weights_->first[what.slot]];
    std::vector<T> out(static_cast<std::size_t>(count));
    transfer_.download(weights_->placed.buffers[item.buffer], item.offset + what.offset + first * sizeof(T),
                       std::as_writable_bytes(std::span(out)));
    return out;
  }

  /// Runs a dispatch with buffers instead of all operands that are not weights.
  using bound_buffers = std::vector<std::pair<kernels::push_id, const gpu::buffer*>>;
  [[gnu::cold]] void run(const plan::dispatch& call, const bound_buffers& buffers) {
    const kernels::kernel_interface& face = kernels::interface_of(call.kernel);
    std::vector<std::uint64_t> push = face.unbound_push();
    for (std::size_t i = 0; i < push.size(); ++i)
      if (call.push[i].where == plan::region::weight)
        push[i] = weights_->address(*table, call.push[i].slot, 0) + call.push[i].offset;
    for (const auto& [id, memory] : buffers)
      if (call[id].where != plan::region::none) push[static_cast<std::size_t>(id)] = memory->address();
    gpu::recorder to(device_, "proof of " + std::string(face.name));
    to.dispatch(set->of(call), std::as_bytes(std::span(push)), call.groups);
    const gpu::recording commands = to.finish();
    const VkCommandBuffer handle = commands.handle();
    queue_.wait(queue_.submit({&handle, 1}, commands.name()), gpu::queue::first_hang_limit);
  }

  std::vector<std::uint32_t> state(std::uint32_t first = position) const {
    std::vector<std::uint32_t> words(kernels::state::words(table->max_tokens, table->context));
    words[kernels::state::position] = first;
    words[kernels::state::count] = tokens;
    return words;
  }

  /// Positions in the form of a batch: each token has a slot of its own, and all slots have the same pages, in order.
  std::vector<std::uint32_t> slots_of(const std::vector<std::uint32_t>& alone) const {
    namespace state = kernels::state;
    const std::uint32_t size = state::slot_words(table->context, table->shape.page_size), pages = table->slot_pages();
    std::vector<std::uint32_t> out(static_cast<std::size_t>(table->batch_state_bytes() / 4));
    out[state::count] = tokens;
    for (std::uint32_t t = 0; t < tokens; ++t) {
      std::uint32_t* const slot = out.data() + state::first_slot + std::size_t{t} * size;
      std::copy_n(alone.begin(), state::tokens, slot);
      slot[state::position] = alone[state::position] + t;
      slot[state::count] = 1;
      slot[state::limit] = table->context;
      slot[state::tokens] = alone[state::tokens + t];
      for (std::uint32_t page = 0; page < pages; ++page) slot[state::page_table + page] = page;
      std::copy_n(alone.begin() + state::history(table->max_tokens), table->context, slot + state::page_table + pages);
    }
    return out;
  }
  gpu::buffer memory_of(const std::vector<std::uint32_t>& alone) const {
    return filled(batched ? slots_of(alone) : alone, 0);
  }
  plan::layer_cache cache_of(const plan::dispatch& call) const {
    return batched ? table->pool(call.block) : table->caches[call.block];
  }
  /// The last head of each token of f32 [tokens, q_size].
  std::vector<float> last_heads(const gpu::buffer& from, std::uint32_t q_size, std::uint32_t head) const {
    std::vector<float> out;
    for (std::uint32_t t = 0; t < tokens; ++t) {
      const auto row = proofs::read<float>(from, std::size_t{t} * q_size + q_size - head, head);
      out.insert(out.end(), row.begin(), row.end());
    }
    return out;
  }
  /// Writes a made-up head at a position of a layer's keys or values.
  void put(const gpu::buffer& cache, const reference::cached& form, std::uint32_t head, std::uint32_t at) {
    form.store(cache.mapped(), head, at, floats(form.head_dim));
  }

 private:
  gpu::device device_;
  const weight_memory* weights_;
  std::uint32_t random_ = 12345;
  gpu::queue queue_;
  gpu::transfer transfer_;
};

}  // namespace intaglio::runtime
