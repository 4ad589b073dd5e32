// SPDX-License-Identifier: MIT
#include "intaglio/kernels/reflection.hpp"

#include <catch2/catch_test_macros.hpp>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "intaglio/kernels/check_interfaces.hpp"
#include "kernels/tiny_module.hpp"
#include "paths.hpp"

namespace {

using namespace intaglio;
using namespace intaglio::kernels;

constexpr kernel_interface tiny{
    "tiny",
    {{{"weight"}, {"output"}, {"count", field_type::u32}, {"scale", field_type::f32}}},
    {{{"workgroup_size"}, {"width"}, {"eps", field_type::f32}, {"rounded", field_type::boolean}}}};
constexpr auto module = reflect(tiny_module);

static_assert(module.problem.empty() && module.entry_point == "main");
static_assert(module.push_count == 4 && module.push[1].name == "output" && module.push[1].type == spirv_type::address &&
              module.push[1].offset_bytes == 8);
static_assert(module.push[3].name == "scale" && module.push[3].type == spirv_type::f32 &&
              module.push[3].offset_bytes == 20);
static_assert(module.constant_count == 4 && module.constants[0].name == "workgroup_size");
static_assert(module.constants[1].id == 1 && module.constants[1].default_bits == 64 &&
              module.constants[3].type == spirv_type::boolean);
static_assert(std::bit_cast<float>(module.constants[2].default_bits) == 1e-5f);
static_assert(module.needs(1) && module.needs(5347) &&
              !module.needs(9));  // Shader, PhysicalStorageBufferAddresses; not Float16
static_assert(module.local_size_id[0] == 0 && module.local_size[1] == 1 && module.local_size[2] == 1);

static_assert(matches(tiny, tiny_module).empty());
static_assert(shader_interface<matches(tiny, tiny_module)>::agrees);

/// The constant at index i of a list in which the one at index `at` is `to`.
template <class Constant>
constexpr Constant changed_at(const constant_list<Constant>& from, std::size_t i, std::size_t at, Constant to) {
  if (i == at) return to;
  return i < from.size() ? from[i] : Constant{};
}
/// The difference between the tiny module and its interface with another constant at index `at`.
constexpr text<> difference_with(std::size_t at, push_constant to) {
  const auto one = [&](std::size_t i) { return changed_at(tiny.push, i, at, to); };
  const kernel_interface out{"tiny", {{one(0), one(1), one(2), one(3), one(4)}}, {tiny.specialization.items}};
  return matches(out, tiny_module);
}
constexpr text<> difference_with(std::size_t at, specialization_constant to) {
  const auto one = [&](std::size_t i) { return changed_at(tiny.specialization, i, at, to); };
  const kernel_interface out{"tiny", {tiny.push.items}, {{one(0), one(1), one(2), one(3), one(4)}}};
  return matches(out, tiny_module);
}

static_assert(
    difference_with(0, push_constant{"weights"}) ==
    "tiny: push constant 0 is 'weight' at offset 0 in the shader, 'weights' at offset 0 in the C++ interface");
static_assert(difference_with(2, push_constant{"count", field_type::address}) ==
              "tiny: push constant 2, 'count', is u32 in the shader, an address in the C++ interface");
static_assert(difference_with(1, push_constant{"output", field_type::u32}) ==
              "tiny: push constant 1, 'output', is an address in the shader, u32 in the C++ interface");
static_assert(difference_with(0, push_constant{"weight", field_type::u32}) ==
              "tiny: push constant 0, 'weight', is an address in the shader, u32 in the C++ interface");
static_assert(difference_with(3, push_constant{}) ==
              "tiny: push constant 3 is 'scale' at offset 20 in the shader, missing in the C++ interface");
static_assert(difference_with(4, push_constant{"more"}) ==
              "tiny: push constant 4 is missing in the shader, 'more' at offset 24 in the C++ interface");
static_assert(difference_with(1, specialization_constant{"height"}) ==
              "tiny: specialization constant 1 is 'width' in the shader, 'height' in the C++ interface");
static_assert(difference_with(2, specialization_constant{"eps"}) ==
              "tiny: specialization constant 2, 'eps', is f32 in the shader, u32 in the C++ interface");
static_assert(difference_with(3, specialization_constant{}) ==
              "tiny: specialization constant 3 is 'rounded' in the shader, missing in the C++ interface");
static_assert(difference_with(4, specialization_constant{"more"}) ==
              "tiny: specialization constant 4 is missing or unused in the shader, 'more' in the C++ interface");

/// The tiny module with one instruction's operand replaced; `nth` counts instructions of that opcode.
std::string with_operand(std::uint32_t opcode, std::size_t nth, std::uint32_t index, std::uint32_t value) {
  std::string out(tiny_module, sizeof tiny_module - 1);
  std::vector<std::uint32_t> words(out.size() / 4);
  std::memcpy(words.data(), out.data(), out.size());
  for (std::size_t at = 5; at < words.size(); at += words[at] >> 16)
    if ((words[at] & 0xFFFF) == opcode && nth-- == 0) words[at + index] = value;
  std::memcpy(out.data(), words.data(), out.size());
  return out;
}

TEST_CASE("a wrong offset, two types of one id, and a fixed workgroup are found") {
  CHECK(difference(tiny, reflect(with_operand(72, 1, 4, 12))) ==
        "tiny: push constant 1 is 'output' at offset 12 in the shader, 'output' at offset 8 in the C++ interface");
  CHECK(difference(tiny, reflect(with_operand(331, 0, 2, 17)))
            .view()
            .find("tiny: the workgroup is not as wide as specialization constant 0") == 0);
  CHECK(difference(tiny, reflect(with_operand(15, 0, 1, 4))).view().find("its entry point is no compute shader") !=
        std::string_view::npos);
}

TEST_CASE("words that are no module are recognised") {
  CHECK(reflect(std::string_view{}).problem == "it does not begin with SPIR-V's magic number");
  CHECK(reflect(std::string_view("abc")).problem == "its size is no multiple of 4");
  CHECK(reflect(std::string_view("\x07\x23\x02\x03 big endian is no module", 28)).problem ==
        "it does not begin with SPIR-V's magic number");
  CHECK(difference(tiny, reflect(std::string_view{})) ==
        "tiny: the SPIR-V module is unusable at word 0: it does not begin with SPIR-V's magic number");
}

TEST_CASE("every shortened module ends in a problem or in the whole answer") {
  for (std::size_t size = 0; size < sizeof tiny_module - 1; ++size) {
    const std::vector<char> cut(tiny_module,
                                tiny_module + size);  // exactly as large, so that a read past the end shows
    const auto found = reflect(std::string_view(cut.data(), cut.size()));
    CHECK((!found.problem.empty() || difference(tiny, found).empty()));
  }
}

TEST_CASE("garbage ends", "[law]") {
  std::mt19937 random(17);
  int unusable = 0, different = 0;
  for (int run = 0; run < 20'000; ++run) {
    std::vector<char> module(tiny_module, tiny_module + sizeof tiny_module - 1);
    for (unsigned edits = 1 + random() % 4; edits > 0; --edits) {
      const std::size_t at = random() % module.size();
      if (random() % 2) module[at] = static_cast<char>(random());
      else if (random() % 2) module[at / 4 * 4 + 3] = static_cast<char>(random());  // lengths
      else module.resize(4 + at / 4 * 4);
    }
    const auto found = reflect(std::string_view(module.data(), module.size()));
    unusable += !found.problem.empty();
    different += !difference(tiny, found).empty();
  }
  CHECK(unusable > 1000);
  CHECK(different > unusable);
  for (int run = 0; run < 2000; ++run) {
    std::vector<char> noise(20 + random() % 64 * 4);
    for (auto& byte : noise) byte = static_cast<char>(random() % 8 == 0 ? random() : 0);
    std::memcpy(noise.data(), "\x03\x02\x23\x07", 4);
    CHECK(!reflect(std::string_view(noise.data(), noise.size())).problem.empty());
  }
}

TEST_CASE("every embedded shader is compared with its interface") {
  const std::filesystem::path kernels = in_source("include/intaglio/kernels");
  std::ifstream file(kernels / "check_interfaces.hpp");
  std::string text((std::istreambuf_iterator<char>(file)), {});
  std::erase_if(text, [](char c) { return c == ' ' || c == '\n'; });
  std::size_t shaders = 0;
  for (const auto& entry : std::filesystem::directory_iterator(kernels / "spirv")) {
    INFO(entry.path());
    if (entry.path().stem() == "demands") continue;  // what the modules demand, no module
    const std::string module = ",spirv::" + entry.path().stem().string() + "_spirv";
    CHECK((text.find(module + ")>::agrees") != std::string::npos ||
           text.find(module + ",unused_constants::allowed)>::agrees") != std::string::npos));
    ++shaders;
  }
  CHECK(shaders >= kernel_count);
}

}  // namespace
