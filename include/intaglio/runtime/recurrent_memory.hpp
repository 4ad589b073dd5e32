// SPDX-License-Identifier: MIT
// The memory of a session's recurrent layers: their state after the last token, and copies of it after earlier
// tokens. A state cannot go back. To go back, a session continues from the newest earlier copy and feeds the tokens
// between anew.
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

/// The positions of a state and of its copies, and which copy is replaced by a new one. This class holds no memory.
class state_positions {
 public:
  /// @param copies number of copies that there is room for
  explicit state_positions(std::uint32_t copies) : copies_(copies) { held_.reserve(copies); }

  static constexpr std::uint32_t nowhere = ~0u;
  /// Tokens from one copy to the next, where tokens are fed one at a time.
  static constexpr std::uint32_t interval = 64;

  /// A copy of the state at an earlier position.
  struct held {
    std::uint32_t position = 0;  ///< number of tokens before it
    std::uint32_t index = 0;     ///< index of the copy
  };
  /// Number of tokens after which the state is; `nowhere`: the state is not valid.
  std::uint32_t position() const noexcept { return at_; }
  /// The copies by ascending position.
  const std::vector<held>& copies() const noexcept { return held_; }

  /// The last position up to this one from which a pass can go on; 0 always can.
  std::uint32_t kept(std::uint32_t position) const {
    if (position == at_) return position;
    const held* found = newest(position);
    return found == nullptr ? 0 : found->position;
  }
  /// Moves the state to a position, after which other tokens may follow than before: copies after it are forgotten.
  /// @return the copy to load, if any; without one the position is `nowhere`
  std::optional<held> go_to(std::uint32_t position) {
    const bool is_there = position == at_ || position == 0;
    std::erase_if(held_, [&](const held& each) { return each.position > position; });
    const held* found = newest(position);
    const bool copied = !is_there && found != nullptr && found->position == position;
    at_ = is_there || copied ? position : nowhere;
    return copied ? std::optional(*found) : std::nullopt;
  }
  /// Notes that a pass ended after this many tokens. @param many whether it had several tokens
  /// @return the copy to make, if any
  std::optional<held> passed(std::uint32_t position, bool many) {
    if (at_ == nowhere) return std::nullopt;
    at_ = position;
    const std::uint32_t newest_at = held_.empty() ? 0 : held_.back().position;
    if (copies_ == 0 || position <= newest_at || (!many && position - newest_at < interval)) return std::nullopt;
    held_.push_back({position, vacant_index()});
    return held_.back();
  }
  /// Marks the state as not valid; copies stay.
  void lose() noexcept { at_ = nowhere; }
  /// Marks the state and all copies as not valid.
  void lose_all() noexcept {
    lose();
    held_.clear();
  }
  /// Notes that the state was loaded from elsewhere.
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
  /// A vacant index. If none is vacant, the copy whose neighbours are closest is replaced; the newest copy stays.
  std::uint32_t vacant_index() {
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
    std::uint32_t index = 0;
    while (std::any_of(held_.begin(), held_.end(), [&](const held& each) { return each.index == index; })) ++index;
    return index;
  }

  std::uint32_t copies_, at_ = 0;
  std::vector<held> held_;
};

/// The memory of a state and its copies, and recorded commands that copy between them. Plans without recurrent layers
/// have none.
class recurrent_memory {
 public:
  recurrent_memory() = default;
  [[gnu::cold]] recurrent_memory(const gpu::device& on, const plan::table& of)
      : bytes_(of.kept_bytes()), positions_(of.snapshots()),
        buffer_(on, of.recurrent_bytes(), gpu::placement::device_local, "the state of recurrent layers") {
    for (std::uint32_t index = 0; index < of.snapshots(); ++index) {
      makes_.push_back(copy(on, "copy the state of " + model_name(of), 0, offset_of(index)));
      takes_.push_back(copy(on, "take back a state of " + model_name(of), offset_of(index), 0));
    }
    for (std::uint32_t layer = 0; layer < of.config->num_hidden_layers; ++layer)
      addresses_.push_back(buffer_.address() + of.kept_offset(layer));
  }

  bool empty() const noexcept { return bytes_ == 0; }
  const gpu::buffer& buffer() const noexcept { return buffer_; }
  std::uint64_t state_bytes() const noexcept { return bytes_; }  ///< of one position
  /// Addresses by layer.
  const std::vector<std::uint64_t>& addresses() const noexcept { return addresses_; }
  state_positions& positions() noexcept { return positions_; }
  const state_positions& positions() const noexcept { return positions_; }

  /// Moves the state to a position, as state_positions::go_to does. @return commands to run, or null
  VkCommandBuffer go_to(std::uint32_t position) {
    const auto copied = positions_.go_to(position);
    return copied ? takes_[copied->index].handle() : nullptr;
  }
  VkCommandBuffer passed(std::uint32_t position, bool many) {
    const auto copied = positions_.passed(position, many);
    return copied ? makes_[copied->index].handle() : nullptr;
  }
  /// The offset of the state of a position that kept() has returned.
  std::uint64_t offset_at(std::uint32_t position) const {
    for (const auto& each : positions_.copies())
      if (each.position == position && position != positions_.position()) return offset_of(each.index);
    return 0;
  }

 private:
  std::uint64_t offset_of(std::uint32_t index) const { return (index + std::uint64_t{1}) * bytes_; }
  gpu::recording copy(const gpu::device& on, const std::string& name, std::uint64_t from, std::uint64_t to) const {
    gpu::recorder out(on, name);
    out.copy(buffer_, from, buffer_, to, bytes_);
    return out.finish();
  }

  std::uint64_t bytes_ = 0;
  state_positions positions_{0};
  gpu::buffer buffer_;
  std::vector<std::uint64_t> addresses_;
  std::vector<gpu::recording> makes_, takes_;  ///< by index of the copy
};

}  // namespace intaglio::runtime
