// SPDX-License-Identifier: MIT
// What prompt lookup is worth on text that repeats itself and on text that does not: fable with and without it by turns, in one process.
// usage: lookup FABLE_GGUF [tokens [drafts]]
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "intaglio/models/bitnet_b158.hpp"
#include "intaglio/runtime/session.hpp"

using namespace intaglio;

namespace {

void measure(session<models::fable>& told, const char* what, std::string_view prompt, generate_options options, std::uint32_t drafts) {
  const std::vector<std::int32_t> ids = told.encode(prompt);
  std::array<std::vector<double>, 2> speeds;
  std::array<generation, 2> last;
  for (int turn = 0; turn < 14; ++turn) {
    options.prompt_lookup_num_tokens = turn % 2 == 0 ? 0 : drafts;
    last[turn % 2] = told.generate(ids, options);
    const generation_timings& took = last[turn % 2].timings;
    speeds[turn % 2].push_back(took.generated_tokens / (took.prompt_ms + took.decode_ms) * 1e3);  // of the prompt but the last token was there before
  }
  for (auto& list : speeds) std::sort(list.begin(), list.end());
  const double without = speeds[0][3], with = speeds[1][3];
  std::printf("%-24s %4zu tokens: %8.1f tok/s, with %u drafts at once %8.1f: %.2f times as fast; %u of %u drafts right; %s\n", what, last[0].ids.size(), without, drafts, with,
              with / without, last[1].timings.accepted_tokens, last[1].timings.drafted_tokens, last[0].ids == last[1].ids ? "same tokens" : "OTHER TOKENS");
}

}  // namespace

int main(int count, char** arguments) try {
  if (count < 2) {
    std::fprintf(stderr, "usage: lookup FABLE_GGUF [tokens [drafts]]\n");
    return 2;
  }
  const auto tokens = static_cast<std::uint32_t>(count > 2 ? std::atoi(arguments[2]) : 256), drafts = static_cast<std::uint32_t>(count > 3 ? std::atoi(arguments[3]) : 7);
  gpu::device device;
  session<models::fable> told(device, arguments[1]);
  std::printf("%s\n", told.device().label().c_str());
  const generate_options greedy{.max_tokens = tokens, .stop_at_end = false}, drawn{.temperature = 0.9f, .seed = 4, .max_tokens = tokens, .stop_at_end = false};
  std::string hops;
  for (int i = 0; i < 5; ++i) hops += "Hop, hop, hop! ";
  measure(told, "repeating, greedy", hops + "Hop,", greedy, drafts);
  generate_options steady = greedy;
  steady.temperature = 0.3f;
  measure(told, "repeating, drawn", hops + "Hop,", steady, drafts);
  measure(told, "a story, greedy", "Once upon a time", greedy, drafts);
  measure(told, "a story, drawn", "Once upon a time", drawn, drafts);
} catch (const intaglio::error& problem) {
  std::fprintf(stderr, "%s\n", problem.what());
  return 3;
}
