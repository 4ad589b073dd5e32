// SPDX-License-Identifier: MIT
// The reference of the kernel streams in a plan.
#pragma once

#include "intaglio/reference/dispatch_call.hpp"
#include "intaglio/reference/streams.hpp"

namespace intaglio::reference {

template <>
struct call_of<kernels::streams_kernel> : dispatch_call {
  using dispatch_call::dispatch_call;

  void run() {
    const auto k = kernels::constants_of<kernels::streams_kernel>(d.specialization);
    const auto step = static_cast<ir::stream_step>(k.step);
    const streams_sizes sizes(step, k.width, k.streams);
    const auto weights = [&](const char* name, std::size_t count) {
      return count == 0 ? std::span<const float>{} : weight<float>(name).first(count);
    };
    const auto norm = weights("norm_weight", sizes.norm), router = weights("router", sizes.router),
               mixing = weights("mixing", sizes.mixing);
    const auto of_token = [&](const char* name, std::size_t token, std::size_t row) {
      return row == 0 ? std::span<const float>{} : memory<float>(name).subspan(token * row, row);
    };
    for (std::size_t token = 0; token < tokens(); ++token)
      reference::streams(
          {k.width, k.streams, step, k.stream, k.scale, k.eps}, of_token("input", token, sizes.input),
          {of_token("branch", token, sizes.branch), of_token("target", token, sizes.target), norm, router, mixing},
          memory<float>("output").subspan(token * sizes.output, sizes.output));
  }
};

}  // namespace intaglio::reference
