// SPDX-License-Identifier: MIT
// The order in which experts are chosen: by their logits from the largest on, of equal ones the lowest first.
#ifndef INTAGLIO_ROUTE
#define INTAGLIO_ROUTE

// Rises as the logit does; both zeros have one.
uint key_of(float logit) {
  uint bits = logit == 0.0 ? 0u : floatBitsToUint(logit);
  return (bits & 0x80000000u) != 0u ? ~bits : bits | 0x80000000u;
}

// Experts that are taken before one, of four in a row.
uint ahead_of(uvec4 others, uvec4 which, uint key, uint e) {
  uvec4 first =
      uvec4(greaterThan(others, uvec4(key))) + uvec4(equal(others, uvec4(key))) * uvec4(lessThan(which, uvec4(e)));
  return first.x + first.y + first.z + first.w;
}

#endif
