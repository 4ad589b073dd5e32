// SPDX-License-Identifier: MIT
// Calendar time, and processor time.
#pragma once

#include "intaglio/core/compiler.hpp"

#include <chrono>
#include <cstdint>
#include <ctime>
#include <optional>

#if defined(_WIN32)
#include "intaglio/platform/windows_headers.hpp"
#endif

namespace intaglio::platform {

/// A point in time in UTC; absent where it is outside of the calendar's range.
inline std::optional<std::tm> utc_time(std::time_t at) {
  std::tm out{};
#if defined(_WIN32)
  const bool found = ::gmtime_s(&out, &at) == 0;
#else
  const bool found = ::gmtime_r(&at, &out) != nullptr;
#endif
  return found ? std::optional(out) : std::nullopt;
}
/// A point in time in the time zone of this process.
inline std::optional<std::tm> local_time(std::time_t at) {
  std::tm out{};
#if defined(_WIN32)
  const bool found = ::localtime_s(&out, &at) == 0;
#else
  const bool found = ::localtime_r(&at, &out) != nullptr;
#endif
  return found ? std::optional(out) : std::nullopt;
}

#if defined(_WIN32)
namespace detail {
inline std::chrono::nanoseconds sum_of(const FILETIME& kernel, const FILETIME& user) {
  const auto of = [](const FILETIME& time) {
    return static_cast<std::int64_t>((std::uint64_t{time.dwHighDateTime} << 32) | time.dwLowDateTime);
  };
  return std::chrono::nanoseconds(100 * (of(kernel) + of(user)));
}
}  // namespace detail
#endif

/// Processor time of all threads of the process; 0 where the system does not report it.
inline std::chrono::nanoseconds processor_time() {
#if defined(_WIN32)
  FILETIME made, ended, kernel, user;
  if (!::GetProcessTimes(::GetCurrentProcess(), &made, &ended, &kernel, &user)) return {};
  return detail::sum_of(kernel, user);
#else
  ::timespec at{};
  if (::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &at) != 0) return {};
  return std::chrono::seconds(at.tv_sec) + std::chrono::nanoseconds(at.tv_nsec);
#endif
}
/// Processor time that this thread has used.
inline std::chrono::nanoseconds processor_time_of_thread() {
#if defined(_WIN32)
  FILETIME made, ended, kernel, user;
  if (!::GetThreadTimes(::GetCurrentThread(), &made, &ended, &kernel, &user)) return {};
  return detail::sum_of(kernel, user);
#else
  ::timespec at{};
  if (::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &at) != 0) return {};
  return std::chrono::seconds(at.tv_sec) + std::chrono::nanoseconds(at.tv_nsec);
#endif
}

}  // namespace intaglio::platform
