// SPDX-License-Identifier: MIT
// A file of torch.save (.pth, .bin, .pt): a ZIP whose data.pkl describes the tensors and whose data/KEY hold their
// bytes, which are read in place. Layout: pytorch's caffe2/serialize/inline_container.cc and torch/serialization.py.
// Files from before PyTorch 1.6 are no ZIP and are refused.
#pragma once

#include <array>
#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "intaglio/io/folder_tensor.hpp"
#include "intaglio/io/torch_pickle.hpp"
#include "intaglio/io/zip_archive.hpp"

namespace intaglio::io {

/// A tensor in the file's list.
struct torch_tensor : folder_tensor {
  std::uint32_t element_bytes = 1;
  std::uint64_t elements() const { return bytes / element_bytes; }
};

/// One parsed file.
class torch_file {
 public:
  using tensor = torch_tensor;
  static constexpr std::string_view name = "pytorch_model.bin", ending = ".bin";

  /// @throws file_error at the first violated rule
  [[gnu::cold]] explicit torch_file(mapped_file file) : file_(std::move(file)) {
    std::array<char, 4> magic{};
    file_.read(0, std::as_writable_bytes(std::span(magic))
                      .first(static_cast<std::size_t>((std::min<std::uint64_t>)(4, file_.size()))));
    if (std::string_view(magic.data(), 4) != "PK\x03\x04")
      throw file_error(file_.path(), 0, "no ZIP file of torch.save", "PK\\x03\\x04",
                       magic[0] == '\x80' ? "a bare pickle, as PyTorch wrote before 1.6" : "other bytes");
    const zip_archive archive(file_);
    members_ = archive.members();
    const std::string top = members_.front().name.substr(0, members_.front().name.find('/')) + "/";
    for (const zip_member& member : members_)
      if (!member.name.starts_with(top))
        throw file_error(file_.path(), member.offset, "member of the archive", "one in " + printable(top, 70),
                         "'" + printable(member.name, 70) + "'");
    read_version(archive, top);
    read_tensors(archive, top);
  }

  const mapped_file& file() const { return file_; }
  const std::vector<torch_tensor>& tensors() const { return tensors_; }
  /// The members that check_member can read completely.
  const std::vector<zip_member>& members() const { return members_; }
  mapped_file release_file() && { return std::move(file_); }

 private:
  const zip_member& required(const zip_archive& archive, const std::string& wanted, std::uint64_t most) const {
    const zip_member* member = archive.find(wanted);
    if (member == nullptr)
      throw file_error(file_.path(), std::nullopt, "member of the archive", "'" + printable(wanted, 70) + "'", "none");
    if (member->bytes == 0 || member->bytes > most)
      throw file_error(file_.path(), member->offset, "member '" + printable(wanted, 70) + "'",
                       "1 to " + std::to_string(most) + " bytes", std::to_string(member->bytes));
    check_member(file_, *member);
    return *member;
  }
  std::string text(const zip_member& member) const {
    std::string out(static_cast<std::size_t>(member.bytes), '\0');
    file_.read(member.offset, std::as_writable_bytes(std::span(out)));
    return out;
  }
  void read_version(const zip_archive& archive, const std::string& top) const {
    const zip_member& member = required(archive, top + "version", 16);
    std::string version = text(member);
    if (version.ends_with('\n')) version.pop_back();
    // PyTorch's caffe2/serialize/versions.h: kMinSupportedFileFormatVersion and kMaxSupportedFileFormatVersion.
    constexpr unsigned newest = 10;
    unsigned number = 0;
    const auto [end, problem] = std::from_chars(version.data(), version.data() + version.size(), number);
    if (problem != std::errc{} || end != version.data() + version.size() || number < 1 || number > newest)
      throw file_error(file_.path(), member.offset, "version of the archive", "1 to " + std::to_string(newest),
                       "'" + printable(version, 40) + "'");
    if (archive.find(top + "byteorder") == nullptr) return;  // before PyTorch 2.1
    const zip_member& order = required(archive, top + "byteorder", 16);
    if (const std::string found = text(order); found != "little")
      throw file_error(file_.path(), order.offset, "byte order", "little", "'" + printable(found, 40) + "'");
  }
  [[gnu::cold]] void read_tensors(const zip_archive& archive, const std::string& top) {
    const zip_member& described = required(archive, top + "data.pkl", torch_limits::pickle_bytes);
    const std::string bytes = text(described);
    const torch_pickle pickle(std::as_bytes(std::span(bytes)), file_.path(), described.offset);
    std::vector<const zip_member*> data;
    for (const torch_storage& storage : pickle.storages()) {
      const zip_member* member = archive.find(top + "data/" + storage.key);
      const checked_size size = checked_size(storage.elements) * storage.type->bytes;
      if (member == nullptr || !size || member->bytes != size.value())
        throw file_error(
            file_.path(), member == nullptr ? described.offset : member->offset, "storage " + storage.key,
            size ? std::to_string(size.value()) + " bytes in data/" + storage.key : "fewer than 2^64 bytes",
            member == nullptr ? "no such member" : std::to_string(member->bytes));
      data.push_back(member);
    }
    for (const torch_view& view : pickle.tensors()) {
      const torch_storage_type& type = *pickle.storages()[view.storage].type;
      std::uint64_t taken = type.bytes;
      for (const std::uint64_t size : view.shape) taken *= size;
      const std::uint64_t offset = data[view.storage]->offset + view.offset * type.bytes;
      tensors_.push_back({{view.name, type.name, type.type, view.shape, view.strides, 0, offset, taken}, type.bytes});
    }
  }

  mapped_file file_;
  std::vector<zip_member> members_;
  std::vector<torch_tensor> tensors_;
};

}  // namespace intaglio::io
