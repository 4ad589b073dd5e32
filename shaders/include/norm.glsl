// SPDX-License-Identifier: MIT
// Root mean square norm and int8 quantisation of one token's activations, identical in every kernel: y = (x * w) * r.
// Blocks of 128 elements are dealt to the workgroup's subgroups in turn; an invocation holds up to eight quads of a
// chunk of blocks. Loads are grouped. The including shader defines norm_width, the elements of a token, and
// norm_width_max, a constant that is not less.
#ifndef INTAGLIO_NORM
#define INTAGLIO_NORM

#ifndef norm_width_max
#define norm_width_max norm_width
#endif
#ifndef input_quad  // a quad of the token; may be defined to transform it
#define input_quad float_quad
#endif
#define norm_quads (norm_width / 4u)
#define norm_blocks ((norm_width + 127u) / 128u)
shared float block_sums[(norm_width_max + 127u) / 128u + 1u];  // of squares
shared float from_subgroups[workgroup_size / 4u];
shared int sums_of_subgroups[workgroup_size / 4u];

// Blocks of a subgroup in one chunk, and chunks until all blocks are done.
#define chunk_blocks (virtual_width >> 2)
#define norm_chunks ((norm_blocks + chunk_blocks * subgroups - 1u) / (chunk_blocks * subgroups))

// Quad s of an invocation's chunk is that of virtual lane s % virtual_count in the chunk's block s / virtual_count.
uint norm_block(uint chunk, uint s) { return (chunk * chunk_blocks + s / virtual_count) * subgroups + subgroup_index; }
uint norm_quad(uint chunk, uint s) {
  return norm_block(chunk, s) * 32u + virtual_lane + (s & (virtual_count - 1u)) * virtual_width;
}
// No subgroup has a block in the slot; constant if the subgroup size is.
#define unused_slot(s) ((s) / virtual_count * subgroups >= norm_blocks)

vec4 weighted[8];  // x * w of the last chunk's quads

// Quads of a chunk; past the width the last quad again.
vec4 chunk_quad(Words from, uint first_quad, uint chunk, uint s) {
  return unused_slot(s) ? vec4(0.0) : float_quad(from, first_quad + min(norm_quad(chunk, s), norm_quads - 1u));
}
#ifndef weight_quad  // a quad of a norm's weight; may be defined to transform it
#ifdef normalises    // if false, y is x
#define weight_quad(weight, chunk, s) (normalises ? chunk_quad(weight, 0u, chunk, s) : vec4(1.0))
#else
#define weight_quad(weight, chunk, s) chunk_quad(weight, 0u, chunk, s)
#endif
#endif
vec4 chunk_input(Words x, uint first_quad, uint chunk, uint s) {
  return unused_slot(s) ? vec4(0.0) : input_quad(x, first_quad + min(norm_quad(chunk, s), norm_quads - 1u));
}

// Recomputes the chunk's `weighted` for code after inverse_rms(), which keeps it only if there is one chunk.
void reload_chunk(Words x, uint first_quad, Words weight, uint chunk) {
  if (norm_chunks > 1u) LATER_UNROLLED for (uint s = 0u; s < 8u; ++s) {
      precise vec4 product = chunk_input(x, first_quad, chunk, s) * weight_quad(weight, chunk, s);
      weighted[s] = product;
    }
}

// Whether the invocation processes a quad of the chunk after reload_chunk: of 64 lanes the upper 32 repeat the lower
// ones.
bool owns_quad(uint chunk, uint s) { return !unused_slot(s) && norm_quad(chunk, s) < norm_quads && lane < 32u; }

float greatest(vec4 v) {
  v = abs(v);
  return max(max(v.x, v.y), max(v.z, v.w));
}

// Tested by bits: drivers may assume that no float is infinite or NaN.
#define not_a_number uintBitsToFloat(0x7fc00000u)
bool finite(float x) { return (floatBitsToUint(x) & 0x7f800000u) != 0x7f800000u; }

// 1 / root mean square of x[4 * first_quad ..], or 1 if `normalises` is false; `largest` is the greatest |x * w|. One
// barrier.
float inverse_rms(Words x, uint first_quad, Words weight, float eps, out float largest) {
  largest = 0.0;
  for (uint chunk = 0u; chunk < norm_chunks; ++chunk) {
    vec4 v[8], w[8];
    LATER_UNROLLED for (uint i = 0u; i < 8u; ++i) {
      v[i] = chunk_input(x, first_quad, chunk, i);
      w[i] = weight_quad(weight, chunk, i);
    }
    precise float s[8];
    LATER_UNROLLED for (uint i = 0u; i < 8u; ++i) {
      precise vec4 product = v[i] * w[i], square = v[i] * v[i];
      precise float sum = (square.x + square.y) + (square.z + square.w);
      weighted[i] = product;
      largest = max(largest, greatest(product));
      s[i] = norm_quad(chunk, i) < norm_quads ? sum : 0.0;
    }
    // Virtual lanes of an invocation fold into the first slot of each block.
    if (virtual_count == 8u) LATER_UNROLLED for (uint i = 0u; i < 4u; ++i) s[i] = s[i] + s[i + 4u];
    if (virtual_count >= 4u) LATER_UNROLLED for (uint i = 0u; i < 6u; ++i) s[i] = s[i] + s[i + 2u];
    if (virtual_count >= 2u) LATER_UNROLLED for (uint i = 0u; i < 7u; ++i) s[i] = s[i] + s[i + 1u];
    // A quarter of the lanes ends with each block of four.
    LATER_UNROLLED for (uint half_chunk = 0u; half_chunk < 2u; ++half_chunk) if (4u * half_chunk < chunk_blocks) {
      vec4 four;
      LATER_UNROLLED for (uint i = 0u; i < 4u; ++i) four[i] = s[((4u * half_chunk + i) * virtual_count) & 7u];
      float sum = virtual_sum4(four);
      uint index = 4u * half_chunk + (lane & 31u) / lane_quarter, block = norm_block(chunk, index * virtual_count);
      if ((lane & (lane_quarter - 1u)) == 0u && index < chunk_blocks && block < norm_blocks) block_sums[block] = sum;
    }
  }
  largest = subgroup_max(largest);
  if (subgroups > 1u && lane == 0u) from_subgroups[subgroup_index] = largest;
  workgroup_barrier();
  float part[8];
  LATER_UNROLLED for (uint j = 0u; j < 8u; ++j) {
    precise float sum = 0.0;
    if (j < virtual_count)
      for (uint first = 0u; first < norm_blocks; first += 32u) {
        uint block = first + virtual_lane + j * virtual_width;
        sum = sum + (block < norm_blocks ? block_sums[min(block, norm_blocks - 1u)] : 0.0);
      }
    part[j] = sum;
  }
  if (subgroups > 1u) {
    for (uint g = lane; g < subgroups; g += subgroup_size) largest = max(largest, from_subgroups[g]);
    largest = subgroup_max(largest);
  }
  precise float mean = virtual_sum(part) / float(norm_width) + eps;
  precise float r = 1.0 / sqrt(mean);
#ifdef normalises
  if (!normalises) r = 1.0;
#endif
  return finite(mean) ? r : not_a_number;
}

// The largest |y|, at least 1e-5: rounding is monotone, so it is the rounded product of the largest.
float largest_activation(float largest, float r) {
  precise float y = largest * r;
  return max(y, 1e-5);
}

// The step of the int8 grid. Integers have no NaN: an invalid x must show here.
float grid_step(float largest, float r) {
  precise float step_ = largest / 127.0;
  return finite(r) ? step_ : not_a_number;
}

// y of quad s.
vec4 normalised(uint s, float r) {
  precise vec4 y = weighted[s] * r;
  return y;
}

// Four int8 of y * s, rounded half to even.
ivec4 quantised(vec4 y, float s) {
  precise vec4 scaled = y * s;
  return clamp(ivec4(roundEven(scaled)), -128, 127);
}

uint packed(ivec4 q) {
  return (uint(q.x) & 255u) | (uint(q.y) & 255u) << 8 | (uint(q.z) & 255u) << 16 | uint(q.w) << 24;
}

int sum_of(ivec4 q) { return (q.x + q.y) + (q.z + q.w); }

// A sum over the workgroup: shared_sum() takes each invocation's number before a barrier, the total is read after it.
int shared_sum(int own) {
  own = subgroup_sum(own);
  if (subgroups > 1u && lane == 0u) sums_of_subgroups[subgroup_index] = own;
  return own;
}
int whole_sum(int sum) {
  if (subgroups == 1u) return sum;
  sum = 0;
  for (uint g = lane; g < subgroups; g += subgroup_size) sum += sums_of_subgroups[g];
  return subgroup_sum(sum);
}

#endif
