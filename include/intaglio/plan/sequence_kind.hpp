// SPDX-License-Identifier: MIT
// The kinds of passes that a plan has, and the number of tokens of each.
#pragma once

#include <algorithm>
#include <cstdint>

#include "intaglio/core/family.hpp"
#include "intaglio/plan/layer_cache.hpp"
#include "intaglio/plan/profile.hpp"

namespace intaglio::plan {

/// The profile with a model's needs applied: tokens of an encoder's text see each other, so that a text is one pass.
constexpr profile profile_of(const profile& from, const decoder_config& c, std::uint32_t context) {
  profile out = from;
  if (!family_of(c.model_type).encoder || out.work.tile_tokens == 0) return out;
  const std::uint32_t tile = out.work.tile_tokens;
  out.prefill_tokens = (context + tile - 1) / tile * tile;
  out.long_prefill_tokens = 0;
  return out;
}

/// What kind of pass a sequence is planned for.
struct sequence_kind {
  std::uint32_t tokens;
  bool head, sampler;
  batch_shape batch{};
};

/// Tokens of a prefill chunk.
constexpr std::uint32_t chunk_tokens(const profile& target, std::uint32_t context) {
  return (std::min)(target.prefill_tokens, context);
}
/// Tokens of the widest pass, which takes several chunks of a long prompt at once.
constexpr std::uint32_t widest_tokens(const profile& target, std::uint32_t context) {
  const std::uint32_t chunk = chunk_tokens(target, context);
  const std::uint32_t most = (std::min)(target.long_prefill_tokens, context);
  return chunk == 0 || most < chunk ? chunk : most / chunk * chunk;
}
/// Tokens of a chunk whose logits are returned.
constexpr std::uint32_t logits_tokens(const profile& target, std::uint32_t context) {
  return (std::min)(target.logits_tokens, chunk_tokens(target, context));
}
/// Tokens of the widest pass over drafts, with the token in front of them.
constexpr std::uint32_t verify_tokens(const profile& target, std::uint32_t context) {
  return (std::min)(target.verify_tokens, chunk_tokens(target, context));
}

/// The sequences of a session without a batch.
enum class sequence_id : std::uint8_t { decode, prefill, logits, verify };
/// The kind of a sequence, by the profile and the context.
constexpr sequence_kind kind_of(sequence_id which, const profile& target, std::uint32_t context) {
  switch (which) {
    case sequence_id::prefill:
      return {chunk_tokens(target, context), false, false};
    case sequence_id::logits:
      return {logits_tokens(target, context), true, false};
    case sequence_id::verify:
      return {verify_tokens(target, context), true, true};
    default:
      return {1, true, true};
  }
}

}  // namespace intaglio::plan
