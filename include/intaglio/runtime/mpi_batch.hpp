// SPDX-License-Identifier: MIT
// Sessions that decode together over the ranks of MPI: a plan with a batch is cut into one stage for each rank, as
// cut_batch does for the devices of one host. No other header includes this one.
#pragma once

#include "intaglio/core/compiler.hpp"

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "intaglio/runtime/cut_batch.hpp"
#include "intaglio/runtime/mpi_stages.hpp"

namespace intaglio {
namespace runtime {

/// Cuts a batch's plan over ranks, with as many groups of slots as ranks. @error as cut_over_ranks; argument_error: a
/// plan without a batch
inline rank_cut cut_batch_over_ranks(const mpi_ranks& ranks, const gpu::device& on,
                                     std::span<const plan::table* const> tables, const rank_cut_options& wish,
                                     std::chrono::seconds limit) {
  for (const plan::table* const each : tables)
    if (each->batch.layers == 0) throw argument_error("plan", "one with a batch", "one without");
  return cut_over_ranks(ranks, on, tables, wish, loading(limit), static_cast<std::uint32_t>(ranks.size()));
}

}  // namespace runtime

/// Makes rank 0's batch over all ranks; the other ranks run serve_mpi_batch_stage() meanwhile. As in cut_batch, the
/// plan's slots exist once for each rank, as groups. The thread that uses the batch calls MPI; the batch must end
/// before MPI does.
/// @param wish, limit as in mpi_session  @param chosen receives the rank's own stage before it is loaded
/// @error as cut_batch; device_error, device_lost, out_of_memory naming a rank that failed or did not answer
inline basic_batch mpi_batch(const mpi_ranks& ranks, const gpu::device& on, std::span<const plan::table* const> tables,
                             const io::checkpoint& from, const session_options& options = {},
                             const rank_cut_options& wish = {}, std::chrono::seconds limit = std::chrono::seconds(120),
                             runtime::module_source source = &runtime::modules_of<>,
                             const runtime::stage_listener& chosen = {}) {
  using namespace runtime;
  return gpu::translated([&] {
    if (ranks.size() == 1) return basic_batch(on, tables, from, options, source);
    const rank_cut cut = cut_batch_over_ranks(ranks, on, tables, wish, limit);
    if (chosen) chosen(*cut.stage);
    auto [body, last] = load_last_rank<last_batch_stage>(ranks, on, cut, from, options, limit, source);
    last->join_stages(ranks_before(ranks, limit, room_of(*last)));
    return basic_batch(std::move(body), std::move(last));
  });
}

/// Runs a rank above 0: loads its stage and runs calls until rank 0's batch ends.
/// @param limit as in mpi_session  @param chosen as in mpi_batch
/// @error as cut_batch: the program then ends the job (end_mpi_job)
inline void serve_mpi_batch_stage(const mpi_ranks& ranks, const gpu::device& on,
                                  std::span<const plan::table* const> tables, const io::checkpoint& from,
                                  const session_options& options = {}, const rank_cut_options& wish = {},
                                  std::chrono::seconds limit = std::chrono::seconds(120),
                                  runtime::module_source source = &runtime::modules_of<>,
                                  const runtime::stage_listener& chosen = {}) {
  using namespace runtime;
  gpu::translated([&] {
    const rank_cut cut = cut_batch_over_ranks(ranks, on, tables, wish, limit);
    expect_for_cut(from, options);
    if (chosen) chosen(*cut.stage);
    const auto stage = load_front_batch(on, cut.stage, from, options, source);
    agree_on_chunks(ranks, *cut.table, limit);
    mpi_link link(ranks, limit);
    stage->serve(link, link);
  });
}

}  // namespace intaglio
