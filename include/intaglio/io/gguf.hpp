// SPDX-License-Identifier: MIT
// A GGUF model: one file, or the parts PREFIX-00001-of-0000N.gguf, opened as one.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "intaglio/core/sorted_indices.hpp"
#include "intaglio/io/gguf_part.hpp"
#include "intaglio/platform/path_text.hpp"

namespace intaglio::io {

/// Metadata and tensor list of a model. The metadata comes from the first part.
class gguf {
 public:
  /// @throws file_error; for a split model also where parts are missing or do not belong together
  static gguf open(const std::filesystem::path& path) {
    gguf out;
    out.parts_.emplace_back(mapped_file(path), std::size_t{0}, std::nullopt);
    out.open_other_parts(path);
    out.index();
    return out;
  }
  /// Opens a whole model in memory, which must outlive the result. @throws file_error
  static gguf from_memory(std::span<const std::byte> bytes, std::string name) {
    return from_file(mapped_file::from_memory(bytes, std::move(name)));
  }
  /// Opens a whole model in one file. @throws file_error
  static gguf from_file(mapped_file file) {
    gguf out;
    out.parts_.emplace_back(std::move(file), std::size_t{0}, std::nullopt);
    if (const auto count = out.first().number<std::uint16_t>("split.count"); count && *count > 1)
      throw file_error(out.path(), std::nullopt, "one part of a split model cannot stand alone", "1 part",
                       std::to_string(*count));
    out.index();
    return out;
  }

  const std::string& path() const { return first().file().path(); }
  const gguf_part& first() const { return parts_.front(); }
  const std::vector<gguf_part>& parts() const { return parts_; }
  /// The tensors of all parts, in file order.
  const std::vector<gguf_tensor>& tensors() const { return tensors_; }
  const std::vector<std::string>& warnings() const { return warnings_; }

  const gguf_tensor* find_tensor(std::string_view name) const {
    const auto at = std::lower_bound(by_name_.begin(), by_name_.end(), name,
                                     [&](std::size_t i, std::string_view n) { return tensors_[i].name < n; });
    return at != by_name_.end() && tensors_[*at].name == name ? &tensors_[*at] : nullptr;
  }
  /// A key's value in the first part, as gguf_part's accessors give it.
  template <class T>
  std::optional<T> value(std::string_view key) const {
    return first().value<T>(key);
  }
  template <class T>
  std::optional<T> number(std::string_view key) const {
    return first().number<T>(key);
  }
  template <class T>
  std::optional<std::vector<T>> numbers(std::string_view key) const {
    return first().numbers<T>(key);
  }
  template <class T>
  std::optional<std::vector<T>> array(std::string_view key) const {
    return first().array<T>(key);
  }

  /// Gives the files to the reader of the tensors.
  std::vector<gguf_part> release_parts() && { return std::move(parts_); }

 private:
  gguf() = default;

  [[gnu::cold]] void open_other_parts(const std::filesystem::path& path) {
    const auto count = first().number<std::uint16_t>("split.count");
    const auto its_part = first().number<std::uint16_t>("split.no");
    if (!count || *count <= 1) return;
    const std::string file = path.filename().string();
    const auto part_name = [&](unsigned part) { return gguf_part_name(file, part, *count); };
    if (!its_part)  // one that is not 0 was refused when the file was read
      throw file_error(first().file().path(), std::nullopt, "this is not the first part of a split model",
                       printable(part_name(0)), "no split.no");
    if (file != part_name(0))
      throw file_error(first().file().path(), std::nullopt, "the name of a split model's first part",
                       "PREFIX" + part_name(0).substr(part_name(0).size() - 20), printable(file));
    std::string missing;
    for (unsigned part = 1; part < *count; ++part) {
      std::error_code ignored;
      if (!std::filesystem::exists(path.parent_path() / platform::path_of(part_name(part)), ignored) &&
          missing.size() < 200)
        missing += (missing.empty() ? "" : ", ") + printable(part_name(part));
    }
    if (!missing.empty())
      throw file_error(first().file().path(), std::nullopt, "parts of the split model are missing",
                       std::to_string(*count) + " parts", "none of: " + missing);
    for (unsigned part = 1; part < *count; ++part) {
      parts_.emplace_back(mapped_file(path.parent_path() / platform::path_of(part_name(part))), std::size_t{part},
                          first().bitnet());
      const gguf_part& added = parts_.back();
      const auto its_number = added.number<std::uint16_t>("split.no"),
                 its_count = added.number<std::uint16_t>("split.count");
      if (its_number != static_cast<std::uint16_t>(part) || its_count != count)
        throw file_error(added.file().path(), std::nullopt, "not the part of the split model that its name says",
                         "split.no " + std::to_string(part) + " of " + std::to_string(*count),
                         its_number && its_count ? std::to_string(*its_number) + " of " + std::to_string(*its_count)
                                                 : "no split keys");
      if (const auto its = added.value<std::string>("general.architecture");
          its && its != first().value<std::string>("general.architecture"))
        throw file_error(added.file().path(), std::nullopt, "a part of another model",
                         first().value<std::string>("general.architecture").value_or(""), printable(*its));
    }
    std::size_t total = 0;
    for (const gguf_part& part : parts_) total += part.tensors().size();
    if (const auto stated = first().number<std::int64_t>("split.tensors.count");
        stated && !std::cmp_equal(*stated, total))
      throw file_error(first().file().path(), first().find("split.tensors.count")->offset, "split.tensors.count",
                       std::to_string(*stated), std::to_string(total));
  }

  [[gnu::cold]] void index() {
    for (const gguf_part& part : parts_) {
      tensors_.insert(tensors_.end(), part.tensors().begin(), part.tensors().end());
      for (const std::string& line : part.warnings()) warnings_.push_back(in_file(part.file().path(), line));
    }
    by_name_ = sorted_indices(tensors_.size(),
                              [&](std::size_t a, std::size_t b) { return tensors_[a].name < tensors_[b].name; });
    for (std::size_t i = 1; i < by_name_.size(); ++i) {
      const gguf_tensor &before = tensors_[by_name_[i - 1]], &after = tensors_[by_name_[i]];
      if (before.name == after.name)
        throw file_error(parts_[after.part].file().path(), after.info_offset,
                         "tensor '" + printable(after.name, 70) + "' is in two parts", "one",
                         printable(parts_[before.part].file().path(), 120));
    }
  }

  std::vector<gguf_part> parts_;
  std::vector<gguf_tensor> tensors_;
  std::vector<std::size_t> by_name_;
  std::vector<std::string> warnings_;
};

}  // namespace intaglio::io
