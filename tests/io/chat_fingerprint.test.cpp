// SPDX-License-Identifier: MIT
#include "intaglio/io/chat_fingerprint.hpp"

#include <catch2/catch_test_macros.hpp>
#include <set>
#include <string>

#include "io/vocabularies.hpp"

using namespace intaglio::io;

namespace {

std::string golden_template(const char* name) {
  return shared_json("conformance/chat/goldens.json")["templates"][name]["template"].get<std::string>();
}

// After a block its line feed goes, before a block the blanks of its line; after and before a variable all stays; a
// dash takes all white space.
static_assert(printed_between("\n text \n  ", '%', false, '%', false) == " text \n");
static_assert(printed_between("\n\n", '%', false, '{', false) == "\n");
static_assert(printed_between("\n a ", '}', false, '{', false) == "\n a ");
static_assert(printed_between(" \t\r\n a \t\r\n ", '}', true, '{', true) == "a");
static_assert(printed_between("  ", '%', false, '%', false).empty(), "a line of its own");
static_assert(printed_between("  ", '}', false, '%', false) == "  ", "after a variable the line has begun");
static_assert(printed_between("a  ", '%', false, '%', false) == "a  ");
static_assert(printed_between("  ", 0, false, '%', false).empty() &&
              printed_between("a\n", 0, false, 0, false) == "a" &&
              printed_between("a\n\n", '%', false, 0, false) == "a\n");
static_assert(printed_between("", '%', true, '%', true).empty());

}  // namespace

TEST_CASE(
    "chat_fingerprint: templates are recognised whatever their layout, and not at all when a character of code "
    "differs") {
  for (const char* name : {"llama3", "mistral-v0.2", "gemma2", "gemma3", "bitnet"}) {
    INFO(name);
    const std::string text = golden_template(name);
    REQUIRE(find_chat_style(text));
    std::string escaped, dashed;
    for (const char c : text) escaped += c == '\n' ? "\\n" : std::string(1, c);
    for (std::size_t i = 0; i < text.size(); ++i) {
      dashed += text.substr(i, 2) == "{%" && text[i + 2] != '-' ? (++i, "\n{%-") : std::string(1, text[i]);
    }
    CHECK(chat_fingerprint(dashed) == chat_fingerprint(text));
    if (std::string_view(name) == "llama3") CHECK(chat_fingerprint(escaped) == chat_fingerprint(text));
    for (std::size_t i = 0; i < text.size(); ++i) {
      if (text[i] == ' ' || text[i] == '\n' || text[i] == '-') continue;
      std::string changed = text;
      changed[i] = changed[i] == 'x' ? 'y' : 'x';
      CHECK_FALSE(find_chat_style(changed));
    }
    CHECK_FALSE(find_chat_style(text + "{{ 'more' }}"));
  }
  // White space that is printed counts: inside of strings, and between tags unless a dash or the end of a block takes
  // it away.
  const std::string bitnet = golden_template("bitnet");
  std::string printing = bitnet;
  printing.replace(printing.find("{{ content }}"), 13, "{{ content }}\n");
  CHECK_FALSE(find_chat_style(printing));
  printing.replace(printing.find("{% endfor %}"), 12, "{%- endfor %}");
  CHECK(find_chat_style(printing));
  CHECK(find_chat_style(bitnet + "\n\n"));
  CHECK_FALSE(find_chat_style(bitnet + "\n\n\n"));
  CHECK_FALSE(find_chat_style("\n" + bitnet));
  std::string tight = golden_template("mistral-v0.2");
  tight.replace(tight.find("'[INST] '"), 9, "'[INST]'");
  CHECK_FALSE(find_chat_style(tight));
}

TEST_CASE("chat_fingerprint: what counts in a template, and what does not") {
  const auto same = [](std::string_view a, std::string_view b) { return chat_fingerprint(a) == chat_fingerprint(b); };
  // Inside of tags white space, dashes at their ends and the kind of quotes do not count.
  CHECK(same("{{a}}", "{{ a }}"));
  CHECK(same("{{a}}", "{{\ta\r\n}}"));
  CHECK(same("{%if a%}{%endif%}", "{%- if a -%}\t{%- endif -%}"));
  CHECK(same("{{- a -}}", "{{ a }}"));
  CHECK(same("{{ 'a' }}", "{{ \"a\" }}"));
  CHECK_FALSE(same("{{ a }}", "{{ b }}"));
  CHECK_FALSE(same("{{ a - b }}", "{{ a b }}"));
  CHECK_FALSE(same("{{ a }}", "{% a %}"));
  CHECK_FALSE(same("{{ 'a' }}", "{{ a }}"));
  // In strings all does; a line feed may be written in two ways, other escapes stay what they are.
  CHECK(same("{{ 'a\nb' }}", "{{ 'a\\nb' }}"));
  CHECK_FALSE(same("{{ 'a\tb' }}", "{{ 'a\\tb' }}"));
  CHECK_FALSE(same("{{ 'a b' }}", "{{ 'ab' }}"));
  CHECK_FALSE(same("{{ 'a-' }}", "{{ 'a' }}"));
  CHECK_FALSE(same("{{ '}}' }}", "{{ '' }}"));
  // Between tags what is printed.
  CHECK(same("{% a %}\n  \t{% b %}", "{% a %}{% b %}"));
  CHECK(same("{{ a -}}\r\n\t {{ b }}", "{{ a }}{{ b }}"));
  CHECK_FALSE(same("{{ a }} {{ b }}", "{{ a }}{{ b }}"));
  CHECK_FALSE(same("{% a %}x \t{% b %}", "{% a %}x{% b %}"));
  CHECK_FALSE(same("{ {{ a }}", "{{ a }}"));
  CHECK(same("", "\n"));
  // A tag that does not end is not taken for one that does.
  CHECK_FALSE(same("{{ a", "{{ a }}"));
  CHECK_FALSE(same("{{ 'a }}", "{{ 'a' }}"));
  CHECK_FALSE(same("{", ""));
}

TEST_CASE("chat_fingerprint: known templates differ from each other, and only BitNet has a leftover") {
  need_shared();
  std::set<std::uint64_t> seen;
  for (const auto& known : known_chat_templates) {
    CHECK(seen.insert(known.fingerprint).second);
    if (known.style.leftover) CHECK(known.style.family == chat_family::bitnet);
  }
  CHECK(find_chat_style(golden_template("bitnet-gguf"))->leftover);
  CHECK_FALSE(find_chat_style(golden_template("bitnet"))->leftover);
  CHECK_FALSE(find_chat_style(""));
}
