// SPDX-License-Identifier: MIT
// Sessions of a batch with drafts draw what they draw without, in fewer passes where drafts are right.
#include "intaglio/runtime/batch_drafts.hpp"

#include <catch2/catch_test_macros.hpp>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "conformance.hpp"
#include "intaglio/families/file_types.hpp"
#include "intaglio/io/gguf.hpp"
#include "intaglio/models/bitnet_b158.hpp"
#include "intaglio/models/gemma3.hpp"
#include "intaglio/models/llama.hpp"
#include "runtime/batch_and_alone.hpp"
#include "shared.hpp"
#include "temporary_folder.hpp"
#include "tiny_configs.hpp"

using namespace intaglio;
using namespace intaglio::testing;

namespace {

/// Runs all sessions to their ends. @return what each drew, by number, and the steps that were taken
struct run_of {
  std::map<std::uint64_t, std::vector<std::int32_t>> drawn;
  std::size_t steps = 0;
};
run_of run_all(basic_batch& from, std::uint32_t tokens = 1) {
  run_of out;
  for (; from.active() != 0 && out.steps < 500; ++out.steps)
    for (const batch_token& token : from.step(tokens)) out.drawn[token.of.number].push_back(token.id);
  return out;
}

std::vector<std::int32_t> repeated(std::uint32_t count, std::uint32_t period, std::uint32_t vocabulary) {
  std::vector<std::int32_t> out = some_ids(period, 3, vocabulary);
  while (out.size() < count) out.push_back(out[out.size() - period]);
  return out;
}

/// Sessions with prompt lookup, alone and beside each other, greedy and drawn.
/// @param repeats tokens that say again what they have said
void check_lookup(both& b, const std::vector<std::int32_t>& repeats) {
  INFO(b.plan.table().model << ", " << b.plan.table().profile);
  const std::uint32_t vocabulary = b.plan.table().config->vocab_size, most = b.batch.most_drafts();
  REQUIRE(most == b.batch.slot_count() - 1);
  const std::vector<sampling_options> ways{
      {}, {.temperature = 0.3f, .top_k = 40, .seed = 5}, {.temperature = 0.9f, .repeat_penalty = 1.2f, .seed = 9}};
  std::map<std::uint64_t, std::vector<std::int32_t>> expected;
  for (std::size_t i = 0; i < ways.size(); ++i) {
    const auto ids = std::vector<std::int32_t>(repeats.begin(), repeats.end() - static_cast<std::ptrdiff_t>(i));
    const batch_options options{
        .sampling = ways[i], .max_tokens = 48, .prompt_lookup_num_tokens = most, .max_matching_ngram_size = 3};
    const auto alone = b.drawn_alone(ids, options);
    const batch_handle who = b.batch.join(ids, options);
    CHECK(run_all(b.batch, 3).drawn[who.number] == alone);
    CHECK(b.batch.free_pages() == b.plan.table().shape.pages);
  }
  CHECK(b.batch.drafts().drafted > 0);
  CHECK(b.batch.drafts().accepted <= b.batch.drafts().drafted);
  for (std::size_t i = 0; i < 2; ++i) {  // with one slot left for drafts of both
    const auto ids = repeated(30, static_cast<std::uint32_t>(5 + i), vocabulary);
    const batch_options options{.sampling = ways[i], .max_tokens = 30, .prompt_lookup_num_tokens = most};
    expected[b.batch.join(ids, options).number] = b.drawn_alone(ids, options);
  }
  CHECK(run_all(b.batch).drawn == expected);
}

/// Drafts of a caller that knows what comes, and of one that does not.
void check_given(both& b) {
  const std::uint32_t vocabulary = b.plan.table().config->vocab_size;
  const batch_options options{.sampling = {.temperature = 0.8f, .seed = 3}, .max_tokens = 25};
  const auto ids = some_ids(21, 5, vocabulary);
  const auto expected = b.drawn_alone(ids, options);
  const auto with = [&](auto&& drafts) {
    const batch_handle who = b.batch.join(ids, options);
    std::vector<std::int32_t> got;
    std::size_t steps = 0;
    for (; b.batch.active() != 0 && steps < 100; ++steps) {
      if (!got.empty()) b.batch.draft(who, drafts(got.size()));
      for (const batch_token& token : b.batch.step()) got.push_back(token.id);
    }
    CHECK(got == expected);
    return steps;
  };
  const auto right = [&](std::size_t from) { return std::span(expected).subspan(from); };
  const std::size_t plain = with([](std::size_t) { return std::span<const std::int32_t>(); });
  CHECK(plain - with(right) == 24 - 24 / b.batch.slot_count());  // all slots' rows are right
  std::vector<std::int32_t> wrong(3);
  CHECK(with([&](std::size_t from) {
          for (std::size_t i = 0; i < wrong.size(); ++i)
            wrong[i] = from + i < expected.size()
                           ? (expected[from + i] + (i == 1 ? 1 : 0)) % static_cast<std::int32_t>(vocabulary)
                           : 1;
          return std::span<const std::int32_t>(wrong);
        }) < plain);
}

}  // namespace

TEST_CASE("sessions of a batch with drafts draw what they draw without: BitNet, Llama, Gemma with windows", "[once]") {
  {
    both b(plan::planned::of<models::fable>(plan::profiles::cpu, 128, {.slot_count = 4, .page_size = 16}),
           io::checkpoint::open(shared("models/fable-bitnet-i2_s.gguf")));
    check_lookup(b,
                 b.batch.encode("The fox saw a red ball. The dog saw a red ball. The fox saw a red ball. The dog saw a "
                                "red ball. The fox saw a"));
    CHECK(b.batch.drafts().accepted > 0);
    check_given(b);
  }
  {
    both b(plan::planned::of<models::llama<llama_tiny, dtype::f16, dtype::f16, dtype::f32>>(
               plan::profiles::exact, 128, {.slot_count = 3, .page_size = 8}),
           io::checkpoint::open(conformance("llama-tiny") / "hf"));
    check_lookup(b, repeated(40, 7, llama_tiny.vocab_size));
  }
  both b(plan::planned::of<models::gemma3<gemma3_tiny, dtype::q8_0, dtype::f32>>(plan::profiles::cpu, 512,
                                                                                 {.slot_count = 3, .page_size = 64}),
         io::checkpoint::open(conformance("gemma3-tiny") / "gguf/gemma3-tiny-q8_0.gguf"));
  check_lookup(b, repeated(40, 7, gemma3_tiny.vocab_size));
  check_given(b);
}

TEST_CASE("drafts that cannot be are refused by name") {
  io::checkpoint file = io::checkpoint::open(conformance("lfm2-tiny", "conformance2", "confgen2.py") / "hf");
  plan::planned plan = families::planned_of(file.config(), families::types_of(file).types, "lfm2-tiny",
                                            plan::profiles::cpu, 256, {.slot_count = 3, .page_size = 16});
  both recurrent(std::move(plan), std::move(file));
  const std::vector<std::int32_t> ids{1, 2, 3};
  CHECK(recurrent.batch.most_drafts() == 0);
  CHECK_THROWS_AS(recurrent.batch.join(ids, {.max_tokens = 2, .prompt_lookup_num_tokens = 1}), argument_error);
  CHECK_THROWS_AS(recurrent.batch.draft(recurrent.batch.join(ids, {.max_tokens = 2}), ids), argument_error);

  both b(plan::planned::of<models::fable>(plan::profiles::cpu, 128, {.slot_count = 3, .page_size = 16}),
         io::checkpoint::open(shared("models/fable-bitnet-i2_s.gguf")));
  CHECK_THROWS_AS(b.batch.join(ids, {.max_tokens = 2, .prompt_lookup_num_tokens = 3}), argument_error);
  CHECK_THROWS_AS(b.batch.join(ids, {.max_tokens = 2, .prompt_lookup_num_tokens = 2, .max_matching_ngram_size = 1}),
                  argument_error);
  CHECK(b.batch.active() == 0);
  const batch_handle host = b.batch.join(ids, {.max_tokens = 2, .keep_logits = true});
  CHECK_THROWS_AS(b.batch.draft(host, ids), argument_error);
  const batch_handle who = b.batch.join(ids, {.max_tokens = 2});
  CHECK_THROWS_AS(b.batch.draft(who, std::vector<std::int32_t>{99'999}), argument_error);
  b.batch.leave(who);
  CHECK_THROWS_AS(b.batch.draft(who, ids), argument_error);
}

TEST_CASE("a wrong draft whose numbers are none changes nothing of what its session draws") {
  std::ifstream in(conformance("llama-tiny") / "gguf/llama-tiny-f32.gguf", std::ios::binary);
  std::string text((std::istreambuf_iterator<char>(in)), {});
  const io::gguf parsed = io::gguf::from_memory(std::as_bytes(std::span(text)), "tiny");
  const io::gguf_tensor *norm = parsed.find_tensor("blk.0.attn_norm.weight"),
                        *embedding = parsed.find_tensor("token_embd.weight");
  REQUIRE((norm != nullptr && embedding != nullptr));
  const auto put = [&](const io::gguf_tensor& to, std::uint64_t index, float value) {
    std::memcpy(text.data() + to.offset + 4 * index, &value, sizeof value);
  };
  constexpr std::int32_t spoiling = 700;
  put(*norm, 5, 3e38f);
  for (std::uint64_t token = 0; token < llama_tiny.vocab_size; ++token)
    put(*embedding, token * llama_tiny.hidden_size + 5, token == spoiling ? 1.f : 0.f);
  const temporary_folder folder;
  std::ofstream(folder / "spoiled.gguf", std::ios::binary) << text;
  both b(plan::planned::of<models::llama<llama_tiny, dtype::f32, dtype::f32, dtype::f32>>(
             plan::profiles::cpu, 128, {.slot_count = 3, .page_size = 8}),
         io::checkpoint::open(folder / "spoiled.gguf"), false);
  const batch_options options{.max_tokens = 20};
  const auto ids = some_ids(13, 5, 600);
  const auto expected = b.drawn_alone(ids, options);
  const batch_handle who = b.batch.join(ids, options);
  std::vector<std::int32_t> got;
  for (int i = 0; b.batch.active() != 0 && i < 100; ++i) {
    if (got.size() == 4 || got.size() == 19) b.batch.draft(who, std::vector<std::int32_t>{spoiling, 3});
    for (const batch_token& token : b.batch.step()) {
      CHECK(token.finite);
      got.push_back(token.id);
    }
  }
  CHECK(got == expected);
  CHECK(b.batch.drafts().drafted != 0);
  CHECK(b.batch.free_pages() == b.plan.table().shape.pages);
}
