// SPDX-License-Identifier: MIT
// platform/process.hpp on Windows. Only that header includes it.
#pragma once

#include "intaglio/core/compiler.hpp"

#include "intaglio/platform/windows_headers.hpp"

#include <exception>
#include <new>
#include <string>
#include <utility>

#include "intaglio/platform/process_limits.hpp"

namespace intaglio::platform {

using process_number = unsigned long;
inline process_number process_id() { return ::GetCurrentProcessId(); }

/// Runs `work` on this thread, since Windows cannot fork. Only the limit output_bytes is enforced; time and memory are
/// bounded only by the limits that `work` itself has.
template <class Work>
limited_result run_limited(const process_limits& limits, Work&& work) {
  try {
    std::string text = std::forward<Work>(work)();
    if (text.size() > limits.output_bytes)
      return {false, "more than " + std::to_string(limits.output_bytes) + " bytes"};
    return {true, std::move(text)};
  } catch (const std::bad_alloc&) {
    return {false, "more memory than is allowed"};
  } catch (const std::exception& problem) { return {false, problem.what()}; } catch (...) {
    return {false, "an unknown failure"};
  }
}

}  // namespace intaglio::platform
