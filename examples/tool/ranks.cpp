// SPDX-License-Identifier: MIT
#include "ranks.hpp"

#include "console.hpp"

#include <intaglio/core/error.hpp>

#ifdef INTAGLIO_MPI
#include <intaglio/runtime/basic_session.hpp>  // engine.cpp's definitions are inline where it is one file with others
#include <intaglio/runtime/mpi_stages.hpp>

#include "stream_read.hpp"
#endif

namespace intaglio::tool {

#ifdef INTAGLIO_MPI
basic_session session_over_ranks(const gpu::device& on, std::span<const plan::table* const> tables,
                                 const io::checkpoint& from, const session_options& options,
                                 const model_options& model) {
  int begun = 0;
  MPI_Initialized(&begun);
  if (begun == 0) MPI_Init(nullptr, nullptr);
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
  if (code == 0) {
    MPI_Finalize();
    return;
  }
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
