// SPDX-License-Identifier: MIT
// Functions shared by resident dispatches of a batch: addresses of a layer's arguments, waiting, and leaving. The
// including shader has rows_frame.glsl, rows_exchange.glsl, addresses, spin_limit, rows, threads and timed_out.
#ifndef INTAGLIO_ROWS_WAITS
#define INTAGLIO_ROWS_WAITS

uint64_t address(uint layer, uint argument) { return addresses[(layer & 1u) * argument_count + argument]; }
void keep_addresses(uint layer) {
  if (gl_LocalInvocationIndex < argument_count)
    addresses[(layer & 1u) * argument_count + gl_LocalInvocationIndex] =
        arguments.at[layer * argument_count + gl_LocalInvocationIndex];
}

void time_out() {
  timed_out = true;
  SharedWords(progress).at[progress_timed_out] = 1u;
}
// True after `spin_limit` turns, or when another workgroup has timed out.
bool out_of_spins(uint tries) {
  return timed_out || tries >= spin_limit ||
         ((tries & 1023u) == 0u && SharedWords(progress).at[progress_timed_out] != 0u);
}
// The test is short because most reads find their words written. A word that is not written yet is `unwritten`.
uint largest_of(uvec4 a) { return max(max(a.x, a.y), max(a.z, a.w)); }
bool absent(uvec4 a) { return largest_of(a) == unwritten; }
uvec4 awaited(SharedQuads x, uint quad, uvec4 a) {
  if (absent(a)) {
    uint tries = 0u;
    do a = x.at[quad];
    while (absent(a) && !out_of_spins(++tries));
    if (absent(a) && !timed_out) time_out();
  }
  return a;
}
uint awaited(SharedWords x, uint index, uint a) {
  if (a == unwritten) {
    uint tries = 0u;
    do a = x.at[index];
    while (a == unwritten && !out_of_spins(++tries));
    if (a == unwritten && !timed_out) time_out();
  }
  return a;
}

// The last workgroup to leave checks whether any timed out; if so, it makes the stream of `rows` rows NaN.
shared bool leaves_last;
void leave(uint64_t stream) {
  uint t = gl_LocalInvocationIndex;
  memoryBarrierBuffer();
  barrier();
  if (t == 0u) {
    uint left = atomicAdd(progress.at[progress_left], 1u, gl_ScopeDevice, gl_StorageSemanticsBuffer,
                          gl_SemanticsAcquireRelease) +
                1u;
    bool last = left == gl_NumWorkGroups.x;
    if (last) progress.at[progress_left] = 0u;
    leaves_last = last && SharedWords(progress).at[progress_timed_out] != 0u;
  }
  barrier();
  if (leaves_last)
    for (uint i = t; i < rows * hidden_size; i += threads) Floats(stream).at[i] = not_a_number;
}

#endif
