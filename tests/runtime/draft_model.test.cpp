// SPDX-License-Identifier: MIT
// A smaller model drafts for sessions of a batch: they draw what they draw without, and what was wrong is taken back.
#include "intaglio/runtime/draft_model.hpp"

#include <catch2/catch_test_macros.hpp>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "conformance.hpp"
#include "intaglio/families/file_types.hpp"
#include "intaglio/families/planned_family.hpp"
#include "intaglio/models/bitnet_b158.hpp"
#include "intaglio/models/llama.hpp"
#include "runtime/batch_and_alone.hpp"
#include "shared.hpp"
#include "tiny_configs.hpp"

using namespace intaglio;
using namespace intaglio::testing;

namespace {

basic_batch another(const both& b) {
  return basic_batch(b.on.device, b.tables, b.file, {.cache_folder = "", .prove_kernels = false});
}
plan::planned fable_plan() {
  return plan::planned::of<models::fable>(plan::profiles::cpu, 128, {.slot_count = 4, .page_size = 16});
}
io::checkpoint fable_file() { return io::checkpoint::open(shared("models/fable-bitnet-i2_s.gguf")); }

const std::vector<sampling_options> ways{
    {}, {.temperature = 0.3f, .top_k = 40, .seed = 5}, {.temperature = 0.9f, .repeat_penalty = 1.2f, .seed = 9}};

/// Drafts as if they took no time, so that tests draft whatever the machine does meanwhile.
class timeless final : public runtime::proposer {
 public:
  timeless(basic_batch small, const basic_batch& large) : by_(std::move(small), large) {}
  void propose(std::span<runtime::draft_wish> wishes) override { by_.propose(wishes), ++rounds; }
  std::size_t rounds = 0;

 private:
  draft_model by_;
};

/// Proposes what never comes.
class always_wrong final : public runtime::proposer {
 public:
  explicit always_wrong(std::vector<std::int32_t> right) : right_(std::move(right)) {}
  void propose(std::span<runtime::draft_wish> wishes) override {
    for (runtime::draft_wish& each : wishes)
      for (std::size_t i = 0; i < each.drafts->size(); ++i)
        (*each.drafts)[i] = each.history.size() + i < right_.size() && right_[each.history.size() + i] == 5 ? 6 : 5;
  }
  double token_ms() const noexcept override { return 0.01; }

 private:
  std::vector<std::int32_t> right_;
};

std::map<std::uint64_t, std::vector<std::int32_t>> run_all(basic_batch& from) {
  std::map<std::uint64_t, std::vector<std::int32_t>> out;
  for (int steps = 0; from.active() != 0 && steps < 500; ++steps)
    for (const batch_token& token : from.step(steps % 3 == 2 ? 3 : 1)) out[token.of.number].push_back(token.id);
  return out;
}

/// Sessions alone and together, greedy and drawn, with drafts of `small`.
void check_drafted(both& b, basic_batch small, const std::vector<std::int32_t>& prompt) {
  const std::uint32_t most = b.batch.most_drafts();
  const auto by = std::make_shared<timeless>(std::move(small), b.batch);
  b.batch.draft_by(by);
  draft_counts all;
  for (const sampling_options& sampling : ways) {
    const batch_options options{.sampling = sampling, .max_tokens = 40, .draft_num_tokens = most};
    const auto expected = b.drawn_alone(prompt, options);
    const batch_handle who = b.batch.join(prompt, options);
    CHECK(run_all(b.batch)[who.number] == expected);
    const draft_counts counts = b.batch.drafts(who);
    CHECK(counts.drafted > 0);
    CHECK(counts.accepted <= counts.drafted);
    all.drafted += counts.drafted, all.accepted += counts.accepted;
  }
  CHECK(b.batch.drafts().drafted == all.drafted);
  CHECK(b.batch.drafts().accepted == all.accepted);
  CHECK(by->rounds > 0);
  CHECK(b.batch.drafts().drafted > 0);
  std::map<std::uint64_t, std::vector<std::int32_t>> expected;
  for (std::size_t i = 0; i < 2; ++i) {
    const std::vector<std::int32_t> ids(prompt.begin(), prompt.end() - static_cast<std::ptrdiff_t>(i));
    const batch_options options{.sampling = ways[i + 1], .max_tokens = 30, .draft_num_tokens = most};
    expected[b.batch.join(ids, options).number] = b.drawn_alone(ids, options);
  }
  CHECK(run_all(b.batch) == expected);
  CHECK(b.batch.free_pages() == b.plan.table().shape.pages);
}

}  // namespace

TEST_CASE("a draft model proposes what it would draw itself after every history that it is given", "[once]") {
  both b(fable_plan(), fable_file());
  draft_model by(another(b), b.batch);
  const std::uint32_t vocabulary = b.plan.table().config->vocab_size;
  struct drafted {
    std::uint64_t who;
    sampling_options sampling;
    std::vector<std::int32_t> history, drafts;
  };
  std::vector<drafted> list{{7, ways[0], some_ids(20, 3, vocabulary), {}},
                            {9, ways[2], some_ids(37, 4, vocabulary), {}}};
  std::size_t proposed = 0;
  const auto ask = [&](std::size_t from, std::uint32_t wanted) {
    std::vector<runtime::draft_wish> wishes;
    for (std::size_t i = from; i < list.size(); ++i) {
      list[i].drafts.assign(wanted, 0);
      wishes.push_back({list[i].who, list[i].history, list[i].sampling, 120, &list[i].drafts});
    }
    by.propose(wishes);
    for (std::size_t i = from; i < list.size(); ++i) {
      INFO("session " << i << ", " << list[i].history.size() << " tokens");
      CHECK(list[i].drafts.size() <= wanted);
      if (list[i].drafts.empty()) continue;
      ++proposed;
      auto expected = b.drawn_alone(list[i].history, {.sampling = list[i].sampling, .max_tokens = wanted});
      CHECK(list[i].drafts == expected);
    }
  };
  ask(0, 3), ask(0, 3);  // prompts are fed one at a time
  REQUIRE(proposed >= 2);
  const std::size_t before = proposed;
  for (std::size_t right = 0; right < 6; ++right) {  // of three; 4 and 5: the session went on by more than was drafted
    for (drafted& each : list) {
      auto goes_on = b.drawn_alone(each.history, {.sampling = each.sampling, .max_tokens = 6});
      goes_on.resize(right);
      each.history.insert(each.history.end(), goes_on.begin(), goes_on.end());
      each.history.push_back(static_cast<std::int32_t>(11 + right));  // a token that was not drafted
    }
    ask(0, 3);
  }
  CHECK(proposed == before + 12);
  ask(1, 2);  // the first one pauses, and is there again, far behind
  for (std::int32_t i = 0; i < 20; ++i) list[0].history.push_back(20 + i);
  ask(0, 2), ask(0, 2);
  CHECK(proposed >= before + 12 + 1 + 3);
  CHECK(by.batch().active() == 2);
  ask(2, 1);  // no drafts
  CHECK(by.batch().active() == 0);
  CHECK(by.batch().free_pages() == b.plan.table().shape.pages);
}

TEST_CASE("the same model drafts nearly everything right; sessions draw what they draw without", "[once]") {
  both b(fable_plan(), fable_file());
  check_drafted(b, another(b), b.batch.encode("Once upon a time there was a fox who"));
  CHECK(b.batch.drafts().accepted * 10 >= b.batch.drafts().drafted * 9);
}

TEST_CASE("another codec of the model drafts: some is wrong, and no token changes", "[once]") {
  both b(plan::planned::of<models::llama<llama_tiny, dtype::f16, dtype::f16, dtype::f32>>(
             plan::profiles::cpu, 128, {.slot_count = 3, .page_size = 8}),
         io::checkpoint::open(conformance("llama-tiny") / "hf"));
  const io::checkpoint coded = io::checkpoint::open(conformance("llama-tiny") / "gguf/llama-tiny-q4_0.gguf");
  const plan::planned plan = families::planned_of(coded.config(), families::types_of(coded).types, "llama-tiny",
                                                  plan::profiles::cpu, 96, {.slot_count = 2, .page_size = 8});
  const std::array<const plan::table*, 1> tables{&plan.table()};
  check_drafted(b, basic_batch(b.on.device, tables, coded, {.cache_folder = "", .prove_kernels = false}),
                some_ids(33, 5, llama_tiny.vocab_size));
}

TEST_CASE("drafts that are always wrong change nothing, and are given up", "[once]") {
  both b(fable_plan(), fable_file());
  const batch_options options{.max_tokens = 100, .draft_num_tokens = 3};
  const std::vector<std::int32_t> prompt = b.batch.encode("Once upon a time");
  const auto expected = b.drawn_alone(prompt, {.max_tokens = 100});
  std::vector<std::int32_t> all = prompt;
  all.insert(all.end(), expected.begin(), expected.end());
  b.batch.draft_by(std::make_shared<always_wrong>(all));
  const batch_handle who = b.batch.join(prompt, options);
  CHECK(run_all(b.batch)[who.number] == expected);
  CHECK(b.batch.drafts().drafted > 0);
  CHECK(b.batch.drafts().accepted == 0);
  CHECK(b.batch.drafts().drafted < 60);  // of 300
}

TEST_CASE("draft models and options that cannot be are refused by name", "[once]") {
  both b(fable_plan(), fable_file());
  CHECK_THROWS_AS(b.batch.join(std::vector<std::int32_t>{1}, {.max_tokens = 2, .draft_num_tokens = 1}), argument_error);
  b.batch.draft_by(std::make_shared<draft_model>(another(b), b.batch));
  CHECK_THROWS_AS(b.batch.join(std::vector<std::int32_t>{1}, {.max_tokens = 2, .draft_num_tokens = 4}), argument_error);
  CHECK(b.batch.active() == 0);
  both other(plan::planned::of<models::llama<llama_tiny, dtype::f16, dtype::f16, dtype::f32>>(
                 plan::profiles::cpu, 128, {.slot_count = 3, .page_size = 8}),
             io::checkpoint::open(conformance("llama-tiny") / "hf"));
  try {
    draft_model(another(other), b.batch, {"tiny.gguf", "fable.gguf"});
    FAIL("other tokens are refused");
  } catch (const argument_error& refused) {
    const std::string text = refused.what();
    CHECK(text.find("tiny.gguf") != std::string::npos);
    CHECK(text.find("fable.gguf") != std::string::npos);
    CHECK(text.size() <= 400);
  }
  io::checkpoint file = io::checkpoint::open(conformance("lfm2-tiny", "conformance2", "confgen2.py") / "hf");
  plan::planned plan = families::planned_of(file.config(), families::types_of(file).types, "lfm2-tiny",
                                            plan::profiles::cpu, 256, {.slot_count = 3, .page_size = 16});
  both recurrent(std::move(plan), std::move(file));
  CHECK_THROWS_AS(draft_model(another(recurrent), recurrent.batch), argument_error);
  const batch_handle who = recurrent.batch.join(std::vector<std::int32_t>{1, 2, 3}, {.max_tokens = 5});
  for (int i = 0; i < 4 && recurrent.batch.history(who).size() < 5; ++i) recurrent.batch.step();
  CHECK_THROWS_AS(recurrent.batch.set_next(who, 1, 1), argument_error);
  CHECK_THROWS_AS(recurrent.batch.set_next(who, 1, 20), argument_error);
}
