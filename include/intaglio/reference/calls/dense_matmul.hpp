// SPDX-License-Identifier: MIT
// The reference of the kernels that multiply by dense weights in a plan.
#pragma once

#include "intaglio/reference/dense_matmul.hpp"
#include "intaglio/reference/dispatch_call.hpp"

namespace intaglio::reference {

template <>
struct call_of<kernels::dense_matmul_kernel> : dispatch_call {
  using dispatch_call::dispatch_call;

  void run() {
    const std::size_t columns = constant("columns"), rows = constant("rows"), n = tokens();
    reference::dense_matmul(memory<float>("input").first(n * columns), weight<float>("norm_weight"),
                            weight<std::byte>("weight"), element("weight_element"), columns, rows, real("eps"),
                            memory<float>("output").first(n * rows));
  }
};

/// Runs dense_batch on the output of rms_norm.
struct dense_batch_call : dispatch_call {
  using dispatch_call::dispatch_call;

  void run() {
    const std::size_t columns = constant("columns"), rows = constant("rows"), n = tokens();
    reference::dense_batch(memory<float>("input").first(n * columns), weight<std::byte>("weight"),
                           element("weight_element"), columns, rows, memory<float>("output").first(n * rows));
  }
};

template <>
struct call_of<kernels::dense_batch_kernel> : dense_batch_call {
  using dense_batch_call::dense_batch_call;
};
template <>
struct call_of<kernels::dense_rows_kernel> : dense_batch_call {
  using dense_batch_call::dense_batch_call;
};

}  // namespace intaglio::reference
