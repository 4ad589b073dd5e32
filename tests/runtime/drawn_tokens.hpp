// SPDX-License-Identifier: MIT
// What decode draws, for tests that hold one way of decoding against another.
#pragma once

#include <catch2/catch_test_macros.hpp>
#include <cstdint>
#include <vector>

#include "intaglio/runtime/executor.hpp"

/// The same modules, with decode as a chain of dispatches.
inline intaglio::runtime::kernel_modules as_chain(intaglio::runtime::kernel_modules modules) {
  modules.in_one = false;
  return modules;
}
/// The first modules that a device may use, as a chain.
inline intaglio::runtime::kernel_modules chain_modules(const intaglio::gpu::device& on) {
  return as_chain(intaglio::runtime::usable_modules(on).front());
}

/// Up to `count` tokens behind `first`, which is at `position`. Ends before the first that is no token, with nothing in
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
/// The same where all have to be tokens.
inline std::vector<std::uint32_t> drawn_tokens(intaglio::runtime::executor& run, std::uint32_t position,
                                               std::uint32_t first, const intaglio::sampling_options& sampling,
                                               std::uint32_t count) {
  auto out = drawn_until_none(run, position, first, sampling, count);
  REQUIRE(out.size() == count);
  return out;
}
