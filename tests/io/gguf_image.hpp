// SPDX-License-Identifier: MIT
// A GGUF file taken apart, to be changed in any way and put together again without any check.
#pragma once

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "files.hpp"
#include "intaglio/io/gguf.hpp"

/// Where a field of the put-together file is.
struct gguf_field {
  std::string name;
  std::size_t offset, size;
};

template <class T>
void append(bytes& to, const T& value) {
  const auto* from = reinterpret_cast<const std::byte*>(&value);
  to.insert(to.end(), from, from + sizeof(T));
}
inline void append_text(bytes& to, std::string_view text) {
  append(to, static_cast<std::uint64_t>(text.size()));
  const auto view = std::as_bytes(std::span(text));
  to.insert(to.end(), view.begin(), view.end());
}
template <class T>
bytes bytes_of(const T& value) {
  bytes out;
  append(out, value);
  return out;
}
inline bytes text_bytes(std::string_view text) {
  bytes out;
  append_text(out, text);
  return out;
}

struct gguf_image {
  struct key {
    std::string name;
    std::uint32_t type;
    bytes value;  ///< with element type and count where it is an array
  };
  struct tensor {
    std::string name;
    std::vector<std::uint64_t> shape;
    std::uint32_t type;
    bytes data;
    std::optional<std::uint64_t> offset = std::nullopt;  ///< instead of the strict one
  };
  std::uint32_t version = 3;
  std::vector<key> keys;
  std::vector<tensor> tensors;
  std::uint64_t alignment = 32;

  static gguf_image of(const std::filesystem::path& path) {
    gguf_image out;
    const intaglio::io::gguf_part file(intaglio::io::mapped_file(path), 0, true);  // also a later part of a split model
    out.version = file.version();
    for (const auto& value : file.values()) {
      bytes raw;
      if (value.type == intaglio::io::gguf_type::array) {
        append(raw, static_cast<std::uint32_t>(value.element));
        append(raw, value.count);
      }
      const std::size_t at = raw.size();
      raw.resize(at + static_cast<std::size_t>(value.bytes));
      file.file().read(value.offset, std::span(raw).subspan(at));
      out.keys.push_back({value.key, static_cast<std::uint32_t>(value.type), raw});
    }
    for (const auto& tensor : file.tensors()) {
      bytes data(static_cast<std::size_t>(tensor.bytes));
      file.file().read(tensor.offset, data);
      out.tensors.push_back({tensor.name,
                             {tensor.shape.begin(), tensor.shape.begin() + tensor.dimensions},
                             static_cast<std::uint32_t>(intaglio::info(tensor.type).ggml_type),
                             std::move(data)});
    }
    return out;
  }

  key& at(std::string_view name) {
    for (auto& k : keys)
      if (k.name == name) return k;
    throw std::runtime_error("no key " + std::string(name));
  }
  void remove(std::string_view name) {
    std::erase_if(keys, [&](const key& k) { return k.name == name; });
  }
  template <class T>
  void set(std::string_view name, const T& value) {
    const auto type = static_cast<std::uint32_t>(intaglio::io::gguf_type_of<T>);
    bytes raw;
    if constexpr (std::is_same_v<T, std::string>) append_text(raw, value);
    else append(raw, value);
    for (auto& k : keys)
      if (k.name == name) {
        k.type = type;
        k.value = raw;
        return;
      }
    keys.push_back({std::string(name), type, raw});
  }
  tensor& tensor_at(std::string_view name) {
    for (auto& t : tensors)
      if (t.name == name) return t;
    throw std::runtime_error("no tensor " + std::string(name));
  }

  bytes build(std::vector<gguf_field>* fields = nullptr) const {
    bytes out;
    const auto note = [&](std::string name, std::size_t from) {
      if (fields != nullptr) fields->push_back({std::move(name), from, out.size() - from});
    };
    const auto put = [&](std::string name, const auto& value) {
      const std::size_t from = out.size();
      append(out, value);
      note(std::move(name), from);
    };
    const auto put_name = [&](const std::string& what, const std::string& name) {
      put(what + " length", static_cast<std::uint64_t>(name.size()));
      const std::size_t from = out.size();
      const auto view = std::as_bytes(std::span(name));
      out.insert(out.end(), view.begin(), view.end());
      note(what + " text", from);
    };
    put("magic", std::array{'G', 'G', 'U', 'F'});
    put("version", version);
    put("tensor count", static_cast<std::uint64_t>(tensors.size()));
    put("key count", static_cast<std::uint64_t>(keys.size()));
    for (const key& k : keys) {
      put_name("key " + k.name, k.name);
      put("key " + k.name + " type", k.type);
      const std::size_t from = out.size();
      out.insert(out.end(), k.value.begin(), k.value.end());
      note("key " + k.name + " value", from);
    }
    std::uint64_t running = 0;
    for (const tensor& t : tensors) {
      put_name("tensor " + t.name, t.name);
      put("tensor " + t.name + " dimensions", static_cast<std::uint32_t>(t.shape.size()));
      for (const auto size : t.shape) put("tensor " + t.name + " size", size);
      put("tensor " + t.name + " type", t.type);
      put("tensor " + t.name + " offset", t.offset.value_or(running));
      running = (running + t.data.size() + alignment - 1) / alignment * alignment;
    }
    if (tensors.empty()) return out;
    out.resize((out.size() + alignment - 1) / alignment * alignment);
    for (const tensor& t : tensors) {
      const std::size_t from = out.size();
      out.insert(out.end(), t.data.begin(), t.data.end());
      note("data " + t.name, from);
      out.resize((out.size() + alignment - 1) / alignment * alignment);
    }
    return out;
  }
};
