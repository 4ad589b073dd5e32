// SPDX-License-Identifier: MIT
// Lower bound of a dispatch's memory traffic: bytes of weights, cache and activations that it reads or writes, each
// counted once. These bytes divided by the device's streaming rate bound the dispatch's time from below.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <vector>

#include "intaglio/core/array_view.hpp"
#include "intaglio/kernels/matmul_layout.hpp"
#include "intaglio/plan/table.hpp"

namespace intaglio::plan {

/// Whether an access is to the partial results that an attention's workgroups exchange.
constexpr bool holds_partials(const dispatch& d, const access& a) {
  if (d.kernel != kernels::kernel::attention) return false;
  const operand& o = d[kernels::push_ids<kernels::attention_kernel>.partials];
  return o.where == a.where && o.offset == a.offset;
}

/// Bytes that one run of a dispatch must move in a pass of `tokens` tokens after `position` cached ones. Not counted:
/// the state and the ring, which are a few words, and partial results that an attention's workgroups exchange.
/// @param of the sequence of the dispatch; tokens <= of.max_tokens
constexpr std::uint64_t bytes_moved(const table& t, const sequence& of, const dispatch& d, std::uint32_t position,
                                    std::uint32_t tokens) {
  if (is_all_layers(d)) {
    std::uint64_t steps = 0;
    for (const dispatch& each : of.period) steps += of.times(each) * bytes_moved(t, of, each, position, tokens);
    return steps;
  }
  const auto part = [&](std::uint64_t bytes) { return bytes * tokens / of.max_tokens; };
  // A token reads one row of the embedding; matrices are read whole.
  std::uint64_t out = d.kernel == kernels::kernel::embed ? part(d.weight_bytes) : d.weight_bytes;
  for (std::size_t i = 0; i < d.access_count; ++i) {
    const access& each = d.accesses[i];
    if (each.where == region::arena && !holds_partials(d, each) && !makes_blank(d, each)) out += part(each.bytes);
    const bool of_keys = each.where == region::keys || each.where == region::pool_keys;
    if (each.where == region::pool_keys || each.where == region::pool_values) {  // pages of each row
      const layer_cache pool = t.pool(d.block);
      out += pool.position_bytes(of_keys) * tokens *
             (each.write         ? 1
              : pool.window == 0 ? position + 1
                                 : (std::min)(position + 1, pool.window));
      continue;
    }
    if (each.where == region::kept) {  // read and written; in a batch the range spans all slots
      const std::uint64_t after = of.batched ? (t.shape.slot_count - 1) * t.caches[d.block].kept_bytes : 0;
      out += 2 * (each.bytes - after) * (of.batched ? tokens : 1);
    }
    if (each.where != region::keys && each.where != region::values) continue;
    const layer_cache& cache = t.caches[d.block];
    out += cache.position_bytes(of_keys) * (std::min)(each.write ? tokens : position + tokens, cache.positions);
  }
  return out;
}

/// Bytes that a whole pass must move.
constexpr std::uint64_t bytes_moved(const table& t, const sequence& of, std::uint32_t position, std::uint32_t tokens) {
  const auto sum = [&](array_view<const dispatch> part) {
    std::uint64_t out = 0;
    for (const dispatch& each : part) out += bytes_moved(t, of, each, position, tokens);
    return out;
  };
  std::uint64_t layers = 0;
  for (const dispatch& each : of.period) layers += of.times(each) * bytes_moved(t, of, each, position, tokens);
  return sum(of.prologue) + layers + sum(of.epilogue);
}

/// Bytes of a plan's weights that share one codec.
struct codec_bytes {
  std::string_view codec;  ///< "q4_k"; "ternary"; "int8" (a screened head); "vectors" (norms, scales, RoPE tables)
  std::uint64_t bytes = 0;
};
/// The codecs of a plan's weights, sorted by bytes, the largest first.
inline std::vector<codec_bytes> weights_by_codec(const table& of) {
  const auto name = [](const weight& w) -> std::string_view {
    using enum weight_layout;
    switch (w.layout) {
      case matrix:
      case row_groups:
      case turned:
        return kernels::info(w.codec).name;
      case ternary_tiles:
      case feature_rows:
      case feature_columns:
        return "ternary";
      case row_codes:
        return "int8";
      default:
        return "vectors";
    }
  };
  std::vector<codec_bytes> out;
  for (const weight& each : of.weights) {
    const auto found = std::find_if(out.begin(), out.end(), [&](const auto& one) { return one.codec == name(each); });
    const std::uint64_t bytes = of.copies(each) * each.bytes;
    if (found == out.end()) out.push_back({name(each), bytes});
    else found->bytes += bytes;
  }
  std::stable_sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.bytes > b.bytes; });
  return out;
}

}  // namespace intaglio::plan
