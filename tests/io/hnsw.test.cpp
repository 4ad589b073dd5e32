// SPDX-License-Identifier: MIT
#include "intaglio/io/hnsw.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <csignal>
#include <limits>
#include <random>

#include "../shared.hpp"
#include "files.hpp"

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;
using intaglio::argument_error;
using intaglio::file_error;
using intaglio::mismatch_error;
using namespace intaglio::io;

namespace {

std::vector<float> normal(std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> of;
  std::vector<float> out(count);
  for (float& value : out) value = of(random);
  return out;
}
/// Share of the ten exact nearest features that a search finds too.
double recall(const hnsw_graph& graph, std::span<const float> gate, std::size_t width, std::size_t queries) {
  std::size_t found = 0;
  const auto x = normal(width * queries, 77);
  for (std::size_t q = 0; q < queries; ++q) {
    const auto query = std::span(x).subspan(q * width, width);
    const auto exact = nearest_gates(gate, query, 10), near = graph.nearest(query, 10);
    for (const near_feature& each : near) found += static_cast<std::size_t>(std::ranges::count(exact, each));
  }
  return static_cast<double>(found) / static_cast<double>(10 * queries);
}
std::vector<std::filesystem::path> graph_files(std::uint32_t layers) {
  std::vector<std::filesystem::path> out{"hnsw.json"};
  for (std::uint32_t layer = 0; layer < layers; ++layer) out.emplace_back(feature_graph_layer_file(layer));
  return out;
}

}  // namespace

TEST_CASE("hnsw: recall@10 at the default parameters, zero-mean gates whose number is beyond the search's") {
  constexpr std::size_t width = 24, features = 2400;
  const graph_parameters defaults;
  static_assert(graph_parameters{}.search < features);
  const auto gate = normal(width * features, 1);
  const hnsw_graph graph(gate, width, defaults);
  CHECK(recall(graph, gate, width, 20) >= 0.95);
  // A narrower search finds less: what is measured is the graph's.
  const hnsw_graph narrow(gate, width, {.links = defaults.links, .construction = defaults.construction, .search = 10},
                          graph.links());
  CHECK(recall(narrow, gate, width, 20) < 0.95);
}

TEST_CASE("hnsw: links that were written and read search alike, over changed vectors too") {
  constexpr std::size_t width = 16, features = 300;
  constexpr graph_parameters parameters{.links = 4, .construction = 20, .search = 60};
  auto gate = normal(width * features, 2);
  const hnsw_graph made(gate, width, parameters);
  const feature_links links =
      feature_links_of(feature_links_bytes(made.links(), parameters), features, parameters, "x");
  CHECK(links == made.links());
  const hnsw_graph read(gate, width, parameters, links);
  const auto x = normal(width * 10, 3);
  for (std::size_t q = 0; q < 10; ++q) {
    const auto query = std::span(x).subspan(q * width, width);
    CHECK(read.nearest(query, 10) == made.nearest(query, 10));
    // The opposite of a vector is as near.
    std::vector<float> opposite(query.begin(), query.end());
    for (float& value : opposite) value = -value;
    const auto one = made.nearest(query, 10), other = made.nearest(opposite, 10);
    for (std::size_t i = 0; i < 10; ++i) CHECK((one[i].feature == other[i].feature && one[i].score == -other[i].score));
  }
  CHECK(made.nearest(std::span(x).first(width), 1000).size() > 250);
  // A removed feature scores 0; one after the graph's is not found.
  const auto nearest = made.nearest(std::span(x).first(width), 1)[0].feature;
  std::fill_n(gate.begin() + static_cast<std::ptrdiff_t>(nearest * width), width, 0.f);
  gate.resize(width * (features + 1), 100.f);
  const hnsw_graph changed(gate, width, parameters, links);
  for (const near_feature& each : changed.nearest(std::span(x).first(width), 10))
    CHECK((each.feature != nearest && each.feature < features));
}

TEST_CASE("hnsw: links of any shape that a file may have are searched to an end") {
  // Nothing but an entry; a feature that no link leads to; a ring at a level of its own.
  constexpr std::size_t width = 4;
  const graph_parameters parameters{.links = 2, .construction = 5, .search = 5};
  const auto gate = normal(width * 4, 4), x = normal(width, 5);
  const auto links = [&](std::vector<std::vector<std::vector<std::uint32_t>>> of, std::uint32_t entry) {
    feature_links out;
    out.entry = entry;
    for (const auto& feature : of) {
      out.add_feature(static_cast<std::uint32_t>(feature.size()) - 1);
      for (const auto& each : feature) out.add_links(each);
    }
    return feature_links_of(feature_links_bytes(out, parameters), out.features(), parameters, "x");
  };
  CHECK(hnsw_graph(gate, width, parameters, links({{{}}, {{}}, {{}}, {{}}}, 1)).nearest(x, 4).size() == 1);
  CHECK(hnsw_graph(gate, width, parameters, links({{{1}, {1}, {1}}, {{0}, {0}, {0}}, {{0, 1, 3}}, {{}}}, 0))
            .nearest(x, 4)
            .size() == 2);
  CHECK(hnsw_graph(gate, width, parameters, links({{{1, 1, 1, 1}}, {{2}}, {{3}}, {{0}}}, 0)).nearest(x, 4).size() == 4);
}

TEST_CASE("hnsw: what cannot be is refused") {
  const auto gate = normal(64, 6);
  constexpr graph_parameters parameters{.links = 2, .construction = 5, .search = 5};
  CHECK_THROWS_MATCHES(hnsw_graph(gate, 7, parameters), argument_error,
                       MessageMatches(ContainsSubstring("vectors of 7, found 64 values")));
  CHECK_THROWS_AS(hnsw_graph(gate, 0, parameters), argument_error);
  CHECK_THROWS_AS(hnsw_graph({}, 8, parameters), argument_error);
  CHECK_THROWS_MATCHES(hnsw_graph(gate, 8, {.links = 0}), argument_error,
                       MessageMatches(ContainsSubstring("links: expected 2 to 256, found 0")));
  const hnsw_graph graph(gate, 8, parameters);
  CHECK_THROWS_MATCHES(graph.nearest(std::span(gate).first(7), 1), argument_error,
                       MessageMatches(ContainsSubstring("expected 8 values, found 7")));
  std::vector<float> wrong(gate.begin(), gate.end());
  wrong[9] = std::numeric_limits<float>::quiet_NaN();
  CHECK_THROWS_MATCHES(graph.nearest(std::span(wrong).subspan(8, 8), 1), argument_error,
                       MessageMatches(ContainsSubstring("NaN at 1")));
  CHECK_THROWS_MATCHES(hnsw_graph(wrong, 8, parameters), argument_error,
                       MessageMatches(ContainsSubstring("finite numbers, found NaN")));
  CHECK_THROWS_MATCHES(hnsw_graph(std::span(gate).first(56), 8, parameters, graph.links()), argument_error,
                       MessageMatches(ContainsSubstring("8 of the graph, found 7")));
}

TEST_CASE("hnsw: an index's graph, the same bytes whatever the threads, goes on where it was killed",
          "[feature_index]") {
  const temporary_folder folder;
  const auto source = folder / "index";
  build_feature_index(shared("models/stories260k/stories260K-f32.gguf"), source);
  const feature_index index = feature_index::open(source);
  constexpr graph_parameters parameters{.links = 4, .construction = 12, .search = 40};
  file_progress last;
  const hnsw_build_report report =
      build_hnsw(index, {.parameters = parameters, .threads = 1, .progress = [&](const file_progress& at) {
                           CHECK((at.bytes >= last.bytes && at.bytes <= at.total_bytes));
                           last = at;
                         }});
  CHECK((report.layers == 5 && report.kept == 0));
  CHECK((last.bytes == last.total_bytes && last.tensors == 5));
  CHECK(feature_graph_layers(index) == 5);
  const feature_graph_manifest manifest = read_feature_graph_manifest(index);
  CHECK(manifest.parameters == parameters);
  const auto files = graph_files(5);
  std::vector<bytes> whole;
  for (const auto& file : files) whole.push_back(read_bytes(source / file));
  const auto remove_graph = [&] {
    for (const auto& file : files) std::filesystem::remove(source / file);
  };
  const auto expect_whole = [&] {
    for (std::size_t i = 0; i < files.size(); ++i) CHECK((read_bytes(source / files[i]) == whole[i]));
  };
  remove_graph();
  build_hnsw(index, {.parameters = parameters, .threads = 3});
  expect_whole();

  std::vector<float> gate(172 * 64);
  index.read_f32(3, feature_vector::gate, 0, 172, gate);
  CHECK(recall(hnsw_graph(gate, 64, manifest.parameters, read_feature_links(index, manifest, 3)), gate, 64, 10) > 0.7);

  for (std::size_t at = 0; at < 5; ++at) {
    remove_graph();
    write_text(source / "hnsw-0001.bin.partial-1-0", "x");
    const ::pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      build_hnsw(index, {.parameters = parameters, .threads = 1, .progress = [&](const file_progress& done) {
                           if (done.tensors == at) ::kill(::getpid(), SIGKILL);
                         }});
      ::_exit(0);
    }
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    REQUIRE((WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL));
    CHECK(feature_graph_layers(index) == at);
    CHECK(build_hnsw(index, {.parameters = parameters}).kept == at);
    expect_whole();
    CHECK_FALSE(std::filesystem::exists(source / "hnsw-0001.bin.partial-1-0"));
  }

  // Whole: left alone, but for how wide searches are.
  const auto written = std::filesystem::last_write_time(source / "hnsw-0000.bin");
  CHECK(build_hnsw(index, {.parameters = {.links = 4, .construction = 12, .search = 50}}).kept == 5);
  CHECK(read_feature_graph_manifest(index).parameters.search == 50);
  CHECK(std::filesystem::last_write_time(source / "hnsw-0000.bin") == written);
  try {
    build_hnsw(index, {.parameters = {.links = 5, .construction = 13, .search = 50}});
    FAIL("expected other parameters to be refused");
  } catch (const mismatch_error& refused) {
    CHECK(refused.differences() ==
          std::vector<std::string>{"links: wanted 5, file 4", "construction: wanted 13, file 12"});
  }
  bytes damaged = whole[2];
  damaged[100] ^= std::byte{1};
  write_bytes(source / files[2], damaged);
  CHECK_THROWS_MATCHES(build_hnsw(index, {.parameters = parameters}), file_error,
                       MessageMatches(ContainsSubstring("hnsw-0001.bin: checksum")));
  const locked_folder lock(source);
  CHECK_THROWS_MATCHES(build_hnsw(index, {.parameters = parameters}), file_error,
                       MessageMatches(ContainsSubstring("another process is writing this index")));
}
