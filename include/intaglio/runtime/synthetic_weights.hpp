// SPDX-License-Identifier: MIT
// Fills device memory with made-up weights of a plan's true shapes, to measure speed without a file. Ternary codes are
// random with a third of each, norms are 1, and dense values are small, so that activations stay finite. The share of
// gates that are zero can be chosen.
#pragma once

#include <cstring>
#include <map>
#include <optional>

#include "intaglio/core/float16.hpp"
#include "intaglio/gpu/transfer.hpp"
#include "intaglio/kernels/feature_layout.hpp"
#include "intaglio/kernels/matmul_layout.hpp"
#include "intaglio/kernels/rope_table.hpp"
#include "intaglio/kernels/row_codes.hpp"
#include "intaglio/runtime/sampling.hpp"
#include "intaglio/runtime/weight_memory.hpp"

namespace intaglio::runtime {

/// The next number of a 64-bit xorshift; state must not be 0.
constexpr std::uint64_t next_random(std::uint64_t& state) {
  state ^= state << 13;
  state ^= state >> 7;
  return state ^= state << 17;
}

/// One 32-bit word of a weight of the given layout.
inline std::uint32_t synthetic_word(const plan::weight& w, std::uint64_t& random) {
  switch (w.layout) {
    case plan::weight_layout::vector_f32:
      if (w.sources[0].view().ends_with(".bias")) break;
      [[fallthrough]];
    case plan::weight_layout::column_norms:
      return std::bit_cast<std::uint32_t>(1.f);
    case plan::weight_layout::ternary_scales:
      return std::bit_cast<std::uint32_t>(0.02f);
    case plan::weight_layout::ternary_tiles:
    case plan::weight_layout::feature_rows:
    case plan::weight_layout::feature_columns: {
      const auto word = static_cast<std::uint32_t>(next_random(random));
      const std::uint32_t threes = word & (word >> 1) & 0x55555555u;  // code 3 becomes 1
      return word & ~(threes << 1);
    }
    case plan::weight_layout::matrix:
    case plan::weight_layout::row_groups:
    case plan::weight_layout::rope_turns:
    case plan::weight_layout::turned:
      break;
    case plan::weight_layout::row_codes:
    case plan::weight_layout::row_scales:
      break;  // these layouts are computed from a matrix
  }
  const auto small_value = [&] {
    return static_cast<float>(static_cast<std::int32_t>(next_random(random) >> 40) - (1 << 23)) * 0x1p-28f;
  };
  if (w.codec == kernels::codec::f32) return std::bit_cast<std::uint32_t>(small_value());
  const auto half = [&] {
    return w.codec == kernels::codec::f16 ? f16_from_f32(small_value()) : bf16_from_f32(small_value());
  };
  const std::uint32_t low = half();
  return low | static_cast<std::uint32_t>(half()) << 16;
}

/// Groups of rows of blocks, about a mebibyte: random codes, with scales that make the weights as small as
/// float weights.
inline std::vector<std::uint32_t> synthetic_groups(const plan::weight& w, std::uint64_t& random) {
  const kernels::codec_info& block = kernels::info(w.codec);
  const std::uint64_t group_bytes = kernels::matmul_group_bytes(w.codec, w.columns),
                      row_bytes = kernels::file_row_bytes(w.codec, w.columns);
  const std::uint64_t groups =
      (std::min<std::uint64_t>)((w.rows + 3) / 4, (std::max<std::uint64_t>)(1, (std::uint64_t{1} << 20) / group_bytes));
  std::vector<std::byte> rows(static_cast<std::size_t>(4 * groups * row_bytes));
  for (std::byte& each : rows) each = static_cast<std::byte>(next_random(random) >> 56);
  codecs::with_codec(block.type, [&]<class C>() {
    for (std::size_t at = 0; at < rows.size(); at += block.block_bytes)
      codecs::scale_block<C>(reinterpret_cast<std::uint8_t*>(rows.data() + at), 0.03f);
  });
  const std::array<std::span<const std::byte>, 1> source{rows};
  std::vector<std::uint32_t> out(static_cast<std::size_t>(groups * group_bytes / 4));
  kernels::repack_matmul(w.codec, kernels::row_order::plain(static_cast<std::uint32_t>(4 * groups)), source, w.columns,
                         0, std::as_writable_bytes(std::span(out)));
  return out;
}

/// Options of made-up weights.
struct synthetic_options {
  std::uint64_t seed = 1;
  /// Share of gate outputs that are zero after a ReLU, 0 to 1, exact to a few percent; absent: about half, by chance.
  /// One column of the stream is made so large that it alone decides every gate.
  std::optional<double> relu_zeros{};
  std::optional<std::uint64_t> budget{};  ///< as in load_options
};

/// Words of a layer's rotary frequencies, as in a session.
inline std::vector<std::uint32_t> rope_words(const plan::weight& w, std::uint32_t layer,
                                             const longrope_factors& factors) {
  std::vector<std::uint32_t> out;
  for (const std::uint64_t turns : kernels::rope_table(w.rope, w.head_dim, layer, factors))
    out.insert(out.end(), {static_cast<std::uint32_t>(turns), static_cast<std::uint32_t>(turns >> 32)});
  return out;
}

/// The beginning of a weight; the rest repeats it. It has whole rows of matrices and whole row groups of tiles, about a
/// mebibyte.
inline std::vector<std::uint32_t> synthetic_pattern(const plan::weight& w, const synthetic_options& options,
                                                    std::uint64_t& random) {
  if (w.layout == plan::weight_layout::row_groups && !kernels::is_dense(w.codec)) return synthetic_groups(w, random);
  const std::uint64_t words = (w.bytes + 3) / 4;
  std::uint64_t unit = 1;
  if (w.layout == plan::weight_layout::matrix && w.rows != 0) unit = words / w.rows;
  if (w.layout == plan::weight_layout::ternary_tiles) unit = w.columns / 4;
  if (w.layout == plan::weight_layout::feature_rows) unit = kernels::feature_row_words(w.columns);
  std::vector<std::uint32_t> out(
      static_cast<std::size_t>((std::min)(words, (std::max<std::uint64_t>)((1u << 18) / unit, 1) * unit)));
  for (auto& word : out) word = synthetic_word(w, random);
  if (!options.relu_zeros) return out;
  constexpr float strong = 1000;  // in the stream's first column; the layers' contributions stay under 1% of it
  if (w.layout == plan::weight_layout::matrix)
    for (std::size_t row = 0; row < out.size(); row += static_cast<std::size_t>(unit))
      out[row] = w.codec == kernels::codec::f32   ? std::bit_cast<std::uint32_t>(strong)
                 : w.codec == kernels::codec::f16 ? (out[row] & 0xFFFF0000u) | f16_from_f32(strong)
                                                  : (out[row] & 0xFFFF0000u) | bf16_from_f32(strong);
  // Column 0 is the lowest two bits of a row's first word.
  const auto set_first = [&](std::uint32_t& word, double share) {  // share of -1; all others are +1
    word = (word & ~3u) | (static_cast<double>(next_random(random) >> 11) * 0x1p-53 < share ? 0u : 2u);
  };
  const bool gate_up = w.order == plan::row_order::gate_up;  // gate, up, gate, up
  if (w.layout == plan::weight_layout::ternary_tiles &&
      (gate_up || w.sources[0] == std::string_view("ffn_gate.weight")))
    for (std::size_t group = 0; group < out.size(); group += static_cast<std::size_t>(unit))
      for (std::size_t row = 0; row < 4; ++row)
        set_first(out[group + row], gate_up && row % 2 != 0 ? 0.5 : *options.relu_zeros);
  if (w.layout == plan::weight_layout::feature_rows)
    for (std::size_t row = 0; row < out.size(); row += static_cast<std::size_t>(unit)) set_first(out[row], 0.5);
  return out;
}

/// Codes or scales of the first rows of a matrix.
inline std::vector<std::uint32_t> synthetic_row_codes(const plan::weight& w, const std::vector<std::uint32_t>& matrix) {
  const bool f32 = w.codec == kernels::codec::f32, scales = w.layout == plan::weight_layout::row_scales;
  const std::size_t columns = w.columns, rows = matrix.size() * 4 / (columns * (f32 ? 4 : 2));
  std::vector<float> row(columns);
  std::vector<std::int8_t> codes(columns);
  std::vector<std::byte> out;
  for (std::size_t r = 0; r < rows; ++r) {
    for (std::size_t c = 0; c < columns; ++c) {
      const std::size_t at = r * columns + c;
      const auto half = static_cast<std::uint16_t>(f32 ? 0 : matrix[at / 2] >> (at % 2 * 16));
      row[c] = f32                              ? std::bit_cast<float>(matrix[at])
               : w.codec == kernels::codec::f16 ? f32_from_f16(half)
                                                : f32_from_bf16(half);
    }
    const float scale = kernels::row_codes(row, codes);
    const auto bytes = scales ? std::as_bytes(std::span(&scale, 1)) : std::as_bytes(std::span(codes));
    out.insert(out.end(), bytes.begin(), bytes.end());
  }
  std::vector<std::uint32_t> words(out.size() / 4);
  std::memcpy(words.data(), out.data(), words.size() * 4);
  return words;
}

/// Allocates and fills memory for all weights.
/// @error argument_error: relu_zeros outside of 0 to 1; out_of_memory, device_lost, device_error
inline weight_memory synthetic_weights(const gpu::device& on, const plan::table& of,
                                       const synthetic_options& options = {}) {
  if (options.relu_zeros && !(*options.relu_zeros >= 0 && *options.relu_zeros <= 1))
    throw argument_error("relu_zeros", "0 to 1", number_text(static_cast<float>(*options.relu_zeros)));
  weight_memory out = allocate_weights(on, of, 0, options.budget);
  gpu::transfer uploads(on);
  std::uint64_t random = options.seed * 2 + 1;
  std::map<std::uint32_t, std::vector<std::uint32_t>> matrices;  // by slot: the beginning of each
  for (std::uint32_t slot = 0; slot < of.weights.size(); ++slot) {
    const plan::weight& w = of.weights[slot];
    std::vector<std::uint32_t> pattern;
    if (w.layout == plan::weight_layout::row_codes || w.layout == plan::weight_layout::row_scales) {
      for (std::uint32_t of_matrix = 0; of_matrix < slot; ++of_matrix)
        if (of.weights[of_matrix].layout == plan::weight_layout::matrix &&
            of.weights[of_matrix].sources[0] == w.sources[0].view())
          pattern = synthetic_row_codes(w, matrices[of_matrix]);
    } else if (w.layout != plan::weight_layout::rope_turns) {
      pattern = synthetic_pattern(w, options, random);
      if (w.layout == plan::weight_layout::matrix) matrices[slot] = pattern;
    }
    for (std::uint32_t layer = 0; layer < (w.per_layer ? of.config->num_hidden_layers : 1); ++layer) {
      if (!of.has(w, layer)) continue;
      if (w.layout == plan::weight_layout::rope_turns)
        pattern = rope_words(w, of.first_layer + layer, of.config->rope_factors);
      const std::uint64_t period = std::uint64_t{4} * pattern.size();
      const auto& item = out.placed.items[out.item(of, slot, layer)];
      uploads.upload(
          out.placed.buffers[item.buffer], item.offset, item.bytes, [&](std::span<std::byte> into, std::uint64_t at) {
            for (std::size_t done = 0; done < into.size();) {
              const std::uint64_t phase = (at + done) % period;
              const auto length =
                  static_cast<std::size_t>((std::min<std::uint64_t>)(period - phase, into.size() - done));
              std::memcpy(into.data() + done, reinterpret_cast<const std::byte*>(pattern.data()) + phase, length);
              done += length;
            }
          });
    }
  }
  uploads.finish();
  return out;
}

}  // namespace intaglio::runtime
