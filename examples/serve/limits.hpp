// SPDX-License-Identifier: MIT
// Every limit of the server; comments name the options that change one. Requests beyond a limit are refused with its
// value.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace intaglio::serve {

struct limits {
  // Limits of HTTP.
  std::uint32_t head_bytes = 16 * 1024, head_fields = 100, target_bytes = 8 * 1024;
  std::size_t body_bytes = std::size_t{4} << 20;  ///< --max-body-bytes
  std::uint32_t connections = 1200;               ///< --max-connections
  std::uint32_t connections_per_address = 600;    ///< --max-connections-per-address
  std::chrono::seconds idle{60}, head{10}, body{30},
      write{30};                       ///< --idle-seconds, --read-seconds (write); the others are fixed
  int send_buffer_bytes = 256 * 1024;  ///< what the system holds of an answer for a client that does not read
  // Limits of JSON.
  std::size_t json_depth = 64, json_values = 400'000, json_members = 1100;
  // Limits of requests.
  bool ignore_unknown = false;  ///< --ignore-unknown: fields and names in queries that are not known, else refused
  std::uint32_t n = 8;          ///< --max-n
  std::uint32_t prompts = 64, messages = 1024, stop_strings = 16, stop_bytes = 1024, logit_bias = 1024,
                top_logprobs = 20, tools = 256, embedded_texts = 2048;
  std::uint32_t prompt_tokens = 0;                           ///< --max-prompt-tokens; 0: the context
  std::uint32_t completion_tokens = 0;                       ///< --max-completion-tokens; 0: the context
  std::uint32_t queue = 256;                                 ///< --queue: choices that wait
  static constexpr std::uint32_t shifted_tokens = 1u << 20;  ///< of a text that goes on after the context's end
  // Limits of the program that reads a PDF.
  static constexpr unsigned pdf_seconds = 5;
  static constexpr std::size_t pdf_text_bytes = std::size_t{1} << 20;
  static constexpr std::uint64_t pdf_memory_bytes = std::uint64_t{512} << 20;
};

}  // namespace intaglio::serve
