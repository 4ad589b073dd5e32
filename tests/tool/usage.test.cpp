// SPDX-License-Identifier: MIT
#include "tool/program.hpp"

using namespace tool_test;

TEST_CASE("every command explains itself") {
  const outcome all = call({"--help"});
  CHECK(all.code == 0);
  CHECK(all.err.empty());
  for (const std::string command :
       {"run",        "chat",    "bench",   "inspect", "check",   "tokenize", "detokenize", "logits",
        "embed",      "convert", "index",   "fold",    "cache",   "pull",     "list",       "rm",
        "completion", "man",     "engrave", "plan",    "devices", "doctor"}) {
    CAPTURE(command);
    CHECK(contains(all.out, command));
    const outcome one = call({command, "--help"});
    CHECK(one.code == 0);
    CHECK(contains(one.out, "Examples:"));
    CHECK(contains(one.out, "intaglio " + command));
    for (const std::string everywhere : {"--device", "--validate", "--quiet"}) CHECK(contains(one.out, everywhere));
  }
  CHECK(contains(call({"engrave", "--help"}).out, "The compiler proves the plan before the program exists."));
  const outcome version = call({"--version"});
  CHECK(version.code == 0);
  CHECK(contains(version.out, "intaglio "));
}

TEST_CASE("wrong usage ends with 2, one line first, nothing on stdout") {
  const std::vector<std::vector<std::string>> wrong{
      {},
      {"sing"},
      {"run", "--no-such-option"},
      {"run", "--temperature"},
      {"run", "--temperature", "warm"},
      {"run", "--temperature", "nan", "-m", "no-such.gguf"},
      {"run", "--top-p", "inf", "-m", "no-such.gguf"},
      {"chat", "--min-p", "nan", "-m", "no-such.gguf"},
      {"chat", "--repeat-penalty", "0", "-m", "no-such.gguf"},
      {"run", "--gpu-idle", "nan", "-m", "no-such.gguf"},
      {"run", "-n", "-3"},
      {"run", "-m", ""},
      {"run", "--seed", "18446744073709551616"},
      {"run", "--seed", "-1"},
      {"run", "--plain", "--chat", "--prompt", "a"},
      {"run", "--prompt", "a", "--ids", "1"},
      {"run", "--prompt", "a", "--file", "b"},
      {"run", "--ids", "1,,2"},
      {"run", "--ids", "1;2"},
      {"run", "--ids", "-1"},
      {"tokenize"},
      {"tokenize", "--text", "a", "--file", "b"},
      {"tokenize", "--text", "a", "--i2s-layout", "diagonal"},
      {"detokenize"},
      {"detokenize", "--ids", "one"},
      {"embed"},
      {"embed", "--text", "a", "--ids", "1"},
      {"embed", "--text", "a", "--pooling", "least"},
      {"logits", "--ids", "1"},
      {"logits", "--ids", "", "--out", "/nonexistent-folder/x"},
      {"inspect"},
      {"check"},
      {"convert", "a", "b"},
      {"convert", "a", "b", "--codec", "q9"},
      {"index", "a"},
      {"index", "a", "-o", "b", "--codec", "q9"},
      {"pull", "model.gguf"},
      {"list", "all"},
      {"rm"},
      {"completion", "csh"},
      {"man"},
      {"plan"},
      {"plan", "no_such_model"},
      {"plan", "fable", "--profile", "abacus"},
      {"plan", "fable", "--bench", "x.json"},
      {"bench", "--synthetic", "no_such_model"},
      {"bench", "--codec", "i2_s"},
      {"bench", "--relu-zeros", "0.5"},
      {"bench", "--synthetic", "fable", "--relu-zeros", "1.5"},
      {"bench", "--ab", "coffee"},
  };
  for (const auto& arguments : wrong) {
    std::string shown;
    for (const auto& each : arguments) shown += each + " ";
    CAPTURE(shown);
    const outcome got = call(arguments);
    CAPTURE(got.err);
    CHECK(got.code == 2);
    CHECK(got.out.empty());
    CHECK(got.first_error().starts_with("intaglio: "));
  }
}

TEST_CASE("a full or closed stdout is an error") {
  const outcome full = call({"plan", "fable"}, {.environment = {}, .input = {}, .stdout_path = "/dev/full"});
  CHECK(full.code == 1);
  CHECK(contains(full.first_error(), "standard output: cannot write: No space left on device"));
}

TEST_CASE("the locale changes nothing") {
  const outcome plain = call({"plan", "fable", "--json"}),
                comma = call({"plan", "fable", "--json"},
                             {.environment = {{"LC_ALL", "de_DE.UTF-8"}, {"LANG", "de_DE.UTF-8"}},
                              .input = {},
                              .stdout_path = {}});
  CHECK(plain.out == comma.out);
  CHECK(comma.code == 0);
}
