// SPDX-License-Identifier: MIT
// What the engine does once before it is ready: it chooses its plans, and lets the batch generate. Included by the
// engine's unit alone.
#pragma once

#include <intaglio/core/error.hpp>
#include <intaglio/families/adapter_room.hpp>
#include <intaglio/io/adapter_set.hpp>
#include <intaglio/platform/path_text.hpp>
#include <intaglio/runtime/basic_batch.hpp>
#include <intaglio/runtime/cut_batch.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "../tool/cut.hpp"
#include "../tool/driver_trial.hpp"
#include "../tool/engraved_models.hpp"
#include "../tool/known_models.hpp"
#include "batch_engine.hpp"
#include "batch_shape.hpp"
#include "engraved_batches.hpp"
#include "metrics.hpp"
#include "rank_job.hpp"

namespace intaglio::serve {

/// Slots of each group of a plan. A cut plan has at least as many groups as devices or ranks, and each group has the
/// plan's slots.
inline std::uint32_t slots_of_group(const engine_options& wanted) {
  const auto cut_over =
      wanted.ranks != nullptr ? static_cast<std::size_t>(wanted.ranks->size()) : wanted.devices.size();
  const auto groups = std::max<std::uint32_t>(1, static_cast<std::uint32_t>(cut_over)),
             each = (wanted.slot_count + groups - 1) / groups;
  return each == 0 ? 0 : each > 8 ? (each + 15) / 16 * 16 : std::max(2u, each);
}

/// The batch's plans of the model that a file has: those of the engraved models where nothing else is asked for.
/// @param adapters that the file holds for requests to choose among
/// @throws argument_error: adapters of an encoder, whose plans have no sessions, or an encoder over ranks
inline const tool::engraved_model& batch_plans_of(const io::checkpoint& file, const engine_options& wanted,
                                                  const io::adapter_set& adapters) {
  const bool fast = wanted.batch_products == "f16";
  const tool::cache_choice cache = tool::cache_of(wanted.context, wanted.cache_type);
  const tool::engraved_model* const alone =
      wanted.slot_count == 0 && adapters.size() == 0 ? tool::engraved_for(file, cache, wanted.codec) : nullptr;
  const bool encodes = family_of(file.config().model_type).encoder;  // each text is a pass, and no session goes on
  if (encodes && adapters.size() != 0)
    throw argument_error("--lora-by-request", "a decoder", "an encoder, which has --lora alone");
  if (encodes && wanted.ranks != nullptr)
    throw argument_error("--mpi", "a decoder, which is cut between layers", "an encoder");
  // A pointer: g++ 14 takes a reference from a call with temporary arguments for a dangling one.
  const tool::engraved_model* const out =
      encodes ? &tool::planned_model_of(file, cache, {}, wanted.codec)
      : alone != nullptr
          ? &engraved_batches(fast)[static_cast<std::size_t>(alone - tool::engraved_models().data())]
          : &tool::planned_model_of(file, cache, {fast ? fast_batch_shape_of : batch_shape_of, slots_of_group(wanted)},
                                    wanted.codec, families::adapter_room_of(adapters));
  tool::judge_codecs(file, *out, wanted.codec);
  return *out;
}

/// A batch on one device, or over several or over ranks. @throws as cut_batch and rank_job::batch
inline basic_batch batch_over(std::span<const gpu::device> on, std::span<const plan::table* const> tables,
                              const io::checkpoint& from, const session_options& options,
                              const engine_options& wanted) {
  if (wanted.ranks != nullptr) return wanted.ranks->batch(on.front(), tables, from, options, wanted.cut);
  return cut_batch(on, tables, from, options, tool::cut_choice(on, wanted.cut));
}
/// The devices, in the order of the stages.
inline std::string labels_of(std::span<const gpu::device> on, const engine_options& wanted) {
  if (wanted.ranks != nullptr) return wanted.ranks->devices();
  std::string out = on.front().label();
  for (const gpu::device& each : on.subspan(1)) out += ", " + each.label();
  return out;
}

/// @throws std::runtime_error: the end was asked for
inline void end_load_if(bool asked) {
  if (asked) throw std::runtime_error("stopped while the model was loaded");
}

/// One device, or those over which the model is cut. @param look is called before each one
inline std::vector<gpu::device> opened_devices(const engine_options& wanted, const runtime::load_look& look) {
  std::vector<gpu::device> out;
  for (const std::string& each : wanted.devices.empty() ? std::vector<std::string>{wanted.device} : wanted.devices) {
    look();
    out.emplace_back(gpu::device_options{.selector = each});
    if (const std::string note = out.back().note(); !note.empty() && wanted.log) wanted.log("device", note);
    tool::try_driver(out.back());
  }
  return out;
}
/// What each kernel of a batch took so far, by kinds of passes.
inline std::vector<kernel_seconds> kernel_times_of(const basic_batch& of) {
  std::vector<kernel_seconds> out;
  for (const auto& [kind, name] :
       {std::pair{runtime::pass_kind::decode, "decode"}, std::pair{runtime::pass_kind::prefill, "prefill"}}) {
    const runtime::pass_times& times = of.executor().times(kind);
    for (std::size_t i = 0; i < times.kernels.size(); ++i)
      if (times.kernels[i].dispatches != 0)
        out.push_back({name, std::string(kernels::interface_of(static_cast<kernels::kernel>(i)).name),
                       times.kernels[i].nanoseconds * 1e-9});
  }
  return out;
}

/// @param wanted NAME=FILE, or FILE, whose stem is the name  @throws as io::adapter_set
inline io::adapter_set adapters_of(const std::vector<std::string>& wanted) {
  io::adapter_set out;
  for (const std::string& each : wanted) {
    const std::size_t found = each.find('='), folder = each.find_first_of("/\\");
    const std::size_t sign = found < folder ? found : std::string::npos;  // no name has a folder in it
    const std::filesystem::path file = platform::path_of(sign == std::string::npos ? each : each.substr(sign + 1));
    out.add(sign == std::string::npos ? file.stem().string() : each.substr(0, sign), file);
  }
  return out;
}

/// @throws argument_error: an adapter has the model's name
inline void expect_other_name(const std::string& name, const io::adapter_set& adapters) {
  if (adapters.number_of(name))
    throw argument_error("--lora-by-request", "names other than the model's", "'" + printable(name, 60) + "'");
}

/// The facts about the model that clients can read. @throws argument_error: an adapter of the same name
inline model_facts facts_of(const engine_options& wanted, const tool::engraved_model& plans,
                            const io::adapter_set& adapters) {
  model_facts out;
  out.id = wanted.name.empty() ? std::string(plans.name) : wanted.name;
  out.aliases = wanted.aliases;
  out.any_name = wanted.any_name;
  for (const std::string& each : wanted.aliases) expect_other_name(each, adapters);
  expect_other_name(out.id, adapters);
  for (std::uint32_t i = 1; i <= adapters.size(); ++i)
    out.adapters.emplace_back(adapters.name(i), platform::path_of(adapters.path(i)).filename().string());
  out.vocab_size = plans.config().vocab_size;
  out.context = plans.cpu.context;
  out.hidden_size = plans.config().hidden_size;
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  out.created = std::chrono::duration_cast<std::chrono::seconds>(now).count();
  return out;
}

inline const io::vocabulary& vocabulary_of(const io::checkpoint& file) {
  if (!file.vocabulary())
    throw file_error(file.path(), std::nullopt, "the model has no tokenizer",
                     "tokenizer.json or tokenizer.model beside the weights", "none");
  return *file.vocabulary();
}

/// Why --prompt-lookup has no effect on a model, for the log; empty: it has one, or it is not asked for.
inline std::string lookup_note(const engine_options& wanted, const std::optional<basic_batch>& batch,
                               const std::string& model) {
  if (wanted.prompt_lookup == 0 || (batch && batch->most_drafts() != 0)) return {};
  return "--prompt-lookup: expected a decoder on one device without recurrent layers, found " + model +
         ", whose passes take no drafts";
}

/// Generates some tokens before the server is ready, by two sessions together and by one: so everything that is
/// compiled on first use is compiled, and all memory is allocated.
/// @param drafts of one pass by a draft model; 0: there is none  @param look is called before each step
inline void generate_some(basic_batch& batch, std::uint32_t drafts, const runtime::load_look& look) {
  const std::array<std::int32_t, 3> any{static_cast<std::int32_t>(batch.table().config->vocab_size / 2), 1, 2};
  std::uint32_t wanted = 0, drawn = 0;
  const auto run = [&] {
    for (std::uint32_t steps = 0; batch.active() != 0 && steps < 2 * wanted; ++steps) {
      look();
      drawn += static_cast<std::uint32_t>(batch.step().size());
    }
  };
  for (const std::uint32_t tokens : {2u, 4u}) {
    batch.join(any, {.max_tokens = tokens, .keep_logits = tokens == 2});
    wanted += tokens;
  }
  run();
  if (drafts != 0) batch.join(any, {.max_tokens = 16, .draft_num_tokens = drafts}), wanted += 16, run();
  if (drawn != wanted)
    throw device_error(batch.device().label(), "generate",
                       "expected " + std::to_string(wanted) + " tokens, found " + std::to_string(drawn));
}

}  // namespace intaglio::serve
