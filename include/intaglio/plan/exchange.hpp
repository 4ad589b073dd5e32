// SPDX-License-Identifier: MIT
// Proof of the exchange between workgroups of a resident dispatch: every value is written by an earlier step than the
// step that waits for it, the values of a layer do not overlap, and no wait is endless.
#pragma once

#include "intaglio/core/compiler.hpp"

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "intaglio/core/array_view.hpp"
#include "intaglio/kernels/catalogue.hpp"
#include "intaglio/kernels/exchange.hpp"
#include "intaglio/plan/table.hpp"

namespace intaglio::plan::verification {

/// Begins a problem's sentence with the sequence, the dispatch and its kernel.
constexpr void begin(text<256>& out, const sequence& s, const dispatch& d) {
  out.append(s.name, ": ", d.label.view(), " (", kernels::interface_of(d.kernel).name, "): ");
}

/// Whether every wait has a spin limit, and the dispatch has its sequence's layers and the workgroups that it states.
[[gnu::cold]] constexpr bool waits_end(const sequence& s, const dispatch& all, text<256>& out) {
  std::uint32_t spin_limit = 0, layers = 0, parts = 0;
  with_constants(all, kernels::resident_kernels{},
                 [&](const auto& c, const auto&) { spin_limit = c.spin_limit, layers = c.layers, parts = c.parts; });
  if (spin_limit == 0 || spin_limit > kernels::layers_coded::most_spins) {
    begin(out, s, all);
    out.append("expected waits of 1 to ", kernels::layers_coded::most_spins, " turns, found ", spin_limit);
    return false;
  }
  if (layers != s.layers) {
    begin(out, s, all);
    out.append("expected the ", s.layers, " layers of the sequence, found ", layers);
    return false;
  }
  const std::uint32_t helpers = has_helpers(all) ? kernels::layers_batch::most_helpers : 0,
                      least = has_helpers(all) ? parts + 1 : parts;
  if (all.groups[0] >= least && all.groups[0] <= parts + helpers && all.least_groups <= all.groups[0]) return true;
  begin(out, s, all);
  out.append("expected ", least, " workgroups, as many as share its rows", helpers != 0 ? " and some that help" : "",
             ", found ", all.groups[0], ", at least ", all.least_groups);
  return false;
}

/// Arguments for which the workgroups of layers and layers_coded wait.
constexpr kernels::layers::exchanged_arguments exchanged_arguments(const dispatch& all) {
  kernels::layers::exchanged_arguments out{};
  kernels::visit(all.kernel, [&]<class Kernel>(std::type_identity<Kernel>) {
    if constexpr (requires(const typename Kernel::constants& c) { Kernel::exchanged(c); })
      out = Kernel::exchanged(kernels::constants_of<Kernel>(all.specialization));
  });
  return out;
}
/// The step after `writer` or before it that writes bytes which `writer` writes at an operand; the number of steps if
/// there is none.
constexpr std::size_t second_writer(array_view<const dispatch> steps, std::size_t writer, const operand& at) {
  const auto written = [&](std::size_t step, auto&& by) {
    for (std::size_t i = 0; i < steps[step].access_count; ++i)
      if (const access& a = steps[step].accesses[i];
          a.write && a.where == at.where && a.layer_stride == at.layer_stride && by(a))
        return true;
    return false;
  };
  std::uint64_t end = at.offset;
  static_cast<void>(written(writer, [&](const access& a) {
    if (a.offset == at.offset) end = a.offset + a.bytes;
    return false;
  }));
  for (std::size_t step = 0; step < steps.size(); ++step)
    if (step != writer &&
        written(step, [&](const access& a) { return a.offset < end && at.offset < a.offset + a.bytes; }))
      return step;
  return steps.size();
}
/// Whether the steps of layers and layers_coded write each exchanged value in time. The values are results of q, k and
/// v, of attention, of its projection, of gate and up, and of down, named by argument. A step must write each value.
/// That step, or one between it and the writer of the previous value, must read the previous value. No step before the
/// writer may wait for the value, and no other step may write any byte of it.
[[gnu::cold]] constexpr bool steps_follow(const sequence& s, const dispatch& all, text<256>& out) {
  const auto order = exchanged_arguments(all);
  if (order.count == 0) {
    begin(out, s, all);
    out.append("expected a kernel that says what its workgroups wait for, found none");
    return false;
  }
  for (std::uint32_t kind = 0; kind < s.pattern.kinds(); ++kind) {
    const auto steps = s.block(static_cast<std::uint8_t>(kind));
    const auto arguments = s.arguments.subspan(s.arguments.size() > s.argument_count() ? kind * s.argument_count() : 0,
                                               s.argument_count());
    const auto touches = [&](std::size_t step, const operand& at, bool writes) {
      for (std::size_t i = 0; i < steps[step].access_count; ++i)
        if (const access& a = steps[step].accesses[i];
            a.write == writes && a.where == at.where && a.offset == at.offset && a.layer_stride == at.layer_stride)
          return true;
      return false;
    };
    std::size_t from = 0;
    for (std::size_t k = 0; k < order.count; ++k) {
      const std::size_t n = order.items[k];
      std::size_t writes = from;
      while (writes < steps.size() && !touches(writes, arguments[n], true)) ++writes;
      bool before = k == 0;  // whether a step reads the value before this one
      for (std::size_t step = from; step <= writes && step < steps.size(); ++step)
        before = before || touches(step, arguments[order.items[k - 1]], false);
      std::size_t too_early = 0;  // first step that waits for this value
      while (too_early < writes && !touches(too_early, arguments[n], false)) ++too_early;
      if (writes < steps.size() && before && too_early == writes) {
        const std::size_t second = second_writer(steps, writes, arguments[n]);
        if (second == steps.size()) {
          from = writes + 1;
          continue;
        }
        begin(out, s, all);
        out.append("expected value ", n, " of those that workgroups wait for to be written once, found step ", writes,
                   " and step ", second, " that write");
        return false;
      }
      begin(out, s, all);
      if (writes < steps.size() && before) {
        out.append("expected value ", n, " of those that workgroups wait for to be written before it is waited for, ",
                   "found step ", too_early, " that waits and step ", writes, " that writes");
        return false;
      }
      out.append("expected value ", n, " of those that workgroups wait for to be written by a step that follows the ",
                 "one before it, found ", writes < steps.size() ? "none that reads that" : "no write");
      return false;
    }
  }
  return true;
}

/// The exchange of a batch's resident dispatch, computed from the constants from which its shader computes the offsets.
constexpr kernels::exchange_ranges exchange_of(const dispatch& all) {
  kernels::exchange_ranges out;
  kernels::visit(all.kernel, [&]<class Kernel>(std::type_identity<Kernel>) {
    if constexpr (kernels::exchanging<Kernel>)
      out = Kernel::exchange(kernels::constants_of<Kernel>(all.specialization));
  });
  return out;
}
/// Whether each value of an exchange fits in a layer's bytes, in whole words, and no step waits for a value that a
/// later step writes.
[[gnu::cold]] constexpr bool has_room(const sequence& s, const dispatch& all, const kernels::exchange_ranges& ranges,
                                      text<256>& out) {
  for (const kernels::exchange_range& each : ranges.all()) {
    if (each.bytes != 0 && each.bytes % 4 == 0 && each.written <= each.read) continue;
    begin(out, s, all);
    if (each.written > each.read) {
      out.append("expected ", each.name, " to be written before it is waited for, found step ",
                 static_cast<std::uint32_t>(each.read), " of a layer that waits and step ",
                 static_cast<std::uint32_t>(each.written), " that writes");
      return false;
    }
    out.append("expected whole words for ", each.name, ", found ", each.bytes, " bytes");
    return false;
  }
  for (std::size_t n = 0; n < s.arguments.size(); n += s.argument_count()) {
    if (s.arguments[n].layer_stride >= ranges.bytes()) continue;
    begin(out, s, all);
    out.append("expected ", ranges.bytes(), " bytes a layer for what workgroups exchange, found ",
               s.arguments[n].layer_stride);
    return false;
  }
  return true;
}

/// Whether the exchange of a resident dispatch is proven; true for any other dispatch.
[[gnu::cold]] constexpr bool exchanges(const sequence& s, const dispatch& all, text<256>& out) {
  if (!is_resident(all)) return true;
  return waits_end(s, all, out) &&
         (has_exchange(all) ? has_room(s, all, exchange_of(all), out) : steps_follow(s, all, out));
}

}  // namespace intaglio::plan::verification
