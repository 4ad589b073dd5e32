// SPDX-License-Identifier: MIT
// tokenize and detokenize, against the goldens of the embedded model.
#include "shared.hpp"
#include "tool/program.hpp"

using namespace tool_test;

TEST_CASE("tokenize gives ids and pieces") {
  const outcome json = call({"tokenize", "--text", "Once upon a time", "--json"});
  CHECK(json.code == 0);
  CHECK(json.out == "{\"ids\":[453,466,258,418],\"pieces\":[\"Once\",\" upon\",\" a\",\" time\"]}\n");
  CHECK(call({"tokenize", "--text", "Once upon a time"}).out == "453,466,258,418\n");
  CHECK(call({"tokenize", "--bos", "--text", "Once upon a time"}).out == "4093,453,466,258,418\n");
  CHECK(call({"tokenize", "--text", "", "--json"}).out == "{\"ids\":[],\"pieces\":[]}\n");
}

TEST_CASE("special tokens are text unless asked for") {
  const auto plain = call({"tokenize", "--text", "<|eot_id|>", "--json"}).json();
  CHECK(plain["ids"].size() > 1);
  CHECK(call({"tokenize", "--special", "--text", "<|eot_id|>"}).out == "4095\n");
  CHECK(call({"detokenize", "--ids", "4095"}).out == "<|eot_id|>");
}

TEST_CASE("files and stdin, and the way back byte for byte") {
  const temporary_folder folder;
  const std::string text = "  Two\n\nlines\tand \xC3\xA9\xE2\x80\x93\xF0\x9F\x90\xAD,\r\n broken \xFF\xC3 bytes\n";
  write(folder / "text", text);
  const outcome ids = call({"tokenize", "--file", folder / "text"});
  CHECK(ids.code == 0);
  CHECK(call({"tokenize", "--file", "-"}, {.environment = {}, .input = text, .stdout_path = {}}).out == ids.out);
  CHECK(call({"detokenize", "--ids", ids.out}).out == text);
  CHECK(call({"tokenize", "--file", folder / "text", "--json"}).json()["ids"].size() >
        10);  // pieces that are no UTF-8 stay valid JSON
  CHECK(call({"detokenize", "--json", "--ids", "453, 466"}).out == "{\"text\":\"Once upon\"}\n");
}

TEST_CASE("the goldens' prompts") {
  const auto goldens = nlohmann::json::parse(content(shared("models/goldens/fable.json").string()));
  int seen = 0;
  for (const auto& prompt : goldens["prompts"]) {
    if (prompt["kind"] != "plain") continue;
    auto expected = prompt["ids"];
    CHECK(call({"tokenize", "--bos", "--text", prompt["text"], "--json"}).json()["ids"] == expected);
    ++seen;
  }
  CHECK(seen >= 3);
}

TEST_CASE("ids that are no tokens, and texts that are not there") {
  const outcome range = call({"detokenize", "--ids", "1,4096"});
  CHECK(range.code == 1);
  CHECK(contains(range.first_error(), "fable.gguf (embedded): token id: expected 0 .. 4095, found 4096"));
  const outcome missing = call({"tokenize", "--file", "/nonexistent/text"});
  CHECK(missing.code == 1);
  CHECK(contains(missing.first_error(), "/nonexistent/text: cannot open"));
  const outcome folder = call({"tokenize", "--file", "/"});
  CHECK(folder.code == 1);
  CHECK(contains(folder.first_error(), "cannot read: Is a directory"));
}
