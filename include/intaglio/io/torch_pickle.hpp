// SPDX-License-Identifier: MIT
// The tensors that a data.pkl of torch.save describes. This is not Python's pickle: opcodes and globals of a short list
// build plain data, and nothing is ever called. Opcodes: Python's Lib/pickle.py; globals: torch/_utils.py and
// torch/_weights_only_unpickler.py.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "intaglio/core/checked.hpp"
#include "intaglio/core/error.hpp"
#include "intaglio/io/pickle_opcodes.hpp"
#include "intaglio/io/torch_objects.hpp"
#include "intaglio/io/torch_storage.hpp"
#include "intaglio/io/unicode.hpp"

namespace intaglio::io {

/// One parsed data.pkl.
class torch_pickle : private torch_objects {
 public:
  /// @param bytes the pickle; only read during construction  @param offset of it in the file, for errors
  /// @throws file_error naming opcode, global or tensor at fault
  torch_pickle(std::span<const std::byte> bytes, std::string path, std::uint64_t offset)
      : torch_objects({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, std::move(path), offset) {
    if (bytes.size() > torch_limits::pickle_bytes)
      refuse(0, "pickle", "at most " + std::to_string(torch_limits::pickle_bytes) + " bytes",
             std::to_string(bytes.size()));
    const index top = run();
    expect_finite();
    collect(top);
    values_ = {};
    containers_ = {};
    container_offsets_ = {};
    memo_ = {};
    bytes_ = {};
  }

  /// The storages that tensors name, in the order in which the pickle first names them.
  const std::vector<torch_storage>& storages() const { return storages_; }
  /// Tensors of the outermost dict, and of dicts in it, whose keys are put in front with a dot. A single dict that
  /// holds all tensors (as in {"model": ...}) adds no prefix.
  const std::vector<torch_view>& tensors() const { return tensors_; }

 private:
  /// @return the value that STOP found
  index run() {
    if (bytes_.size() < 2 || bytes_[0] != '\x80' || bytes_[1] != '\x02')
      refuse(0, "pickle", "PROTO 2", bytes_.empty() ? "nothing" : "other bytes");
    at_ = 2;
    for (;;) {
      begin_ = at_;
      const auto code = number<std::uint8_t>("opcode");
      if (code == '.') return stop();
      if (!makes_scalar(code) && !makes_container(code) && !fills_container(code) && !makes_object(code))
        refuse(begin_, "pickle: opcode", "one that a dict of tensors needs",
               std::string(name_of_opcode(code)) + " (" + hexadecimal(code) + ")");
    }
  }
  /// Runs an opcode that pushes None, a number or a text. @return whether it is one
  bool makes_scalar(std::uint8_t code) {
    switch (code) {
      case 'N':
        return push(make({})), true;
      case 0x88:
      case 0x89:
        return push(make({kind::boolean, false, code == 0x88})), true;
      case 'J':
        return push(make({kind::integer, false, number<std::int32_t>("BININT")})), true;
      case 'K':
        return push(make({kind::integer, false, number<std::uint8_t>("BININT1")})), true;
      case 'M':
        return push(make({kind::integer, false, number<std::uint16_t>("BININT2")})), true;
      case 0x8A:
        return long_integer(), true;
      case 'G':
        return take(8, "BINFLOAT"), push(make({kind::real})), true;
      case 'X':
        return text(number<std::uint32_t>("BINUNICODE"), "BINUNICODE"), true;
      case 'U':
        return text(number<std::uint8_t>("SHORT_BINSTRING"), "SHORT_BINSTRING"), true;
      default:
        return false;
    }
  }
  /// Runs an opcode that pushes a mark, a dict, a list, a tuple or a set. @return whether it is one
  bool makes_container(std::uint8_t code) {
    switch (code) {
      case '(':
        return marks_.push_back(stack_.size()), count_element(), true;
      case '}':
        return push(make_container(kind::dict, {})), true;
      case ']':
        return push(make_container(kind::list, {})), true;
      case ')':
        return push(make_container(kind::tuple, {})), true;
      case 0x8F:
        return push(make_container(kind::set, {})), true;
      case 't':
        return push(make_container(kind::tuple, pop_to_mark("TUPLE"))), true;
      case 0x85:
      case 0x86:
      case 0x87:
        return tuple(static_cast<std::size_t>(code - 0x84)), true;
      default:
        return false;
    }
  }
  /// Runs an opcode that puts values into a container or the memo, or gets them from the memo. @return whether it is
  /// one
  bool fills_container(std::uint8_t code) {
    switch (code) {
      case 'q':
        return put(number<std::uint8_t>("BINPUT")), true;
      case 'r':
        return put(number<std::uint32_t>("LONG_BINPUT")), true;
      case 'h':
        return get(number<std::uint8_t>("BINGET")), true;
      case 'j':
        return get(number<std::uint32_t>("LONG_BINGET")), true;
      case 's':
        return set_items(2, "SETITEM"), true;
      case 'u':
        return set_items(0, "SETITEMS"), true;
      case 'a':
        return append(1, "APPEND"), true;
      case 'e':
        return append(0, "APPENDS"), true;
      default:
        return false;
    }
  }
  /// Runs an opcode that names a global or builds an object of one. @return whether it is one
  bool makes_object(std::uint8_t code) {
    switch (code) {
      case 'c':
        return global(), true;
      case 'R':
        return reduce(), true;
      case 'b':
        return build(), true;
      case 'Q':
        return persistent(), true;
      default:
        return false;
    }
  }
  index stop() {
    if (stack_.size() != 1 || !marks_.empty())
      refuse(begin_, "pickle: STOP", "one value on the stack",
             std::to_string(stack_.size()) + " and " + std::to_string(marks_.size()) + " marks");
    if (at_ != bytes_.size()) refuse(at_, "pickle: bytes after STOP", "none", std::to_string(bytes_.size() - at_));
    return stack_.back();
  }

  /// Checks that every element of the view is in the storage.
  void check_view(const torch_view& view, std::size_t offset) const {
    const torch_storage& storage = storages_[view.storage];
    const std::string what = "tensor '" + printable(view.name, 70) + "'";
    checked_size elements = 1, last = view.offset;
    const bool empty = std::find(view.shape.begin(), view.shape.end(), std::uint64_t{0}) != view.shape.end();
    for (std::size_t i = 0; i < view.shape.size() && !empty; ++i) {
      elements = elements * view.shape[i];
      last = last + checked_size(view.shape[i] - 1) * view.strides[i];
    }
    if (empty ? view.offset > storage.elements : !last || last.value() >= storage.elements)
      refuse(offset, what + ": its elements run past storage " + storage.key,
             "the last one below " + std::to_string(storage.elements),
             last ? std::to_string(last.value()) : "one from 2^64");
    if (!empty && (!elements || elements.value() > (std::max)(storage.elements, torch_limits::repeated_elements)))
      refuse(offset, what + ": number of elements",
             "at most " + std::to_string((std::max)(storage.elements, torch_limits::repeated_elements)),
             elements ? std::to_string(elements.value()) : "2^64 or more");
  }

  bool holds_tensor(index dict) {
    const auto& list = items(dict);
    for (std::size_t i = 1; i < list.size(); i += 2)
      if (values_[list[i]].what == kind::tensor) return true;
    return false;
  }
  [[gnu::cold]] void collect(index top) {
    if (values_[top].what != kind::dict)
      refuse(bytes_.size(), "pickle: outermost value", "a dict of tensors", std::string(name(values_[top].what)));
    if (!holds_tensor(top)) {
      std::vector<index> inner;
      for (std::size_t i = 1; i < items(top).size(); i += 2)
        if (const index member = items(top)[i]; values_[member].what == kind::dict && holds_tensor(member))
          inner.push_back(member);
      if (inner.size() == 1) top = inner[0];
    }
    struct open_dict {
      index dict;
      std::size_t next;
      std::string prefix;
    };
    std::vector<open_dict> open{{top, 0, ""}};
    std::unordered_map<std::string, bool> names;
    std::size_t visited = 0;
    while (!open.empty()) {
      const auto& list = items(open.back().dict);
      if (open.back().next == list.size()) {
        open.pop_back();
        continue;
      }
      const index key = list[open.back().next], member = list[open.back().next + 1];
      open.back().next += 2;
      if (++visited > torch_limits::values)
        refuse(bytes_.size(), "pickle: values in dicts", "at most " + std::to_string(torch_limits::values), "more");
      const bool nested = values_[member].what == kind::dict;
      if (!nested && values_[member].what != kind::tensor) continue;
      std::string name = open.back().prefix + (values_[key].what == kind::text ? std::string(values_[key].text)
                                                                               : std::to_string(values_[key].number));
      if (name.empty() || name.size() > torch_limits::name_bytes || !is_printable(name))
        refuse(bytes_.size(), "pickle: name of a tensor",
               "1 to " + std::to_string(torch_limits::name_bytes) + " bytes without control characters",
               "'" + printable(name, 70) + "'");
      if (nested) {
        if (open.size() == torch_limits::depth)
          refuse(bytes_.size(), "pickle: dicts in dicts", "at most " + std::to_string(torch_limits::depth), "more");
        open.push_back({member, 0, name + "."});
        continue;
      }
      if (!names.emplace(name, true).second)
        refuse(bytes_.size(), "pickle: tensor '" + printable(name, 70) + "' occurs twice", "once");
      const auto view = static_cast<std::size_t>(values_[member].number);
      tensors_.push_back(views_[view]);
      tensors_.back().name = std::move(name);
      check_view(tensors_.back(), offsets_[view]);
    }
    if (tensors_.empty()) refuse(bytes_.size(), "pickle: tensors", "one or more", "none");
  }

  std::vector<torch_view> tensors_;
};

}  // namespace intaglio::io
