// SPDX-License-Identifier: MIT
// The objects that opcodes of torch.save's pickle make: dicts, storages and views of them. Sources: torch/_utils.py and
// torch/_weights_only_unpickler.py.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "intaglio/io/pickle_stack.hpp"
#include "intaglio/io/torch_storage.hpp"

namespace intaglio::io {

/// The stack of a pickle with the opcodes that make PyTorch's objects.
class torch_objects : protected pickle_stack {
 protected:
  using pickle_stack::pickle_stack;

  /// Runs GLOBAL: pushes one of the callables or storage types of a short list.
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
  /// Runs REDUCE: makes what a callable of the list would return, without a call.
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
  /// Runs BINPERSID: pushes the storage of a persistent id.
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

  std::vector<std::size_t> offsets_;  ///< of each view: offset of the opcode that made it
  std::vector<torch_storage> storages_;
  std::vector<torch_view> views_;  ///< all tensors of the pickle, without names

 private:
  std::unordered_map<std::string_view, std::size_t> keys_;  ///< index in storages_ by the storage's key
};

}  // namespace intaglio::io
