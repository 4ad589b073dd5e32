// SPDX-License-Identifier: MIT
#include "intaglio/runtime/stop_text.hpp"

#include <catch2/catch_test_macros.hpp>
#include <random>

using intaglio::runtime::stop_text;

namespace {

struct watched {
  std::string text;
  bool stopped = false;
};

watched watch(std::vector<std::string> stops, const std::vector<std::string>& pieces) {
  stop_text watcher(std::move(stops));
  watched out;
  for (const auto& piece : pieces) {
    watcher.add(piece, out.text);
    if (watcher.stopped()) break;
  }
  out.stopped = watcher.stopped();
  if (!out.stopped) watcher.finish(out.text);
  return out;
}

}  // namespace

TEST_CASE("text without stop strings passes at once") {
  stop_text watcher;
  std::string out;
  watcher.add("one", out);
  CHECK(out == "one");
  CHECK_FALSE(watcher.stopped());
}

TEST_CASE("a stop string ends the text before itself, also across pieces") {
  CHECK(watch({"END"}, {"one EN", "D two"}).text == "one ");
  CHECK(watch({"END"}, {"one E", "N", "D"}).stopped);
  CHECK(watch({"END"}, {"EEND"}).text == "E");
  CHECK(watch({"aab"}, {"aa", "ab"}).text == "a");
  CHECK(watch({"two", "one"}, {"one two"}).text.empty());
  CHECK(watch({"\n\n"}, {"a\n", "b\n", "\nc"}).text == "a\nb");
}

TEST_CASE("what only began like a stop string is given out") {
  CHECK(watch({"END"}, {"one EN", "O"}).text == "one ENO");
  CHECK(watch({"END"}, {"one EN"}).text == "one EN");
  stop_text watcher({"END"});
  std::string out;
  watcher.add("xE", out);
  CHECK(out == "x");
  watcher.add("x", out);
  CHECK(out == "xEx");
}

TEST_CASE("any cutting into pieces gives the same text") {
  std::mt19937 random(7);
  for (int round = 0; round < 2000; ++round) {
    std::string whole;
    for (int i = 0; i < 24; ++i) whole += "ab"[random() % 2];
    std::vector<std::string> stops(1 + random() % 2);
    for (auto& stop : stops)
      for (auto n = 1 + random() % 5; n != 0; --n) stop += "ab"[random() % 2];
    std::size_t begin = 0, end = whole.size() + 1;
    for (std::size_t stop_end = 1; stop_end <= whole.size() && end > whole.size(); ++stop_end)
      for (std::size_t start = 0; start < stop_end && end > whole.size(); ++start)
        for (const auto& stop : stops)
          if (whole.substr(start, stop_end - start) == stop) {
            begin = start;
            end = stop_end;
          }
    std::vector<std::string> pieces;
    for (std::size_t at = 0; at < whole.size();) {
      const std::size_t length = random() % 4;
      pieces.push_back(whole.substr(at, length));
      at += length;
    }
    const auto seen = watch(stops, pieces);
    CHECK(seen.stopped == (end <= whole.size()));
    CHECK(seen.text == (seen.stopped ? whole.substr(0, begin) : whole));
  }
}

TEST_CASE("stop strings have limits") {
  CHECK_THROWS_AS(stop_text({""}), intaglio::argument_error);
  CHECK_THROWS_AS(stop_text({std::string(1025, 'x')}), intaglio::argument_error);
  CHECK_THROWS_AS(stop_text(std::vector<std::string>(17, "x")), intaglio::argument_error);
  CHECK_NOTHROW(stop_text(std::vector<std::string>(16, std::string(1024, 'x'))));
}
