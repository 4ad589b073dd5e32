// SPDX-License-Identifier: MIT
// A program's note in the file of a saved session.
#pragma once

#include <string>

#include "intaglio/runtime/sampling.hpp"

namespace intaglio {

/// A program's note in the file of a saved session.
struct session_note {
  /// Options of the session's next tokens. These tokens depend only on the options, the history and the position.
  sampling_options sampling{};
  std::string text{};  ///< the program's own text, at most 64 MiB
};

}  // namespace intaglio
