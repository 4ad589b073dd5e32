// SPDX-License-Identifier: MIT
// The weights of a Hugging Face folder: one file, or shards that an index lists. It serves safetensors and PyTorch's
// own files.
#pragma once

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "intaglio/core/error.hpp"
#include "intaglio/io/json_text.hpp"
#include "intaglio/io/mapped_file.hpp"
#include "intaglio/platform/path_text.hpp"

namespace intaglio::io {

/// Limits of a model in several files.
struct weight_limits {
  static constexpr std::uint64_t index_bytes = 100'000'000;
  static constexpr std::size_t tensors = 262'144;
};

/// Reads weight_map of an index; all other keys are skipped.
class weight_index_reader : public json_reader {
 public:
  /// @param ending of the files' names, ".safetensors" or ".bin"
  weight_index_reader(std::string path, std::uint64_t offset, std::string_view ending)
      : json_reader(std::move(path), offset), ending_(ending) {}
  std::map<std::string, std::size_t> tensors;  ///< index into files
  std::vector<std::string> files;
  std::uint64_t total_bytes = 0;  ///< metadata.total_size; 0 where absent

  bool null() override { return other("null"); }
  bool boolean(bool) override { return other("a truth value"); }
  bool binary(json::binary_t&) override { return other("binary"); }
  bool number_integer(json::number_integer_t) override { return other("a number"); }
  bool number_unsigned(json::number_unsigned_t value) override {
    if (depth_ == 2 && top_ == "metadata" && key_ == "total_size") total_bytes = value;
    return other("a number");
  }
  bool number_float(json::number_float_t, const std::string&) override { return other("a number"); }
  bool string(std::string& value) override {
    if (!in_map()) return true;
    check_name(value);
    const auto [at, added] = numbers_.try_emplace(value, files.size());
    if (added) files.push_back(value);
    if (!tensors.try_emplace(key_, at->second).second)
      refuse("tensor '" + printable(key_, 70) + "' is listed twice", "once");
    if (tensors.size() > weight_limits::tensors)
      refuse("number of tensors", "at most " + std::to_string(weight_limits::tensors), "more");
    return true;
  }
  bool start_object(std::size_t) override {
    if (depth_ == 1 && top_ == "weight_map") seen_ = true;
    return deeper();
  }
  bool start_array(std::size_t) override { return depth_ == 1 && top_ == "weight_map" ? other("a list") : deeper(); }
  bool end_object() override { return --depth_, true; }
  bool end_array() override { return --depth_, true; }
  bool key(std::string& name) override {
    if (depth_ == 1) {
      if (!tops_.insert(name).second) refuse("key '" + printable(name, 70) + "' occurs twice", "once");
      if (tops_.size() > 64) refuse("number of keys", "at most 64", "more");
      top_ = name;
    }
    key_ = name;
    return true;
  }
  bool seen() const { return seen_; }

 private:
  bool in_map() const { return depth_ == 2 && top_ == "weight_map"; }
  bool other(std::string_view found) const {
    if (depth_ == 0) refuse("not an index", "a JSON object", std::string(found));
    if (in_map() || (depth_ == 1 && top_ == "weight_map"))
      refuse("weight_map: '" + printable(key_, 70) + "'", "the name of a file", std::string(found));
    return true;
  }
  bool deeper() {
    if (in_map()) refuse("weight_map: '" + printable(key_, 70) + "'", "the name of a file", "a nested value");
    if (++depth_ > json_limits::depth)
      refuse("JSON nested too deep", "at most " + std::to_string(json_limits::depth) + " levels", "more");
    return true;
  }
  /// Accepts only plain names beside the index: others could refer to files outside of the folder.
  void check_name(const std::string& value) const {
    bool plain =
        value.size() > ending_.size() && value.size() <= 255 && value.ends_with(ending_) && value.front() != '.';
    for (const char c : value)
      plain = plain && c != '/' && c != '\\' && c != ':' && static_cast<unsigned char>(c) >= 0x20;
    if (!plain)
      refuse("weight_map: '" + printable(key_, 70) + "'",
             "a file name that ends in " + std::string(ending_) + ", without folders",
             "'" + printable(value, 70) + "'");
  }

  std::string_view ending_;
  std::size_t depth_ = 0;
  bool seen_ = false;
  std::string top_, key_;
  std::set<std::string> tops_;
  std::map<std::string, std::size_t> numbers_;
};

/// The names of a folder's files of one form.
struct weight_file_names {
  std::string_view name, ending;  ///< of a single file, and of all files

  std::string index_name() const {
    std::string out(name);
    return out.append(".index.json");  // g++ 12 warns of a concatenation of the two
  }
  std::filesystem::path single_in(const std::filesystem::path& folder) const { return folder / name; }
  std::filesystem::path index_in(const std::filesystem::path& folder) const {
    return folder / platform::path_of(index_name());
  }
  /// Whether the folder has such a file, or an index of such files.
  [[gnu::cold]] bool are_in(const std::filesystem::path& folder) const {
    std::error_code ignored;
    return std::filesystem::exists(single_in(folder), ignored) || std::filesystem::exists(index_in(folder), ignored);
  }
  /// Whether a file is one that opening its folder opens.
  [[gnu::cold]] bool belongs(const std::filesystem::path& file) const {
    if (file.filename() == std::filesystem::path(name)) return true;
    std::error_code ignored;
    const auto folder = file.has_parent_path() ? file.parent_path() : std::filesystem::path(".");
    if (std::filesystem::exists(single_in(folder), ignored) || !std::filesystem::exists(index_in(folder), ignored))
      return false;
    const std::vector<std::string> names = read_index(index_in(folder)).files;
    return std::find(names.begin(), names.end(), file.filename().string()) != names.end();
  }
  /// @throws file_error: malformed, or without tensors
  [[gnu::cold]] weight_index_reader read_index(const std::filesystem::path& index) const {
    const mapped_file file(index);
    if (file.size() > weight_limits::index_bytes)
      throw file_error(file.path(), std::nullopt, "too large for an index",
                       "at most " + std::to_string(weight_limits::index_bytes), std::to_string(file.size()));
    std::string text(static_cast<std::size_t>(file.size()), '\0');
    file.read(0, std::as_writable_bytes(std::span(text)));
    weight_index_reader reader(file.path(), 0, ending);
    read_json(text, file.path(), 0, reader);
    if (!reader.seen() || reader.tensors.empty())
      throw file_error(file.path(), std::nullopt, "the index lists no tensors", "weight_map", "none");
    return reader;
  }
  /// The index, all of whose files are there. @throws file_error
  [[gnu::cold]] weight_index_reader read_whole_index(const std::filesystem::path& folder) const {
    weight_index_reader reader = read_index(index_in(folder));
    std::string missing;
    for (const std::string& each : reader.files) {
      std::error_code ignored;
      if (!std::filesystem::exists(folder / platform::path_of(each), ignored) && missing.size() < 200)
        missing += (missing.empty() ? "" : ", ") + printable(each, 70);
    }
    if (!missing.empty())
      throw file_error(index_in(folder).string(), std::nullopt, "shards are missing",
                       std::to_string(reader.files.size()) + " files", "none of: " + missing);
    return reader;
  }
};

/// All tensors of a folder, in files of one form. File::name is the name of a single file, File::ending the ending of
/// all.
template <class File>
class weight_files {
 public:
  using tensor = typename File::tensor;

  static constexpr weight_file_names names{File::name, File::ending};

  /// Whether the folder has such a file, or an index of such files.
  static bool are_in(const std::filesystem::path& folder) { return names.are_in(folder); }
  static std::string index_name() { return names.index_name(); }
  /// Whether this file is one that opening its folder opens.
  static bool belongs(const std::filesystem::path& file) { return names.belongs(file); }

  /// @throws file_error, also where shards are missing, hold other tensors than the index states, or do not exist at
  /// all
  static weight_files open(const std::filesystem::path& folder) {
    weight_files out;
    std::error_code ignored;
    const auto single = names.single_in(folder), index = names.index_in(folder);
    if (std::filesystem::exists(single, ignored)) {
      out.files_.emplace_back(mapped_file(single));
      if (std::filesystem::exists(index, ignored))  // transformers prefers the single file too
        out.warnings_.push_back(in_file(index.string(), "not read: " + std::string(File::name) + " is beside it"));
    } else if (std::filesystem::exists(index, ignored)) {
      out.open_shards(folder, index);
    } else {
      throw file_error(folder.string(), std::nullopt, "no weights in this folder",
                       std::string(File::name) + " or " + index_name(), "neither");
    }
    out.collect();
    return out;
  }

  /// One file that has all tensors, whatever its name. @throws file_error
  static weight_files open_file(const std::filesystem::path& file) {
    weight_files out;
    out.files_.emplace_back(mapped_file(file));
    out.collect();
    return out;
  }
  const std::vector<File>& files() const { return files_; }
  const std::vector<tensor>& tensors() const { return tensors_; }
  const std::vector<std::string>& warnings() const { return warnings_; }
  /// Gives the files to the reader of the tensors.
  std::vector<File> release_files() && { return std::move(files_); }

 private:
  weight_files() = default;

  [[gnu::cold]] void open_shards(const std::filesystem::path& folder, const std::filesystem::path& index) {
    const weight_index_reader reader = names.read_whole_index(folder);
    std::uint64_t total = 0;
    std::set<std::string_view> found;
    files_.reserve(reader.files.size());
    const auto fault = [&](const std::string& named, std::string expected, std::string seen) {
      throw file_error(index.string(), std::nullopt, "weight_map: '" + printable(named, 70) + "'", std::move(expected),
                       std::move(seen));
    };
    for (std::size_t i = 0; i < reader.files.size(); ++i) {
      files_.emplace_back(mapped_file(folder / platform::path_of(reader.files[i])));
      const std::string shard = printable(reader.files[i], 70);
      for (const auto& each : files_.back().tensors()) {
        const auto listed = reader.tensors.find(each.name);
        if (listed == reader.tensors.end()) fault(each.name, shard + ", which has this tensor", "no such tensor");
        if (listed->second != i)
          fault(each.name, shard + ", which has this tensor", printable(reader.files[listed->second], 70));
        found.insert(each.name);
        total += each.bytes;
      }
    }
    for (const auto& [name, number] : reader.tensors)
      if (!found.contains(name))
        fault(name, "a file that has this tensor",
              printable(reader.files[number], 70) + ", which has none of this name");
    if (reader.total_bytes != 0 && reader.total_bytes != total)
      warnings_.push_back(in_file(index.string(), "metadata.total_size is " + std::to_string(reader.total_bytes) +
                                                      ", the tensors have " + std::to_string(total) + " bytes"));
  }

  [[gnu::cold]] void collect() {
    for (std::size_t i = 0; i < files_.size(); ++i)
      for (tensor each : files_[i].tensors()) {
        each.file = i;
        tensors_.push_back(std::move(each));
      }
  }

  std::vector<File> files_;
  std::vector<tensor> tensors_;
  std::vector<std::string> warnings_;
};

}  // namespace intaglio::io
