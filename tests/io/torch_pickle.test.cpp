// SPDX-License-Identifier: MIT
#include "intaglio/io/torch_pickle.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "torch_image.hpp"

using Catch::Matchers::ContainsSubstring;
using namespace intaglio::io;
using namespace pickled;

namespace {

torch_pickle read(const std::string& pickle) { return torch_pickle(std::as_bytes(std::span(pickle)), "memory", 0); }
std::string refusal(const std::string& pickle) {
  try {
    read(pickle);
  } catch (const intaglio::file_error& problem) { return problem.what(); }
  return "accepted";
}
const std::string floats = storage("FloatStorage", "0", 12);
std::string one(const std::string& value) { return file(dict({{"a", value}})); }
std::string viewed(std::int64_t offset, const std::vector<std::int64_t>& shape,
                   const std::vector<std::int64_t>& strides) {
  return one(tensor(floats, offset, shape, strides));
}

}  // namespace

TEST_CASE("torch_pickle: tensors of a dict, and of the dicts in it") {
  const auto inner = dict({{"b", tensor(floats, 1, {2}, {1})}, {"c", dict({{"d", tensor(floats, 0, {}, {})}})}});
  const auto got = read(file(dict({{"a", tensor(floats, 4, {2, 4}, {4, 1})},
                                   {"x", inner},
                                   {"epoch", number(-7)},
                                   {"lists", "](" + number(1) + "e"}})));
  REQUIRE(got.tensors().size() == 3);
  CHECK((got.tensors()[0].name == "a" && got.tensors()[1].name == "x.b" && got.tensors()[2].name == "x.c.d"));
  CHECK((got.tensors()[0].offset == 4 && got.tensors()[0].shape == std::vector<std::uint64_t>{2, 4} &&
         got.tensors()[0].strides == std::vector<std::uint64_t>{4, 1}));
  REQUIRE(got.storages().size() == 1);
  CHECK(
      (got.storages()[0].key == "0" && got.storages()[0].elements == 12 && got.storages()[0].type->name == "float32"));
  // One dict that holds all is looked through.
  CHECK(read(file(dict({{"model", inner}, {"step", number(1)}}))).tensors()[0].name == "b");
  // An OrderedDict with a state, which says nothing, a parameter, and a value out of the memo.
  const auto parameter =
      global("torch._utils", "_rebuild_parameter") + tuple({tensor(floats, 0, {3}, {1}), "\x88", ordered_dict()}) + "R";
  const auto ordered = read(file(ordered_dict() + text("p") + "q\1" + parameter + "sq\2(" + text("q") +
                                 tensor(floats, 0, {1}, {1}) + "u" + dict({{"_metadata", "N"}, {"p", "h\1"}}) + "b"));
  CHECK((ordered.tensors().size() == 2 && ordered.tensors()[0].name == "p" && ordered.tensors()[1].name == "q"));
}

TEST_CASE("torch_pickle: no global beside a short list, and no opcode that could call one") {
  for (const auto& [module, which] : {std::pair{"os", "system"},
                                      {"builtins", "eval"},
                                      {"posix", "getcwd"},
                                      {"torch", "load"},
                                      {"torch._utils", "_rebuild_tensor"},
                                      {"collections", "defaultdict"},
                                      {"torch.storage", "FloatStorage"},
                                      {"torch", "FloatStorage.__class__"},
                                      {"torch._utils\r", "_rebuild_tensor_v2"}}) {
    CHECK_THAT(refusal(file(global(module, which) + tuple({text("id")}) + "R")),
               ContainsSubstring("pickle: global: expected OrderedDict") && ContainsSubstring("which was not called"));
    CHECK_THAT(refusal(file(global(module, which) + "0" + dict({}))),
               ContainsSubstring("pickle: global"));  // not even where nothing uses it
  }
  for (const auto& [opcode, name] : {std::pair{"\x93", "STACK_GLOBAL (0x93)"},
                                     {"i", "INST (0x69)"},
                                     {"o", "OBJ (0x6f)"},
                                     {"\x81", "NEWOBJ (0x81)"},
                                     {"\x92", "NEWOBJ_EX (0x92)"},
                                     {"\x82", "EXT1 (0x82)"},
                                     {"\x83", "EXT2 (0x83)"},
                                     {"\x84", "EXT4 (0x84)"},
                                     {"P", "PERSID (0x50)"},
                                     {"0", "POP (0x30)"},
                                     {"2", "DUP (0x32)"},
                                     {"1", "POP_MARK (0x31)"},
                                     {"\x94", "MEMOIZE (0x94)"},
                                     {"\x95", "FRAME (0x95)"},
                                     {"B", "BINBYTES (0x42)"},
                                     {"I", "INT (0x49)"},
                                     {"\xFF", "no opcode (0xff)"}})
    CHECK_THAT(
        refusal(file(dict({}) + opcode)),
        ContainsSubstring("pickle: opcode: expected one that a dict of tensors needs, found " + std::string(name)));
  const auto reduced = [](const std::string& callable, const std::string& arguments) {
    return refusal(file(callable + arguments + "R"));
  };
  CHECK_THAT(
      reduced(global("torch", "FloatStorage"), ")"),
      ContainsSubstring(
          "pickle: REDUCE: expected OrderedDict, _rebuild_tensor_v2 or _rebuild_parameter, found a storage type"));
  CHECK_THAT(reduced(text("eval"), ")"), ContainsSubstring("found a string"));
  CHECK_THAT(reduced(global("collections", "OrderedDict"), tuple({number(1)})),
             ContainsSubstring("OrderedDict: expected no arguments, found 1"));
  CHECK_THAT(reduced(global("collections", "OrderedDict"), "]"),
             ContainsSubstring("arguments of REDUCE: expected a tuple, found a list"));
  CHECK_THAT(reduced(global("torch._utils", "_rebuild_tensor_v2"), ")"),
             ContainsSubstring("_rebuild_tensor_v2: expected 6 or 7 arguments, found 0"));
  CHECK_THAT(reduced(global("torch._utils", "_rebuild_parameter"), tuple({number(1), "\x88", "N"})),
             ContainsSubstring("parameter: expected a tensor, found an integer"));
  CHECK_THAT(refusal(file(dict({}) + "Nb")), ContainsSubstring("BUILD: expected an OrderedDict, found a dict"));
}

TEST_CASE("torch_pickle: the stack, marks and the memo hold what is taken from them") {
  const std::vector<std::pair<std::string, std::string>> wrong{
      {"", "pickle: expected PROTO 2, found nothing"},
      {"\x80\x04}.", "pickle: expected PROTO 2, found other bytes"},
      {"\x80\x02", "pickle: opcode: expected 1 bytes, found 0 left"},
      {"\x80\x02.", "STOP: expected one value on the stack, found 0 and 0 marks"},
      {"\x80\x02}(.", "found 1 and 1 marks"},
      {file("}") + "}", "pickle: bytes after STOP: expected none, found 1"},
      {file("t"), "TUPLE: expected a MARK before it, found none"},
      {file("\x85"), "TUPLE: expected a value on the stack, found none"},
      {file("N(\x85"), "TUPLE: expected a value on the stack, found none"},
      {file("s"), "SETITEM: expected a value on the stack"},
      {file("}(Nu"), "SETITEMS: expected keys with values, found 1 values"},
      {file("]" + text("k") + "Ns"), "SETITEM: expected a dict, found a list"},
      {file("})Ns"), "key of a dict: expected a string or an integer, found a tuple"},
      {file("}Na"), "APPEND: expected a list, found a dict"},
      {file("h\5"), "memo: expected a slot that was filled, found 5"},
      {file("}r" + packed(0xFFFFFFFFu)), "memo: expected a slot below 262144, found 4294967295"},
      {file("q\1"), "BINPUT: expected a value on the stack"},
      {file("X" + packed(0xFFFFFFF0u) + "a"), "BINUNICODE: expected 4294967280 bytes, found 2 left"},
      {file(text("\xC3\x28")), "BINUNICODE: expected UTF-8 text"},
      {file("\x8A\x09" + std::string(9, '\0')), "LONG1: expected at most 8 bytes, found 9"},
      {file("cos"), "GLOBAL: expected a line of at most 256 bytes, found none"},
      {file(text("storage") + "Q"), "persistent id: expected a tuple, found a string"},
      {file(number(1)), "outermost value: expected a dict of tensors, found an integer"},
      {file("}"), "pickle: tensors: expected one or more, found none"}};
  for (const auto& [pickle, text] : wrong) CHECK_THAT(refusal(pickle), ContainsSubstring(text));
}

TEST_CASE("torch_pickle: every element of a tensor is in its storage") {
  CHECK(refusal(viewed(0, {3, 4}, {4, 1})) == "accepted");
  CHECK(refusal(viewed(0, {4, 3}, {1, 4})) == "accepted");
  CHECK(refusal(viewed(11, {1}, {99})) == "accepted");
  CHECK(refusal(viewed(0, {7, 3}, {0, 1})) == "accepted");
  CHECK(refusal(viewed(12, {0, 4}, {4, 1})) == "accepted");
  const std::string past = "tensor 'a': its elements run past storage 0: expected the last one below 12, found ";
  CHECK_THAT(refusal(viewed(1, {3, 4}, {4, 1})), ContainsSubstring(past + "12"));
  CHECK_THAT(refusal(viewed(12, {}, {})), ContainsSubstring(past + "12"));
  CHECK_THAT(refusal(viewed(13, {0}, {1})), ContainsSubstring("its elements run past storage 0"));
  CHECK_THAT(refusal(viewed(0, {3}, {INT64_MAX})), ContainsSubstring(past));
  CHECK_THAT(refusal(viewed(INT64_MAX, {INT64_MAX, 3}, {INT64_MAX, INT64_MAX})),
             ContainsSubstring(past + "one from 2^64"));
  CHECK_THAT(refusal(viewed(0, {1 << 20, 1 << 20}, {0, 0})),
             ContainsSubstring("tensor 'a': number of elements: expected at most 16777216, found 1099511627776"));
  CHECK_THAT(refusal(viewed(-1, {3}, {1})),
             ContainsSubstring("offset of a tensor: expected a number from 0, found -1"));
  CHECK_THAT(refusal(viewed(11, {3}, {-1})),
             ContainsSubstring("strides of a tensor: expected a number from 0, found -1"));
  CHECK_THAT(refusal(viewed(0, {3, 4}, {4})), ContainsSubstring("strides of a tensor: expected 2, found 1"));
  CHECK_THAT(refusal(viewed(0, std::vector<std::int64_t>(9, 1), std::vector<std::int64_t>(9, 1))),
             ContainsSubstring("at most 8 dimensions, found 9"));
  const auto pair = [](const std::string& other) {
    return refusal(file(dict({{"a", tensor(floats, 0, {1}, {1})}, {"b", tensor(other, 0, {1}, {1})}})));
  };
  CHECK_THAT(pair(storage("HalfStorage", "0", 12)),
             ContainsSubstring("storage 0: expected 12 of float32 as before, found 12 of float16"));
  CHECK_THAT(pair(storage("FloatStorage", "0", 13)),
             ContainsSubstring("expected 12 of float32 as before, found 13 of float32"));
  CHECK_THAT(pair(storage("FloatStorage", "../1", 12)),
             ContainsSubstring("key of a storage: expected a number, found '../1'"));
  CHECK_THAT(refusal(file(dict({{"a", tensor(floats, 0, {1}, {1})}, {"a", tensor(floats, 0, {1}, {1})}}))),
             ContainsSubstring("tensor 'a' occurs twice"));
  CHECK_THAT(refusal(file(dict({{"a\n", tensor(floats, 0, {1}, {1})}}))), ContainsSubstring("name of a tensor"));
}

TEST_CASE("torch_pickle: bombs end at a limit") {
  std::string lists = "\x80\x02";
  for (int i = 0; i < 1'000'000; ++i) lists += ']';
  CHECK_THAT(refusal(lists), ContainsSubstring("number of values: expected at most 262144, found more"));
  std::string marks = "\x80\x02" + std::string(1'000'000, '(');
  CHECK_THAT(refusal(marks), ContainsSubstring("number of values"));
  // 2^25 dicts by sharing: each holds the one before it twice.
  const auto slot = [](int i) { return std::string(1, static_cast<char>(i)); };
  std::string shared = "}(" + text("t") + tensor(floats, 0, {1}, {1}) + text("0") +
                       dict({{"a", tensor(floats, 0, {1}, {1})}}) + "q" + slot(1);
  for (int i = 1; i < 25; ++i)
    shared +=
        text(std::to_string(i)) + "}(" + text("x") + "h" + slot(i) + text("y") + "h" + slot(i) + "uq" + slot(i + 1);
  CHECK_THAT(refusal(file(shared + "u")),
             ContainsSubstring("values, with those that are there several times: expected at most 1048576"));
  std::string deep = tensor(floats, 0, {1}, {1});
  for (int i = 0; i < 40; ++i) deep = dict({{"d", deep}, {"e", tensor(floats, 0, {1}, {1})}});
  CHECK_THAT(refusal(file(deep)), ContainsSubstring("dicts in dicts: expected at most 32, found more"));
}

TEST_CASE("torch_pickle: a container that holds itself, or grows without end, is refused by name") {
  const std::string one_tensor = text("t") + tensor(floats, 0, {1}, {1}), odd = text("odd");
  const auto with = [&](const std::string& value) { return refusal(file("}(" + one_tensor + odd + value + "u")); };
  CHECK(with("](" + number(1) + "](" + number(2) + "ee") == "accepted");
  CHECK(with("](" + number(1) + "q\1h\1h\1e") == "accepted");
  CHECK_THAT(refusal(file("}q\1(" + one_tensor + text("self") + "h\1u")),
             ContainsSubstring("pickle: a dict holds itself"));
  CHECK_THAT(with("]q\1h\1a"), ContainsSubstring("pickle: a list holds itself: expected plain data"));
  CHECK_THAT(with("]q\1(h\1e"), ContainsSubstring("a list holds itself"));
  // Through a tuple, a dict, and a list that comes later.
  CHECK_THAT(with("]q\1(h\1h\1ta"), ContainsSubstring("holds itself"));
  CHECK_THAT(with("]q\1(" + number(1) + "(h\1te"), ContainsSubstring("holds itself"));
  CHECK_THAT(with("]q\1}(" + text("x") + "h\1ua"), ContainsSubstring("holds itself"));
  CHECK_THAT(with("]q\1(]q\2h\1ae"), ContainsSubstring("holds itself"));
  // The state of an OrderedDict is thrown away, and judged before that.
  CHECK_THAT(refusal(file(ordered_dict() + "(" + one_tensor + "u]q\1h\1ab")), ContainsSubstring("a list holds itself"));
  // Each of 40 lists holds the one before it twice: 2^40 values in 400 bytes.
  const auto slot = [](int i) { return std::string(1, static_cast<char>(i)); };
  for (const auto& [open, close] : {std::pair{"](", "e"}, {"(", "t"}}) {
    std::string bomb = std::string(open) + number(1) + close + "q" + slot(1);
    for (int i = 1; i < 40; ++i) bomb += std::string(open) + "h" + slot(i) + "h" + slot(i) + close + "q" + slot(i + 1);
    std::string all = "](" + bomb + "e";
    CHECK_THAT(with(all), ContainsSubstring("values, with those that are there several times: expected at most"));
  }
  std::string deep = number(1);
  for (int i = 0; i < 1000; ++i) deep = "](" + deep + "e";
  CHECK_THAT(with(deep), ContainsSubstring("containers nested too deep: expected at most 256 levels"));
}
