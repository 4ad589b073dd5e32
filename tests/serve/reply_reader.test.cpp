// SPDX-License-Identifier: MIT
#include "../../examples/serve/reply_reader.hpp"

#include <catch2/catch_test_macros.hpp>

#include <fstream>
#include <random>

#include "../../examples/serve/api_error.hpp"
#include "../../examples/serve/reply_grammar.hpp"
#include "shared.hpp"
#include "texts.hpp"

using namespace intaglio::serve;

namespace {

/// A layout of a format by its name, with control tokens or with marks that are spelled.
reply_layout layout_of(std::string_view name, bool control, std::string_view more = {}) {
  for (const call_format& each : call_formats)
    if (each.name == name)
      return reply_layout_of(std::string(each.sign) + std::string(more), each, [&](auto) { return control; });
  FAIL("no such format");
  return {};
}

/// What a reader makes of a text, in pieces of `step` bytes; control tokens stay whole.
struct parts {
  std::string text, thought;
  std::vector<std::pair<std::string, std::string>> calls;
};
parts read(const reply_layout& layout, bool in_thought, std::string_view raw, std::size_t step) {
  reply_reader reader(layout, in_thought, true);
  std::vector<reply_part> list;
  while (!raw.empty()) {
    std::size_t bytes = std::min(step, raw.size());
    if (raw[0] == control_byte) bytes = raw.find_first_of(">]", 1) + 1;
    else bytes = std::min(bytes, std::min(raw.find(control_byte), raw.size()));
    std::vector<reply_part> now;
    reader.add(raw.substr(0, bytes), now);
    list.insert(list.end(), now.begin(), now.end());
    raw.remove_prefix(bytes);
  }
  reader.finish(list);
  parts out;
  for (const reply_part& each : list) switch (each.is) {
      case reply_part::kind::text:
        out.text += each.text;
        break;
      case reply_part::kind::thought:
        out.thought += each.text;
        break;
      case reply_part::kind::call:
        out.calls.emplace_back(each.text, "");
        break;
      case reply_part::kind::arguments:
        REQUIRE_FALSE(out.calls.empty());
        out.calls.back().second += each.text;
        break;
    }
  return out;
}

std::vector<tool_function> tools() {
  const auto schema = [](const char* text) { return parse_json(text, {}); };
  return {
      {"get_weather", "",
       schema(R"({"type":"object","properties":{"city":{"type":"string"},"unit":{"enum":["C","F"]}},"required":["city"],
                  "additionalProperties":false})"),
       "tools[0].function.parameters"},
      {"now", "", nullptr, "tools[1].function.parameters"},
      {"get", "", schema(R"({"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]})"),
       "tools[2].function.parameters"},
  };
}

std::shared_ptr<const grammar> plan_of(const reply_layout& layout, reply_plan plan) {
  return std::make_shared<const grammar>(reply_grammar(layout, plan));
}

}  // namespace

TEST_CASE("the form of calls is found from the template", "[reply]") {
  std::ifstream in(shared("conformance2/chat/goldens.json"));
  const auto all = json::parse(in);
  const std::vector<std::pair<std::string, std::string>> expected{{"qwen2.5", "hermes"},
                                                                  {"qwen3", "hermes"},
                                                                  {"qwen3.5", "prompted"},
                                                                  {"phi-4", "prompted"},
                                                                  {"gemma2", "prompted"},
                                                                  {"granite-3.3", "granite"},
                                                                  {"granite-4.0", "hermes"},
                                                                  {"gpt-oss", "harmony"},
                                                                  {"llama-3.1", "llama"},
                                                                  {"mistral-nemo", "mistral"},
                                                                  {"mistral-small-3.2", "mistral-args"},
                                                                  {"gemma4", "prompted"}};
  for (const auto& [name, format] : expected) {
    INFO(name);
    CHECK(call_format_of(all["templates"][name]["template"].get<std::string>()).name == format);
  }
}

TEST_CASE("replies as models write them come apart, in pieces of any length", "[reply]") {
  const std::string f(1, control_byte);
  struct example {
    const char* format;
    bool control;
    const char* more;
    std::string raw, text, thought;
    std::vector<std::pair<std::string, std::string>> calls;
    bool in_thought = false;
  };
  const std::vector<example> list{
      {"hermes",
       false,
       "",
       "<tool_call>\n{\"name\": \"get\", \"arguments\": {\"n\": 1}}\n</tool_call>",
       "",
       "",
       {{"get", "{\"n\": 1}"}}},
      {"hermes",
       false,
       "",
       "Let me see.\n<tool_call>\n{\"name\": \"get\", \"arguments\": {\"s\": \"}</tool_call>\\\"{\"}}\n</tool_call>\n"
       "<tool_call>\n{\"name\": \"now\", \"arguments\": {}}\n</tool_call>",
       "Let me see.",
       "",
       {{"get", "{\"s\": \"}</tool_call>\\\"{\"}"}, {"now", "{}"}}},
      {"hermes",
       true,
       "",
       f + "<tool_call>{\"name\":\"get\",\"arguments\":{\"n\":[1,{}]}}" + f + "</tool_call>",
       "",
       "",
       {{"get", "{\"n\":[1,{}]}"}}},
      {"hermes",
       false,
       "<think>",
       "<think>\nI say <tool_call> here.\n</think>\n\n<tool_call>\n{\"name\": \"now\", \"arguments\": "
       "{}}\n</tool_call>",
       "",
       "I say <tool_call> here.",
       {{"now", "{}"}}},
      {"hermes",
       false,
       "<think>",
       "so\n\nit is\n</think>\n\nFour < five <tool",
       "Four < five <tool",
       "so\n\nit is",
       {},
       true},
      {"hermes", true, "<think>", "\n" + f + "<think>a" + f + "</think>b" + f + "</think>c", "bc", "a", {}},
      {"hermes", false, "<think>", "a <think> b </think>", "a <think> b </think>", "", {}},
      {"hermes", false, "<think>", "<think>cut", "", "cut", {}},
      {"llama", false, "", "{\"name\": \"get\", \"parameters\": {\"n\": 1}}", "", "", {{"get", "{\"n\": 1}"}}},
      {"llama", false, "", "{\"names\": 1}", "{\"names\": 1}", "", {}},
      {"llama", false, "", "I say {\"name\": \"get\"", "I say {\"name\": \"get\"", "", {}},
      {"mistral",
       true,
       "",
       f + "[TOOL_CALLS][{\"name\": \"get\", \"arguments\": {\"n\": 1}}, {\"name\": \"now\", \"arguments\": {}}]",
       "",
       "",
       {{"get", "{\"n\": 1}"}, {"now", "{}"}}},
      {"mistral-args",
       true,
       "",
       "Hm." + f + "[TOOL_CALLS]get" + f + "[ARGS]{\"n\": 1}" + f + "[TOOL_CALLS]now" + f + "[ARGS]{}",
       "Hm.",
       "",
       {{"get", "{\"n\": 1}"}, {"now", "{}"}}},
      {"granite", true, "", f + "<|tool_call|>[{\"name\": \"now\", \"arguments\": {}}]", "", "", {{"now", "{}"}}},
      {"harmony",
       true,
       "",
       f + "<|channel|>analysis" + f + "<|message|>They ask." + f + "<|end|>" + f + "<|start|>assistant" + f +
           "<|channel|>final" + f + "<|message|>Four.",
       "Four.",
       "They ask.",
       {}},
      {"harmony",
       true,
       "",
       f + "<|channel|>analysis" + f + "<|message|>I need it." + f + "<|end|>" + f + "<|start|>assistant" + f +
           "<|channel|>commentary to=functions.get " + f + "<|constrain|>json" + f + "<|message|>{\"n\": 1}",
       "",
       "I need it.",
       {{"get", "{\"n\": 1}"}}},
      {"harmony",
       true,
       "",
       " to=functions.now" + f + "<|channel|>commentary" + f + "<|message|>{}",
       "",
       "",
       {{"now", "{}"}}},
      {"harmony", true, "", "No header at all", "No header at all", "", {}},
      {"prompted", false, "", "Plain \xC3\xA9 text\n", "Plain \xC3\xA9 text\n", "", {}},
  };
  for (const example& each : list)
    for (const std::size_t step : {1u, 2u, 3u, 7u, 1000u}) {
      INFO(each.format << ": " << each.raw << ", " << step << " bytes a piece");
      const parts found = read(layout_of(each.format, each.control, each.more), each.in_thought, each.raw, step);
      CHECK(found.text == each.text);
      CHECK(found.thought == each.thought);
      CHECK(found.calls == each.calls);
    }
}

TEST_CASE("whatever a model draws, a call that has to be is well formed and nothing of it leaks", "[reply]") {
  std::mt19937 random(7);
  for (const call_format& format : call_formats)
    for (const bool control : {false, true})
      for (const char* const think : {"", "<think>"})
        for (int i = 0; i < 12; ++i) {
          const reply_layout layout = layout_of(format.name, control, think);
          INFO(format.name << (control ? ", control tokens" : "") << (*think ? ", thinks" : ""));
          reply_plan plan;
          plan.use = tool_use::required, plan.tools = tools(), plan.in_thought = !layout.thought.empty() && i % 2 == 1;
          const auto form = plan_of(layout, plan);
          const std::string raw = written(form, 400, random);
          CHECK(fits(form, raw));
          INFO(raw);
          const parts found = read(layout, plan.in_thought, raw, 1 + random() % 5);
          REQUIRE_FALSE(found.calls.empty());
          if (!layout.in_channels()) CHECK(found.text.empty());
          for (const auto& [name, arguments] : found.calls) {
            INFO(name << ' ' << arguments);
            const json parsed = json::parse(arguments, nullptr, false);
            REQUIRE(parsed.is_object());
            if (name == "get_weather") CHECK((parsed.at("city").is_string() && parsed.size() <= 2));
            else if (name == "get") CHECK(parsed.at("n").is_number_integer());
            else CHECK((name == "now" && parsed.empty()));
          }
        }
}

TEST_CASE("text is free up to the mark of a call", "[reply]") {
  reply_plan plan;
  plan.use = tool_use::optional, plan.tools = tools();
  const auto hermes = plan_of(layout_of("hermes", false), plan);
  for (const char* const good : {"Hello", "<tool", "<<tool_calls", "a < b", "{\"name\": 1}",
                                 "x<tool_call>{\"name\": \"get\", \"arguments\": {\"n\": 5}}</tool_call>"})
    CHECK(fits(hermes, good));
  for (const char* const bad : {"<tool_call>", "<tool_call>x", "<tool_call>{\"name\": \"none\"", "\xFF",
                                "<tool_call>{\"name\": \"get\", \"arguments\": {\"n\": \"5\"}}</tool_call>"})
    CHECK_FALSE(fits(hermes, bad));
  const auto llama = plan_of(layout_of("llama", false), plan);
  for (const char* const good :
       {"Hello", "{\"names\": 1}", "{\"name\": \"now\", \"parameters\": {}}", " {\"a\"", "x {\"name\""})
    CHECK(fits(llama, good));
  for (const char* const bad :
       {"{\"name\": \"none\"}", "{ \"name\"", "{\"name\": \"now\", \"parameters\": {\"x\": 1}}"})
    CHECK_FALSE(fits(llama, bad));
  // No calls: the mark cannot be written.
  plan.use = tool_use::none;
  const auto none = plan_of(layout_of("hermes", false), plan);
  CHECK(fits(none, "Hello <tool"));
  CHECK_FALSE(fits(none, "Hello <tool_call>"));
  // What is in a thought is no call.
  plan.use = tool_use::optional;
  const auto thinking = plan_of(layout_of("hermes", false, "<think>"), plan);
  CHECK(fits(thinking, "<think> <tool_call> </think>\n\nHello"));
  CHECK_FALSE(fits(thinking, "<think></think><tool_call>x"));
  // One call where the request or the format says so.
  const std::string call = "<tool_call>{\"name\": \"now\", \"arguments\": {}}</tool_call>";
  CHECK(fits(hermes, call + "\n" + call));
  plan.several = false;
  CHECK_FALSE(fits(plan_of(layout_of("hermes", false), plan), call + call));
}

TEST_CASE("a form follows a thought", "[reply]") {
  reply_plan plan;
  plan.form = [](grammar& to, json_rules& rules) {
    static const json schema =
        parse_json(R"({"type":"object","properties":{"a":{"type":"boolean"}},"required":["a"]})", {});
    return add_schema(to, rules, schema, "response_format");
  };
  const auto form = plan_of(layout_of("hermes", false, "<think>"), plan);
  for (const char* const good :
       {"{\"a\": true}", "<think>\nhm {\n</think>\n\n{\"a\": true}", "\n<think></think>{\"a\":false}"})
    CHECK(fits(form, good));
  for (const char* const bad : {"", "<think>hm", "<think>hm</think>", "hm", "{\"b\""}) CHECK_FALSE(fits(form, bad));
}

TEST_CASE("parameters that cannot be promised are refused by their path", "[reply]") {
  const auto refused = [](const char* schema) {
    try {
      check_parameters({"f", "", parse_json(schema, {}), "tools[0].function.parameters"});
    } catch (const api_error& error) { return std::string(error.what()); }
    return std::string();
  };
  for (const char* const good :
       {"{}", R"({"type":"object"})", R"({"properties":{}})", R"({"type":"object","properties":{},"$schema":"x"})"})
    CHECK(refused(good).empty());
  for (const char* const bad :
       {"[]", R"({"type":"string"})", R"({"anyOf":[{"type":"object"}]})",
        R"({"type":"object","properties":{"a":{"type":"string","enum":[1]}},"required":["a"]})"})
    CHECK(refused(bad).find("tools[0].function.parameters") == 0);
}
