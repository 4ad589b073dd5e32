// SPDX-License-Identifier: MIT
// The tensors that a data.pkl of torch.save describes. This is not Python's pickle: opcodes and globals of a short list
// build plain data, and nothing is ever called. Opcodes: Python's Lib/pickle.py; globals: torch/_utils.py and
// torch/_weights_only_unpickler.py.
#pragma once

#include <algorithm>
#include <bit>
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
#include "intaglio/core/dtype.hpp"
#include "intaglio/core/error.hpp"
#include "intaglio/io/pickle_opcodes.hpp"
#include "intaglio/io/pickle_stack.hpp"
#include "intaglio/io/torch_storage.hpp"
#include "intaglio/io/unicode.hpp"

namespace intaglio::io {

/// One parsed data.pkl.
class torch_pickle : private pickle_stack {
 public:
  /// @param bytes the pickle; only read during construction  @param offset of it in the file, for errors
  /// @throws file_error naming opcode, global or tensor at fault
  torch_pickle(std::span<const std::byte> bytes, std::string path, std::uint64_t offset)
      : pickle_stack({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, std::move(path), offset) {
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
      switch (code) {
        case '.':
          return stop();
        case '(':
          marks_.push_back(stack_.size()), count_element();
          break;
        case '}':
          push(make_container(kind::dict, {}));
          break;
        case ']':
          push(make_container(kind::list, {}));
          break;
        case ')':
          push(make_container(kind::tuple, {}));
          break;
        case 0x8F:
          push(make_container(kind::set, {}));
          break;
        case 't':
          push(make_container(kind::tuple, pop_to_mark("TUPLE")));
          break;
        case 0x85:
        case 0x86:
        case 0x87:
          tuple(static_cast<std::size_t>(code - 0x84));
          break;
        case 'N':
          push(make({}));
          break;
        case 0x88:
        case 0x89:
          push(make({kind::boolean, false, code == 0x88}));
          break;
        case 'J':
          push(make({kind::integer, false, number<std::int32_t>("BININT")}));
          break;
        case 'K':
          push(make({kind::integer, false, number<std::uint8_t>("BININT1")}));
          break;
        case 'M':
          push(make({kind::integer, false, number<std::uint16_t>("BININT2")}));
          break;
        case 0x8A:
          long_integer();
          break;
        case 'G':
          take(8, "BINFLOAT"), push(make({kind::real}));
          break;
        case 'X':
          text(number<std::uint32_t>("BINUNICODE"), "BINUNICODE");
          break;
        case 'U':
          text(number<std::uint8_t>("SHORT_BINSTRING"), "SHORT_BINSTRING");
          break;
        case 'q':
          put(number<std::uint8_t>("BINPUT"));
          break;
        case 'r':
          put(number<std::uint32_t>("LONG_BINPUT"));
          break;
        case 'h':
          get(number<std::uint8_t>("BINGET"));
          break;
        case 'j':
          get(number<std::uint32_t>("LONG_BINGET"));
          break;
        case 's':
          set_items(2, "SETITEM");
          break;
        case 'u':
          set_items(0, "SETITEMS");
          break;
        case 'a':
          append(1, "APPEND");
          break;
        case 'e':
          append(0, "APPENDS");
          break;
        case 'c':
          global();
          break;
        case 'R':
          reduce();
          break;
        case 'b':
          build();
          break;
        case 'Q':
          persistent();
          break;
        default:
          refuse(begin_, "pickle: opcode", "one that a dict of tensors needs",
                 std::string(name_of_opcode(code)) + " (" + hexadecimal(code) + ")");
      }
    }
  }
  index stop() {
    if (stack_.size() != 1 || !marks_.empty())
      refuse(begin_, "pickle: STOP", "one value on the stack",
             std::to_string(stack_.size()) + " and " + std::to_string(marks_.size()) + " marks");
    if (at_ != bytes_.size()) refuse(at_, "pickle: bytes behind STOP", "none", std::to_string(bytes_.size() - at_));
    return stack_.back();
  }
  void global() {
    const auto module = line("GLOBAL"), which = line("GLOBAL");
    if (module == "collections" && which == "OrderedDict") return push(make({kind::make_dict}));
    if (module == "torch._utils" && which == "_rebuild_tensor_v2") return push(make({kind::make_tensor}));
    if (module == "torch._utils" && which == "_rebuild_parameter") return push(make({kind::make_parameter}));
    if (module == "torch")
      for (std::size_t i = 0; i < std::size(torch_storage_types); ++i)
        if (torch_storage_types[i].global == which)
          return push(make({kind::storage_type, false, static_cast<std::int64_t>(i)}));
    refuse(begin_, "pickle: global", "OrderedDict, _rebuild_tensor_v2, _rebuild_parameter or one of torch's storages",
           "'" + printable(module, 70) + " " + printable(which, 70) + "', which was not called");
  }
  void reduce() {
    const index arguments = pop("REDUCE"), callable = pop("REDUCE");
    expect(arguments, kind::tuple, "arguments of REDUCE");
    const std::vector<index> list = items(arguments);
    switch (values_[callable].what) {
      case kind::make_dict: {
        if (!list.empty()) refuse(begin_, "pickle: OrderedDict", "no arguments", std::to_string(list.size()));
        const index made = make_container(kind::dict, {});
        values_[made].ordered = true;
        return push(made);
      }
      case kind::make_tensor:
        return tensor(list);
      case kind::make_parameter:
        if (list.size() != 3) refuse(begin_, "pickle: _rebuild_parameter", "3 arguments", std::to_string(list.size()));
        expect(list[0], kind::tensor, "parameter");
        return push(list[0]);
      default:
        refuse(begin_, "pickle: REDUCE", "OrderedDict, _rebuild_tensor_v2 or _rebuild_parameter",
               std::string(name(values_[callable].what)));
    }
  }
  /// Ignores the state of an OrderedDict (PyTorch keeps versions of its modules there), which has no tensors.
  void build() {
    pop("BUILD");
    const index object = pop("BUILD");
    if (values_[object].what != kind::dict || !values_[object].ordered)
      refuse(begin_, "pickle: BUILD", "an OrderedDict", std::string(name(values_[object].what)));
    push(object);
  }
  [[gnu::cold]] void persistent() {
    const index id = pop("BINPERSID");
    expect(id, kind::tuple, "persistent id");
    const std::vector<index> parts = items(id);
    if (parts.size() != 5 || values_[parts[0]].what != kind::text || values_[parts[0]].text != "storage")
      refuse(begin_, "pickle: persistent id", "('storage', type, key, device, elements)",
             std::to_string(parts.size()) + " values");
    const auto type = static_cast<std::size_t>(expect(parts[1], kind::storage_type, "type of a storage").number);
    const std::string_view key = expect(parts[2], kind::text, "key of a storage").text;
    expect(parts[3], kind::text, "device of a storage");
    const std::uint64_t elements = natural(parts[4], "elements of a storage");
    if (key.empty() || key.size() > torch_limits::key_bytes ||
        key.find_first_not_of("0123456789") != std::string_view::npos)
      refuse(begin_, "pickle: key of a storage", "a number", "'" + printable(key, 60) + "'");
    const auto [at, added] = keys_.try_emplace(key, storages_.size());
    if (added) storages_.push_back({&torch_storage_types[type], std::string(key), elements});
    const torch_storage& storage = storages_[at->second];
    if (storage.type != &torch_storage_types[type] || storage.elements != elements)
      refuse(begin_, "pickle: storage " + std::string(key),
             std::to_string(storage.elements) + " of " + std::string(storage.type->name) + " as before",
             std::to_string(elements) + " of " + std::string(torch_storage_types[type].name));
    push(make({kind::storage, false, static_cast<std::int64_t>(at->second)}));
  }
  std::vector<std::uint64_t> sizes(index tuple, std::string_view which) {
    expect(tuple, kind::tuple, which);
    const auto& parts = items(tuple);
    if (parts.size() > torch_limits::dimensions)
      refuse(begin_, "pickle: " + std::string(which),
             "at most " + std::to_string(torch_limits::dimensions) + " dimensions", std::to_string(parts.size()));
    std::vector<std::uint64_t> out;
    for (const index part : parts) out.push_back(natural(part, which));
    return out;
  }
  /// Reads _rebuild_tensor_v2(storage, offset, size, stride, requires_grad, backward_hooks[, metadata]).
  void tensor(const std::vector<index>& arguments) {
    if (arguments.size() != 6 && arguments.size() != 7)
      refuse(begin_, "pickle: _rebuild_tensor_v2", "6 or 7 arguments", std::to_string(arguments.size()));
    torch_view out;
    out.storage = static_cast<std::size_t>(expect(arguments[0], kind::storage, "storage of a tensor").number);
    out.offset = natural(arguments[1], "offset of a tensor");
    out.shape = sizes(arguments[2], "shape of a tensor");
    out.strides = sizes(arguments[3], "strides of a tensor");
    if (out.shape.size() != out.strides.size())
      refuse(begin_, "pickle: strides of a tensor", std::to_string(out.shape.size()),
             std::to_string(out.strides.size()));
    views_.push_back(std::move(out));
    offsets_.push_back(begin_);
    push(make({kind::tensor, false, static_cast<std::int64_t>(views_.size() - 1)}));
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

  std::unordered_map<std::string_view, std::size_t> keys_;
  std::vector<std::size_t> offsets_;
  std::vector<torch_storage> storages_;
  std::vector<torch_view> views_, tensors_;
};

}  // namespace intaglio::io
