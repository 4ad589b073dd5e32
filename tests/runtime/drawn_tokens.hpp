// SPDX-License-Identifier: MIT
// What decode draws, for tests that hold one way of decoding against another.
#pragma once

#include <catch2/catch_test_macros.hpp>
#include <cstdint>
#include <vector>

#include "intaglio/runtime/executor.hpp"

/// A class with decode as a chain of dispatches.
inline intaglio::plan::device_class as_chain(const intaglio::plan::device_class& of) { return of.without_residency(); }
/// What may be used of a device first.
inline intaglio::plan::device_class first_class(const intaglio::gpu::device& on) {
  return intaglio::runtime::usable_classes(on).front();
}
/// The first usable class of a device, with decode as a chain.
inline intaglio::plan::device_class chain_class(const intaglio::gpu::device& on) { return as_chain(first_class(on)); }
/// A device as if it were a GPU without matrices.
inline intaglio::plan::device_class gpu_class(const intaglio::gpu::device& on) {
  intaglio::plan::device_class out = as_chain(intaglio::runtime::class_of(on)).without_matrices();
  if (out.is_cpu) out.int64 = false;  // no wide loads
  return out;
}
/// The class of a device on which a number of workgroups run at once.
inline intaglio::plan::device_class resident_class(const intaglio::gpu::device& on, std::uint32_t workgroups = 132) {
  intaglio::plan::device_class out = gpu_class(on);
  out.resident_workgroups = workgroups;
  return out;
}

/// Up to `count` tokens after `first`, which is at `position`. Ends before the first that is no token, with nothing in
/// flight.
inline std::vector<std::uint32_t> drawn_until_none(intaglio::runtime::executor& run, std::uint32_t position,
                                                   std::uint32_t first, const intaglio::sampling_options& sampling,
                                                   std::uint32_t count) {
  std::vector<std::uint32_t> out;
  run.begin(intaglio::runtime::pass_kind::decode, position, {&first, 1}, sampling, count);
  while (out.size() < count) {
    while (run.may_submit()) run.submit(1000, 16);
    run.wait();
    while (out.size() < run.completed()) {
      const std::uint32_t token = run.drawn(static_cast<std::uint32_t>(out.size()));
      if (token >= run.table().config->vocab_size) {
        run.drain();
        return out;
      }
      out.push_back(token);
    }
  }
  return out;
}
/// Draws tokens and requires that all are tokens.
inline std::vector<std::uint32_t> drawn_tokens(intaglio::runtime::executor& run, std::uint32_t position,
                                               std::uint32_t first, const intaglio::sampling_options& sampling,
                                               std::uint32_t count) {
  auto out = drawn_until_none(run, position, first, sampling, count);
  REQUIRE(out.size() == count);
  return out;
}
