// SPDX-License-Identifier: MIT
// An engraved plan that is fitted to a device and proven for it: every dispatch exactly as it is recorded.
#pragma once

#include "intaglio/core/compiler.hpp"

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "intaglio/core/array_view.hpp"
#include "intaglio/core/error.hpp"
#include "intaglio/plan/fit.hpp"
#include "intaglio/plan/heads_together.hpp"
#include "intaglio/plan/verify.hpp"
#include "intaglio/plan/widen.hpp"

namespace intaglio::plan {

/// Options of a plan for a device.
struct device_plan_options {
  std::vector<product_shape> shapes{};       ///< of decode's products, which replace the plan's shapes
  bool always_long = false;                  ///< wide chunks of long prompts also on devices without matrices
  std::optional<std::uint32_t> long_from{};  ///< replaces the default of device_plan::long_from
  bool sampler_forms = true;  ///< on GPUs: one session's samplers get an interim form, which compiles sooner
};

/// A plan for one device. It owns everything that its tables point to; it neither copies nor moves. Sequences that the
/// device cannot run (the resident dispatch) are empty in it.
class device_plan {
 public:
  /// @param from an engraved plan that outlives this one
  /// @error argument_error: the plan cannot be proven for the device, with the first violation
  device_plan(const plan::table& from, const device_class& device, device_plan_options options = {})
      : engraved_(&from), device_(device), options_(std::move(options)), table_(from) {
    for (const auto which : verified_sequences) table_.*which = fitted_sequence(from.*which, {});
    if (!table_.resident_decode.resident.empty() && !runs(from.resident_decode.resident.front(), device))
      table_.resident_decode = {};
    if (!table_.resident_batch.resident.empty() && !runs(from.resident_batch.resident.front(), device))
      table_.resident_batch = {};
    if (!table_.resident_decode.resident_long.empty() && !runs(from.resident_decode.resident_long.front(), device))
      table_.resident_decode.resident_long = {}, table_.resident_decode.long_from = 0;
    for (const auto which : {&plan::table::batch, &plan::table::resident_batch})
      for (std::uint32_t rows = 1, all = from.shape.slot_count; (rows = recorded_rows(rows, all)) < all; ++rows)
        if ((table_.*which).layers != 0) narrow(which, {rows, all});
    if (from.verify.has_head && from.verify.max_tokens > short_drafts)
      narrow(&plan::table::verify, {short_drafts, from.verify.max_tokens});
    if (from.context > long_from(false) && !has_long_layers()) attend_together();
    if (const std::uint32_t times = has_long_chunks() ? chunks_at_once(from) : 1; times != 1) widen(times);
    prove();
  }
  device_plan(const device_plan&) = delete;
  device_plan& operator=(const device_plan&) = delete;

  /// Tokens of the narrower one of the two passes over drafts.
  static constexpr std::uint32_t short_drafts = 8;

  const plan::table& engraved() const noexcept { return *engraved_; }
  /// The plan, with every dispatch as it is recorded.
  const plan::table& table() const noexcept { return table_; }
  const device_class& device() const noexcept { return device_; }
  const device_plan_options& options() const noexcept { return options_; }
  /// The form of a sequence for passes over its first `rows` rows; the whole sequence if recorded_rows() never gives
  /// that number.
  const sequence& over(sequence plan::table::*which, std::uint32_t rows) const {
    for (const narrower& each : fewer_)
      if (each.of == which && each.rows == rows) return each.plan;
    return table_.*which;
  }
  /// A sequence and its narrower forms, the whole sequence first.
  std::vector<const sequence*> all_of(sequence plan::table::*which) const {
    std::vector<const sequence*> out{&(table_.*which)};
    for (const narrower& each : fewer_)
      if (each.of == which) out.push_back(&each.plan);
    return out;
  }
  /// Decode by the chain of dispatches, with an attention that computes heads that share keys and values together. It
  /// is for passes from position long_from() on; null where the device has no such attention.
  const sequence* long_decode() const { return long_decode_.layers == 0 ? nullptr : &long_decode_; }
  /// First position at which long_decode() is used.
  /// @param resident true: it replaces the resident dispatch, which stays faster than the chain up to a later position
  std::uint32_t long_from(bool resident) const {
    if (options_.long_from) return *options_.long_from;
    for (const dispatch& d : engraved_->decode.period)
      if (attends_together(d, device_)) return together_from(table_.caches[d.block], resident);
    return ~0u;
  }
  /// Prefill of long prompts in wide chunks, of several times as many tokens, with an arena of its own size. Null on
  /// devices without cooperative matrices.
  const sequence* long_prefill() const { return long_prefill_.layers == 0 ? nullptr : &long_prefill_; }
  /// Whether one session's samplers have interim forms that compile sooner.
  bool has_sampler_forms() const { return options_.sampler_forms && !device_.offers().has(demand::wide_loads); }

 private:
  struct narrower {
    sequence plan::table::*of;
    std::uint32_t rows;
    sequence plan;
  };

  array_view<const dispatch> keep(std::vector<dispatch> list) { return lists_.emplace_back(std::move(list)); }
  sequence fitted_sequence(const sequence& from, const kernels::pass_rows& pass) {
    sequence out = from;
    out.rows = pass.rows;
    const auto fit = [&](const dispatch& d, kernels::sample_form form = kernels::sample_form::any) {
      return fitted(d, device_, pass, shape_of(d, options_.shapes), form);
    };
    for (const auto part :
         {&sequence::prologue, &sequence::period, &sequence::epilogue, &sequence::resident, &sequence::resident_long}) {
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

  /// Whether long contexts also decode in the resident dispatch: where there is one that is not checked against the
  /// chain.
  bool has_long_layers() const {
    const auto& all = table_.resident_decode.resident;
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
  /// Products by cooperative matrices run faster over more tokens. Other products do not, and memory may be short.
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

/// Whether a plan fits a device and can be proven for it.
[[gnu::cold]] inline bool is_provable(const table& engraved, const device_class& device) {
  try {
    const device_plan fitted(engraved, device);
    return true;
  } catch (const argument_error&) { return false; }
}

}  // namespace intaglio::plan
