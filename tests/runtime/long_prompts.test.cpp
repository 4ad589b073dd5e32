// SPDX-License-Identifier: MIT
// Chunks of long prompts beside the plan's chunks: the same bits in caches and stream.
#include <catch2/catch_test_macros.hpp>
#include <vector>

#include "gpu/checked_device.hpp"
#include "intaglio/gpu/transfer.hpp"
#include "intaglio/models/bitnet_b158.hpp"
#include "intaglio/models/llama.hpp"
#include "intaglio/plan/planned.hpp"
#include "intaglio/runtime/executor.hpp"
#include "intaglio/runtime/synthetic_weights.hpp"
#include "runtime/tables.hpp"
#include "tiny_configs.hpp"

using namespace intaglio;

namespace {

constexpr plan::profile three_at_once = [] {
  auto out = plan::profiles::portable;
  out.name = "three chunks of 128 at once";
  out.prefill_tokens = 128;
  out.long_prefill_tokens = 400;
  return out;
}();
constexpr std::uint32_t tokens = 450, context = 512;

/// Keys and values of all layers.
std::vector<std::byte> caches(runtime::executor& run) {
  gpu::transfer transfer(run.device(), std::uint64_t{1} << 20);
  std::vector<std::byte> out;
  for (const auto& item : run.caches().items) {
    std::vector<std::byte> part(item.bytes);
    transfer.download(run.caches().buffers[item.buffer], item.offset, part);
    out.insert(out.end(), part.begin(), part.end());
  }
  return out;
}

/// The caches after a prompt, and a token drawn after it.
std::pair<std::vector<std::byte>, std::uint32_t> caches_and_token(runtime::executor& run, bool takes_long) {
  std::vector<std::uint32_t> ids(tokens);
  for (std::uint32_t i = 0; i < tokens; ++i) ids[i] = (i * 7919 + i * i * 31) % run.table().config->vocab_size;
  const auto finish = [&] {
    while (run.pending() || run.in_flight() != 0) {
      if (run.may_submit()) run.submit(1e6, 16);
      else run.wait();
    }
  };
  std::uint32_t longest = 0;
  for (std::uint32_t at = 0; at < tokens - 1;) {
    const std::uint32_t left = tokens - 1 - at, many = takes_long ? run.long_chunk(left, true, nullptr) : 0,
                        count = many != 0 ? many : std::min(left, run.table().prefill.max_tokens);
    run.begin(many != 0 ? runtime::pass_kind::prefill_long : runtime::pass_kind::prefill, at,
              std::span(ids).subspan(at, count), {}, 1);
    finish();
    at += count;
    longest = std::max(longest, count);
  }
  CHECK(longest == (takes_long ? 384 : 128));
  auto kept = caches(run);
  run.begin(runtime::pass_kind::decode, tokens - 1, std::span(ids).last(1), {}, 1);
  finish();
  return {std::move(kept), run.drawn(0)};
}

void check(const plan::planned& made) {
  const plan::table& table = made.table();
  const checked_device on;
  const auto fitted = std::make_shared<const plan::device_plan>(table, runtime::usable_classes(on.device).front(),
                                                                plan::device_plan_options{.always_long = true});
  const auto run_of = [&](const std::shared_ptr<const plan::device_plan>& plan) {
    return std::make_unique<runtime::executor>(on.device, plan, runtime::synthetic_weights(on.device, table),
                                               runtime::kernel_set(on.device), nullptr);
  };
  const auto one = run_of(fitted), other = run_of(fitted);
  CHECK(caches_and_token(*one, true) == caches_and_token(*other, false));
}

}  // namespace

TEST_CASE("chunks of a long prompt at once leave the bits of chunks one by one", "[once]") {
  check(plan::planned::of<models::llama<llama_tiny, dtype::q8_0>>(three_at_once, context));
  check(plan::planned::of<models::fable>(three_at_once, context));
}
