// SPDX-License-Identifier: MIT
// The options of one generation, and its result.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "intaglio/runtime/sampling.hpp"

namespace intaglio {

/// Options of one generation. They repeat the members of sampling_options, so that a call reads `{.temperature = 0.7f,
/// .top_k = 40}`.
struct generate_options {
  float temperature = 0;                 ///< finite, 0 or more; 0 is greedy
  std::optional<std::uint32_t> top_k{};  ///< 1 .. vocabulary; absent: off
  float top_p = 1;                       ///< over 0, at most 1; 1: off
  float min_p = 0;                       ///< 0 .. 1; 0: off
  float repeat_penalty = 1;              ///< finite, over 0; 1: off
  /// Number of last tokens that the penalty looks at, at most the context. Absent: 64, or all tokens if there are
  /// fewer.
  std::optional<std::uint32_t> repeat_last_n{};
  std::uint64_t seed = 0;                     ///< the draw is a function of only the seed and the position
  std::optional<std::uint32_t> max_tokens{};  ///< at least 1; absent: until the model ends or the context is full
  std::vector<std::string> stop{};  ///< the text ends before the first of these; at most 16 of at most 1024 bytes
  bool stop_at_end = true;          ///< the model's own end tokens end the generation
  /// Number of passes that one submission may hold. 0: the number that keeps the text flowing.
  std::uint32_t tokens_per_submit = 0;
  std::uint32_t prompt_lookup_num_tokens =
      0;  ///< tokens that prompt lookup drafts at once, at most the plan's verify tokens - 1; 0: none. The tokens drawn
          ///< are the same with and without; drafts are faster where the text repeats itself
  /// Length of the longest n-gram that prompt lookup searches in the history, at least 2 tokens. It uses a shorter
  /// n-gram, of 2 tokens or more, where the history has no longer one.
  std::uint32_t max_matching_ngram_size = 3;
  std::uint32_t chunk = 0;  ///< tokens of the prompt fed at once, at most the plan's; 0: the plan's

  float gpu_idle = 0;  ///< share of the time that the device stays idle, 0 .. 0.95: next() sleeps after each submission

  /// Only the sampling parameters.
  sampling_options sampling() const { return {temperature, top_k, top_p, min_p, repeat_penalty, repeat_last_n, seed}; }
};

/// Why a generation ended.
enum class finish_reason : std::uint8_t {
  none,    ///< the generation still runs
  stop,    ///< the model's end token, a stop string, or the callback's request
  length,  ///< max_tokens, or the context is full
};

/// The reason as OpenAI's API spells it; "none" while the generation runs.
constexpr std::string_view name(finish_reason reason) {
  return reason == finish_reason::stop ? "stop" : reason == finish_reason::length ? "length" : "none";
}

/// Time that a generation took: wall clock, milliseconds.
struct generation_timings {
  double prompt_ms = 0, decode_ms = 0;  ///< time to feed the prompt; time to draw tokens
  double busy_ms = 0;                   ///< while submissions ran; counted where gpu_idle is over 0
  std::uint32_t prompt_tokens = 0;      ///< tokens of the prompt that were fed
  std::uint32_t cached_tokens = 0;      ///< tokens of the prompt that were already in the KV cache
  std::uint32_t generated_tokens = 0;   ///< drawn
  std::uint32_t drafted_tokens = 0;     ///< tokens drafted by prompt lookup
  std::uint32_t accepted_tokens = 0;    ///< drafted tokens that were drawn

  /// Tokens of the prompt fed a second; 0 where none were fed.
  double prompt_tokens_per_second() const { return prompt_ms > 0 ? prompt_tokens / prompt_ms * 1e3 : 0; }
  /// Tokens drawn a second; 0 where none were drawn.
  double decode_tokens_per_second() const { return decode_ms > 0 ? generated_tokens / decode_ms * 1e3 : 0; }
};

/// The result of a generation.
struct generation {
  std::string text;                            ///< without the stop string and the end token
  std::vector<std::int32_t> ids;               ///< drawn tokens, including the end token
  finish_reason finish = finish_reason::none;  ///< why it ended
  generation_timings timings;                  ///< where its time went
};

}  // namespace intaglio
