// SPDX-License-Identifier: MIT
// What the tests of kernels with coded weights share: rows as a file has them, a problem, how its memory begins, what
// is compared.
#pragma once

#include <catch2/generators/catch_generators_range.hpp>
#include <set>
#include <tuple>
#include <vector>

#include "intaglio/codecs/device_row.hpp"
#include "intaglio/reference/matmul.hpp"
#include "kernels/product_result.hpp"

namespace intaglio::testing {

inline constexpr auto all_codecs = [] {
  std::array<kernels::codec, kernels::codec_table.size()> out{};
  for (std::uint32_t i = 0; i < out.size(); ++i) out[i] = static_cast<kernels::codec>(i);
  return out;
}();
/// Codecs whose parts are unlike those of each one before: what modules with emulated matrices are tried with, which
/// take seconds to compile.
inline std::vector<kernels::codec> unlike_codecs() {
  std::vector<kernels::codec> out;
  std::set<std::tuple<std::uint32_t, std::uint32_t, codecs::factor_form, std::uint32_t, bool>> seen;
  for (const kernels::codec type : all_codecs) {
    if (!kernels::is_dense(type)) {
      const codecs::device_row& row = codecs::device_rows[static_cast<std::size_t>(type) - 3];
      const bool is_new = seen.insert({row.bits, row.table, row.form, row.per, row.least}).second;
      if (!is_new && !kernels::has_own_forms(type)) continue;
    }
    out.push_back(type);
  }
  return out;
}

/// Rows of a codec as a file holds them: any codes, scales of a size that keeps sums small.
inline std::vector<std::byte> random_rows(random_numbers& random, kernels::codec type, std::uint32_t rows,
                                          std::uint32_t columns) {
  using kernels::codec;
  if (kernels::is_dense(type))
    return elements_of(random.floats(std::size_t{rows} * columns, -0.5f, 0.5f), static_cast<kernels::element>(type));
  const kernels::codec_info& info = kernels::info(type);
  std::vector<std::byte> out(static_cast<std::size_t>(rows * kernels::file_row_bytes(type, columns)));
  for (auto& byte : out) byte = static_cast<std::byte>(random.below(256));
  codecs::with_codec(info.type, [&]<class C>() {
    for (std::size_t at = 0; at < out.size(); at += info.block_bytes)
      codecs::scale_block<C>(reinterpret_cast<std::uint8_t*>(out.data() + at), random.between(0.1f, 0.5f));
  });
  return out;
}

/// A random weight in matmul's layout.
inline std::vector<std::byte> random_weight(random_numbers& random, kernels::codec type,
                                            const kernels::row_order& order, std::uint32_t columns) {
  std::vector<std::vector<std::byte>> tensors;
  for (std::uint32_t t = 0; t < order.tensors(); ++t)
    tensors.push_back(random_rows(random, type, order.tensor_rows[t], columns));
  std::vector<std::byte> out(static_cast<std::size_t>(kernels::matmul_weight_bytes(type, order.rows(), columns)));
  kernels::repack_matmul(type, order, std::vector<std::span<const std::byte>>(tensors.begin(), tensors.end()), columns,
                         0, out);
  return out;
}

inline std::vector<std::uint64_t> plain_rope(std::uint32_t head_dim, long double theta) {
  std::vector<std::uint64_t> out;
  for (std::uint32_t pair = 0; pair < std::max(1u, head_dim / 2); ++pair)
    out.push_back(kernels::rope_turns(kernels::rope_frequency_of(pair, std::max(1u, head_dim), theta)));
  return out;
}

struct matmul_problem {
  reference::matmul_shape shape;
  std::uint32_t position = 0, tokens = 1, room = 1;  ///< tokens of the pass, and those that there is room for
  std::vector<float> x, norm_weight;
  std::vector<std::byte> weight;
  std::vector<std::uint64_t> rope;

  std::size_t output_width() const {
    return shape.epilogue == kernels::epilogue::rope_cache ? shape.q_size
           : shape.epilogue == kernels::epilogue::gated    ? shape.rows / 2
                                                           : shape.rows;
  }

  static matmul_problem make(random_numbers& random, const reference::matmul_shape& shape, std::uint32_t tokens,
                             std::uint32_t room, std::uint32_t position = 0) {
    const auto order = shape.epilogue == kernels::epilogue::rope_cache
                           ? kernels::row_order::rope_pairs(shape.head_dim, shape.q_size, shape.kv_size)
                       : shape.epilogue == kernels::epilogue::gated ? kernels::row_order::gate_up(shape.rows / 2)
                                                                    : kernels::row_order::plain(shape.rows);
    matmul_problem out{shape,
                       position,
                       tokens,
                       room,
                       random.floats(std::size_t{room} * shape.columns, -2, 2),
                       random.floats(shape.columns, 0.5f, 1.5f),
                       random_weight(random, shape.codec, order, shape.columns),
                       plain_rope(shape.head_dim, 10000)};
    for (std::size_t i = 0; i < out.x.size(); i += 7) out.x[i] *= 1e-3f;
    return out;
  }
};

inline product_result expect(const matmul_problem& p, kernels::prologue before) {
  product_result out = initial(p);
  const std::size_t columns = p.shape.columns;
  std::vector<float> y(p.x.begin(), p.x.begin() + static_cast<std::ptrdiff_t>(p.tokens * columns));
  for (std::size_t t = 0; before == kernels::prologue::norm && t < p.tokens; ++t)
    reference::rms_norm(std::span(p.x).subspan(t * columns, columns), p.norm_weight, 1e-5f,
                        std::span(y).subspan(t * columns, columns));
  reference::matmul(p.shape, y, p.weight, out.output, p.position, out.keys, out.values, p.rope);
  return out;
}

}  // namespace intaglio::testing
