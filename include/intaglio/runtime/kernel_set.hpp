// SPDX-License-Identifier: MIT
// The pipelines of a plan: one for each distinct kernel, activation and specialization, made in parallel, kept in the
// pipeline cache.
#pragma once

#include <algorithm>
#include <array>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "intaglio/gpu/pipeline.hpp"
#include "intaglio/plan/table.hpp"
#include "intaglio/runtime/kernel_modules.hpp"

namespace intaglio::runtime {

/// Pipelines by dispatch. Grows when another sequence is added, never between tokens. Those that are begun are waited
/// for by whoever asks for one of them.
class kernel_set {
 public:
  /// @param sampler_forms makes a sampler's other forms as well, wherever it is asked for one of a session alone
  kernel_set(const gpu::device& on, const kernel_modules& modules, bool sampler_forms = false)
      : device_(on), modules_(modules), subgroup_(choose_subgroup(on.limits())), sampler_forms_(sampler_forms) {}

  /// Makes what the dispatches of sequences need and what is not there yet.
  /// @error device_error naming the kernel: the device refuses it; out_of_memory, device_lost
  void add(std::span<const plan::sequence* const> sequences, gpu::pipeline_cache* cache) {
    gpu::translated([&] {
      std::vector<key> wanted = wanted_of(sequences);
      const std::size_t count = wanted.size();
      make(std::move(wanted), count, cache, false);
    });
  }
  /// The same for some dispatches.
  void add(std::span<const plan::dispatch> calls, gpu::pipeline_cache* cache) {
    gpu::translated([&] {
      std::vector<key> wanted;
      want(calls, wanted);
      const std::size_t count = wanted.size();
      make(std::move(wanted), count, cache, false);
    });
  }
  /// Begins to make them, on a thread; what fails is told of by of() and wait(). @param cache outlives wait(), and is
  /// asked for nothing until then
  /// @param later whose pipelines may come when those of the others are there, and with them a sampler's drawing form,
  /// where it has several
  void begin(std::span<const plan::sequence* const> sequences, gpu::pipeline_cache* cache,
             std::span<const plan::sequence* const> later = {}) {
    gpu::translated([&] {
      std::vector<key> wanted = wanted_of(sequences);
      const auto first = later.empty() ? wanted.end()
                                       : std::stable_partition(wanted.begin(), wanted.end(),
                                                               [&](const key& each) { return !is_drawing_form(each); });
      const auto first_count = static_cast<std::size_t>(first - wanted.begin());
      for (const key& each : wanted_of(later))
        if (find(wanted, each) == wanted.size()) wanted.push_back(each);
      make(std::move(wanted), first_count, cache, true);
    });
  }
  /// Returns when all are made. @error as of add()
  void wait() const {
    for (const auto& each : builds_) each->wait();
  }
  /// Whether wait() returns at once.
  bool ready() const {
    return std::all_of(builds_.begin(), builds_.end(), [](const auto& each) { return each->ended(); });
  }

  /// Whether those of dispatches are made, but for a sampler's drawing form, where it has several. @error as of add()
  bool made(std::span<const plan::dispatch> calls) const {
    std::vector<key> wanted;
    want(calls, wanted, true);
    return std::all_of(wanted.begin(), wanted.end(), [&](const key& each) {
      if (is_drawing_form(each)) return true;
      const std::size_t at = find(keys_, each);
      return at < places_.size() && places_[at].in->made(places_[at].index);
    });
  }

  const kernel_modules& modules() const noexcept { return modules_; }
  /// The same pipelines, and room for those of other shapes.
  kernel_set reshaped(std::shared_ptr<const tuning> shapes) const {
    kernel_set out(*this);
    out.modules_.tuned = std::move(shapes);
    return out;
  }
  /// Whether the dispatch is a sampler with all forms.
  bool has_forms(const plan::dispatch& call) const { return sampler_forms_ && is_sampler(call) && !is_batched(call); }
  /// Forms of a sampler beside that of the plan: of a batch the one that draws nothing, but on CPUs.
  std::span<const kernels::sample_form> forms_of(const plan::dispatch& call) const {
    static constexpr std::array all{kernels::sample_form::greedy, kernels::sample_form::interim};
    return std::span(all).first(has_forms(call)                                                ? all.size()
                                : is_sampler(call) && is_batched(call) && !modules_.wide_loads ? 1
                                                                                               : 0);
  }
  bool has_forms(const plan::sequence& of) const { return !of.epilogue.empty() && has_forms(of.epilogue.back()); }
  /// Waits until it is made. @param rows of a batch that a pass has; 0: all  @param form of a dispatch that has several
  /// @error as of add()
  const gpu::pipeline& of(const plan::dispatch& call, std::uint32_t rows = 0,
                          kernels::sample_form form = kernels::sample_form::any) const {
    const place& at = places_[find(keys_, key_of(call, rows, has(call, form) ? form : kernels::sample_form::any))];
    return at.in->of(at.index);
  }
  /// Workgroups of a dispatch. @param all rows of the sequence, if `rows` is not 0  @param form as in of()
  std::array<std::uint32_t, 3> groups_of(const plan::dispatch& call, std::uint32_t rows = 0, std::uint32_t all = 0,
                                         kernels::sample_form form = kernels::sample_form::any) const {
    std::array<std::uint32_t, 3> out = call.groups;
    if (const tuned_shape* other = modules_.tuned ? modules_.tuned->of(call) : nullptr) out[0] = other->groups;
    if (plan::is_resident(call)) out[0] = modules_.resident_parts(call);
    if (form == kernels::sample_form::greedy && has(call, form) && is_batched(call))
      out[0] = (std::min)(out[0], kernels::sample_greedy_workers);
    const bool chunk = call.kernel == kernels::kernel::matmul_chunk;  // tokens are x of its grid
    if (const kernels::few_tile by = tile_of(call, rows); by.rows != 0) {
      const std::uint32_t of_rows = (constant(call, "rows") + by.rows - 1) / by.rows;
      const std::uint32_t of_tokens = lists_tokens(call)
                                          ? lists_of(call, rows) * (constant(call, "list_tokens") / by.tokens)
                                          : ((rows != 0 ? rows : tokens_of(call)) + by.tokens - 1) / by.tokens;
      return {chunk ? of_tokens : of_rows, chunk ? of_rows : of_tokens, 1};
    }
    if (lists_tokens(call)) out[1] = lists_of(call, rows) * parts_of(call);
    else if (rows != 0) out[chunk ? 0 : 1] = (std::max)(1u, out[chunk ? 0 : 1] * rows / all);
    return out;
  }
  /// Whether it is a product of few tokens by matrices, whose tiles are those of the device and not of the plan.
  bool takes_matrices(const plan::dispatch& call, std::uint32_t rows = 0) const {
    return tile_of(call, rows).rows != 0 && !takes_fragments(call);
  }
  /// Whether `fixed` leaves x tiled and matmul_few reads it so (kernels::fixed_interface): on devices that multiply
  /// matrices, where slots are whole tiles.
  bool takes_tiles(const plan::dispatch& call, std::uint32_t rows = 0) const {
    const bool makes = call.kernel == kernels::kernel::fixed;
    if (!modules_.few_matrix || (!makes && call.kernel != kernels::kernel::matmul_few) || lists_tokens(call) ||
        tokens_of(call) % 8 != 0)
      return false;
    const auto type = makes ? constant(call, "tiled") != 0 ? kernels::codec::q8_0 : kernels::codec::q6_k
                            : static_cast<kernels::codec>(constant(call, "codec"));
    return kernels::wants_tiles(type, rows != 0 ? rows : tokens_of(call));
  }
  /// Whether `halves` leaves x tiled and matmul_chunk reads it so: in passes over a few tokens on devices that multiply
  /// matrices of f16.
  bool takes_tiled_halves(const plan::dispatch& call) const { return order_of(call) == kernels::halves_order::tiles; }
  /// Whether it is a product of a chunk by fragments, or makes x for one.
  bool takes_fragments(const plan::dispatch& call) const { return order_of(call) > kernels::halves_order::tiles; }
  /// How `halves` leaves x on this device, and how matmul_chunk reads it.
  kernels::halves_order order_of(const plan::dispatch& call) const {
    using kernels::halves_order;
    const bool makes = call.kernel == kernels::kernel::halves;
    if (!makes && call.kernel != kernels::kernel::matmul_chunk) return halves_order::rows;
    const auto wanted = makes                    ? static_cast<halves_order>(constant(call, "tiled"))
                        : takes_few_tokens(call) ? halves_order::tiles
                        : constant(call, "tile_tokens") > kernels::most_few_tokens &&
                                kernels::takes_fragments(static_cast<kernels::codec>(constant(call, "codec")),
                                                         constant(call, "rows"), constant(call, "columns"))
                            ? kernels::fragment_order(static_cast<kernels::codec>(constant(call, "codec")))
                            : halves_order::rows;
    const bool has = wanted == halves_order::tiles ? modules_.few_halves : modules_.half_fragments;
    return has ? wanted : halves_order::rows;
  }
  /// Of matmul_chunk: a pass over a few tokens, whole tiles of eight.
  static bool takes_few_tokens(const plan::dispatch& call) {
    return call.kernel == kernels::kernel::matmul_chunk && constant(call, "tile_tokens") <= kernels::most_few_tokens &&
           tokens_of(call) % 8 == 0;
  }
  /// Passes over how many rows have pipelines of their own, beside those over all.
  std::vector<std::uint32_t> rows_of(const plan::dispatch& call) const {
    std::vector<std::uint32_t> out;
    if (computes_rows_in_use(call))
      for (std::uint32_t rows = 8; rows < constant(call, "slots"); rows *= 2)
        if (constant(call, "slots") % rows == 0) out.push_back(rows);
    if (((takes_matrices(call) || takes_tiled_halves(call)) && !lists_tokens(call)) ||
        (call.kernel == kernels::kernel::fixed && modules_.few_matrix && constant(call, "tiled") != 0))
      for (std::uint32_t rows = 8; rows < tokens_of(call); rows *= 2) out.push_back(rows);
    return out;
  }
  /// Whether it takes tokens by lists of expert_tiles.
  static bool lists_tokens(const plan::dispatch& call) {
    return (call.kernel == kernels::kernel::matmul_few && constant(call, "experts_used") != 0) ||
           (call.kernel == kernels::kernel::matmul && constant(call, "experts_used") != 0 &&
            constant(call, "tile_tokens") > 1);
  }
  std::size_t size() const noexcept { return keys_.size(); }
  std::uint32_t subgroup_size() const noexcept { return subgroup_.size; }

 private:
  struct key {
    kernels::kernel kernel;
    const shader::expression* activation;
    std::array<std::uint32_t, kernels::max_specialization_constants> values;
    bool few_matrix = false, few_tiled = false, few_halves = false, half_fragments = false;
    friend bool operator==(const key&, const key&) = default;
  };
  static std::uint32_t constant(const plan::dispatch& call, std::string_view name) {
    return call.specialization[kernels::interface_of(call.kernel).specialization_index(name)];
  }
  /// Of one token, or of each of a batch.
  static bool is_sampler(const plan::dispatch& call) {
    return call.kernel == kernels::kernel::sample && constant(call, "draws") == 1;
  }
  static bool is_batched(const plan::dispatch& sampler) { return constant(sampler, "slot_words") != 0; }
  bool has(const plan::dispatch& call, kernels::sample_form form) const {
    const auto forms = forms_of(call);
    return std::ranges::find(forms, form) != forms.end();
  }
  /// Whether a row's numbers are the same whichever of its pipelines computes them.
  static bool computes_rows_in_use(const plan::dispatch& call) {
    return call.kernel == kernels::kernel::layers_ternary_few || plan::has_helpers(call);
  }
  bool is_drawing_form(const key& of) const {
    const kernels::kernel_interface& face = kernels::interface_of(of.kernel);
    return sampler_forms_ && of.kernel == kernels::kernel::sample &&
           of.values[face.specialization_index("form")] == static_cast<std::uint32_t>(kernels::sample_form::any);
  }
  static std::uint32_t tokens_of(const plan::dispatch& call) {
    if (call.kernel == kernels::kernel::matmul_chunk) return constant(call, "max_tokens");
    const bool prepares = call.kernel == kernels::kernel::fixed || call.kernel == kernels::kernel::halves;
    return call.groups[1] * (prepares ? 1 : constant(call, "tile_tokens"));
  }
  /// How many workgroups (y) share a list of expert_tiles, and how many lists so many rows, 0 being all, take at most.
  static std::uint32_t parts_of(const plan::dispatch& call) {
    return call.kernel == kernels::kernel::matmul ? 1 : constant(call, "list_tokens") / constant(call, "tile_tokens");
  }
  static std::uint32_t lists_of(const plan::dispatch& call, std::uint32_t rows) {
    const std::uint32_t all = call.groups[1] / parts_of(call);
    return rows == 0 ? all : (std::min)(all, rows * constant(call, "experts_used"));
  }
  /// No rows: not by matrices.
  kernels::few_tile tile_of(const plan::dispatch& call, std::uint32_t rows) const {
    if (call.kernel == kernels::kernel::matmul_chunk) {
      if (takes_tiled_halves(call))
        return kernels::few_chunk_tile(constant(call, "rows"), rows != 0 ? rows : tokens_of(call));
      return takes_fragments(call) ? kernels::fragment_tile(static_cast<kernels::codec>(constant(call, "codec")),
                                                            constant(call, "rows"), tokens_of(call))
                                   : kernels::few_tile{};
    }
    if (!modules_.few_matrix ||
        (call.kernel != kernels::kernel::matmul_few && call.kernel != kernels::kernel::ternary_few))
      return {};
    if (lists_tokens(call)) {
      const kernels::few_tile out =
          kernels::few_matrix_tile(call.kernel, constant(call, "rows"), constant(call, "list_tokens"));
      return out.tokens != 0 && constant(call, "list_tokens") % out.tokens == 0 ? out : kernels::few_tile{};
    }
    const std::uint32_t tokens = rows != 0 ? rows : tokens_of(call);
    return takes_tiles(call, rows) ? kernels::tiled_few_tile(tokens)
                                   : kernels::few_matrix_tile(call.kernel, constant(call, "rows"), tokens);
  }
  key key_of(const plan::dispatch& call, std::uint32_t rows = 0,
             kernels::sample_form form = kernels::sample_form::any) const {
    key out{call.kernel, call.activation, call.specialization};
    const tuned_shape* const other = modules_.tuned ? modules_.tuned->of(call) : nullptr;
    out.values[0] = (other != nullptr ? other->subgroups : call.subgroups) * subgroup_.size;
    const kernels::kernel_interface& face = kernels::interface_of(call.kernel);
    if (plan::is_resident(call) && modules_.resident_parts(call) != call.groups[0])
      out.values[face.specialization_index("parts")] = modules_.resident_parts(call);
    if (computes_rows_in_use(call) && rows != 0)
      out.values[face.specialization_index("slots")] = (std::min)(rows, constant(call, "slots"));
    if (form != kernels::sample_form::any)
      out.values[face.specialization_index("form")] = static_cast<std::uint32_t>(form);
    if (const std::size_t width = face.specialization_index("subgroup_width"); width < face.specialization_count())
      out.values[width] = subgroup_.size;
    if (const kernels::few_tile by = tile_of(call, rows); by.rows != 0) {
      out.few_matrix = call.kernel != kernels::kernel::matmul_chunk;
      out.half_fragments = takes_fragments(call);
      out.few_halves = !out.few_matrix && !out.half_fragments;
      out.few_tiled = takes_tiles(call, rows);
      out.values[0] = by.subgroups * subgroup_.size;
      out.values[face.specialization_index("tile_rows")] = by.rows;
      out.values[face.specialization_index("tile_tokens")] = by.tokens;
    }
    if (call.kernel == kernels::kernel::fixed)
      out.values[face.specialization_index("tiled")] = takes_tiles(call, rows) ? 1 : 0;
    if (call.kernel == kernels::kernel::halves)
      out.values[face.specialization_index("tiled")] = static_cast<std::uint32_t>(order_of(call));
    if (call.kernel == kernels::kernel::matmul) {
      const auto constant = [&](std::string_view name) -> std::uint32_t& {
        return out.values[face.specialization_index(name)];
      };
      constexpr std::uint64_t rest = 2048;  // a norm's sums
      if (std::uint32_t& staged = constant("staged"); staged == kernels::staged_where_room)
        staged = kernels::matmul_staged_bytes(static_cast<kernels::codec>(constant("codec")), constant("columns"),
                                              constant("tile_tokens")) +
                             rest <=
                         device_.limits().max_shared_memory_bytes
                     ? 1
                     : 0;
    }
    return out;
  }
  /// @param all also those that are there
  void want(std::span<const plan::dispatch> calls, std::vector<key>& wanted, bool all = false) const {
    const auto take = [&](const key& its) {
      if ((all || find(keys_, its) == keys_.size()) && find(wanted, its) == wanted.size()) wanted.push_back(its);
    };
    for (const auto& call : calls) {
      std::vector<std::uint32_t> passes = rows_of(call);
      passes.push_back(0);
      for (const kernels::sample_form each : forms_of(call)) take(key_of(call, 0, each));
      for (const std::uint32_t rows : passes) take(key_of(call, rows));
    }
  }
  /// Pipelines that are made together. Does not move: its thread has its address.
  class build {
   public:
    /// @param first_count of those wanted, which are begun before the others
    build(const gpu::device& on, const kernel_modules& modules, std::uint32_t required_subgroup_size,
          std::vector<key> wanted, std::size_t first_count, gpu::pipeline_cache* cache, bool apart)
        : device_(on), modules_(modules), required_subgroup_size_(required_subgroup_size), wanted_(std::move(wanted)),
          first_count_(first_count), cache_(cache), pipelines_(wanted_.size()), made_(wanted_.size()) {
      if (apart) try {
          thread_ = std::jthread([this]() noexcept { run(); });
          return;
        } catch (const std::system_error&) {  // no thread to be had
        }
      run();
    }
    build(const build&) = delete;
    build& operator=(const build&) = delete;

    const gpu::pipeline& of(std::size_t index) {
      std::unique_lock own(mutex_);
      changed_.wait(own, [&] { return made_[index] || ended_; });
      if (!made_[index]) std::rethrow_exception(failure_);
      return pipelines_[index];
    }
    bool made(std::size_t index) {
      const std::lock_guard own(mutex_);
      if (ended_ && !made_[index]) std::rethrow_exception(failure_);
      return made_[index];
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
    void compile() {
      std::vector<std::array<gpu::specialization, kernels::max_specialization_constants>> constants(wanted_.size());
      std::vector<std::vector<std::uint32_t>> gating(wanted_.size());
      std::vector<gpu::pipeline_description> descriptions;
      std::vector<std::size_t> order;
      for (std::size_t i = 0; i < wanted_.size(); ++i) {
        const kernels::kernel_interface& face = kernels::interface_of(wanted_[i].kernel);
        const std::size_t count = face.specialization_count();
        for (std::uint32_t id = 0; id < count; ++id) constants[i][id] = {id, wanted_[i].values[id]};
        kernel_modules modules = modules_;
        modules.few_matrix = wanted_[i].few_matrix;
        modules.few_tiled = wanted_[i].few_tiled;
        modules.few_halves = wanted_[i].few_halves;
        modules.half_fragments = wanted_[i].half_fragments;
        if (wanted_[i].kernel == kernels::kernel::matmul_chunk &&
            wanted_[i].values[face.specialization_index("tile_tokens")] <= kernels::most_few_tokens)
          modules.half_matrix = false;  // its tiles are wider
        if (wanted_[i].kernel == kernels::kernel::layers)
          modules.long_contexts = wanted_[i].values[face.specialization_index("heads_together")] != 1;
        if (wanted_[i].kernel == kernels::kernel::layers_coded)
          modules.dense_layers = kernels::layers_coded::is_dense(wanted_[i].values[face.specialization_index("codec")]);
        if (wanted_[i].activation != nullptr) gating[i] = modules.with(wanted_[i].kernel, *wanted_[i].activation);
        if (wanted_[i].kernel == kernels::kernel::layers_coded)
          kernels::hint_loops(gating[i], kernels::layers_coded::asks_for_loops(
                                             wanted_[i].values[face.specialization_index("codec")],
                                             wanted_[i].values[face.specialization_index("inner_norms")] != 0));
        const auto module = gating[i].empty() ? modules.of(wanted_[i].kernel) : std::as_bytes(std::span(gating[i]));
        descriptions.push_back({.name = face.name,
                                .spirv = module,
                                .constants = std::span(constants[i]).first(count),
                                .push_constant_bytes = face.push_bytes(),
                                .required_subgroup_size = required_subgroup_size_});
        order.push_back(i);
      }
      // The largest first: they take the longest.
      const auto larger = [&](std::size_t a, std::size_t b) {
        return descriptions[a].spirv.size() > descriptions[b].spirv.size();
      };
      std::stable_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(first_count_), larger);
      std::stable_sort(order.begin() + static_cast<std::ptrdiff_t>(first_count_), order.end(), larger);
      std::vector<gpu::pipeline_description> sorted;
      for (const std::size_t i : order) sorted.push_back(descriptions[i]);
      gpu::build_pipelines(device_, sorted, cache_, 0, [&](std::size_t i, gpu::pipeline&& made) {
        {
          const std::lock_guard own(mutex_);
          pipelines_[order[i]] = std::move(made);
          made_[order[i]] = true;
        }
        changed_.notify_all();
      });
    }

    gpu::device device_;
    kernel_modules modules_;
    std::uint32_t required_subgroup_size_;
    std::vector<key> wanted_;
    std::size_t first_count_;
    gpu::pipeline_cache* cache_;
    std::vector<gpu::pipeline> pipelines_;  ///< by wanted_
    std::vector<bool> made_;
    bool ended_ = false;
    std::exception_ptr failure_;
    std::mutex mutex_;  ///< of the four above
    std::condition_variable changed_;
    std::jthread thread_;  // goes first
  };
  std::vector<key> wanted_of(std::span<const plan::sequence* const> sequences) const {
    std::vector<key> wanted;
    for (const plan::sequence* each : sequences) {
      for (const auto part : each->recorded()) want(part, wanted);
      if (!each->in_one_long.empty() && modules_.run(each->in_one_long.front())) want(each->in_one_long, wanted);
    }
    return wanted;
  }
  /// @param apart on a thread; else nothing stays of what fails
  void make(std::vector<key> wanted, std::size_t first_count, gpu::pipeline_cache* cache, bool apart) {
    if (wanted.empty()) return;
    auto made = std::make_shared<build>(device_, modules_, subgroup_.required, wanted, first_count, cache, apart);
    if (!apart) made->wait();
    builds_.push_back(std::move(made));
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      keys_.push_back(wanted[i]);
      places_.push_back({builds_.back().get(), i});
    }
  }
  static std::size_t find(const std::vector<key>& in, const key& wanted) {
    return static_cast<std::size_t>(std::find(in.begin(), in.end(), wanted) - in.begin());
  }

  gpu::device device_;
  kernel_modules modules_;
  subgroup_choice subgroup_;
  bool sampler_forms_;
  struct place {
    build* in = nullptr;
    std::size_t index = 0;
  };
  std::vector<key> keys_;
  std::vector<place> places_;                   ///< by keys_
  std::vector<std::shared_ptr<build>> builds_;  ///< shared with sets of other shapes
};

}  // namespace intaglio::runtime
