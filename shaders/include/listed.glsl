// SPDX-License-Identifier: MIT
// The output rows of a workgroup in a product of a small batch of tokens: neighbouring tokens, or with experts those of
// a tile of expert_tiles, whose lists hold list_tokens rows each, of which a workgroup takes tile_tokens. The including
// shader has the constants, and `tiles` and `state` to read.
#ifndef INTAGLIO_LISTED
#define INTAGLIO_LISTED

const bool listed = experts_used != 0u;

struct tile_range {
  uint first;        // row, or word of the first row's number
  uint tokens;       // at least 1
  uint first_group;  // of the expert's matrix
  bool wanted;
};

// No early return for an unwanted tile of neighbours: after one the driver diverges lanes.
tile_range find_tile(uint index) {
  tile_range tile;
  if (listed) {
    uint parts = list_tokens / tile_tokens, at = index / parts * (list_tokens + 2u),
         before = index % parts * tile_tokens, count = tiles.at[at + 1u];
    tile.wanted = before < count;
    tile.first = at + 2u + before;
    tile.tokens = min(max(count, before + 1u) - before, tile_tokens);
    tile.first_group = tile.wanted ? tiles.at[at] * (rows / 4u) : 0u;
    return tile;
  }
  uint count = state.at[state_count];
  tile.first = index * tile_tokens;
  tile.tokens = min(max(count, tile.first + 1u) - tile.first, tile_tokens);
  tile.first_group = 0u;
  tile.wanted = tile.first < count;
  return tile;
}

uint row_of(tile_range tile, uint t) { return listed ? tiles.at[tile.first + t] : tile.first + t; }
// Row of the input.
uint input_of(tile_range tile, uint t) {
  uint row = row_of(tile, t);
  return listed && own_input == 0u ? row / experts_used : row;
}

#endif
