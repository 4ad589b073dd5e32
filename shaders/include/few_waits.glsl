// SPDX-License-Identifier: MIT
// What workgroups that compute all layers of a batch's pass share: addresses of a layer, waiting, and leaving. The
// including shader has few_frame.glsl, few_told.glsl, places, patience, rows, threads and gave_up.
#ifndef INTAGLIO_FEW_WAITS
#define INTAGLIO_FEW_WAITS

uint64_t place(uint layer, uint argument) { return places[(layer & 1u) * argument_count + argument]; }
void keep_places(uint layer) {
  if (gl_LocalInvocationIndex < argument_count)
    places[(layer & 1u) * argument_count + gl_LocalInvocationIndex] =
        arguments.at[layer * argument_count + gl_LocalInvocationIndex];
}

void give_up() {
  gave_up = true;
  SharedWords(progress).at[progress_gave_up] = 1u;
}
// After `patience` turns, or when another one has given up.
bool waits_in_vain(uint tries) {
  return gave_up || tries >= patience || ((tries & 1023u) == 0u && SharedWords(progress).at[progress_gave_up] != 0u);
}
// Little code where nothing is waited for, which is what most reads find: `nothing` where a word is not there yet.
uint largest_of(uvec4 a) { return max(max(a.x, a.y), max(a.z, a.w)); }
bool absent(uvec4 a) { return largest_of(a) == nothing; }
uvec4 awaited(SharedQuads x, uint quad, uvec4 a) {
  if (absent(a)) {
    uint tries = 0u;
    do a = x.at[quad];
    while (absent(a) && !waits_in_vain(++tries));
    if (absent(a) && !gave_up) give_up();
  }
  return a;
}
uint awaited(SharedWords x, uint index, uint a) {
  if (a == nothing) {
    uint tries = 0u;
    do a = x.at[index];
    while (a == nothing && !waits_in_vain(++tries));
    if (a == nothing && !gave_up) give_up();
  }
  return a;
}

// The last workgroup that leaves finds out whether any gave up: then the stream of `rows` rows is no number.
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
    leaves_last = last && SharedWords(progress).at[progress_gave_up] != 0u;
  }
  barrier();
  if (leaves_last)
    for (uint i = t; i < rows * hidden_size; i += threads) Floats(stream).at[i] = not_a_number;
}

#endif
