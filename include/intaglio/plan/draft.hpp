// SPDX-License-Identifier: MIT
// Sequences in lists of fixed capacity, which can leave a constant evaluation, and the exact arrays that a program
// stores.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

#include "intaglio/core/layer_pattern.hpp"
#include "intaglio/core/message.hpp"
#include "intaglio/plan/layer_cache.hpp"
#include "intaglio/plan/sequence.hpp"
#include "intaglio/plan/weight.hpp"

namespace intaglio::plan {

/// Capacities of a draft's lists.
inline constexpr std::size_t max_section_dispatches = 80, max_values = 72, max_weights = 64;

/// A list that can leave a constant evaluation, because its capacity is fixed. A plan made at run time may need more
/// items: `more` then holds all of them.
template <class T, std::size_t Capacity>
struct bounded_list {
  std::array<T, Capacity> items{};
  std::size_t size = 0;
  std::vector<T> more{};
  constexpr std::span<const T> all() const {
    return more.empty() ? std::span<const T>(items).first(size) : std::span<const T>(more);
  }
  constexpr void assign(const std::vector<T>& from, std::string_view what, text<256>& failure) {
    if (from.size() > Capacity) {
      if (!std::is_constant_evaluated()) {
        more = from;
        size = from.size();
        return;
      }
      if (failure.empty()) failure.append("plan: expected at most ", Capacity, " ", what, ", found ", from.size());
      return;
    }
    for (const auto& item : from) items[size++] = item;
  }
};

/// A sequence as a constant evaluation makes it: the members of `sequence`, in lists of bounded size.
struct drafted_sequence {
  bounded_list<dispatch, 8> prologue;
  bounded_list<dispatch, max_section_dispatches> period;
  bounded_list<dispatch, 8> epilogue;
  bounded_list<dispatch, 1> resident, resident_long;
  std::uint32_t long_from = 0;
  bounded_list<operand, max_section_dispatches / 7 * kernels::layers_coded::argument_count>
      arguments;  // a kind has 7 or more dispatches
  bounded_list<placed_value, max_values> values;
  std::uint64_t arena_bytes = 0, residual_offset = 0, logits_offset = 0, blank_offset = 0, blank_bytes = 0;
  bool has_head = false, has_sampler = false;
};

/// One sequence, with the weights of the sequences before it. Each draft is a constant evaluation of its own, because
/// compilers limit the work of one evaluation.
struct draft {
  text<256> failure;
  drafted_sequence sequence;
  bounded_list<weight, max_weights> weights;
  std::uint64_t global_weight_bytes = 0, layer_weight_bytes = 0;
  layer_pattern pattern;
  std::array<layer_cache, layer_pattern::max_kinds> caches{};
};

/// Arrays of exactly the size that a drafted sequence needs; they are part of the program.
template <std::size_t Prologue, std::size_t Period, std::size_t Epilogue, std::size_t Values, std::size_t Resident = 0,
          std::size_t ResidentLong = 0, std::size_t Arguments = 0>
struct frozen_sequence {
  std::array<dispatch, Prologue> prologue{};
  std::array<dispatch, Period> period{};
  std::array<dispatch, Epilogue> epilogue{};
  std::array<placed_value, Values> values{};
  std::array<dispatch, Resident> resident{};
  std::array<dispatch, ResidentLong> resident_long{};
  std::array<operand, Arguments> arguments{};

  constexpr explicit frozen_sequence(const drafted_sequence& from) {
    for (std::size_t i = 0; i < Prologue; ++i) prologue[i] = from.prologue.items[i];
    for (std::size_t i = 0; i < Period; ++i) period[i] = from.period.items[i];
    for (std::size_t i = 0; i < Epilogue; ++i) epilogue[i] = from.epilogue.items[i];
    for (std::size_t i = 0; i < Values; ++i) values[i] = from.values.items[i];
    for (std::size_t i = 0; i < Resident; ++i) resident[i] = from.resident.items[i];
    for (std::size_t i = 0; i < ResidentLong; ++i) resident_long[i] = from.resident_long.items[i];
    for (std::size_t i = 0; i < Arguments; ++i) arguments[i] = from.arguments.items[i];
  }
};

}  // namespace intaglio::plan
