// SPDX-License-Identifier: MIT
// Compares the resident dispatch (shaders/layers.comp), whose workgroups wait for each other, with the chain of
// dispatches: the tokens have the same bits. Where the workgroups time out, a pass draws no token, and decode uses the
// chain from then on.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <memory>
#include <string>
#include <vector>

#include "gpu/checked_device.hpp"
#include "intaglio/models/bitnet_b158.hpp"
#include "intaglio/plan/engrave.hpp"
#include "intaglio/runtime/executor.hpp"
#include "intaglio/runtime/synthetic_weights.hpp"
#include "intaglio/runtime/text_stream.hpp"
#include "runtime/drawn_tokens.hpp"

using namespace intaglio;

namespace {
constexpr const plan::table& story = plan::engraved<models::fable, plan::profiles::portable>::table;
constexpr const plan::table& two_b = plan::engraved<models::bitnet_2b_4t, plan::profiles::portable>::table;

/// The modules of a device that runs the dispatch; elsewhere the test is reported as skipped, with the reason.
plan::device_class resident_modules(const gpu::device& on) {
  const plan::device_class found = runtime::usable_classes(on).front();
  if (!plan::runs(two_b.resident_decode.resident.front(), found))
    SKIP("NOT RUN: needs an NVIDIA GPU with " << two_b.resident_decode.resident.front().least_groups
                                              << " multiprocessors or more, found " << on.label());
  return found;
}

/// Modules for any device that can make the pipeline of the dispatch, whether it computes there or times out.
plan::device_class modules_of_any(const gpu::device& on) {
  if (!on.has(gpu::feature::shader_int64)) SKIP("NOT RUN: needs shaderInt64, found " << on.label());
  return resident_class(on);
}

/// At a high temperature, where nearly every bit of the logits counts.
std::vector<std::uint32_t> drawn(runtime::executor& run, std::uint32_t position, std::uint32_t first,
                                 std::uint32_t count) {
  return drawn_until_none(run, position, first, {.temperature = 4.f, .seed = 5}, count);
}
/// Tokens after prompts of 0 to nearly the whole context, in caches that the executor itself filled.
std::vector<std::vector<std::uint32_t>> drawn_along(const gpu::device& on, const plan::table& table,
                                                    const plan::device_class& modules,
                                                    const std::vector<std::uint32_t>& positions) {
  runtime::executor run(on, table, runtime::synthetic_weights(on, table), modules, nullptr);
  std::vector<std::vector<std::uint32_t>> out;
  std::uint32_t cached = 0;
  for (const std::uint32_t position : positions) {
    while (cached < position) {
      std::vector<std::uint32_t> prompt(std::min(table.prefill.max_tokens, position - cached));
      for (std::size_t i = 0; i < prompt.size(); ++i)
        prompt[i] = static_cast<std::uint32_t>((cached + i) * 7919 % table.config->vocab_size);
      run.begin(runtime::pass_kind::prefill, cached, prompt, {}, 1);
      while (run.pending()) {
        if (!run.may_submit()) run.wait();
        run.submit(1000, 1);
      }
      run.drain();
      cached += static_cast<std::uint32_t>(prompt.size());
    }
    out.push_back(drawn(run, position, 17, 24));
  }
  return out;
}
/// A session with a history that is not fed yet.
std::shared_ptr<runtime::session_body> begun(const gpu::device& on, const plan::table& table,
                                             const plan::device_class& modules) {
  const auto body = std::make_shared<runtime::session_body>(on, table, 250.0);
  body->run = std::make_unique<runtime::executor>(on, table, runtime::synthetic_weights(on, table), modules, nullptr);
  body->history = {3, 17, 400, 17};
  return body;
}
/// What a generation after a prompt draws.
std::vector<std::int32_t> generated(const gpu::device& on, const plan::table& table,
                                    const plan::device_class& modules) {
  const auto body = begun(on, table, modules);
  text_stream stream(runtime::session_use(body),
                     {.temperature = 4.f, .repeat_penalty = 1.5f, .seed = 5, .max_tokens = 6});
  while (!stream.done()) stream.next();
  CHECK(body->run->plan_of(runtime::pass_kind::decode).resident.empty());
  CHECK(body->size() == 10);
  return stream.result().ids;
}

/// The plan with another value of a constant of the one dispatch.
struct changed {
  std::vector<plan::dispatch> resident{story.resident_decode.resident.begin(), story.resident_decode.resident.end()};
  plan::table table = story;
  changed(std::string_view constant, std::uint32_t value) {
    resident[0].specialization[kernels::layers_interface.specialization_index(constant)] = value;
    table.resident_decode.resident = resident;
  }
};
}  // namespace

TEST_CASE("workgroups that wait for each other draw the tokens of the chain", "[runtime][resident][resident][gpu]") {
  const checked_device on;
  const auto modules = resident_modules(on.device);
  {
    runtime::executor run(on.device, two_b, runtime::synthetic_weights(on.device, two_b), modules, nullptr);
    REQUIRE(run.plan_of(runtime::pass_kind::decode).resident.size() == 1);
    CHECK(run.segments(runtime::pass_kind::decode) == 1);
    CHECK(run.prove().kernel.empty());
  }
  // The first position, over the end of attention's first span, over the number of spans that the workgroups do in one
  // round, over the first position of the form for long contexts, over the ends of spans of a pair there, and the
  // context's last.
  static_assert(two_b.resident_decode.long_from == 1600);
  const std::vector<std::uint32_t> positions{0, 100, 250, 1530, 1590, 1780, 2040, 2300, 4000, 4072};
  CHECK(drawn_along(on.device, two_b, modules, positions) ==
        drawn_along(on.device, two_b, as_chain(modules), positions));
  CHECK(drawn_along(on.device, story, modules, {0, 250, 480}) ==
        drawn_along(on.device, story, as_chain(modules), {0, 250, 480}));
}

TEST_CASE("as many workgroups as a device has room for draw the tokens of the chain",
          "[runtime][resident][resident][gpu]") {
  const checked_device on;
  auto modules = resident_modules(on.device);
  const std::vector<std::vector<std::uint32_t>> expected =
      drawn_along(on.device, two_b, as_chain(modules), {0, 250, 1530, 4000});
  const std::uint32_t least = two_b.resident_decode.resident.front().least_groups;
  for (const std::uint32_t workgroups : {least, 128u, 130u}) {
    CAPTURE(workgroups);
    if (workgroups > modules.resident_workgroups) continue;
    modules.resident_workgroups = workgroups;
    CHECK(drawn_along(on.device, two_b, modules, {0, 250, 1530, 4000}) == expected);
    modules.resident_workgroups = runtime::resident_workgroups(on.device);
  }
  modules.resident_workgroups = least - 1;
  CHECK_FALSE(plan::runs(two_b.resident_decode.resident.front(), modules));
}

TEST_CASE("workgroups that time out draw no token, and the chain goes on", "[runtime][resident][resident][gpu]") {
  const checked_device on;
  const auto modules = resident_modules(on.device);
  const changed impatient("spin_limit", 1);
  runtime::executor run(on.device, impatient.table, runtime::synthetic_weights(on.device, impatient.table), modules,
                        nullptr);
  CHECK_FALSE(run.leave_resident());  // nothing has happened yet
  CHECK(drawn(run, 0, 17, 8).empty());
  CHECK(drawn(run, 0, 17, 8).empty());
  REQUIRE(run.leave_resident());
  CHECK(run.plan_of(runtime::pass_kind::decode).resident.empty());
  CHECK_FALSE(run.leave_resident());
  runtime::executor chain(on.device, story, runtime::synthetic_weights(on.device, story), as_chain(modules), nullptr);
  CHECK(drawn(run, 0, 17, 24) == drawn(chain, 0, 17, 24));
}

// On llvmpipe too: the kernel finds that its subgroups are not of 32, and says so instead of computing.
TEST_CASE("a device for which the kernel is not made gets no token of it", "[runtime][resident][resident][gpu]") {
  const checked_device on;
  const auto modules = modules_of_any(on.device);
  const changed other("heads_together", 2);
  runtime::executor run(on.device, other.table, runtime::synthetic_weights(on.device, other.table), modules, nullptr);
  CHECK(run.prove().kernel == "layers");
  CHECK(drawn(run, 0, 17, 4).empty());
  REQUIRE(run.leave_resident());
  runtime::executor chain(on.device, story, runtime::synthetic_weights(on.device, story), as_chain(modules), nullptr);
  CHECK(drawn(run, 0, 17, 4) == drawn(chain, 0, 17, 4));
  CHECK(generated(on.device, other.table, modules) ==
        generated(on.device, story, as_chain(modules)));  // the text is that of the chain
}

TEST_CASE("a dispatch of all layers that proves wrong in the middle of a job leaves decode the chain that it began as",
          "[runtime][resident][resident][gpu]") {
  const checked_device on;
  const auto modules = modules_of_any(on.device);
  const changed other("heads_together", 2);
  gpu::pipeline_cache cache(on.device, "", story.hash);
  const auto plan = runtime::executor::plan_for(other.table, modules);
  runtime::kernel_set kernels(on.device);
  kernels.begin(runtime::executor::begins_with(*plan, true), &cache, runtime::executor::goes_on_with(*plan, true));
  runtime::executor run(on.device, plan, runtime::synthetic_weights(on.device, other.table), std::move(kernels), &cache,
                        true);
  run.note_when_complete(cache, "proven", "proven as a chain");
  CHECK(run.plan_of(runtime::pass_kind::decode).resident.empty());
  runtime::executor chain(on.device, story, runtime::synthetic_weights(on.device, story), as_chain(modules), nullptr);
  const auto drawn_from = [](runtime::executor& from, std::uint32_t passes, bool waits) {
    from.begin(runtime::pass_kind::decode, 0, {{17}}, {.temperature = 4.f, .repeat_penalty = 1.5f, .seed = 5}, passes);
    from.submit(1e9, 1);
    if (waits) from.kernels().wait();
    while (from.pending()) from.may_submit() ? from.submit(1e9, 1) : from.wait();
    while (from.in_flight() != 0) from.wait();
    std::vector<std::uint32_t> out;
    for (std::uint32_t i = 0; i < from.completed(); ++i) out.push_back(from.drawn(i));
    return out;
  };
  const auto one = drawn_from(run, 1, false);
  CHECK(drawn_from(run, 12, true) == drawn_from(chain, 12, true));
  CHECK(one == drawn_from(chain, 1, true));
  CHECK(run.is_complete());
  CHECK(run.plan_of(runtime::pass_kind::decode).resident.empty());
  CHECK(cache.note() == "proven as a chain");
}

TEST_CASE("the chain takes over only where its kernels are right", "[runtime][resident][resident][gpu]") {
  const checked_device on;
  const auto modules = modules_of_any(on.device);
  changed broken("heads_together", 2);
  std::vector<plan::dispatch> period(story.decode.period.begin(), story.decode.period.end());
  for (auto& call : period)
    if (call.kernel == kernels::kernel::attention) call.groups = {1, 1, 1};  // most heads are left undone
  broken.table.decode.period = period;
  const auto body = begun(on.device, broken.table, modules);
  for (int again = 0; again < 2; ++again) {
    text_stream stream(runtime::session_use(body), {.max_tokens = 6});
    CHECK_THROWS_MATCHES(
        stream.next(), device_error,
        Catch::Matchers::MessageMatches(Catch::Matchers::ContainsSubstring("prove the kernel attention (")));
    CHECK(stream.done());
    CHECK(body->run->plan_of(runtime::pass_kind::decode).resident.size() == 1);  // not the chain
    CHECK(body->history == std::vector<std::int32_t>{3, 17, 400, 17});
  }
  CHECK(body->run->leave_resident(false));  // without a proof if none is asked for
  CHECK(body->run->plan_of(runtime::pass_kind::decode).resident.empty());
}
