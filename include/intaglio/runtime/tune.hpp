// SPDX-License-Identifier: MIT
// Measures what is fastest on a device for a plan: the variant of the modules, and how decode's products are split over
// workgroups. Each candidate is timed in turns with the current choice; the decoded bits stay the same.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "intaglio/runtime/load_session.hpp"

namespace intaglio::runtime {

/// The result of one trial against the current choice.
struct tuning_trial {
  std::string what;                    ///< "attn_q+attn_k+attn_v: 8 subgroups x 132"
  double before_ms = 0, after_ms = 0;  ///< time of a decode pass; medians over the turns
  bool kept = false;
};
/// What tuning found: the fastest variant, and every trial with its times.
struct tuning_result {
  tuning best;
  std::vector<tuning_trial> trials;
  double plan_decode_ms = 0, decode_ms = 0;  ///< a pass of the plan and a tuned pass; medians over the turns
  double prefill_ms = 0;                     ///< time of the widest chunk with the variant
};

/// How much time is spent on measuring; compiling is not included.
struct tuning_options {
  double trial_ms = 20;                                 ///< time of the passes of one run
  std::uint32_t turns = 5;                              ///< runs of each of the two candidates
  double least_gain = 0.01;                             ///< least gain, as a share of a pass, for which a shape is kept
  std::function<void(const tuning_trial&)> on_trial{};  ///< receives each finished trial
};

/// Tunes a plan for a device. Used once.
class tuner {
 public:
  tuner(const gpu::device& on, const plan::table& table, gpu::pipeline_cache& cache, tuning_options options = {},
        module_source source = &modules_of<>)
      : device_(on), table_(&table), cache_(&cache), options_(std::move(options)), source_(source) {}

  /// Measures, and writes the result beside the pipelines of the cache, where all of them are proven then.
  /// @param weights are consumed
  /// @error device_error: no variant is right on this device; file_error: the result cannot be written; out_of_memory,
  ///   device_lost
  tuning_result run(weight_memory weights) {
    return gpu::translated([&] {
      weights_ = std::move(weights);
      choose_variant();
      share_out();
      result_.best.variant = plan::uses(*chosen_);
      keep();
      return std::move(result_);
    });
  }

 private:
  using clock = std::chrono::steady_clock;
  static constexpr double budget_ms = 250;

  /// The device classes that a start could use, without those that only replace a class whose kernels are wrong.
  std::vector<plan::device_class> candidates() const {
    std::vector<plan::device_class> out;
    const std::vector<plan::device_class> all = usable_classes(device_);
    const kernels::demands most = all.front().offers();
    for (const plan::device_class& each : all) {
      const kernels::demands offers = each.offers();
      if (offers.has(plan::demand::wide_loads) != most.has(plan::demand::wide_loads) ||
          (most.has(plan::demand::integer_dot) && !offers.has(plan::demand::integer_dot)))
        continue;
      if (each.resident_workgroups != 0 && !runs_resident(*executor::plan_for(*table_, each))) continue;
      out.push_back(each);
    }
    if (out.empty()) out.push_back(all.back());
    return out;
  }

  std::uint32_t position() const { return (std::min)(128u, table_->context / 2); }
  double decode_once(executor& run, std::uint32_t passes) const {
    const std::uint32_t id = 1;
    const auto start = clock::now();
    run.begin(pass_kind::decode, position(), {&id, 1}, {}, passes);
    while (run.completed() < passes) {
      while (run.may_submit()) run.submit(budget_ms, executor::max_buffers);
      run.wait();
    }
    return std::chrono::duration<double, std::milli>(clock::now() - start).count() / passes;
  }
  double prefill_once(executor& run) const {
    const std::vector<std::uint32_t> ids((std::min)(table_->prefill.max_tokens, table_->context), 1);
    const auto start = clock::now();
    run.begin(pass_kind::prefill, 0, ids, {}, 1);
    while (run.pending()) {
      if (!run.may_submit()) run.wait();
      run.submit(budget_ms, executor::max_buffers);
    }
    run.drain();
    return std::chrono::duration<double, std::milli>(clock::now() - start).count();
  }
  static double median(std::vector<double> of) {
    std::sort(of.begin(), of.end());
    return of[of.size() / 2];
  }
  /// Number of passes of one run, from a first pass that warms up.
  std::uint32_t passes_for(executor& run) const {
    const std::uint32_t most = (std::max)(1u, (std::min)(table_->ring_size / 4, table_->context - position()));
    decode_once(run, 1);  // CPU drivers compile then
    return static_cast<std::uint32_t>(std::clamp(
        options_.trial_ms / (std::max)(decode_once(run, (std::min)(2u, most)), 1e-3), 1.0, static_cast<double>(most)));
  }

  void choose_variant() {
    const std::vector<plan::device_class> all = candidates();
    struct times {
      double decode = 0, prefill = 0;
    };
    std::vector<std::optional<times>> found(all.size());
    kernel_fault fault;
    for (std::size_t i = 0; i < all.size(); ++i) {
      std::unique_ptr<executor> run = proven(all[i], fault);
      if (!run) continue;
      run->take_times(false);
      const std::uint32_t passes = passes_for(*run);
      prefill_once(*run);
      std::vector<double> decode, prefill;
      for (std::uint32_t turn = 0; turn < options_.turns; ++turn)
        decode.push_back(decode_once(*run, passes)), prefill.push_back(prefill_once(*run));
      found[i] = {median(decode), median(prefill)};
      weights_ = run->release_weights();
    }
    // Both count equally, each relative to the best.
    double least_decode = HUGE_VAL, least_prefill = HUGE_VAL, least = HUGE_VAL;
    for (const auto& each : found)
      if (each)
        least_decode = (std::min)(least_decode, each->decode), least_prefill = (std::min)(least_prefill, each->prefill);
    std::size_t first = all.size(), best = all.size();
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (!found[i]) continue;
      if (first == all.size()) first = i;
      const double cost = found[i]->decode / least_decode + found[i]->prefill / least_prefill;
      if (cost < least * (best == first ? 1 - options_.least_gain : 1)) least = cost, best = i;
    }
    if (first == all.size()) refuse(device_, fault);
    for (std::size_t i = 0; i < all.size(); ++i)
      if (found[i]) report({plan::uses(all[i]), found[first]->decode, found[i]->decode, i == best});
    chosen_ = all[best];
    result_.plan_decode_ms = found[first]->decode;
    result_.prefill_ms = found[best]->prefill;
    variant_gain_ = found[first]->decode - found[best]->decode;
  }

  /// @return null where a kernel differs from the reference; the weights are moved back then
  std::unique_ptr<executor> proven(const plan::device_class& of, kernel_fault& fault) {
    const auto plan = executor::plan_for(*table_, of);
    kernel_set kernels(device_);
    kernels.begin(executor::begins_with(*plan), cache_);
    if (!(fault = executor::prove_kernels(device_, *plan, kernels, weights_)).kernel.empty()) return nullptr;
    auto out = std::make_unique<executor>(device_, plan, std::move(weights_), std::move(kernels), cache_);
    fault = out->prove_resident();
    if (fault.kernel.empty()) return out;
    weights_ = out->release_weights();
    return nullptr;
  }

  /// Tries product by product, those with most weights first.
  void share_out() {
    kernel_fault fault;
    std::unique_ptr<executor> run = proven(*chosen_, fault);
    if (!run) refuse(device_, fault);
    run->take_times(false);
    const plan::sequence& of = runs_resident(run->plan()) ? table_->resident_decode : table_->decode;  // as engraved
    std::vector<const plan::dispatch*> products;
    for (const auto part : of.recorded())
      for (const plan::dispatch& call : part)
        if (plan::shares_rows(call) && std::none_of(products.begin(), products.end(), [&](const auto* each) {
              return plan::product_key(*each) == plan::product_key(call);
            }))
          products.push_back(&call);
    std::stable_sort(products.begin(), products.end(), [&](const auto* a, const auto* b) {
      return a->weight_bytes * of.times(*a) > b->weight_bytes * of.times(*b);
    });
    passes_ = passes_for(*run);
    for (const plan::dispatch* each : products) share_out(*run, *each);
    // The sum of the single gains is checked once more against the plan.
    result_.decode_ms = result_.plan_decode_ms - variant_gain_;
    if (!result_.best.shapes.empty()) {
      executor::decode_form tuned = form(*run, result_.best.shapes);
      const auto [plan_ms, tuned_ms] = by_turns(*run, tuned, 2 * options_.turns);
      const bool better = tuned_ms < plan_ms * (1 - options_.least_gain);
      report({"all of these together", plan_ms, tuned_ms, better});
      if (better) result_.plan_decode_ms = plan_ms + variant_gain_, result_.decode_ms = tuned_ms;
      else result_.best.shapes.clear();
    }
    weights_ = run->release_weights();
  }
  void share_out(executor& run, const plan::dispatch& call) {
    const std::uint32_t row_groups = (plan::rows_of(call) + 3) / 4;
    const gpu::device_limits& limits = device_.limits();
    const std::uint32_t most =
        (std::min)(tuning::most_subgroups, (std::max)(1u, limits.max_workgroup_invocations / run.subgroup_size()));
    plan::product_shape best{plan::product_key(call), call.subgroups, call.groups[0]};
    std::vector<plan::product_shape> seen{best};
    const auto attempt = [&](std::uint32_t subgroups, std::uint32_t groups) {
      groups = (std::min)(
          {(std::max)(1u, groups), (std::max)(1u, (row_groups + subgroups - 1) / subgroups), tuning::most_groups});
      const plan::product_shape shape{best.product, subgroups, groups};
      if (subgroups == 0 || subgroups > most || std::find(seen.begin(), seen.end(), shape) != seen.end()) return false;
      seen.push_back(shape);
      executor::decode_form before = form(run, with(best)), after = form(run, with(shape));
      run.exchange_decode(before);
      decode_once(run, 1);
      const auto [before_ms, after_ms] = by_turns(run, after, options_.turns);
      run.exchange_decode(before);
      const bool better = after_ms < before_ms * (1 - options_.least_gain);
      report({std::string(call.label.view()) + ": " + std::to_string(subgroups) +
                  (subgroups == 1 ? " subgroup x " : " subgroups x ") + std::to_string(groups),
              before_ms, after_ms, better});
      if (better) best = shape;
      return better;
    };
    const auto while_better = [&](auto&& next) {
      while (next()) {}
    };
    const plan::product_shape planned = best;
    if (!plan::counts_groups(call)) {
      while_better([&] { return attempt(best.subgroups, best.groups * 2); });
      if (best == planned) while_better([&] { return attempt(best.subgroups, best.groups / 2); });
    }
    // The same number of subgroups in all, in wider or narrower workgroups. CPU drivers have one subgroup a workgroup.
    if (call.subgroups > 1) {
      const plan::product_shape before = best;
      const auto scaled = [&](std::uint32_t subgroups) {
        return plan::counts_groups(call) ? best.groups : best.groups * best.subgroups / (std::max)(1u, subgroups);
      };
      while_better([&] { return attempt(best.subgroups * 2, scaled(best.subgroups * 2)); });
      if (best == before)
        while_better([&] { return best.subgroups > 1 && attempt(best.subgroups / 2, scaled(best.subgroups / 2)); });
    }
    if (best != planned) result_.best.shapes = with(best);
  }
  /// The shapes so far and this one, unless it is the plan's.
  std::vector<plan::product_shape> with(const plan::product_shape& shape) const {
    std::vector<plan::product_shape> out = result_.best.shapes;
    std::erase_if(out, [&](const plan::product_shape& each) { return each.product == shape.product; });
    out.push_back(shape);
    return out;
  }
  /// Records decode of a plan with other shapes, after proving it.
  executor::decode_form form(executor& run, std::vector<plan::product_shape> shapes) {
    return run.decode_with(executor::plan_for(*table_, *chosen_, std::move(shapes)), cache_);
  }
  /// Medians of a pass as it is recorded now, and of a pass in another form.
  std::pair<double, double> by_turns(executor& run, executor::decode_form& other, std::uint32_t turns) {
    std::vector<double> before, after;
    run.exchange_decode(other);
    decode_once(run, 1);
    for (std::uint32_t turn = 0; turn < turns; ++turn) {
      after.push_back(decode_once(run, passes_));
      run.exchange_decode(other);
      before.push_back(decode_once(run, passes_));
      run.exchange_decode(other);
    }
    run.exchange_decode(other);
    return {median(before), median(after)};
  }

  void report(tuning_trial trial) {
    if (options_.on_trial) options_.on_trial(trial);
    result_.trials.push_back(std::move(trial));
  }

  /// Proves the chosen plan in the way that a start uses it.
  void keep() {
    if (const std::string problem = keep_tuning(*cache_, result_.best); !problem.empty())
      throw file_error(tuning_path(*cache_).empty() ? "the folder of compiled pipelines" : tuning_path(*cache_),
                       std::nullopt, problem);
    cache_->set_note({});
    const std::unique_ptr<executor> last =
        proven_executor(device_, *table_, std::move(weights_), *cache_, true, source_);
    last->complete();
    cache_->store();
    const plan::device_plan& runs = last->plan();
    if (plan::uses(runs.device()) == result_.best.variant && runs.options().shapes == result_.best.shapes) return;
    forget_tuning(*cache_);  // a kernel is wrong only in that shape
    result_.best = {plan::uses(runs.device()), {}};
    result_.decode_ms = result_.plan_decode_ms;
  }

  gpu::device device_;
  const plan::table* table_;
  gpu::pipeline_cache* cache_;
  tuning_options options_;
  module_source source_;
  weight_memory weights_;
  std::optional<plan::device_class> chosen_;
  double variant_gain_ = 0;
  std::uint32_t passes_ = 1;
  tuning_result result_;
};

}  // namespace intaglio::runtime
