// SPDX-License-Identifier: MIT
// The kernel streams: its computation, its interface, and the facts that planning needs.
#pragma once

#include "intaglio/core/compiler.hpp"

#include <cstdint>

#include "intaglio/ir/op.hpp"
#include "intaglio/kernels/descriptor.hpp"

namespace intaglio::kernels {

/// One step of AltUp (Gemma 3n) on a token's streams S, f32 [tokens, streams, width]; width: a multiple of 4. Input is
/// S unless the step names another. With m = tanh(router (x / rms(x) norm_weight) / width), router f32 [streams,
/// width]:
///   take     output = S[stream] scale
///   weigh    output = S[stream] norm_weight
///   predict  x = S[0]: output[i] = S[i] + sum over j of (mixing m)[i, j] S[j], mixing f32 [streams^2, streams]
///   correct  x = branch: output[i] = S[i] + (branch - S[0]) ((mixing m)[i] + 1), mixing f32 [streams, streams], whose
///            entries are taken from -120 to 120
///   spread   output[0] = S[0], output[i] = S[i] + branch
///   append   output = S and, as one more stream, branch as large as target, f32 [tokens, width]
///   shrink   output = max(S[0] - mean - scale * standard deviation, 0), of one stream
///   join     output = input + branch as large as S[0], where S is the target and input [tokens, width]
/// "y as large as x" is y rms(x) / sqrt(max(mean of y^2, 1e-5)). The output may overwrite the input in predict, correct
/// and spread. One workgroup a token (y).
inline constexpr kernel_interface streams_interface{
    "streams",
    {{{"input"}, {"branch"}, {"target"}, {"norm_weight"}, {"router"}, {"mixing"}, {"output"}, {"state"}}},
    {{{"workgroup_size"},
      {"width"},
      {"streams"},
      {"step"},
      {"stream"},
      {"scale", field_type::f32},
      {"eps", field_type::f32}}}};

/// Descriptor of the kernel streams, which computes one step of AltUp.
struct streams_kernel {
  static constexpr kernel id = kernel::streams;
  static constexpr const kernel_interface& face = streams_interface;
  static constexpr candidate candidates[] = {{variant::streams, {}}};
  template <class T>
  struct push {
    T input, branch, target, norm_weight, router, mixing, output, state;
  };
  struct constants {
    std::uint32_t workgroup_size{};
    std::uint32_t width{};
    std::uint32_t streams{};
    std::uint32_t step{};
    std::uint32_t stream{};
    float scale{};
    float eps{};
  };
};

}  // namespace intaglio::kernels
