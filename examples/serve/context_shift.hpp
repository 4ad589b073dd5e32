// SPDX-License-Identifier: MIT
// A text that goes on after the context's end: the oldest tokens after those that are kept are dropped, and the rest
// is fed again as a prompt. Named as llama.cpp's server does: context_shift, n_keep, n_discard.
// https://github.com/ggml-org/llama.cpp/blob/master/tools/server/README.md
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "limits.hpp"
#include "request_fields.hpp"

namespace intaglio::serve {

/// How a full context is made shorter.
struct context_shift {
  static constexpr std::uint32_t whole_prompt = UINT32_MAX;  ///< n_keep -1
  static constexpr std::uint32_t room = 4;  ///< positions of a context that are not kept, as in llama.cpp
  std::uint32_t keep = 0;                   ///< n_keep: tokens of the prompt that stay, beside its BOS
  std::uint32_t discard = 0;  ///< n_discard: tokens after them that are dropped each time; 0: half of them

  /// Tokens at the front that stay.
  /// @param prompt tokens of it  @param begins the first one is a BOS  @param context positions
  std::uint32_t kept(std::size_t prompt, bool begins, std::uint32_t context) const {
    const std::size_t wanted = keep == whole_prompt ? prompt : std::min<std::size_t>(prompt, keep + (begins ? 1u : 0u));
    return static_cast<std::uint32_t>(std::min<std::size_t>(wanted, context - room));
  }
  /// Tokens that are dropped after those that stay: at least one, and the last token of all is none of them.
  /// @pre all >= kept + 2
  std::uint32_t dropped(std::size_t all, std::uint32_t kept) const {
    const auto rest = static_cast<std::uint32_t>(all) - kept;
    return std::clamp(discard == 0 ? rest / 2 : discard, 1u, rest - 1);
  }
};

/// The tokens that are fed again: the kept ones, and those after the dropped ones.
inline std::vector<std::int32_t> shifted(std::span<const std::int32_t> all, std::uint32_t kept, std::uint32_t dropped) {
  std::vector<std::int32_t> out(all.begin(), all.begin() + kept);
  out.insert(out.end(), all.begin() + kept + dropped, all.end());
  return out;
}

/// context_shift, n_keep and n_discard of a request.
/// @param max_tokens that it asks for  @throws api_error 400 naming the field
inline std::optional<context_shift> read_context_shift(const fields& from, std::uint32_t context,
                                                       const std::optional<std::uint32_t>& max_tokens) {
  const bool wanted = from.boolean("context_shift", false);
  const std::uint32_t most = context > context_shift::room ? context - context_shift::room : 0;
  const std::int64_t keep = from.integer("n_keep", -1, most).value_or(0);
  const std::uint32_t discard = from.natural("n_discard", 0, context).value_or(0);
  if (!wanted) {
    if (keep != 0) refuse_field("n_keep", "context_shift: true beside it", std::to_string(keep));
    if (discard != 0) refuse_field("n_discard", "context_shift: true beside it", std::to_string(discard));
    return {};
  }
  if (most == 0) refuse_field("context_shift", "false in a context of " + std::to_string(context), "true");
  const std::string bound = "max_tokens of 1 .. " + std::to_string(limits::shifted_tokens) +
                            " beside it, since the context does not end the text";
  if (!max_tokens) refuse_field("context_shift", bound, "none");
  if (*max_tokens > limits::shifted_tokens) refuse_field("context_shift", bound, std::to_string(*max_tokens));
  return context_shift{keep == -1 ? context_shift::whole_prompt : static_cast<std::uint32_t>(keep), discard};
}

}  // namespace intaglio::serve
