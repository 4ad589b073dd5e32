// SPDX-License-Identifier: MIT
// Positions of the rows of a batch's resident dispatch, and pool offsets of the octets of a span of attention. The
// including shader has most_rows, rows, pool, octet_offsets, positions, ends and cache_offsets.
#ifndef INTAGLIO_ROWS_SPANS
#define INTAGLIO_ROWS_SPANS

#define pooled(index) pool[(index) >> 2][uint(index) & 3u]

// Looks up the offsets of a span's octets in the pool of pages.
void keep_octets(uint to, uint row, uint first) {
  uint t = gl_LocalInvocationIndex, octet_first = first + 8u * t;
  if (t < span_positions / 8u)
    octet_offsets[to + t] = octet_first < ends[row] ? pool_offset(slot_at(row), octet_first) : 0u;
}

// Looks up the position of each row's session.
void keep_rows() {
  uint t = gl_LocalInvocationIndex;
  if (t < most_rows) {
    positions[t] = ends[t] = 0u;
    cache_offsets[t] = context;
    if (t < rows && state.at[slot_at(t) + state_count] != 0u) {
      positions[t] = row_position(t);
      ends[t] = min(positions[t] + 1u, limit_of(slot_at(t)));
      cache_offsets[t] = row_offset(t, positions[t]);
    }
  }
}

#endif
