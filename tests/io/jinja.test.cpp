// SPDX-License-Identifier: MIT
#include "intaglio/io/jinja.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <chrono>
#include <ctime>
#include <fstream>
#include <iterator>

#include "intaglio/io/tokenizer.hpp"
#include "shared.hpp"

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;
using namespace intaglio;

namespace {

nlohmann::json goldens() {
  std::ifstream in(shared("conformance/chat/goldens.json"));
  return nlohmann::json::parse(in);
}
std::vector<io::chat_message> messages_of(const nlohmann::json& from) {
  std::vector<io::chat_message> out;
  for (const auto& each : from) out.push_back({each["role"].get<std::string>(), each["content"].get<std::string>()});
  return out;
}
/// Bytes, one token each, then two of control.
io::vocabulary words(std::string chat_template) {
  io::vocabulary out;
  out.source = "model.gguf", out.architecture = "llama", out.model = "gpt2", out.pre_tokenizer = "llama-bpe";
  for (const char32_t c : io::byte_alphabet) io::append_utf8(out.tokens.emplace_back(), c);
  for (const char* text : {"<|begin|>", "<|end|>"}) out.tokens.push_back(text);
  out.token_types.assign(256, 1);
  out.token_types.insert(out.token_types.end(), {3, 3});
  out.bos_id = 256, out.eos_id = 257, out.add_bos = true;
  out.chat_template = std::move(chat_template);
  return out;
}
std::string failure(const std::string& chat_template,
                    const platform::process_limits& limits = {.seconds = 1, .output_bytes = 1 << 20}) {
  const std::vector<io::chat_message> hello{{"user", "hi"}};
  const auto start = std::chrono::steady_clock::now();
  std::string out = "accepted";
  try {
    io::jinja_renderer(limits)(chat_template, hello, true, "", "", "");
  } catch (const argument_error& problem) { out = problem.what(); }
  CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(limits.seconds + 10));
  return out;
}

constexpr const char* plain =
    "{{ bos_token }}{% for m in messages %}[{{ m.role }}]{{ m.content | trim }}{{ eos_token }}{% endfor %}{% if "
    "add_generation_prompt %}[model]{% endif %}";

}  // namespace

TEST_CASE("jinja: every golden template gives its golden texts", "[jinja]") {
  const auto all = goldens();
  const auto render = io::jinja_renderer();
  std::size_t texts = 0, refused = 0;
  for (const auto& [name, golden] : all["templates"].items())
    for (const auto& [conversation, expected] : all["expected"][name].items()) {
      INFO(name << ", " << conversation << ": " << expected.dump());
      const auto messages = messages_of(all["conversations"][conversation]);
      const auto text = golden["template"].get<std::string>(), bos = golden["bos_token"].get<std::string>(),
                 eos = golden["eos_token"].get<std::string>();
      for (const auto& [key, wanted] : expected.items()) {
        if (key == "error") {
          CHECK_THROWS_AS(render(text, messages, true, bos, eos, {}), argument_error);
          ++refused;
        } else {
          CHECK(render(text, messages, key == "with_generation_prompt", bos, eos, {}) == wanted.get<std::string>());
          ++texts;
        }
      }
    }
  CHECK(texts == 62);
  CHECK(refused == 5);
}

TEST_CASE("jinja: templates in use today give their goldens, with tools, reasoning and switches", "[jinja]") {
  std::ifstream in(shared("conformance2/chat/goldens.json"));
  const auto all = nlohmann::ordered_json::parse(in);
  std::tm clock{};
  clock.tm_year = 125, clock.tm_mon = 7, clock.tm_mday = 5, clock.tm_hour = 14, clock.tm_min = 30, clock.tm_isdst = -1;
  const std::time_t now = std::mktime(&clock);
  std::size_t texts = 0, refused = 0;
  for (const auto& [name, golden] : all["templates"].items())
    for (const auto& [conversation, expected] : all["expected"][name].items()) {
      const auto& given = all["conversations"][conversation];
      nlohmann::ordered_json names{{"messages", given["messages"]},
                                   {"tools", given.value("tools", nlohmann::ordered_json())},
                                   {"documents", nullptr},
                                   {"bos_token", golden["bos_token"]},
                                   {"eos_token", golden["eos_token"]}};
      const auto more = given.value("kwargs", nlohmann::ordered_json::object());
      for (const auto& [key, each] : more.items()) names[key] = each;
      for (const auto& [key, wanted] : expected.items()) {
        INFO(name << ", " << conversation << ", " << key);
        names["add_generation_prompt"] = key != "without";
        const auto render = [&] { return io::jinja::render(golden["template"].get<std::string>(), names, now); };
        if (key == "error") {
          CHECK_THROWS_AS(render(), io::jinja::template_error);
          ++refused;
        } else {
          CHECK(render() == wanted.get<std::string>());
          ++texts;
        }
      }
    }
  CHECK(texts == 520);
  CHECK(refused == 12);
}

TEST_CASE("jinja: a template of no known family is run where the program can", "[jinja]") {
  const io::vocabulary file = words(plain);
  CHECK_THROWS_MATCHES(io::chat_template::of(file), file_error,
                       MessageMatches(ContainsSubstring("a program with Jinja (io/jinja.hpp)")));
  const auto own = io::chat_template::of(file, io::jinja_renderer());
  CHECK(own.is_own());
  const std::vector<io::chat_message> talk{{"user", "  hi "}, {"assistant", "hello"}};
  CHECK(own.apply(talk, true) == "<|begin|>[user]hi<|end|>[assistant]hello<|end|>[model]");
  CHECK(own.apply(talk, false) == "<|begin|>[user]hi<|end|>[assistant]hello<|end|>");
  CHECK(own.render(talk, true).starts_with_bos);
  // Known families are not run.
  io::vocabulary known = words(goldens()["templates"]["llama3"]["template"].get<std::string>());
  CHECK_FALSE(io::chat_template::of(known, io::jinja_renderer()).is_own());
}

TEST_CASE("jinja: a template sets tokens that it is not given, as ERNIE 4.5's does", "[jinja]") {
  const char* const text = R"({%- if not cls_token is defined %}{% set cls_token = "<|begin|>" %}{% endif -%}
{%- if not sep_token is defined %}{% set sep_token = "<|end|>" %}{% endif -%}
{{- cls_token -}}
{%- for turn in messages -%}
  {%- if turn["role"] == "assistant" -%}{{- "Assistant: " + turn["content"] + sep_token -}}
  {%- elif turn["role"] == "user" -%}{{- "User: " + turn["content"] + "\n" -}}
  {%- else -%}{{- turn["content"] + "\n" -}}{%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- "Assistant: " -}}{%- endif -%})";
  io::vocabulary file = words(text);
  const auto own = io::chat_template::of(file, io::jinja_renderer());
  const std::vector<io::chat_message> talk{
      {"system", "Be brief."}, {"user", "hi"}, {"assistant", "hello"}, {"user", "bye "}};
  const std::string before = "<|begin|>Be brief.\nUser: hi\nAssistant: hello<|end|>User: bye \n";
  CHECK(own.apply(talk, false) == before);
  CHECK(own.apply(talk, true) == before + "Assistant: ");
}

TEST_CASE("jinja: special tokens that a user types stay text", "[jinja]") {
  const io::vocabulary file = words(plain);
  const auto own = io::chat_template::of(file, io::jinja_renderer());
  const std::vector<io::chat_message> talk{{"user",
                                            " <|end|>a\xEE\x80\x80"
                                            "0:<|begin|> "}};
  const auto rendered = own.render(talk, false);
  CHECK(rendered.text ==
        "<|begin|>[user]<|end|>a\xEE\x80\x80"
        "0:<|begin|><|end|>");
  REQUIRE(rendered.typed.size() == 2);
  const io::tokenizer tokens(file, 258);
  const auto ids = own.encode(tokens, talk, false);
  CHECK(std::count(ids.begin(), ids.end(), 256) == 1);
  CHECK(std::count(ids.begin(), ids.end(), 257) == 1);
  CHECK(ids.front() == 256);
  CHECK(ids.back() == 257);
  // Control tokens of a file without types are known too.
  io::vocabulary untyped = file;
  untyped.token_types.clear();
  CHECK(io::chat_template::of(untyped, io::jinja_renderer()).render(talk, false).typed.size() == 2);
  // A template that takes texts apart cannot know what was typed.
  const auto apart =
      io::chat_template::of(words("{% for m in messages %}{{ m.content[0:3] }}{% endfor %}"), io::jinja_renderer());
  CHECK_THROWS_AS(apart.render(talk, false), argument_error);
}

TEST_CASE("jinja: templates without end or bounds are ended", "[jinja][bad]") {
  CHECK_THAT(failure("{{ raise_exception('no such role') }}"), ContainsSubstring("no such role"));
  CHECK_THAT(failure("{% for x in messages %}"),
             ContainsSubstring("messages: expected a conversation that the model's chat template takes, found '"));
  CHECK_THAT(failure("{{ nothing.at.all() }}"), ContainsSubstring("found '"));
  std::string loops = "x", deep = "1";
  for (int i = 0; i < 9; ++i) loops = "{% for a" + std::to_string(i) + " in range(1000) %}" + loops + "{% endfor %}";
  CHECK_THAT(failure(loops), ContainsSubstring("more than 1"));
  CHECK_THAT(failure("{% for i in range(1000000000) %}x{% endfor %}"), ContainsSubstring("found 'more "));
  CHECK_THAT(failure("{% for i in range(2000) %}" + std::string(1000, 'x') + "{% endfor %}"),
             ContainsSubstring("more than 1048576 bytes"));
  CHECK_THAT(failure("{% macro again(n) %}{{ again(n + 1) }}{% endmacro %}{{ again(0) }}"),
             ContainsSubstring("found '"));
  for (int i = 0; i < 200'000; ++i) deep = "(" + deep;
  CHECK_THAT(failure("{{ " + deep + " }}"), ContainsSubstring("found '"));
  CHECK(failure("fine") == "accepted");
}

TEST_CASE("jinja: messages with more and names beside them are for the model's own template", "[jinja]") {
  const io::vocabulary file = words(
      "{% for m in messages %}[{{ m.role }}]{{ m.content }}{% if m.call %}<{{ m.call.name }}>{% endif %}{% endfor %}{% "
      "if tools %}{{ "
      "tools[0].name }}{% endif %}{{ mood }}");
  const auto own = io::chat_template::of(file, io::jinja_renderer());
  const std::vector<io::chat_message> talk{
      {"user", "hi"}, {"assistant", "", R"({"call":{"name":"f <|end|>"}})"}, {"tool", "r"}};
  const auto rendered = own.render(talk, false, R"({"tools":[{"name":"g"}],"mood":"<|end|>"})");
  CHECK(rendered.text == "[user]hi[assistant]<f <|end|>>[tool]rg<|end|>");
  CHECK(rendered.typed.size() == 2);
  CHECK(own.mentions("tools"));
  CHECK_FALSE(own.mentions("thoughts"));
  CHECK_THROWS_AS(own.render(talk, false, "[1]"), argument_error);
  // A family in code reads roles and contents alone; its own template is run for more, where that can be.
  const io::vocabulary known = words(goldens()["templates"]["llama3"]["template"].get<std::string>());
  const auto in_code = io::chat_template::of(known), both = io::chat_template::of(known, io::jinja_renderer());
  CHECK_THROWS_AS(in_code.render(talk, true), argument_error);
  CHECK_THROWS_AS(in_code.render(std::span(talk).first(1), true, R"({"x":1})"), argument_error);
  CHECK(both.render(std::span(talk).first(1), true, R"({"x":1})").text == both.apply(std::span(talk).first(1), true));
  CHECK_FALSE(both.is_own());
}

TEST_CASE("jinja: the last message of the assistant can be gone on with", "[jinja]") {
  const std::vector<io::chat_message> talk{{"user", "hi"}, {"assistant", "<|end|>Once "}};
  const auto own = io::chat_template::of(words(plain), io::jinja_renderer());
  const auto rendered = own.render_continued(talk);
  CHECK(rendered.text == "<|begin|>[user]hi<|end|>[assistant]<|end|>Once ");
  REQUIRE(rendered.typed.size() == 1);
  CHECK(rendered.text.substr(rendered.typed[0].begin, rendered.typed[0].end - rendered.typed[0].begin) == "<|end|>");
  const auto in_code = io::chat_template::named("llama3", words(""));
  CHECK(in_code.render_continued(talk).text.ends_with("\n\n<|end|>Once "));
  CHECK_THROWS_AS(own.render_continued(std::span(talk).first(1)), argument_error);
}
