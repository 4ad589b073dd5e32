// SPDX-License-Identifier: MIT
// A model over the ranks of MPI: what --mpi does. A tool that is built without INTAGLIO_MPI refuses it.
#pragma once

#include "model_options.hpp"

#include <span>

namespace intaglio {
class basic_session;
struct session_options;
namespace gpu {
class device;
}
namespace io {
class checkpoint;
}
namespace plan {
struct table;
}
}  // namespace intaglio

namespace intaglio::tool {

/// A rank above 0 has served its stage to the end of rank 0's session.
struct stage_served {};

/// Makes the session of rank 0; the other ranks run their stages meanwhile.
/// @throws stage_served; argument_error: a tool without MPI; as mpi_session
basic_session session_over_ranks(const gpu::device& on, std::span<const plan::table* const> tables,
                                 const io::checkpoint& from, const session_options& options,
                                 const model_options& model);

/// Call it once, after all code that uses sessions. An exit code of failure ends the whole job.
void end_ranks(int code);

}  // namespace intaglio::tool
