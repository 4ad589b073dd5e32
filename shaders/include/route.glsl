// SPDX-License-Identifier: MIT
// The order in which experts are chosen: by logit from the largest on; the lowest expert first if logits are equal.
#ifndef INTAGLIO_ROUTE
#define INTAGLIO_ROUTE

// Rises with the logit; both zeros have the same key.
uint key_of(float logit) {
  uint bits = logit == 0.0 ? 0u : floatBitsToUint(logit);
  return (bits & 0x80000000u) != 0u ? ~bits : bits | 0x80000000u;
}

// The number of four neighbouring experts that are chosen before expert e.
uint ahead_of(uvec4 others, uvec4 which, uint key, uint e) {
  uvec4 first =
      uvec4(greaterThan(others, uvec4(key))) + uvec4(equal(others, uvec4(key))) * uvec4(lessThan(which, uvec4(e)));
  return first.x + first.y + first.z + first.w;
}

#endif
