// SPDX-License-Identifier: MIT
#include "intaglio/io/safetensors_writer.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "files.hpp"

using Catch::Matchers::ContainsSubstring;
using intaglio::argument_error;
using intaglio::dtype;
using namespace intaglio::io;

TEST_CASE("safetensors_writer: what was written is read back", "[safetensors]") {
  const temporary_folder folder;
  const std::array<std::uint64_t, 2> matrix{3, 2};
  const std::array<std::uint64_t, 1> vector{5};
  bytes data(3 * 2 * 2 + 5 * 4);
  for (std::size_t i = 0; i < data.size(); ++i) data[i] = static_cast<std::byte>(i);
  safetensors_writer out(folder / "out.safetensors");
  out.add_tensor("b.weight", dtype::bf16, matrix);
  out.add_tensor("a \"quoted\".weight", dtype::f32, vector);
  CHECK(out.data_bytes() == data.size());
  out.begin();
  out.write(std::span(data).first(7));
  CHECK_THROWS_AS(out.finish(), argument_error);
  out.write(std::span(data).subspan(7));
  CHECK_THROWS_WITH(out.write(std::span(data).first(1)), ContainsSubstring("bytes: expected 0 more, found 1"));
  CHECK_FALSE(std::filesystem::exists(folder / "out.safetensors"));
  out.finish();
  const safetensors_file file{mapped_file(folder / "out.safetensors")};
  REQUIRE(file.tensors().size() == 2);
  for (const auto& tensor : file.tensors()) {
    const bool first = tensor.name == "b.weight";
    CHECK((first || tensor.name == "a \"quoted\".weight"));
    CHECK(tensor.type == (first ? dtype::bf16 : dtype::f32));
    CHECK(tensor.shape == (first ? std::vector<std::uint64_t>{3, 2} : std::vector<std::uint64_t>{5}));
    bytes read(static_cast<std::size_t>(tensor.bytes));
    file.file().read(tensor.offset, read);
    CHECK(std::equal(read.begin(), read.end(), data.begin() + (first ? 0 : 12)));
    CHECK((tensor.offset - (first ? 0 : 12)) % 8 == 0);
  }
}

TEST_CASE("safetensors_writer: a tensor without dimensions holds one number", "[safetensors]") {
  const temporary_folder folder;
  safetensors_writer out(folder / "out.safetensors");
  out.add_tensor("beta", dtype::f32, {});
  CHECK(out.data_bytes() == 4);
  out.begin();
  constexpr std::array half{0.5f};
  out.write(std::as_bytes(std::span(half)));
  out.finish();
  const safetensors_file file{mapped_file(folder / "out.safetensors")};
  REQUIRE(file.tensors().size() == 1);
  CHECK((file.tensors()[0].shape.empty() && file.tensors()[0].bytes == 4));
}

TEST_CASE("safetensors_writer: what the format does not hold is refused", "[safetensors]") {
  const temporary_folder folder;
  const std::array<std::uint64_t, 1> some{4}, none{0}, endless{std::uint64_t{1} << 63};
  safetensors_writer out(folder / "out.safetensors");
  out.add_tensor("x", dtype::f16, some);
  for (const auto& [name, type, shape] : {std::tuple{"x", dtype::f16, std::span(some)},
                                          {"", dtype::f16, std::span(some)},
                                          {"__metadata__", dtype::f16, std::span(some)},
                                          {"y", dtype::q8_0, std::span(some)},
                                          {"y", dtype::f16, std::span(none)},
                                          {"y", dtype::f32, std::span(endless)}})
    CHECK_THROWS_AS(out.add_tensor(name, type, shape), argument_error);
  CHECK(out.data_bytes() == 8);
}
