// SPDX-License-Identifier: MIT
// What attention of a batch's rows in one dispatch has of a span: where its octets lie. The including shader has pool, octet_places and ends.
#ifndef INTAGLIO_FEW_SPANS
#define INTAGLIO_FEW_SPANS

#define pooled(index) pool[(index) >> 2][(index) & 3u]

// Where octets of a span lie in the pool of pages.
void keep_octets(uint to, uint row, uint first) {
  uint t = gl_LocalInvocationIndex, octet_first = first + 8u * t;
  if (t < span_positions / 8u) octet_places[to + t] = octet_first < ends[row] ? pool_place(slot_at(row), octet_first) : 0u;
}

#endif
