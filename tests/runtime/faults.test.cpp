// SPDX-License-Identifier: MIT
// Faults of Vulkan and of the host's memory during load, prefill, decode and logits. Expected each time: the right
// numbers or one of intaglio's exceptions, no handle left, and a new session that works.
#include <array>
#include <catch2/catch_test_macros.hpp>
#include <map>
#include <optional>
#include <set>

#include "gpu/checked_device.hpp"
#include "gpu/failing_new.hpp"
#include "gpu/kept_device.hpp"
#include "intaglio/runtime/basic_session.hpp"
#include "runtime/tables.hpp"
#include "shared.hpp"
#include "temporary_folder.hpp"

using namespace intaglio;

namespace {

const io::checkpoint& tiny_file() {
  static const io::checkpoint file =
      io::checkpoint::open(shared("conformance/bitnet-tiny/gguf/bitnet-tiny-b158-i2_s.gguf"));
  return file;
}

constexpr std::array<std::int32_t, 5> prompt{1000, 246, 324, 532, 914};

struct outcome {
  std::vector<std::int32_t> ids;
  std::vector<float> logits;
  friend bool operator==(const outcome&, const outcome&) = default;
};

gpu::device_options shimmed(gpu::validation validate = gpu::validation::off) {
  gpu::device_options options;
  options.entry = &faults::entry;
  options.validate = validate;
  return options;
}

/// A session's life: load, prompt, tokens one a submission, logits.
outcome whole_life(const session_options& wish) {
  const gpu::device on(shimmed());
  const std::array<const plan::table*, 1> tables{&bitnet_tiny_table()};
  basic_session session(on, tables, tiny_file(), wish);
  outcome out;
  out.ids =
      session
          .generate(prompt,
                    {.temperature = 0.5f, .seed = 2, .max_tokens = 4, .stop_at_end = false, .tokens_per_submit = 1})
          .ids;
  out.logits = session.logits(std::array<std::int32_t, 2>{7, 8}).logits;
  return out;
}

}  // namespace

TEST_CASE("each Vulkan function fails at its first, a middle and its last call") {
  const temporary_folder folder;
  const session_options wish{.cache_folder = folder.path()};
  faults::the_shim().reset();
  const outcome expected = whole_life(wish);
  REQUIRE(expected.ids.size() == 4);
  auto kept = std::make_optional<faults::kept_device>();
  faults::the_shim().reset();
  REQUIRE(whole_life(wish) == expected);  // now with the kernels proven before, as in the lives below
  std::map<faults::id, std::size_t> counts;
  for (const auto& call : faults::the_shim().record()) counts[call.which] = std::max(counts[call.which], call.nth + 1);
  REQUIRE(counts.size() > 20);
  std::size_t thrown = 0, lives = 0;
  for (const auto& [which, count] : counts) {
    const auto& what = faults::functions()[static_cast<std::size_t>(which)];
    std::size_t code_index = 0;
    for (const std::size_t nth : std::set<std::size_t>{0, count / 2, count - 1}) {
      const VkResult code = what.codes[code_index++ % what.codes.size()];
      INFO(what.name << " call " << nth << " returns " << gpu::result_name(code));
      faults::the_shim().arm(which, nth, code);
      ++lives;
      try {
        const bool right =
            whole_life(wish) == expected;  // a documented fallback: another memory type, a list read again
        CHECK(right);
      } catch (const device_error& typed) {
        ++thrown;
        CHECK_FALSE(typed.operation().empty());
      }
      CHECK(faults::the_shim().live().empty());
      CHECK(faults::the_shim().wrong_destroys() == 0);
    }
  }
  CHECK(thrown * 2 > lives);
  faults::the_shim().reset();
  kept.reset();
  CHECK(whole_life(wish) == expected);
}

namespace {

/// Loses the device at every `step`th submission of a life.
void lose_at_submissions(const session_options& wish, std::size_t step) {
  faults::the_shim().reset();
  const outcome expected = whole_life(wish);
  auto kept = std::make_optional<faults::kept_device>();
  const std::size_t submits = faults::the_shim().calls(faults::id::vkQueueSubmit);
  REQUIRE(submits > 8 * step);
  for (std::size_t nth = 0; nth < submits; nth += step) {
    INFO("submission " << nth << " of " << submits);
    faults::the_shim().arm(faults::id::vkQueueSubmit, nth, VK_ERROR_DEVICE_LOST);
    CHECK_THROWS_AS(whole_life(wish), device_lost);
    CHECK(faults::the_shim().live().empty());
    CHECK(faults::the_shim().wrong_destroys() == 0);
  }
  faults::the_shim().reset();
  kept.reset();
  CHECK(whole_life(wish) == expected);
}

}  // namespace

// With a budget of next to nothing each submission is one segment, so how many a life takes does not depend on time.
TEST_CASE("the device is lost at each submission: typed error, a new session gives the same") {
  const temporary_folder folder;
  const session_options wish{.cache_folder = folder.path(), .submit_budget_ms = 1e-6};
  whole_life(wish);  // the kernels have been proven in the lives that follow
  lose_at_submissions(wish, 1);
}

TEST_CASE("the device is lost while the kernels prove themselves") {
  lose_at_submissions({.cache_folder = "", .submit_budget_ms = 1e-6}, 7);
}

TEST_CASE("a lost session answers every call with device_lost and keeps the text so far") {
  faults::the_shim().reset();
  {
    const gpu::device on(shimmed());
    const std::array<const plan::table*, 1> tables{&bitnet_tiny_table()};
    basic_session session(on, tables, tiny_file(), {.cache_folder = ""});
    auto stream = session.begin(prompt, {.max_tokens = 50, .stop_at_end = false, .tokens_per_submit = 1});
    REQUIRE(stream.next());
    faults::the_shim().arm(faults::id::vkQueueSubmit, 0, VK_ERROR_DEVICE_LOST);
    CHECK_THROWS_AS(
        [&] {
          while (stream.next()) {}
        }(),
        device_lost);
    CHECK(stream.done());
    CHECK_FALSE(stream.result().ids.empty());
    CHECK_FALSE(stream.next());
    CHECK_THROWS_AS(session.reset(), device_lost);
    CHECK_THROWS_AS(session.generate(), device_lost);
  }
  faults::the_shim().reset();
  CHECK(faults::the_shim().live().empty());
}

TEST_CASE("no memory for a submission: the session forgets nothing and goes on") {
  faults::the_shim().reset();
  const gpu::device on(shimmed());
  const std::array<const plan::table*, 1> tables{&bitnet_tiny_table()};
  basic_session session(on, tables, tiny_file(), {.cache_folder = ""});
  const auto all = session.generate(prompt, {.max_tokens = 6, .stop_at_end = false});
  for (const std::size_t nth : {0u, 1u, 3u}) {
    session.reset();
    faults::the_shim().arm(faults::id::vkQueueSubmit, nth, VK_ERROR_OUT_OF_HOST_MEMORY);
    auto stream = session.begin(prompt, {.max_tokens = 6, .stop_at_end = false, .tokens_per_submit = 1});
    CHECK_THROWS_AS(
        [&] {
          while (stream.next()) {}
        }(),
        out_of_memory);
    const std::size_t before = stream.result().ids.size();
    CHECK(session.history().size() == prompt.size() + before);
    const auto rest = session.generate({.max_tokens = static_cast<std::uint32_t>(6 - before), .stop_at_end = false});
    CHECK(std::equal(rest.ids.begin(), rest.ids.end(), all.ids.begin() + static_cast<std::ptrdiff_t>(before),
                     all.ids.end()));
  }
  faults::the_shim().reset();
}

TEST_CASE("the host's memory ends at some allocation, once and for good") {
  const temporary_folder folder;
  const session_options wish{.cache_folder = folder.path()};
  faults::the_shim().reset();
  const outcome expected = whole_life(wish);
  auto kept = std::make_optional<faults::kept_device>();
  for (const bool for_good : {false, true}) {
    bool failed = true;
    std::size_t thrown = 0;
    for (long at = 0; failed; at += 1 + at / 6) {
      INFO("allocation " << at << (for_good ? " and all after it" : ""));
      bool right = false;
      failed = false;
      {
        const faults::failing_allocations armed(at, for_good);
        try {
          right = whole_life(wish) == expected;
        } catch (const error&) {
          right = true;
          ++thrown;
        }
        failed = faults::allocations.failed;
      }
      CHECK(right);
      CHECK(faults::the_shim().live().empty());
    }
    CHECK(thrown > 20);
  }
  kept.reset();
  CHECK(whole_life(wish) == expected);
}

TEST_CASE("nothing allocates on the host while tokens are drawn") {
  faults::the_shim().reset();
  const checked_device on(
      shimmed(gpu::validation_from_environment()));  // the shim spares what the driver and a layer allocate
  const std::array<const plan::table*, 1> tables{&bitnet_tiny_table()};
  basic_session session(on.device, tables, tiny_file(), {.cache_folder = ""});
  session.generate(prompt, {.max_tokens = 20, .stop_at_end = false});
  session.reset();
  auto stream = session.begin(prompt, {.max_tokens = 40, .stop_at_end = false, .tokens_per_submit = 2});
  REQUIRE(stream.next());
  const auto recordings = session.executor().counters().recordings;
  const faults::failing_allocations counting(1'000'000'000, false);
  while (stream.next()) {}
  const long seen = faults::allocations.seen;
  CHECK(session.executor().counters().recordings == recordings);
  CHECK(stream.result().ids.size() == 40);
  CHECK(seen == 0);
}

TEST_CASE("a device with less than a plan demands is refused by name, and makes no pipeline") {
  const io::checkpoint file = io::checkpoint::open(shared("models/fable-bitnet-i2_s.gguf"));
  const std::array<const plan::table*, 1> tables{&fable_portable_table()};
  const auto refusal = [&](std::uint32_t shared_bytes, std::uint32_t invocations) -> std::string {
    const faults::lowered_limits lowered(shared_bytes, invocations);
    faults::the_shim().reset();
    const gpu::device on(shimmed());
    try {
      basic_session session(on, tables, file, {.cache_folder = ""});
    } catch (const error& problem) {
      CHECK(faults::the_shim().calls(faults::id::vkCreateComputePipelines) == 0);
      return problem.what();
    }
    return "";
  };
  const std::string memory = refusal(16384, 0), invocations = refusal(0, 16);
  INFO(memory << '\n' << invocations);
  CHECK(memory.find("shared memory") != std::string::npos);
  CHECK(memory.find("16384") != std::string::npos);
  CHECK(memory.find("found ") != std::string::npos);
  CHECK(memory.size() <= 400);
  CHECK(invocations.find("expected 1 to 16 invocations") != std::string::npos);
  CHECK(invocations.size() <= 400);
}
