// SPDX-License-Identifier: MIT
// The rows of a tile of a product of a chunk of tokens: neighbouring tokens, or with experts the rows of a list of
// expert_tiles, in whose order `quantize_f16` writes x. The including shader has the constants experts_used,
// list_tokens, tile_tokens, rows and max_tokens, and `tiles` and `state` to read.
#ifndef INTAGLIO_CHUNK_ROWS
#define INTAGLIO_CHUNK_ROWS

const bool in_lists = experts_used != 0u;

struct chunk_range {
  uint first, end;   // rows of the input; an empty tile has end <= first
  uint first_group;  // of the expert's matrix
  uint list;         // word of the first row's pair
};
chunk_range chunk;

void find_rows() {
  chunk.first = gl_WorkGroupID.x * tile_tokens;
  chunk.first_group = 0u;
  chunk.list = 0u;
  if (in_lists) {
    uint before = chunk.first % list_tokens, at = chunk.first / list_tokens * (list_tokens + 2u);
    chunk.end = chunk.first - before + tiles.at[at + 1u];
    chunk.list = at + 2u + before;
    if (chunk.end > chunk.first) chunk.first_group = tiles.at[at] * (rows / 4u);
  } else {
    chunk.end = min(state.at[state_count], max_tokens);
  }
  chunk.end = min(chunk.end, chunk.first + tile_tokens);
}

// Row of the output: a token, or a pair of token and choice.
uint output_row(uint row) { return in_lists ? tiles.at[chunk.list + row - chunk.first] : row; }

#endif
