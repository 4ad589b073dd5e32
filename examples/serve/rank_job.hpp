// SPDX-License-Identifier: MIT
// A server over the ranks of MPI: what --mpi does. Rank 0 serves; each other rank computes its stage and listens on
// nothing. A program that is built without INTAGLIO_MPI refuses it.
#pragma once

#include <intaglio/runtime/batch_handle.hpp>

#include <chrono>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace intaglio::serve {

struct engine_options;

/// How long things may take that MPI itself would wait for without end.
struct rank_limits {
  std::chrono::seconds answer{120};  ///< of a rank that computes, or begins, or ends; five times as long to load
  std::chrono::seconds drain{10};    ///< that rank 0 takes to end its answers when it is asked to stop
};

/// This process' part of a job. Made once, before threads; MPI is called by one thread at a time.
class rank_job {
 public:
  /// Begins MPI. Ranks above 0 do not end by SIGTERM and SIGINT, which mpirun sends to all: they wait for rank 0's end.
  /// At rank 0 SIGUSR1 is SIGTERM, since every mpirun hands that on and waits.
  /// @throws argument_error: a program without MPI, one rank; device_error: an MPI that threads cannot use
  explicit rank_job(const rank_limits& limits);
  ~rank_job();
  rank_job(const rank_job&) = delete;
  rank_job& operator=(const rank_job&) = delete;

  int rank() const noexcept { return rank_; }
  int size() const noexcept { return size_; }

  /// Rank 0's batch over all ranks, each of which loads its stage. @throws as mpi_batch
  basic_batch batch(const gpu::device& on, std::span<const plan::table* const> tables, const io::checkpoint& from,
                    const session_options& options, const std::vector<std::uint32_t>& after);
  /// The devices of a batch's ranks, in the order of the stages.
  const std::string& devices() const noexcept { return devices_; }

  /// A rank above 0 loads its stage of the model that the options name, and computes until rank 0's batch ends.
  /// @throws as mpi_batch, file_error
  void serve_stage(const engine_options& wanted);

  /// The last call, after all that uses the ranks. A code that is none of success ends the whole job, and so do ranks
  /// that do not come here within the limit.
  /// @return the exit code
  int end(int code);

 private:
  struct parts;
  /// Tells all ranks of this one's device. @throws device_error: some do not answer
  void meet(const gpu::device& on);

  int rank_ = 0, size_ = 1;
  std::string devices_;
  std::unique_ptr<parts> parts_;
};

}  // namespace intaglio::serve
