// SPDX-License-Identifier: MIT
// The reference of the kernels that multiply by ternary weights in a plan.
#pragma once

#include "intaglio/reference/dispatch_call.hpp"
#include "intaglio/reference/ternary_float.hpp"
#include "intaglio/reference/ternary_matmul.hpp"

namespace intaglio::reference {

/// Sizes and output of a product with ternary weights.
struct ternary_product : dispatch_call {
  using dispatch_call::dispatch_call;

  ternary_matmul_shape product_shape() const {
    return {.columns = constant("columns"),
            .rows = constant("rows"),
            .epilogue = static_cast<kernels::epilogue>(constant("epilogue")),
            .head_dim = constant("head_dim"),
            .q_size = constant("q_size"),
            .kv_size = constant("kv_size"),
            .context = constant("context"),
            .rope_theta = real("rope_theta"),
            .cache_element = element("cache_element"),
            .gate = d.act()};
  }
  /// The output of a product, for all tokens.
  std::span<float> product_output(const ternary_matmul_shape& shape) const {
    const std::size_t width = shape.epilogue == kernels::epilogue::rope_cache ? shape.q_size
                              : shape.epilogue == kernels::epilogue::gated    ? shape.rows / 2
                                                                              : shape.rows;
    return memory<float>("output").first(tokens() * width);
  }
};

/// Base of ternary products with int8 inputs.
struct ternary_call : ternary_product {
  using ternary_product::ternary_product;

  void run() {
    const ternary_matmul_shape shape = product_shape();
    const std::size_t n = tokens(), columns = shape.columns;
    std::vector<std::int8_t> quantized(n * columns);
    std::vector<factors> token_factors(n);
    if (d.kernel == kernels::kernel::ternary_matmul &&
        kernels::quantizes(static_cast<kernels::prologue>(constant("prologue")))) {
      reference::norm_quantize(memory<float>("input").first(n * columns), norm_of(columns), columns, real("eps"),
                               quantized, token_factors);
    } else {
      std::ranges::copy(memory<std::int8_t>("input").first(n * columns), quantized.begin());
      std::ranges::copy(memory<factors>("factors").first(n), token_factors.begin());
    }
    reference::ternary_matmul(shape, quantized, token_factors, weight<std::uint32_t>("weight"), weight<float>("scales"),
                              product_output(shape), position(), memory<std::byte>("keys"),
                              memory<std::byte>("values"));
  }
};

template <>
struct call_of<kernels::ternary_matmul_kernel> : ternary_call {
  using ternary_call::ternary_call;
};
template <>
struct call_of<kernels::ternary_batch_kernel> : ternary_call {
  using ternary_call::ternary_call;
};
template <>
struct call_of<kernels::ternary_chunk_kernel> : ternary_call {
  using ternary_call::ternary_call;
};
template <>
struct call_of<kernels::ternary_rows_kernel> : ternary_call {
  using ternary_call::ternary_call;
};

template <>
struct call_of<kernels::ternary_float_kernel> : ternary_product {
  using ternary_product::ternary_product;

  void run() {
    const ternary_matmul_shape shape = product_shape();
    const auto input = memory<float>("input").first(tokens() * shape.columns);
    std::vector<float> y(input.begin(), input.end());
    if (static_cast<kernels::prologue>(constant("prologue")) == kernels::prologue::norm)
      for (std::size_t t = 0; t < tokens(); ++t) {
        const std::size_t at = t * shape.columns;
        reference::rms_norm(input.subspan(at, shape.columns), weight<float>("norm_weight"), real("eps"),
                            std::span(y).subspan(at, shape.columns));
      }
    reference::ternary_float(shape, y, weight<std::uint32_t>("weight"), weight<float>("scales"), product_output(shape),
                             position(), memory<std::byte>("keys"), memory<std::byte>("values"));
  }
};

}  // namespace intaglio::reference
