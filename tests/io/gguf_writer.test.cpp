// SPDX-License-Identifier: MIT
#include "intaglio/io/gguf_writer.hpp"

#include <catch2/catch_test_macros.hpp>

#include "files.hpp"
#include "intaglio/io/gguf.hpp"

using intaglio::dtype;
using namespace intaglio::io;

TEST_CASE("gguf_writer: what it writes reads back, strictly placed", "[gguf_writer]") {
  const temporary_folder folder;
  const auto path = folder / "out.gguf";
  const std::vector<std::string> texts{"one", "", "three"};
  const std::vector<float> numbers{1.f, 2.f};
  {
    gguf_writer writer(path);
    writer.set("general.architecture", "test");
    writer.set("a.u8", std::uint8_t{200});
    writer.set("a.i64", std::int64_t{-5});
    writer.set("a.f64", 0.1);
    writer.set("a.bool", true);
    writer.set_array<std::string>("a.texts", texts);
    writer.set_array<float>("a.numbers", numbers);
    CHECK_THROWS_AS(writer.set("a.bool", false), intaglio::argument_error);
    writer.add_tensor("vector", dtype::f32, std::vector<std::uint64_t>{3});
    writer.add_tensor("matrix", dtype::q8_0, std::vector<std::uint64_t>{32, 2});
    CHECK_THROWS_AS(writer.add_tensor("odd", dtype::q8_0, std::vector<std::uint64_t>{33}), intaglio::argument_error);
    CHECK_THROWS_AS(writer.add_tensor("unsigned", dtype::u8, std::vector<std::uint64_t>{4}), intaglio::argument_error);
    writer.begin();
    CHECK_THROWS_AS(writer.write(bytes(13)), intaglio::argument_error);
    writer.write(bytes(5, std::byte{1}));
    writer.write(bytes(7, std::byte{1}));
    CHECK_THROWS_AS(writer.finish(), intaglio::argument_error);
    writer.write(bytes(68, std::byte{2}));
    CHECK_FALSE(std::filesystem::exists(path));
    writer.finish();
  }
  const auto file = gguf::open(path);
  CHECK(file.warnings().empty());
  CHECK(file.value<std::uint8_t>("a.u8") == 200);
  CHECK(file.value<std::int64_t>("a.i64") == -5);
  CHECK(file.value<double>("a.f64") == 0.1);
  CHECK(file.value<bool>("a.bool") == true);
  CHECK(file.array<std::string>("a.texts") == texts);
  CHECK(file.array<float>("a.numbers") == numbers);
  CHECK(file.find_tensor("matrix")->offset == file.first().data_offset() + 32);
  CHECK(std::filesystem::file_size(path) % 32 == 0);
}

TEST_CASE("gguf_writer: keys and tensors that a file cannot hold are argument errors", "[gguf_writer]") {
  const temporary_folder folder;
  gguf_writer writer(folder / "out.gguf");
  using shape = std::vector<std::uint64_t>;
  const std::string text = "as a view";
  writer.set("a.text", std::string_view(text));
  CHECK_THROWS_AS(writer.set("", true), intaglio::argument_error);
  CHECK_THROWS_AS(writer.set(std::string(65'536, 'k'), true), intaglio::argument_error);
  CHECK_NOTHROW(writer.set(std::string(65'535, 'k'), true));
  for (const shape& bad :
       {shape{}, shape{1, 1, 1, 1, 1}, shape{0}, shape{4, 0}, shape{1ull << 32, 1ull << 32}, shape{1ull << 62}})
    CHECK_THROWS_AS(writer.add_tensor("bad", dtype::f32, bad), intaglio::argument_error);
  CHECK_THROWS_AS(writer.add_tensor("", dtype::f32, shape{1}), intaglio::argument_error);
  CHECK_THROWS_AS(writer.add_tensor(std::string(64, 'n'), dtype::f32, shape{1}), intaglio::argument_error);
  CHECK(writer.data_bytes() == 0);
  CHECK_NOTHROW(writer.add_tensor(std::string(63, 'n'), dtype::f32, shape{1, 1, 1, 9}));
  CHECK(writer.data_bytes() == 64);
  writer.begin();
  writer.write(bytes(36));
  CHECK_THROWS_AS(writer.write(bytes(1)), intaglio::argument_error);  // of no tensor
  writer.finish();
  const auto file = gguf::open(folder / "out.gguf");
  CHECK(file.value<std::string>("a.text") == text);
  REQUIRE(file.tensors().size() == 1);
  CHECK(file.tensors()[0].dimensions == 4);
  CHECK(file.tensors()[0].rows() == 9);
}

TEST_CASE("gguf_writer: keys alone, copied from another file", "[gguf_writer]") {
  const temporary_folder folder;
  {
    gguf_writer writer(folder / "first.gguf");
    writer.set("a.i8", std::int8_t{-7});
    writer.set_array<std::string>("a.texts", std::vector<std::string>{"x", "yz"});
    writer.set("a.text", "t");
    writer.begin();
    writer.finish();
  }
  const auto first = gguf::open(folder / "first.gguf");
  gguf_writer writer(folder / "second.gguf");
  for (const auto& value : first.first().values()) writer.copy(first.first(), value);
  CHECK_THROWS_AS(writer.copy(first.first(), first.first().values()[0]), intaglio::argument_error);
  writer.begin();
  CHECK_THROWS_AS(writer.write(bytes(1)), intaglio::argument_error);
  writer.finish();
  CHECK(read_bytes(folder / "second.gguf") == read_bytes(folder / "first.gguf"));
  CHECK(first.array<std::string>("a.texts") == std::vector<std::string>{"x", "yz"});
}
