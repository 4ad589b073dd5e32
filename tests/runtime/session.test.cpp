// SPDX-License-Identifier: MIT
#include "intaglio/runtime/basic_session.hpp"

#include <algorithm>
#include <array>
#include <catch2/catch_test_macros.hpp>
#include <thread>

#include "gpu/checked_device.hpp"
#include "runtime/tables.hpp"
#include "shared.hpp"
#include "temporary_folder.hpp"

using namespace intaglio;

namespace {

const io::checkpoint& fable_file() {
  static const io::checkpoint file = io::checkpoint::open(shared("models/fable-bitnet-i2_s.gguf"));
  return file;
}

struct fable {
  checked_device on;
  std::vector<const plan::table*> tables;
  basic_session session;
  explicit fable(std::vector<const plan::table*> from = {&fable_table(), &fable_portable_table()})
      : tables(std::move(from)), session{on.device, tables, fable_file(), {.cache_folder = ""}} {}
};

std::vector<std::int32_t> prompt(const basic_session& of) {
  return of.encode("Once upon a time, there was a little fox who lived in a big, dark forest with his");
}

}  // namespace

TEST_CASE("a reply streams whole text and says how it ended") {
  fable f;
  std::string streamed;
  for (std::string_view piece : f.session.reply("Tell me a story about a brave mouse.", {.max_tokens = 60})) {
    CHECK_FALSE(piece.empty());
    streamed += piece;
  }
  CHECK(streamed.starts_with("Once upon a time, there was a brave mouse named Pepper."));
  f.session.reset();
  auto stream = f.session.reply("Tell me a story about a brave mouse.", {.max_tokens = 60});
  while (stream.next()) {}
  CHECK(stream.result().text == streamed);
  CHECK(stream.result().finish == finish_reason::length);
  CHECK(stream.result().ids.size() == 60);
  CHECK(stream.result().timings.generated_tokens == 60);
  f.session.reset();
  const io::chat_message asked{"user", "Tell me a story about a brave mouse."};
  CHECK(f.session.generate(f.session.encode(std::span(&asked, 1)), {.max_tokens = 60}).text == streamed);
}

TEST_CASE("one seed gives one text, whatever the submission, the chunk and the cache") {
  fable f;
  const auto ids = prompt(f.session);
  const generate_options drawn{.temperature = 0.9f,
                               .top_k = 50,
                               .top_p = 0.95f,
                               .min_p = 0.01f,
                               .repeat_penalty = 1.1f,
                               .seed = 11,
                               .max_tokens = 24};
  const auto reference = f.session.generate(ids, drawn);
  CHECK(reference.ids.size() > 5);
  for (const std::uint32_t per_submit : {1u, 3u, 1000u})
    for (const std::uint32_t chunk : {1u, 5u, 32u}) {
      auto options = drawn;
      options.tokens_per_submit = per_submit;
      options.chunk = chunk;
      f.session.reset();
      const auto again = f.session.generate(ids, options);
      CHECK(again.ids == reference.ids);
      CHECK(again.text == reference.text);
      CHECK(again.timings.cached_tokens == 0);
      const auto cached = f.session.generate(ids, options);  // the prompt is still in the cache
      CHECK(cached.ids == reference.ids);
      CHECK(cached.timings.cached_tokens == ids.size() - 1);
    }
  auto other = drawn;
  other.seed = 12;
  CHECK(f.session.generate(ids, other).ids != reference.ids);
}

TEST_CASE("cached decode, prefill and any chunk give the same logits, bit for bit", "[second][lowered]") {
  fable f;
  auto ids = prompt(f.session);
  const auto drawn = f.session.generate(ids, {.max_tokens = 20});
  ids.insert(ids.end(), drawn.ids.begin(), drawn.ids.end());
  f.session.reset();
  const auto whole = f.session.logits(ids, 0, true);
  CHECK(whole.logits.size() == ids.size() * 4096);
  CHECK(whole.hidden.size() == 9 * ids.size() * 256);
  for (const std::uint32_t chunk : {1u, 7u, 31u}) {
    f.session.reset();
    const auto again = f.session.logits(ids, chunk, true);
    CHECK(again.logits == whole.logits);
    CHECK(again.hidden == whole.hidden);
    f.session.reset();
    CHECK(f.session.logits(ids, chunk, false).logits == whole.logits);
  }
  // Half through prefill or decode, the rest through the sequence with logits.
  const std::size_t half = ids.size() / 2;
  f.session.reset();
  f.session.prefill(std::span(ids).first(half), 5);
  const auto rest = f.session.logits(std::span(ids).subspan(half));
  CHECK(std::equal(rest.logits.begin(), rest.logits.end(),
                   whole.logits.begin() + static_cast<std::ptrdiff_t>(half * 4096), whole.logits.end()));
  const std::vector<std::int32_t> fed(ids.begin(), ids.end() - 20);
  const auto once_more = f.session.generate(fed, {.max_tokens = 19});
  const auto last = f.session.logits(std::span(ids).last(1));
  CHECK(std::equal(last.logits.begin(), last.logits.end(), whole.logits.end() - 4096));
}

TEST_CASE("the cpu and the portable plan agree to the bit", "[second]") {
  checked_device on;
  const std::array<const plan::table*, 1> cpu{&fable_table()}, portable{&fable_portable_table()};
  basic_session a(on.device, cpu, fable_file(), {.cache_folder = ""}),
      b(on.device, portable, fable_file(), {.cache_folder = ""});
  const auto ids = prompt(a);
  CHECK(a.logits(ids).logits == b.logits(ids).logits);
  a.reset();
  b.reset();
  CHECK(a.generate(ids, {.temperature = 0.8f, .seed = 3, .max_tokens = 20}).ids ==
        b.generate(ids, {.temperature = 0.8f, .seed = 3, .max_tokens = 20}).ids);
}

TEST_CASE("a prompt that begins like the last one is fed from where they part") {
  fable f;
  const auto ids = prompt(f.session);
  f.session.generate(ids, {.max_tokens = 5});
  auto other = ids;
  other[10] = (other[10] + 1) % 4000;
  const auto branched = f.session.generate(other, {.max_tokens = 20});
  CHECK(branched.timings.cached_tokens == 10);
  CHECK(branched.timings.prompt_tokens == ids.size() - 10);
  f.session.reset();
  CHECK(f.session.generate(other, {.max_tokens = 20}).ids == branched.ids);
}

TEST_CASE("stop strings end the text before themselves") {
  fable f;
  const auto ids = prompt(f.session);
  const auto all = f.session.generate(ids, {.max_tokens = 40});
  for (std::size_t at = 3; at + 4 < all.text.size(); at += 25) {
    const std::string stop = all.text.substr(at, 4);
    const auto cut = f.session.generate(ids, {.max_tokens = 40, .stop = {stop, "never in a story"}});
    INFO(stop);
    CHECK(cut.text == all.text.substr(0, all.text.find(stop)));
    CHECK(cut.finish == finish_reason::stop);
    CHECK(f.session.history().size() == ids.size() + cut.ids.size());
  }
  // What was drawn ahead of the stop is forgotten: the same prompt goes on as if nothing had happened.
  CHECK(f.session.generate(ids, {.max_tokens = 40}).ids == all.ids);
}

TEST_CASE("the model's end token ends the text and is not part of it") {
  fable f;
  // The story is complete: the model's next token says that it has finished.
  const std::vector<io::chat_message> messages{{"user", "Tell me a story about a brave mouse."}};
  const auto ids = io::chat_template::of(*fable_file().vocabulary()).encode(f.session.tokenizer(), messages, true);
  const auto rest = f.session.generate(ids, {.max_tokens = 400});
  REQUIRE(rest.finish == finish_reason::stop);
  CHECK(rest.text.starts_with("Once upon a time"));
  CHECK(f.session.tokenizer().is_end_of_generation(rest.ids.back()));
  CHECK(rest.text.find("<|") == std::string::npos);
  CHECK(f.session.history().back() == rest.ids.back());
  const auto count = static_cast<std::uint32_t>(rest.ids.size() + 5);
  CHECK(f.session.generate(ids, {.max_tokens = count, .stop_at_end = false}).ids.size() == count);
}

TEST_CASE("a full context ends the text, a prompt beyond it is refused with both numbers") {
  fable f({&fable_short_table()});
  REQUIRE(f.session.context() == 64);
  std::vector<std::int32_t> ids(57, 300);
  const auto end = f.session.generate(ids, {.stop_at_end = false});
  CHECK(end.finish == finish_reason::length);
  CHECK(end.ids.size() == 7);
  CHECK(f.session.position() == 64);
  CHECK(f.session.generate().ids.empty());
  ids.resize(64, 301);
  CHECK(f.session.generate(ids).finish == finish_reason::length);
  ids.resize(70, 301);
  try {
    f.session.begin(ids);
    FAIL("a prompt longer than the context was accepted");
  } catch (const argument_error& refused) {
    CHECK(std::string(refused.what()) == "prompt: expected at most 64 tokens (the context), found 70 tokens");
  }
  CHECK_THROWS_AS(f.session.prefill(std::vector<std::int32_t>{1}), argument_error);
}

TEST_CASE("arguments out of range are refused before any work and leave the session as it was") {
  fable f;
  const auto ids = prompt(f.session);
  f.session.prefill(ids);
  const auto submits = f.session.executor().counters().submits;
  const std::uint32_t beyond = f.session.table().prefill.max_tokens + 1;
  using list = std::vector<std::int32_t>;
  CHECK_THROWS_AS(f.session.prompt(list{}), argument_error);
  CHECK_THROWS_AS(f.session.begin(list{1, -1}), argument_error);
  CHECK_THROWS_AS(f.session.begin(list{4096}), argument_error);
  CHECK_THROWS_AS(f.session.logits(list{5000}), argument_error);
  CHECK_THROWS_AS(f.session.prefill(list{1, 2, 1 << 30}), argument_error);
  CHECK_THROWS_AS(f.session.prefill(list{1}, beyond), argument_error);
  CHECK_THROWS_AS(f.session.begin({.max_tokens = 0}), argument_error);
  CHECK_THROWS_AS(f.session.begin({.temperature = -1}), argument_error);
  CHECK_THROWS_AS(f.session.begin({.top_k = 0}), argument_error);
  CHECK_THROWS_AS(f.session.begin({.top_k = 4097}), argument_error);
  CHECK_THROWS_AS(f.session.begin({.repeat_last_n = 513}), argument_error);
  CHECK_THROWS_AS(f.session.begin({.chunk = beyond}), argument_error);
  CHECK_THROWS_AS(f.session.begin({.stop = {""}}), argument_error);
  CHECK(f.session.executor().counters().submits == submits);
  CHECK(f.session.history() == ids);
  f.session.reset();
  CHECK_THROWS_AS(f.session.begin(), argument_error);
}

TEST_CASE("what a callback throws reaches the caller, and the session goes on") {
  fable f;
  const auto ids = prompt(f.session);
  const auto all = f.session.generate(ids, {.max_tokens = 20});
  struct enough {};
  int pieces = 0;
  std::string text;
  const auto third = [&](std::string_view piece) {
    text += piece;
    if (++pieces == 3) throw enough{};
  };
  // A token a submission and two submissions in flight: however long each takes, a piece has two tokens at most, and a
  // third one comes.
  CHECK_THROWS_AS(f.session.generate(ids, {.max_tokens = 20, .tokens_per_submit = 1}, third), enough);
  CHECK(pieces == 3);
  CHECK(text.size() < all.text.size());
  CHECK(all.text.starts_with(text));
  const auto& kept = f.session.history();
  CHECK(kept.size() >= ids.size() + 3);
  CHECK(kept.size() <= ids.size() + 6);
  CHECK(std::equal(kept.begin(), kept.begin() + static_cast<std::ptrdiff_t>(ids.size()), ids.begin()));
  CHECK(std::equal(kept.begin() + static_cast<std::ptrdiff_t>(ids.size()), kept.end(), all.ids.begin()));
  CHECK(f.session.generate(ids, {.max_tokens = 20}).ids == all.ids);
}

TEST_CASE("a session refuses a second use while one is running") {
  fable f;
  const auto ids = prompt(f.session);
  int refused = 0;
  f.session.generate(ids, {.max_tokens = 3}, [&](std::string_view) {
    try {
      f.session.reset();
    } catch (const argument_error&) { ++refused; }
  });
  CHECK(refused > 0);
  {
    auto stream = f.session.begin(ids, {.max_tokens = 20});
    REQUIRE(stream.next());
    CHECK_THROWS_AS(f.session.prefill(ids), argument_error);
    std::thread([&] { CHECK_THROWS_AS(f.session.generate(), argument_error); }).join();
  }
  CHECK_NOTHROW(f.session.generate(ids, {.max_tokens = 2}));
  auto stream = f.session.begin(ids, {.max_tokens = 20});
  stream.next();
  stream.cancel();
  CHECK(stream.done());
  CHECK_FALSE(stream.next());
  CHECK_NOTHROW(f.session.reset());
}

TEST_CASE("a session may be moved, and goes on living while a stream reads it") {
  auto f = std::make_unique<fable>();
  const auto ids = prompt(f->session);
  basic_session moved = std::move(f->session);
  CHECK_THROWS_AS(f->session.position(), argument_error);
  CHECK_THROWS_AS(f->session.generate(ids), argument_error);
  std::string text;
  auto stream =
      std::make_optional(std::move(moved)).value().begin(ids, {.max_tokens = 10});  // the last handle goes here
  while (stream.next()) text += stream.piece();
  CHECK(stream.result().ids.size() == 10);
}

TEST_CASE("a program's own loop drives a generation within a budget") {
  fable f;
  const auto ids = prompt(f.session);
  const auto all = f.session.generate(ids, {.max_tokens = 15});
  f.session.reset();
  auto stream = f.session.begin(ids, {.max_tokens = 15});
  std::string text;
  std::size_t frames = 0;
  while (true) {
    const auto before = f.session.executor().counters().submits;
    const bool more = stream.advance(2.0);
    text += stream.piece();
    CHECK(f.session.executor().counters().submits <= before + 1);
    ++frames;
    if (!more) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  CHECK(text == all.text);
  CHECK(stream.result().ids == all.ids);
  CHECK(frames > (f.on.on_cpu() ? 10u : 2u));
  CHECK_THROWS_AS(f.session.begin({.max_tokens = 15}).advance(0), argument_error);
}

TEST_CASE("a program that only advances submits more at a time within its budget, with timestamps and without") {
  for (const auto& [table, takes_times] :
       {std::pair{&fable_table(), true}, std::pair{&fable_table(), false}, std::pair{&fable_portable_table(), true}}) {
    fable f({table});
    const_cast<runtime::executor&>(f.session.executor()).take_times(takes_times);
    const runtime::executor& run = f.session.executor();
    const auto ids = prompt(f.session);
    constexpr std::uint32_t tokens = 24;
    struct counted {
      std::vector<std::int32_t> ids;
      std::uint64_t submits, pieces;
    };
    const auto advance_all = [&](double budget_ms) {
      f.session.reset();
      const runtime::executor_counters before = run.counters();
      auto stream = f.session.begin(ids, {.max_tokens = tokens, .stop_at_end = false});
      while (stream.advance(budget_ms)) std::this_thread::yield();
      const std::uint64_t passes = run.counters().passes - before.passes;
      return counted{stream.result().ids, run.counters().submits - before.submits,
                     (passes - tokens) * run.segments(runtime::pass_kind::prefill) +
                         std::uint64_t{tokens} * run.segments(runtime::pass_kind::decode)};
    };
    constexpr double least_ms = 1e-6;
    CAPTURE(takes_times, f.on.device.limits().timestamp_bits, run.segments(runtime::pass_kind::decode));
    const counted small = advance_all(least_ms);
    CHECK(small.submits == small.pieces);
    CHECK(run.speed(runtime::pass_kind::decode).segment_ms() > 0);
    CHECK(run.speed(runtime::pass_kind::prefill).segment_ms() > 0);
    const counted large = advance_all(1e9);
    CHECK(large.pieces == small.pieces);
    CHECK(large.submits < large.pieces);
    CHECK(run.speed(runtime::pass_kind::decode).allowed(1e9) > 1);
    const counted again = advance_all(least_ms);
    CHECK(again.submits == again.pieces);
    CHECK(large.ids == small.ids);
    CHECK(again.ids == small.ids);
  }
}

TEST_CASE("the first token of a generation goes to the device alone, those after it together") {
  checked_device on;
  const std::array<const plan::table*, 1> tables{&fable_table()};
  constexpr double no_limit_ms = 1e9;
  basic_session session(on.device, tables, fable_file(), {.cache_folder = "", .submit_budget_ms = no_limit_ms});
  const auto ids = prompt(session);
  // A submission holds at most twice the passes that were ever measured together; one that ended before it was waited
  // for is not measured.
  const auto& executor = session.executor();
  while (executor.speed(runtime::pass_kind::decode).allowed(no_limit_ms) <
         4 * executor.segments(runtime::pass_kind::decode)) {
    session.reset();
    session.generate(ids, {.max_tokens = 15, .tokens_per_submit = 4});
  }
  session.reset();
  session.prefill(std::span(ids).first(ids.size() - 1));
  const auto passes = [&] { return executor.counters().passes; };
  auto before = passes();
  auto stream = session.begin(std::span(ids).last(1), {.max_tokens = 15});
  stream.advance(no_limit_ms);
  CHECK(passes() == before + 1);
  stream.cancel();
  session.reset();
  before = passes();
  auto many = session.begin(std::span(ids).first(1), {.max_tokens = 15, .tokens_per_submit = 4});
  while (passes() == before) many.advance(no_limit_ms);  // what the other one left in flight ends first
  CHECK(passes() == before + 4);
}

TEST_CASE("nothing is recorded and no memory of the device taken between tokens") {
  fable f;
  const auto ids = prompt(f.session);
  const auto& device = f.on.device.counters();
  const auto commands = device.recorded_commands.load(), allocations = device.allocations.load(),
             pipelines = device.pipelines.load();
  const auto recordings = f.session.executor().counters().recordings;
  f.session.generate(ids, {.temperature = 0.7f, .seed = 1, .max_tokens = 50});
  CHECK(device.recorded_commands == commands);
  CHECK(device.allocations == allocations);
  CHECK(device.pipelines == pipelines);
  CHECK(f.session.executor().counters().recordings == recordings);
  CHECK(f.session.executor().counters().passes >= 50);
}

TEST_CASE("a second start compiles nothing and proves nothing") {
  checked_device on;
  const temporary_folder folder;
  const std::array<const plan::table*, 1> tables{&fable_table()};
  std::uint64_t first = 0, second = 0;
  std::vector<std::int32_t> ids;
  for (std::uint64_t* submits : {&first, &second}) {
    const auto before = on.device.counters().submits.load();
    basic_session session(on.device, tables, fable_file(), {.cache_folder = folder.path()});
    *submits = on.device.counters().submits - before;
    const auto drawn = session.generate(prompt(session), {.max_tokens = 4}).ids;
    if (ids.empty()) ids = drawn;
    CHECK(drawn == ids);
    CHECK(session.warnings().empty());
  }
  CHECK(second == (on.on_cpu() ? 1u : 2u));  // memory is cleared, and weights are copied where the host's is another
  CHECK(first > 10);
  basic_session trusting(on.device, tables, fable_file(), {.cache_folder = "", .prove_kernels = false});
  CHECK(trusting.executor().counters().passes == 0);
}
