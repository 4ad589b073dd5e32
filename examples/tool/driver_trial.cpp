// SPDX-License-Identifier: MIT
#include "driver_trial.hpp"

#include "console.hpp"

#include <intaglio/gpu/cache_file.hpp>
#include <intaglio/gpu/known_drivers.hpp>
#include <intaglio/platform/path_text.hpp>
#include <intaglio/platform/program.hpp>

#include <array>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <span>
#include <string_view>
#include <utility>

namespace intaglio::tool {
namespace {

constexpr const char* variable = "INTAGLIO_DRIVER_TRIAL";

/// The file that says that a driver was tried; empty without a cache.
std::string mark_of(const gpu::device_description& of) {
  const std::string cache = gpu::default_cache_folder();
  if (cache.empty()) return cache;
  return cache + "/tried-" + gpu::uuid_text(of.driver_uuid) + "-" + std::to_string(of.driver_version);
}

/// @return as violent_end()
std::string end_of_trial(const std::filesystem::path& tool, const gpu::device_description& on) {
  platform::set_environment(variable, "off");  // of the process that tries
  const graceful_stop guard;
  platform::child_program child;
  if (!child.start(
          {tool.string(), "run", "--quiet", "--device", gpu::uuid_text(on.uuid), "--prompt", "Once", "-n", "1"}))
    return {};
  std::array<std::byte, 4096> ignored;
  const auto until = std::chrono::steady_clock::now() + std::chrono::minutes(3);
  for (std::int64_t count = -1; count != 0; count = child.read(ignored, 200)) {
    const bool late = std::chrono::steady_clock::now() > until;
    if (!late && graceful_stop::received() == 0) continue;
    child.end();
    child.wait();
    if (late) return "it did not end in 3 minutes";
    throw interrupted(graceful_stop::received());
  }
  return violent_end(child.wait());
}

}  // namespace

std::string violent_end(int status) {
  constexpr std::array<std::pair<int, const char*>, 7> signals{{{4, "illegal instruction"},
                                                                {5, "trap"},
                                                                {6, "abort"},
                                                                {7, "bus error"},
                                                                {8, "arithmetic"},
                                                                {9, "killed"},
                                                                {11, "segmentation fault"}}};
  for (const auto& [number, words] : signals)
    if (status == 128 + number) return "signal " + std::to_string(number) + " (" + words + ") ended it";
  // NTSTATUS of an exception.
  if (static_cast<std::uint32_t>(status) >= 0xC0000000u)
    return "exception " + std::to_string(static_cast<std::uint32_t>(status)) + " ended it";
  return {};
}

void try_driver(const gpu::device& on) {
  const char* const chosen = std::getenv(variable);
  const std::string_view wish = chosen == nullptr ? "" : chosen;
  const gpu::device_description& found = on.description();
  if (wish == "off" || (wish != "always" && gpu::of_driver(found.driver_id).state != gpu::driver_state::unknown))
    return;
  const std::string mark = mark_of(found);
  std::error_code failure;
  if (!mark.empty() && std::filesystem::exists(platform::path_of(mark), failure)) return;
  const std::filesystem::path beside = platform::own_program().parent_path();
  std::filesystem::path tool = beside / "intaglio";
#if defined(_WIN32)
  tool += ".exe";
#endif
  if (beside.empty() || !std::filesystem::exists(tool, failure)) return;
  note("nothing is known of the driver of " + on.label() + ": trying it once in a process of its own");
  if (const std::string end = end_of_trial(tool, found); !end.empty())
    throw device_error(on.label(), "try the driver",
                       "a process that computed one token on it did not end by itself: " + end +
                           "; take another driver, or another device by --device");
  if (!mark.empty()) gpu::detail::write_whole_file(platform::path_of(mark).parent_path().string(), mark, "tried\n");
}

}  // namespace intaglio::tool
