// SPDX-License-Identifier: MIT
// Q4_K: 256 weights, eight scales and least values of 6 bits, codes of 4 bits.
#pragma once

#include "intaglio/codecs/block.hpp"
#include "intaglio/codecs/search.hpp"

namespace intaglio::codecs {

/// The search for the codes 0..15 of four sub-blocks of 32 values, which decode to code * scale + least, least <= 0.
/// @source ggml-quants.c, make_qkx2_quants
struct q4_k_search {
  four_floats scale, least;
  four_floats inverse, from;  ///< the codes were nearest(inverse * (x - from)), clamped
  four_ints flat;             ///< all values of the lane are equal: all its codes are 0

  /// Weighted least squares for each of 21 trial steps, weights root mean square + |x|. @param x [4 * 32]
  explicit q4_k_search(const float* x) {
    const four_floats zero{};
    const sub_blocks of(x);
    least = of.least;
    flat = of.most == least;
    inverse = 15.f / (of.most - least);
    from = least;
    scale = 1.f / inverse;
    std::array<four_floats, 32> code;
    for (std::size_t l = 0; l < 32; ++l) nearest(inverse * (of.value[l] - least), 0, 15, code[l]);
    four_floats best = of.loss(code, scale, least);
    for (int step = 0; step <= 20; ++step) {
      const four_floats trial = (-1.f + rounded(0.1f * static_cast<float>(step)) + 15.f) / (of.most - least);
      four_floats sum_c{}, sum_cc{}, sum_xc{};
      for (std::size_t l = 0; l < 32; ++l) {
        nearest(trial * (of.value[l] - least), 0, 15, code[l]);
        const four_floats weighted = rounded(of.weight[l] * code[l]);
        sum_c += weighted;
        sum_cc += rounded(weighted * code[l]);
        sum_xc += rounded(weighted * of.value[l]);
      }
      const four_floats determinant = rounded(of.sum_w * sum_cc) - rounded(sum_c * sum_c);
      four_floats new_scale = (rounded(of.sum_w * sum_xc) - rounded(of.sum_x * sum_c)) / determinant,
                  new_least = (rounded(sum_cc * of.sum_x) - rounded(sum_c * sum_xc)) / determinant;
      const four_ints above = new_least > zero;
      new_least = above ? zero : new_least;
      new_scale = above ? sum_xc / sum_cc : new_scale;
      const four_floats loss = of.loss(code, new_scale, new_least);
      const four_ints better = (determinant > zero) & (loss < best);
      best = better ? loss : best;
      inverse = better ? trial : inverse;
      from = better ? least : from;
      scale = better ? new_scale : scale;
      least = better ? new_least : least;  // the next steps start from it
    }
    scale = flat ? zero : scale;
  }

 private:
  /// The values, a sub-block in each lane, and what the search keeps of them.
  struct sub_blocks {
    std::array<four_floats, 32> value, weight;
    four_floats sum_w{}, sum_x{}, least, most;

    explicit sub_blocks(const float* x) {
      const four_floats zero{};
      four_floats squares{}, average{};
      for (std::size_t l = 0; l < 32; ++l) {
        value[l] = four_floats{x[l], x[32 + l], x[64 + l], x[96 + l]};
        squares += rounded(value[l] * value[l]);
      }
      for (std::size_t k = 0; k < 4; ++k) average[k] = std::sqrt(squares[k] / 32.f);
      least = most = value[0];
      for (std::size_t l = 0; l < 32; ++l) {
        const four_floats v = value[l];
        weight[l] = average + (v < zero ? -v : v);
        least = v < least ? v : least;
        most = v > most ? v : most;
        sum_w += weight[l];
        sum_x += rounded(weight[l] * v);
      }
      least = least > zero ? zero : least;
    }
    /// The weighted squares of what codes leave.
    four_floats loss(const std::array<four_floats, 32>& code, const four_floats& by, const four_floats& base) const {
      four_floats out{};
      for (std::size_t l = 0; l < 32; ++l) {
        const four_floats off = rounded(by * code[l]) + base - value[l];
        out += rounded(weight[l] * (off * off));
      }
      return out;
    }
  };
};

/// A weight is d * scale * code - dmin * least, with a scale and a least value for 32 neighbours.
/// @layout d f16; dmin f16; scales and least values, 12 bytes (six_bits_at); codes, 128 bytes: byte l of a quarter has
/// weights l and l + 32
/// @source ggml-quants.c, dequantize_row_q4_K
struct q4_k {
  static constexpr dtype type = dtype::q4_k;
  static constexpr std::size_t elements = 256, bytes = 144;
  static constexpr std::array<std::size_t, 2> f16_offsets{0, 2};  ///< where f16 are
  static constexpr float largest_error = 0.15f;

  static void decode(const std::uint8_t* block, float* out) {
    const float d = f16_at(block), dmin = f16_at(block + 2);
    const std::uint8_t* const codes = block + 16;
    std::array<float, 8> scale{}, least{};
    for (std::size_t j = 0; j < 8; ++j) {
      const six_bits pair = six_bits_at(block + 4, j);
      scale[j] = d * static_cast<float>(pair.scale);
      least[j] = dmin * static_cast<float>(pair.least);
    }
    for (std::size_t k = 0; k < 4; ++k)
      for (std::size_t l = 0; l < 32; ++l) {
        out[64 * k + l] = scale[2 * k] * static_cast<float>(codes[32 * k + l] & 15) - least[2 * k];
        out[64 * k + 32 + l] = scale[2 * k + 1] * static_cast<float>(codes[32 * k + l] >> 4) - least[2 * k + 1];
      }
  }

  static void split(const std::uint8_t* block, split_block& to) {
    for (std::size_t k = 0; k < 4; ++k)
      for (std::size_t l = 0; l < 32; ++l) {
        to.codes[64 * k + l] = block[16 + 32 * k + l] & 15;
        to.codes[64 * k + 32 + l] = block[16 + 32 * k + l] >> 4;
      }
    for (std::size_t j = 0; j < 8; ++j) {
      const six_bits pair = six_bits_at(block + 4, j);
      to.factors[j] = {pair.scale, pair.least};
    }
    std::memcpy(to.super.data(), block, 4);
  }

  /// @source ggml-quants.c, quantize_row_q4_K_ref
  static void encode(const float* x, std::uint8_t* block) {
    const std::array<q4_k_search, 2> found{q4_k_search(x), q4_k_search(x + 128)};
    float most_scale = 0.f, most_least = 0.f;
    for (std::size_t j = 0; j < 8; ++j) {
      if (!std::isfinite(found[j / 4].scale[j % 4] + found[j / 4].least[j % 4])) return put_overflow(block, bytes, 0);
      most_scale = (std::max)(most_scale, found[j / 4].scale[j % 4]);
      most_least = (std::max)(most_least, -found[j / 4].least[j % 4]);
    }
    const float to_scale = most_scale > 0.f ? 63.f / most_scale : 0.f,
                to_least = most_least > 0.f ? 63.f / most_least : 0.f;
    const float d = put_scale(block, most_scale / 63.f), dmin = put_scale(block + 2, most_least / 63.f);
    common_steps steps;
    std::array<std::uint8_t, 256> codes;
    for (std::size_t j = 0; j < 8; ++j) {
      const q4_k_search& of = found[j / 4];
      const std::size_t lane = j % 4;
      steps.scale[j] = at_most_63(to_scale * of.scale[lane]);
      steps.least[j] = at_most_63(to_least * -of.least[lane]);
      const float step = d * static_cast<float>(steps.scale[j]),
                  least = rounded(dmin * static_cast<float>(steps.least[j]));
      for (std::size_t i = 0; i < 32; ++i) {
        const float v = x[32 * j + i];
        // A scale that rounds to 0 keeps the codes of the search.
        const int code = step != 0.f     ? nearest((v + least) / step)
                         : of.flat[lane] ? 0
                                         : nearest(of.inverse[lane] * (v - of.from[lane]));
        codes[32 * j + i] = static_cast<std::uint8_t>(std::clamp(code, 0, 15));
      }
    }
    put_six_bits(steps, block + 4);
    for (std::size_t k = 0; k < 4; ++k)
      for (std::size_t l = 0; l < 32; ++l)
        block[16 + 32 * k + l] = static_cast<std::uint8_t>(codes[64 * k + l] | (codes[64 * k + 32 + l] << 4));
  }

 private:
  /// The reference casts to a byte before it clamps.
  static std::uint8_t at_most_63(float value) {
    return static_cast<std::uint8_t>((std::min)(63u, static_cast<unsigned>(nearest(value)) & 255u));
  }
};

}  // namespace intaglio::codecs
