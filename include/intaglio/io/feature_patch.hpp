// SPDX-License-Identifier: MIT
// Changes to a feature index that leave its files unchanged: a journal beside it, to which inserted, replaced and
// removed features are appended (docs/walk.md). When apply() has returned, the change is on the disk. A record that a
// killed process left unfinished does not count.
#pragma once

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "intaglio/core/number_text.hpp"
#include "intaglio/io/crc32.hpp"
#include "intaglio/io/feature_changes.hpp"
#include "intaglio/io/feature_index.hpp"
#include "intaglio/platform/files.hpp"

namespace intaglio::io {

/// One change. A new feature takes the number of a removed one, or comes after the layer's last. A removed one stays
/// as a feature of zeros, so the numbers of others do not change. A restored one has the index's own vectors again.
struct feature_change {
  feature_edit edit = feature_edit::insert;
  std::uint32_t layer = 0, feature = 0;
  std::array<std::vector<float>, 3> vectors{};  ///< by feature_vector, hidden_size each; none for remove and restore
};

/// An index with its journal. Movable. There may be several readers, and one writer.
class feature_patch final : public feature_changes {
 public:
  static constexpr std::string_view default_file = "patch.journal";

  /// Reads the journal, where there is one. @param writes apply() may be called: then no other process may write
  /// @throws file_error for a journal of another index, a damaged record, a record that does not fit the index; another
  /// writer
  feature_patch(const feature_index& index, const std::filesystem::path& file, bool writes)
      : index_(&index), path_(file.string()) {
    added_.assign(index.layers(), 0);
    descriptor_ = platform::open_file(file, writes ? platform::file_access::journal : platform::file_access::read);
    if (descriptor_ < 0 && (writes || errno != ENOENT))
      refuse(std::nullopt, "cannot open: " + platform::system_text(errno));
    if (descriptor_ < 0) return;
    if (writes && !platform::lock_file(descriptor_)) refuse(std::nullopt, "another process is writing this journal");
    writes_ = writes;
    try {
      read_all();
    } catch (...) {
      close();
      throw;
    }
  }
  feature_patch(feature_patch&& other) noexcept { swap(other); }
  feature_patch& operator=(feature_patch&& other) noexcept {
    feature_patch(std::move(other)).swap(*this);
    return *this;
  }
  ~feature_patch() override { close(); }

  const feature_index& index() const { return *index_; }
  void expect_model(const decoder_config& config) const override {
    if (auto lines = index_->differences(config); !lines.empty())
      throw mismatch_error((index_->path() / feature_index_file).string(), std::move(lines), {});
  }
  /// Number of changes in the journal.
  std::size_t changes() const { return changes_; }
  /// Number of features of a layer, with inserted ones.
  std::uint32_t features(std::uint32_t layer) const { return index_->layer(layer).features + added_[layer]; }

  bool is_removed(std::uint32_t layer, std::uint32_t feature) const {
    const auto found = overlay_.find({layer, feature});
    return found != overlay_.end() && found->second[0].empty();
  }
  /// The number that a new feature of a layer gets: the lowest removed one, else the next after the last.
  std::uint32_t next_feature(std::uint32_t layer) const {
    for (auto at = overlay_.lower_bound({layer, 0}); at != overlay_.end() && at->first.first == layer; ++at)
      if (at->second[0].empty()) return at->first.second;
    return features(layer);
  }
  /// All features that differ from the index, ordered by layer and feature.
  std::vector<changed_feature> changed() const override {
    std::vector<changed_feature> out;
    for (const auto& [at, vectors] : overlay_)
      out.push_back({at.first, at.second,
                     vectors[0].empty()                              ? feature_edit::remove
                     : at.second >= index_->layer(at.first).features ? feature_edit::insert
                                                                     : feature_edit::update});
    return out;
  }

  /// Appends a change, which then counts. @throws argument_error for one that does not fit the index; file_error where
  /// it cannot be written: then it does not count
  void apply(const feature_change& change) {
    if (!writes_) throw argument_error("journal", "one opened for writing", "one opened for reading");
    if (const std::string fault = fault_of(change); !fault.empty())
      throw argument_error("change", fault,
                           std::string(name(change.edit)) + " of feature " + std::to_string(change.feature) +
                               " of layer " + std::to_string(change.layer));
    std::vector<std::byte> bytes;
    if (end_ == 0) put(bytes, file_head());
    record_head head{record_magic, static_cast<std::uint32_t>(change.edit), change.layer, change.feature};
    const std::size_t begin = bytes.size();
    put(bytes, head);
    if (has_vectors(change.edit))
      for (const auto& vector : change.vectors) {
        const auto part = std::as_bytes(std::span(vector));
        bytes.insert(bytes.end(), part.begin(), part.end());
      }
    put(bytes, crc32(std::span(bytes).subspan(begin)));
    // The unfinished record of a killed writer is cut off first. Until the new record is complete, the next reader
    // treats it as unfinished too.
    if (!platform::cut_file(descriptor_, end_)) fail("cannot cut");
    for (std::size_t done = 0; done < bytes.size();) {
      const std::int64_t count = platform::write_at(descriptor_, end_ + done, std::span(bytes).subspan(done));
      if (count <= 0) fail("cannot write");
      done += static_cast<std::size_t>(count);
    }
    if (!platform::flush_file(descriptor_)) fail("cannot flush");
    end_ += bytes.size();
    take(change);
  }

  /// Reads the changed values of vectors [first, first + count) of a layer. @shape out: [count, hidden_size]
  void read_f32(std::uint32_t layer, feature_vector which, std::uint64_t first, std::uint64_t count,
                std::span<float> out) const override {
    const std::size_t width = index_->config().hidden_size;
    const std::uint64_t base = index_->layer(layer).features;
    if (!range_inside(first, count, features(layer)) || out.size() != count * width)
      throw argument_error(
          "features", "features inside 0.." + std::to_string(features(layer)) + " and room for their vectors",
          std::to_string(first) + " + " + std::to_string(count) + ", room for " + std::to_string(out.size()));
    const std::uint64_t stored = first < base ? (std::min)(count, base - first) : 0;
    if (stored != 0) index_->read_f32(layer, which, first, stored, out.first(static_cast<std::size_t>(stored) * width));
    for (auto at = overlay_.lower_bound({layer, static_cast<std::uint32_t>(first)});
         at != overlay_.end() && at->first.first == layer && at->first.second < first + count; ++at) {
      const auto to = out.subspan(static_cast<std::size_t>(at->first.second - first) * width, width);
      const auto& from = at->second[static_cast<std::size_t>(which)];
      if (from.empty()) std::ranges::fill(to, 0.f);
      else std::ranges::copy(from, to.begin());
    }
  }

 private:
  static constexpr std::uint32_t record_magic = 0x54504649;  // "IFPT"
  struct file_header {
    std::array<char, 8> magic{'I', 'N', 'T', 'P', 'A', 'T', 'C', '1'};
    std::uint32_t identity = 0, hidden_size = 0;
  };
  struct record_head {
    std::uint32_t magic = 0, edit = 0, layer = 0, feature = 0;
  };

  static constexpr bool has_vectors(feature_edit edit) {
    return edit == feature_edit::insert || edit == feature_edit::update;
  }

  template <class T>
  static void put(std::vector<std::byte>& to, const T& value) {
    const auto bytes = std::as_bytes(std::span(&value, 1));
    to.insert(to.end(), bytes.begin(), bytes.end());
  }
  file_header file_head() const {
    return {.identity = index_->identity(), .hidden_size = index_->config().hidden_size};
  }

  /// Why a change does not fit; empty where it does.
  std::string fault_of(const feature_change& change) const {
    if (change.edit < feature_edit::insert || change.edit > feature_edit::restore)
      return "insert, update, remove or restore";
    if (index_->config().num_local_experts != 0)
      return "an index whose features are of one FFN a layer: a mixture's experts stay as they are";
    if (change.layer >= index_->layers()) return "a layer of " + std::to_string(index_->layers());
    const std::uint32_t count = features(change.layer);
    const bool ternary = index_->layer(change.layer)[feature_vector::gate].type == dtype::i2_s;
    if (change.edit == feature_edit::insert && !is_removed(change.layer, change.feature)) {
      if (ternary)
        return "the number of a removed feature: a ternary FFN has a norm over its features, whose number it keeps";
      if (change.feature != count)
        return "a new feature after the last, " + std::to_string(count) + ", or the number of a removed one";
      if (count >= config_limits::intermediate_size)
        return "at most " + std::to_string(config_limits::intermediate_size) + " features";
    }
    if (change.edit != feature_edit::insert && change.feature >= count) return "a feature of " + std::to_string(count);
    if (change.edit == feature_edit::restore && change.feature >= index_->layer(change.layer).features)
      return "a feature that the index has";
    if (!has_vectors(change.edit)) return {};
    for (const feature_vector which : feature_vectors) {
      const float scale = index_->layer(change.layer)[which].scale;
      if (!ternary) break;
      for (const float value : change.vectors[static_cast<std::size_t>(which)])
        if (value != 0 && std::fabs(value) != scale)
          return "values -s, 0 and s, s being the scale of the layer's " + std::string(name(which)) + " vectors, " +
                 number_text(scale);
    }
    for (const auto& vector : change.vectors) {
      if (vector.size() != index_->config().hidden_size)
        return "three vectors of " + std::to_string(index_->config().hidden_size);
      if (!codec_blocks::all_finite(vector)) return "finite numbers";
    }
    return {};
  }
  void take(const feature_change& change) {
    if (change.edit == feature_edit::insert && change.feature == features(change.layer)) ++added_[change.layer];
    if (change.edit == feature_edit::restore) overlay_.erase({change.layer, change.feature});
    else
      overlay_[{change.layer, change.feature}] =
          change.edit == feature_edit::remove ? std::array<std::vector<float>, 3>{} : change.vectors;
    ++changes_;
  }

  void read_all() {
    platform::file_status status;
    if (!platform::status_of(descriptor_, status))
      refuse(std::nullopt, "cannot read its size: " + platform::system_text(errno));
    const auto whole = static_cast<std::uint64_t>(status.size);
    const file_header wanted = file_head();
    file_header found;
    if (whole < sizeof found) return;  // nothing, or the unfinished first record of a killed writer
    read(0, std::as_writable_bytes(std::span(&found, 1)));
    if (found.magic != wanted.magic)
      refuse(0, "not a journal of changes", "INTPATC1",
             printable(std::string_view(found.magic.data(), found.magic.size())));
    if (found.identity != wanted.identity || found.hidden_size != wanted.hidden_size)
      refuse(8, "a journal of another index",
             feature_json::hex8(wanted.identity) + ", hidden_size " + std::to_string(wanted.hidden_size),
             feature_json::hex8(found.identity) + ", hidden_size " + std::to_string(found.hidden_size));
    end_ = sizeof found;
    const std::uint64_t vectors = std::uint64_t{3} * 4 * wanted.hidden_size;
    std::vector<std::byte> bytes;
    while (whole - end_ >= sizeof(record_head)) {
      record_head head;
      read(end_, std::as_writable_bytes(std::span(&head, 1)));
      const bool known = head.magic == record_magic && head.edit >= 1 && head.edit <= 4;
      const std::uint64_t length = sizeof head + (has_vectors(static_cast<feature_edit>(head.edit)) ? vectors : 0) + 4;
      if (known && length > whole - end_) return;  // unfinished
      bytes.resize(static_cast<std::size_t>(known ? length : 0));
      std::uint32_t sum = 0;
      if (known) {
        read(end_, bytes);
        std::memcpy(&sum, bytes.data() + bytes.size() - 4, 4);
      }
      if (!known || crc32(std::span(bytes).first(bytes.size() - 4)) != sum)
        refuse(end_, "record " + std::to_string(changes_) + " is damaged", "its checksum", "another");
      feature_change change{static_cast<feature_edit>(head.edit), head.layer, head.feature, {}};
      if (has_vectors(change.edit))
        for (std::size_t i = 0; i < 3; ++i) {
          change.vectors[i].resize(wanted.hidden_size);
          std::memcpy(change.vectors[i].data(), bytes.data() + sizeof head + i * 4 * wanted.hidden_size,
                      std::size_t{4} * wanted.hidden_size);
        }
      if (const std::string fault = fault_of(change); !fault.empty())
        refuse(end_, "record " + std::to_string(changes_), fault,
               std::string(name(change.edit)) + " of feature " + std::to_string(change.feature) + " of layer " +
                   std::to_string(change.layer));
      take(change);
      end_ += length;
    }
  }
  void read(std::uint64_t offset, std::span<std::byte> out) const {
    for (std::size_t done = 0; done < out.size();) {
      const std::int64_t count = platform::read_at(descriptor_, offset + done, out.subspan(done));
      if (count <= 0)
        throw file_error(
            path_, offset + done,
            count < 0 ? "cannot read: " + platform::system_text(errno) : "the file was cut while it was being read");
      done += static_cast<std::size_t>(count);
    }
  }
  [[noreturn]] void refuse(std::optional<std::uint64_t> offset, std::string what, std::string expected = {},
                           std::string found = {}) {
    close();
    throw file_error(path_, offset, std::move(what), std::move(expected), std::move(found));
  }
  [[noreturn]] void fail(const std::string& what) const {
    throw file_error(path_, end_, what + ": " + platform::system_text(errno));
  }
  void close() noexcept {
    if (descriptor_ >= 0) platform::close_file(descriptor_);
    descriptor_ = -1;
  }
  void swap(feature_patch& other) noexcept {
    std::swap(index_, other.index_);
    std::swap(path_, other.path_);
    std::swap(descriptor_, other.descriptor_);
    std::swap(writes_, other.writes_);
    std::swap(end_, other.end_);
    std::swap(changes_, other.changes_);
    std::swap(added_, other.added_);
    std::swap(overlay_, other.overlay_);
  }

  const feature_index* index_ = nullptr;
  std::string path_;
  platform::file_number descriptor_ = -1;
  bool writes_ = false;
  std::uint64_t end_ = 0;  ///< end of the last complete record; 0: there is no header yet
  std::size_t changes_ = 0;
  std::vector<std::uint32_t> added_;  ///< by layer
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::array<std::vector<float>, 3>>
      overlay_;  ///< by layer and feature; empty: removed
};

}  // namespace intaglio::io
