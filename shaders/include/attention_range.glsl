// SPDX-License-Identifier: MIT
// What a token of a pass sees where `ahead` positions behind its own are among it: of kernels of attention that are no
// part of another one.
#ifndef INTAGLIO_ATTENTION_RANGE
#define INTAGLIO_ATTENTION_RANGE

// The first position that a token sees, and the one behind its last. `before` positions are in front of the pass, which
// has `count` tokens.
uvec2 seen_by(uint before, uint token, uint count) {
  uint own = before + token + 1u;
  return uvec2(first_seen(seen_before(own)), seen_before(own + min(ahead, count - 1u - token)));
}

#endif
