// SPDX-License-Identifier: MIT
#include "../../examples/serve/text_match.hpp"

#include <catch2/catch_test_macros.hpp>

#include <algorithm>
#include <ctime>
#include <map>
#include <optional>
#include <random>
#include <set>

#include "../../examples/serve/api_error.hpp"
#include "../../examples/serve/json_schema.hpp"
#include "texts.hpp"

using namespace intaglio::serve;

namespace {

/// A grammar as lists, and what it says by the plainest means: every stack of symbols for itself.
struct plain_grammar {
  using symbol = std::variant<char, std::size_t>;  ///< a byte or a rule
  using stack = std::vector<symbol>;               ///< the next one last
  std::vector<std::vector<std::vector<symbol>>> rules;
  std::vector<std::uint32_t> least;

  /// By rounds until nothing changes.
  void find_lengths() {
    least.assign(rules.size(), grammar::never);
    for (bool changed = true; changed;) {
      changed = false;
      for (std::size_t r = 0; r < rules.size(); ++r)
        for (const auto& each : rules[r])
          if (const std::uint32_t found = length_of(each); found < least[r]) least[r] = found, changed = true;
    }
  }
  std::uint32_t length_of(const std::vector<symbol>& list) const {
    std::uint32_t out = 0;
    for (const symbol& each : list)
      out = std::min(grammar::never, out + (each.index() == 0 ? 1 : least[std::get<1>(each)]));
    return out;
  }
  /// Stacks with a byte on top, or empty. Nothing where there are too many to be counted so.
  std::optional<std::set<stack>> opened(std::set<stack> from) const {
    std::set<stack> out, seen;
    while (!from.empty()) {
      if (seen.size() > 20'000) return {};
      stack at = *from.begin();
      from.erase(from.begin());
      if (!seen.insert(at).second || length_of(at) >= grammar::never) continue;
      if (at.empty() || at.back().index() == 0) {
        out.insert(at);
        continue;
      }
      const std::size_t rule = std::get<1>(at.back());
      at.pop_back();
      for (const auto& each : rules[rule]) {
        stack next = at;
        next.insert(next.end(), each.rbegin(), each.rend());
        from.insert(next);
      }
    }
    return out;
  }
  std::optional<std::set<stack>> after(const std::set<stack>& from, char byte) const {
    std::set<stack> out;
    for (stack each : from)
      if (!each.empty() && std::get<0>(each.back()) == byte) each.pop_back(), out.insert(each);
    return opened(out);
  }
  std::uint32_t least_of(const std::set<stack>& from) const {
    std::uint32_t out = grammar::never;
    for (const stack& each : from) out = std::min(out, length_of(each));
    return out;
  }

  /// @throws std::invalid_argument as grammar::finish
  std::shared_ptr<const grammar> built() const {
    grammar out;
    for (std::size_t i = 0; i < rules.size(); ++i) out.add_rule();
    for (std::size_t r = 0; r < rules.size(); ++r)
      for (const auto& each : rules[r]) {
        std::vector<grammar::part> parts;
        for (const symbol& one : each)
          parts.push_back(one.index() == 0 ? grammar::part(std::string(1, std::get<0>(one)))
                                           : grammar::part(static_cast<grammar::rule>(std::get<1>(one))));
        out.add(static_cast<grammar::rule>(r), parts);
      }
    out.finish(0);
    return std::make_shared<const grammar>(std::move(out));
  }
};

plain_grammar any_grammar(std::mt19937& random) {
  plain_grammar out;
  out.rules.resize(1 + random() % 5);
  for (auto& rule : out.rules) {
    rule.resize(1 + random() % 3);
    for (auto& alternative : rule)
      for (std::size_t i = random() % 4; i-- != 0;)
        alternative.push_back(random() % 5 < 3 ? plain_grammar::symbol(static_cast<char>('a' + random() % 3))
                                               : plain_grammar::symbol(std::size_t{random() % out.rules.size()}));
  }
  out.find_lengths();
  return out;
}

/// CPU time of this process: other processes on the machine do not count.
double milliseconds_since(std::clock_t start) {
  return static_cast<double>(std::clock() - start) * 1000.0 / CLOCKS_PER_SEC;
}

}  // namespace

TEST_CASE("random grammars are followed as every reading for itself says") {
  std::mt19937 random(5);
  int grammars = 0, texts = 0, wrong = 0, ambiguous = 0;
  for (int run = 0; run < 4000; ++run) {
    const plain_grammar plain = any_grammar(random);
    std::shared_ptr<const grammar> form;
    try {
      form = plain.built();
    } catch (const std::invalid_argument&) {  // no text, or left recursion: the reference has no end there
      continue;
    }
    ++grammars;
    wrong += form->least_bytes() != plain.least[0];
    text_match match(form);
    auto reference = plain.opened({{std::size_t{0}}});
    for (int length = 0; reference && length < 12; ++length, ++texts) {
      ambiguous += reference->size() > 3;
      wrong += match.least_bytes() != plain.least_of(*reference);
      wrong += match.complete() != (reference->count({}) != 0);
      wrong += match.finished() != (*reference == std::set<plain_grammar::stack>{{}});
      std::string allowed;
      for (const char byte : {'a', 'b', 'c', 'd'}) {
        const auto next = plain.after(*reference, byte);
        if (!next) continue;
        const std::uint32_t least = plain.least_of(*next);
        const std::string_view one(&byte, 1);
        wrong += match.allows(one, grammar::never - 1) != !next->empty();
        if (next->empty()) continue;
        wrong += !match.allows(one, least) || (least != 0 && match.allows(one, least - 1));
        allowed += byte;
      }
      if (allowed.empty()) break;
      const char taken = allowed[random() % allowed.size()];
      match.take({&taken, 1});
      reference = plain.after(*reference, taken);
    }
  }
  CHECK(wrong == 0);
  CHECK(grammars > 1000);
  CHECK(texts > 5000);
  CHECK(ambiguous > 500);
}

TEST_CASE("marking tokens says the same as trying each") {
  const std::vector<std::string> own{"{",    "{\"", "\"a", "\":", " ",  "a",    "aa",  "\xC3", "\xC3\xA4",
                                     "\xA4", "}",   "\"}", "1",   "12", "true", "tru", "e",    ",",
                                     "\n",   "[",   "]",   "]]",  "\\", "\\u",  "\"",  ":",    ""};
  const std::vector<std::string_view> texts(own.begin(), own.end());
  const token_bytes tokens(texts);
  std::mt19937 random(2);
  const auto form = std::make_shared<const grammar>(any_json_object());
  for (int run = 0; run < 20; ++run) {
    text_match match(form);
    for (std::uint32_t left = 30; left-- != 0 && !match.finished();) {
      std::vector<bool> allowed(own.size());
      match.mark_allowed(tokens, left, allowed);
      std::vector<std::size_t> list;
      for (std::size_t i = 0; i < own.size(); ++i) {
        CHECK(allowed[i] == match.allows(own[i], left));
        if (allowed[i]) list.push_back(i);
      }
      REQUIRE_FALSE(list.empty());
      match.take(own[list[random() % list.size()]]);
    }
    CHECK(match.complete());
  }
}

// Schemas with which a reading more for each level would be more than any machine holds. Refused, or followed within
// the budget.
TEST_CASE("hostile schemas cost little") {
  const auto wide = [](int count, const std::string& each) {
    std::string out;
    for (int i = 0; i < count; ++i) out += (i == 0 ? "" : ",") + each;
    return out;
  };
  const std::string self = R"({"$ref":"#"})", list = R"({"type":"array","items":{"$ref":"#"}})";
  std::string nested = "{}";
  for (int i = 0; i < 30; ++i) nested = R"({"anyOf":[)" + nested + R"(,{"type":"array","items":{"$ref":"#"}}]})";
  std::string optional = R"({"type":"object","properties":{)";
  for (int i = 0; i < 1000; ++i) optional += (i == 0 ? "\"" : ",\"") + std::to_string(i) + R"(":{"type":"string"})";
  std::string refs = R"({"$defs":{)";
  for (int i = 0; i < 900; ++i)
    refs += "\"" + std::to_string(i) + R"(":{"anyOf":[{"$ref":"#/$defs/)" + std::to_string(i + 1) +
            R"("},{"$ref":"#/$defs/)" + std::to_string(i + 1) + "\"}]},";
  refs += R"("900":{"type":"null"}},"$ref":"#/$defs/0"})";
  const struct {
    std::string schema, text;
  } cases[]{
      {R"({"anyOf":[)" + list + "," + list + R"(,{"type":"null"}]})", std::string(300, '[')},
      {R"({"anyOf":[)" + wide(20, list) + R"(,{"type":"null"}]})", std::string(300, '[')},
      {R"({"anyOf":[)" + wide(8, R"({"type":"object","properties":{"a":{"$ref":"#"}},"additionalProperties":false})") +
           "]}",
       [] {
         std::string out;
         for (int i = 0; i < 100; ++i) out += R"({"a":)";
         return out;
       }()},
      {R"({"anyOf":[)" + wide(300, R"({"type":"array","items":{"anyOf":[{"$ref":"#"},{"$ref":"#"}]},"maxItems":2})") +
           R"(,{"type":"null"}]})",
       std::string(100, '[')},
      {R"({"type":"array","items":{"anyOf":[{"type":"string","maxLength":300},{"type":"string","maxLength":299}]},)"
       R"("maxItems":400})",
       "[\"" + std::string(250, 'a')},
      {optional + "}}", R"({"999":")"},
      {R"({"enum":[)" + wide(20'000, "\"aaaaaaaa\"") + "]}", "\"aaa"},
      {R"({"type":"array","prefixItems":[)" + wide(5'000, R"({"type":["string","null","integer","boolean"]})") + "]}",
       "[null"},
      {nested, "[[[["},
      {refs, "null"},
      {R"({"type":"array","items":{"type":"array","items":{"type":"string","maxLength":2000},"maxItems":2000},)"
       R"("maxItems":2000})",
       "[[\"a"},
  };
  for (const auto& each : cases) {
    INFO(each.schema.substr(0, 120));
    std::size_t most = 0;
    int status = 200;
    double spent = 0;
    const json read = parse_json(each.schema, {});
    const auto start = std::clock();
    try {
      const auto form = std::make_shared<const grammar>(grammar_of_schema(read, "schema"));
      text_match match(form);
      for (const char byte : each.text) {
        if (!match.allows({&byte, 1}, 1'000'000)) break;
        match.take({&byte, 1});
        most = std::max(most, match.bytes());
      }
    } catch (const api_error& refusal) { status = refusal.status; } catch (const match_limit&) {
      status = 400;
    }
    spent = milliseconds_since(start);
    CHECK((status == 200 || status == 400));
    CHECK(most <= text_match::most_bytes);
    CHECK(spent < 50 * 4);  // 50 ms as users build it; tests are not optimised as much
  }
}

TEST_CASE("time to build a grammar is in proportion to its size") {
  // A chain of rules, each of which is settled by the next, in the order that is the worst for rounds.
  const auto milliseconds_of = [](std::uint32_t rules) {
    grammar chain;
    for (std::uint32_t i = 0; i < rules; ++i) chain.add_rule();
    for (std::uint32_t i = 0; i + 1 < rules; ++i) chain.add(i, {"a", grammar::rule{i + 1}});
    chain.add(rules - 1, {"b"});
    const auto start = std::clock();
    chain.finish(0);
    CHECK(chain.least_bytes() == rules);
    return milliseconds_since(start);
  };
  milliseconds_of(1000);
  CHECK(milliseconds_of(60'000) < 400);
}

TEST_CASE("a match whose result is no longer wanted ends") {
  const auto form = form_of("{}");
  text_match match(form);
  CHECK(match.allows("[", 100));
  match.cancel();
  CHECK(match.allows("[", 100));  // what is known needs no work
  CHECK_THROWS_AS(match.allows("{", 100), match_limit);
}

TEST_CASE("what a match holds is bounded however long the text is") {
  const auto form = form_of(R"({"type":"array","items":{"type":"array","items":{"type":"integer"}}})");
  text_match match(form);
  std::mt19937 random(7);
  match.take("[");
  std::size_t most = 0;
  for (int i = 0; i < 20'000; ++i) {
    match.take("[" + std::to_string(random() % 1'000'000) + "],");
    most = std::max(most, match.bytes());
  }
  CHECK(most < text_match::most_kept_bytes);
}
