// SPDX-License-Identifier: MIT
// Ops of parallel streams (AltUp), and the op that keeps only large features.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "intaglio/ir/ffn_trace.hpp"

namespace intaglio::ir {

/// Traces ops of streams: values [tokens, streams, width]. kernels/streams.hpp defines the steps.
class stream_trace : public ffn_trace {
 public:
  using ffn_trace::ffn_trace;

  /// Tensors of the steps predict and correct: a norm [width], a router [streams, width], a matrix [rows, streams].
  struct mixing {
    std::string_view norm, router, matrix;
  };

  /// One of the streams, times scale.
  constexpr value_id take_stream(value_id s, std::uint32_t streams, std::uint32_t index, float scale = 1) {
    return push_streams({.in = {s, none, none}, .scale = scale}, stream_step::take, streams, index, "take_stream", 1);
  }
  /// One of the streams, times a tensor [width].
  constexpr value_id weigh_stream(value_id s, std::uint32_t streams, std::uint32_t index, std::string_view name) {
    op o{.in = {s, none, none}, .weight = weight(name, 1, streams == 0 ? 0 : width(s) / streams, dtype::f32)};
    return push_streams(o, stream_step::weigh, streams, index, name, 1);
  }
  constexpr value_id predict_streams(value_id s, std::uint32_t streams, const mixing& by, float eps) {
    return push_streams(mixed({s, none, none}, streams, streams * streams, by, eps), stream_step::predict, streams, 0,
                        by.matrix, streams);
  }
  constexpr value_id correct_streams(value_id s, value_id branch, std::uint32_t streams, const mixing& by, float eps) {
    return push_streams(mixed({s, branch, none}, streams, streams, by, eps), stream_step::correct, streams, 0,
                        by.matrix, streams);
  }
  /// Adds the branch to all streams except the first.
  constexpr value_id spread_to_streams(value_id s, value_id branch, std::uint32_t streams) {
    return push_streams({.in = {s, branch, none}}, stream_step::spread, streams, 0, "spread", streams);
  }
  /// Appends a stream: the branch, scaled to the magnitude of the target.
  constexpr value_id append_stream(value_id s, value_id branch, value_id target, std::uint32_t streams) {
    return push_streams({.in = {s, branch, target}}, stream_step::append, streams, 0, "append", streams + 1);
  }
  /// Scales the branch to the magnitude of the first stream and adds it to x; x, branch [tokens, width].
  constexpr value_id join_stream(value_id x, value_id branch, value_id s, std::uint32_t streams) {
    return push_streams({.in = {x, branch, s}}, stream_step::join, streams, 0, "join", 1);
  }

  /// Keeps large features: max(x - mean - deviations * standard deviation of the token's x, 0).
  constexpr value_id shrink(value_id x, float deviations) {
    return push_streams({.in = {x, none, none}, .scale = deviations}, stream_step::shrink, 1, 0, "shrink", 1);
  }

 private:
  constexpr op mixed(std::array<value_id, 3> in, std::uint32_t streams, std::uint32_t rows, const mixing& by,
                     float eps) {
    const std::uint32_t wide = streams == 0 ? 0 : width(in[0]) / streams;
    if (!(eps > 0)) fail(where(by.norm).view(), "rms_norm expects an epsilon above 0, found 0 or less");
    return {.in = in,
            .weight = weight(by.norm, 1, wide, dtype::f32),
            .second = weight(by.router, streams, wide, dtype::f32),
            .third = weight(by.matrix, rows, streams, dtype::f32),
            .eps = eps};
  }
  /// @param of number of streams of the result
  constexpr value_id push_streams(op o, stream_step step, std::uint32_t streams, std::uint32_t index,
                                  std::string_view name, std::uint32_t of) {
    const value_id s = step == stream_step::join ? o.in[2] : o.in[0];
    if (streams == 0 || streams > most_streams) {
      fail(where(name).view(), "at least 1 stream and at most ", most_streams, "", streams);
      streams = 1;
    }
    const std::uint32_t wide = width(s) / streams;
    if (wide % 4 != 0 || wide * streams != width(s))
      fail(where(name).view(), "streams as wide as multiples of 4, of which there are ", streams, "", width(s));
    if (index >= streams) fail(where(name).view(), "a stream below ", streams, "", index);
    if (o.in[1] != none && width(o.in[1]) != wide)
      fail(where(name).view(), "a branch as wide as a stream, ", wide, "", width(o.in[1]));
    o.kind = op_kind::streams;
    o.step = step, o.streams = streams, o.stream_index = index;
    return push(o, "streams", name, dtype::f32, of * wide);
  }
};

}  // namespace intaglio::ir
