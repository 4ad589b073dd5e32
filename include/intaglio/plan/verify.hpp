// SPDX-License-Identifier: MIT
// Proof of a finished plan, from nothing but its table: values that live together do not overlap, every hazard has its
// barrier, every address range lies inside its allocation, every kernel keeps its limits. Returns the first violation
// as a sentence, or nothing.
#pragma once

#include <algorithm>
#include <array>

#include "intaglio/kernels/state.hpp"
#include "intaglio/plan/order.hpp"
#include "intaglio/plan/resident.hpp"
#include "intaglio/plan/table.hpp"

namespace intaglio::plan {

/// What every device of the baseline offers (Vulkan 1.3 with the limits of lavapipe 22.3).
struct limits {
  std::uint32_t push_constant_bytes = kernels::max_push_constant_bytes;
  std::uint32_t shared_memory_bytes = 32768;
  std::uint32_t workgroup_count = 65535;
  std::uint32_t workgroup_invocations = 1024;
  std::uint32_t widest_subgroup = 64;
};

/// Activations of a product as CPU drivers multiply with them, where they find room
/// (shaders/include/ternary_product.glsl).
constexpr std::uint64_t activation_pair_bytes(std::uint64_t columns, std::uint64_t tokens) {
  const std::uint64_t octets = tokens * (columns / 16);
  return octets <= 768 ? 32 * (octets + 1) : 32;
}

/// Of more than 128 channels the queries stand where sums do.
constexpr std::uint64_t attention_chunk_bytes(std::uint64_t head_dim) {
  return kernels::attention_tile *
         ((head_dim > 128 ? 2 : head_dim * 4) + 1024 + 32 * 4 +
          (std::max<std::uint64_t>)((std::min<std::uint64_t>)(head_dim, 128) * 16, 256) + 16 + 4 + 16);
}

/// Shared memory of a dispatch, at least as much as its shader declares: int8 inputs of a product, the head's
/// normalised input, a norm's sums of blocks and what its subgroups found, what attention has of a span.
constexpr std::uint64_t shared_memory_bytes(const dispatch& d) {
  const auto& face = kernels::interface_of(d.kernel);
  const auto constant = [&](std::string_view name) {
    return std::uint64_t{d.specialization[face.specialization_index(name)]};
  };
  const std::uint64_t combining =
      std::uint64_t{d.subgroups} * 16 * 4;  // the narrowest subgroup has 4 invocations, the widest 64
  const auto norm = [&](std::uint64_t width) {
    return ((width + 127) / 128 + 1) * 4 + 2 * combining;
  };  // sums of blocks
  switch (d.kernel) {
    case kernels::kernel::ternary_matmul: {
      const bool quantises = constant("prologue") == static_cast<std::uint32_t>(kernels::prologue::norm_quantize);
      const std::uint64_t pairs =
          d.subgroups == 1 ? activation_pair_bytes(constant("columns"), constant("tile_tokens")) : 0;  // of CPU drivers
      return (quantises ? constant("columns") : 0) + 16 + pairs + norm(quantises ? constant("columns") : 0);
    }
    case kernels::kernel::layers: {
      const std::uint64_t widest = (std::max)(
          {constant("hidden_size"), constant("intermediate_size"), constant("heads") * constant("head_dim")});
      if (is_resident(d)) return resident_shared_memory_bytes(widest, constant("layers"), constant("head_dim"));
      return widest + 16 + activation_pair_bytes(widest, 1) + norm(widest) + 256 * 4 * constant("heads_together") +
             combining;
    }
    case kernels::kernel::layers_coded: {
      const std::uint64_t widest = (std::max)(
          {constant("hidden_size"), constant("intermediate_size"), constant("heads") * constant("head_dim")});
      return resident_coded_shared_memory_bytes(static_cast<kernels::codec>(constant("codec")), widest,
                                                constant("hidden_size"), constant("head_dim"), constant("parts"),
                                                constant("full_every") != 1);
    }
    case kernels::kernel::layers_few:
      return few_shared_memory_bytes(constant("head_dim"), constant("heads"), constant("kv_heads"), constant("parts"));
    case kernels::kernel::layers_few_normed:
      return normed_few_shared_memory_bytes(d.subgroups, constant("head_dim"), constant("heads"), constant("kv_heads"),
                                            constant("parts"));
    case kernels::kernel::layers_many:
      return many_shared_memory_bytes(constant("head_dim"), constant("heads"), constant("kv_heads"), constant("slots"),
                                      constant("parts"));
    case kernels::kernel::layers_many_normed:
      return normed_many_shared_memory_bytes(constant("head_dim"), constant("heads"), constant("kv_heads"),
                                             constant("slots"), constant("parts"));
    case kernels::kernel::layers_ternary_few:
      return ternary_few_shared_memory_bytes(constant("head_dim"), constant("heads"), constant("kv_heads"),
                                             constant("slots"), constant("parts"));
    case kernels::kernel::ternary_few:
      return 32 * combining;  // a vector of sums for each of eight tokens
    case kernels::kernel::ternary_chunk:
      return (constant("tile_rows") + constant("tile_tokens")) * ((constant("columns") % 128 == 0 ? 128 : 64) + 16);
    case kernels::kernel::ternary_float:
      return norm(constant("prologue") == static_cast<std::uint32_t>(kernels::prologue::norm) ? constant("columns")
                                                                                              : 0);
    case kernels::kernel::dense_few:
    case kernels::kernel::dense_rows:
    case kernels::kernel::ternary_rows:
      return 4;
    case kernels::kernel::dense_matmul:
      return constant("columns") * 4 + norm(constant("columns")) + combining;
    case kernels::kernel::head_screen:
      return constant("columns") * 2 + norm(constant("columns")) + combining;
    case kernels::kernel::head_rescore:
      return constant("columns") * 4 + constant("lowest_count") * 4 + d.subgroups * 64 * 4 + 2 * combining + 16;
    case kernels::kernel::attention:  // sums of a span's 32 octets, 128 channels at a time, their totals and scores
      return 32 * ((std::min<std::uint64_t>)(constant("head_dim"), 128) * 4 + 4) +
             256 * 4 * (std::max<std::uint64_t>)(constant("heads_together"), 1) + combining + 4;
    case kernels::kernel::attention_few: {  // queries and sums; scores; what octets have; sums of half a span's octets,
                                            // 64 quads at a time, and what is one a quad
      const std::uint64_t row = (std::min<std::uint64_t>)(constant("head_dim") * 4, 1024 / constant("heads_together"));
      return constant("heads_together") * (2 * constant("head_dim") * 4 + 1024 + 256 + 16 * row + row + row + 4) + 128 +
             64;
    }
    case kernels::kernel::attention_chunk:  // queries, scores, sums of four groups and what is one a token, octet or
                                            // group
      return attention_chunk_bytes(constant("head_dim"));
    case kernels::kernel::attention_halves: {  // queries, keys or values of a tile, scores and factors of 16 tokens a
                                               // subgroup; or, without matrices, as attention_chunk
      const std::uint64_t tile = kernels::attention_halves_tile(static_cast<std::uint32_t>(constant("head_dim")));
      return (std::max)(tile * (constant("head_dim") * 2 + 16) + 4 * 16 * (tile * 4 + 32) + 4096,
                        attention_chunk_bytes(constant("head_dim")));
    }
    case kernels::kernel::sample: {  // a list and its marks, or what a cut is searched among, and 256 bins; what is one
                                     // a list
      const std::uint64_t lists = kernels::sample_lists(static_cast<std::uint32_t>(constant("vocab_size")),
                                                        static_cast<std::uint32_t>(constant("slice"))),
                          room = (std::min)(lists * constant("slice"), (std::max<std::uint64_t>)(40 * lists, 4096));
      return 4 * ((std::max)(constant("slice") * 33 / 32, room) + 512) + 28 * lists + 144 + 4 * combining;
    }
    case kernels::kernel::norm_quantize:
    case kernels::kernel::norm_add:
    case kernels::kernel::rms_norm:
      return norm(constant("width"));
    case kernels::kernel::matmul:
      return (constant("staged") == 1
                  ? kernels::matmul_staged_bytes(static_cast<kernels::codec>(constant("codec")),
                                                 static_cast<std::uint32_t>(constant("columns")),
                                                 static_cast<std::uint32_t>(constant("tile_tokens")))
                  : 0) +
             32 + (constant("keeps_firsts") != 0 ? combining : 0) +
             norm(constant("prologue") == static_cast<std::uint32_t>(kernels::prologue::norm) ? constant("columns")
                                                                                              : 0);
    case kernels::kernel::route:
    case kernels::kernel::expert_sum:
      return 4;
    case kernels::kernel::expert_tiles:
      return 4 * (constant("experts") + 64 * std::uint64_t{d.subgroups});
    case kernels::kernel::fixed:
      return norm(constant("prologue") == static_cast<std::uint32_t>(kernels::prologue::norm) ? constant("width") : 0);
    case kernels::kernel::matmul_few:
      return 4;
    case kernels::kernel::halves:
      return norm(constant("prologue") == static_cast<std::uint32_t>(kernels::prologue::norm) ? constant("width") : 0) +
             combining;
    case kernels::kernel::matmul_chunk:  // 64 columns as halves, and 16 bytes; of a few tokens sums of 8 tokens and 32
                                         // rows by subgroup
      return constant("tile_tokens") <= kernels::most_few_tokens
                 ? 16 * 8 * 32 * 4
                 : (constant("tile_rows") + constant("tile_tokens")) * 144;
    case kernels::kernel::walk_gate_up:  // on CPUs, of one subgroup, also pairs of activations
      return constant("columns") + 16 + norm(constant("columns")) + 12 * constant("features") + 8 +
             (d.subgroups == 1 ? activation_pair_bytes(constant("columns"), 1) : 0);
    case kernels::kernel::walk_down: {  // the norm's sums; a list; sums of rows, of up to four shares of it
      const std::uint64_t blocks = (constant("columns") + 127) / 128,
                          listed = d.subgroups == 1
                                       ? 129 * 16
                                       : 4 * ((constant("columns") / 4 + constant("splits") - 1) / constant("splits"));
      return 40 * blocks + combining + 4 * (listed + 64) +
             4 * 16 * (d.subgroups == 1 ? 1 : kernels::walk_down_lists) * (constant("words") + 1) + 16;
    }
    case kernels::kernel::walk_select:
      return 4 * (256 + 16) + 9 * 64 * std::uint64_t{d.subgroups};
    case kernels::kernel::walk_trace:
      return 4 * (256 + 16) + 13 * 64 * std::uint64_t{d.subgroups};
    case kernels::kernel::walk_up:
      return constant("columns") * 4 + norm(constant("columns")) + combining;
    case kernels::kernel::walk_sum: {  // sums of a workgroup's slots, and its values where they are few
      const std::uint64_t own = kernels::walk_sum_slots / constant("splits"),
                          staged = (constant("count") + kernels::walk_sum_slots - 1) / kernels::walk_sum_slots * own;
      return 4 * own * constant("stripe") + 4 * (staged <= 4096 ? staged : 1);
    }
    case kernels::kernel::head_norm:
      return constant("head_dim") * 4 + norm(constant("head_dim"));
    default:
      return combining;
  }
}

namespace verification {

constexpr void begin(text<256>& out, const sequence& s, const dispatch& d) {
  out.append(s.name, ": ", d.label.view(), " (", kernels::interface_of(d.kernel).name, "): ");
}

constexpr std::uint64_t region_bytes(const table& t, const sequence& s, const dispatch& d, const access& a) {
  switch (a.where) {
    case region::arena:
      return s.arena_bytes;
    case region::weight:
      return a.slot < t.weights.size() ? t.weights[a.slot].bytes : 0;
    case region::keys:
      return t.caches[d.block].key_bytes;
    case region::values:
      return t.caches[d.block].value_bytes;
    case region::state:
      return s.batched ? t.batch_state_bytes() : t.state_bytes();
    case region::pool_keys:
      return t.pool(d.block).key_bytes;
    case region::pool_values:
      return t.pool(d.block).value_bytes;
    case region::ring:
      return s.batched ? std::uint64_t{4} * t.shape.slot_count * t.ring_size : kernels::ring_bytes(t.ring_size);
    case region::arguments:
      return kernels::layers::argument_bytes(s.layers);
    case region::trace:
      return t.trace.bytes();
    case region::none:
      break;
  }
  return 0;
}

constexpr bool bounds(const table& t, const sequence& s, const dispatch& d, text<256>& out) {
  for (std::size_t i = 0; i < d.access_count; ++i) {
    const access& a = d.accesses[i];
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
    bool covered = o.where == region::none;
    for (std::size_t k = 0; k < d.access_count; ++k)
      covered = covered || (d.accesses[k].where == o.where && d.accesses[k].slot == o.slot &&
                            d.accesses[k].offset == o.offset && d.accesses[k].layer_stride == o.layer_stride);
    if (!covered) {
      begin(out, s, d);
      out.append("expected the bytes behind every address to be stated, found none for ",
                 kernels::interface_of(d.kernel).push[i].name);
      return false;
    }
  }
  return true;
}

constexpr bool keeps_limits(const sequence& s, const dispatch& d, const limits& limit, text<256>& out) {
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
  const std::uint32_t width = resident ? kernels::layers::resident_subgroup_width : limit.widest_subgroup;
  if (over("invocations a workgroup", limit.workgroup_invocations, std::uint64_t{d.subgroups} * width)) return false;
  const bool more = resident || d.kernel == kernels::kernel::matmul_chunk ||
                    d.kernel == kernels::kernel::attention_halves;  // the forms without matrices take less
  return !over("bytes of shared memory", more ? kernels::matrix_shared_memory_bytes : limit.shared_memory_bytes,
               shared_memory_bytes(d));
}

constexpr bool no_overlap(const sequence& s, text<256>& out) {
  for (std::size_t i = 0; i < s.values.size(); ++i) {
    const auto& a = s.values[i];
    if (a.offset > s.arena_bytes || a.bytes > s.arena_bytes - a.offset) {
      out.append(s.name, ": value ", a.name.view(), ": expected to end inside the arena of ", s.arena_bytes,
                 " bytes, found ", a.offset + a.bytes);
      return false;
    }
    for (std::size_t k = 0; k < i; ++k) {
      const auto& b = s.values[k];
      if (a.first <= b.last && b.first <= a.last && a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes) {
        out.append(s.name, ": values ", b.name.view(), " and ", a.name.view(),
                   ": expected different bytes while both live, found both at offset ",
                   a.offset > b.offset ? a.offset : b.offset);
        return false;
      }
    }
  }
  return true;
}

/// Every access to the arena lies in a value that lives at that dispatch.
constexpr bool lives(const sequence& s, const dispatch& d, std::uint32_t index, text<256>& out) {
  for (std::size_t i = 0; i < d.access_count; ++i) {
    const access& a = d.accesses[i];
    if (a.where != region::arena || makes_blank(d, a)) continue;  // that covers many, is_blank() looks at it
    bool found = false;
    for (const auto& v : s.values)
      found = found || (v.first <= index && index <= v.last && a.offset >= v.offset &&
                        a.offset + (s.layers - 1) * a.layer_stride + a.bytes <= v.offset + v.bytes);
    if (!found) {
      begin(out, s, d);
      out.append("expected a live value behind its ", a.write ? "write" : "read", " at offset ", a.offset,
                 ", found none");
      return false;
    }
  }
  return true;
}

/// Walks the recorded order (prologue, layers until all neighbours were there, epilogue) and asks for a barrier in
/// every hazard.
constexpr bool hazards(const sequence& s, text<256>& out) {
  pending_accesses pending;
  auto walk = [&](std::span<const dispatch> part, std::uint32_t layer) {
    for (const auto& d : part) {
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
  const std::uint32_t stretches = s.in_one.empty() ? layers_to_walk(s.pattern, s.layers) : 1;
  for (std::uint32_t i = 0; i < stretches; ++i)
    if (!walk(s.stretch(i), i)) return false;
  return walk(s.epilogue, s.repeats());
}

/// All layers in one dispatch: every step's arena writes are its own, in every layer, and not what the prologue wrote.
constexpr bool done_twice_is_done_once(const sequence& s, text<256>& out) {
  const auto overlap = [&](const dispatch& d, const access& a, const dispatch& other, const access& b, bool same) {
    const auto skips = [&](const dispatch& of, std::uint64_t layer) {
      return &of != s.prologue.data() && s.pattern(static_cast<std::uint32_t>(layer)) != of.block;
    };
    const std::uint64_t stride = b.layer_stride;
    for (std::uint64_t i = 0; i < s.layers; ++i) {
      if (skips(d, i)) continue;
      const std::uint64_t x = a.offset + i * a.layer_stride, behind = b.offset + b.bytes;
      // The first layer whose bytes of b end past x: of those before it none matters.
      for (std::uint64_t k = x < behind    ? 0
                             : stride == 0 ? s.layers
                                           : (x - behind) / stride + 1;
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

/// What workgroups wait for must be blank before the pass, in every layer, and the rest of the arena not.
constexpr bool is_blank(const sequence& s, text<256>& out) {
  const bool waits = is_resident(s.in_one.front()), apart = has_exchange(s.in_one.front());
  if (!waits && s.blank_bytes == 0) return true;
  if (s.blank_offset > s.arena_bytes || s.blank_bytes > s.arena_bytes - s.blank_offset || s.blank_offset % 4 != 0 ||
      s.blank_bytes % 4 != 0) {
    out.append(s.name, ": expected whole blank words inside the arena of ", s.arena_bytes, " bytes, found ",
               s.blank_bytes, " bytes at ", s.blank_offset);
    return false;
  }
  const std::uint64_t end = s.blank_offset + s.blank_bytes;
  std::uint64_t made = 0;  // by the embedding, or by a fill before the pass
  for (const auto& d : s.prologue)
    for (std::size_t i = 0; i < d.access_count; ++i)
      if (const access& a = d.accesses[i]; makes_blank(d, a) && a.offset >= s.blank_offset && a.offset + a.bytes <= end)
        made += a.bytes;
  const std::uint64_t wanted = s.blank_bytes / s.layers * blank_layers(s.in_one.front(), s.layers);
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
        if (part.data() == s.period.data() && !apart ? inside : outside) continue;
        begin(out, s, d);
        out.append("expected what a layer writes, and no more, to be blank before the pass, found a write at offset ",
                   a.offset);
        return false;
      }
  return true;
}

/// Every argument is an address whose bytes a step states.
constexpr bool argues(const sequence& s, text<256>& out) {
  for (std::size_t n = 0; n < s.arguments.size(); ++n) {
    const operand& o = s.arguments[n];
    bool stated = o.where == region::none;
    // What workgroups tell each other, beside the steps' own places: the blank bytes.
    if (has_exchange(s.in_one.front()) && n % kernels::layers::argument_count == 0)
      stated = o.where == region::arena && o.offset == s.blank_offset && o.layer_stride * s.layers == s.blank_bytes;
    for (const auto& d : s.arguments.size() > kernels::layers::argument_count
                             ? s.block(static_cast<std::uint8_t>(n / kernels::layers::argument_count))
                             : s.period)
      for (std::size_t i = 0; i < d.access_count; ++i) {
        const access& a = d.accesses[i];
        stated = stated ||
                 (a.where == o.where && a.slot == o.slot && a.offset == o.offset && a.layer_stride == o.layer_stride);
      }
    if (stated) continue;
    out.append(s.name, ": expected the bytes behind every argument to be stated, found none for one at offset ",
               o.offset, " of ", o.where);
    return false;
  }
  return true;
}

}  // namespace verification

constexpr void verify(const table& t, const sequence& s, const limits& limit, text<256>& out) {
  using namespace verification;
  std::uint32_t index = 0;
  for (const auto part : {s.prologue, s.period, s.epilogue})
    for (const auto& d : part)
      if (!keeps_limits(s, d, limit, out) || !bounds(t, s, d, out) || !lives(s, d, index++, out)) return;
  if (!no_overlap(s, out)) return;
  for (const auto part : {s.in_one, s.in_one_long})
    for (const auto& d : part)
      if (!keeps_limits(s, d, limit, out) || !bounds(t, s, d, out)) return;
  if (s.in_one.empty() ||
      ((has_exchange(s.in_one.front()) || done_twice_is_done_once(s, out)) && is_blank(s, out) && argues(s, out)))
    hazards(s, out);
}

/// Of the places of weights. Empty where they are proven; else the first violation.
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
/// The same of one sequence, where the table has it.
constexpr text<256> verify_sequence(const table& t, sequence table::*which, const limits& limit = {}) {
  text<256> out;
  const sequence& s = t.*which;
  const bool has = which == &table::verify          ? s.has_head
                   : which == &table::decode_in_one ? !s.in_one.empty()
                   : which == &table::batch || which == &table::batch_in_one || which == &table::moves ? s.layers != 0
                                                                                                       : true;
  if (has) verify(t, s, limit, out);
  return out;
}
inline constexpr std::array verified_sequences{&table::decode,       &table::prefill,       &table::logits,
                                               &table::verify,       &table::decode_in_one, &table::batch,
                                               &table::batch_in_one, &table::moves};

/// Empty where the plan is proven; else the first violation. In constant expressions part by part: compilers bound the
/// work of one of them.
constexpr text<256> verify(const table& t, const limits& limit = {}) {
  text<256> out = verify_weights(t);
  for (const auto which : verified_sequences)
    if (out.empty()) out = verify_sequence(t, which, limit);
  return out;
}

}  // namespace intaglio::plan
