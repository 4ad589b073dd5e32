// SPDX-License-Identifier: MIT
// platform/program.hpp on Windows. Only that header includes it.
#pragma once

#include "intaglio/core/compiler.hpp"

#include "intaglio/platform/windows_headers.hpp"

#include <io.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "intaglio/platform/files.hpp"
#include "intaglio/platform/process_limits.hpp"

namespace intaglio::platform {

namespace detail {
/// Quotes a word of a command line so that CommandLineToArgvW reads it back.
inline std::string quoted(const std::string& word) {
  if (!word.empty() && word.find_first_of(" \t\n\v\"") == std::string::npos) return word;
  std::string out = "\"";
  std::size_t backslashes = 0;
  for (const char c : word) {
    if (c == '"') out.append(backslashes + 1, '\\');  // each twice, and one before the mark
    backslashes = c == '\\' ? backslashes + 1 : 0;
    out += c;
  }
  return out.append(backslashes, '\\') + '"';
}
inline std::wstring command_line(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& each : words) out += (out.empty() ? "" : " ") + quoted(each);
  return wide_of(out);
}
inline std::filesystem::path found_program(const std::string& name) {
  std::array<wchar_t, 4096> out{};
  const DWORD size = ::SearchPathW(nullptr, wide_of(name).c_str(), L".exe", out.size(), out.data(), nullptr);
  return size == 0 || size >= out.size() ? std::filesystem::path{} : std::filesystem::path(out.data());
}
/// Starts a program. @return the process; null: errno has the reason
inline HANDLE started(const std::filesystem::path& program, const std::vector<std::string>& words,
                      ::STARTUPINFOW& streams) {
  std::wstring line = command_line(words);
  ::PROCESS_INFORMATION out{};
  if (!::CreateProcessW(program.c_str(), line.data(), nullptr, nullptr, TRUE, 0, nullptr, nullptr, &streams, &out))
    return failed(), nullptr;
  ::CloseHandle(out.hThread);
  return out.hProcess;
}
inline int status_at_end(HANDLE process) {
  DWORD status = 1;
  ::WaitForSingleObject(process, INFINITE);
  ::GetExitCodeProcess(process, &status);
  ::CloseHandle(process);
  return static_cast<int>(status);
}
}  // namespace detail

/// A child process, as on POSIX, but asking it to end ends it at once.
class child_program {
 public:
  child_program() = default;
  child_program(const child_program&) = delete;
  child_program& operator=(const child_program&) = delete;
  ~child_program() {
    if (output_ != nullptr) ::CloseHandle(output_);
    if (child_ != nullptr) wait();
  }

  bool start(const std::vector<std::string>& words, std::FILE* input = nullptr) {
    ::SECURITY_ATTRIBUTES inherited{sizeof inherited, nullptr, TRUE};
    HANDLE writes = nullptr;
    if (!::CreatePipe(&output_, &writes, &inherited, 0)) return detail::failed() == 0;
    ::SetHandleInformation(output_, HANDLE_FLAG_INHERIT, 0);
    const HANDLE nothing =
        ::CreateFileW(L"NUL", GENERIC_READ, FILE_SHARE_READ | FILE_SHARE_WRITE, &inherited, OPEN_EXISTING, 0, nullptr);
    ::STARTUPINFOW streams{};
    streams.cb = sizeof streams;
    streams.dwFlags = STARTF_USESTDHANDLES;
    streams.hStdInput = nothing;
    if (input != nullptr) {
      std::rewind(input);
      streams.hStdInput = detail::handle_of(::_fileno(input));
      ::SetHandleInformation(streams.hStdInput, HANDLE_FLAG_INHERIT, HANDLE_FLAG_INHERIT);
    }
    streams.hStdOutput = streams.hStdError = writes;
    child_ = detail::started(detail::found_program(words.front()), words, streams);
    const int number = errno;
    ::CloseHandle(writes);
    ::CloseHandle(nothing);
    errno = number;
    return child_ != nullptr;
  }
  std::int64_t read(std::span<std::byte> out, unsigned milliseconds) {
    DWORD there = 0, count = 0;
    for (unsigned waited = 0;; waited += 10) {
      if (!::PeekNamedPipe(output_, nullptr, 0, nullptr, &there, nullptr)) return 0;
      if (there != 0) break;
      if (waited >= milliseconds) return -1;
      ::Sleep(10);
    }
    return ::ReadFile(output_, out.data(), detail::at_once(out.size()), &count, nullptr) ? count : 0;
  }
  void limit(const process_limits&) {}  ///< nothing here
  void end() { ::TerminateProcess(child_, 128 + 15); }
  void kill() { end(); }
  int wait() {
    const HANDLE child = child_;
    child_ = nullptr;
    return detail::status_at_end(child);
  }

 private:
  HANDLE child_ = nullptr, output_ = nullptr;
};

inline bool program_exists(const std::string& name) { return !detail::found_program(name).empty(); }

inline std::filesystem::path own_program() {
  std::array<wchar_t, 32768> out{};
  const DWORD size = ::GetModuleFileNameW(nullptr, out.data(), out.size());
  return size == 0 || size >= out.size() ? std::filesystem::path{} : std::filesystem::path(out.data());
}

/// Runs the other program with the streams of this one and ends with its status: Windows cannot replace a process.
inline void become_program(const std::filesystem::path& program, char** words) {
  std::vector<std::string> texts;
  for (; *words != nullptr; ++words) texts.emplace_back(*words);
  std::filesystem::path named = program;
  if (!named.has_extension()) named += ".exe";
  ::STARTUPINFOW streams{};
  streams.cb = sizeof streams;
  // Ctrl-C goes to the other program.
  ::SetConsoleCtrlHandler(nullptr, TRUE);
  if (const HANDLE child = detail::started(named, texts, streams)) std::exit(detail::status_at_end(child));
  ::SetConsoleCtrlHandler(nullptr, FALSE);
}
inline void become_program_named(const char* name, char** words) {
  if (const auto found = detail::found_program(name); !found.empty()) become_program(found, words);
}

inline void set_environment(const char* name, const std::string& value) {
  ::_wputenv_s(wide_of(name).c_str(), wide_of(value).c_str());
}

}  // namespace intaglio::platform
