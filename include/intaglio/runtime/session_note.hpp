// SPDX-License-Identifier: MIT
// What a program keeps in a file beside a saved session.
#pragma once

#include <string>

#include "intaglio/runtime/sampling.hpp"

namespace intaglio {

/// What a program keeps with a session.
struct session_note {
  sampling_options
      sampling{};      ///< with which the session goes on; the draw depends on these, the tokens and the position alone
  std::string text{};  ///< the program's own, at most 64 MiB
};

}  // namespace intaglio
