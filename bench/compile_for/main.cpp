// SPDX-License-Identifier: MIT
// What a driver's compiler makes of the pipelines of plans: each is planned, proven and compiled for the device that
// the loader shows, and nothing is run. With RADV_FORCE_FAMILY Mesa compiles for a Radeon that is not there
// (tests/amd/run). Usage: compile_for [--all] [--context N] MODEL[:CODEC]...    q4_0 unless said
//   prints for each model how many pipelines its plan has, the most shared memory of one, and a line for each pipeline
//   that keeps vector registers in memory or takes more shared memory than its plan has (with --all: for each): module,
//   first dispatch, registers, spills, bytes of shared memory and what the plan has of them. Status 4: more than
//   planned.
#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "intaglio/families/file_types.hpp"
#include "intaglio/families/published_models.hpp"
#include "intaglio/plan/device_plan.hpp"
#include "intaglio/runtime/kernel_proof.hpp"
#include "intaglio/runtime/kernel_set.hpp"

using namespace intaglio;

namespace {

struct choice {
  const families::published_model* model = nullptr;
  dtype codec = dtype::q4_0;
};
struct choices {
  bool all = false;
  std::uint32_t context = 4096;
  std::vector<choice> models;
};

std::uint64_t number_of(const char* option, std::string_view value) {
  std::uint64_t out = 0;
  const auto [end, status] = std::from_chars(value.data(), value.data() + value.size(), out);
  if (status != std::errc{} || end != value.data() + value.size())
    throw argument_error(option, "a number", "'" + printable(value, 40) + "'");
  return out;
}

choice read_model(std::string_view text) {
  choice out;
  const std::size_t colon = text.find(':');
  out.model = families::find_published_model(text.substr(0, colon));
  if (out.model == nullptr) throw argument_error("model", "a published one", "'" + printable(text, 40) + "'");
  if (out.model->ternary()) out.codec = dtype::f16;
  if (colon == std::string_view::npos) return out;
  const auto type = dtype_from_name(text.substr(colon + 1));
  if (!type || !families::is_planned(families::computed_in(*type)))
    throw argument_error("codec", "one that is planned", "'" + printable(text.substr(colon + 1), 40) + "'");
  out.codec = families::computed_in(*type);
  return out;
}

choices read(int count, char** arguments) {
  choices out;
  for (int i = 1; i < count; ++i) {
    const std::string_view argument = arguments[i];
    if (argument == "--all") out.all = true;
    else if (argument == "--context") {
      if (++i == count) throw argument_error("--context", "a number", "none");
      out.context = static_cast<std::uint32_t>(number_of("--context", arguments[i]));
    } else if (argument.starts_with("--"))
      throw argument_error("option", "--all or --context", "'" + printable(argument, 40) + "'");
    else out.models.push_back(read_model(argument));
  }
  if (out.models.empty()) throw argument_error("model", "at least one", "none");
  return out;
}

/// One figure of a driver's statistics; absent where it reports none of that name.
std::optional<std::uint64_t> figure(const std::vector<std::string>& statistics, std::string_view name) {
  for (const std::string& each : statistics)
    if (each.starts_with(name) && each.size() > name.size() && each[name.size()] == ':')
      return number_of("statistics", std::string_view(each).substr(name.size() + 2));
  return std::nullopt;
}
std::string text_of(std::optional<std::uint64_t> value) { return value ? std::to_string(*value) : "-"; }

/// What a driver's compiler made of a dispatch's pipeline.
struct compiled {
  std::optional<std::uint64_t> registers, spilled, shared;
  std::uint64_t planned = 0;  ///< shared memory that plan::verify counts

  compiled(const plan::dispatch& call, const gpu::pipeline& made) {
    const std::vector<std::string> statistics = made.statistics();
    registers = figure(statistics, "VGPRs"), spilled = figure(statistics, "Spilled VGPRs");
    shared = figure(statistics, "LDS size");
    planned = plan::demands_of(call, 0).shared_memory_bytes;  // a fitted dispatch has its subgroups' width
  }
  /// Radeons allocate shared memory in units of 512 bytes. Variables that a module does not use are left out.
  bool as_planned() const { return shared.value_or(0) <= (planned + 511) / 512 * 512; }
  std::string line(const plan::dispatch& call) const {
    char out[200];
    std::snprintf(out, sizeof out, "  %-26s %-32s %4s registers, %4s spilled, %6s bytes, %6llu planned%s\n",
                  std::string(kernels::name(call.variant)).c_str(), std::string(call.label.view()).c_str(),
                  text_of(registers).c_str(), text_of(spilled).c_str(), text_of(shared).c_str(),
                  static_cast<unsigned long long>(planned), as_planned() ? "" : ": more than planned");
    return out;
  }
};

/// Prints what becomes of one model's plan.
/// @return whether each pipeline has the shared memory of its plan at most
bool compile(const gpu::device& on, const choice& of, const choices& wanted) {
  const families::published_model& model = *of.model;
  const kernels::device_class offered = runtime::usable_classes(on).front();
  const plan::profile& target = offered.is_cpu ? plan::profiles::cpu : plan::profiles::portable;
  const auto planned = families::planned_of(*model.config, model.types(of.codec), model.name, target,
                                            (std::min)(wanted.context, model.config->max_position_embeddings));
  const plan::device_plan fitted(planned.table(), offered);  // proves it
  runtime::kernel_set kernels(on, &runtime::modules_of<>, true);
  std::set<VkPipeline> seen;
  std::uint64_t most = 0, most_planned = 0;
  bool as_planned = true;
  std::string lines;
  for (const auto which : plan::verified_sequences)
    for (const plan::sequence* sequence : fitted.all_of(which))
      for (const auto part : {sequence->prologue, sequence->period, sequence->epilogue, sequence->resident,
                              sequence->resident_long, sequence->greedy, sequence->interim}) {
        kernels.add(part, nullptr);
        for (const plan::dispatch& call : part) {
          const gpu::pipeline& made = kernels.of(call);
          if (!seen.insert(made.handle()).second) continue;
          const compiled found(call, made);
          most = (std::max)(most, found.shared.value_or(0)), most_planned = (std::max)(most_planned, found.planned);
          as_planned = as_planned && found.as_planned();
          if (wanted.all || found.spilled.value_or(0) != 0 || !found.as_planned()) lines += found.line(call);
        }
      }
  std::printf("%s %s: %zu pipelines, at most %llu bytes of shared memory, %llu planned\n%s",
              std::string(model.name).c_str(), std::string(name(of.codec)).c_str(), seen.size(),
              static_cast<unsigned long long>(most), static_cast<unsigned long long>(most_planned), lines.c_str());
  return as_planned;
}

}  // namespace

int main(int count, char** arguments) try {
  const choices wanted = read(count, arguments);
  const gpu::device device;
  std::printf("%s, %s\n", device.description().name.c_str(), device.description().driver_info.c_str());
  bool as_planned = true;
  for (const choice& each : wanted.models) as_planned = compile(device, each, wanted) && as_planned;
  if (as_planned) return 0;
  std::fprintf(stderr, "compile_for: shared memory: expected at most what is planned, found more\n");
  return 4;
} catch (const intaglio::error& problem) {
  std::fprintf(stderr, "compile_for: %s\n", problem.what());
  return 3;
}
