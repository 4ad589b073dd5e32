// SPDX-License-Identifier: MIT
#include "intaglio/io/named_templates.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "edited_gguf.hpp"
#include "intaglio/io/checkpoint.hpp"
#include "intaglio/io/hf_tokenizer.hpp"
#include "intaglio/io/jinja.hpp"
#include "io/files.hpp"
#include "io/vocabularies.hpp"

using namespace intaglio;
using Catch::Matchers::ContainsSubstring;
using nlohmann::json;

namespace {

/// The text that a template gives, without tools or with one.
std::string rendered(const std::string& text, bool tools) {
  const std::vector<io::chat_message> hello{{"user", "hi"}};
  return io::render_jinja(text, hello, true, "", "", tools ? R"({"tools":[{"name":"f"}]})" : "");
}

/// A folder with the tokenizer of a tiny Llama.
struct tokenizer_folder {
  temporary_folder made;
  json config = shared_json("conformance/llama-tiny/hf/tokenizer_config.json");

  tokenizer_folder() {
    std::filesystem::copy_file(shared("conformance/llama-tiny/hf/tokenizer.json"), made / "tokenizer.json");
    config.erase("chat_template");
  }
  io::vocabulary read() const {
    write_text(made / "tokenizer_config.json", config.dump());
    return io::vocabulary_from_hf_directory(made.path());
  }
};

const json two = json::array(
    {{{"name", "default"}, {"template", "plain"}}, {{"name", "tool_use"}, {"template", "{{ tools[0].name }} called"}}});

}  // namespace

TEST_CASE("named_templates: a template of two gives what each of them gives alone", "[chat]") {
  const std::string loops = "\n  {%- for m in messages %}\n  [{{ m.role }}]\n  {% endfor %}\n\n";
  for (const std::string& usual : {std::string("a"), loops, std::string("{% if true -%}\n x {%- endif %}  \n"),
                                   std::string("\n\n{{ messages[0].content }}\n  ")})
    for (const std::string& with_tools : {std::string("b\n"), loops, std::string("  {% set x = 1 %}\n{{ x }}")}) {
      CAPTURE(usual, with_tools);
      const std::string both = io::template_by_tools(usual, with_tools);
      CHECK(rendered(both, false) == rendered(usual, false));
      CHECK(rendered(both, true) == rendered(with_tools, true));
    }
}

TEST_CASE("named_templates: of a folder the one for tools is used with tools, and others are named", "[chat]") {
  tokenizer_folder folder;
  folder.config["chat_template"] = two;
  const auto found = folder.read();
  REQUIRE(found.chat_template);
  CHECK((rendered(*found.chat_template, false) == "plain" && rendered(*found.chat_template, true) == "f called"));
  CHECK(found.warnings == std::vector<std::string>{});
  folder.config["chat_template"].push_back({{"name", "rag"}, {"template", "x"}});
  const auto more = folder.read();
  REQUIRE(more.warnings.size() == 1);
  CHECK_THAT(more.warnings[0], ContainsSubstring("tokenizer_config.json: chat template 'rag' is not used"));
  folder.config["chat_template"].erase(0);
  const auto none = folder.read();
  CHECK((!none.chat_template && none.warnings.size() == 2));
  CHECK_THAT(none.warnings[0], ContainsSubstring("'tool_use' is not used: expected one named default beside it"));
  // Files of their own, as transformers writes them now.
  write_text(folder.made / "chat_template.jinja", "other");
  std::filesystem::create_directory(folder.made / "additional_chat_templates");
  write_text(folder.made / "additional_chat_templates" / "tool_use.jinja", "with {{ tools | length }}");
  folder.config.erase("chat_template");
  const auto files = folder.read();
  CHECK((rendered(*files.chat_template, false) == "other" && rendered(*files.chat_template, true) == "with 1"));
  CHECK(files.warnings.empty());
  for (const char* each : {"default", "rag"})
    write_text(folder.made / "additional_chat_templates" / (std::string(each) + ".jinja"), "x");
  const auto third = folder.read();
  CHECK((rendered(*third.chat_template, false) == "other" && third.warnings.size() == 1));
}

TEST_CASE("named_templates: of a GGUF file the one for tools is used with tools", "[chat]") {
  const gguf_image sound = edited_gguf::llama();
  const auto file = edited_gguf::edited(sound, [](auto& i) {
    i.template set<std::string>("tokenizer.chat_template", "plain");
    i.template set<std::string>("tokenizer.chat_template.tool_use", "{{ tools[0].name }} called");
  });
  const io::vocabulary& words = *file.vocabulary();
  CHECK((rendered(*words.chat_template, false) == "plain" && rendered(*words.chat_template, true) == "f called"));
  CHECK(words.warnings.empty());
  const auto alone = edited_gguf::edited(sound, [](auto& i) {
    i.template set<std::string>("tokenizer.chat_template", "plain");
    i.template set<std::string>("tokenizer.chat_template.rag", "x");
  });
  CHECK(alone.vocabulary()->chat_template == "plain");
  REQUIRE(alone.vocabulary()->warnings.size() == 1);
  CHECK_THAT(alone.vocabulary()->warnings[0], ContainsSubstring("chat template 'rag' is not used"));
}
