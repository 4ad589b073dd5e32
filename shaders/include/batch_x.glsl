// SPDX-License-Identifier: MIT
// x of the products of shaders/layers_batch.comp, which goes through shared memory: its offsets, how it is read, and
// the scales of its tokens.
#ifndef INTAGLIO_BATCH_X
#define INTAGLIO_BATCH_X

// Workgroups begin a product with different stages, so that they do not all read the same columns of their rows, which
// are in few channels of memory.
uint first_stage, stage_count;
uint turned(uint stage) {
  uint its = stage + first_stage;
  return its < stage_count ? its : its - stage_count;
}

// A quad of x is four words of f16, an octet of a token's columns. A stage is two steps. An invocation reads one octet
// of a token per stage, or with many tokens one in each of both steps.
#define brought_group (sub / 4u % row_groups)
#define brought_token (brought_group * 8u + lane / 4u)
#define brought_step (sub / (4u * row_groups))  // of the stage; 16 subgroups read one step, then the other
const bool brings_two = row_groups == 4u;
const uint stage_quads = 2u * step_quads;
// The invocation's first octet of the first stage: its quad in x, its octet of columns, its offset in pool; and the
// numbers that find the scales of its columns.
struct x_offsets {
  uint quad, column, to, scale_by, scale_reciprocal;
};
// A lane has one block; with dense weights four lanes have neighbouring octets.
#ifdef INNER_NORMS
uint octet_in_step(uint quad, uint c) { return dense ? quad * 4u + c : c * 4u + quad; }
uint quad_offset(uint o) { return dense ? (o >> 2 & 3u) * 32u + (o & 3u) : (o & 3u) * 32u + (o >> 2 & 3u); }
#else
uint octet_in_step(uint quad, uint c) { return c * 4u + quad; }
uint quad_offset(uint o) { return (o & 3u) * 32u + (o >> 2 & 3u); }
#endif
uint octet_quad(uint o, uint token) {
  return (o / 16u * row_groups + token / 8u) * 128u + (token & 7u) * 4u + quad_offset(o);
}
// Index of an octet's scale among the token's: a quotient, here computed as the upper word of a product, which is exact
// for the columns that kernels::layers_batch::most_columns allows.
uint reciprocal(uint divisor) { return 0xffffffffu / divisor + 1u; }
x_offsets bring_offsets(uint product) {
  uint step_ = 2u * first_own_stage(product) + brought_step;
  x_offsets out_;
  out_.quad = step_ * step_quads + brought_group * 128u + (sub & 3u) * 32u + lane;
  out_.column = step_ * 16u + octet_in_step(sub & 3u, lane & 3u);
  out_.to = brought_step * step_quads + brought_group * 128u + (sub & 3u) * 32u + lane;
  out_.scale_by = product == projection ? 1u : parts;
  out_.scale_reciprocal = product == projection ? reciprocal(heads_each * head_dim / 8u)
                          : product == down     ? reciprocal(intermediate_size / 8u)
                                                : reciprocal(hidden_size / 8u);
  return out_;
}
uint scale_of(uint product, x_offsets at, uint o) {
  uint its, below;
  umulExtended(o * at.scale_by + at.scale_by - 1u, at.scale_reciprocal, its, below);
  if (value_slices > 1u && product == projection)
    its = its * value_slices + o * 8u % head_dim / (head_dim / value_slices);
  return its;
}
const bool all_bring = row_groups >= 2u;
void ask(SharedQuads x, x_offsets at, uint stage, out uvec4 words[2]) {
  words[0] = words[1] = uvec4(0u);
  if (all_bring || sub < 8u) words[0] = x.at[at.quad + stage * stage_quads];
  if (brings_two) words[1] = x.at[at.quad + stage * stage_quads + step_quads];
}
// The factor that brings an octet to the scale of the token's largest value.
f16vec2 factor_of(uint product, x_offsets at, uint o, uint most) {
  uint its_scale = scale_of(product, at, o),
       exponent = floatBitsToUint(scratched(brought_token * 33u + (its_scale >> 2))) >> 8u * (its_scale & 3u) & 255u;
  return f16vec2(float16_t(uintBitsToFloat(uint(max(int(exponent) + (127 - int(most)), 0)) << 23)));
}
void leave_octet(uint to, f16vec2 by, uvec4 q) {
  pool[to] = uintBitsToFloat(uvec4(as_word(as_pair(q.x) * by), as_word(as_pair(q.y) * by), as_word(as_pair(q.z) * by),
                                   as_word(as_pair(q.w) * by)));
}
void bring(SharedQuads x, uint product, x_offsets at, uint stage, uint to, uint most, uvec4 words[2]) {
  if (!all_bring && sub >= 8u) return;
  uint quad = at.quad + stage * stage_quads, o = at.column + stage * 32u, offset = at.to + to * buffer_quads;
  f16vec2 by = factor_of(product, at, o, most), second_by = by;
  if (brings_two) second_by = factor_of(product, at, o + 16u, most);
  uvec4 q[2] = words;
  if (absent(q[0]) || (brings_two && absent(q[1]))) {
    q[0] = awaited(x, quad, q[0]);
    if (brings_two) q[1] = awaited(x, quad + step_quads, q[1]);
  }
  leave_octet(offset, by, q[0]);
  if (brings_two) leave_octet(offset + step_quads, second_by, q[1]);
}

// Scales of a product's x, and the quads of scales per token.
SharedQuads scales_of(uint64_t exchange, uint product) {
  return SharedQuads(exchange + uint64_t(product == qkv          ? x_scales_at
                                         : product == projection ? attended_scales_at
                                         : product == gate_up    ? middle_scales_at
                                                                 : gated_scales_at));
}
uint scale_quads(uint product) { return (product == projection ? tasks_of_row * value_slices : parts) / 4u; }
// Reads the scales of all tokens, as exponents, the first x and, for a norm, the tokens' factors.
// @return the exponent of the largest scale of the token whose x the invocation reads
uint take(uint64_t exchange, SharedQuads x, x_offsets at, uint product) {
  bool normalises = product == qkv || product == gate_up;
  uint t = gl_LocalInvocationIndex, token = min(t / 16u, most_rows - 1u), count = scale_quads(product);
  SharedQuads scales = scales_of(exchange, product);
  SharedQuads squares = SharedQuads(exchange + uint64_t(product == qkv ? squares_at : middle_squares_at));
  uvec4 s[most_scale_quads], q[most_scale_quads], first[2];
  [[unroll]] for (uint k = 0u; k < most_scale_quads; ++k) {
    s[k] = q[k] = uvec4(0u);
    uint from = token * count + min(t % 16u + 16u * k, count - 1u);
    if (64u * k < parts) s[k] = scales.at[from];
    if (64u * k < parts && normalises) q[k] = squares.at[from];
  }
  ask(x, at, turned(0u), first);
  uint most = 0u;
  precise float sum = 0.0;
  [[unroll]] for (uint k = 0u; k < most_scale_quads; ++k)
    if (64u * k < parts) {
      uint index = t % 16u + 16u * k, from = token * count + min(index, count - 1u);
      uvec4 e = awaited(scales, from, s[k]) >> 23 & 255u;
      vec4 its = normalises ? uintBitsToFloat(awaited(squares, from, q[k])) : vec4(0.0);
      most = max(most, max(max(e.x, e.y), max(e.z, e.w)));
      precise float four = (its.x + its.y) + (its.z + its.w), more = sum + four;
      if (index < count) {
        sum = more;
        if (t < 16u * most_rows)
          scratched(token * 33u + index) = uintBitsToFloat(e.x | e.y << 8 | e.z << 16 | e.w << 24);
      }
    }
  // In the second half of the buffer of x.
  const uint mosts_at = 4u * buffer_quads, sums_at = mosts_at + most_rows * 20u;
  if (t < 16u * most_rows) {
    pooled(mosts_at + token * 20u + t % 16u) = uintBitsToFloat(most);
    pooled(sums_at + token * 20u + t % 16u) = sum;
  }
  barrier();
  uvec4 largest = uvec4(0u);
  [[unroll]] for (uint i = 0u; i < 4u; ++i)
    largest = max(largest, floatBitsToUint(pool[(mosts_at + brought_token * 20u) / 4u + i]));
  uint out_ = max(max(largest.x, largest.y), max(largest.z, largest.w));
  bring(x, product, at, turned(0u), 0u, out_, first);
  if (t < most_rows) {
    uvec4 its = uvec4(0u);
    precise vec4 sums = vec4(0.0);
    [[unroll]] for (uint i = 0u; i < 4u; ++i) {
      its = max(its, floatBitsToUint(pool[(mosts_at + t * 20u) / 4u + i]));
      sums = sums + pool[(sums_at + t * 20u) / 4u + i];
    }
    precise float mean = ((sums.x + sums.y) + (sums.z + sums.w)) / float(hidden_size) + eps;
    precise float factor =
        uintBitsToFloat(max(max(its.x, its.y), max(its.z, its.w)) << 23) * (normalises ? 1.0 / sqrt(mean) : 1.0);
    token_scales[t] = factor;
  }
  barrier();
  return out_;
}

#endif
