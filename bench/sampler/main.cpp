// SPDX-License-Identifier: MIT
// Time of the kernel sample, by timestamps: vocabularies of Mistral, Llama 3 and Gemma 3, each way to draw, logits as a
// model has them (a bell, some words far ahead: with the bulk out of reach, or with a sixth of the chances), the bell
// alone, evenly spread, two levels and all alike. As decode has it: one draw, the workgroups of the plan for GPUs.
// usage: sampler [--subgroups N] [--slice N] [--vocabulary N] [--module FILE.spv] [--form any|interim]
#include <algorithm>
#include <bit>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "intaglio/gpu/queue.hpp"
#include "intaglio/gpu/recorder.hpp"
#include "intaglio/gpu/transfer.hpp"
#include "intaglio/kernels/state.hpp"
#include "intaglio/plan/profile.hpp"
#include "intaglio/runtime/device_class.hpp"
#include "intaglio/runtime/kernel_modules.hpp"
#include "intaglio/runtime/kernel_proof.hpp"
#include "intaglio/runtime/sampling.hpp"

using namespace intaglio;

namespace {

constexpr std::uint32_t context = 4096, ring_size = 256, draws = 20;

/// A bell, and thirty words so far ahead.
std::vector<float> bell(std::uint32_t vocabulary, float ahead) {
  std::vector<float> out(vocabulary);
  std::uint32_t state = 1;
  const auto next = [&] { return static_cast<float>((state = state * 1664525u + 1013904223u) >> 8) * 0x1p-24f; };
  for (float& each : out) each = 3.f * (next() + next() + next() + next() - 2.f);
  for (std::uint32_t i = 0; i < 30; ++i) out[(i * 7919u) % vocabulary] += ahead + 0.2f * static_cast<float>(i);
  return out;
}

/// The kernel for a vocabulary, as decode has it.
gpu::pipeline make(const gpu::device& on, std::uint32_t vocabulary, std::uint32_t subgroups, std::uint32_t slice,
                   kernels::sample_form form, const std::vector<char>& other) {
  const kernels::kernel_interface& face = kernels::sample_interface;
  const auto width = runtime::choose_subgroup(on.limits());
  std::vector<gpu::specialization> constants{
      {0, std::max(subgroups, kernels::least_sample_subgroups(vocabulary)) * width.size}};
  const auto set = [&](std::string_view name, std::uint32_t value) {
    constants.push_back({static_cast<std::uint32_t>(face.specialization_index(name)), value});
  };
  set("vocab_size", vocabulary), set("ring_size", ring_size), set("context", context), set("max_tokens", 1),
      set("draws", 1), set("subgroup_width", width.size);
  set("slice", slice), set("form", static_cast<std::uint32_t>(form));
  return gpu::pipeline(on, {.name = face.name,
                            .spirv = other.empty() ? runtime::modules_of<>(kernels::variant::sample).spirv
                                                   : std::as_bytes(std::span(other)),
                            .constants = constants,
                            .push_constant_bytes = face.push_bytes(),
                            .required_subgroup_size = width.required});
}

/// Median microseconds of a draw.
double time(const gpu::device& on, const gpu::pipeline& pipeline, const std::vector<float>& logits,
            const sampling_options& how, std::uint32_t slice) {
  const auto vocabulary = static_cast<std::uint32_t>(logits.size());
  const kernels::kernel_interface& face = kernels::sample_interface;
  std::vector<std::uint32_t> state(kernels::state::words(1, context));
  runtime::write_sampling(how, state);
  state[kernels::state::position] = 100, state[kernels::state::count] = 1;
  const auto filled = [&](std::size_t bytes, const char* what) {
    return gpu::buffer(on, bytes, gpu::placement::device_local, what);
  };
  gpu::buffer l = filled(4 * logits.size(), "logits"), s = filled(4 * state.size(), "state"),
              r = filled(4 * ring_size + 4, "ring"),
              scratch = filled(std::uint64_t{(vocabulary + slice - 1) / slice} * (6 * slice + 208), "scratch"),
              counters = filled(4, "counters");
  const std::uint32_t none = 0;
  {
    gpu::transfer to(on);
    to.upload(l, 0, std::as_bytes(std::span(logits)));
    to.upload(s, 0, std::as_bytes(std::span(state)));
    to.upload(counters, 0, std::as_bytes(std::span(&none, 1)));
    to.finish();
  }
  std::vector<std::uint64_t> push(face.push_count());
  const auto give = [&](std::string_view name, const gpu::buffer& buffer) {
    push[face.push_index(name)] = buffer.address();
  };
  give("logits", l), give("state", s), give("ring", r), give("scratch", scratch), give("counters", counters);
  const gpu::timestamps points(on, draws + 1);
  gpu::recorder to(on, "draws", &points);
  for (std::uint32_t i = 0; i < draws; ++i)
    to.dispatch(pipeline, std::as_bytes(std::span(push)), {(vocabulary + slice - 1) / slice, 1, 1}).barrier();
  const gpu::recording commands = to.finish();
  const VkCommandBuffer handle = commands.handle();
  gpu::queue queue(on);
  std::vector<double> times;
  for (int turn = 0; turn < 7; ++turn) {
    queue.wait(queue.submit({&handle, 1}, "draws"), std::chrono::seconds(120));
    times.push_back(points.read(commands.points()).back() * 1e-3 / draws);
  }
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

struct options {
  std::uint32_t subgroups = plan::profiles::portable.work.sample_subgroups;
  std::uint32_t slice = 0;  // 0: the plan's
  std::vector<std::uint32_t> vocabularies{32'000, 128'256, 262'144};
  std::vector<char> module;  // replaces the library's
  kernels::sample_form form = kernels::sample_form::any;
};

options read_options(int count, char** arguments) {
  options out;
  for (int i = 1; i + 1 < count; i += 2) {
    const std::string name = arguments[i], value = arguments[i + 1];
    const auto number = static_cast<std::uint32_t>(std::atoi(value.c_str()));
    if (name == "--module") {
      std::ifstream file(value, std::ios::binary);
      out.module.assign(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
    } else if (name == "--form")
      out.form = value == "interim" ? kernels::sample_form::interim : kernels::sample_form::any;
    else if (name == "--subgroups") out.subgroups = number;
    else if (name == "--slice") out.slice = number;
    else out.vocabularies = {number};
  }
  return out;
}

struct named_logits {
  const char* name;
  std::vector<float> logits;
};

std::vector<named_logits> shapes_of(std::uint32_t vocabulary) {
  std::vector<float> levels(vocabulary), even(vocabulary);
  for (std::uint32_t i = 0; i < vocabulary; ++i)
    levels[i] = static_cast<float>(i * 2654435761u >> 31),
    even[i] = static_cast<float>(i * 2654435761u >> 8) * 0x1p-24f;
  return {{"few likely", bell(vocabulary, 14)},
          {"many", bell(vocabulary, 8)},
          {"bell", bell(vocabulary, 0)},
          {"even", even},
          {"two levels", levels},
          {"all alike", std::vector<float>(vocabulary, 1.f)}};
}

void print_times(const gpu::device& device, const options& with, std::uint32_t vocabulary) {
  const struct {
    const char* name;
    sampling_options how;
  } ways[] = {{"greedy", {}},
              {"top-k 40", {.temperature = 0.8f, .top_k = 40}},
              {"top-p 0.5", {.temperature = 0.8f, .top_p = 0.5f}},
              {"top-p 0.9", {.temperature = 0.8f, .top_p = 0.9f}},
              {"top-p 0.95", {.temperature = 0.8f, .top_p = 0.95f}},
              {"min-p 0.05", {.temperature = 0.8f, .min_p = 0.05f}},
              {"all three", {.temperature = 0.8f, .top_k = 40, .top_p = 0.95f, .min_p = 0.05f}},
              {"penalty", {.temperature = 0.8f, .top_p = 0.95f, .repeat_penalty = 1.1f}}};
  const std::vector<named_logits> shapes = shapes_of(vocabulary);
  const std::uint32_t slice = with.slice == 0 ? kernels::sample_slice(vocabulary) : with.slice;
  const auto begin = std::chrono::steady_clock::now();
  const gpu::pipeline pipeline = make(device, vocabulary, with.subgroups, slice, with.form, with.module);
  std::printf(
      "%7u tokens, slices of %u: pipeline made in %.0f ms (__GL_SHADER_DISK_CACHE=0: by the driver's compiler)\n",
      vocabulary, slice, std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count());
  for (const auto& [name, how] : ways) {
    std::printf("%7u tokens, %-10s", vocabulary, name);
    for (const auto& shape : shapes)
      std::printf("  %s %7.1f", shape.name, time(device, pipeline, shape.logits, how, slice));
    std::printf("\n");
  }
}

}  // namespace

int main(int count, char** arguments) try {
  const options with = read_options(count, arguments);
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  const gpu::device device;
  std::printf("%s, workgroups of %u subgroups, microseconds of a draw\n", device.label().c_str(), with.subgroups);
  for (const std::uint32_t vocabulary : with.vocabularies) print_times(device, with, vocabulary);
} catch (const intaglio::error& problem) {
  std::fprintf(stderr, "%s\n", problem.what());
  return 3;
}
