// SPDX-License-Identifier: MIT
#include "intaglio/io/torch_file.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <map>

#include <nlohmann/json.hpp>

#include "intaglio/core/float16.hpp"
#include "shared.hpp"
#include "torch_image.hpp"

using Catch::Matchers::ContainsSubstring;
using namespace intaglio::io;
using namespace pickled;

namespace {

std::string refusal(const zip_image& image) {
  const bytes file = image.build();
  try {
    torch_file(mapped_file::from_memory(file, "memory"));
  } catch (const intaglio::file_error& problem) { return problem.what(); }
  return "accepted";
}
zip_image sound() {
  return torch_image(file(dict({{"a", tensor(storage("HalfStorage", "0", 6), 2, {2, 2}, {2, 1})}})),
                     {{"0", std::string(12, '\1')}});
}
std::filesystem::path cases() { return shared("conformance/pth-cases"); }

}  // namespace

TEST_CASE("torch_file: a tensor's bytes are where the archive has them") {
  const bytes made = sound().build();
  const torch_file got(mapped_file::from_memory(made, "memory"));
  REQUIRE(got.tensors().size() == 1);
  const torch_tensor& a = got.tensors()[0];
  CHECK((a.type == intaglio::dtype::f16 && a.stored_type == "float16" && a.contiguous() && a.elements() == 4));
  CHECK(made[static_cast<std::size_t>(a.offset)] == std::byte{1});
  CHECK(made[static_cast<std::size_t>(a.offset) - 5] != std::byte{1});
  CHECK(got.members().size() == 4);
}

TEST_CASE("torch_file: members, version, byte order and storages are judged") {
  const auto edited = [](auto&& edit) {
    zip_image image = sound();
    edit(image);
    return refusal(image);
  };
  CHECK(edited([](auto&) {}) == "accepted");
  CHECK_THAT(edited([](auto& i) { i.at("model/byteorder").data = "big"; }),
             ContainsSubstring("byte order: expected little, found 'big'"));
  CHECK_THAT(edited([](auto& i) { i.at("model/version").data = "new"; }),
             ContainsSubstring("version of the archive: expected 1 to 10, found 'new'"));
  for (const char* version : {"0", "11", "999", "-3", "3 ", "3\n\n"})
    CHECK_THAT(edited([&](auto& i) { i.at("model/version").data = version; }),
               ContainsSubstring("version of the archive: expected 1 to 10, found '"));
  CHECK_THAT(edited([](auto& i) { i.members.pop_back(); }),
             ContainsSubstring("member of the archive: expected 'model/version', found none"));
  CHECK_THAT(edited([](auto& i) { i.at("model/data.pkl").name = "model/code.pkl"; }),
             ContainsSubstring("expected 'model/data.pkl', found none"));
  CHECK_THAT(edited([](auto& i) { i.at("model/data.pkl").checksum = 7; }),
             ContainsSubstring("member 'model/data.pkl': checksum of its bytes"));
  CHECK_THAT(edited([](auto& i) {
               i.members.push_back({"other/data.pkl", "x"});
             }),
             ContainsSubstring("member of the archive: expected one in model/, found 'other/data.pkl'"));
  CHECK_THAT(edited([](auto& i) { i.at("model/data/0").name = "model/data/1"; }),
             ContainsSubstring("storage 0: expected 12 bytes in data/0, found no such member"));
  CHECK_THAT(edited([](auto& i) { i.at("model/data/0").data.pop_back(); }),
             ContainsSubstring("storage 0: expected 12 bytes in data/0, found 11"));
  CHECK_THAT(refusal(torch_image(file(dict({{"a", tensor(storage("HalfStorage", "0", INT64_MAX), 0, {1}, {1})}})),
                                 {{"0", "xx"}})),
             ContainsSubstring("storage 0: expected "));
  CHECK_THAT(edited([](auto& i) { i.front = "\x80\x02"; }),
             ContainsSubstring(
                 "no ZIP file of torch.save: expected PK\\x03\\x04, found a bare pickle, as PyTorch wrote before 1.6"));
}

TEST_CASE("torch_file: the awkward cases of PyTorch's own writer") {
  const bytes text = read_bytes(cases() / "expected.json");
  const auto expected = nlohmann::json::parse(std::string(reinterpret_cast<const char*>(text.data()), text.size()));
  for (const char* name : {"tricky.pth", "nested.pth", "state_dict.pth"}) {
    INFO(name);
    const torch_file got{mapped_file(cases() / name)};
    for (const auto& member : got.members()) check_member(got.file(), member);
    const auto& wanted = expected[std::string(name) == "nested.pth" ? "tricky.pth" : name];
    CHECK(got.tensors().size() == wanted.size());
    for (const torch_tensor& tensor : got.tensors()) {
      INFO(tensor.name);
      const auto& want = wanted[tensor.name];
      CHECK(tensor.stored_type == want["dtype"].get<std::string>());
      CHECK(tensor.shape == want["shape"].get<std::vector<std::uint64_t>>());
      if (want.contains("stride")) CHECK(tensor.strides == want["stride"].get<std::vector<std::uint64_t>>());
      // Elements in row-major order, whatever the strides.
      std::vector<std::uint64_t> at(tensor.shape.size());
      for (std::uint64_t i = 0; i < tensor.elements(); ++i) {
        std::uint64_t rest = i, index = 0;
        for (std::size_t d = at.size(); d-- > 0;)
          index += rest % tensor.shape[d] * tensor.strides[d], rest /= tensor.shape[d];
        std::array<std::byte, 8> raw{};
        got.file().read(tensor.offset + index * tensor.element_bytes, std::span(raw).first(tensor.element_bytes));
        double value = 0;
        const auto as = [&]<class T>(T zero) {
          return std::memcpy(&zero, raw.data(), sizeof zero), static_cast<double>(zero);
        };
        using intaglio::dtype;
        if (!tensor.type) value = as(std::uint8_t{});
        else if (tensor.type == dtype::f64) value = as(double{});
        else if (tensor.type == dtype::f32) value = as(float{});
        else if (tensor.type == dtype::f16)
          value = static_cast<double>(intaglio::f32_from_f16(static_cast<std::uint16_t>(as(std::uint16_t{}))));
        else if (tensor.type == dtype::bf16)
          value = static_cast<double>(intaglio::f32_from_bf16(static_cast<std::uint16_t>(as(std::uint16_t{}))));
        else if (tensor.type == dtype::i64) value = as(std::int64_t{});
        else if (tensor.type == dtype::i32) value = as(std::int32_t{});
        else if (tensor.type == dtype::i16) value = as(std::int16_t{});
        else if (tensor.type == dtype::i8) value = as(std::int8_t{});
        else value = as(std::uint8_t{});
        const auto& v = want["values"][static_cast<std::size_t>(i)];
        CHECK(value == (v.is_boolean() ? (v.get<bool>() ? 1.0 : 0.0) : v.get<double>()));
      }
    }
  }
  CHECK_THROWS_WITH(
      torch_file{mapped_file(cases() / "must_be_refused.pth")},
      ContainsSubstring("pickle: global") && ContainsSubstring("found 'posix getcwd', which was not called"));
  CHECK_THROWS_WITH(torch_file{mapped_file(cases() / "legacy_not_zip.pt")},
                    ContainsSubstring("a bare pickle, as PyTorch wrote before 1.6"));
}
