// SPDX-License-Identifier: MIT
// Encoding BCML1 (codec_bcml1.hpp) from f16, bf16 or f32, panel by panel on several threads; with AVX2 where the
// machine has it. Rules: CGML/Cgml/Utils/Compression/bcml1.cpp. q = round half even((x - min) * (15 / (max - min))) in
// f32, header rounded to f16.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <span>
#include <string>

#include "intaglio/core/error.hpp"
#include "intaglio/core/float16.hpp"
#include "intaglio/core/unfused.hpp"
#include "intaglio/io/codec_bcml1.hpp"
#include "intaglio/io/f16_rows.hpp"
#include "intaglio/io/ordered_work.hpp"

#if INTAGLIO_F16C
#include <immintrin.h>
#endif

namespace intaglio::io {

namespace bcml1 {

/// The five words of a block of BCML1.
using block_words = std::array<std::uint32_t, 5>;

/// The encoding rule, one value after the other. @return false where the block has no f16 header: a value is not finite
/// or too large
inline bool encode_block(const float* x, block_words& out) {
  float least = x[0], most = x[0];
  std::uint32_t unusual = 0;  // as in codec_blocks::all_finite
  for (std::size_t k = 0; k < 32; ++k) {
    least = (std::min)(least, x[k]);
    most = (std::max)(most, x[k]);
    unusual |= (std::bit_cast<std::uint32_t>(x[k]) & 0x7F800000u) + 0x00800000u;
  }
  least += 0.f;  // turns -0 into 0
  const float range = most - least, inverse = range > 0.f ? 15.f / range : 0.f;
  const std::uint32_t multiplier = f16_from_f32(range > 0.f ? range / 15.f : 0.f), offset = f16_from_f32(least);
  out = {multiplier | (offset << 16)};
  for (std::size_t k = 0; k < 32; ++k) {
    const auto code = static_cast<std::uint32_t>(codecs::nearest_between((x[k] - least) * inverse, 0, 15));
    out[1 + k / 8] |= code << (4 * (k % 8));
  }
  return unusual >> 31 == 0 && (multiplier & 0x7C00u) != 0x7C00u && (offset & 0x7C00u) != 0x7C00u;
}

/// `length` (1..32) values of a type as f32; the last one is repeated.
inline void load(dtype type, const std::byte* from, std::size_t length, std::array<float, 32>& out) {
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(from);
  if (type == dtype::f32) std::memcpy(out.data(), from, 4 * length);
  else if (type == dtype::f16) f32_from_f16_row(bytes, out.data(), length);
  else
    for (std::size_t k = 0; k < length; ++k) out[k] = f32_from_bf16(codec_blocks::u16_at(bytes + 2 * k));
  std::fill(out.begin() + static_cast<std::ptrdiff_t>(length), out.end(), out[length - 1]);
}

#if INTAGLIO_F16C
/// Whether the processor has AVX2 and F16C.
inline bool has_avx2() {
  static const bool has = f16_rows::has_f16c() && __builtin_cpu_supports("avx2");
  return has;
}

/// Loads the 32 values of a block as f32.
/// @param exponent the bits of an exponent in each lane of Type
/// @param unusual gets ones in lanes with a value that is not finite
template <dtype Type>
[[gnu::target("avx2,f16c")]] inline void load_block_avx2(const std::byte* from, const __m256i& exponent,
                                                         __m256i& unusual, __m256 (&x)[4]) {
  if constexpr (Type == dtype::f32) {
    for (int k = 0; k < 4; ++k) {
      const __m256i raw = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + 32 * static_cast<std::size_t>(k)));
      unusual = _mm256_or_si256(unusual, _mm256_cmpeq_epi32(_mm256_and_si256(raw, exponent), exponent));
      x[k] = _mm256_castsi256_ps(raw);
    }
  } else {
    for (int k = 0; k < 2; ++k) {
      const __m256i raw = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + 32 * static_cast<std::size_t>(k)));
      unusual = _mm256_or_si256(unusual, _mm256_cmpeq_epi16(_mm256_and_si256(raw, exponent), exponent));
      const __m128i low = _mm256_castsi256_si128(raw), high = _mm256_extracti128_si256(raw, 1);
      if constexpr (Type == dtype::f16) {
        x[2 * k] = _mm256_cvtph_ps(low);
        x[2 * k + 1] = _mm256_cvtph_ps(high);
      } else {
        x[2 * k] = _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(low), 16));
        x[2 * k + 1] = _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(high), 16));
      }
    }
  }
}

/// Encodes `blocks` whole blocks of one row; word w of block b goes to out[(5 * b + w) * 64]. The words equal those of
/// encode_block.
template <dtype Type>
[[gnu::target("avx2,f16c")]] inline bool encode_blocks_avx2(const std::byte* from, std::size_t blocks,
                                                            std::uint32_t* out) {
  __m256i unusual = _mm256_setzero_si256();
  const __m256i exponent =
      Type == dtype::f32 ? _mm256_set1_epi32(0x7F800000) : _mm256_set1_epi16(Type == dtype::f16 ? 0x7C00 : 0x7F80);
  __m128i heads = _mm_setzero_si128();
  for (std::size_t b = 0; b < blocks; ++b) {
    __m256 x[4];
    load_block_avx2<Type>(from + (Type == dtype::f32 ? 128 : 64) * b, exponent, unusual, x);
    // Least and largest value in one register: the low half of `both` is of -x, the high half of x.
    const __m256 sign = _mm256_set1_ps(-0.f);
    const __m256 negated = _mm256_xor_ps(_mm256_min_ps(_mm256_min_ps(x[0], x[1]), _mm256_min_ps(x[2], x[3])), sign);
    const __m256 largest = _mm256_max_ps(_mm256_max_ps(x[0], x[1]), _mm256_max_ps(x[2], x[3]));
    __m256 both =
        _mm256_max_ps(_mm256_permute2f128_ps(negated, largest, 0x20), _mm256_permute2f128_ps(negated, largest, 0x31));
    both = _mm256_max_ps(both, _mm256_shuffle_ps(both, both, 0x4E));
    both = _mm256_max_ps(both, _mm256_shuffle_ps(both, both, 0xB1));
    const __m128 least = _mm_sub_ps(_mm_setzero_ps(), _mm256_castps256_ps128(both));  // turns -0 into 0
    const __m128 range = _mm_sub_ps(_mm256_extractf128_ps(both, 1), least);
    const __m128 some = _mm_cmpgt_ps(range, _mm_setzero_ps()), fifteen = _mm_set1_ps(15.f);
    // Lane 0: 15 / range; lane 1: range / 15.
    const __m128 quotients =
        _mm_and_ps(some, _mm_div_ps(_mm_blend_ps(range, fifteen, 1), _mm_blend_ps(fifteen, range, 1)));
    const __m256 scale = _mm256_broadcastss_ps(quotients), start = _mm256_broadcastss_ps(least);
    const __m128 header = _mm_shuffle_ps(quotients, least, 0x01);  // lanes: range / 15, 15 / range, least, least
    const __m128i head = _mm_cvtps_ph(header, 0);
    __m256i code[4];
    for (int k = 0; k < 4; ++k) code[k] = _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_sub_ps(x[k], start), scale));
    const __m256i most = _mm256_set1_epi8(15);
    const __m256i mixed =
        _mm256_packus_epi16(_mm256_packus_epi32(code[0], code[1]), _mm256_packus_epi32(code[2], code[3]));
    const __m256i ordered =
        _mm256_min_epu8(_mm256_permutevar8x32_epi32(mixed, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7)), most);
    const __m256i pairs = _mm256_maddubs_epi16(ordered, _mm256_set1_epi16(0x1001));  // even + 16 * odd
    const __m128i nibbles = _mm_packus_epi16(_mm256_castsi256_si128(pairs), _mm256_extracti128_si256(pairs, 1));
    const __m128i words = _mm_shufflelo_epi16(head, 0xE8);  // multiplier, offset
    heads = _mm_or_si128(heads, _mm_cmpeq_epi16(_mm_and_si128(words, _mm_setr_epi16(0x7C00, 0x7C00, 0, 0, 0, 0, 0, 0)),
                                                _mm_set1_epi16(0x7C00)));
    std::uint32_t* to = out + 5 * 64 * b;
    to[0] = static_cast<std::uint32_t>(_mm_cvtsi128_si32(words));
    to[64] = static_cast<std::uint32_t>(_mm_cvtsi128_si32(nibbles));
    to[128] = static_cast<std::uint32_t>(_mm_extract_epi32(nibbles, 1));
    to[192] = static_cast<std::uint32_t>(_mm_extract_epi32(nibbles, 2));
    to[256] = static_cast<std::uint32_t>(_mm_extract_epi32(nibbles, 3));
  }
  return _mm256_testz_si256(unusual, unusual) != 0 && _mm_testz_si128(heads, heads) != 0;
}
#endif

/// Which code encodes whole blocks: `portable` on any machine, `fastest` with this machine's instructions. Both give
/// the same words.
enum class path : std::uint8_t { fastest, portable };

/// Encodes `blocks` whole blocks of one row, as encode_blocks_avx2 does.
inline bool encode_blocks(dtype type, const std::byte* from, std::size_t blocks, std::uint32_t* out, path chosen) {
#if INTAGLIO_F16C
  if (chosen == path::fastest && has_avx2())
    return type == dtype::f16    ? encode_blocks_avx2<dtype::f16>(from, blocks, out)
           : type == dtype::bf16 ? encode_blocks_avx2<dtype::bf16>(from, blocks, out)
                                 : encode_blocks_avx2<dtype::f32>(from, blocks, out);
#else
  (void)chosen;
#endif
  bool good = true;
  for (std::size_t b = 0; b < blocks; ++b) {
    std::array<float, 32> x{};
    block_words words;
    load(type, from + b * 32 * info(type).block_bytes, 32, x);
    good &= encode_block(x.data(), words);
    for (std::size_t w = 0; w < 5; ++w) out[(5 * b + w) * 64] = words[w];
  }
  return good;
}

}  // namespace bcml1

/// Options of encoding to BCML1.
struct bcml1_options {
  unsigned threads = 1;  ///< number of threads; 0: one for each processor
  std::function<void(std::uint64_t bytes, std::uint64_t total_bytes)>
      progress;  ///< progress in the input; called on the calling thread
  bcml1::path path = bcml1::path::fastest;
};

/// Encodes a matrix [layout.rows, layout.columns] of f16, bf16 or f32, or any run of its panels, into `out`
/// (layout.bytes()).
/// @throws argument_error for another type, sizes that do not fit together, and a block (named by row and column) with
/// a value that is not
///         finite or beyond what the f16 header holds
inline void encode_bcml1(dtype type, std::span<const std::byte> matrix, const bcml1_layout& layout,
                         std::span<std::byte> out, const bcml1_options& options = {}) {
  if (type != dtype::f16 && type != dtype::bf16 && type != dtype::f32)
    throw argument_error("type", "f16, bf16 or f32", std::string(name(type)));
  const std::size_t element = info(type).block_bytes, row_size = static_cast<std::size_t>(layout.columns) * element;
  if (matrix.size() != layout.rows * row_size || out.size() != layout.bytes())
    throw argument_error(
        "out", std::to_string(layout.bytes()) + " bytes for a matrix of " + std::to_string(layout.rows * row_size),
        std::to_string(out.size()) + " for " + std::to_string(matrix.size()));
  if (matrix.empty()) return;
  const auto whole = static_cast<std::size_t>(layout.columns / bcml1_layout::block_columns),
             rest = static_cast<std::size_t>(layout.columns % bcml1_layout::block_columns);
  const auto panel_size = static_cast<std::size_t>(layout.panel_bytes());
  const auto refuse = [&](std::size_t row, std::size_t block) {
    std::array<float, 32> x{};
    bcml1::load(type, matrix.data() + row * row_size + 32 * block * element, block == whole ? rest : 32, x);
    bcml1::block_words ignored;
    if (bcml1::encode_block(x.data(), ignored)) return;
    const auto bad = std::find_if(x.begin(), x.end(), [](float value) { return !std::isfinite(value); });
    throw argument_error("matrix", "finite numbers within the range of f16",
                         (bad == x.end()     ? "a larger one"
                          : std::isnan(*bad) ? "NaN"
                                             : "infinity") +
                             std::string(" in row ") + std::to_string(row) + ", columns from " +
                             std::to_string(32 * block));
  };
  const auto panel = [&](std::size_t number, std::size_t) {
    // Eight blocks of all rows of the panel at a time: their output is 10 KiB, which stays in the first-level cache.
    constexpr std::size_t some = 8;
    std::uint32_t* words = nullptr;
    std::vector<std::uint32_t> aligned;
    std::byte* const bytes = out.data() + number * panel_size;
    if (reinterpret_cast<std::uintptr_t>(bytes) % alignof(std::uint32_t) == 0) {
      words = reinterpret_cast<std::uint32_t*>(bytes);
    } else {
      aligned.resize(panel_size / 4);
      words = aligned.data();
    }
    const std::size_t first = number * 64,
                      rows = (std::min<std::size_t>)(64, static_cast<std::size_t>(layout.rows) - first);
    if (rows < 64) std::fill(words, words + panel_size / 4, 0u);
    for (std::size_t block = 0; block < whole; block += some) {
      const std::size_t count = (std::min)(some, whole - block);
      for (std::size_t row = 0; row < rows; ++row) {
        const std::byte* from = matrix.data() + (first + row) * row_size + 32 * block * element;
        if (!bcml1::encode_blocks(type, from, count, words + 5 * block * 64 + row, options.path))
          for (std::size_t b = block; b < block + count; ++b) refuse(first + row, b);
      }
    }
    if (rest != 0)
      for (std::size_t row = 0; row < rows; ++row) {
        std::array<float, 32> x{};
        bcml1::block_words block;
        bcml1::load(type, matrix.data() + (first + row) * row_size + 32 * whole * element, rest, x);
        if (!bcml1::encode_block(x.data(), block)) refuse(first + row, whole);
        for (std::size_t w = 0; w < 5; ++w) words[(5 * whole + w) * 64 + row] = block[w];
      }
    if (!aligned.empty()) std::memcpy(bytes, aligned.data(), panel_size);
  };
  const auto count = static_cast<std::size_t>(layout.panels());
  const unsigned threads = worker_threads(options.threads);
  ordered_work(threads, 4 * std::size_t{threads}, count, panel, [&](std::size_t number, std::size_t) {
    if (options.progress)
      options.progress((std::min<std::uint64_t>)((number + 1) * 64, layout.rows) * row_size, layout.rows * row_size);
  });
}

}  // namespace intaglio::io
