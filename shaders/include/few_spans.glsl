// SPDX-License-Identifier: MIT
// What attention of a batch's rows in one dispatch has of a span: where its octets lie, and its greatest score. The including shader has pool, greatest_at, octet_places and ends.
#ifndef INTAGLIO_FEW_SPANS
#define INTAGLIO_FEW_SPANS

#define pooled(index) pool[(index) >> 2][(index) & 3u]

// Where octets of a span lie in the pool of pages.
void keep_octets(uint to, uint row, uint first) {
  uint t = gl_LocalInvocationIndex, octet_first = first + 8u * t;
  if (t < span_positions / 8u) octet_places[to + t] = octet_first < ends[row] ? pool_place(slot_at(row), octet_first) : 0u;
}

float greatest_of_span(uint head) {
  vec4 most = pool[(greatest_at + head * 32u) / 4u];
  [[unroll]] for (uint i = 1u; i < 8u; ++i) most = max(most, pool[(greatest_at + head * 32u) / 4u + i]);
  return max(max(most.x, most.y), max(most.z, most.w));
}

#endif
