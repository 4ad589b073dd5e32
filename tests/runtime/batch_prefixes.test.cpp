// SPDX-License-Identifier: MIT
// Beginnings of sessions in files: another batch of the same plan goes on from them with the same tokens and feeds
// nothing anew that the file has, and no file that is damaged or another's is taken.
#include "intaglio/runtime/batch_prefixes.hpp"

#include <array>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "conformance.hpp"
#include "intaglio/families/file_types.hpp"
#include "intaglio/models/bitnet_b158.hpp"
#include "intaglio/models/gemma3.hpp"
#include "runtime/batch_and_alone.hpp"
#include "shared.hpp"
#include "temporary_folder.hpp"
#include "tiny_configs.hpp"

using namespace intaglio;
using namespace intaglio::testing;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;

namespace {

/// Another batch of the same plan on the same device, which the first batch has proven.
basic_batch another(const both& of) {
  return basic_batch(of.on.device, of.tables, of.file, {.cache_folder = "", .prove_kernels = false});
}

std::vector<std::int32_t> drawn_by(basic_batch& from, batch_handle who) {
  std::vector<std::int32_t> out;
  for (int i = 0; from.active() != 0 && i < 500; ++i)
    for (const batch_token& token : from.step())
      if (token.of == who) out.push_back(token.id);
  return out;
}

/// A turn in one batch, saved, and the next turn in another that has had others meanwhile.
/// @param restored positions that the second batch finds
void check_next_turn(both& b, std::uint32_t prompt, std::uint32_t restored) {
  INFO(b.plan.table().model << ", prompt of " << prompt);
  const temporary_folder folder;
  const std::uint32_t vocabulary = b.plan.table().config->vocab_size;
  const batch_options options{{.temperature = 0.8f, .repeat_penalty = 1.1f, .seed = 3}, 40};
  const auto ids = some_ids(prompt, 5, vocabulary);
  const batch_handle who = b.batch.join(ids, options);
  const auto drawn = drawn_by(b.batch, who);
  CHECK(drawn == b.drawn_alone(ids, options));
  auto turn = ids;
  turn.insert(turn.end(), drawn.begin(), drawn.end());
  CHECK(b.batch.last_history(who.slot) == turn);
  const saved_prefix saved = b.batch.save(turn, folder / "one", {options.sampling, "of somebody"});
  CHECK(saved.positions == restored);
  CHECK(saved.bytes == std::filesystem::file_size(folder / "one"));

  basic_batch other = another(b);
  (void)drawn_by(other, other.join(some_ids(prompt + 9, 8, vocabulary), options));
  const saved_prefix found = other.restore(folder / "one");
  CHECK(found.tokens == turn);
  CHECK(found.positions == restored);
  CHECK(found.bytes == saved.bytes);
  CHECK((found.note.text == "of somebody" && found.note.sampling == options.sampling));
  CHECK(other.free_pages() == b.plan.table().shape.pages);

  turn.insert(turn.end(), {5, 6, 7});
  const auto expected = b.drawn_alone(turn, options);
  const batch_handle next = other.join(turn, options);
  CHECK(drawn_by(other, next) == expected);
  CHECK(other.cached_tokens(next) == restored);
  // One that parts earlier shares what is before that.
  auto branch = turn;
  branch[prompt / 2] = 9;
  CHECK(drawn_by(other, other.join(branch, options)) == b.drawn_alone(branch, options));
  // Forgotten, it is fed anew; restored again, found again.
  CHECK(other.forget(turn) > 0);
  const batch_handle anew = other.join(turn, options);
  CHECK(drawn_by(other, anew) == expected);
  CHECK(other.cached_tokens(anew) < restored);
}

both of_conformance(const char* model, const plan::profile& profile, const plan::batch_shape& shape) {
  io::checkpoint file = io::checkpoint::open(conformance(model, "conformance2", "confgen2.py") / "hf");
  plan::planned plan = families::planned_of(file.config(), families::types_of(file).types, model, profile, 256, shape);
  return both(std::move(plan), std::move(file));
}
both fable(const plan::profile& profile, std::uint32_t slot_count = 3) {
  return both(plan::planned::of<models::fable>(profile, 200, {.slot_count = slot_count, .page_size = 16}),
              io::checkpoint::open(shared("models/fable-bitnet-i2_s.gguf")));
}

}  // namespace

TEST_CASE("a beginning that a file holds is gone on from in another batch, whatever holds keys and values") {
  for (const auto type :
       {kernels::element::f32, kernels::element::f16, kernels::element::q8_0, kernels::element::q4_0}) {
    both b = fable(plan::with_cache(plan::profiles::cpu, type));
    check_next_turn(b, 61, 96);
  }
}

TEST_CASE("a beginning with windows, or with states of recurrent layers, is gone on from in another batch", "[once]") {
  both gemma(plan::planned::of<models::gemma3<gemma3_tiny, dtype::q8_0, dtype::f32>>(
                 plan::profiles::cpu, 320, {.slot_count = 3, .page_size = 64}),
             io::checkpoint::open(conformance("gemma3-tiny") / "gguf/gemma3-tiny-q8_0.gguf"));
  check_next_turn(gemma, 138, 128);
  both convolutions = of_conformance("lfm2-tiny", plan::profiles::cpu, {.slot_count = 3, .page_size = 16});
  check_next_turn(convolutions, 90, 128);
  both delta_rules = of_conformance("qwen35-tiny", plan::profiles::cpu, {.slot_count = 3, .page_size = 16});
  check_next_turn(delta_rules, 90, 128);
}

TEST_CASE("a beginning is saved while its session goes on") {
  both b = fable(plan::profiles::cpu);
  const temporary_folder folder;
  const batch_options options{{}, 60};
  const auto ids = some_ids(20, 5, b.plan.table().config->vocab_size);
  const batch_handle who = b.batch.join(ids, options);
  std::vector<std::int32_t> got;
  while (b.batch.active() != 0) {
    for (const batch_token& token : b.batch.step()) got.push_back(token.id);
    if (got.size() == 31) CHECK(b.batch.save(b.batch.last_history(who.slot), folder / "half").positions == 48);
  }
  CHECK(got == b.drawn_alone(ids, options));
  basic_batch other = another(b);
  CHECK(other.restore(folder / "half").tokens.size() == 51);
}

TEST_CASE("a beginning's file that is damaged, of other weights or of another plan is refused and changes nothing") {
  both b = fable(plan::profiles::cpu);
  const temporary_folder folder;
  const auto ids = some_ids(40, 5, b.plan.table().config->vocab_size);
  (void)drawn_by(b.batch, b.batch.join(ids, {{}, 4}));
  CHECK(b.batch.save(ids, folder / "sound").positions == 32);
  std::ifstream in(folder / "sound", std::ios::binary);
  const std::string sound{std::istreambuf_iterator<char>(in), {}};
  basic_batch other = another(b);
  const auto refused = [&](std::string changed, const std::string& expected) {
    std::ofstream(folder / "bad", std::ios::binary) << changed;
    CHECK_THROWS_MATCHES(other.restore(folder / "bad"), file_error,
                         MessageMatches(ContainsSubstring("bad: offset " + expected)));
  };
  const auto with = [&](std::size_t at, std::uint32_t value) {
    std::string changed = sound;
    std::memcpy(changed.data() + at, &value, 4);
    const auto sum = [&](std::size_t bytes) { return io::checksum(std::as_bytes(std::span(changed)).first(bytes)); };
    const std::uint64_t header = sum(io::session_layout::at_header_sum);
    std::memcpy(changed.data() + io::session_layout::at_header_sum, &header, 8);
    const std::uint64_t whole = sum(changed.size() - 8);
    std::memcpy(changed.data() + changed.size() - 8, &whole, 8);
    return changed;
  };
  using at = io::session_layout;
  refused(with(at::at_engraving, 1), "0x18: engraving: expected 0x");
  refused(with(at::at_weights, 1), "0x20: weights: expected 0x");
  refused(with(at::at_cached, 31), "0x2c: tokens in the cache: expected full pages of 16");
  refused(with(at::at_written, 48), "0x30: positions written: expected 32, found 48");
  refused(with(at::at_sampler, 0x7fc00000), "0x40: sampler: temperature");
  refused(with(at::header_bytes + 4, 4096), "0x6c: token 1: expected 0 .. 4095, found 4096");
  refused(sound.substr(0, sound.size() / 2), "0x10: size of the file (cut short?)");
  std::string flipped = sound;
  flipped[sound.size() - 99] = static_cast<char>(flipped[sound.size() - 99] ^ 4);
  refused(flipped, "0x");
  const batch_handle who = other.join(ids, {{}, 4});
  (void)drawn_by(other, who);
  CHECK(other.cached_tokens(who) == 0);

  both larger = fable(plan::profiles::cpu, 4);  // other pages
  CHECK_THROWS_MATCHES(larger.batch.restore(folder / "sound"), file_error,
                       MessageMatches(ContainsSubstring("0x18: engraving: expected 0x")));
  b.alone.save(folder / "alone");
  CHECK_NOTHROW(b.batch.restore(folder / "alone"));  // of nothing
  CHECK_THROWS_AS(b.batch.save(ids, folder / "no/folder"), file_error);
  CHECK_THROWS_AS(b.batch.save(std::vector<std::int32_t>{-1}, folder / "sound"), argument_error);
  CHECK_THROWS_AS(b.batch.last_history(3), argument_error);
}

TEST_CASE("a beginning is not brought back where sessions use the pages") {
  both b(plan::planned::of<models::fable>(plan::profiles::cpu, 64, {.slot_count = 2, .page_size = 16, .pages = 4}),
         io::checkpoint::open(shared("models/fable-bitnet-i2_s.gguf")));
  const temporary_folder folder;
  const auto ids = some_ids(40, 5, b.plan.table().config->vocab_size);
  (void)drawn_by(b.batch, b.batch.join(ids, {{}, 4}));
  CHECK(b.batch.save(ids, folder / "one").positions == 32);
  const batch_handle who = b.batch.join(some_ids(50, 6, b.plan.table().config->vocab_size), {{}, 8});
  b.batch.step();
  CHECK_THROWS_MATCHES(b.batch.restore(folder / "one"), argument_error,
                       MessageMatches(ContainsSubstring("KV pages of a beginning: expected 2")));
  b.batch.leave(who);
  CHECK(b.batch.restore(folder / "one").positions == 32);
}
