// SPDX-License-Identifier: MIT
#include "intaglio/io/feature_index_build.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <csignal>

#include "../conformance.hpp"
#include "files.hpp"

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;
using intaglio::dtype;
using intaglio::file_error;
using intaglio::mismatch_error;
using namespace intaglio::io;

namespace {

const checkpoint_tensor& tensor_of(const checkpoint& model, std::uint32_t layer, feature_vector which) {
  return model.at("blk." + std::to_string(layer) + ".ffn_" + std::string(name(which)) + ".weight");
}
/// Every vector of an index is the model's, rounded to the codec where there is one.
void expect_all_vectors(const feature_index& index, const checkpoint& model, std::optional<dtype> codec) {
  const auto columns = static_cast<std::size_t>(model.config().hidden_size),
             features = static_cast<std::size_t>(model.config().intermediate_size);
  std::vector<float> wanted(columns * features), found(wanted.size()), matrix(wanted.size());
  for (std::uint32_t layer = 0; layer < model.config().num_hidden_layers; ++layer)
    for (const feature_vector which : feature_vectors) {
      INFO("layer " << layer << " " << name(which));
      const auto& tensor = tensor_of(model, layer, which);
      model.read_f32(tensor, 0, tensor.stored.rows, matrix);
      wanted = matrix;
      if (which == feature_vector::down)
        for (std::size_t f = 0; f < features; ++f)
          for (std::size_t h = 0; h < columns; ++h) wanted[f * columns + h] = matrix[h * features + f];
      if (codec) {
        bytes encoded(wanted.size() * intaglio::info(*codec).block_bytes);
        encode_row(*codec, wanted, encoded);
        decode_row(*codec, encoded, wanted);
      }
      index.read_f32(layer, which, 0, features, found);
      CHECK((found == wanted));
      const auto mapped = index.mapping(layer, which);
      CHECK(mapped.size() == features * index.row_bytes(layer, which));
      decode_feature_rows(index.layer(layer)[which].type, mapped, index.layer(layer)[which].scale, found);
      CHECK((found == wanted));
    }
}
void expect_same_files(const std::filesystem::path& one, const std::filesystem::path& two) {
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(one)) {
    INFO(entry.path().filename());
    CHECK((read_bytes(entry.path()) == read_bytes(two / entry.path().filename())));
    ++files;
  }
  CHECK(files == static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(two), {})));
}

}  // namespace

TEST_CASE("feature index build: every family's vectors, exactly", "[feature_index]") {
  const struct {
    std::filesystem::path model;
    std::optional<dtype> codec;
    dtype gate, down;
  } cases[] = {
      {conformance("bitnet-tiny") / "gguf/bitnet-tiny-b158-i2_s.gguf", {}, dtype::i2_s, dtype::i2_s},
      {conformance("bitnet-tiny") / "hf-packed", {}, dtype::i2_s, dtype::i2_s},
      {conformance("bitnet-tiny") / "gguf/bitnet-tiny-tq2_0.gguf", dtype::f16, dtype::f16, dtype::f16},
      {shared("models/fable-bitnet-i2_s.gguf"), {}, dtype::i2_s, dtype::i2_s},
      {shared("models/stories260k/stories260K-f32.gguf"), {}, dtype::f32, dtype::f32},
      {conformance("llama-tiny") / "gguf/llama-tiny-q4_k.gguf", {}, dtype::q4_k, dtype::f32},
      {conformance("llama-tiny") / "hf-sharded", {}, dtype::f32, dtype::f32},
      {conformance("llama-tiny") / "gguf/llama-tiny-bf16.gguf", {}, dtype::bf16, dtype::bf16},
      {conformance("mistral-tiny") / "orig", dtype::f32, dtype::f32, dtype::f32},
      {conformance("gemma3-tiny") / "gguf/gemma3-tiny-q8_0.gguf", {}, dtype::q8_0, dtype::f32},
      {conformance("gemma3-tiny") / "hf", dtype::bf16, dtype::bf16, dtype::bf16},
  };
  for (const auto& each : cases) {
    INFO(each.model);
    const temporary_folder folder;
    std::size_t calls = 0;
    file_progress last;
    feature_build_options options{.codec = each.codec};
    options.progress = [&](const file_progress& progress) {
      CHECK(progress.bytes >= last.bytes);
      CHECK(progress.bytes <= progress.total_bytes);
      last = progress;
      ++calls;
    };
    const feature_build_report report = build_feature_index(each.model, folder / "made/index", options);
    CHECK(last.bytes == last.total_bytes);
    CHECK(last.bytes == report.bytes);
    CHECK(last.tensors == last.total_tensors);
    CHECK(report.kept == 0);
    const feature_index index = feature_index::open(folder / "made/index");
    const checkpoint model = checkpoint::open(each.model);
    CHECK(index.layers() == model.config().num_hidden_layers);
    CHECK(index.layer(0)[feature_vector::gate].type == each.gate);
    CHECK(index.layer(0)[feature_vector::up].type == each.gate);
    CHECK(index.layer(0)[feature_vector::down].type == each.down);
    CHECK(index.differences(model.config()).empty());
    expect_all_vectors(index, model, each.codec);
    CHECK_NOTHROW(expect_index_of(index, each.model));
  }
}

TEST_CASE("feature index build: the same bytes whatever the threads and the memory", "[feature_index]") {
  for (const auto& model :
       {conformance("llama-tiny") / "gguf/llama-tiny-f16.gguf", shared("models/fable-bitnet-tq2_0.gguf")}) {
    const temporary_folder folder;
    build_feature_index(model, folder / "one", {.threads = 1});
    build_feature_index(model, folder / "four", {.threads = 4});
    // A feature at a time, and a number of them that divides nothing.
    build_feature_index(model, folder / "least", {.threads = 2, .turn_bytes = 0});
    build_feature_index(model, folder / "odd", {.threads = 2, .turn_bytes = 256 * 4 * 101});
    for (const char* other : {"four", "least", "odd"}) expect_same_files(folder / "one", folder / other);
  }
}

TEST_CASE("feature index build: killed at any moment it goes on where it was", "[feature_index]") {
  const auto model = conformance("bitnet-tiny") / "gguf/bitnet-tiny-b158-i2_s.gguf";
  const temporary_folder folder;
  std::size_t calls = 0;
  feature_build_options counting{.threads = 1};
  counting.progress = [&](const file_progress&) { ++calls; };
  build_feature_index(model, folder / "whole", counting);
  REQUIRE(calls > 20);
  const std::uint32_t layers = feature_index::open(folder / "whole").layers();
  REQUIRE(layers >= 2);

  std::size_t kept_some = 0;
  for (std::size_t at = 1; at <= calls; ++at) {
    const auto out = folder / "killed";
    std::filesystem::remove_all(out);
    const ::pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      std::size_t call = 0;
      feature_build_options options{.threads = 1};
      options.progress = [&](const file_progress&) {
        if (++call == at) ::kill(::getpid(), SIGKILL);
      };
      build_feature_index(model, out, options);
      ::_exit(0);
    }
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    REQUIRE((WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL));
    // What the manifest names is whole; nothing less is taken for an index.
    std::uint32_t named = 0;
    if (std::filesystem::exists(out / "index.json")) {
      const feature_index unfinished = feature_index::open_unfinished(out);
      named = unfinished.layers();
      if (named < layers)
        CHECK_THROWS_MATCHES(feature_index::open(out), file_error, MessageMatches(ContainsSubstring("not finished")));
    }
    const feature_build_report report = build_feature_index(model, out, {.threads = 1});
    CHECK(report.kept == named);
    CHECK(report.layers == layers);
    kept_some += named != 0;
    expect_same_files(folder / "whole", out);
  }
  CHECK(kept_some > 5);
}

TEST_CASE("feature index build: what is there already is kept, refused or left alone", "[feature_index]") {
  const auto tiny = conformance("llama-tiny") / "gguf";
  const temporary_folder folder;
  build_feature_index(tiny / "llama-tiny-f16.gguf", folder / "index");
  const auto made = std::filesystem::last_write_time(folder / "index/layer-0000.bin");
  const auto again = build_feature_index(tiny / "llama-tiny-f16.gguf", folder / "index");
  CHECK(again.kept == 3);
  CHECK(std::filesystem::last_write_time(folder / "index/layer-0000.bin") == made);

  CHECK_THROWS_MATCHES(build_feature_index(tiny / "llama-tiny-f16.gguf", folder / "index", {.codec = dtype::f32}),
                       mismatch_error, MessageMatches(ContainsSubstring("codec: wanted f32, file own")));
  CHECK_THROWS_MATCHES(build_feature_index(shared("models/stories260k/stories260K-f32.gguf"), folder / "index"),
                       mismatch_error, MessageMatches(ContainsSubstring("hidden_size")));
  CHECK_THROWS_MATCHES(build_feature_index(tiny / "llama-tiny-q8_0.gguf", folder / "index"), mismatch_error,
                       MessageMatches(ContainsSubstring("gate vectors of layer 0: wanted q8_0, file f16")));
  // Other weights of the same config.
  build_feature_index(tiny / "llama-tiny-q4_0.gguf", folder / "rounded", {.codec = dtype::f16});
  CHECK_THROWS_MATCHES(build_feature_index(tiny / "llama-tiny-q8_0.gguf", folder / "rounded", {.codec = dtype::f16}),
                       mismatch_error,
                       MessageMatches(ContainsSubstring("gate vector of feature 0 of layer 0: unlike that of")));
  // A layer that was damaged is not built upon.
  bytes data = read_bytes(folder / "index/layer-0001.bin");
  data[5] ^= std::byte{4};
  write_bytes(folder / "index/layer-0001.bin", data);
  CHECK_THROWS_MATCHES(build_feature_index(tiny / "llama-tiny-f16.gguf", folder / "index"), file_error,
                       MessageMatches(ContainsSubstring("checksum of the gate vectors of layer 1")));

  SECTION("somebody else is at it") {
    const locked_folder lock(folder / "busy");
    CHECK_THROWS_MATCHES(build_feature_index(tiny / "llama-tiny-f16.gguf", folder / "busy"), file_error,
                         MessageMatches(ContainsSubstring("another process is writing this index")));
  }
  SECTION("no folder") {
    write_text(folder / "file", "x");
    CHECK_THROWS_MATCHES(build_feature_index(tiny / "llama-tiny-f16.gguf", folder / "file"), file_error,
                         MessageMatches(ContainsSubstring("cannot make or open the folder")));
  }
  SECTION("a codec that an index cannot have") {
    CHECK_THROWS_MATCHES(build_feature_index(tiny / "llama-tiny-f16.gguf", folder / "new", {.codec = dtype::q4_0}),
                         intaglio::argument_error,
                         MessageMatches(ContainsSubstring("codec: expected own, f32, f16 or bf16, found q4_0")));
    CHECK_FALSE(std::filesystem::exists(folder / "new"));
  }
}
