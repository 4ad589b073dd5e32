// SPDX-License-Identifier: MIT
// Facts about the system and this process.
#pragma once

#include "intaglio/core/compiler.hpp"

#include <array>
#include <cstdint>
#include <string>

#if defined(_WIN32)
#include "intaglio/platform/windows_headers.hpp"

#include <psapi.h>
#else
#include <sys/resource.h>
#include <sys/utsname.h>

#include <fstream>
#include <sstream>
#endif

namespace intaglio::platform {

/// The system's name, release and machine: "Linux 6.1.0 x86_64".
inline std::string system_name() {
#if defined(_WIN32)
  ::OSVERSIONINFOW found{};
  found.dwOSVersionInfoSize = sizeof found;
  // GetVersionEx reports the version that the program's manifest names.
  using asking = LONG(WINAPI*)(::OSVERSIONINFOW*);
  const auto ask = reinterpret_cast<asking>(
      reinterpret_cast<void*>(::GetProcAddress(::GetModuleHandleW(L"ntdll.dll"), "RtlGetVersion")));
  if (ask == nullptr || ask(&found) != 0) return "Windows";
  ::SYSTEM_INFO machine;
  ::GetNativeSystemInfo(&machine);
  return "Windows " + std::to_string(found.dwMajorVersion) + "." + std::to_string(found.dwMinorVersion) + "." +
         std::to_string(found.dwBuildNumber) +
         (machine.wProcessorArchitecture == PROCESSOR_ARCHITECTURE_ARM64 ? " arm64" : " x86_64");
#else
  ::utsname found{};
  if (::uname(&found) != 0) return {};
  return std::string(found.sysname) + " " + found.release + " " + found.machine;
#endif
}

/// Bytes of memory that a process uses; 0 where the system does not report it.
struct memory_use {
  std::uint64_t own = 0, of_files = 0;  ///< the process's own memory, and pages of files that it has mapped
  std::uint64_t most = 0;               ///< the largest sum of both so far
};
inline memory_use memory_of_process() {  ///< reads the figures of this process
  memory_use out;
#if defined(_WIN32)
  ::PROCESS_MEMORY_COUNTERS_EX found{};
  if (::K32GetProcessMemoryInfo(::GetCurrentProcess(), reinterpret_cast<::PROCESS_MEMORY_COUNTERS*>(&found),
                                sizeof found)) {
    out.own = found.PrivateUsage;
    out.of_files = found.WorkingSetSize > out.own ? found.WorkingSetSize - out.own : 0;
    out.most = found.PeakWorkingSetSize;
  }
#elif defined(__linux__)
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    std::istringstream words(line);
    std::string key;
    std::uint64_t kilobytes = 0;
    words >> key >> kilobytes;
    if (key == "RssAnon:") out.own = 1024 * kilobytes;
    if (key == "RssFile:") out.of_files = 1024 * kilobytes;
    if (key == "VmHWM:") out.most = 1024 * kilobytes;
  }
#else
  ::rusage found{};
  if (::getrusage(RUSAGE_SELF, &found) == 0) out.most = static_cast<std::uint64_t>(found.ru_maxrss);
#if !defined(__APPLE__)
  out.most *= 1024;
#endif
#endif
  return out;
}

}  // namespace intaglio::platform
