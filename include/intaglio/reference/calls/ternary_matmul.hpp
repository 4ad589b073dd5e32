// SPDX-License-Identifier: MIT
// The reference of the kernels that multiply by ternary weights in a plan.
#pragma once

#include "intaglio/reference/dispatch_call.hpp"
#include "intaglio/reference/ternary_float.hpp"
#include "intaglio/reference/ternary_matmul.hpp"

namespace intaglio::reference {

/// Sizes and output of a product with ternary weights.
template <class Kernel>
struct ternary_product : kernel_call<Kernel> {
  using kernel_call<Kernel>::kernel_call, kernel_call<Kernel>::at, kernel_call<Kernel>::k;

  ternary_matmul_shape product_shape() const {
    return {.columns = k.columns,
            .rows = k.rows,
            .epilogue = k.epilogue,
            .head_dim = k.head_dim,
            .q_size = k.q_size,
            .kv_size = k.kv_size,
            .context = k.context,
            .rope_theta = k.rope_theta,
            .cache_element = k.cache_element,
            .gate = this->d.act()};
  }
  /// The output of a product, for all tokens.
  std::span<float> product_output(const ternary_matmul_shape& shape) const {
    const std::size_t width = shape.epilogue == kernels::epilogue::rope_cache ? shape.q_size
                              : shape.epilogue == kernels::epilogue::gated    ? shape.rows / 2
                                                                              : shape.rows;
    return this->template memory<float>(at.output).first(this->tokens() * width);
  }
};

/// Base of ternary products with int8 inputs.
template <class Kernel>
struct ternary_call : ternary_product<Kernel> {
  using ternary_product<Kernel>::ternary_product, ternary_product<Kernel>::at, ternary_product<Kernel>::k;

  void run() {
    const ternary_matmul_shape shape = this->product_shape();
    const std::size_t n = this->tokens(), columns = shape.columns;
    std::vector<std::int8_t> quantized(n * columns);
    std::vector<factors> token_factors(n);
    read_input(quantized, token_factors);
    reference::ternary_matmul(shape, quantized, token_factors, this->template weight<std::uint32_t>(at.weight),
                              this->template weight<float>(at.scales), this->product_output(shape), this->position(),
                              this->template memory<std::byte>(at.keys), this->template memory<std::byte>(at.values));
  }

 private:
  /// Reads the activations, or quantises them where the kernel does.
  void read_input(std::vector<std::int8_t>& quantized, std::vector<factors>& token_factors) const {
    const std::size_t columns = k.columns;
    if constexpr (requires { k.prologue; })
      if (kernels::quantizes(k.prologue))
        return reference::norm_quantize(this->template memory<float>(at.input).first(quantized.size()),
                                        this->norm_of(columns), columns, k.eps, quantized, token_factors);
    std::ranges::copy(this->template memory<std::int8_t>(at.input).first(quantized.size()), quantized.begin());
    std::ranges::copy(this->template memory<factors>(at.factors).first(token_factors.size()), token_factors.begin());
  }
};

template <>
struct call_of<kernels::ternary_matmul_kernel> : ternary_call<kernels::ternary_matmul_kernel> {
  using ternary_call::ternary_call;
};
template <>
struct call_of<kernels::ternary_batch_kernel> : ternary_call<kernels::ternary_batch_kernel> {
  using ternary_call::ternary_call;
};
template <>
struct call_of<kernels::ternary_chunk_kernel> : ternary_call<kernels::ternary_chunk_kernel> {
  using ternary_call::ternary_call;
};
template <>
struct call_of<kernels::ternary_rows_kernel> : ternary_call<kernels::ternary_rows_kernel> {
  using ternary_call::ternary_call;
};

template <>
struct call_of<kernels::ternary_float_kernel> : ternary_product<kernels::ternary_float_kernel> {
  using ternary_product::ternary_product;

  void run() {
    const ternary_matmul_shape shape = product_shape();
    reference::ternary_float(shape, input_after_norm(tokens(), shape.columns), weight<std::uint32_t>(at.weight),
                             weight<float>(at.scales), product_output(shape), position(), memory<std::byte>(at.keys),
                             memory<std::byte>(at.values));
  }
};

}  // namespace intaglio::reference
