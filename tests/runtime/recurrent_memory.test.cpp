// SPDX-License-Identifier: MIT
// States of recurrent layers and their copies: which positions a session can go on from, and that it goes on from
// there as one that was fed the whole.
#include "intaglio/runtime/recurrent_memory.hpp"

#include <array>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "conformance.hpp"
#include "gpu/checked_device.hpp"
#include "intaglio/families/file_types.hpp"
#include "intaglio/runtime/basic_session.hpp"
#include "temporary_folder.hpp"

using namespace intaglio;
using runtime::state_positions;

TEST_CASE("a state stands for one position; copies for those that they were made at", "[runtime]") {
  state_positions states(4);
  CHECK((states.position() == 0 && states.kept(0) == 0 && states.kept(5) == 0));
  REQUIRE(states.passed(100, true));
  CHECK_FALSE(states.passed(101, false));  // one token more is not worth a copy
  CHECK((states.kept(101) == 101 && states.kept(100) == 100 && states.kept(102) == 100 && states.kept(99) == 0));
  REQUIRE(states.passed(100 + state_positions::interval, false));
  CHECK(states.copies().size() == 2);
  // Back to a copy: what is after is forgotten, since other tokens may come.
  const auto taken = states.go_to(100);
  REQUIRE(taken);
  CHECK((taken->position == 100 && states.position() == 100 && states.copies().size() == 1));
  CHECK(states.kept(150) == 100);
  // Where there is none the state is that of no position, and nothing comes of passes.
  CHECK_FALSE(states.go_to(90));
  CHECK((states.position() == state_positions::nowhere && states.copies().empty()));
  CHECK_FALSE(states.passed(200, true));
  CHECK(states.kept(200) == 0);
  CHECK_FALSE(states.go_to(0));  // the first position needs none
  CHECK((states.position() == 0 && states.passed(8, true)));
}

TEST_CASE("copies that give way leave the others spread over the session", "[runtime]") {
  state_positions states(4);
  for (std::uint32_t position = 64; position <= 4096; position += 64) {
    REQUIRE(states.passed(position, true));
    CHECK(states.copies().size() <= 4);
    CHECK(states.copies().back().position == position);
    std::array<bool, 4> used{};
    for (const auto& each : states.copies()) {
      CHECK_FALSE(used.at(each.index));
      used[each.index] = true;
    }
  }
  std::uint32_t before = 0;
  for (const auto& each : states.copies()) {
    CHECK(each.position - before <= 3072);  // none of the quarters is all of the session
    before = each.position;
  }
  states.lose();
  CHECK((states.kept(4096) == 4096 && states.copies().size() == 4));
  states.lose_all();
  CHECK(states.kept(4096) == 0);
  states.restored(77);
  CHECK((states.kept(77) == 77 && states.kept(76) == 0));
}

namespace {

struct two_sessions {
  io::checkpoint file;
  plan::planned cpu, portable;
  checked_device on;
  basic_session one, other;

  explicit two_sessions(const char* model)
      : file(io::checkpoint::open(conformance(model, "conformance2", "confgen2.py") / "hf")),
        cpu(planned(model, plan::profiles::cpu)), portable(planned(model, plan::profiles::portable)), one(made()),
        other(made()) {}

 private:
  plan::planned planned(const char* model, const plan::profile& target) const {
    return families::planned_of(file.config(), families::types_of(file).types, model, target, 512);
  }
  basic_session made() const {
    const std::array<const plan::table*, 2> tables{&cpu.table(), &portable.table()};
    return basic_session(on.device, tables, file, {.cache_folder = ""});
  }
};

std::vector<std::int32_t> some_ids(std::size_t count, std::size_t seed) {
  std::vector<std::int32_t> out(count);
  for (std::size_t i = 0; i < count; ++i) out[i] = static_cast<std::int32_t>(3 + (i * i * 37 + seed * i) % 990);
  return out;
}

/// What a session says of a prompt; another one that never saw anything else says the same.
std::vector<std::int32_t> answer(basic_session& from, const std::vector<std::int32_t>& ids, std::uint32_t cached,
                                 std::uint32_t tokens = 12) {
  const generation made = from.generate(ids, {.max_tokens = tokens, .stop_at_end = false});
  CHECK(made.timings.cached_tokens == cached);
  return made.ids;
}

void check_steps_back(const char* model) {
  two_sessions of(model);
  const auto fresh = [&](const std::vector<std::int32_t>& ids) {
    of.other.reset();
    return answer(of.other, ids, 0);
  };
  // A shared prefix is not computed again: the same prompt, and one that goes on after the answer.
  const auto first = some_ids(90, 5);
  const auto said = answer(of.one, first, 0);
  CHECK(said == fresh(first));
  CHECK(answer(of.one, first, 89) == said);
  auto longer = first;
  longer.insert(longer.end(), said.begin(), said.end());
  longer.push_back(17);
  CHECK(answer(of.one, longer, 101) == fresh(longer));
  // A step back into the prompt: what is between the newest copy and it is fed anew.
  auto branch = first;
  branch[85] = 11;
  const std::uint32_t chunk = of.one.table().prefill.max_tokens;
  CHECK(answer(of.one, branch, 85 / chunk * chunk) == fresh(branch));
  // Cut short in the middle of a generation whose passes ran ahead.
  {
    text_stream stream = of.one.begin(first, {.max_tokens = 200, .stop_at_end = false});
    while (stream.result().ids.size() < 70 && stream.next()) {}
    stream.cancel();
  }
  auto cut = first;
  const std::vector<std::int32_t> kept(of.one.history().begin() + 90, of.one.history().begin() + 150);
  cut.insert(cut.end(), kept.begin(), kept.end());
  cut.push_back(5);
  CHECK(answer(of.one, cut, 89) == fresh(cut));
  // Token by token a copy is made at times, here at 64.
  of.one.reset();
  of.one.prefill(some_ids(100, 9), 1);
  auto other = some_ids(100, 9);
  other[80] = 2;
  CHECK(answer(of.one, other, 64) == fresh(other));
}

void check_saved(const char* model) {
  two_sessions of(model);
  const temporary_folder folder;
  const auto ids = some_ids(70, 3);
  (void)answer(of.one, ids, 0, 20);
  of.one.save(folder / "session");
  const auto goes_on = [&](basic_session& from) {
    const logits_result out = from.logits(some_ids(5, 2));
    return out.logits;
  };
  (void)answer(of.other, some_ids(33, 8), 0, 4);
  of.other.restore(folder / "session");
  CHECK(of.other.history() == of.one.history());
  CHECK(goes_on(of.other) == goes_on(of.one));
  // And from a copy, where the state has run ahead of what is kept.
  auto shorter = of.one.history();
  shorter.resize(69);
  of.one.prompt(shorter);
  of.one.save(folder / "again");
  of.other.restore(folder / "again");
  CHECK(goes_on(of.other) == goes_on(of.one));
}

}  // namespace

TEST_CASE("a session of short convolutions goes on from its copies", "[runtime]") { check_steps_back("lfm2-tiny"); }

TEST_CASE("a saved session of short convolutions goes on", "[runtime]") { check_saved("lfm2-tiny"); }

TEST_CASE("a session of gated delta rules goes on from its copies", "[runtime]") { check_steps_back("qwen35-tiny"); }

TEST_CASE("a saved session of gated delta rules goes on", "[runtime]") { check_saved("qwen3next-tiny"); }
