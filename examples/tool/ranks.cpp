// SPDX-License-Identifier: MIT
#include "ranks.hpp"

#include "console.hpp"

#include <intaglio/core/error.hpp>
#include <intaglio/runtime/session_handle.hpp>

#ifdef INTAGLIO_MPI
#include <intaglio/runtime/basic_session.hpp>  // engine.cpp's definitions are inline where it is one file with others
#include <intaglio/runtime/mpi_stages.hpp>

#include <chrono>
#include <cstdlib>
#include <future>
#include <thread>

#include "stream_read.hpp"
#endif

namespace intaglio::tool {

#ifdef INTAGLIO_MPI
namespace {

/// Calls MPI_Init, and ends the process if some ranks do not begin in time: MPI itself would wait for ever.
void begin_mpi() {
  static constexpr std::chrono::seconds limit(120);
  std::promise<void> begun;
  std::thread watch([is = begun.get_future()] {
    if (is.wait_for(limit) == std::future_status::ready) return;
    show_error("MPI_Init has waited " + std::to_string(limit.count()) + " s: some ranks have not begun");
    std::_Exit(3);
  });
  MPI_Init(nullptr, nullptr);
  begun.set_value();
  watch.join();
}

}  // namespace

basic_session session_over_ranks(const gpu::device& on, std::span<const plan::table* const> tables,
                                 const io::checkpoint& from, const session_options& options,
                                 const model_options& model) {
  int begun = 0;
  MPI_Initialized(&begun);
  if (begun == 0) begin_mpi();
  const mpi_ranks ranks;
  if (ranks.rank() == 0) return mpi_session(ranks, on, tables, from, options, {model.cut, &stream_read_rate});
  set_quiet();  // rank 0 says what there is to say
  session_options own = options;
  own.progress = {};
  serve_mpi_stage(ranks, on, tables, from, own, {model.cut, &stream_read_rate});
  throw stage_served{};
}

void end_ranks(int code) {
  int begun = 0, rank = 0;
  MPI_Initialized(&begun);
  if (begun == 0) return;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (code == 0 && mpi_ranks().all_come()) {
    MPI_Finalize();
    return;
  }
  if (code == 0) code = 3;  // some ranks have not ended in time
  show_error("rank " + std::to_string(rank) + " ends the job with exit code " + std::to_string(code));
  end_mpi_job(code);
}
#else
basic_session session_over_ranks(const gpu::device&, std::span<const plan::table* const>, const io::checkpoint&,
                                 const session_options&, const model_options&) {
  throw argument_error("--mpi", "a tool that is built with INTAGLIO_MPI=ON (docs/runtime.md)", "one without");
}

void end_ranks(int) {}
#endif

}  // namespace intaglio::tool
