// SPDX-License-Identifier: MIT
// The reference of the kernels that multiply by dense weights in a plan.
#pragma once

#include "intaglio/reference/dense_matmul.hpp"
#include "intaglio/reference/dispatch_call.hpp"

namespace intaglio::reference {

template <>
struct call_of<kernels::dense_matmul_kernel> : kernel_call<kernels::dense_matmul_kernel> {
  using kernel_call::kernel_call;

  void run() {
    const std::size_t columns = k.columns, rows = k.rows, n = tokens();
    reference::dense_matmul(memory<float>(at.input).first(n * columns), weight<float>(at.norm_weight),
                            weight<std::byte>(at.weight), static_cast<kernels::element>(k.weight_element), columns,
                            rows, k.eps, memory<float>(at.output).first(n * rows));
  }
};

/// Runs dense_batch on the output of rms_norm.
template <class Kernel>
struct dense_batch_call : kernel_call<Kernel> {
  using kernel_call<Kernel>::kernel_call, kernel_call<Kernel>::at, kernel_call<Kernel>::k;

  void run() {
    const std::size_t columns = k.columns, rows = k.rows, n = this->tokens();
    reference::dense_batch(this->template memory<float>(at.input).first(n * columns),
                           this->template weight<std::byte>(at.weight), static_cast<kernels::element>(k.weight_element),
                           columns, rows, this->template memory<float>(at.output).first(n * rows));
  }
};

template <>
struct call_of<kernels::dense_batch_kernel> : dense_batch_call<kernels::dense_batch_kernel> {
  using dense_batch_call::dense_batch_call;
};
template <>
struct call_of<kernels::dense_rows_kernel> : dense_batch_call<kernels::dense_rows_kernel> {
  using dense_batch_call::dense_batch_call;
};

}  // namespace intaglio::reference
