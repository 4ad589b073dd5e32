// SPDX-License-Identifier: MIT
// Structured logs: one JSON object a line on stderr. A line that cannot be written is lost, nothing else.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace intaglio::serve {

using log_value = std::variant<std::string, std::int64_t, double>;

/// From any thread. @param level "info", "warning" or "error"
void log_line(std::string_view level, std::string_view event,
              std::initializer_list<std::pair<std::string_view, log_value>> fields);

/// Sets the rank in a job of several; log lines then have it as "rank".
void set_log_rank(int rank);

/// Leaves out messages below warnings.
void set_quiet_log();

}  // namespace intaglio::serve
