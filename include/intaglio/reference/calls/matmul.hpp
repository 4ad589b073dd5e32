// SPDX-License-Identifier: MIT
// The reference of the kernels that multiply by coded weights in a plan.
#pragma once

#include "intaglio/reference/dispatch_call.hpp"
#include "intaglio/reference/experts.hpp"
#include "intaglio/reference/matmul.hpp"
#include "intaglio/reference/matmul_chunk.hpp"

namespace intaglio::reference {

/// Base of products with coded weights; x is f32, fixed-point numbers or f16.
struct coded_call : dispatch_call {
  using dispatch_call::dispatch_call;

  void run() {
    const matmul_shape shape{.columns = constant("columns"),
                             .rows = constant("rows"),
                             .codec = static_cast<kernels::codec>(constant("codec")),
                             .epilogue = static_cast<kernels::epilogue>(constant("epilogue")),
                             .head_dim = constant("head_dim"),
                             .q_size = constant("q_size"),
                             .kv_size = constant("kv_size"),
                             .context = constant("context"),
                             .ring = constant("ring") != 0,
                             .cache_element = element("cache_element"),
                             .gate = d.act()};
    const std::size_t n = tokens(), columns = shape.columns;
    const bool small_batch = d.kernel == kernels::kernel::matmul_batch;
    if (d.kernel != kernels::kernel::matmul && constant("slot_words") != 0)
      return;  // a kernel for a batch of sessions: its reference is a run of each session by itself
    const bool chunk = d.kernel == kernels::kernel::matmul_chunk;
    if (chunk && constant("experts_used") != 0) return chunk_by_lists(shape);
    if (constant("experts_used") != 0)
      return expert_matmul(shape, small_batch                   ? constant("list_tokens")
                                  : constant("tile_tokens") > 1 ? constant("tile_tokens")
                                                                : 0);
    const std::size_t width = shape.epilogue == kernels::epilogue::rope_cache ? shape.q_size
                              : shape.epilogue == kernels::epilogue::gated    ? shape.rows / 2
                                                                              : shape.rows;
    const auto output = memory<float>("output").first(n * width);
    if (chunk) {
      std::vector<f16_token> x(n);
      for (std::size_t t = 0; t < n; ++t) x[t] = halved_input(t, columns);
      return reference::matmul_chunk(shape, x, weight<std::byte>("weight"), output, position(),
                                     memory<std::byte>("keys"), memory<std::byte>("values"),
                                     weight<std::uint64_t>("rope"));
    }
    auto gates = d.kernel == kernels::kernel::matmul ? memory<float>("gates") : std::span<float>{};
    if (!gates.empty()) gates = gates.first(output.size());
    reference::matmul(shape, small_batch ? fixed_input(n, columns) : input_behind_norm(n, columns),
                      weight<std::byte>("weight"), output, position(), memory<std::byte>("keys"),
                      memory<std::byte>("values"), weight<std::uint64_t>("rope"), gates);
  }

 private:
  f16_token halved_input(std::size_t row, std::size_t columns) const {
    const auto bits = memory<std::uint16_t>("input").subspan(row * columns, columns);
    return {{bits.begin(), bits.end()}, memory<float>("factors")[row]};
  }

  /// Products of the rows that lists of experts name.
  void chunk_by_lists(const matmul_shape& shape) {
    const std::uint32_t list_tokens = constant("list_tokens"),
                        width = shape.epilogue == kernels::epilogue::gated ? shape.rows / 2 : shape.rows;
    const std::size_t lists = constant("max_tokens") / list_tokens,
                      matrix = shape.rows / 4 * kernels::matmul_group_bytes(shape.codec, shape.columns);
    const auto tiles = memory<std::uint32_t>("tiles").first(lists * (list_tokens + 2));
    for (std::size_t list = 0; list < lists; ++list) {
      const auto of = tiles.subspan(list * (list_tokens + 2), list_tokens + 2);
      for (std::size_t i = 0; i < of[1]; ++i) {
        const f16_token x = halved_input(list * list_tokens + i, shape.columns);
        reference::matmul_chunk(shape, std::span(&x, 1), weight<std::byte>("weight").subspan(of[0] * matrix, matrix),
                                memory<float>("output").subspan(std::size_t{of[2 + i]} * width, width));
      }
    }
  }

  /// @param list_tokens length of the lists that name the tokens of each expert; 0: the choice of route is used
  void expert_matmul(const matmul_shape& shape, std::uint32_t list_tokens) {
    const bool small_batch = d.kernel == kernels::kernel::matmul_batch;
    const std::size_t used = constant("experts_used"),
                      width = shape.epilogue == kernels::epilogue::gated ? shape.rows / 2 : shape.rows;
    std::size_t n = tokens();
    std::vector<std::uint32_t> choice;
    if (list_tokens == 0) {
      const auto from = memory<std::uint32_t>("choice").first(n * 2 * used);
      choice.assign(from.begin(), from.end());
    } else {
      const std::size_t lists = d.groups[1] / (small_batch ? list_tokens / constant("tile_tokens") : 1);
      const auto tiles = memory<std::uint32_t>(small_batch ? "tiles" : "choice").first(lists * (list_tokens + 2));
      n = m.state[kernels::state::count];
      choice.resize(n * 2 * used);
      reference::choice_of_tiles(tiles, list_tokens, used, choice);
    }
    const bool own_input = constant("own_input") != 0;
    const std::size_t rows = own_input ? n * used : n;
    reference::expert_matmul(shape, used, own_input,
                             small_batch ? fixed_input(rows, shape.columns) : input_behind_norm(rows, shape.columns),
                             choice, weight<std::byte>("weight"), memory<float>("output").first(n * used * width));
  }

  /// The output of kernel `fixed` as numbers.
  std::vector<float> fixed_input(std::size_t rows, std::size_t columns) const {
    std::vector<float> out;
    const std::size_t words = kernels::fixed_words(static_cast<std::uint32_t>(columns));
    for (std::size_t row = 0; row < rows; ++row) {
      const auto numbers = fixed_values(memory<std::uint32_t>("input").subspan(row * words, words));
      out.insert(out.end(), numbers.begin(), numbers.end());
    }
    return out;
  }
};

template <>
struct call_of<kernels::matmul_kernel> : coded_call {
  using coded_call::coded_call;
};
template <>
struct call_of<kernels::matmul_batch_kernel> : coded_call {
  using coded_call::coded_call;
};
template <>
struct call_of<kernels::matmul_chunk_kernel> : coded_call {
  using coded_call::coded_call;
};

}  // namespace intaglio::reference
