// SPDX-License-Identifier: MIT
// doctor: what a bug report should hold.
#include "commands.hpp"
#include "console.hpp"
#include "device_choice.hpp"
#include "engine.hpp"
#include "engraved_models.hpp"
#include "residency_probe.hpp"

#include <intaglio/core/version.hpp>
#include <intaglio/gpu/doctor.hpp>
#include <intaglio/platform/facts.hpp>
#include <intaglio/runtime/device_class.hpp>

#include <nlohmann/json.hpp>

#include <chrono>

namespace intaglio::tool {
namespace {

using json = nlohmann::ordered_json;

/// Sections as objects; a key that comes several times has a list.
json sections_of(const gpu::report& found) {
  json out = json::object();
  for (const auto& section : found) {
    json& to = out[section.title] = json::object();
    for (const auto& [key, value] : section.entries)
      if (!to.contains(key)) to[key] = value;
      else if (to[key].is_array()) to[key].push_back(value);
      else to[key] = json::array({to[key], value});
  }
  return out;
}

/// What planning knows of the device, and what may run there, the most first.
json class_report(const gpu::device& on) {
  const kernels::device_class of = runtime::class_of(on);
  json out{{"is_cpu", of.is_cpu},
           {"shares_memory", of.shares_memory},
           {"subgroup_size", of.subgroup_size},
           {"selects_subgroup_size", of.selects_subgroup_size},
           {"workgroup_invocations", of.workgroup_invocations},
           {"shared_memory_bytes", of.shared_memory_bytes},
           {"integer_dot", of.integer_dot},
           {"mixed_dot", of.mixed_dot},
           {"int64", of.int64},
           {"int8", of.int8},
           {"float16", of.float16},
           {"ballot", of.ballot},
           {"resident_workgroups", of.resident_workgroups}};
  for (const kernels::device_class& each : plan::fallbacks(of)) out["uses"].push_back(plan::uses(each));
  return out;
}

json residency_report(const gpu::device& on) {
  const residency found = probe_residency(on);
  return {{"workgroups_at_once", found.at_once},
          {"most_tried", found.tried},
          {"invocations", found.invocations},
          {"shared_memory_bytes", found.shared_memory_bytes},
          {"turns", found.turns}};
}

/// Benches of the embedded model and of made-up weights in two shapes. What fails, or would take a CPU driver minutes,
/// is named.
json benches(const common_options& common, bool on_cpu) {
  struct shape {
    std::string_view model, codec;
    bool for_cpus;
  };
  json out = json::array();
  for (const auto& [model, codec, for_cpus] :
       {shape{"", "", true}, shape{"stories260k", "f16", true}, shape{"llama_32_1b", "q4_0", false}}) {
    bench_options options;
    options.synthetic = model;
    options.codec = codec;
    options.json = true;
    options.runs = 3;
    options.prompt = on_cpu ? 32 : 512;
    options.tokens = on_cpu ? 16 : 128;
    json row{{"model", model.empty() ? "fable" : model}};
    if (on_cpu && !for_cpus) row["left_out"] = "a CPU driver takes minutes for a model of this size";
    else try {
        row["bench"] = json::parse(bench_text(options, common));
      } catch (const error& problem) { row["problem"] = problem.what(); }
    out.push_back(std::move(row));
  }
  return out;
}

/// The program itself: its version, its compiler, the system and the models inside it.
gpu::report_section section_of_program() {
  gpu::report_section own{"intaglio", {}};
  own.entries.emplace_back("version", std::to_string(version_major) + "." + std::to_string(version_minor) + "." +
                                          std::to_string(version_patch));
#if defined(__clang__)
  own.entries.emplace_back("compiler", "clang " __clang_version__);
#elif defined(__GNUC__)
  own.entries.emplace_back("compiler", "g++ " __VERSION__);
#endif
  own.entries.emplace_back("system", printable(platform::system_name()));
  for (const auto& each : engraved_models()) own.entries.emplace_back("engraved", std::string(each.name));
  return own;
}

/// Runs the embedded model. @param failure becomes the problem, if there is one
gpu::report_section section_of_kernels(const common_options& common, std::optional<std::string>& failure) {
  // The embedded model continues "Once upon a time" as the reference does: every kernel of a sequence takes part in it.
  gpu::report_section kernels{"kernels", {}};
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
  return kernels;
}

json report_of(const std::vector<gpu::report_section>& found, const common_options& common,
               std::optional<std::string>& failure) {
  json out{{"report", 1}, {"sections", sections_of(found)}, {"proven", !failure.has_value()}};
  try {
    const gpu::device on = open_device(common);
    out["class"] = class_report(on);
    out["residency"] = residency_report(on);
    out["benches"] = benches(common, on.description().type == gpu::device_type::cpu);
  } catch (const device_error& problem) {
    out["problem"] = problem.what();
    if (!failure) failure = problem.what();
  }
  return out;
}

nlohmann::ordered_json list_of(const std::vector<gpu::report_section>& found) {
  nlohmann::ordered_json out = nlohmann::ordered_json::array();
  for (const auto& section : found) {
    auto entries = nlohmann::ordered_json::array();
    for (const auto& [key, value] : section.entries) entries.push_back({{"key", key}, {"value", value}});
    out.push_back({{"section", section.title}, {"entries", std::move(entries)}});
  }
  return out;
}

}  // namespace

void doctor(const doctor_options& options, const common_options& common) {
  gpu::report found = gpu::examine();
  found.insert(found.begin(), section_of_program());

  std::optional<std::string> failure;
  found.push_back(section_of_kernels(common, failure));

  if (options.report) {
    print_line(report_of(found, common, failure).dump(1, ' ', false, json::error_handler_t::replace));
  } else if (options.json) {
    print_line(list_of(found).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  } else {
    print(gpu::report_text(found));
  }
  flush_output();
  if (failure) throw device_error("", "doctor", *failure);
}

}  // namespace intaglio::tool
