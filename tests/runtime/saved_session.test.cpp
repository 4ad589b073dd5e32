// SPDX-License-Identifier: MIT
// A restored session goes on as the one that was saved: the same tokens, the same logits to the bit, nothing fed anew.
#include "intaglio/runtime/saved_session.hpp"

#include <array>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cstring>
#include <fstream>
#include <iterator>

#include "conformance.hpp"
#include "gpu/checked_device.hpp"
#include "intaglio/models/llama.hpp"
#include "intaglio/plan/planned.hpp"
#include "intaglio/runtime/basic_session.hpp"
#include "runtime/logits_apart.hpp"
#include "runtime/tables.hpp"
#include "shared.hpp"
#include "temporary_folder.hpp"

using namespace intaglio;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;

namespace {

constexpr decoder_config mistral_tiny_ring{.model_type = architecture::llama,
                                           .hidden_size = 256,
                                           .intermediate_size = 768,
                                           .num_hidden_layers = 3,
                                           .num_attention_heads = 8,
                                           .num_key_value_heads = 4,
                                           .head_dim = 32,
                                           .vocab_size = 1000,
                                           .max_position_embeddings = 1024,
                                           .rope_theta = 10'000.f,
                                           .hidden_act = activation::silu,
                                           .tie_word_embeddings = false,
                                           .sliding_window = 48};

basic_session session_of(const checked_device& on, const plan::table& table, const io::checkpoint& file) {
  const std::array<const plan::table*, 1> tables{&table};
  return basic_session(on.device, tables, file, {.cache_folder = ""});
}
io::checkpoint fable_file() { return io::checkpoint::open(shared("models/fable-bitnet-i2_s.gguf")); }

std::string text_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// Saves after `ids` and some tokens, goes on, and holds a session that was used for something else against that.
void check_going_on(basic_session& saved, basic_session& other, const std::vector<std::int32_t>& ids,
                    std::uint32_t drawn) {
  const temporary_folder folder;
  const auto path = folder / "session";
  const session_note note{{.temperature = 0.9f,
                           .top_k = 200,
                           .top_p = 0.95f,
                           .min_p = 0.001f,
                           .repeat_penalty = 1.3f,
                           .repeat_last_n = 40,
                           .seed = 0x1234567890},
                          "turns"};
  const auto with = [&](const sampling_options& s, std::uint32_t count) {
    return generate_options{.temperature = s.temperature,
                            .top_k = s.top_k,
                            .top_p = s.top_p,
                            .min_p = s.min_p,
                            .repeat_penalty = s.repeat_penalty,
                            .repeat_last_n = s.repeat_last_n,
                            .seed = s.seed,
                            .max_tokens = count,
                            .stop_at_end = false};
  };
  saved.generate(ids, with(note.sampling, drawn));
  const auto history = saved.history();
  saved.save(path, note);
  const generation uninterrupted = saved.generate(with(note.sampling, 24));
  CHECK(uninterrupted.timings.prompt_tokens == 1);

  other.generate(std::vector<std::int32_t>(ids.rbegin(), ids.rend()), with(note.sampling, 9));
  const session_note found = other.restore(path);
  CHECK(found.text == note.text);
  CHECK(found.sampling == note.sampling);
  CHECK(other.history() == history);
  const generation again = other.generate(with(found.sampling, 24));
  CHECK(again.ids == uninterrupted.ids);
  CHECK(again.timings.prompt_tokens == 1);  // the rest was in the cache
  CHECK(again.timings.cached_tokens == history.size() - 1);

  // Logits of some tokens after what was saved, once by the saved session itself, once by the other.
  const std::vector<std::int32_t> next{11, 12, 13};
  saved.restore(path), other.restore(path);
  const auto expected = saved.logits(next).logits, logits = other.logits(next).logits;
  CHECK(std::memcmp(expected.data(), logits.data(), 4 * expected.size()) == 0);
  saved.reset();
  saved.prefill(history);
  const auto fed = saved.logits(next).logits;
  if (saved.table().profile == "cpu") {
    CHECK(fed == logits);
    return;
  }
  // Plans for GPUs multiply prompts by f16 matrices, but not the tokens that were drawn.
  const logit_distance between = logits_apart(std::span(fed), std::span(logits));
  CHECK(between.apart < 0.01 * between.largest);
}

}  // namespace

TEST_CASE("a saved session of fable goes on as if it had not been interrupted") {
  checked_device on;
  const io::checkpoint file = fable_file();
  basic_session a = session_of(on, fable_table(), file), b = session_of(on, fable_table(), file);
  check_going_on(a, b, a.encode("Once upon a time, there was a little fox who lived in a big, dark forest with his"),
                 20);

  const temporary_folder folder;
  const auto path = folder / "session", bad = folder / "bad";
  a.reset();
  a.save(path);  // of nothing
  b.restore(path);
  CHECK(b.history().empty());

  a.generate(a.encode("One day"), {.max_tokens = 4});
  a.save(path, {.sampling = {}, .text = "x"});
  const std::string sound = text_of(path);
  const auto refused = [&](std::size_t at, std::uint32_t value, const std::string& expected) {
    std::string changed = sound;
    std::memcpy(changed.data() + at, &value, 4);
    const auto sum = [&](std::size_t bytes) { return io::checksum(std::as_bytes(std::span(changed)).first(bytes)); };
    const std::uint64_t header = sum(io::session_layout::at_header_sum);
    std::memcpy(changed.data() + io::session_layout::at_header_sum, &header, 8);
    const std::uint64_t whole = sum(changed.size() - 8);
    std::memcpy(changed.data() + changed.size() - 8, &whole, 8);
    std::ofstream(bad, std::ios::binary) << changed;
    CHECK_THROWS_MATCHES(b.restore(bad), file_error, MessageMatches(ContainsSubstring("bad: offset " + expected)));
  };
  b.generate(b.encode("The end"), {.max_tokens = 3});
  const auto before = b.history();
  refused(io::session_layout::at_engraving, 1, "0x18: engraving: expected 0x");
  refused(io::session_layout::at_weights, 1, "0x20: weights: expected 0x");
  refused(io::session_layout::at_written, 10'000, "0x30: positions written: expected at most ");
  refused(io::session_layout::at_written, 40, "0x38: bytes of the cache: expected ");
  refused(io::session_layout::at_sampler, 0x7fc00000,
          "0x40: sampler: temperature: expected a finite number, 0 or more, found nan");
  refused(io::session_layout::header_bytes + 4, 4096, "0x6c: token 1: expected 0 .. 4095, found 4096");
  CHECK(b.history() == before);
  CHECK(b.generate({.max_tokens = 2}).timings.prompt_tokens == 1);  // what it had in the cache is there
  CHECK_THROWS_AS(a.save(folder / "no/folder"), file_error);
  CHECK_THROWS_AS(a.save(path, {.sampling = {.temperature = -1}}), argument_error);
  CHECK(text_of(path) == sound);
}

TEST_CASE("a saved session of a model with a window goes on, before its ring went round and after") {
  checked_device on;
  const plan::planned windowed = plan::planned::of<models::llama<mistral_tiny_ring, dtype::f16>>(
      on.on_cpu() ? plan::profiles::cpu : plan::profiles::portable);
  const io::checkpoint file = io::checkpoint::open(conformance("mistral-tiny") / "hf-swa");
  basic_session a = session_of(on, windowed.table(), file), b = session_of(on, windowed.table(), file);
  std::vector<std::int32_t> ids(900);
  for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<std::int32_t>(3 + i * i * 37 % 990);
  REQUIRE(windowed.table().cache_of(0).positions < ids.size());
  check_going_on(a, b, {ids.begin(), ids.begin() + 61}, 5);
  check_going_on(a, b, ids, 7);
}
