// SPDX-License-Identifier: MIT
// Stages of a cut plan as ranks of MPI, for hosts that trust each other. Rank 0 has the last stage and the session;
// rank r > 0 has stage r - 1. No other header includes this one.
#pragma once

#include "intaglio/core/compiler.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "intaglio/runtime/cut_session.hpp"
#include "intaglio/runtime/mpi_link.hpp"

namespace intaglio {

/// Where a model is cut over ranks. All ranks have the same options.
struct rank_cut_options {
  /// Number of layers in front of each cut (plan::stages_of); empty: chosen by the ranks' memory and rates.
  std::vector<std::uint32_t> after{};
  /// Measures how many bytes a second a rank's device reads, or any other measure. Each rank calls it if the ranks'
  /// devices have several names. Empty: all devices are alike.
  std::function<double(const gpu::device&)> read_rate{};
};

namespace runtime {

/// A rank's part of a cut; the cut is the same on all ranks.
struct rank_cut {
  const plan::table* table = nullptr;
  std::shared_ptr<const plan::stage> stage;
};

/// Called with a rank's own stage before it is loaded.
using stage_listener = std::function<void(const plan::stage&)>;

/// What a rank sends to the others before the cut.
struct rank_offer {
  std::uint64_t memory_bytes = 0,
                device = 0;  ///< device: equal for devices of one host that share memory, else different
  std::uint64_t name = 0;    ///< of the device
  std::uint64_t model = 0;   ///< of the plans
  bool is_cpu = false, one_memory = false;
};

/// Number of ranks on the device of one of them: they share its memory.
inline std::uint64_t same_device(std::span<const rank_offer> all, const rank_offer& as) {
  return static_cast<std::uint64_t>(
      std::count_if(all.begin(), all.end(), [&](const rank_offer& each) { return each.device == as.device; }));
}

/// The rates of the ranks' devices, in the order of the stages; all 1 if the devices are alike or the cut is given.
inline std::vector<double> rates_of_ranks(const mpi_ranks& ranks, const gpu::device& on,
                                          std::span<const rank_offer> offers, const rank_cut_options& wish,
                                          std::chrono::seconds limit) {
  const bool alike = std::all_of(offers.begin(), offers.end(),
                                 [&](const rank_offer& each) { return each.name == offers.front().name; });
  if (alike || !wish.after.empty()) return std::vector<double>(offers.size(), 1);
  return ranks.of_stages(wish.read_rate ? wish.read_rate(on) : 1.0, limit);
}
/// Cuts a model over the ranks of MPI, by their memory and rates.
/// @error argument_error: ranks with different models, an invalid cut; out_of_memory: this rank's stage does not fit
/// @param limit how long the other ranks may take  @param groups groups of slots, for plans with a batch (plan::stage)
inline rank_cut cut_over_ranks(const mpi_ranks& ranks, const gpu::device& on,
                               std::span<const plan::table* const> tables, const rank_cut_options& wish,
                               std::chrono::seconds limit, std::uint32_t groups = 1) {
  rank_offer own;
  own.memory_bytes = available_memory(on);
  own.is_cpu = on.description().type == gpu::device_type::cpu;
  own.one_memory = has_one_memory(on);
  char host[MPI_MAX_PROCESSOR_NAME] = {};
  int length = 0;
  MPI_Get_processor_name(host, &length);
  own.device = std::hash<std::string_view>{}({host, static_cast<std::size_t>(length)});
  for (const std::uint8_t byte : on.description().uuid) own.device = plan::mixed(own.device, byte);
  own.name = std::hash<std::string_view>{}(on.label());
  const plan::device_class seen = class_of(on);  // g++ 14 takes the table for a part of it
  const plan::table& table = choose_table(tables, seen);
  for (const plan::table* const each : tables) own.model = plan::mixed(own.model, each->hash);
  const std::vector<rank_offer> all = ranks.of_stages(own, limit);

  const std::vector<double> rates = rates_of_ranks(ranks, on, all, wish, limit);
  std::vector<plan::stage_costs> costs;
  std::vector<plan::stage_device> devices;
  for (const rank_offer& each : all) {
    if (each.model != all.back().model)
      throw argument_error("model of rank " + std::to_string(ranks.rank()),
                           "one file, context and version of the program on all ranks", "others");
    const plan::table* its = tables.front();
    for (const plan::table* const of : tables)
      if (of->is_for_cpus() == each.is_cpu) its = of;
    const plan::stage_costs& cost = costs.emplace_back(*its, each.one_memory);
    const std::uint64_t has = each.memory_bytes / same_device(all, each),
                        taken = (std::min)(has, uncounted_stage_memory(*its, cost));
    devices.push_back({has - taken, rates[devices.size()]});
  }
  const auto layers = table.config->num_hidden_layers;
  const auto ranges =
      plan::stages_of(layers, !wish.after.empty() || all.size() == 1 ? wish.after : plan::choose_cut(costs, devices));
  if (ranges.size() != all.size())
    throw argument_error("cut", "as many stages as ranks, " + std::to_string(all.size()),
                         std::to_string(ranges.size()));
  const rank_cut out{&table, std::make_shared<const plan::stage>(table, ranges[ranks.stage()], groups)};
  const stage_need need = needed_stage_memory(on, out.stage->table());
  if (const std::uint64_t has = own.memory_bytes / same_device(all, own); need.total() > has)
    throw out_of_memory(on.label(), "load the stage of rank " + std::to_string(ranks.rank()),
                        need_text(need, out.stage->layers()) + ", have " + gpu::bytes_text(has));
  return out;
}

/// How much longer than the others the slowest rank may load, where rows may take `limit`; the others wait for it.
constexpr std::chrono::seconds loading(std::chrono::seconds limit) { return 5 * limit; }

/// Chooses a chunk size that every rank has room for. Each rank calls it once its stage is loaded.
inline void agree_on_chunks(const mpi_ranks& ranks, const plan::table& of, std::chrono::seconds limit,
                            session_body* body = nullptr) {
  const std::array own{of.prefill.max_tokens, of.logits.max_tokens, of.verify.max_tokens};
  const auto all = ranks.of_stages(own, loading(limit));
  if (body == nullptr) return;
  const std::array to{&body->prefill_tokens, &body->logits_tokens, &body->verify_tokens};
  for (const auto& each : all)
    for (std::size_t i = 0; i < to.size(); ++i) *to[i] = (std::min)(*to[i], each[i]);
}

/// Loads rank 0's body and the executor of its stage. @error as cut_session
template <class Executor>
std::pair<std::shared_ptr<session_body>, std::unique_ptr<Executor>> load_last_rank(
    const mpi_ranks& ranks, const gpu::device& on, const rank_cut& cut, const io::checkpoint& from,
    const session_options& options, std::chrono::seconds limit, module_source source) {
  expect_for_cut(from, options);
  const std::array own{cut.table};
  auto body = open_session(on, own, from, options);
  auto run = take_last_stage<Executor>(*body, {{cut.table}, {cut.stage}}, from, options, source);
  agree_on_chunks(ranks, *cut.table, limit, body.get());
  return {std::move(body), std::move(run)};
}

/// The other ranks, as stages in front of rank 0's stage. @param room number of passes that may be asked for at once
inline stages_before ranks_before(const mpi_ranks& ranks, std::chrono::seconds limit, std::size_t room) {
  const auto link = std::make_shared<mpi_link>(ranks, limit);
  return {link, link, room};
}

}  // namespace runtime

/// Makes rank 0's session over all ranks; the other ranks run serve_mpi_stage() meanwhile. The thread that uses the
/// session calls MPI; the session must end before MPI does.
/// @param wish where the model is cut
/// @param limit how long rows of a pass may take; the slowest rank may load five times as long behind the others
/// @error as cut_session; device_error naming a rank that failed or did not answer
inline basic_session mpi_session(const mpi_ranks& ranks, const gpu::device& on,
                                 std::span<const plan::table* const> tables, const io::checkpoint& from,
                                 const session_options& options = {}, const rank_cut_options& wish = {},
                                 std::chrono::seconds limit = std::chrono::seconds(120),
                                 runtime::module_source source = &runtime::modules_of<>) {
  return gpu::translated([&] {
    const runtime::rank_cut cut = runtime::cut_over_ranks(ranks, on, tables, wish, runtime::loading(limit));
    if (ranks.size() == 1) return basic_session(on, tables, from, options, source);
    auto [body, run] = runtime::load_last_rank<runtime::executor>(ranks, on, cut, from, options, limit, source);
    body->run = std::move(run);
    body->run->join(std::make_unique<runtime::stage_crossing>(
        on, body->run->table(), body->run->state(),
        runtime::ranks_before(ranks, limit, runtime::passes_to_ask(static_cast<std::size_t>(ranks.size())))));
    return basic_session(std::move(body));
  });
}

/// Runs a rank above 0: loads its stage and runs passes until rank 0's session ends.
/// @param limit as in mpi_session
/// @error as cut_session: the program then ends the job (end_mpi_job)
inline void serve_mpi_stage(const mpi_ranks& ranks, const gpu::device& on, std::span<const plan::table* const> tables,
                            const io::checkpoint& from, const session_options& options = {},
                            const rank_cut_options& wish = {}, std::chrono::seconds limit = std::chrono::seconds(120),
                            runtime::module_source source = &runtime::modules_of<>) {
  gpu::translated([&] {
    const runtime::rank_cut cut = runtime::cut_over_ranks(ranks, on, tables, wish, runtime::loading(limit));
    runtime::expect_for_cut(from, options);
    const auto stage = runtime::load_front(on, cut.stage, from, options, source);
    runtime::agree_on_chunks(ranks, *cut.table, limit);
    runtime::mpi_link link(ranks, limit);
    stage->serve(link, link);
  });
}

}  // namespace intaglio
