// SPDX-License-Identifier: MIT
// What a user asks of one generation, and what comes of it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "intaglio/runtime/sampling.hpp"

namespace intaglio {

/// One generation. The sampling parameters stand here as in sampling_options, so that a call reads `{.temperature =
/// 0.7f, .top_k = 40}`.
struct generate_options {
  float temperature = 0;                 ///< finite, 0 or more; 0 is greedy
  std::optional<std::uint32_t> top_k{};  ///< 1 .. vocabulary; absent: off
  float top_p = 1;                       ///< over 0, at most 1; 1: off
  float min_p = 0;                       ///< 0 .. 1; 0: off
  float repeat_penalty = 1;              ///< finite, over 0; 1: off
  std::optional<std::uint32_t>
      repeat_last_n{};     ///< tokens back that the penalty looks at, at most the context; absent: 64, or all there are
  std::uint64_t seed = 0;  ///< the draw is a function of seed and position alone
  std::optional<std::uint32_t> max_tokens{};  ///< at least 1; absent: until the model ends or the context is full
  std::vector<std::string> stop{};      ///< the text ends before the first of these; at most 16 of at most 1024 bytes
  bool stop_at_end = true;              ///< the model's own end tokens end the generation
  std::uint32_t tokens_per_submit = 0;  ///< passes that one submission may hold; 0: as many as keep the text flowing
  std::uint32_t prompt_lookup_num_tokens =
      0;  ///< tokens drafted at once from what the text has said before, at most the plan's verify tokens - 1; 0: none.
          ///< The tokens drawn are the same with and without, sooner where the text repeats itself
  std::uint32_t max_matching_ngram_size =
      3;  ///< tokens that have to stand earlier in the history, 2 .. so many, before what followed them is drafted
  std::uint32_t chunk = 0;  ///< tokens of the prompt fed at once, at most the plan's; 0: the plan's

  float gpu_idle =
      0;  ///< share of the time that the device is left idle, 0 .. 0.95: next() rests behind each submission

  /// The sampling parameters alone.
  sampling_options sampling() const { return {temperature, top_k, top_p, min_p, repeat_penalty, repeat_last_n, seed}; }
};

/// Why a generation ended.
enum class finish_reason : std::uint8_t {
  none,    ///< still going
  stop,    ///< the model's end token, a stop string, or the callback's wish
  length,  ///< max_tokens, or the context is full
};

/// The reason as OpenAI's API spells it; "none" while the generation runs.
constexpr std::string_view name(finish_reason reason) {
  return reason == finish_reason::stop ? "stop" : reason == finish_reason::length ? "length" : "none";
}

/// Where the time of a generation went; wall clock, milliseconds.
struct generation_timings {
  double prompt_ms = 0, decode_ms = 0;  ///< feeding the prompt; drawing tokens
  double busy_ms = 0;                   ///< while submissions were under way; counted where gpu_idle is over 0
  std::uint32_t prompt_tokens = 0;      ///< fed now
  std::uint32_t cached_tokens = 0;      ///< of the prompt, already in the KV cache
  std::uint32_t generated_tokens = 0;   ///< drawn
  std::uint32_t drafted_tokens = 0;     ///< by prompt lookup
  std::uint32_t accepted_tokens = 0;    ///< of them

  /// Tokens fed a second, 0 where none were.
  double prompt_tokens_per_second() const { return prompt_ms > 0 ? prompt_tokens / prompt_ms * 1e3 : 0; }
  /// Tokens drawn a second, 0 where none were.
  double decode_tokens_per_second() const { return decode_ms > 0 ? generated_tokens / decode_ms * 1e3 : 0; }
};

/// What a generation gave.
struct generation {
  std::string text;                            ///< without the stop string and the end token
  std::vector<std::int32_t> ids;               ///< drawn tokens, the end token among them
  finish_reason finish = finish_reason::none;  ///< why it ended
  generation_timings timings;                  ///< where its time went
};

}  // namespace intaglio
