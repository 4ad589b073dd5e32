// SPDX-License-Identifier: MIT
// The end of a pass: the head in two steps where it is screened, the sampler, the kernel that accepts drafts.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>
#include <type_traits>

#include "intaglio/plan/dispatch_builder.hpp"
#include "intaglio/plan/rules.hpp"

namespace intaglio::plan {

/// Offsets of values that a head exchanges between its steps and with the sampler, beside the logits.
struct head_values {
  std::uint64_t firsts = 0, y = 0, lowest = 0;
};

/// Lowers the dispatches after the last product.
class sampling_lowering : public dispatch_builder {
 public:
  using dispatch_builder::dispatch_builder;

  /// The sampler after the head. It reads the logits at offset `logits`. In a pass over drafts it writes the drawn
  /// tokens to offset `drawn`.
  /// @param head the dispatch that computes the logits
  constexpr dispatch sampler(const dispatch& head, std::uint64_t logits, std::uint64_t scratch, std::uint64_t drawn) {
    using constants = kernels::sample_kernel::constants;
    constexpr auto at = kernels::push_ids<kernels::sample_kernel>;
    constants k{};
    dispatch d{.kernel = kernels::kernel::sample};
    d_ = &d;
    d.subgroups = (std::max)(c_.target.work.sample_subgroups, kernels::least_sample_subgroups(c_.config.vocab_size));
    d.label.append("sample");
    const bool drafts = c_.tokens > 1 && !c_.batched();
    bind(at.logits, {region::arena, 0, logits}, std::uint64_t{4} * c_.config.vocab_size * c_.tokens, false);
    bind(at.scratch, {region::arena, 0, scratch},
         kernels::sample_scratch_bytes(c_.config.vocab_size, c_.sample_slice()) * c_.tokens, true);
    bind(at.state, {region::state, 0, 0}, c_.state_bytes(), !drafts);
    if (drafts) bind(at.drawn, {region::arena, 0, drawn}, std::uint64_t{4} * c_.tokens, true);
    else bind(at.ring, {region::ring, 0, 0}, std::uint64_t{4} * c_.target.ring_size * c_.tokens, true);
    k.vocab_size = c_.config.vocab_size;
    k.ring_size = c_.target.ring_size;
    k.context = c_.context;
    k.max_tokens = c_.token_words();
    k.draws = drafts ? c_.tokens : 1u;
    k.slot_words = c_.slot_words();
    k.slice = c_.sample_slice();
    if (c_.target.work.sample_slices)
      bind(at.counters, {region::state, 0, c_.sample_counters()}, kernels::sample_counter_bytes(c_.tokens), true);
    d.groups = {c_.target.work.sample_slices ? kernels::sample_lists(c_.config.vocab_size, c_.sample_slice()) : 1u,
                c_.tokens, 1};
    if (const operand firsts = firsts_of(head); firsts.where != region::none) {
      bind(at.firsts, {region::arena, 0, firsts.offset}, first_bytes(head.groups[0]), false);
      k.first_count = head.groups[0];
    }
    kernels::store(k, d.specialization);
    return d;
  }

  /// The last dispatch of a pass over drafts, after the sampler: accepts drafts.
  constexpr dispatch acceptor(std::uint64_t drawn) {
    using constants = kernels::accept_kernel::constants;
    constexpr auto at = kernels::push_ids<kernels::accept_kernel>;
    constants k{};
    dispatch d{.kernel = kernels::kernel::accept};
    d_ = &d;
    d.label.append("accept");
    bind(at.drawn, {region::arena, 0, drawn}, std::uint64_t{4} * c_.tokens, false);
    bind(at.state, {region::state, 0, 0}, counters_offset(), true);
    bind(at.ring, {region::ring, 0, 0}, kernels::ring_bytes(c_.target.ring_size), true);
    k.ring_size = c_.target.ring_size;
    k.context = c_.context;
    k.max_tokens = c_.max_tokens;
    k.draws = c_.tokens;
    kernels::store(k, d.specialization);
    return d;
  }

  /// Has each workgroup of a head write its first token in the sampler's order.
  constexpr void keep_firsts(dispatch& head, std::uint64_t firsts) {
    d_ = &head;
    const auto keep = [&]<class Kernel>(std::type_identity<Kernel>) {
      bind(kernels::push_ids<Kernel>.firsts, {region::arena, 0, firsts}, first_bytes(head.groups[0]), true);
      if constexpr (requires { &Kernel::constants::keeps_firsts; })
        change_constants<Kernel>(head, [](auto& k) { k.keeps_firsts = 1; });
    };
    kernels::visit(head.kernel, keep, kernels::first_token_kernels{});
  }

  /// A head in two steps. It gives the logits of dense_matmul where they are needed. @param head its dispatch in one
  /// step
  constexpr std::array<dispatch, 2> screened(const node& n, const dispatch& head, const head_values& values) {
    kernels::head_screen_kernel::constants screened{};
    kernels::head_rescore_kernel::constants rescored{};
    weight codes = matrix(n.weights[0]), scales = codes;
    codes.layout = weight_layout::row_codes, scales.layout = weight_layout::row_scales;
    codes.bytes = std::uint64_t{codes.rows} * codes.columns, scales.bytes = std::uint64_t{4} * codes.rows;
    std::array<dispatch, 2> out{head, head};
    const std::uint64_t logits_bytes = std::uint64_t{4} * codes.rows;
    const std::uint64_t logits = head[kernels::push_ids<kernels::dense_matmul_kernel>.output].offset;
    const auto start = [&]<class Kernel>(dispatch& d, std::type_identity<Kernel>) {
      d.kernel = Kernel::id;
      d.rule = rule_index("screened_head");
      d.push = {}, d.specialization = {}, d.accesses = {}, d.access_count = 0, d.weight_bytes = 0;
      d_ = &d;
    };
    constexpr auto at = kernels::push_ids<kernels::head_screen_kernel>;
    constexpr auto to = kernels::push_ids<kernels::head_rescore_kernel>;
    start(out[0], std::type_identity<kernels::head_screen_kernel>{});
    bind_value(at.input, n.in, false);
    bind_norm(at.norm_weight, n.norm);
    bind_weight(at.codes, codes);
    bind_weight(at.scales, scales);
    bind(at.bounds, {region::arena, 0, logits}, logits_bytes, true);
    bind(at.y, {region::arena, 0, values.y}, std::uint64_t{4} * codes.columns, true);
    bind(at.lowest, {region::arena, 0, values.lowest}, std::uint64_t{4} * head.groups[0], true);
    bind_state(at.state);
    screened.eps = n.eps;
    start(out[1], std::type_identity<kernels::head_rescore_kernel>{});
    bind(to.y, {region::arena, 0, values.y}, std::uint64_t{4} * codes.columns, false);
    bind_weight(to.weight, matrix(n.weights[0]));
    d_->weight_bytes = 0;  // in most passes it reads only a few rows
    bind(to.bounds, {region::arena, 0, logits}, logits_bytes, true);
    bind(to.lowest, {region::arena, 0, values.lowest}, std::uint64_t{4} * head.groups[0], false);
    bind(to.firsts, {region::arena, 0, values.firsts}, first_bytes(head.groups[0]), true);
    bind_state(to.state);
    rescored.weight_element = codes.codec;
    rescored.lowest_count = head.groups[0];
    screened.columns = rescored.columns = codes.columns;
    screened.rows = rescored.rows = codes.rows;
    kernels::store(screened, out[0].specialization);
    kernels::store(rescored, out[1].specialization);
    return out;
  }

 private:
  /// Where a head writes the first tokens of its workgroups; none if it does not.
  static constexpr operand firsts_of(const dispatch& head) {
    operand out;
    with_constants(head, kernels::first_token_kernels{}, [&](const auto&, const auto& at) { out = head[at.firsts]; });
    return out;
  }
  static constexpr std::uint64_t first_bytes(std::uint32_t groups) { return std::uint64_t{8} * groups; }
};

template <>
struct lowering_of<kernels::head_screen_kernel> : not_of_nodes {};
template <>
struct lowering_of<kernels::head_rescore_kernel> : not_of_nodes {};
template <>
struct lowering_of<kernels::sample_kernel> : not_of_nodes {};
template <>
struct lowering_of<kernels::accept_kernel> : not_of_nodes {};

}  // namespace intaglio::plan
