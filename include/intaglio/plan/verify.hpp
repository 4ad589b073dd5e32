// SPDX-License-Identifier: MIT
// Proof of a finished plan from its table only: values that live together do not overlap, every hazard has its barrier,
// every address range is inside its allocation, attention sees only positions that are written, every kernel keeps its
// limits. The result is the first violation as a sentence, or empty.
#pragma once

#include <algorithm>
#include <array>

#include "intaglio/core/array_view.hpp"
#include "intaglio/kernels/state.hpp"
#include "intaglio/plan/crossing.hpp"
#include "intaglio/plan/dispatch_demands.hpp"
#include "intaglio/plan/exchange.hpp"
#include "intaglio/plan/order.hpp"
#include "intaglio/plan/resident.hpp"
#include "intaglio/plan/seen_positions.hpp"
#include "intaglio/plan/table.hpp"

namespace intaglio::plan {

/// Limits that every device of the baseline meets (Vulkan 1.3 with the limits of lavapipe 22.3).
struct limits {
  std::uint32_t push_constant_bytes = kernels::max_push_constant_bytes;
  std::uint32_t shared_memory_bytes = 32768;
  std::uint32_t matrix_shared_memory_bytes =
      kernels::matrix_shared_memory_bytes;  ///< of devices with cooperative matrices
  std::uint32_t workgroup_count = 65535;
  std::uint32_t workgroup_invocations = 1024;
  std::uint32_t widest_subgroup = 64;
  std::uint32_t resident_workgroups = 0;  ///< workgroups that are sure to run at once; 0: not known yet
};

/// The limits of a class of devices.
constexpr limits limits_of(const kernels::device_class& device) {
  return {.shared_memory_bytes = device.shared_memory_bytes,
          .matrix_shared_memory_bytes = device.shared_memory_bytes,
          .workgroup_count = device.workgroup_count,
          .workgroup_invocations = device.workgroup_invocations,
          .widest_subgroup = device.subgroup_size,
          .resident_workgroups = device.resident_workgroups};
}

namespace verification {

/// Bytes of the memory that an access is in; 0 if the plan has none.
constexpr std::uint64_t region_bytes(const table& t, const sequence& s, const dispatch& d, const access& a) {
  switch (a.where) {
    case region::arena:
      return s.arena_bytes;
    case region::weight:
      // A dispatch may read no bytes of a weight that its kind of layer lacks.
      return a.slot < t.weights.size() &&
                     (!t.weights[a.slot].per_layer || (t.weights[a.slot].kinds >> d.block & 1) != 0)
                 ? t.weights[a.slot].bytes
                 : 0;
    case region::keys:
      return t.caches[d.block].key_bytes;
    case region::values:
      return t.caches[d.block].value_bytes;
    case region::kept:
      return (s.batched ? t.shape.slot_count : 1) * t.caches[d.block].kept_bytes;
    case region::state:
      return s.batched ? t.batch_state_bytes() : t.state_bytes();
    case region::pool_keys:
      return t.pool(d.block).key_bytes;
    case region::pool_values:
      return t.pool(d.block).value_bytes;
    case region::ring:
      return s.batched ? std::uint64_t{4} * t.shape.slot_count * t.ring_size : kernels::ring_bytes(t.ring_size);
    case region::arguments:
      return s.argument_bytes();
    case region::trace:
      return t.trace.bytes();
    case region::none:
      break;
  }
  return 0;
}

/// Proves that accesses are inside their memory and that every address has its accesses. @param out first violation
constexpr bool bounds(const table& t, const sequence& s, const dispatch& d, text<256>& out) {
  for (const access& a : accesses_of(d)) {
    const bool cached = a.where == region::keys || a.where == region::values || a.where == region::pool_keys ||
                        a.where == region::pool_values;
    if (cached && a.write && kernels::is_coded(t.cache_element) && d.kernel != kernels::kernel::turn &&
        d.kernel != kernels::kernel::pages) {
      begin(out, s, d);
      out.append("expected a cache of ", kernels::cache_codec_of(t.cache_element).name,
                 " to be written by turn, which has whole heads, or by pages");
      return false;
    }
    const std::uint64_t whole = region_bytes(t, s, d, a);
    const std::uint64_t last = a.offset + (s.layers - 1) * a.layer_stride;  // of the last layer
    if (a.offset > whole || last < a.offset || last > whole || a.bytes > whole - last) {
      begin(out, s, d);
      out.append("expected accesses inside the ", whole, " bytes of ", a.where, ", found one that ends at ",
                 last + a.bytes);
      return false;
    }
  }
  for (std::size_t i = 0; i < kernels::interface_of(d.kernel).push_count(); ++i) {
    const operand& o = d.push[i];
    if (o.where == region::none) continue;
    bool covered = false;
    for (const access& a : accesses_of(d))
      if (a.offset == o.offset && a.where == o.where && a.slot == o.slot && a.layer_stride == o.layer_stride) {
        covered = true;
        break;
      }
    if (!covered) {
      begin(out, s, d);
      out.append("expected the bytes at every address to be stated, found none for ",
                 kernels::interface_of(d.kernel).push[i].name);
      return false;
    }
  }
  return true;
}

/// Proves that a dispatch keeps a device's limits. @param out first violation
[[gnu::cold]] constexpr bool keeps_limits(const sequence& s, const dispatch& d, const limits& limit, text<256>& out) {
  auto over = [&](std::string_view what, std::uint64_t most, std::uint64_t found) {
    if (found <= most && found != 0) return false;
    begin(out, s, d);
    out.append("expected 1 to ", most, " ", what, ", found ", found);
    return true;
  };
  for (const auto count : d.groups)
    if (over("workgroups", limit.workgroup_count, count)) return false;
  if (over("push constant bytes", limit.push_constant_bytes, kernels::interface_of(d.kernel).push_bytes()))
    return false;
  const bool resident = is_resident(d);
  if (resident && is_fitted(d) && limit.resident_workgroups != 0 &&
      over("workgroups that wait for each other and so run at once", limit.resident_workgroups, d.groups[0]))
    return false;
  const std::uint32_t width = resident ? kernels::layers::resident_subgroup_width : limit.widest_subgroup;
  const dispatch_demands demands = demands_of(d, width);
  if (!demands.undefined.empty()) {
    begin(out, s, d);
    out.append("expected constants that give its workgroup a size, found some that leave that of ", demands.undefined,
               " undefined");
    return false;
  }
  if (over("invocations a workgroup", limit.workgroup_invocations, demands.invocations)) return false;
  const auto needs_more = [&](std::uint64_t found, std::uint64_t most) {
    return found != 0 && over("bytes of shared memory", most, found);
  };
  const auto most = resident ? limit.matrix_shared_memory_bytes : limit.shared_memory_bytes;
  return !needs_more(demands.shared_memory_bytes, most) &&
         !needs_more(demands.matrix_shared_memory_bytes, limit.matrix_shared_memory_bytes);
}

/// Proves that values that live together have different bytes of the arena. @param out first violation
constexpr bool no_overlap(const sequence& s, text<256>& out) {
  for (const placed_value& a : by_pointer(s.values)) {
    if (a.offset > s.arena_bytes || a.bytes > s.arena_bytes - a.offset) {
      out.append(s.name, ": value ", a.name.view(), ": expected to end inside the arena of ", s.arena_bytes,
                 " bytes, found ", a.offset + a.bytes);
      return false;
    }
    for (const placed_value& b : pointed<const placed_value>{s.values.data(), &a})
      if (a.first <= b.last && b.first <= a.last && a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes) {
        out.append(s.name, ": values ", b.name.view(), " and ", a.name.view(),
                   ": expected different bytes while both live, found both at offset ",
                   a.offset > b.offset ? a.offset : b.offset);
        return false;
      }
  }
  return true;
}

/// Every access to the arena is in a value that lives at that dispatch.
constexpr bool lives(const sequence& s, const dispatch& d, std::uint32_t index, text<256>& out) {
  for (const access& a : accesses_of(d)) {
    if (a.where != region::arena || makes_blank(d, a)) continue;  // it covers many values; is_blank() checks it
    bool found = false;
    const std::uint64_t end = a.offset + (s.layers - 1) * a.layer_stride + a.bytes;
    for (const placed_value& v : by_pointer(s.values))
      if (v.first <= index && index <= v.last && a.offset >= v.offset && end <= v.offset + v.bytes) {
        found = true;
        break;
      }
    if (!found) {
      begin(out, s, d);
      out.append("expected a live value at its ", a.write ? "write" : "read", " at offset ", a.offset, ", found none");
      return false;
    }
  }
  return true;
}

/// Whether rows of the stream cross a cut in the right order, and are in a value that lives when they are copied. Rows
/// that are copied in must live from the first dispatch on; rows that are copied out, until after the last one.
constexpr bool crosses(const table& t, const sequence& s, text<256>& out) {
  const std::uint64_t rows = std::uint64_t{4} * s.max_tokens * t.config->hidden_size;
  const auto last = static_cast<std::uint32_t>(s.prologue.size() + s.period.size() + s.epilogue.size());
  const auto lives_at = [&](std::uint64_t offset, std::uint32_t index) {
    for (const auto& v : s.values)
      if (v.offset <= offset && v.bytes >= rows && offset - v.offset <= v.bytes - rows && v.first <= index &&
          index <= v.last)
        return true;
    out.append(s.name, ": expected a live value at the ", rows, " bytes of the stream that cross at offset ", offset,
               ", found none");
    return false;
  };
  if (!s.takes_stream && !s.gives_stream) return true;
  if (out = verify_crossing(crossing_way_of(s.max_tokens)); !out.empty()) return false;
  return (!s.takes_stream || lives_at(s.stream_in_offset, 0)) && (!s.gives_stream || lives_at(s.residual_offset, last));
}

/// The copy of incoming rows of the stream, as a write on which the sequence's dispatches depend.
constexpr dispatch copy_in(const table& t, const sequence& s) {
  dispatch out;
  out.access_count = 1;
  out.accesses[0] = {.where = region::arena,
                     .write = true,
                     .offset = s.stream_in_offset,
                     .bytes = std::uint64_t{4} * s.max_tokens * t.config->hidden_size};
  return out;
}

/// Whether each kind of layer has a dispatch with a barrier, so that no access is pending for longer than a layer.
constexpr bool every_kind_has_a_barrier(const sequence& s) {
  std::uint64_t kinds = 0;
  for (const dispatch& d : s.period)
    if (d.barrier) kinds |= std::uint64_t{1} << d.block;
  for (std::uint32_t layer = 0; layer < (std::min)(s.pattern.period, s.layers); ++layer)
    if ((kinds >> s.pattern(layer) & 1) == 0) return false;
  return true;
}

/// Checks that every hazard has a barrier. It walks the recorded order: the prologue, layers until all pairs of
/// neighbouring kinds have occurred, the epilogue.
[[gnu::cold]] constexpr bool hazards(const table& t, const sequence& s, text<256>& out) {
  pending_accesses pending;
  if (s.takes_stream) pending.add(copy_in(t, s), 0);
  auto walk = [&](array_view<const dispatch> part, std::uint32_t layer) {
    for (const dispatch& d : by_pointer(part)) {
      if (d.barrier) pending.barrier();
      if (pending.hazard(d, layer)) {
        begin(out, s, d);
        out.append("expected a barrier before it, found none between it and what it depends on");
        return false;
      }
      pending.add(d, layer);
    }
    return true;
  };
  if (!walk(s.prologue, 0)) return false;
  const bool all = !s.resident.empty() || !every_kind_has_a_barrier(s);
  const std::uint32_t stretches = all ? s.repeats() : layers_to_walk(s.pattern, s.layers);
  for (std::uint32_t i = 0; i < stretches; ++i)
    if ((all || !is_third_of_its_kind(s.pattern, i)) && !walk(s.stretch(i), i)) return false;
  return walk(s.epilogue, s.repeats());
}

/// Whether steps of the resident dispatch may be repeated: each writes arena bytes of its own in every layer, which
/// neither another step nor the prologue writes.
[[gnu::cold]] constexpr bool done_twice_is_done_once(const sequence& s, text<256>& out) {
  const auto overlap = [&](const dispatch& d, const access& a, const dispatch& other, const access& b, bool same) {
    const auto skips = [&](const dispatch& of, std::uint64_t layer) {
      return &of != s.prologue.data() && s.pattern(static_cast<std::uint32_t>(layer)) != of.block;
    };
    const std::uint64_t stride = b.layer_stride;
    for (std::uint64_t i = 0; i < s.layers; ++i) {
      if (skips(d, i)) continue;
      const std::uint64_t x = a.offset + i * a.layer_stride, after = b.offset + b.bytes;
      // The first layer whose bytes of b end after x; earlier layers cannot overlap.
      for (std::uint64_t k = x < after     ? 0
                             : stride == 0 ? s.layers
                                           : (x - after) / stride + 1;
           k < s.layers && b.offset + k * stride < x + a.bytes; ++k)
        if ((!same || i != k) && !skips(other, k)) return true;
    }
    return false;
  };
  const auto each_write = [&](auto&& check) {
    for (const auto part : {s.prologue, s.period})
      for (const auto& d : part)
        for (std::size_t i = 0; i < d.access_count; ++i)
          if (d.accesses[i].where == region::arena && d.accesses[i].write && !makes_blank(d, d.accesses[i]) &&
              !check(d, d.accesses[i]))
            return false;
    return true;
  };
  return each_write([&](const dispatch& d, const access& a) {
    return each_write([&](const dispatch& other, const access& b) {
      const bool prologue = &d == s.prologue.data();
      if (prologue && &other == &d) return true;
      if (!overlap(d, a, other, b, &a == &b)) return true;
      begin(out, s, d);
      out.append("expected bytes of its own for what it writes in each layer, found some that ", other.label.view(),
                 " writes too");
      return false;
    });
  });
}

/// Whether values for which workgroups wait hold the unwritten pattern before the pass in every layer, and no other
/// write of the layers is in that range.
constexpr bool is_blank(const sequence& s, text<256>& out) {
  const bool waits = is_resident(s.resident.front()), apart = has_exchange(s.resident.front());
  if (!waits && s.blank_bytes == 0) return true;
  if (s.blank_offset > s.arena_bytes || s.blank_bytes > s.arena_bytes - s.blank_offset || s.blank_offset % 4 != 0 ||
      s.blank_bytes % 4 != 0) {
    out.append(s.name, ": expected whole blank words inside the arena of ", s.arena_bytes, " bytes, found ",
               s.blank_bytes, " bytes at ", s.blank_offset);
    return false;
  }
  const std::uint64_t end = s.blank_offset + s.blank_bytes;
  std::uint64_t made = 0;  // bytes that the embedding fills; 0: a fill before the pass writes the pattern
  for (const auto& d : s.prologue)
    for (std::size_t i = 0; i < d.access_count; ++i)
      if (const access& a = d.accesses[i]; makes_blank(d, a) && a.offset >= s.blank_offset && a.offset + a.bytes <= end)
        made += a.bytes;
  const std::uint64_t wanted = s.blank_bytes / s.layers * blank_layers(s.resident.front(), s.layers);
  if (made != (s.blanks_itself() ? wanted : 0)) {
    out.append(s.name, ": expected ", wanted, " bytes to be made blank beside the embedding, found ", made);
    return false;
  }
  for (const auto part : {s.prologue, s.period, s.epilogue})
    for (const auto& d : part)
      for (std::size_t i = 0; i < d.access_count; ++i) {
        const access& a = d.accesses[i];
        if (a.where != region::arena || !a.write || makes_blank(d, a)) continue;
        const std::uint64_t last = a.offset + (s.layers - 1) * a.layer_stride + a.bytes;
        const bool inside = a.offset >= s.blank_offset && last <= end,
                   outside = last <= s.blank_offset || a.offset >= end;
        // No workgroup waits for a value that only the chain writes, such as a choice of experts.
        const bool waited_for = std::any_of(s.arguments.begin(), s.arguments.end(), [&](const operand& each) {
          return each.where == a.where && each.offset == a.offset && each.layer_stride == a.layer_stride;
        });
        if (part.data() == s.period.data() && !apart ? inside || (outside && !waited_for) : outside) continue;
        begin(out, s, d);
        out.append("expected what a layer writes, and no more, to be blank before the pass, found a write at offset ",
                   a.offset);
        return false;
      }
  return true;
}

/// Whether the bytes at every argument's address are stated by an access of a step.
constexpr bool has_stated_arguments(const sequence& s, text<256>& out) {
  for (std::size_t n = 0; n < s.arguments.size(); ++n) {
    const operand& o = s.arguments[n];
    bool stated = o.where == region::none;
    // The workgroups' exchange is apart from the memory of the steps: it is the blank bytes.
    if (has_exchange(s.resident.front()) && n % s.argument_count() == 0)
      stated = o.where == region::arena && o.offset == s.blank_offset && o.layer_stride * s.layers == s.blank_bytes;
    for (const auto& d : s.arguments.size() > s.argument_count()
                             ? s.block(static_cast<std::uint8_t>(n / s.argument_count()))
                             : s.period)
      for (std::size_t i = 0; i < d.access_count; ++i) {
        const access& a = d.accesses[i];
        stated = stated ||
                 (a.where == o.where && a.slot == o.slot && a.offset == o.offset && a.layer_stride == o.layer_stride);
      }
    if (stated) continue;
    out.append(s.name, ": expected the bytes at every argument to be stated, found none for one at offset ", o.offset,
               " of ", o.where);
    return false;
  }
  return true;
}

/// Whether the exchange of both resident forms is proven; else `out` has the first violation.
constexpr bool exchange_holds(const sequence& s, text<256>& out) {
  for (const auto part : {s.resident, s.resident_long})
    for (const dispatch& all : part)
      if (!exchanges(s, all, out)) return false;
  return true;
}

}  // namespace verification

/// Proves one sequence of a table. @param out first violation; unchanged if the sequence is proven
constexpr void verify(const table& t, const sequence& s, const limits& limit, text<256>& out) {
  using namespace verification;
  std::uint32_t index = 0;
  for (const auto part : {s.prologue, s.period, s.epilogue})
    for (const auto& d : part)
      if (!keeps_limits(s, d, limit, out) || !bounds(t, s, d, out) || !lives(s, d, index++, out)) return;
  if (!no_overlap(s, out) || !crosses(t, s, out) || !sees_written(t, s, out)) return;
  for (const auto part : {s.resident, s.resident_long})
    for (const auto& d : part)
      if (!keeps_limits(s, d, limit, out) || !bounds(t, s, d, out)) return;
  if (s.resident.empty() || ((has_exchange(s.resident.front()) || done_twice_is_done_once(s, out)) &&
                             is_blank(s, out) && has_stated_arguments(s, out) && exchange_holds(s, out)))
    hazards(t, s, out);
}

/// Proves the offsets of weights. @return empty where they are proven, else the first violation
constexpr text<256> verify_weights(const table& t) {
  text<256> out;
  for (std::size_t i = 0; i < t.weights.size(); ++i) {
    const weight& w = t.weights[i];
    const std::uint64_t whole = w.per_layer ? t.layer_weight_bytes : t.global_weight_bytes;
    if (w.offset > whole || w.bytes > whole - w.offset) {
      out.append(w.sources[0].view(), ": expected to end inside the ", whole, " bytes of its weights, found ",
                 w.offset + w.bytes);
      return out;
    }
    for (std::size_t k = 0; k < i; ++k) {
      const weight& other = t.weights[k];
      if (w.per_layer == other.per_layer && w.offset < other.offset + other.bytes &&
          other.offset < w.offset + w.bytes) {
        out.append(w.sources[0].view(), ": expected bytes of its own, found them shared with ",
                   other.sources[0].view());
        return out;
      }
    }
  }
  return out;
}
/// Proves one sequence, if the table has it. @return empty if it is proven, else the first violation
constexpr text<256> verify_sequence(const table& t, sequence table::*which, const limits& limit = {}) {
  text<256> out;
  const sequence& s = t.*which;
  const bool has = which == &table::resident_decode ? !s.resident.empty()
                   : which == &table::logits || which == &table::verify || which == &table::batch ||
                           which == &table::resident_batch || which == &table::moves
                       ? s.layers != 0
                       : true;
  if (has) verify(t, s, limit, out);
  return out;
}
/// The sequences of a table that are verified.
inline constexpr std::array verified_sequences{
    &table::decode,          &table::prefill, &table::logits,         &table::verify,
    &table::resident_decode, &table::batch,   &table::resident_batch, &table::moves};

/// Proves a whole plan. @return empty if it is proven, else the first violation. Constant expressions should prove it
/// in parts, because compilers limit the work of one expression.
constexpr text<256> verify(const table& t, const limits& limit = {}) {
  text<256> out = verify_weights(t);
  for (const auto which : verified_sequences)
    if (out.empty()) out = verify_sequence(t, which, limit);
  return out;
}

}  // namespace intaglio::plan
