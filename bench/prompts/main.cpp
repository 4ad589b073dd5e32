// SPDX-License-Identifier: MIT
// Prompts of whole models with synthetic weights: tokens a second, and the time of every dispatch of the last chunk.
// usage: prompts ["NAME CODEC"... [--tokens N] [--chunk N] [--runs N] [--modules N] [--f16] [--dispatches]]; names
// are those of published models, some unless said; an encoder takes a text at once; `--chunk`: tokens of every chunk
// where a prompt has as many, instead of the plan's, which has long chunks where enough is left; `--both`: the plan's
// chunks with and without long ones, whose caches must have the same bits; `--modules` counts from 0, the fastest that
// the device may run; `--f16`: the profile attends_in_f16
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "bench/named_model.hpp"
#include "intaglio/runtime/executor.hpp"
#include "intaglio/runtime/synthetic_weights.hpp"

using namespace intaglio;

namespace {

using clock_type = std::chrono::steady_clock;

struct options {
  std::uint32_t tokens = 512, chunk = 0, runs = 9, modules = 0;
  bool dispatches = false, f16 = false, both = false;
  std::vector<std::string> names;
};

void print_dispatches(runtime::executor& run, runtime::pass_kind kind, std::uint32_t position,
                      std::span<const std::uint32_t> tokens) {
  std::map<const plan::dispatch*, std::vector<double>> times;
  for (int i = 0; i < 5; ++i)
    for (const auto& time : run.measure(kind, position, tokens)) times[time.what].push_back(time.nanoseconds);
  for (auto& [what, list] : times) {
    std::nth_element(list.begin(), list.begin() + static_cast<std::ptrdiff_t>(list.size() / 2), list.end());
    std::printf("    %-16s %-28s x %3zu %8.2f us, %.0f us a chunk\n", kernels::interface_of(what->kernel).name.data(),
                what->label.data, list.size() / 5, list[list.size() / 2] / 1e3,
                list[list.size() / 2] / 1e3 * static_cast<double>(list.size()) / 5);
  }
}

/// A chunk of a prompt: its kind of pass, its tokens. @param takes_long as sessions do, else the plan's chunk
struct chunk_of_prompt {
  runtime::pass_kind kind;
  std::uint32_t tokens;
};
chunk_of_prompt next_chunk(runtime::executor& run, std::uint32_t left, bool takes_long) {
  const std::uint32_t many = takes_long ? run.long_chunk(left, true, nullptr) : 0;
  if (many != 0) return {runtime::pass_kind::prefill_long, many};
  return {runtime::pass_kind::prefill, std::min(left, run.table().prefill.max_tokens)};
}

/// Seconds of a prompt, medians first.
std::vector<double> feed(runtime::executor& run, std::span<const std::uint32_t> tokens, std::uint32_t runs,
                         bool takes_long) {
  std::vector<double> times;
  for (std::uint32_t turn = 0; turn <= runs; ++turn) {  // the first one warms up
    const auto start = clock_type::now();
    for (std::uint32_t at = 0; at < tokens.size();) {
      const auto [kind, count] = next_chunk(run, static_cast<std::uint32_t>(tokens.size()) - at, takes_long);
      run.begin(kind, at, tokens.subspan(at, count), {}, 1);
      while (run.pending()) run.submit(250, 1);
      run.drain();
      at += count;
    }
    if (turn != 0) times.push_back(std::chrono::duration<double>(clock_type::now() - start).count());
  }
  std::sort(times.begin(), times.end());
  return times;
}

/// Keys and values of the last layer.
std::vector<std::byte> last_cache(runtime::executor& run) {
  gpu::transfer transfer(run.device(), std::uint64_t{1} << 24);
  std::vector<std::byte> out;
  for (const auto& item : std::span(run.caches().items).last(2)) {
    std::vector<std::byte> part(item.bytes);
    transfer.download(run.caches().buffers[item.buffer], item.offset, part);
    out.insert(out.end(), part.begin(), part.end());
  }
  return out;
}

void measure(const gpu::device& device, const std::string& word, const options& how) {
  const char* const name = word.c_str();
  const bench::named_model model(word);
  plan::profile target = how.f16 ? plan::profiles::attends_in_f16 : plan::profiles::portable;
  if (how.chunk != 0) target.prefill_tokens = how.chunk, target.long_prefill_tokens = 0;
  const plan::planned made = model.planned(target, std::max<std::uint32_t>(4096, how.tokens + 256));
  const plan::table& table = made.table();
  runtime::executor run(device, table, runtime::synthetic_weights(device, table),
                        runtime::usable_classes(device).at(how.modules), nullptr);
  if (const auto fault = run.prove(); !fault.kernel.empty())
    std::printf("%s: WRONG: %s (%s), off by %g\n", name, fault.kernel.c_str(), fault.label.c_str(), fault.apart);
  std::vector<std::uint32_t> tokens(how.tokens);
  for (std::size_t i = 0; i < tokens.size(); ++i)
    tokens[i] = static_cast<std::uint32_t>(i * 7919 % table.config->vocab_size);
  std::vector<std::byte> found;
  for (const bool takes_long : {false, true}) {
    if (!takes_long && !how.both) continue;
    const std::vector<double> times = feed(run, tokens, how.runs, takes_long);
    std::printf("%-18s %u tokens in chunks of %u: %8.0f tok/s (%.0f to %.0f)\n", name, how.tokens,
                next_chunk(run, how.tokens, takes_long).tokens, how.tokens / times[times.size() / 2],
                how.tokens / times.back(), how.tokens / times.front());
    if (how.both && takes_long && last_cache(run) != found) std::printf("%s: WRONG: other bits in long chunks\n", name);
    if (how.both) found = last_cache(run);
    std::fflush(stdout);
  }
  std::uint32_t at = 0;
  chunk_of_prompt last{};
  while (at < how.tokens) at += (last = next_chunk(run, how.tokens - at, true)).tokens;
  if (how.dispatches) print_dispatches(run, last.kind, at - last.tokens, std::span(tokens).last(last.tokens));
}

}  // namespace

int main(int count, char** arguments) try {
  options how;
  for (int i = 1; i < count; ++i) {
    const std::string word = arguments[i];
    const auto number = [&] { return static_cast<std::uint32_t>(std::atoi(arguments[++i])); };
    if (word == "--tokens") how.tokens = number();
    else if (word == "--chunk") how.chunk = number();
    else if (word == "--runs") how.runs = number();
    else if (word == "--modules") how.modules = number();
    else if (word == "--f16") how.f16 = true;
    else if (word == "--both") how.both = true;
    else if (word == "--dispatches") how.dispatches = true;
    else how.names.push_back(word);
  }
  gpu::device device;
  std::printf("%s\n", device.label().c_str());
  if (how.names.empty())
    how.names = {"mistral_7b f16",  "mistral_7b bf16",   "mistral_7b q8_0",   "mistral_7b q4_0",
                 "mistral_7b q4_k", "mistral_7b q6_k",   "gemma3_4b bf16",    "llama_32_1b bf16",
                 "bitnet_2b_4t",    "mixtral_8x7b q4_0", "qwen3_30b_a3b q4_0"};
  for (const std::string& each : how.names) measure(device, each, how);
} catch (const intaglio::error& problem) {
  std::fprintf(stderr, "%s\n", problem.what());
  return 3;
}
