// SPDX-License-Identifier: MIT
// The gain of prompt lookup on text that repeats itself and on text that does not, with and without it in turns, in one
// process: for a file, or for models of the true shapes with random weights, whose greedy text becomes periodic sooner
// or later and whose sampled text does not. usage: lookup [--tokens N] [--drafts N] [--turns N] NAME --file GGUF |
// NAME... names with a file: fable, bitnet_2b_4t, mistral_7b_q8_0; without: bitnet_2b_4t, mistral_7b_q8_0,
// mistral_7b_q4_0, gemma3_4b_q8_0
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "intaglio/models/bitnet_b158.hpp"
#include "intaglio/models/gemma3.hpp"
#include "intaglio/models/llama.hpp"
#include "intaglio/plan/planned.hpp"
#include "intaglio/runtime/session.hpp"
#include "intaglio/runtime/synthetic_weights.hpp"

using namespace intaglio;

namespace {

struct choice {
  std::uint32_t tokens = 600, drafts = 7;
  std::size_t turns = 7;
  std::string file;
};

double median(std::vector<double> list) {
  std::sort(list.begin(), list.end());
  return list[list.size() / 2];
}

/// The token from which on the text is periodic, twice or more; all tokens, if it is not.
std::size_t repeats_from(const std::vector<std::int32_t>& ids) {
  std::size_t from = ids.size();
  for (std::size_t period = 1; period <= ids.size() / 2; ++period) {
    std::size_t at = ids.size();
    while (at > period && ids[at - 1] == ids[at - 1 - period]) --at;
    if (ids.size() - at >= 2 * period) from = std::min(from, at);
  }
  return from;
}

generation read(text_stream stream) {
  while (!stream.done()) stream.next();
  return stream.result();
}

/// @param begin makes a text_stream of ids and options
template <class Begin>
void measure(Begin&& begin, const char* what, const std::vector<std::int32_t>& ids, generate_options options,
             const choice& how) {
  options.max_tokens = 2;
  options.prompt_lookup_num_tokens = how.drafts;
  begin(ids, options).next();  // whatever happens once
  options.max_tokens = how.tokens;
  options.stop_at_end = false;
  std::array<std::vector<double>, 2> speeds;
  std::array<generation, 2> last;
  for (std::size_t turn = 0; turn < 2 * how.turns; ++turn) {
    options.prompt_lookup_num_tokens = turn % 2 == 0 ? 0 : how.drafts;
    last[turn % 2] = read(begin(ids, options));
    const generation_timings& took = last[turn % 2].timings;
    speeds[turn % 2].push_back(took.generated_tokens / (took.prompt_ms + took.decode_ms) *
                               1e3);  // of the prompt but the last token is there, after the first time
  }
  const double without = median(speeds[0]), with = median(speeds[1]);
  const auto& [plain, drafted] = last;
  std::printf(
      "  %-18s %4zu tokens, periodic from %3zu: %8.1f tok/s, with %u drafts at once %8.1f: %.2f times as fast; %u of "
      "%u drafts right; %s\n",
      what, plain.ids.size(), repeats_from(plain.ids), without, how.drafts, with, with / without,
      drafted.timings.accepted_tokens, drafted.timings.drafted_tokens,
      plain.ids == drafted.ids ? "same tokens" : "OTHER TOKENS");
  std::fflush(stdout);
}

template <class Model>
void measure_file(const gpu::device& device, const choice& how) {
  session<Model> storyteller(device, how.file);
  const auto begin = [&](const std::vector<std::int32_t>& ids, const generate_options& options) {
    return storyteller.begin(ids, options);
  };
  std::string hops;
  for (int i = 0; i < 5; ++i) hops += "Hop, hop, hop! ";
  measure(begin, "repeating, greedy", storyteller.encode(hops + "Hop,"), {}, how);
  measure(begin, "repeating, drawn", storyteller.encode(hops + "Hop,"), {.temperature = 0.3f}, how);
  measure(begin, "a story, greedy", storyteller.encode("Once upon a time"), {}, how);
  measure(begin, "a story, drawn", storyteller.encode("Once upon a time"), {.temperature = 0.9f, .seed = 4}, how);
}

template <class Model>
void measure_synthetic(const gpu::device& device, const char* name, const std::vector<std::string>& wanted,
                       const choice& how) {
  if (std::find(wanted.begin(), wanted.end(), name) == wanted.end()) return;
  const plan::planned made = plan::planned::of<Model>(plan::profiles::portable, 4096);
  const plan::table& table = made.table();
  const auto body = std::make_shared<runtime::session_body>(device, table, 25);
  body->run = std::make_unique<runtime::executor>(device, table, runtime::synthetic_weights(device, table),
                                                  runtime::usable_classes(device).at(0), nullptr);
  if (const auto fault = body->run->prove(); !fault.kernel.empty())
    std::printf("%s: WRONG: %s (%s), off by %g\n", name, fault.kernel.c_str(), fault.label.c_str(), fault.apart);
  std::printf("%s\n", name);
  const auto begin = [&](const std::vector<std::int32_t>& ids, const generate_options& options) {
    body->replace(ids);
    body->drafting = {};
    return text_stream(runtime::session_use(body), options);
  };
  std::vector<std::int32_t> prompt(40);
  for (std::size_t i = 0; i < prompt.size(); ++i) prompt[i] = static_cast<std::int32_t>(1000 + i % 8 * 37);
  measure(begin, "greedy", prompt, {}, how);
  std::iota(prompt.begin(), prompt.end(), 500);
  measure(begin, "drawn", prompt, {.temperature = 1.5f, .seed = 4}, how);
  const auto pass_ms = [&](runtime::pass_kind kind) {
    return body->run->speed(kind).segment_ms() * body->run->segments(kind);
  };
  for (const std::uint32_t drafts : {std::min(how.drafts, 7u), how.drafts})
    std::printf("  a pass over %u drafts takes %.3f ms, one of decode %.3f: %.2f times as long\n", drafts,
                pass_ms(body->run->verify_kind(drafts + 1)), pass_ms(runtime::pass_kind::decode),
                body->run->verify_cost(body->run->verify_kind(drafts + 1)));
}

}  // namespace

int main(int count, char** arguments) try {
  choice how;
  std::vector<std::string> names;
  for (int i = 1; i < count; ++i) {
    const std::string word = arguments[i];
    const auto number = [&] { return i + 1 < count ? std::atoi(arguments[++i]) : 0; };
    if (word == "--tokens") how.tokens = static_cast<std::uint32_t>(number());
    else if (word == "--drafts") how.drafts = static_cast<std::uint32_t>(number());
    else if (word == "--turns") how.turns = static_cast<std::size_t>(number());
    else if (word == "--file" && i + 1 < count) how.file = arguments[++i];
    else names.push_back(word);
  }
  if (names.empty() || how.tokens < 2 || how.turns < 1) {
    std::fprintf(stderr, "usage: lookup [--tokens N] [--drafts N] [--turns N] NAME --file GGUF | NAME...\n");
    return 2;
  }
  gpu::device device;
  std::printf("%s\n", device.label().c_str());
  if (!how.file.empty()) {
    if (names.front() == "fable") measure_file<models::fable>(device, how);
    if (names.front() == "bitnet_2b_4t") measure_file<models::bitnet_2b_4t>(device, how);
    if (names.front() == "mistral_7b_q8_0") measure_file<models::mistral_7b<dtype::q8_0>>(device, how);
    return 0;
  }
  measure_synthetic<models::bitnet_2b_4t>(device, "bitnet_2b_4t", names, how);
  measure_synthetic<models::mistral_7b<dtype::q8_0>>(device, "mistral_7b_q8_0", names, how);
  measure_synthetic<models::mistral_7b<dtype::q4_0>>(device, "mistral_7b_q4_0", names, how);
  measure_synthetic<models::gemma3_4b<dtype::q8_0>>(device, "gemma3_4b_q8_0", names, how);
} catch (const intaglio::error& problem) {
  std::fprintf(stderr, "%s\n", problem.what());
  return 3;
}
