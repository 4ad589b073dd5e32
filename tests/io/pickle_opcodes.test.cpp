// SPDX-License-Identifier: MIT
#include "intaglio/io/pickle_opcodes.hpp"

#include <catch2/catch_test_macros.hpp>
#include <iterator>
#include <set>

using namespace intaglio::io;

// Python's pickletools.opcodes has 68 rows: protocols 0 to 5.
static_assert(std::size(pickle_opcodes) == 68);
static_assert(name_of_opcode('c') == "GLOBAL" && name_of_opcode('R') == "REDUCE" && name_of_opcode('i') == "INST" &&
              name_of_opcode('o') == "OBJ");
static_assert(name_of_opcode(0x80) == "PROTO" && name_of_opcode('.') == "STOP" &&
              name_of_opcode(0x93) == "STACK_GLOBAL" && name_of_opcode(0x92) == "NEWOBJ_EX");
static_assert(name_of_opcode(0) == "no opcode" && name_of_opcode(0x7F) == "no opcode" &&
              name_of_opcode(0x99) == "no opcode" && name_of_opcode(0xFF) == "no opcode");

TEST_CASE("pickle opcodes: each code and each name once, every other byte is no opcode", "[torch]") {
  std::set<std::uint8_t> codes;
  std::set<std::string_view> names;
  for (const auto& [code, name] : pickle_opcodes) {
    INFO(name.view());
    CHECK(codes.insert(code).second);
    CHECK(names.insert(name).second);
    CHECK(name_of_opcode(code) == name);
  }
  for (unsigned code = 0; code < 256; ++code)
    CHECK((name_of_opcode(static_cast<std::uint8_t>(code)) == "no opcode") ==
          !codes.contains(static_cast<std::uint8_t>(code)));
}
