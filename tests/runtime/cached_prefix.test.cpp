// SPDX-License-Identifier: MIT
// What a session computes after a prefix that it has in its caches, left there by a prompt, by a prompt in chunks or
// by decode: Llama, Mistral with a window and Gemma, on the profiles of CPUs and of any GPU. Plans are made at run
// time.
#include <array>
#include <catch2/catch_test_macros.hpp>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "conformance.hpp"
#include "gpu/checked_device.hpp"
#include "intaglio/families/file_types.hpp"
#include "intaglio/plan/planned.hpp"
#include "intaglio/runtime/basic_session.hpp"
#include "runtime/logits_apart.hpp"

using namespace intaglio;

namespace {

struct model_file {
  const char *model, *path;
};
constexpr model_file model_files[] = {
    {"llama-tiny", "hf"}, {"mistral-tiny", "hf-swa"}, {"gemma3-tiny", "gguf/gemma3-tiny-q8_0.gguf"}};

/// A session, and tokens of which it drew the last itself.
class prefixed {
 public:
  static constexpr std::size_t prompt_tokens = 40, drawn_tokens = 8;

  prefixed(const model_file& of, const plan::profile& profile)
      : file_(io::checkpoint::open(conformance(of.model) / of.path)),
        plan_(families::planned_of(file_.config(), families::types_of(file_).types, of.model, profile, 256)),
        tables_{&plan_.table()}, session_(on_.device, tables_, file_, {.cache_folder = "", .prove_kernels = false}) {
    for (std::uint32_t i = 0; i < prompt_tokens; ++i)
      ids_.push_back(static_cast<std::int32_t>((7919 + i * 104'729 + i * i * 31) % file_.config().vocab_size));
    const std::vector<std::int32_t> drawn = decode(ids_, drawn_tokens);
    ids_.insert(ids_.end(), drawn.begin(), drawn.end());
  }

  /// Logits of the last token with nothing cached.
  std::vector<float> fresh() {
    session_.reset();
    return last(session_.logits(ids_).logits);
  }
  /// Logits of the last token where a prompt in chunks left all before it.
  std::vector<float> after_prompt(std::uint32_t chunk) {
    session_.reset();
    session_.prefill(std::span(ids_).first(ids_.size() - 1), chunk);
    return last(session_.logits(std::span(ids_).last(1)).logits);
  }
  /// Logits of the last token where a prompt left half of the tokens, and another, which begins so, goes on from there.
  std::vector<float> after_shared_prompt() {
    session_.reset();
    std::vector<std::int32_t> other(ids_.begin(), ids_.begin() + 30);
    other.push_back((ids_[30] + 1) % 100);
    decode(other, 1);
    session_.prompt(std::span(ids_).first(ids_.size() - 1));
    return last(session_.logits(std::span(ids_).last(1)).logits);
  }
  /// Logits of the last token where decode left what it drew.
  std::vector<float> after_decode() {
    session_.reset();
    const std::vector<std::int32_t> prompt(ids_.begin(), ids_.begin() + prompt_tokens);
    const std::vector<std::int32_t> drawn = decode(prompt, drawn_tokens - 1);
    REQUIRE(std::vector(ids_.begin() + prompt_tokens, ids_.end() - 1) == drawn);
    return last(session_.logits(std::span(ids_).last(1)).logits);
  }
  /// A turn after what was drawn: what is drawn next, and tokens that were not fed again.
  std::pair<std::vector<std::int32_t>, std::uint32_t> next_turn(bool cached) {
    if (!cached) session_.reset();
    std::vector<std::int32_t> all = ids_;
    all.insert(all.end(), {3, 1, 4, 1, 5});
    const generation made = session_.generate(all, {.temperature = 0, .max_tokens = 3, .stop_at_end = false});
    return {made.ids, made.timings.cached_tokens};
  }

 private:
  std::vector<std::int32_t> decode(const std::vector<std::int32_t>& prompt, std::size_t count) {
    return session_
        .generate(prompt, {.temperature = 0, .max_tokens = static_cast<std::uint32_t>(count), .stop_at_end = false})
        .ids;
  }
  std::vector<float> last(const std::vector<float>& of) const {
    return {of.end() - static_cast<std::ptrdiff_t>(file_.config().vocab_size), of.end()};
  }

  checked_device on_;
  io::checkpoint file_;
  plan::planned plan_;
  std::array<const plan::table*, 1> tables_;
  basic_session session_;
  std::vector<std::int32_t> ids_;
};

}  // namespace

TEST_CASE("what left a prefix does not change a bit where chunks are exact: Llama, Mistral, Gemma", "[once]") {
  for (const plan::profile* profile : {&plan::profiles::cpu, &plan::profiles::exact})
    for (const model_file& each : model_files) {
      if (profile == &plan::profiles::exact && &each != &model_files[1]) continue;  // one: chunks are decode's kernels
      INFO(each.model << " on " << profile->name);
      prefixed of(each, *profile);
      const std::vector<float> fresh = of.fresh();
      CHECK(of.after_prompt(0) == fresh);
      CHECK(of.after_prompt(7) == fresh);
      CHECK(of.after_shared_prompt() == fresh);
      CHECK(of.after_decode() == fresh);
      const auto [ids, cached] = of.next_turn(true);
      CHECK(cached == prefixed::prompt_tokens + prefixed::drawn_tokens);
      const auto [anew, none] = of.next_turn(false);
      CHECK(none == 0);
      CHECK(ids == anew);
    }
}

TEST_CASE("where chunks are f16 a prefix that a prompt left does not change a bit, and one of decode little",
          "[once]") {
  for (const model_file& each : model_files) {
    INFO(each.model);
    prefixed of(each, plan::profiles::portable);
    const std::vector<float> fresh = of.fresh();
    CHECK(of.after_prompt(0) == fresh);
    CHECK(of.after_prompt(31) == fresh);
    CHECK(of.after_shared_prompt() == fresh);
    const std::vector<float> found = of.after_decode();
    const logit_distance between = logits_apart<float>(found, fresh);
    INFO(between.apart << " of " << between.largest);
    CHECK(found != fresh);
    CHECK(between.apart < 0.02 * between.largest);
  }
}
