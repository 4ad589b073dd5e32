// SPDX-License-Identifier: MIT
// The tensors that a data.pkl of torch.save describes. Not Python's pickle: opcodes and globals of a short list build
// plain data, and nothing is ever called. Opcodes: Python's Lib/pickle.py; globals: torch/_utils.py and
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
#include "intaglio/io/unicode.hpp"

namespace intaglio::io {

struct torch_limits {
  static constexpr std::uint64_t pickle_bytes = std::uint64_t{16} << 20;
  static constexpr std::size_t values = std::size_t{1}
                                        << 18;         ///< that a pickle may make, and elements of all its containers
  static constexpr std::size_t depth = 32;             ///< of dicts in dicts
  static constexpr std::size_t container_depth = 256;  ///< of containers in containers
  /// That a container comes to where those that it has several times are written out.
  static constexpr std::uint64_t expanded_values = std::uint64_t{1} << 20;
  static constexpr std::size_t dimensions = 8;
  static constexpr std::size_t name_bytes = 1024;
  static constexpr std::size_t key_bytes = 64;
  static constexpr std::uint64_t repeated_elements = std::uint64_t{1}
                                                     << 24;  ///< of a tensor with more elements than its storage
};

/// A kind of storage; `type` is absent where the library reads no such values.
struct torch_storage_type {
  std::string_view global, name;
  std::uint32_t bytes;
  std::optional<dtype> type;
};
inline constexpr torch_storage_type torch_storage_types[] = {
    {"FloatStorage", "float32", 4, dtype::f32},      {"HalfStorage", "float16", 2, dtype::f16},
    {"BFloat16Storage", "bfloat16", 2, dtype::bf16}, {"DoubleStorage", "float64", 8, dtype::f64},
    {"LongStorage", "int64", 8, dtype::i64},         {"IntStorage", "int32", 4, dtype::i32},
    {"ShortStorage", "int16", 2, dtype::i16},        {"CharStorage", "int8", 1, dtype::i8},
    {"ByteStorage", "uint8", 1, dtype::u8},          {"BoolStorage", "bool", 1, std::nullopt},
};

/// Elements in the member data/KEY of the archive.
struct torch_storage {
  const torch_storage_type* type = nullptr;
  std::string key;
  std::uint64_t elements = 0;
};

/// A view of a storage; offset and strides are in elements, and every element lies inside the storage.
struct torch_view {
  std::string name;
  std::size_t storage = 0;  ///< index into torch_pickle::storages
  std::uint64_t offset = 0;
  std::vector<std::uint64_t> shape, strides;
};

/// One parsed data.pkl.
class torch_pickle {
 public:
  /// @param bytes the pickle; only read while constructing  @param offset of it in the file, for errors
  /// @throws file_error naming opcode, global or tensor at fault
  torch_pickle(std::span<const std::byte> bytes, std::string path, std::uint64_t offset)
      : bytes_(reinterpret_cast<const char*>(bytes.data()), bytes.size()), path_(std::move(path)), offset_(offset) {
    if (bytes.size() > torch_limits::pickle_bytes)
      refuse(0, "pickle", "at most " + std::to_string(torch_limits::pickle_bytes) + " bytes",
             std::to_string(bytes.size()));
    const index top = run();
    expect_finite();
    collect(top);
    values_ = {};
    containers_ = {};
    container_places_ = {};
    memo_ = {};
    bytes_ = {};
  }

  const std::vector<torch_storage>& storages() const { return storages_; }
  /// Tensors of the outermost dict, and of dicts in it, whose keys are put in front with a dot. A single dict that
  /// holds all tensors (as {"model": ...} does) is looked through.
  const std::vector<torch_view>& tensors() const { return tensors_; }

 private:
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
    bool ordered = false;     ///< a dict that OrderedDict made
    std::int64_t number = 0;  ///< integer; index into containers_, storages_, views_ or torch_storage_types
    std::string_view text{};
  };

  [[noreturn]] void refuse(std::size_t at, std::string what, std::string expected = {}, std::string found = {}) const {
    throw file_error(path_, offset_ + at, std::move(what), std::move(expected), std::move(found));
  }

  // Reading of the opcode's arguments.
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
    container_places_.push_back(begin_);
    for (std::size_t i = 0; i < items.size(); ++i) count_element();
    return make({what, false, static_cast<std::int64_t>(containers_.size() - 1)});
  }
  void push(index at) { stack_.push_back(at); }
  index pop(std::string_view what) {
    // Nothing below a mark can be reached but by what takes the mark away.
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
  /// The state of an OrderedDict (PyTorch keeps versions of its modules there) says nothing of tensors.
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
  /// _rebuild_tensor_v2(storage, offset, size, stride, requires_grad, backward_hooks[, metadata])
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
    places_.push_back(begin_);
    push(make({kind::tensor, false, static_cast<std::int64_t>(views_.size() - 1)}));
  }

  /// Every element of the view must lie in the storage.
  void check_view(const torch_view& view, std::size_t place) const {
    const torch_storage& storage = storages_[view.storage];
    const std::string what = "tensor '" + printable(view.name, 70) + "'";
    checked_size elements = 1, last = view.offset;
    const bool empty = std::find(view.shape.begin(), view.shape.end(), std::uint64_t{0}) != view.shape.end();
    for (std::size_t i = 0; i < view.shape.size() && !empty; ++i) {
      elements = elements * view.shape[i];
      last = last + checked_size(view.shape[i] - 1) * view.strides[i];
    }
    if (empty ? view.offset > storage.elements : !last || last.value() >= storage.elements)
      refuse(place, what + ": its elements run past storage " + storage.key,
             "the last one below " + std::to_string(storage.elements),
             last ? std::to_string(last.value()) : "one from 2^64");
    if (!empty && (!elements || elements.value() > (std::max)(storage.elements, torch_limits::repeated_elements)))
      refuse(place, what + ": number of elements",
             "at most " + std::to_string((std::max)(storage.elements, torch_limits::repeated_elements)),
             elements ? std::to_string(elements.value()) : "2^64 or more");
  }

  static bool is_container(kind what) {
    return what == kind::tuple || what == kind::list || what == kind::dict || what == kind::set;
  }
  /// No container holds itself, and none comes to more than a pickle of plain data has: a list of one list twice, which
  /// has a list twice, and so on, is short in the file and endless outside.
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
      refuse(container_places_[container], "pickle: " + std::move(what), std::move(expected));
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
      check_view(tensors_.back(), places_[view]);
    }
    if (tensors_.empty()) refuse(bytes_.size(), "pickle: tensors", "one or more", "none");
  }

  std::string_view bytes_;
  std::string path_;
  std::uint64_t offset_;
  std::size_t at_ = 0, begin_ = 0, elements_ = 0;
  std::vector<value> values_;
  std::vector<std::vector<index>> containers_;
  std::vector<std::size_t> container_places_;  ///< where each was made
  std::vector<index> stack_;
  std::vector<std::size_t> marks_, places_;
  std::unordered_map<std::uint32_t, index> memo_;
  std::unordered_map<std::string_view, std::size_t> keys_;
  std::vector<torch_storage> storages_;
  std::vector<torch_view> views_, tensors_;
};

}  // namespace intaglio::io
