// SPDX-License-Identifier: MIT
// A model over the ranks of MPI: what --mpi does. A tool that is built without INTAGLIO_MPI refuses it.
#pragma once

#include "model_file.hpp"

#include <intaglio/io/checkpoint_data.hpp>
#include <intaglio/runtime/session_handle.hpp>

#include <span>

namespace intaglio::tool {

/// A rank above 0 has served its stage to the end of rank 0's session.
struct stage_served {};

/// The session of rank 0. The other ranks run their stages meanwhile.
/// @throws stage_served; argument_error: a tool without MPI; as of mpi_session
basic_session session_over_ranks(const gpu::device& on, std::span<const plan::table* const> tables,
                                 const io::checkpoint& from, const session_options& options,
                                 const model_options& model);

/// To be called once, behind all that uses sessions. An exit code that is none of success ends the whole job.
void end_ranks(int code);

}  // namespace intaglio::tool
