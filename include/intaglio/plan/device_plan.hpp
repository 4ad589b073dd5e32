// SPDX-License-Identifier: MIT
// An engraved plan fitted to a device and proven for it: what is recorded, dispatch for dispatch.
#pragma once

#include "intaglio/core/compiler.hpp"

#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "intaglio/core/error.hpp"
#include "intaglio/plan/fit.hpp"
#include "intaglio/plan/heads_together.hpp"
#include "intaglio/plan/verify.hpp"
#include "intaglio/plan/widen.hpp"

namespace intaglio::plan {

/// What else a plan for a device depends on.
struct device_plan_options {
  std::vector<product_shape> shapes{};       ///< of products of decode, in the place of the plan's
  bool always_long = false;                  ///< chunks of long prompts on devices without matrices too
  std::optional<std::uint32_t> long_from{};  ///< instead of what is usual: device_plan::long_from
  bool sampler_forms = true;  ///< samplers of one session have an interim form that is compiled sooner, on GPUs
};

/// Owns what its tables point to; neither copies nor moves. Sequences that the device cannot run (all layers in one
/// dispatch) are empty in it.
class device_plan {
 public:
  /// @param from outlives it
  /// @error argument_error: the plan cannot be proven for the device, with the first violation
  device_plan(const plan::table& from, const device_class& device, device_plan_options options = {})
      : engraved_(&from), device_(device), options_(std::move(options)), table_(from) {
    for (const auto which : verified_sequences) table_.*which = fitted_sequence(from.*which, {});
    if (!table_.decode_in_one.in_one.empty() && !runs(from.decode_in_one.in_one.front(), device))
      table_.decode_in_one = {};
    if (!table_.batch_in_one.in_one.empty() && !runs(from.batch_in_one.in_one.front(), device))
      table_.batch_in_one = {};
    if (!table_.decode_in_one.in_one_long.empty() && !runs(from.decode_in_one.in_one_long.front(), device))
      table_.decode_in_one.in_one_long = {}, table_.decode_in_one.long_from = 0;
    for (const auto which : {&plan::table::batch, &plan::table::batch_in_one})
      for (std::uint32_t rows = 1, all = from.shape.slot_count; (rows = recorded_rows(rows, all)) < all; ++rows)
        if ((table_.*which).layers != 0) narrow(which, {rows, all});
    if (from.verify.has_head && from.verify.max_tokens > few_drafts)
      narrow(&plan::table::verify, {few_drafts, from.verify.max_tokens});
    if (from.context > long_from(false) && !has_long_layers()) attend_together();
    if (const std::uint32_t times = has_long_chunks() ? chunks_at_once(from) : 1; times != 1) widen(times);
    prove();
  }
  device_plan(const device_plan&) = delete;
  device_plan& operator=(const device_plan&) = delete;

  /// Tokens of the narrower pass over drafts.
  static constexpr std::uint32_t few_drafts = 8;

  const plan::table& engraved() const noexcept { return *engraved_; }
  /// The plan with every dispatch as it is recorded.
  const plan::table& table() const noexcept { return table_; }
  const device_class& device() const noexcept { return device_; }
  const device_plan_options& options() const noexcept { return options_; }
  /// A sequence for passes over the first `rows` of its rows, as recorded_rows() has them; of others it is the whole.
  const sequence& over(sequence plan::table::*which, std::uint32_t rows) const {
    for (const narrower& each : fewer_)
      if (each.of == which && each.rows == rows) return each.plan;
    return table_.*which;
  }
  /// A sequence with those of it for fewer rows, the whole first.
  std::vector<const sequence*> all_of(sequence plan::table::*which) const {
    std::vector<const sequence*> out{&(table_.*which)};
    for (const narrower& each : fewer_)
      if (each.of == which) out.push_back(&each.plan);
    return out;
  }
  /// Decode by the chain of dispatches whose attention has heads together, for passes from long_from() on; null where
  /// there is none.
  const sequence* long_decode() const { return long_decode_.layers == 0 ? nullptr : &long_decode_; }
  /// First position of such passes. @param in_one instead of the dispatch of all layers, which is faster until further
  /// on
  std::uint32_t long_from(bool in_one) const {
    if (options_.long_from) return *options_.long_from;
    for (const dispatch& d : engraved_->decode.period)
      if (attends_together(d, device_)) return together_from(table_.caches[d.block], in_one);
    return ~0u;
  }
  /// Prefill over chunks of long prompts, of several times as many tokens in an arena of its own size, on devices with
  /// matrices; null where there is none.
  const sequence* long_prefill() const { return long_prefill_.layers == 0 ? nullptr : &long_prefill_; }
  /// Whether samplers of one session have forms that are compiled sooner.
  bool has_sampler_forms() const { return options_.sampler_forms && !device_.offers().has(demand::wide_loads); }

 private:
  struct narrower {
    sequence plan::table::*of;
    std::uint32_t rows;
    sequence plan;
  };

  std::span<const dispatch> keep(std::vector<dispatch> list) { return lists_.emplace_back(std::move(list)); }
  sequence fitted_sequence(const sequence& from, const kernels::pass_rows& pass) {
    sequence out = from;
    out.rows = pass.rows;
    const auto fit = [&](const dispatch& d, kernels::sample_form form = kernels::sample_form::any) {
      return fitted(d, device_, pass, shape_of(d, options_.shapes), form);
    };
    for (const auto part :
         {&sequence::prologue, &sequence::period, &sequence::epilogue, &sequence::in_one, &sequence::in_one_long}) {
      std::vector<dispatch> list;
      for (const dispatch& d : from.*part) list.push_back(fit(d));
      out.*part = keep(std::move(list));
    }
    if (from.epilogue.empty() || !draws_tokens(from.epilogue.back())) return out;
    const dispatch& sampler = from.epilogue.back();
    if (!device_.offers().has(demand::wide_loads)) out.greedy = keep({fit(sampler, kernels::sample_form::greedy)});
    if (!from.batched && has_sampler_forms()) out.interim = keep({fit(sampler, kernels::sample_form::interim)});
    return out;
  }

  void narrow(sequence plan::table::*which, const kernels::pass_rows& pass) {
    sequence made = fitted_sequence(engraved_->*which, pass);
    made.narrows = &(table_.*which);
    fewer_.push_back({which, pass.rows, made});
  }

  /// Where long contexts have a form of the dispatch of all layers, or where that form is not held against the chain.
  bool has_long_layers() const {
    const auto& all = table_.decode_in_one.in_one;
    return !all.empty() && !is_held_against_chain(all.front());
  }
  [[gnu::cold]] void attend_together() {
    sequence made = engraved_->decode;
    std::vector<dispatch> list;
    for (const dispatch& d : made.period) list.push_back(attends_together(d, device_) ? with_heads_together(d) : d);
    made.period = keep(std::move(list));
    long_decode_ = fitted_sequence(made, {});
    long_decode_.name = "decode, heads together";
    long_decode_.narrows = &table_.decode;
  }
  /// Products by matrices are faster over more tokens; others are as fast, and memory may be short.
  bool has_long_chunks() const {
    const kernels::demands offers = device_.offers();
    return options_.always_long || offers.has(demand::f16_matrices) || offers.has(demand::int8_fragments);
  }
  [[gnu::cold]] void widen(std::uint32_t times) {
    sequence wide = engraved_->prefill;
    wide.max_tokens *= times, wide.arena_bytes *= times, wide.residual_offset *= times;
    for (const auto part : {&sequence::prologue, &sequence::period, &sequence::epilogue}) {
      std::vector<dispatch> list;
      for (const dispatch& d : wide.*part) list.push_back(widened(d, times));
      wide.*part = keep(std::move(list));
    }
    wide_values_.assign(wide.values.begin(), wide.values.end());
    for (placed_value& each : wide_values_) each.offset *= times, each.bytes *= times;
    wide.values = wide_values_;
    long_prefill_ = fitted_sequence(wide, {});
  }

  void prove() const {
    text<256> fault = verify_weights(table_);
    const limits limit = limits_of(device_);
    for (const auto which : verified_sequences)
      if (fault.empty()) fault = verify_sequence(table_, which, limit);
    if (fault.empty() && long_decode() != nullptr) verify(table_, long_decode_, limit, fault);
    if (fault.empty() && long_prefill() != nullptr) verify(table_, long_prefill_, limit, fault);
    for (const narrower& each : fewer_)
      if (fault.empty()) verify(table_, each.plan, limit, fault);
    if (!fault.empty())
      throw argument_error("plan of " + std::string(table_.model) + " for " + std::string(device_.name),
                           "one that can be proven", std::string(fault.view()), 220);
  }

  const plan::table* engraved_;
  device_class device_;
  device_plan_options options_;
  plan::table table_;
  std::deque<std::vector<dispatch>> lists_;
  std::vector<narrower> fewer_;
  sequence long_decode_, long_prefill_;
  std::vector<placed_value> wide_values_;
};

/// Whether a plan fits to a device and can be proven for it.
[[gnu::cold]] inline bool is_provable(const table& engraved, const device_class& device) {
  try {
    const device_plan fitted(engraved, device);
    return true;
  } catch (const argument_error&) { return false; }
}

}  // namespace intaglio::plan
