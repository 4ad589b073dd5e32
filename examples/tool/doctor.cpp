// SPDX-License-Identifier: MIT
// doctor: what a bug report should hold.
#include "commands.hpp"
#include "console.hpp"
#include "engine.hpp"
#include "engraved_models.hpp"

#include <intaglio/core/version.hpp>
#include <intaglio/gpu/doctor.hpp>

#include <nlohmann/json.hpp>

#include <chrono>

#include <sys/utsname.h>

namespace intaglio::tool {

void doctor(const doctor_options& options, const common_options& common) {
  gpu::report found = gpu::examine();
  gpu::report_section own{"intaglio", {}};
  own.entries.emplace_back("version", std::to_string(version_major) + "." + std::to_string(version_minor) + "." +
                                          std::to_string(version_patch));
#if defined(__clang__)
  own.entries.emplace_back("compiler", "clang " __clang_version__);
#elif defined(__GNUC__)
  own.entries.emplace_back("compiler", "g++ " __VERSION__);
#endif
  ::utsname system{};
  if (::uname(&system) == 0)
    own.entries.emplace_back("system",
                             printable(std::string(system.sysname) + " " + system.release + " " + system.machine));
  for (const auto& each : engraved_models()) own.entries.emplace_back("engraved", std::string(each.name));
  found.insert(found.begin(), std::move(own));

  // The embedded model continues "Once upon a time" as the reference does: every kernel of a sequence takes part in it.
  gpu::report_section kernels{"kernels", {}};
  std::optional<std::string> failure;
  try {
    const auto start = std::chrono::steady_clock::now();
    const std::vector<std::int32_t> expected{11, 395, 282, 258, 378, 482, 443, 457};
    engine model({}, common);
    kernels.entries.emplace_back("device", model.device());
    generate_options greedy;
    greedy.max_tokens = static_cast<std::uint32_t>(expected.size());
    const auto found_ids = model.generate(model.encode("Once upon a time"), greedy, {}).result.ids;
    model.require_silence();
    const double ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
    if (found_ids != expected)
      throw device_error(model.device(), "run the embedded model",
                         "the tokens are not those of the reference: the kernels compute wrong numbers here");
    kernels.entries.emplace_back("embedded model", "computes what the reference computes, load and " +
                                                       std::to_string(expected.size()) + " tokens in " + fixed(ms, 0) +
                                                       " ms");
  } catch (const device_error& problem) {
    failure = problem.what();
    kernels.entries.emplace_back("problem", *failure);
  }
  found.push_back(std::move(kernels));

  if (options.json) {
    nlohmann::ordered_json out = nlohmann::ordered_json::array();
    for (const auto& section : found) {
      auto entries = nlohmann::ordered_json::array();
      for (const auto& [key, value] : section.entries) entries.push_back({{"key", key}, {"value", value}});
      out.push_back({{"section", section.title}, {"entries", std::move(entries)}});
    }
    print_line(out.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  } else {
    print(gpu::report_text(found));
  }
  flush_output();
  if (failure) throw device_error("", "doctor", *failure);
}

}  // namespace intaglio::tool
