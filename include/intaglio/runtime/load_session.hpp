// SPDX-License-Identifier: MIT
// How a session is made: choose a plan, prove the kernels, load the weights, record the sequences.
#pragma once

#include <algorithm>
#include <future>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <type_traits>
#include <utility>

#include "intaglio/gpu/cache_file.hpp"
#include "intaglio/runtime/choose_table.hpp"
#include "intaglio/runtime/pipelines_ahead.hpp"
#include "intaglio/runtime/pooled_states.hpp"
#include "intaglio/runtime/session_body.hpp"
#include "intaglio/runtime/session_options.hpp"
#include "intaglio/runtime/tuning.hpp"

namespace intaglio {

namespace runtime {

/// The inputs of planning for a device.
struct planning_input {
  plan::device_class device;
  std::vector<plan::product_shape> shapes{};
  /// Features and residency of the most capable class that this device, as its host has enabled it, can be. A note says
  /// nothing of plans for more capable classes if the host that left it had enabled fewer features.
  std::uint64_t offered = 0;

  /// A note that identifies what was proven: modules, the device class, the shapes of products, and `offered`.
  /// @param of the device's class, or that class without residency
  std::string note_for(const plan::device_class& of) const {
    std::uint64_t mixed = modules_hash();
    const auto mix = [&](std::uint64_t with) { mixed = (mixed ^ with) * 0x9E3779B97F4A7C15u; };
    mix(offered);
    mix(of.offers().bits);
    mix(of.resident_workgroups);
    for (const plan::product_shape& each : shapes) mix(each.product), mix(each.subgroups), mix(each.groups);
    return "proven " + std::to_string(mixed);
  }
  std::string note() const { return note_for(device); }
};
/// The inputs that a device may run with, the most capable first; those measured there (`intaglio tune`) before all
/// others.
[[gnu::cold]] inline std::vector<planning_input> inputs_for(const gpu::device& on, const gpu::pipeline_cache& cache) {
  std::vector<planning_input> all;
  for (const plan::device_class& each : usable_classes(on)) all.push_back({.device = each});
  for (planning_input& each : all) {
    const plan::device_class& most = all.front().device;
    each.offered = std::uint64_t{most.resident_workgroups} << 32 | most.offers().bits;
  }
  std::optional<tuning> kept = kept_tuning(cache);
  if (!kept) return all;
  const auto at = std::find_if(all.begin(), all.end(),
                               [&](const planning_input& each) { return plan::uses(each.device) == kept->variant; });
  if (at == all.end()) return all;
  planning_input first = *at;
  if (kept->shapes.empty()) all.erase(at);
  else first.shapes = std::move(kept->shapes);
  all.insert(all.begin(), std::move(first));
  return all;
}
/// The inputs of planning that are left to try: earlier starts found that those before the noted one fail on this
/// device.
inline std::vector<planning_input> inputs_left(const gpu::device& on, const gpu::pipeline_cache& cache) {
  std::vector<planning_input> all = inputs_for(on, cache);
  for (std::size_t i = 0; i < all.size(); ++i)
    if (cache.note() == all[i].note()) return {all.begin() + static_cast<std::ptrdiff_t>(i), all.end()};
  return all;
}

/// Begins to make the pipelines of the executor that proven_executor tries first, while the weights are loaded.
/// @param prove as in proven_executor
template <class Executor = executor>
pipelines_ahead begin_pipelines(const gpu::device& on, const plan::table& table, gpu::pipeline_cache& cache,
                                module_source source = &modules_of<>, bool prove = true) {
  planning_input first = inputs_left(on, cache).front();
  const bool noted = cache.note() == first.note();
  const auto plan = Executor::plan_for(table, first.device, std::move(first.shapes));
  const bool soon = plan->has_sampler_forms() && prove && !noted;
  return pipelines_ahead(on, plan, source, Executor::begins_with(*plan, soon), cache,
                         Executor::goes_on_with(*plan, soon));
}

/// An executor whose kernels are proven on this device; the result is noted in the pipeline cache. Where a kernel
/// fails, a plan that uses fewer features of the device is used.
/// @param made what begin_pipelines began, or empty  @param look is called between its steps
/// @error device_error naming the kernel: it is wrong on this device in every variant; what `look` throws
template <class Executor = executor>
[[gnu::cold]] std::unique_ptr<Executor> proven_executor(const gpu::device& on, const plan::table& table,
                                                        weight_memory weights, gpu::pipeline_cache& cache, bool prove,
                                                        module_source source = &modules_of<>,
                                                        pipelines_ahead&& made = {}, const load_look& look = {}) {
  kernel_fault fault;
  // Without our cache folder a process may start often, and the driver's own cache has all pipelines after the first
  // time.
  const bool compiles_late = on.description().driver_name == "llvmpipe" && !cache.path().empty();
  for (planning_input& input : inputs_left(on, cache)) {
    const std::string note = input.note(), note_as_chain = input.note_for(input.device.without_residency());
    std::optional<kernel_set> kernels = made.take();
    const std::shared_ptr<const plan::device_plan> plan =
        kernels ? made.plan() : Executor::plan_for(table, input.device, std::move(input.shapes));
    const bool proves = prove && cache.note() != note, soon = proves && plan->has_sampler_forms();
    compile_ahead ahead;
    if (std::is_same_v<Executor, executor> && proves && compiles_late && runs_resident(*plan))
      ahead = compile_ahead(on, source, plan->table().resident_decode.resident);
    if (!kernels)
      kernels.emplace(on, source)
          .begin(Executor::begins_with(*plan, soon), &cache, Executor::goes_on_with(*plan, soon));
    // Prove while the pipelines that take longest are still being made.
    if (proves && !(fault = Executor::prove_kernels(on, *plan, *kernels, weights, false, soon, look)).kernel.empty())
      continue;
    if (look) kernels->wait_for_first(look);
    auto out = std::make_unique<Executor>(on, plan, std::move(weights), std::move(*kernels), &cache, soon);
    if (!proves) return out;
    fault = out->prove_resident(std::move(ahead), look);
    if (fault.kernel.empty()) {
      out->note_when_complete(cache, note, note_as_chain);
      return out;
    }
    weights = out->release_weights();
  }
  refuse(on, fault);
}

/// Makes all parts of a session except weights and executor. The tokenizer may still be being made: load_executor()
/// waits for it.
/// @param from outlives that  @error as basic_session
[[gnu::cold]] inline std::shared_ptr<session_body> open_session(const gpu::device& on,
                                                                std::span<const plan::table* const> tables,
                                                                const io::checkpoint& from,
                                                                const session_options& options) {
  return gpu::translated([&] {
    if (!(options.submit_budget_ms > 0))
      throw argument_error("submit_budget_ms", "a time above 0",
                           number_text(static_cast<float>(options.submit_budget_ms)));
    const plan::device_class seen = class_of(on);  // g++ 14 takes the table for a part of it
    const plan::table& table = choose_table(tables, seen);
    require_match(from, table);
    auto body = std::make_shared<session_body>(on, table, options.submit_budget_ms);
    body->path = from.path();
    body->file_pooling = from.pooling();
    if (family_of(table.config->model_type).encoder) {
      body->score = score_head::of(from);
      if (!body->file_pooling) body->file_pooling = pooling::mean;
    }
    body->find_first_nan = options.find_first_nan;
    body->prove_kernels = options.prove_kernels;
    body->warnings = from.warnings();
    if (from.vocabulary()) {
      const auto make = [&text = *body, &from, size = table.config->vocab_size, templates = options.templates] {
        text.tokens.emplace(*from.vocabulary(), size);
        try {
          text.chat.emplace(io::chat_template::of(*from.vocabulary(), templates));
        } catch (const file_error& unknown) {  // an error only for callers that encode a conversation
          text.no_chat.emplace(unknown);
        }
      };
      try {
        body->making_text = std::async(
            // merges of a large vocabulary take a tenth of a second, while weights are loaded
            std::launch::async, make);
      } catch (const std::system_error&) {  // no thread is available
        body->making_text = std::async(std::launch::deferred, make);
      }
    }
    body->cache.emplace(on, options.cache_folder ? *options.cache_folder : gpu::default_cache_folder(), table.hash);
    if (std::string warning; !kept_tuning(*body->cache, &warning) && !warning.empty())
      body->warnings.push_back(std::move(warning));
    return body;
  });
}

/// Loads the weights of a plan and makes its executor. @error as basic_session
template <class Executor>
std::unique_ptr<Executor> load_plan(const gpu::device& on, const plan::table& table, gpu::pipeline_cache& cache,
                                    const io::checkpoint& from, const session_options& options, module_source source) {
  pipelines_ahead pipelines = begin_pipelines<Executor>(on, table, cache, source, options.prove_kernels);
  load_progress last;
  load_callback report;
  load_look look;
  if (options.progress) {
    report = [&](const load_progress& at) { options.progress(last = at); };
    look = [&] { options.progress(last); };
  }
  weight_memory weights = load_weights(on, table, from,
                                       {.progress = report,
                                        .threads = options.load_threads,
                                        .patch = options.patch,
                                        .storage = options.storage,
                                        .budget = options.weight_budget});
  return proven_executor<Executor>(on, table, std::move(weights), cache, options.prove_kernels, source,
                                   std::move(pipelines), look);
}

/// The executor of a session's plan. @param table the body's table, or the stage of it that this device runs
/// @error as basic_session
template <class Executor>
std::unique_ptr<Executor> load_executor(session_body& body, const plan::table& table, const io::checkpoint& from,
                                        const session_options& options, module_source source) {
  return gpu::translated([&] {
    auto out = load_plan<Executor>(body.device, table, *body.cache, from, options, source);
    if (body.making_text.valid()) {
      body.making_text.get();
      for (const std::string& line : body.tokens->warnings())
        body.warnings.push_back(in_file(from.vocabulary()->source, line));
    }
    body.cache->store();
    if (!body.cache->warning().empty()) body.warnings.push_back(body.cache->warning());
    return out;
  });
}
/// Loads a checkpoint on a device.
/// @error as basic_session
inline std::shared_ptr<session_body> load_session(const gpu::device& on, std::span<const plan::table* const> tables,
                                                  const io::checkpoint& from, const session_options& options,
                                                  module_source source) {
  auto body = open_session(on, tables, from, options);
  body->run = load_executor<executor>(*body, *body->table, from, options, source);
  return body;
}

/// Appends tokens by `append` and runs them through the sequence with logits, chunk by chunk.
template <class Result, class Append>
Result feed_for_logits(session_body& body, std::span<const std::int32_t> ids, std::uint32_t chunk, bool hidden,
                       Append&& append) {
  const std::uint32_t first = body.size(), vocabulary = body.vocab_size(), width = body.table->config->hidden_size,
                      layers = body.table->config->num_hidden_layers, wide = body.logits_tokens;
  if (hidden && body.run->is_stage())
    throw argument_error("hidden states", "a model on one device", "one that is cut over several");
  append();
  Result out;
  out.tokens = static_cast<std::uint32_t>(ids.size());
  body.feed_until(first, chunk);
  const pass_kind kind = hidden ? pass_kind::probe : pass_kind::logits;
  body.recovering([&] {
    out.logits.resize(std::size_t{out.tokens} * vocabulary);
    if (hidden) out.hidden.resize(std::size_t{layers + 1} * out.tokens * width);
    body.run->prepare_logits(hidden, body.cache ? &*body.cache : nullptr);
    for (std::uint32_t done = 0; done < out.tokens;) {
      const std::uint32_t count = (std::min)({chunk, wide, out.tokens - done});
      body.begin(kind, count);
      body.submit_all();
      body.run->drain();
      std::copy_n(body.run->logits(hidden).begin(), std::size_t{count} * vocabulary,
                  out.logits.begin() + static_cast<std::ptrdiff_t>(std::size_t{done} * vocabulary));
      for (std::uint32_t layer = 0; hidden && layer <= layers; ++layer)
        std::copy_n(body.run->hidden().begin() + static_cast<std::ptrdiff_t>(std::size_t{layer} * wide * width),
                    std::size_t{count} * width,
                    out.hidden.begin() + static_cast<std::ptrdiff_t>((std::size_t{layer} * out.tokens + done) * width));
      body.cached += count;
      done += count;
    }
  });
  // The stream of a model with a residual multiplier is stored without that factor (models/llama.hpp).
  for (float& each : out.hidden) each *= body.table->config->residual_multiplier;
  return out;
}

/// Computes a text's vector; the session's history is empty before and after it.
/// @param second_text index of the second of two texts, for an encoder; 0: one text
inline std::vector<float> embed_text(session_body& body, std::span<const std::int32_t> ids, std::uint32_t chunk,
                                     const embed_options& options, std::uint32_t second_text = 0) {
  const plan::table& of = body.run->table();  // for a cut plan this is the last stage, which has the norm
  body.history.clear();
  body.cached = 0;
  return body.recovering([&] {
    body.run->drain();
    pooled_states states(*of.config, last_norm(body.device, of, body.run->weights()),
                         options.pooling.value_or(body.file_pooling.value_or(pooling::last)));
    const auto feed = [&](std::uint32_t position, std::uint32_t count) {
      body.feed.assign(ids.begin() + position, ids.begin() + position + count);
      body.run->begin(pass_kind::prefill, position, body.feed, {}, 1, second_text);
      body.submit_all();
      body.run->drain();
    };
    return pool_text(
        of, std::move(states), static_cast<std::uint32_t>(ids.size()), chunk, feed,
        [&](std::uint32_t first, std::span<float> into) { body.run->read_stream(first, into); }, options.normalize,
        body.device.label());
  });
}

}  // namespace runtime
}  // namespace intaglio
