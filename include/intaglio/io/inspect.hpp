// SPDX-License-Identifier: MIT
// The content of a model file or folder, as data for a tool to print. It reads no weights.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "intaglio/io/checkpoint.hpp"

namespace intaglio::io {

/// A key of the metadata. `text` is the value: strings unchanged, arrays as their first elements.
struct inspected_key {
  std::string key, type, text;
  std::uint64_t count = 1;  ///< elements of an array
};
/// A tensor of a checkpoint as its file describes it.
struct inspected_tensor {
  std::string name, type;
  std::vector<std::uint64_t> shape;  ///< row-major: [rows, columns]
  std::size_t file = 0;              ///< index into files
  std::uint64_t offset = 0, bytes = 0;
};
/// A file of a checkpoint.
struct inspected_file {
  std::string path;
  std::uint64_t bytes = 0;
};
/// What a checkpoint's files hold, without the values of tensors.
struct inspection {
  std::string form;           ///< "gguf", "safetensors", "pytorch" or "packed"
  std::uint32_t version = 0;  ///< of GGUF and of packed files
  std::string architecture;   ///< as the file spells it; empty where it does not state it
  std::vector<inspected_file> files;
  std::vector<inspected_key> metadata;
  std::vector<inspected_tensor> tensors;
  std::vector<inspected_key> unused;  ///< keys of generation_config.json that the library does not use
  std::map<std::string, std::pair<std::size_t, std::uint64_t>> types;  ///< tensors and bytes of each type
  std::uint64_t parameters = 0;          ///< values in all tensors (of packed bytes, four each)
  std::optional<decoder_config> config;  ///< absent where the library does not support the model
  std::optional<std::size_t> tokens;
  std::vector<std::string> warnings;
  std::optional<std::string> problem;  ///< why the library does not support the model
};

/// Collects an inspection. Long GGUF values are cut, so that a vocabulary does not fill the page.
class model_inspector {
 public:
  explicit model_inspector(const std::filesystem::path& given) {
    const std::filesystem::path path = model_at(given);
    std::error_code ignored;
    const bool folder = std::filesystem::is_directory(path, ignored);
    if (!folder && is_packed_file(path)) {
      inspect_packed(path);
      return;
    }
    if (folder) inspect_folder(path);
    else if (stands_for_folder(path))
      has_model_config(folder_of(path)) ? inspect_folder(folder_of(path)) : inspect_weights(path);
    else inspect_gguf(path);
    for (const inspected_tensor& tensor : out_.tensors) {
      auto& [count, bytes] = out_.types[tensor.type];
      ++count;
      bytes += tensor.bytes;
    }
    try {
      const checkpoint model = checkpoint::open(path);
      out_.config = model.config();
      out_.warnings = model.warnings();
      if (model.vocabulary()) out_.tokens = model.vocabulary()->tokens.size();
      for (const checkpoint_tensor& tensor : model.tensors())
        out_.parameters += tensor.stored.rows * tensor.stored.columns;
    } catch (const error& problem) { out_.problem = problem.what(); }
  }
  inspection result() && { return std::move(out_); }

 private:
  static constexpr std::uint64_t shown_elements = 8;

  /// Inspects a packed file. Its weights are no tensors with a type; their layout text is used as the name.
  void inspect_packed(const std::filesystem::path& path) {
    const checkpoint model = checkpoint::open_packed(path);
    const packed_image& image = *model.packed();
    out_.form = "packed";
    out_.version = packed_layout::version;
    out_.architecture = model.stated_architecture();
    out_.config = model.config();
    if (model.vocabulary()) out_.tokens = model.vocabulary()->tokens.size();
    out_.files.push_back({image.file->path(), image.file->size()});
    out_.metadata.push_back({"codec", "text", image.codec});
    out_.metadata.push_back({"layouts", "version", std::to_string(image.layout_version)});
    for (const packed_weight& each : image.weights) {
      out_.tensors.push_back(
          {each.layout, "packed", {each.copies, each.bytes}, 0, each.offset, each.copies * each.bytes});
      auto& [count, bytes] = out_.types["packed"];
      count += each.copies;
      bytes += each.copies * each.bytes;
    }
  }

  void inspect_gguf(const std::filesystem::path& path) {
    const gguf file = gguf::open(path);
    out_.form = "gguf";
    out_.version = file.first().version();
    if (const gguf_value* stated = file.first().find("general.architecture");
        stated != nullptr && stated->type == gguf_type::string)
      out_.architecture = *file.value<std::string>("general.architecture");
    for (const gguf_part& part : file.parts()) out_.files.push_back({part.file().path(), part.file().size()});
    for (const gguf_value& value : file.first().values()) {
      std::string type(name(value.type));
      if (value.type == gguf_type::array) type += " of " + std::string(name(value.element));
      out_.metadata.push_back({value.key, std::move(type), text_of(file.first(), value), value.count});
    }
    for (const gguf_tensor& tensor : file.tensors()) {
      std::vector<std::uint64_t> shape(tensor.shape.begin(), tensor.shape.begin() + tensor.dimensions);
      std::reverse(shape.begin(), shape.end());
      out_.tensors.push_back(
          {tensor.name, std::string(name(tensor.type)), std::move(shape), tensor.part, tensor.offset, tensor.bytes});
    }
    out_.warnings = file.warnings();
  }

  static std::string text_of(const gguf_part& part, const gguf_value& value) {
    file_cursor cursor(part.file());
    cursor.skip(value.offset, value.key);
    if (value.type != gguf_type::array) return element_text(cursor, value);
    return array_text(cursor, value);
  }
  /// The elements at the cursor, which is moved after them. Arrays are nested at most as deep as gguf_limits allow.
  static std::string array_text(file_cursor& cursor, const gguf_value& value) {
    std::string out = "[";
    for (std::uint64_t i = 0; i < (std::min)(value.count, shown_elements); ++i)
      out.append(i == 0 ? "" : ", ").append(element_text(cursor, value));
    if (value.count <= shown_elements) return out + "]";
    gguf_value_walk(cursor, value.key).skip(value.element, value.count - shown_elements);
    return out + ", ...]";
  }
  static std::string element_text(file_cursor& cursor, const gguf_value& value) {
    switch (value.element) {
      case gguf_type::u8:
        return std::to_string(cursor.number<std::uint8_t>(value.key));
      case gguf_type::i8:
        return std::to_string(cursor.number<std::int8_t>(value.key));
      case gguf_type::u16:
        return std::to_string(cursor.number<std::uint16_t>(value.key));
      case gguf_type::i16:
        return std::to_string(cursor.number<std::int16_t>(value.key));
      case gguf_type::u32:
        return std::to_string(cursor.number<std::uint32_t>(value.key));
      case gguf_type::i32:
        return std::to_string(cursor.number<std::int32_t>(value.key));
      case gguf_type::u64:
        return std::to_string(cursor.number<std::uint64_t>(value.key));
      case gguf_type::i64:
        return std::to_string(cursor.number<std::int64_t>(value.key));
      case gguf_type::f32:
        return number_text(cursor.number<float>(value.key));
      case gguf_type::f64:
        return number_text(static_cast<float>(cursor.number<double>(value.key)));
      case gguf_type::boolean:
        return cursor.number<std::uint8_t>(value.key) != 0 ? "true" : "false";
      case gguf_type::array: {
        const auto [element, count] = gguf_value_walk(cursor, value.key).array_head();
        return array_text(cursor, {.key = value.key, .type = gguf_type::array, .element = element, .count = count});
      }
      case gguf_type::string:
        break;
    }
    return cursor.text(value.key, gguf_limits::string_bytes);
  }

  void inspect_folder(const std::filesystem::path& path) {
    std::error_code ignored;
    const bool original = !std::filesystem::exists(path / "config.json", ignored) &&
                          std::filesystem::exists(path / "params.json", ignored);
    if (original) {
      out_.form = "pytorch";
      for (const auto& shard : consolidated_files(path)) list_file(torch_file(mapped_file(shard)));
    } else if (!safetensors_model::are_in(path) && torch_model::are_in(path)) {
      out_.form = "pytorch";
      const auto model = torch_model::open(path);
      for (const torch_file& file : model.files()) list_file(file);
    } else {
      out_.form = "safetensors";
      const auto model = safetensors_model::open(path);
      for (const safetensors_file& file : model.files()) list_file(file);
    }
    list_generation(path / "generation_config.json");
    const char* const config = original ? "params.json" : "config.json";
    strict_json document((path / config).string());
    document.read_file(path / config);
    if (!document.root().is_object()) document.refuse(config, "a JSON object", document.root().type_name());
    for (const auto& [key, value] : document.root().items()) {
      if (key == "model_type" && value.is_string()) out_.architecture = value.get<std::string>();
      out_.metadata.push_back({key, value.type_name(),
                               value.is_string() ? value.get<std::string>()
                                                 : value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace),
                               value.is_array() ? value.size() : 1});
    }
  }
  void list_generation(const std::filesystem::path& path) {
    std::error_code ignored;
    if (!std::filesystem::exists(path, ignored)) return;
    for (const unused_key& each : read_generation_config(path).unused)
      out_.unused.push_back({"generation_config.json: " + each.key, "json", each.value});
  }
  /// Inspects a file of weights without a config beside it.
  void inspect_weights(const std::filesystem::path& path) {
    const bool pytorch = is_torch_file(path);
    out_.form = pytorch ? "pytorch" : "safetensors";
    if (pytorch) list_file(torch_file(mapped_file(path)));
    else list_file(safetensors_file(mapped_file(path)));
  }
  template <class File>
  void list_file(const File& file) {
    for (const auto& tensor : file.tensors())
      out_.tensors.push_back({tensor.name,
                              tensor.type ? std::string(name(*tensor.type)) : std::string(tensor.stored_type),
                              tensor.shape, out_.files.size(), tensor.offset, tensor.bytes});
    out_.files.push_back({file.file().path(), file.file().size()});
  }

  inspection out_;
};
/// Lists what a file holds, without its values.
/// @throws file_error where the structure of a file is invalid; a valid file of an unsupported model has `problem`
inline inspection inspect(const std::filesystem::path& path) { return model_inspector(path).result(); }

}  // namespace intaglio::io
