// SPDX-License-Identifier: MIT
// Kernels matmul, turn and norm_add on the CPU. For matmul's prologue `norm` callers first call reference::rms_norm.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <vector>

#include "intaglio/core/array_view.hpp"
#include "intaglio/kernels/cache_layout.hpp"
#include "intaglio/kernels/matmul_layout.hpp"
#include "intaglio/kernels/rope_turns.hpp"
#include "intaglio/reference/cached.hpp"
#include "intaglio/reference/canonical.hpp"
#include "intaglio/reference/ternary_matmul.hpp"

namespace intaglio::reference {

/// The specialization constants that change results.
struct matmul_shape {
  std::uint32_t columns = 0, rows = 0;  ///< rows of the merged matrix
  kernels::codec codec = kernels::codec::f16;
  kernels::epilogue epilogue = kernels::epilogue::store;
  std::uint32_t head_dim = 0, q_size = 0, kv_size = 0, context = 0;  ///< rope_cache
  bool ring = false;                                                 ///< rope_cache
  kernels::element cache_element = kernels::element::f16;            ///< rope_cache
  shader::activation_function gate{};                                ///< gated
};

/// The weights of 32 columns of a row, in two parts of 16 columns. Part h adds (sum of code * x) * d[h] + offset[h] *
/// (sum of x). Where `in_halves` is false both parts have the factors of the first.
struct weight_block {
  std::array<std::int32_t, 32> codes{};
  std::array<float, 2> d{}, offset{};
  bool in_halves = false, has_offset = false;
};

namespace layout {

/// Reads 16 bits at any address, little-endian.
inline std::uint16_t word16(const std::byte* at) {
  std::uint16_t out;
  std::memcpy(&out, at, 2);
  return out;
}
/// An f16 at any address.
inline float half(const std::byte* at) { return f32_from_f16(word16(at)); }
/// A byte as a number of -128 .. 127.
inline std::int32_t signed_byte(std::byte b) { return static_cast<std::int8_t>(std::to_integer<unsigned>(b)); }
/// A byte as a number of 0 .. 255.
inline unsigned byte(std::byte b) { return std::to_integer<unsigned>(b); }

/// The code of column `i` of block b in row r.
inline std::uint8_t code_at(const kernels::layout::group_offsets& at, const std::byte* group, std::size_t r,
                            std::size_t b, std::size_t i) {
  if (at.has(8)) return static_cast<std::uint8_t>(byte(group[at.bytes(r, b, i / 16) + i % 16]));
  unsigned out = 0;
  if (at.row.table != 0) {  // each plane has one bit of a code; its words are one after the other
    for (std::uint32_t bit = 0; bit < at.row.bits; ++bit) {
      const std::size_t begin = at.has(4)              ? at.nibbles(r, b) + 4 * bit
                                : at.has(2) && bit < 2 ? at.pairs(r, b) + 4 * bit
                                                       : at.bits(r, b);
      out |= (byte(group[begin + i % 4]) >> (i / 4) & 1u) << bit;
    }
    return static_cast<std::uint8_t>(out);
  }
  if (at.has(4)) out = byte(group[at.nibbles(r, b) + i % 16]) >> (i / 16 * 4) & 15u;
  if (at.has(2))
    out |= (byte(group[at.pairs(r, b) + 4 * (i / 16) + i % 4]) >> (i % 16 / 4 * 2) & 3u) << (at.row.bits & 4u);
  if (at.has(1)) out |= (byte(group[at.bits(r, b) + i % 4]) >> (i / 4) & 1u) << (at.row.bits & 6u);
  return static_cast<std::uint8_t>(out);
}

/// Reads the factors and least values of block b of row r into `out`.
inline void take_factors(const kernels::layout::group_offsets& at, const std::byte* group, std::size_t r, std::size_t b,
                         weight_block& out) {
  using codecs::factor_form;
  const std::size_t halves = 32 / at.row.per;
  const std::byte *const factors = group + at.factors(r, b), *const super = group + at.super(r, b);
  for (std::size_t h = 0; h < halves; ++h) {
    switch (at.row.form) {
      case factor_form::half:
        out.d[h] = half(factors + 2 * h);
        if (at.row.least) out.offset[h] = half(factors + 2 * (halves + h));
        break;
      case factor_form::brain:
        out.d[h] = f32_from_bf16(word16(factors + 2 * h));
        break;
      case factor_form::byte:
        out.d[h] = half(super) * static_cast<float>(signed_byte(factors[h])) * at.row.unit();
        if (at.row.least) out.offset[h] = -(half(super + 2) * static_cast<float>(byte(factors[halves + h])));
        break;
      case factor_form::six: {
        const std::uint32_t bits = std::uint32_t{byte(factors[0])} | std::uint32_t{byte(factors[1])} << 8 |
                                   std::uint32_t{byte(factors[2])} << 16,
                            its = bits >> 12 * (r % 2);
        out.d[h] = half(super) * static_cast<float>(its & 63);
        out.offset[h] = -(half(super + 2) * static_cast<float>(its >> 6 & 63));
        break;
      }
    }
  }
}

}  // namespace layout

/// Block `block` of row `row` of a weight in matmul's layout.
inline weight_block block_of(kernels::codec type, std::span<const std::byte> weight, std::uint32_t columns,
                             std::uint32_t row, std::uint32_t block) {
  const codecs::device_row& of = kernels::info(type).row;
  const kernels::layout::group_offsets at{of, columns / 32};
  const std::byte* const group = weight.data() + row / 4 * kernels::matmul_group_bytes(type, columns);
  weight_block out;
  out.in_halves = of.per == 16;
  out.has_offset = of.least;
  for (std::size_t i = 0; i < 32; ++i) out.codes[i] = of.number(layout::code_at(at, group, row % 4, block, i));
  layout::take_factors(at, group, row % 4, block, out);
  return out;
}

/// One weight as f32.
inline float weight_at(kernels::codec type, std::span<const std::byte> weight, std::uint32_t columns, std::uint32_t row,
                       std::uint32_t column) {
  if (kernels::is_dense(type))
    return elements::read(weight, static_cast<kernels::element>(type),
                          std::size_t{row} * ((columns + 7) / 8 * 8) + column);
  const weight_block b = block_of(type, weight, columns, row, column / 32);
  const std::size_t half = b.in_halves ? column % 32 / 16 : 0;
  const float y = product(b.d[half], static_cast<float>(b.codes[column % 32]));
  return b.has_offset ? y + b.offset[half] : y;
}

/// Activations, 32 in 24 bits: x[i] is about codes[i] * scale, where scale is a power of two. scale is NaN where one of
/// them is not finite.
struct fixed_block {
  std::array<std::int32_t, 32> codes{};
  float scale = 0;
};
/// Converts a block of 32 values as the kernel fixed does.
inline fixed_block fix(std::span<const float> x) {
  std::uint32_t greatest = 0;
  for (const float each : x) greatest = (std::max)(greatest, std::bit_cast<std::uint32_t>(each) & 0x7fffffffu);
  fixed_block out;
  if (greatest >= 0x7f800000u) {
    out.scale = std::numeric_limits<float>::quiet_NaN();
    return out;
  }
  const std::uint32_t exponent = std::clamp(greatest >> 23, 23u, 254u);
  const float factor = std::bit_cast<float>((276u - exponent) << 23);
  out.scale = std::bit_cast<float>((exponent - 22u) << 23);
  for (std::size_t i = 0; i < x.size(); ++i)
    out.codes[i] = std::clamp(static_cast<std::int32_t>(std::nearbyint(product(x[i], factor))), -8388608, 8388607);
  return out;
}

/// The output of kernel `fixed` for a token, [7, blocks, 4] words (kernels/catalogue.hpp); and the numbers that such
/// words stand for.
inline std::vector<std::uint32_t> fixed_words(std::span<const float> x) {
  const std::size_t blocks = x.size() / 32;
  std::vector<std::uint32_t> out(28 * blocks);
  for (std::size_t b = 0; b < blocks; ++b) {
    const fixed_block block = fix(x.subspan(32 * b, 32));
    const auto word = [&](std::size_t part, std::size_t i) -> std::uint32_t& {
      return out[(part * blocks + b) * 4 + i];
    };
    std::int32_t upper = 0, lower = 0;
    for (std::size_t i = 0; i < 32; ++i) {
      const auto code = static_cast<std::uint32_t>(block.codes[i]);
      for (std::size_t byte = 0; byte < 3; ++byte)
        word(2 * byte + i / 16, i % 16 / 4) |= (code >> (16 - 8 * byte) & 255u) << (i % 4 * 8);
      upper += block.codes[i] >> 16;
      lower += block.codes[i] & 0xffff;
    }
    word(6, 0) = std::bit_cast<std::uint32_t>(block.scale);
    word(6, 1) = static_cast<std::uint32_t>(upper);
    word(6, 2) = static_cast<std::uint32_t>(lower);
  }
  return out;
}
/// The values of blocks that the kernel fixed wrote. @param words 28 words a block
inline std::vector<float> fixed_values(std::span<const std::uint32_t> words) {
  const std::size_t blocks = words.size() / 28;
  std::vector<float> out(32 * blocks);
  for (std::size_t i = 0; i < out.size(); ++i) {
    const auto byte = [&](std::size_t part) {
      return words[((part + i % 32 / 16) * blocks + i / 32) * 4 + i % 16 / 4] >> (i % 4 * 8) & 255u;
    };
    const auto code = static_cast<std::int32_t>(byte(0) << 24 | byte(2) << 16 | byte(4) << 8) >> 8;
    out[i] = product(static_cast<float>(code), std::bit_cast<float>(words[(6 * blocks + i / 32) * 4]));
  }
  return out;
}

/// The tiled output of kernel `fixed` for tokens of fixed_words. Each eight tokens have [blocks, 3, 8, 8] words of
/// planes, then [blocks, 2, 8] scales and sums.
inline std::vector<std::uint32_t> tiled_words(std::span<const std::uint32_t> tokens, std::size_t columns) {
  const std::size_t blocks = columns / 32, count = tokens.size() / (28 * blocks);
  std::vector<std::uint32_t> out((count + 7) / 8 * 224 * blocks);
  for (std::size_t t = 0; t < count; ++t)
    for (std::size_t b = 0; b < blocks; ++b) {
      std::uint32_t* const tile = out.data() + t / 8 * 224 * blocks;
      const auto from = [&](std::size_t part, std::size_t i) {
        return tokens[(t * 7 * blocks + part * blocks + b) * 4 + i];
      };
      for (std::size_t word = 0; word < 24; ++word)
        tile[(b * 3 + word / 8) * 64 + t % 8 * 8 + word % 8] = from(word / 4, word % 4) ^ (word < 8 ? 0u : 0x7f7f7f7fu);
      tile[192 * blocks + 16 * b + t % 8] = from(6, 0);
      const float whole = static_cast<float>(static_cast<std::int32_t>(from(6, 1))) * 65536.0f +
                          static_cast<float>(static_cast<std::int32_t>(from(6, 2)));
      tile[192 * blocks + 16 * b + 8 + t % 8] = std::bit_cast<std::uint32_t>(whole);
    }
  return out;
}
/// A token of such tiles in the form of fixed_words, except for the sums, which are 0.
inline std::vector<std::uint32_t> untiled_words(std::span<const std::uint32_t> tiles, std::size_t columns,
                                                std::size_t token) {
  const std::size_t blocks = columns / 32, tile = token / 8 * 224 * blocks;
  std::vector<std::uint32_t> out(28 * blocks);
  for (std::size_t b = 0; b < blocks; ++b) {
    for (std::size_t word = 0; word < 24; ++word)
      out[(word / 4 * blocks + b) * 4 + word % 4] =
          tiles[tile + (b * 3 + word / 8) * 64 + token % 8 * 8 + word % 8] ^ (word < 8 ? 0u : 0x7f7f7f7fu);
    out[(6 * blocks + b) * 4] = tiles[tile + 192 * blocks + 16 * b + token % 8];
  }
  return out;
}

/// Sums of products with the upper 8 bits of activations, and with their lower 16 bits.
struct fixed_sums {
  std::int32_t upper = 0, lower = 0;
  void add(std::int32_t code, std::int32_t x) {
    upper += code * (x >> 16);
    lower += code * (x & 0xffff);
  }
  float whole() const { return static_cast<float>(upper) * 65536.0f + static_cast<float>(lower); }  // an exact product
};

/// The product of row `row` and x. Virtual lane v takes blocks v, v + 32, ... in rising order into one accumulator.
/// Dense codecs use dot().
inline float matmul_sum(const matmul_shape& shape, std::span<const std::byte> weight, std::uint32_t row,
                        std::span<const float> x, array_view<const fixed_block> fixed) {
  if (kernels::is_dense(shape.codec)) {
    std::vector<float> w(shape.columns);
    for (std::uint32_t c = 0; c < shape.columns; ++c) w[c] = weight_at(shape.codec, weight, shape.columns, row, c);
    return dot(w, x);
  }
  std::array<float, virtual_lanes> lanes{};
  for (std::uint32_t b = 0; b < shape.columns / 32; ++b) {
    const weight_block w = block_of(shape.codec, weight, shape.columns, row, b);
    const fixed_block& y = fixed[b];
    std::array<fixed_sums, 2> sums{}, plain{};  // of f16, or the first of all
    for (std::size_t i = 0; i < 32; ++i) {
      const std::size_t half = w.in_halves ? i / 16 : 0;
      sums[half].add(w.codes[i], y.codes[i]);
      plain[half].add(1, y.codes[i]);
    }
    float& lane = lanes[b % virtual_lanes];
    for (std::size_t h = 0; h < (w.in_halves ? 2u : 1u); ++h)
      lane += product(sums[h].whole(), product(w.d[h], y.scale));
    for (std::size_t h = 0; w.has_offset && h < (w.in_halves ? 2u : 1u); ++h)
      lane += product(plain[h].whole(), product(w.offset[h], y.scale));
  }
  return butterfly(lanes);
}

/// The slot of a position in a layer's cache; `context` where the cache does not hold the position.
inline std::uint32_t cache_slot(std::uint32_t position, std::uint32_t context, bool ring) {
  return ring ? position % context : (std::min)(position, context);
}

/// A pair of channels of a head at a position, rotated.
/// @param factor of channels that are rotated
inline std::array<float, 2> rotated(float first, float second, std::uint32_t position, std::uint64_t turns,
                                    float factor = 1.f) {
  auto [sine, cosine] = kernels::rope_from_turns(position, turns);
  if (factor != 1.f && turns != 0) sine *= factor, cosine *= factor;
  return {product(first, cosine) - product(second, sine), product(second, cosine) + product(first, sine)};
}

/// The epilogue of a product: y are its sums, [rows], for one token; the other parameters are as for matmul.
inline void finish_product(const matmul_shape& shape, std::size_t token, std::span<const float> y,
                           std::span<float> output, std::uint32_t position, std::span<std::byte> keys,
                           std::span<std::byte> values, std::span<const std::uint64_t> rope) {
  if (shape.epilogue != kernels::epilogue::rope_cache) {
    finish({.columns = shape.columns, .rows = shape.rows, .epilogue = shape.epilogue, .gate = shape.gate}, token, y,
           output, position, {}, {});
    return;
  }
  const std::uint32_t half = shape.head_dim / 2, token_position = position + static_cast<std::uint32_t>(token),
                      slot = cache_slot(token_position, shape.context, shape.ring);
  for (std::uint32_t row = 0; row < shape.rows;
       row += 2) {  // y[row], y[row + 1]: channels pair, pair + half of one head
    const std::uint32_t tensor = row < shape.q_size ? 0 : row < shape.q_size + shape.kv_size ? 1 : 2;
    const std::uint32_t row_of_tensor = row - (tensor > 0 ? shape.q_size : 0) - (tensor > 1 ? shape.kv_size : 0);
    const std::uint32_t head = row_of_tensor / shape.head_dim, pair = row_of_tensor % shape.head_dim / 2;
    std::array<float, 2> both{y[row], y[row + 1]};
    if (tensor < 2) both = rotated(both[0], both[1], token_position, rope[pair]);
    for (std::uint32_t i = 0; i < 2; ++i) {
      const std::uint32_t channel = pair + i * half;
      if (tensor == 0) {
        output[token * shape.q_size + std::size_t{head} * shape.head_dim + channel] = both[i];
      } else if (slot < shape.context) {
        const auto index = tensor == 1 ? kernels::key_cache_index : kernels::value_cache_index;
        elements(tensor == 1 ? keys : values, shape.cache_element)
            .store(index(head, slot, channel, shape.head_dim, shape.context), both[i]);
      }
    }
  }
}

/// Kernel matmul for `tokens` tokens from `position` on.
/// @shape  input: [tokens, columns], normalised where the product has a norm in front; weight:
/// kernels/matmul_layout.hpp
/// @shape  output: [tokens, rows] for store and add (which adds to it), [tokens, q_size] for rope_cache, [tokens, rows
/// / 2] for gated
/// @shape  keys, values: a layer's cache of cache_element (kernels/cache_layout.hpp), rope: [head_dim / 2], rope_cache
/// only
/// @shape  gates: empty, or for gated the output of the gates, [tokens, rows / 2]
inline void matmul(const matmul_shape& shape, std::span<const float> input, std::span<const std::byte> weight,
                   std::span<float> output, std::uint32_t position = 0, std::span<std::byte> keys = {},
                   std::span<std::byte> values = {}, std::span<const std::uint64_t> rope = {},
                   std::span<float> gates = {}) {
  std::vector<float> y(shape.rows);
  std::vector<fixed_block> fixed(kernels::is_dense(shape.codec) ? 0 : shape.columns / 32);
  for (std::size_t token = 0; token < input.size() / shape.columns; ++token) {
    const auto x = input.subspan(token * shape.columns, shape.columns);
    for (std::size_t b = 0; b < fixed.size(); ++b) fixed[b] = fix(x.subspan(32 * b, 32));
    for (std::uint32_t row = 0; row < shape.rows; ++row) y[row] = matmul_sum(shape, weight, row, x, fixed);
    for (std::size_t i = 0; !gates.empty() && i < y.size() / 2; ++i) gates[token * (y.size() / 2) + i] = y[2 * i];
    finish_product(shape, token, y, output, position, keys, values, rope);
  }
}

/// Sizes of kernel turn, which writes q to output [tokens, heads, head_dim], and k and v to the cache.
struct turn_shape {
  std::uint32_t heads = 0, kv_heads = 0, head_dim = 0, context = 0;
  float eps = 1e-6f;
  bool ring = false;
  kernels::element cache_element = kernels::element::f16;
  std::array<std::uint32_t, 3> strides{};  ///< of q, k and v: floats from one token to the next
  kernels::turn_norms norms = kernels::turn_norms::none;
  float rope_factor = 1.f;
  bool v_norm = false;       ///< heads of v are normalised, without a weight
  std::uint32_t latent = 0;  ///< channels of the latent vector, which is v, normalised; 0: there is none
};
/// The operands that the kernel turn reads.
struct turn_inputs {
  std::array<std::span<const float>, 3> qkv;         ///< [tokens, stride]; the last row may be shorter
  std::array<std::span<const float>, 2> norms = {};  ///< of q and k; empty without
  std::span<const float> bias = {};                  ///< of q, k and v; empty: none
  std::span<const float> latent_query = {};          ///< [tokens, heads, latent]
};
/// Computes q, k or v of one token with its bias, normalised. Where the norm's weight is applied after the rotation,
/// the norm here uses ones.
/// @param which 0, 1 or 2
inline std::vector<float> turn_row(const turn_shape& shape, const turn_inputs& in, std::size_t token,
                                   std::size_t which) {
  const std::size_t d = shape.head_dim, q = shape.heads * d, kv = shape.kv_heads * d, width = which == 0 ? q : kv;
  const auto x = in.qkv[which].subspan(token * shape.strides[which], width);
  std::vector<float> y(x.begin(), x.end());
  const std::size_t before = which == 0 ? 0 : which == 1 ? q : q + kv;
  for (std::size_t i = 0; !in.bias.empty() && i < width; ++i) y[i] += in.bias[before + i];
  if (which == 2 ? !shape.v_norm : shape.norms == kernels::turn_norms::none) return y;
  const std::size_t at_once = which == 2 || shape.norms != kernels::turn_norms::all_heads ? d : width;
  const bool unweighted = which == 2 || shape.norms == kernels::turn_norms::each_head_after;
  const std::vector<float> ones(unweighted ? d : 0, 1.f);
  std::vector<float> out(width);
  for (std::size_t at = 0; at < width; at += at_once)
    rms_norm(std::span<const float>(y).subspan(at, at_once),
             unweighted ? std::span<const float>(ones) : in.norms[which], shape.eps,
             std::span(out).subspan(at, at_once));
  return out;
}
/// Does what `turn` does, with a latent vector: the value, and the first channels of the key.
inline void turn_latent(const turn_shape& shape, const turn_inputs& in, std::span<float> output, std::uint32_t position,
                        std::span<std::byte> keys, std::span<std::byte> values, std::span<const std::uint64_t> rope) {
  const std::uint32_t d = shape.head_dim, latent = shape.latent, joined = latent + d;
  for (std::uint32_t token = 0; token < output.size() / (std::size_t{shape.heads} * joined); ++token) {
    const std::uint32_t token_position = position + token, slot = cache_slot(token_position, shape.context, shape.ring);
    const auto turned = [&](std::span<const float> x, std::span<float> y) {
      for (std::uint32_t pair = 0; pair < d / 2; ++pair) {
        const auto both = rotated(x[pair], x[pair + d / 2], token_position, rope[pair], shape.rope_factor);
        y[pair] = both[0], y[pair + d / 2] = both[1];
      }
    };
    for (std::size_t head = 0; head < shape.heads; ++head) {
      const std::span<float> to = output.subspan((token * shape.heads + head) * joined, joined);
      std::ranges::copy(in.latent_query.subspan((token * shape.heads + head) * latent, latent), to.begin());
      turned(in.qkv[0].subspan(std::size_t{token} * shape.strides[0] + head * d, d), to.subspan(latent));
    }
    std::vector<float> key(joined);
    rms_norm(in.qkv[2].subspan(std::size_t{token} * shape.strides[2], latent), in.norms[1], shape.eps,
             std::span(key).first(latent));
    turned(in.qkv[1].subspan(std::size_t{token} * shape.strides[1], d), std::span(key).subspan(latent));
    if (slot >= shape.context) continue;
    cached{shape.cache_element, false, joined, shape.context}.store(keys, 0, slot, key);
    cached{shape.cache_element, true, latent, shape.context}.store(values, 0, slot, std::span(key).first(latent));
  }
}
/// Kernel turn on the CPU. @param position of the first token
inline void turn(const turn_shape& shape, const turn_inputs& in, std::span<float> output, std::uint32_t position,
                 std::span<std::byte> keys, std::span<std::byte> values, std::span<const std::uint64_t> rope) {
  if (shape.latent != 0) return turn_latent(shape, in, output, position, keys, values, rope);
  const std::uint32_t d = shape.head_dim, q_size = shape.heads * d;
  for (std::uint32_t token = 0; token < output.size() / q_size; ++token) {
    const std::uint32_t token_position = position + token, slot = cache_slot(token_position, shape.context, shape.ring);
    for (std::size_t which = 0; which < 3; ++which) {
      std::vector<float> y = turn_row(shape, in, token, which);
      for (std::size_t at = 0; which < 2 && at < y.size(); at += d)
        for (std::uint32_t pair = 0; pair < d / 2; ++pair) {
          const auto both = rotated(y[at + pair], y[at + pair + d / 2], token_position, rope[pair], shape.rope_factor);
          y[at + pair] = both[0];
          y[at + pair + d / 2] = both[1];
        }
      for (std::size_t i = 0; which < 2 && shape.norms == kernels::turn_norms::each_head_after && i < y.size(); ++i)
        y[i] *= in.norms[which][i % d];
      if (which == 0) {
        std::ranges::copy(y, output.subspan(std::size_t{token} * q_size).begin());
        continue;
      }
      const cached form{shape.cache_element, which == 2, d, shape.context};
      for (std::uint32_t head = 0; slot < shape.context && head < shape.kv_heads; ++head)
        form.store(which == 1 ? keys : values, head, slot, std::span<const float>(y).subspan(std::size_t{head} * d, d));
    }
  }
}

/// Kernel norm_add with a bias instead of its norm: output += input + bias, [tokens, width] each.
inline void bias_add(std::span<const float> input, std::span<const float> bias, std::span<float> output) {
  for (std::size_t i = 0; i < input.size(); ++i) output[i] += input[i] + bias[i % bias.size()];
}

/// Kernel norm_add: output = (output + rms_norm(input) * weight) * scale, [tokens, width] each.
inline void norm_add(std::span<const float> input, std::span<const float> weight, float eps, std::span<float> output,
                     float scale = 1) {
  std::vector<float> y(weight.size());
  for (std::size_t at = 0; at < input.size(); at += weight.size()) {
    rms_norm(input.subspan(at, weight.size()), weight, eps, y);
    for (std::size_t i = 0; i < y.size(); ++i) output[at + i] = (output[at + i] + y[i]) * scale;
  }
}

}  // namespace intaglio::reference
