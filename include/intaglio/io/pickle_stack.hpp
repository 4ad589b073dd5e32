// SPDX-License-Identifier: MIT
// Values of a pickle, its stack and its memo. Opcodes: Python's Lib/pickle.py.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "intaglio/core/checked.hpp"
#include "intaglio/core/error.hpp"
#include "intaglio/io/torch_storage.hpp"
#include "intaglio/io/unicode.hpp"

namespace intaglio::io {

/// The values of a pickle while its opcodes run: plain data of bounded size.
class pickle_stack {
 protected:
  pickle_stack(std::string_view bytes, std::string path, std::uint64_t offset)
      : bytes_(bytes), path_(std::move(path)), offset_(offset) {}

  enum class kind : std::uint8_t {
    none,
    boolean,
    integer,
    real,
    text,
    tuple,
    list,
    dict,
    set,
    storage_type,
    make_dict,
    make_tensor,
    make_parameter,
    storage,
    tensor
  };
  using index = std::uint32_t;
  struct value {
    kind what = kind::none;
    bool ordered = false;     ///< a dict that OrderedDict created
    std::int64_t number = 0;  ///< integer; index into containers_, storages_, views_ or torch_storage_types
    std::string_view text{};
  };

  [[noreturn]] void refuse(std::size_t at, std::string what, std::string expected = {}, std::string found = {}) const {
    throw file_error(path_, offset_ + at, std::move(what), std::move(expected), std::move(found));
  }

  // Functions that read the opcode's arguments.
  std::string_view take(std::size_t count, std::string_view what) {
    if (count > bytes_.size() - at_)
      refuse(at_, "pickle: " + std::string(what), std::to_string(count) + " bytes",
             std::to_string(bytes_.size() - at_) + " left");
    const auto out = bytes_.substr(at_, count);
    at_ += count;
    return out;
  }
  template <class T>
  T number(std::string_view what) {
    T out;
    std::memcpy(&out, take(sizeof(T), what).data(), sizeof(T));
    return out;
  }
  std::string_view line(std::string_view what) {
    const std::size_t end = bytes_.find('\n', at_);
    if (end == std::string_view::npos || end - at_ > 256)
      refuse(at_, "pickle: " + std::string(what), "a line of at most 256 bytes", "none");
    const auto out = bytes_.substr(at_, end - at_);
    at_ = end + 1;
    return out;
  }

  // Values and the stack.
  void count_element() {
    if (++elements_ > torch_limits::values)
      refuse(begin_, "pickle: number of values", "at most " + std::to_string(torch_limits::values), "more");
  }
  index make(value made) {
    count_element();
    values_.push_back(made);
    return static_cast<index>(values_.size() - 1);
  }
  index make_container(kind what, std::span<const index> items) {
    containers_.emplace_back(items.begin(), items.end());
    container_offsets_.push_back(begin_);
    for (std::size_t i = 0; i < items.size(); ++i) count_element();
    return make({what, false, static_cast<std::int64_t>(containers_.size() - 1)});
  }

  void push(index at) { stack_.push_back(at); }
  index pop(std::string_view what) {
    // Values below a mark can be reached only by opcodes that remove the mark.
    if (stack_.empty() || (!marks_.empty() && stack_.size() == marks_.back()))
      refuse(begin_, "pickle: " + std::string(what), "a value on the stack", "none");
    const index out = stack_.back();
    stack_.pop_back();
    return out;
  }
  std::vector<index> pop_to_mark(std::string_view what) {
    if (marks_.empty()) refuse(begin_, "pickle: " + std::string(what), "a MARK before it", "none");
    std::vector<index> out(stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back()), stack_.end());
    stack_.resize(marks_.back());
    marks_.pop_back();
    return out;
  }
  std::vector<index>& items(index of) { return containers_[static_cast<std::size_t>(values_[of].number)]; }
  const value& expect(index at, kind what, std::string_view which) const {
    if (values_[at].what != what)
      refuse(begin_, "pickle: " + std::string(which), std::string(name(what)), std::string(name(values_[at].what)));
    return values_[at];
  }
  static std::string_view name(kind what) {
    constexpr std::string_view names[] = {"None",
                                          "a bool",
                                          "an integer",
                                          "a float",
                                          "a string",
                                          "a tuple",
                                          "a list",
                                          "a dict",
                                          "a set",
                                          "a storage type",
                                          "OrderedDict",
                                          "_rebuild_tensor_v2",
                                          "_rebuild_parameter",
                                          "a storage",
                                          "a tensor"};
    return names[static_cast<std::size_t>(what)];
  }
  std::uint64_t natural(index at, std::string_view which) const {
    const value& got = expect(at, kind::integer, which);
    if (got.number < 0) refuse(begin_, "pickle: " + std::string(which), "a number from 0", std::to_string(got.number));
    return static_cast<std::uint64_t>(got.number);
  }
  static bool is_container(kind what) {
    return what == kind::tuple || what == kind::list || what == kind::dict || what == kind::set;
  }

  void tuple(std::size_t count) {
    index parts[3]{};
    for (std::size_t i = count; i-- > 0;) parts[i] = pop("TUPLE");
    push(make_container(kind::tuple, std::span<const index>(parts, count)));
  }
  void long_integer() {
    const std::size_t count = number<std::uint8_t>("LONG1");
    if (count > 8) refuse(begin_, "pickle: LONG1", "at most 8 bytes", std::to_string(count));
    const auto digits = take(count, "LONG1");
    std::uint64_t out = count != 0 && (static_cast<unsigned char>(digits.back()) & 0x80) != 0 ? ~std::uint64_t{0} : 0;
    for (std::size_t i = count; i-- > 0;) out = (out << 8) | static_cast<unsigned char>(digits[i]);
    push(make({kind::integer, false, std::bit_cast<std::int64_t>(out)}));
  }
  void text(std::size_t count, std::string_view what) {
    const auto got = take(count, what);
    if (!is_utf8(got)) refuse(begin_, "pickle: " + std::string(what), "UTF-8 text", "'" + printable(got, 60) + "'");
    push(make({kind::text, false, 0, got}));
  }
  void put(std::uint32_t slot) {
    if (slot >= torch_limits::values)
      refuse(begin_, "pickle: memo", "a slot below " + std::to_string(torch_limits::values), std::to_string(slot));
    const index top = pop("BINPUT");
    push(top);
    count_element();
    memo_[slot] = top;
  }
  void get(std::uint32_t slot) {
    const auto found = memo_.find(slot);
    if (found == memo_.end()) refuse(begin_, "pickle: memo", "a slot that was filled", std::to_string(slot));
    count_element();
    push(found->second);
  }
  void set_items(std::size_t count, std::string_view what) {
    std::vector<index> pairs;
    if (count != 0) pairs = {pop(what), pop(what)}, std::swap(pairs[0], pairs[1]);
    else pairs = pop_to_mark(what);
    if (pairs.size() % 2 != 0)
      refuse(begin_, "pickle: " + std::string(what), "keys with values", std::to_string(pairs.size()) + " values");
    const index dict = pop(what);
    push(dict);
    expect(dict, kind::dict, what);
    for (std::size_t i = 0; i < pairs.size(); ++i) {
      const kind key = values_[pairs[i]].what;
      if (i % 2 == 0 && key != kind::text && key != kind::integer)
        refuse(begin_, "pickle: key of a dict", "a string or an integer", std::string(name(key)));
      count_element();
      items(dict).push_back(pairs[i]);
    }
  }
  void append(std::size_t count, std::string_view what) {
    std::vector<index> more;
    if (count != 0) more = {pop(what)};
    else more = pop_to_mark(what);
    const index list = pop(what);
    push(list);
    expect(list, kind::list, what);
    for (const index item : more) {
      count_element();
      items(list).push_back(item);
    }
  }

  /// Refuses a container that holds itself, and containers that expand to more values than a pickle of plain data has:
  /// a list that has one list twice, which again has a list twice, and so on, is short in the file and endless when
  /// written out.
  void expect_finite() const {
    struct extent {
      bool open = false, done = false;
      std::uint64_t values = 1;
      std::size_t depth = 1;
    };
    struct step {
      std::size_t container, next;
    };
    std::vector<extent> extents(containers_.size());
    std::vector<step> path;
    const auto refuse_here = [&](std::size_t container, std::string what, std::string expected) {
      refuse(container_offsets_[container], "pickle: " + std::move(what), std::move(expected));
    };
    for (std::size_t start = 0; start < containers_.size(); ++start) {
      if (extents[start].done) continue;
      path.push_back({start, 0});
      extents[start].open = true;
      while (!path.empty()) {
        const auto [at, next] = path.back();
        extent& outer = extents[at];
        if (next == containers_[at].size()) {
          outer.open = false, outer.done = true;
          path.pop_back();
          continue;
        }
        const value& item = values_[containers_[at][next]];
        const auto inner = static_cast<std::size_t>(item.number);
        if (is_container(item.what) && !extents[inner].done) {
          if (extents[inner].open) refuse_here(inner, std::string(name(item.what)) + " holds itself", "plain data");
          if (path.size() >= torch_limits::container_depth)
            refuse_here(inner, "containers nested too deep",
                        "at most " + std::to_string(torch_limits::container_depth) + " levels");
          extents[inner].open = true;
          path.push_back({inner, 0});
          continue;
        }
        ++path.back().next;
        outer.values += is_container(item.what) ? extents[inner].values : 1;
        if (is_container(item.what)) outer.depth = (std::max)(outer.depth, extents[inner].depth + 1);
        if (outer.values > torch_limits::expanded_values)
          refuse_here(at, "values, with those that are there several times",
                      "at most " + std::to_string(torch_limits::expanded_values));
        if (outer.depth > torch_limits::container_depth)
          refuse_here(at, "containers nested too deep",
                      "at most " + std::to_string(torch_limits::container_depth) + " levels");
      }
    }
  }

  std::string_view bytes_;
  std::string path_;
  std::uint64_t offset_;
  std::size_t at_ = 0, begin_ = 0, elements_ = 0;
  std::vector<value> values_;
  std::vector<std::vector<index>> containers_;
  std::vector<std::size_t> container_offsets_;  ///< where each container was made
  std::vector<index> stack_;
  std::vector<std::size_t> marks_;
  std::unordered_map<std::uint32_t, index> memo_;
};

}  // namespace intaglio::io
