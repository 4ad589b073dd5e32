// SPDX-License-Identifier: MIT
// How long the driver's compiler takes for each pipeline of an executor's start, one after the other; then, with
// another module instead of a kernel's, for those of this kernel. NVIDIA: __GL_SHADER_DISK_CACHE=0. usage: pipelines
// bitnet|mistral|fable [KERNEL=FILE.spv...]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "intaglio/models/bitnet_b158.hpp"
#include "intaglio/models/llama.hpp"
#include "intaglio/plan/planned.hpp"
#include "intaglio/runtime/executor.hpp"
#include "intaglio/runtime/load_session.hpp"

using namespace intaglio;

namespace {

std::string replaced;  // the kernel whose module is replaced, or empty
std::vector<std::uint32_t> other_module;

runtime::program_module module_of(kernels::variant which) {
  runtime::program_module out = runtime::modules_of<>(which);
  if (kernels::interface_of(kernels::kernel_of(which)).name == replaced)
    out.spirv = std::as_bytes(std::span(other_module));
  return out;
}

std::vector<std::uint32_t> words_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::vector<char> bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (bytes.empty()) throw file_error(path, std::nullopt, "expected SPIR-V, found nothing");
  std::vector<std::uint32_t> out(bytes.size() / 4);
  std::memcpy(out.data(), bytes.data(), out.size() * 4);
  return out;
}

/// Prints milliseconds for each pipeline, or for those of one kernel. Once: within a process the driver remembers.
void measure(const gpu::device& on, const plan::table& table, const std::string& only, const std::string& label) {
  const auto plan = runtime::executor::plan_for(table, runtime::usable_classes(on).front());
  runtime::kernel_set seen(on, &module_of);
  std::vector<const plan::sequence*> list = runtime::executor::begins_with(*plan, true);
  for (const plan::sequence* each : runtime::executor::goes_on_with(*plan, true)) list.push_back(each);
  for (const plan::sequence* each : list)
    for (const auto part : each->recorded())
      for (const plan::dispatch& call : part) {
        const std::string name(kernels::interface_of(call.kernel).name);
        if (!only.empty() && name != only) continue;
        const std::size_t before = seen.size();
        const auto begin = std::chrono::steady_clock::now();
        seen.add({&call, 1}, nullptr);
        if (seen.size() == before) continue;
        std::printf("%-14s %-18s %-28s %6.0f ms\n", std::string(each->name).c_str(), name.c_str(),
                    label.empty() ? std::string(call.label.view()).c_str() : label.c_str(),
                    std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count());
      }
}

}  // namespace

int main(int count, char** arguments) try {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  const std::string model = count > 1 ? arguments[1] : "";
  if (model != "bitnet" && model != "mistral" && model != "fable") {
    std::fprintf(stderr, "usage: pipelines bitnet|mistral|fable [KERNEL=FILE.spv...]\n");
    return 2;
  }
  const gpu::device device;
  const plan::profile profile =
      device.description().type == gpu::device_type::cpu ? plan::profiles::cpu : plan::profiles::portable;
  const plan::planned planned = model == "bitnet"    ? plan::planned::of<models::bitnet_2b_4t>(profile)
                                : model == "mistral" ? plan::planned::of<models::mistral_7b<dtype::q4_0>>(profile)
                                                     : plan::planned::of<models::fable>(profile);
  std::printf("%s, %s\n", device.label().c_str(), model.c_str());
  if (count == 2) measure(device, planned.table(), "", "");
  for (int i = 2; i < count; ++i) {
    const std::string what = arguments[i];
    const std::size_t equal = std::min(what.find('='), what.size());
    replaced = what.substr(0, equal);
    const std::string path = what.substr(std::min(equal + 1, what.size()));
    if (!path.empty()) other_module = words_of(path);
    const std::string only = replaced;
    if (path.empty()) replaced.clear();  // the module as it is
    measure(device, planned.table(), only, path.empty() ? "as it is" : path);
  }
} catch (const intaglio::error& problem) {
  std::fprintf(stderr, "%s\n", problem.what());
  return 3;
}
