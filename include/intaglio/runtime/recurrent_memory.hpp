// SPDX-License-Identifier: MIT
// What recurrent layers keep of a session: their state behind the last token, and copies of it behind earlier ones. A
// state cannot go back: a session that does goes on from the newest copy in front, and feeds what is between anew.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "intaglio/gpu/recorder.hpp"
#include "intaglio/plan/table.hpp"
#include "intaglio/runtime/placement.hpp"

namespace intaglio::runtime {

/// Which positions a state and its copies stand for, and which copy gives way to a new one. Knows no memory.
class state_positions {
 public:
  /// @param copies that there is room for
  explicit state_positions(std::uint32_t copies) : copies_(copies) { held_.reserve(copies); }

  static constexpr std::uint32_t nowhere = ~0u;
  static constexpr std::uint32_t interval = 64;  ///< tokens from one copy to the next, where tokens come one by one

  struct held {
    std::uint32_t position = 0;  ///< tokens before it
    std::uint32_t place = 0;     ///< of the copy, from 0
  };
  /// Tokens whose state there is; nowhere: it is that of no position.
  std::uint32_t position() const noexcept { return at_; }
  /// In rising order of positions.
  const std::vector<held>& copies() const noexcept { return held_; }

  /// The last position up to this one from which a pass can go on; 0 always can.
  std::uint32_t kept(std::uint32_t position) const {
    if (position == at_) return position;
    const held* found = newest(position);
    return found == nullptr ? 0 : found->position;
  }
  /// The state is to be that of a position, behind which other tokens may come than did: copies behind it are
  /// forgotten.
  /// @return the copy to be taken for that, if any; nowhere is left where there is none
  std::optional<held> go_to(std::uint32_t position) {
    const bool is_there = position == at_ || position == 0;
    std::erase_if(held_, [&](const held& each) { return each.position > position; });
    const held* found = newest(position);
    const bool copied = !is_there && found != nullptr && found->position == position;
    at_ = is_there || copied ? position : nowhere;
    return copied ? std::optional(*found) : std::nullopt;
  }
  /// A pass ended behind this many tokens. @param many whether it had several
  /// @return the copy that is to be made, if any
  std::optional<held> passed(std::uint32_t position, bool many) {
    if (at_ == nowhere) return std::nullopt;
    at_ = position;
    const std::uint32_t newest_at = held_.empty() ? 0 : held_.back().position;
    if (copies_ == 0 || position <= newest_at || (!many && position - newest_at < interval)) return std::nullopt;
    held_.push_back({position, vacant_place()});
    return held_.back();
  }
  /// The state is that of no position; copies stay.
  void lose() noexcept { at_ = nowhere; }
  /// Copies are lost too.
  void lose_all() noexcept {
    lose();
    held_.clear();
  }
  /// The state was put there from elsewhere.
  void restored(std::uint32_t position) noexcept {
    held_.clear();
    at_ = position;
  }

 private:
  const held* newest(std::uint32_t position) const {
    const held* out = nullptr;
    for (const held& each : held_)
      if (each.position <= position) out = &each;
    return out;
  }
  /// Where none is vacant, that of the copy whose neighbours are the closest gives way; the newest stays.
  std::uint32_t vacant_place() {
    if (held_.size() == copies_) {
      std::size_t closest = 0;
      const auto gap = [&](std::size_t i) {
        const std::uint32_t before = i == 0 ? 0 : held_[i - 1].position;
        return (i + 1 < held_.size() ? held_[i + 1].position : nowhere) - before;
      };
      for (std::size_t i = 1; i < held_.size(); ++i)
        if (gap(i) < gap(closest)) closest = i;
      held_.erase(held_.begin() + static_cast<std::ptrdiff_t>(closest));
    }
    std::uint32_t place = 0;
    while (std::any_of(held_.begin(), held_.end(), [&](const held& each) { return each.place == place; })) ++place;
    return place;
  }

  std::uint32_t copies_, at_ = 0;
  std::vector<held> held_;
};

/// The memory of both, and recorded commands that copy. Where a plan has no recurrent layers there is none.
class recurrent_memory {
 public:
  recurrent_memory() = default;
  [[gnu::cold]] recurrent_memory(const gpu::device& on, const plan::table& of)
      : bytes_(of.kept_bytes()), positions_(of.snapshots()),
        buffer_(on, of.recurrent_bytes(), gpu::placement::device_local, "the state of recurrent layers") {
    for (std::uint32_t place = 0; place < of.snapshots(); ++place) {
      makes_.push_back(copy(on, "copy the state of " + model_name(of), 0, offset_of(place)));
      takes_.push_back(copy(on, "take back a state of " + model_name(of), offset_of(place), 0));
    }
    for (std::uint32_t layer = 0; layer < of.config->num_hidden_layers; ++layer)
      addresses_.push_back(buffer_.address() + of.kept_offset(layer));
  }

  bool empty() const noexcept { return bytes_ == 0; }
  const gpu::buffer& buffer() const noexcept { return buffer_; }
  std::uint64_t state_bytes() const noexcept { return bytes_; }  ///< of one position
  /// By layer.
  const std::vector<std::uint64_t>& addresses() const noexcept { return addresses_; }
  state_positions& positions() noexcept { return positions_; }
  const state_positions& positions() const noexcept { return positions_; }

  /// Moves the state to a position, as state_positions::go_to does. @return commands, or null
  VkCommandBuffer go_to(std::uint32_t position) {
    const auto copied = positions_.go_to(position);
    return copied ? takes_[copied->place].handle() : nullptr;
  }
  VkCommandBuffer passed(std::uint32_t position, bool many) {
    const auto copied = positions_.passed(position, many);
    return copied ? makes_[copied->place].handle() : nullptr;
  }
  /// Where the state of a position is that kept() has given.
  std::uint64_t offset_at(std::uint32_t position) const {
    for (const auto& each : positions_.copies())
      if (each.position == position && position != positions_.position()) return offset_of(each.place);
    return 0;
  }

 private:
  std::uint64_t offset_of(std::uint32_t place) const { return (place + std::uint64_t{1}) * bytes_; }
  gpu::recording copy(const gpu::device& on, const std::string& name, std::uint64_t from, std::uint64_t to) const {
    gpu::recorder out(on, name);
    out.copy(buffer_, from, buffer_, to, bytes_);
    return out.finish();
  }

  std::uint64_t bytes_ = 0;
  state_positions positions_{0};
  gpu::buffer buffer_;
  std::vector<std::uint64_t> addresses_;
  std::vector<gpu::recording> makes_, takes_;  ///< by place
};

}  // namespace intaglio::runtime
