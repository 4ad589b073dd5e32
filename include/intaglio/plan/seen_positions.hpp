// SPDX-License-Identifier: MIT
// Proof of the positions that attention sees: a pass with positions ahead of a token has the whole text, every kind of
// pass sees the same positions, the pass writes their keys and values first, the cache holds them all, and each span of
// them has a workgroup.
#pragma once

#include "intaglio/core/compiler.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>

#include "intaglio/core/array_view.hpp"
#include "intaglio/kernels/catalogue.hpp"
#include "intaglio/plan/exchange.hpp"
#include "intaglio/plan/table.hpp"

namespace intaglio::plan::verification {

/// Constants of an attention that say which positions a token sees and how many the cache holds.
struct seen_positions {
  bool attends = false;  ///< whether the dispatch is an attention
  std::uint32_t window = 0, ahead = 0, held = 0, ring = 0, splits = 1;
};
/// The positions that a dispatch's tokens see, by the constants of its attention.
constexpr seen_positions seen_positions_of(const dispatch& d) {
  seen_positions out;
  kernels::visit(d.kernel, [&]<class Kernel>(std::type_identity<Kernel>) {
    if constexpr (requires(const typename Kernel::constants& c) { c.ahead; }) {
      const auto c = kernels::constants_of<Kernel>(d.specialization);
      out = {true, c.window, c.ahead, c.context, c.ring};
      if constexpr (requires { c.splits; }) out.splits = c.splits;
    }
  });
  return out;
}

/// Whether tokens of a sequence may see positions after their own. Those are the next tokens of the same text, so a
/// pass must have the whole text. A single token sees none, whatever the constant says.
constexpr bool may_see_ahead(const table& t, const sequence& s, const dispatch& d, std::uint32_t ahead,
                             text<256>& out) {
  const std::string_view why = s.batched             ? "a batch, whose rows are tokens of different texts"
                               : !s.resident.empty() ? "a step of a resident dispatch, which sees none"
                               : s.has_head          ? "a pass whose logits predict the next token"
                                                     : "";
  if (why.empty() && (s.max_tokens == 1 || s.max_tokens >= t.context)) return true;
  begin(out, s, d);
  if (!why.empty()) out.append("expected no positions ahead of a token in ", why, ", found ", ahead);
  else
    out.append("expected a pass over all ", t.context, " positions of the context, whose tokens see ahead, found one ",
               "over ", s.max_tokens);
  return false;
}

/// Whether dispatches of the layer before an attention write all keys and values that it reads.
constexpr bool reads_written(const sequence& s, array_view<const dispatch> before, const dispatch& d, text<256>& out) {
  for (const access& a : std::span(d.accesses).first(d.access_count)) {
    if (a.where != region::keys && a.where != region::values && a.where != region::pool_keys &&
        a.where != region::pool_values)
      continue;
    bool written = false;
    for (const dispatch& other : before)
      for (const access& b : std::span(other.accesses).first(other.access_count))
        written = written || (b.write && b.where == a.where && other.block == d.block && b.offset <= a.offset &&
                              a.offset + a.bytes <= b.offset + b.bytes);
    if (written) continue;
    begin(out, s, d);
    out.append("expected the ", a.where, " of the pass to be written before it in its layer, found no write");
    return false;
  }
  return true;
}

/// Positions that a cache must hold during a pass. In a ring the pass overwrites no position that one of its tokens
/// sees: the first token sees those from the start of its window on, and the last token writes the last one.
constexpr std::uint64_t needed_positions(const table& t, const sequence& s, const seen_positions& sees) {
  return sees.ring != 0 && sees.window != 0 ? std::uint64_t{sees.window} - 1 + s.max_tokens : t.context;
}
/// Spans that can hold the positions that a token sees.
constexpr std::uint32_t needed_spans(const table& t, const seen_positions& sees) {
  const std::uint32_t all = kernels::attention_spans(t.context);
  if (sees.window == 0 || sees.window >= t.context || sees.ahead >= t.context) return all;
  return (std::min)(all, kernels::attention_window_spans(sees.window + sees.ahead));
}

/// Whether an attention sees the positions that its layer's cache is made for and that decode sees, and reaches them.
constexpr bool sees_all(const table& t, const sequence& s, const dispatch& d, const seen_positions& sees,
                        text<256>& out) {
  const auto refuse = [&](const auto&... parts) {
    begin(out, s, d);
    (out.append(parts), ...);
    return false;
  };
  if (const std::uint32_t window = t.caches[d.block].window; sees.window != window)
    return refuse("expected the window of its cache, ", window, " positions, found ", sees.window);
  for (const dispatch& other : t.decode.block(d.block))
    if (const auto decode = seen_positions_of(other); decode.attends && sees.ahead != decode.ahead)
      return refuse("expected ", decode.ahead, " positions ahead of a token, as in decode, found ", sees.ahead);
  if (const std::uint64_t needed = needed_positions(t, s, sees); !s.batched && sees.held < needed)
    return refuse("expected a cache that holds the ", needed, " positions that the pass sees and writes, found one of ",
                  sees.held);
  if (const std::uint32_t spans = needed_spans(t, sees); sees.splits > 1 && sees.splits < spans)
    return refuse("expected a workgroup for each of the ", spans, " spans that a token sees, found ", sees.splits);
  return true;
}

/// Whether each attention of a sequence sees positions that exist and that are written; else `out` has the first
/// violation. A layer that shares an earlier layer's cache writes none of it.
constexpr bool sees_written(const table& t, const sequence& s, text<256>& out) {
  for (std::size_t i = 0; i < s.period.size(); ++i) {
    const dispatch& d = s.period[i];
    const seen_positions sees = seen_positions_of(d);
    if (!sees.attends) continue;
    if (sees.ahead != 0 && !may_see_ahead(t, s, d, sees.ahead, out)) return false;
    if (!sees_all(t, s, d, sees, out)) return false;
    if (!t.caches[d.block].shared && !reads_written(s, s.period.first(i), d, out)) return false;
  }
  return true;
}

}  // namespace intaglio::plan::verification
