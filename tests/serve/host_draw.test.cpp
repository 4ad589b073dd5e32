// SPDX-License-Identifier: MIT
#include "../../examples/serve/host_draw.hpp"

#include <catch2/catch_test_macros.hpp>

#include <cmath>
#include <random>

#include <intaglio/io/byte_level_bpe.hpp>
#include <intaglio/io/jinja.hpp>
#include <intaglio/io/unicode.hpp>
#include <intaglio/reference/sample.hpp>

#include "../../examples/serve/generation.hpp"
#include "../../examples/serve/json_schema.hpp"
#include "../../examples/serve/token_engine.hpp"

using namespace intaglio;

TEST_CASE("the host draws what the sampler draws") {
  std::mt19937 random(3);
  int wrong = 0;
  for (int run = 0; run < 400; ++run) {
    std::vector<float> logits(1 + random() % 700);
    for (float& each : logits)
      each = static_cast<float>(random() % 4000) / 200.0f - 10.0f;  // with equal ones among them
    if (run % 3 == 0) logits[random() % logits.size()] = -HUGE_VALF;
    std::vector<std::uint32_t> recent(random() % 20);
    for (auto& each : recent) each = static_cast<std::uint32_t>(random() % logits.size());
    sampling_options options{.temperature = static_cast<float>(random() % 5) * 0.5f,
                             .top_p = run % 2 == 0 ? 1.0f : 0.05f + static_cast<float>(random() % 90) / 100.0f,
                             .seed = random()};
    if (run % 4 == 1) options.top_k = 1 + static_cast<std::uint32_t>(random() % logits.size());
    if (run % 5 == 2) options.min_p = 0.2f;
    if (run % 7 == 3) options.repeat_penalty = 1.3f;
    const reference::sampling same{
        options.temperature, options.top_p, options.min_p, options.repeat_penalty, options.top_k.value_or(0), 64,
        options.seed};
    std::vector<float> own = logits;
    wrong += serve::draw_token(own, recent, options, 17) != reference::choose(logits, recent, same, 17);
  }
  CHECK(wrong == 0);
  std::vector<float> none{NAN, 1.0f};
  CHECK(serve::draw_token(none, {}, {}, 0) == 2);
}

TEST_CASE("in a form the device's own draw is taken where it fits, else one that does", "[host_draw]") {
  io::vocabulary file;
  file.source = "model.gguf", file.architecture = "llama", file.model = "gpt2", file.pre_tokenizer = "llama-bpe";
  for (const char32_t c : io::byte_alphabet) io::append_utf8(file.tokens.emplace_back(), c);
  file.token_types.assign(256, 1);
  file.tokens.push_back("<end>"), file.token_types.push_back(3);
  file.eos_id = 256, file.add_bos = false;
  const serve::language words(file, 257, io::jinja_renderer(), "chatml");
  serve::completion_request wanted;
  wanted.sampling.temperature = 0;
  wanted.shape.form =
      std::make_shared<const serve::grammar>(serve::grammar_of_schema(serve::parse_json(R"({"enum":["a"]})", {}), "x"));
  const std::vector<std::int32_t> prompt{65};
  std::vector<float> logits(257, 0.0f);
  logits[' '] = 3, logits['b'] = 9;  // what the host would draw fits where it is alone: ' ' of the two that do
  const auto draw = [&](std::int32_t of_device) {
    return serve::generation(words.view, prompt, wanted, 1, 20, [] {}).draw(logits, prompt, of_device);
  };
  CHECK(draw('"') == '"');
  CHECK(draw('b') == ' ');
  CHECK(draw(256) == ' ');  // the end, before there is a text
  wanted.shape.logit_bias = {{'"', 20.0f}};
  CHECK(draw(' ') == '"');  // the device knows no biases
  wanted.shape.logit_bias = {{' ', serve::shaping::never}};
  CHECK(draw(' ') == '"');
  wanted.shape.logit_bias.emplace_back('"', serve::shaping::never);
  CHECK(draw('b') != 'b');  // the form has no other token than these two
}
