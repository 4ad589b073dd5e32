// SPDX-License-Identifier: MIT
// The pipelines of a plan: one for each distinct module, activation and specialization, made in parallel and kept in
// the pipeline cache. The dispatches belong to a plan that is fitted to the device (plan/device_plan.hpp).
#pragma once

#include "intaglio/core/compiler.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "intaglio/core/array_view.hpp"
#include "intaglio/core/joining_thread.hpp"
#include "intaglio/core/sorted_indices.hpp"
#include "intaglio/gpu/pipeline.hpp"
#include "intaglio/plan/device_plan.hpp"
#include "intaglio/runtime/device_class.hpp"
#include "intaglio/runtime/kernel_modules.hpp"
#include "intaglio/runtime/session_options.hpp"

namespace intaglio::runtime {

/// Maps dispatches to pipelines. It grows when a sequence is added, never between tokens. A caller that asks for a
/// pipeline which is being made waits for it. With the last copy of a set ends what it began: pipelines that are being
/// made are finished, others are not begun.
class kernel_set {
 public:
  /// @param keep_statistics for gpu::pipeline::statistics
  explicit kernel_set(const gpu::device& on, module_source modules = &modules_of<>, bool keep_statistics = false)
      : device_(on), source_(modules), keep_statistics_(keep_statistics) {}

  /// Makes the pipelines that sequences need and that are not made yet.
  /// @error device_error naming the kernel: the device refuses it; out_of_memory, device_lost
  void add(array_view<const plan::sequence* const> sequences, gpu::pipeline_cache* cache) {
    gpu::translated([&] {
      std::vector<key> wanted = wanted_of(sequences);
      const std::size_t count = wanted.size();
      make(std::move(wanted), count, cache, false);
    });
  }
  /// Adds the pipelines of some dispatches.
  void add(array_view<const plan::dispatch> calls, gpu::pipeline_cache* cache) {
    gpu::translated([&] {
      std::vector<key> wanted;
      want(calls, wanted);
      const std::size_t count = wanted.size();
      make(std::move(wanted), count, cache, false);
    });
  }
  /// Begins to make pipelines on a thread; of() and wait() report failures. @param cache must outlive wait() and must
  /// not be used until then
  /// @param later sequences whose pipelines may be made after the others' pipelines, and with them a sampler's drawing
  ///   form, where it has several forms
  void begin(array_view<const plan::sequence* const> sequences, gpu::pipeline_cache* cache,
             array_view<const plan::sequence* const> later = {}) {
    gpu::translated([&] {
      std::vector<key> wanted = wanted_of(sequences);
      const auto first = later.empty() ? wanted.end()
                                       : std::stable_partition(wanted.begin(), wanted.end(),
                                                               [&](const key& each) { return !each.may_wait; });
      const auto first_count = static_cast<std::size_t>(first - wanted.begin());
      for (const key& each : wanted_of(later))
        if (find(wanted, each) == wanted.size()) wanted.push_back(each);
      make(std::move(wanted), first_count, cache, true);
    });
  }
  /// Waits until all pipelines are made. @error as add()
  void wait() const {
    for (const auto& each : builds_) each->wait();
  }
  /// Waits for the pipelines that begin() makes first. @param look is called meanwhile  @error as add(); what `look`
  /// throws
  void wait_for_first(const load_look& look) const {
    for (const auto& each : builds_) each->wait_for_first(look);
  }
  /// Whether wait() would return at once.
  bool ready() const {
    return std::all_of(builds_.begin(), builds_.end(), [](const auto& each) { return each->ended(); });
  }

  /// Whether the pipelines of dispatches are made, except the drawing form of a sampler with several forms. @error as
  /// add()
  bool made(array_view<const plan::dispatch> calls) const {
    return std::all_of(calls.begin(), calls.end(), [&](const plan::dispatch& call) {
      const std::size_t at = find(keys_, key_of(call));
      return at < locations_.size() && (keys_[at].may_wait || locations_[at].in->made(locations_[at].index));
    });
  }

  /// The pipeline of a dispatch; waits until it is made. @error as add(); argument_error: a dispatch whose pipeline was
  /// not requested
  /// @param look is called while it waits; what it throws ends the wait
  const gpu::pipeline& of(const plan::dispatch& call, const load_look& look = {}) const {
    const std::size_t index = find(keys_, key_of(call));
    if (index == locations_.size())
      throw argument_error("dispatch " + std::string(call.label.view()), "one whose pipeline is there", "another");
    return locations_[index].in->of(locations_[index].index, look);
  }
  /// gpu::hash_of_module of the module that a dispatch was planned with. @error as of()
  std::uint64_t module_hash(const plan::dispatch& call) const {
    static_cast<void>(of(call));
    const location& its = locations_[find(keys_, key_of(call))];
    return its.in->module_hash(its.index);
  }
  std::size_t size() const noexcept { return keys_.size(); }
  module_source source() const noexcept { return source_; }
  std::uint32_t subgroup_size() const { return choose_subgroup(device_.limits()).size; }

 private:
  struct key {
    kernels::variant variant{};
    bool unrolls = false;
    const shader::expression* activation = nullptr;
    kernels::constant_words values{};
    bool may_wait = false;  ///< of a sampler that has other forms; not part of the key's identity
    friend bool operator==(const key& a, const key& b) {
      return a.variant == b.variant && a.unrolls == b.unrolls && a.activation == b.activation && a.values == b.values;
    }
  };
  static key key_of(const plan::dispatch& call) {
    return {call.variant, call.unrolls, call.activation, call.specialization};
  }
  /// @param may_wait whether the last dispatch's pipeline may be made later
  void want(array_view<const plan::dispatch> calls, std::vector<key>& wanted, bool may_wait = false) const {
    for (const plan::dispatch& call : calls) {
      key its = key_of(call);
      its.may_wait = may_wait && &call == &calls.back();
      if (find(keys_, its) == keys_.size() && find(wanted, its) == wanted.size()) wanted.push_back(its);
    }
  }
  /// Pipelines that are made together. It does not move, since its thread has its address.
  class build {
   public:
    /// @param first_count number of wanted pipelines that are begun before the others
    build(const gpu::device& on, module_source source, bool keep_statistics, std::vector<key> wanted,
          std::size_t first_count, gpu::pipeline_cache* cache, bool apart)
        : device_(on), source_(source), keep_statistics_(keep_statistics), wanted_(std::move(wanted)),
          first_count_(first_count), cache_(cache), pipelines_(wanted_.size()), made_(wanted_.size()),
          module_hashes_(wanted_.size()) {
      if (apart) try {
          thread_ = joining_thread([this]() noexcept { run(); });
          return;
        } catch (const std::system_error&) {  // no thread is available
        }
      run();
    }
    ~build() { abandoned_ = true; }  // then the thread is joined
    build(const build&) = delete;
    build& operator=(const build&) = delete;

    const gpu::pipeline& of(std::size_t index, const load_look& look) {
      std::unique_lock own(mutex_);
      const auto known = [&] { return made_[index] || ended_; };
      while (look && !changed_.wait_for(own, std::chrono::milliseconds(50), known)) {
        own.unlock();
        look();
        own.lock();
      }
      changed_.wait(own, known);
      if (!made_[index]) std::rethrow_exception(failure_);
      return pipelines_[index];
    }
    std::uint64_t module_hash(std::size_t index) {
      const std::lock_guard own(mutex_);
      return module_hashes_[index];
    }
    bool made(std::size_t index) {
      const std::lock_guard own(mutex_);
      if (ended_ && !made_[index]) std::rethrow_exception(failure_);
      return made_[index];
    }
    void wait_for_first(const load_look& look) {
      for (std::size_t i = 0; i < first_count_; ++i) static_cast<void>(of(i, look));
    }
    bool ended() {
      const std::lock_guard own(mutex_);
      return ended_;
    }
    void wait() {
      std::unique_lock own(mutex_);
      changed_.wait(own, [&] { return ended_; });
      if (failure_) std::rethrow_exception(failure_);
    }

   private:
    void run() noexcept {
      std::exception_ptr failure;
      try {
        gpu::translated([&] { compile(); });
      } catch (...) { failure = std::current_exception(); }
      {
        const std::lock_guard own(mutex_);
        failure_ = failure;
        ended_ = true;
      }
      changed_.notify_all();
    }
    void require_waiting() const {
      if (abandoned_) throw std::runtime_error("nobody waits for more pipelines");
    }
    [[gnu::cold]] void compile() {
      std::vector<std::array<gpu::specialization, kernels::max_specialization_constants>> constants(wanted_.size());
      std::vector<std::vector<std::uint32_t>> patched(wanted_.size());
      std::vector<gpu::pipeline_description> descriptions;
      std::vector<std::size_t> order;
      for (std::size_t i = 0; i < wanted_.size(); ++i) {
        require_waiting();
        const key& its = wanted_[i];
        const kernels::kernel_interface& face = kernels::interface_of(kernels::kernel_of(its.variant));
        const std::size_t count = face.specialization_count();
        for (std::uint32_t id = 0; id < count; ++id) constants[i][id] = {id, its.values[id]};
        const std::span<const std::byte> module = source_(its.variant);
        if (its.activation != nullptr) patched[i] = patched_module(module, *its.activation, its.variant, its.unrolls);
        descriptions.push_back({.name = face.name,
                                .spirv = patched[i].empty() ? module : std::as_bytes(std::span(patched[i])),
                                .constants = std::span(constants[i]).first(count),
                                .push_constant_bytes = face.push_bytes(),
                                .required_subgroup_size = choose_subgroup(device_.limits()).required,
                                .keep_statistics = keep_statistics_});
        order.push_back(i);
        const std::uint64_t hash = gpu::hash_of_module(descriptions.back().spirv);
        const std::lock_guard own(mutex_);
        module_hashes_[i] = hash;
      }
      // The largest first: they take the longest.
      const auto larger = [&](std::size_t a, std::size_t b) {
        return descriptions[a].spirv.size() > descriptions[b].spirv.size();
      };
      sort_indices(std::span(order).first(first_count_), larger);
      sort_indices(std::span(order).subspan(first_count_), larger);
      std::vector<gpu::pipeline_description> sorted;
      for (const std::size_t i : order) sorted.push_back(descriptions[i]);
      gpu::build_pipelines(device_, sorted, cache_, 0, [&](std::size_t i, gpu::pipeline&& made) {
        require_waiting();  // else all threads end
        {
          const std::lock_guard own(mutex_);
          pipelines_[order[i]] = std::move(made);
          made_[order[i]] = true;
        }
        changed_.notify_all();
      });
    }

    gpu::device device_;
    module_source source_;
    bool keep_statistics_;
    std::vector<key> wanted_;
    std::size_t first_count_;
    gpu::pipeline_cache* cache_;
    std::vector<gpu::pipeline> pipelines_;  ///< by wanted_
    std::vector<bool> made_;
    std::vector<std::uint64_t> module_hashes_;  ///< by wanted_
    std::atomic<bool> abandoned_{false};
    bool ended_ = false;
    std::exception_ptr failure_;
    std::mutex mutex_;  ///< protects pipelines_, made_, module_hashes_, ended_ and failure_
    std::condition_variable changed_;
    joining_thread thread_;  // destroyed first
  };
  std::vector<key> wanted_of(array_view<const plan::sequence* const> sequences) const {
    std::vector<key> wanted;
    for (const plan::sequence* each : sequences) {
      for (const auto part : each->recorded())
        want(part, wanted, part.data() == each->epilogue.data() && !each->interim.empty());
      for (const auto part : {each->greedy, each->interim, each->resident_long}) want(part, wanted);
    }
    return wanted;
  }
  /// @param apart make them on a thread; otherwise nothing is kept of a build that fails
  void make(std::vector<key> wanted, std::size_t first_count, gpu::pipeline_cache* cache, bool apart) {
    if (wanted.empty()) return;
    auto made = std::make_shared<build>(device_, source_, keep_statistics_, wanted, first_count, cache, apart);
    if (!apart) made->wait();
    builds_.push_back(std::move(made));
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      keys_.push_back(wanted[i]);
      locations_.push_back({builds_.back().get(), i});
    }
  }
  static std::size_t find(const std::vector<key>& in, const key& wanted) {
    return static_cast<std::size_t>(std::find(in.begin(), in.end(), wanted) - in.begin());
  }

  gpu::device device_;
  module_source source_;
  bool keep_statistics_;
  struct location {
    build* in = nullptr;
    std::size_t index = 0;
  };
  std::vector<key> keys_;
  std::vector<location> locations_;             ///< by keys_
  std::vector<std::shared_ptr<build>> builds_;  ///< shared with copies
};

}  // namespace intaglio::runtime
