// SPDX-License-Identifier: MIT
// The reference of the kernels that multiply by coded weights in a plan.
#pragma once

#include "intaglio/reference/dispatch_call.hpp"
#include "intaglio/reference/experts.hpp"
#include "intaglio/reference/matmul.hpp"
#include "intaglio/reference/matmul_chunk.hpp"

namespace intaglio::reference {

/// Base of products with coded weights; x is f32, fixed-point numbers or f16.
template <class Kernel>
struct coded_call : kernel_call<Kernel> {
  using kernel_call<Kernel>::kernel_call, kernel_call<Kernel>::at, kernel_call<Kernel>::k;
  using kernel_call<Kernel>::d, kernel_call<Kernel>::m;

  void run() {
    const matmul_shape shape{.columns = k.columns,
                             .rows = k.rows,
                             .codec = k.codec,
                             .epilogue = k.epilogue,
                             .head_dim = k.head_dim,
                             .q_size = k.q_size,
                             .kv_size = k.kv_size,
                             .context = k.context,
                             .ring = k.ring != 0,
                             .cache_element = k.cache_element,
                             .gate = d.act()};
    if (!is_plain && k.slot_words != 0)
      return;  // a kernel for a batch of sessions: its reference is a run of each session by itself
    if constexpr (is_chunk) return k.experts_used != 0 ? chunk_by_lists(shape) : chunk(shape);
    else if (k.experts_used != 0) return expert_matmul(shape);
    else product(shape);
  }

 private:
  static constexpr bool is_plain = Kernel::id == kernels::kernel::matmul,
                        is_chunk = Kernel::id == kernels::kernel::matmul_chunk,
                        is_small_batch = Kernel::id == kernels::kernel::matmul_batch;

  std::span<float> output_of(const matmul_shape& shape, std::size_t n) const {
    const std::size_t width = shape.epilogue == kernels::epilogue::rope_cache ? shape.q_size
                              : shape.epilogue == kernels::epilogue::gated    ? shape.rows / 2
                                                                              : shape.rows;
    return this->template memory<float>(at.output).first(n * width);
  }
  void product(const matmul_shape& shape) {
    const std::size_t n = this->tokens();
    const auto output = output_of(shape, n);
    std::span<float> gates;
    if constexpr (is_plain) gates = this->template memory<float>(at.gates);
    if (!gates.empty()) gates = gates.first(output.size());
    reference::matmul(shape, inputs(n), this->template weight<std::byte>(at.weight), output, this->position(),
                      this->template memory<std::byte>(at.keys), this->template memory<std::byte>(at.values),
                      this->template weight<std::uint64_t>(at.rope), gates);
  }
  void chunk(const matmul_shape& shape) {
    std::vector<f16_token> x(this->tokens());
    for (std::size_t t = 0; t < x.size(); ++t) x[t] = halved_input(t);
    reference::matmul_chunk(shape, x, this->template weight<std::byte>(at.weight), output_of(shape, x.size()),
                            this->position(), this->template memory<std::byte>(at.keys),
                            this->template memory<std::byte>(at.values), this->template weight<std::uint64_t>(at.rope));
  }
  f16_token halved_input(std::size_t row) const {
    const auto bits = this->template memory<std::uint16_t>(at.input).subspan(row * k.columns, k.columns);
    return {{bits.begin(), bits.end()}, this->template memory<float>(at.factors)[row]};
  }

  /// Products of the rows that lists of experts name.
  void chunk_by_lists(const matmul_shape& shape) {
    const std::uint32_t list_tokens = k.list_tokens,
                        width = shape.epilogue == kernels::epilogue::gated ? shape.rows / 2 : shape.rows;
    const std::size_t lists = k.max_tokens / list_tokens,
                      matrix = shape.rows / 4 * kernels::matmul_group_bytes(shape.codec, shape.columns);
    const auto tiles = this->template memory<std::uint32_t>(at.tiles).first(lists * (list_tokens + 2));
    for (std::size_t list = 0; list < lists; ++list) {
      const auto of = tiles.subspan(list * (list_tokens + 2), list_tokens + 2);
      for (std::size_t i = 0; i < of[1]; ++i) {
        const f16_token x = halved_input(list * list_tokens + i);
        reference::matmul_chunk(shape, std::span(&x, 1),
                                this->template weight<std::byte>(at.weight).subspan(of[0] * matrix, matrix),
                                this->template memory<float>(at.output).subspan(std::size_t{of[2 + i]} * width, width));
      }
    }
  }

  void expert_matmul(const matmul_shape& shape) {
    const std::size_t used = k.experts_used,
                      width = shape.epilogue == kernels::epilogue::gated ? shape.rows / 2 : shape.rows;
    std::size_t n = this->tokens();
    const std::vector<std::uint32_t> choice = choice_of_tokens(n);
    const bool own_input = k.own_input != 0;
    reference::expert_matmul(shape, used, own_input, inputs(own_input ? n * used : n), choice,
                             this->template weight<std::byte>(at.weight),
                             this->template memory<float>(at.output).first(n * used * width));
  }
  /// The experts of each token, from the choice of route or from lists of experts.
  /// @param n tokens; with lists it becomes the number of tokens of the pass
  std::vector<std::uint32_t> choice_of_tokens(std::size_t& n) const {
    const std::size_t used = k.experts_used;
    std::uint32_t list_tokens = 0;
    std::size_t lists = d.groups[1];
    kernels::push_id tiles{};
    if constexpr (is_small_batch) {
      list_tokens = k.list_tokens, tiles = at.tiles;
      if (list_tokens != 0) lists /= list_tokens / k.tile_tokens;
    } else {
      list_tokens = k.tile_tokens > 1 ? k.tile_tokens : 0, tiles = at.choice;
    }
    if (list_tokens == 0) {
      const auto from = this->template memory<std::uint32_t>(tiles).first(n * 2 * used);
      return {from.begin(), from.end()};
    }
    n = m.state[kernels::state::count];
    std::vector<std::uint32_t> choice(n * 2 * used);
    reference::choice_of_tiles(this->template memory<std::uint32_t>(tiles).first(lists * (list_tokens + 2)),
                               list_tokens, used, choice);
    return choice;
  }

  /// Rows of the input as numbers: after a norm, or of kernel `fixed`.
  std::vector<float> inputs(std::size_t rows) const {
    if constexpr (!is_small_batch) {
      return this->input_after_norm(rows, k.columns);
    } else {
      std::vector<float> out;
      const std::size_t words = kernels::fixed_words(k.columns);
      for (std::size_t row = 0; row < rows; ++row) {
        const auto numbers = fixed_values(this->template memory<std::uint32_t>(at.input).subspan(row * words, words));
        out.insert(out.end(), numbers.begin(), numbers.end());
      }
      return out;
    }
  }
};

template <>
struct call_of<kernels::matmul_kernel> : coded_call<kernels::matmul_kernel> {
  using coded_call::coded_call;
};
template <>
struct call_of<kernels::matmul_batch_kernel> : coded_call<kernels::matmul_batch_kernel> {
  using coded_call::coded_call;
};
template <>
struct call_of<kernels::matmul_chunk_kernel> : coded_call<kernels::matmul_chunk_kernel> {
  using coded_call::coded_call;
};

}  // namespace intaglio::reference
