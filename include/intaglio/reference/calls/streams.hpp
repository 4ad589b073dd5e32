// SPDX-License-Identifier: MIT
// The reference of the kernel streams in a plan.
#pragma once

#include "intaglio/reference/dispatch_call.hpp"
#include "intaglio/reference/streams.hpp"

namespace intaglio::reference {

template <>
struct call_of<kernels::streams_kernel> : kernel_call<kernels::streams_kernel> {
  using kernel_call::kernel_call;

  void run() {
    const auto step = static_cast<ir::stream_step>(k.step);
    const streams_sizes sizes(step, k.width, k.streams);
    const auto weights = [&](kernels::push_id id, std::size_t count) {
      return count == 0 ? std::span<const float>{} : weight<float>(id).first(count);
    };
    const auto norm = weights(at.norm_weight, sizes.norm), router = weights(at.router, sizes.router),
               mixing = weights(at.mixing, sizes.mixing);
    const auto of_token = [&](kernels::push_id id, std::size_t token, std::size_t row) {
      return row == 0 ? std::span<const float>{} : memory<float>(id).subspan(token * row, row);
    };
    for (std::size_t token = 0; token < tokens(); ++token)
      reference::streams(
          {k.width, k.streams, step, k.stream, k.scale, k.eps}, of_token(at.input, token, sizes.input),
          {of_token(at.branch, token, sizes.branch), of_token(at.target, token, sizes.target), norm, router, mixing},
          memory<float>(at.output).subspan(token * sizes.output, sizes.output));
  }
};

}  // namespace intaglio::reference
