// SPDX-License-Identifier: MIT
// The positions that a token sees when the pass has `ahead` positions after the token's own: for attention kernels
// that are not part of a resident dispatch.
#ifndef INTAGLIO_ATTENTION_RANGE
#define INTAGLIO_ATTENTION_RANGE

// The first position that a token sees, and the end of the positions that it sees. `before` positions precede the pass,
// which has `count` tokens.
uvec2 seen_by(uint before, uint token, uint count) {
  uint own = before + token + 1u;
  return uvec2(first_seen(seen_before(own)), seen_before(own + min(ahead, count - 1u - token)));
}

#endif
