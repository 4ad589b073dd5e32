// SPDX-License-Identifier: MIT
// The contributions of the features of a model's FFNs, token by token (docs/walk.md), and which tokens the device's
// ring (kernels::walk_trace) still holds.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <deque>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "intaglio/plan/table.hpp"
#include "intaglio/runtime/trace_result.hpp"

namespace intaglio {

namespace runtime {

/// The host's bookkeeping of the ring. Position p uses slot p % slots, from the submission of the pass that writes it
/// until the next pass that uses the slot.
class trace_ring {
 public:
  explicit trace_ring(const plan::trace_shape& shape) : shape_(shape) {}

  /// Notes that a pass over a token at `position` was submitted after all others.
  void submitted(std::uint32_t position) {
    overwritten(position);
    entries_.push_back({position, state::flying});
  }
  /// Notes that the slot of a position was overwritten.
  void overwritten(std::uint32_t position) {
    for (entry& each : entries_) {
      if (each.position % shape_.slot_count != position % shape_.slot_count || each.is == state::gone ||
          each.is == state::gone_flying)
        continue;
      lost_ += 1;
      each.is = each.is == state::flying ? state::gone_flying : state::gone;
    }
    shorten();
  }
  /// Notes that a number of submitted passes are done.
  void completed(std::uint32_t passes) {
    for (entry& each : entries_) {
      if (passes == 0) break;
      if (each.is != state::flying && each.is != state::gone_flying) continue;
      each.is = each.is == state::flying ? state::ready : state::gone;
      --passes;
    }
    shorten();
  }
  /// Forgets the traces from position `size` on; they do not count as lost.
  void forget(std::uint32_t size) noexcept {
    for (entry& each : entries_)
      if (each.position >= size)
        each.is = each.is == state::flying || each.is == state::gone_flying ? state::gone_flying : state::gone;
    shorten();
  }
  /// Takes finished traces of positions below `size` from the ring's words. @shape words: [slots, layers,
  /// trace_words(top)]
  trace_result take(std::uint32_t size, std::span<const std::uint32_t> words) {
    trace_result out;
    out.lost = std::exchange(lost_, 0);
    for (entry& each : entries_) {
      if (each.is != state::ready || each.position >= size) continue;
      out.tokens.push_back(
          token(words.subspan(std::size_t{each.position % shape_.slot_count} * shape_.layers * shape_.layer_words())));
      each.is = state::gone;
    }
    shorten();
    return out;
  }

 private:
  enum class state : std::uint8_t { flying, gone_flying, ready, gone };
  struct entry {
    std::uint32_t position;
    state is;
  };

  traced_token token(std::span<const std::uint32_t> words) const {
    traced_token out;
    out.position = words[0];
    out.token = static_cast<std::int32_t>(words[1]);
    for (std::uint32_t layer = 0; layer < shape_.layers; ++layer) {
      const auto part = words.subspan(std::size_t{layer} * shape_.layer_words(), shape_.layer_words());
      out.sizes.push_back(std::bit_cast<float>(part[2]));
      auto& fired = out.layers.emplace_back();
      for (std::size_t i = 3; i < part.size(); i += 3)
        if (const float size = std::bit_cast<float>(part[i + 2]); size != 0)
          fired.push_back(
              {part[i], std::bit_cast<float>(part[i + 1]), std::fabs(size), std::signbit(size) ? -1.f : 1.f});
      // Sort by bits, which orders sizes and puts values that are not numbers first.
      std::ranges::stable_sort(fired, std::ranges::greater{}, [](const fired_feature& each) {
        return std::bit_cast<std::uint32_t>(each.contribution);
      });
    }
    return out;
  }
  void shorten() noexcept {
    while (!entries_.empty() && entries_.front().is == state::gone) entries_.pop_front();
  }

  plan::trace_shape shape_;
  std::deque<entry> entries_;  ///< in the order of submission
  std::uint64_t lost_ = 0;
};

}  // namespace runtime

}  // namespace intaglio
