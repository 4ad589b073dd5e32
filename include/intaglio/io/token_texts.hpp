// SPDX-License-Identifier: MIT
// The bytes of every token in one block, a hash index from bytes to token, and a hash index from a pair of tokens to
// their merge. Built once from a validated vocabulary; lookups allocate nothing.
#pragma once

#include "intaglio/core/compiler.hpp"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace intaglio::io {

/// Mixes the bits of a key by multiplication and folding. It is no cryptographic hash.
constexpr std::uint64_t mix(std::uint64_t a) {
  a ^= a >> 32;
  a *= 0xD6E8FEB86659FD93u;
  a ^= a >> 32;
  a *= 0xD6E8FEB86659FD93u;
  return a ^ a >> 32;
}

/// A seed that differs from run to run, so that no file can be made whose keys all collide.
inline std::uint64_t hash_seed() {
  static const std::uint64_t seed =
      mix(static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count()) ^
          reinterpret_cast<std::uintptr_t>(&mix));
  return seed;
}

/// Hash of bytes for the tables of token texts.
inline std::uint64_t hash_bytes(std::string_view bytes, std::uint64_t seed) {
  std::uint64_t out = seed ^ bytes.size() * 0x9E3779B97F4A7C15u;
  const char* at = bytes.data();
  std::size_t left = bytes.size();
  for (; left > 8; left -= 8, at += 8) {
    std::uint64_t word;
    std::memcpy(&word, at, 8);
    out = mix(out ^ word);
  }
  std::uint64_t word = 0;
  if (left != 0) std::memcpy(&word, at, left);
  return mix(out ^ word);
}

/// Bytes of token 0, 1, 2, ... in one block.
class token_texts {
 public:
  void reserve(std::size_t tokens) { ends_.reserve(tokens + 1); }
  void add(std::string_view bytes) { bytes_.append(bytes), ends_.push_back(bytes_.size()); }
  std::size_t size() const { return ends_.size() - 1; }
  /// @param id 0 .. size() - 1, unchecked
  std::string_view operator[](std::int32_t id) const {
    const auto i = static_cast<std::size_t>(id);
    return std::string_view{bytes_}.substr(ends_[i], ends_[i + 1] - ends_[i]);
  }

 private:
  std::string bytes_;
  std::vector<std::size_t> ends_{0};
};

/// Finds the token with given bytes. Open addressing; it stores ids, the bytes are in token_texts.
class token_index {
 public:
  explicit token_index(std::size_t tokens = 0) : slots_(std::bit_ceil(tokens * 2 + 2), slot{0, -1}) {}

  /// Adds a token unless another one has the same bytes. @return the token that has these bytes now
  std::int32_t insert(const token_texts& texts, std::int32_t id) {
    const std::uint64_t hash = hash_bytes(texts[id], seed_);
    slot& found = slots_[slot_of(texts, texts[id], hash)];
    if (found.id < 0) {
      found = {static_cast<std::uint32_t>(hash >> 32), id};
      longest_ = (std::max)(longest_, texts[id].size());
    }
    return found.id;
  }

  /// @return the token, or -1
  std::int32_t find(const token_texts& texts, std::string_view bytes) const {
    return bytes.size() > longest_ ? -1 : slots_[slot_of(texts, bytes, hash_bytes(bytes, seed_))].id;
  }
  std::size_t longest() const { return longest_; }

 private:
  struct slot {
    std::uint32_t hash;
    std::int32_t id;
  };
  std::size_t slot_of(const token_texts& texts, std::string_view bytes, std::uint64_t hash) const {
    const auto high = static_cast<std::uint32_t>(hash >> 32);
    for (std::size_t i = hash & (slots_.size() - 1);; i = (i + 1) & (slots_.size() - 1))
      if (slots_[i].id < 0 || (slots_[i].hash == high && texts[slots_[i].id] == bytes)) return i;
  }
  std::vector<slot> slots_;
  std::size_t longest_ = 0;
  std::uint64_t seed_ = hash_seed();
};

/// Rank and result of merging two tokens.
struct token_merge {
  std::uint32_t rank;
  std::int32_t result;
};

/// Finds the merge of a pair of tokens. Open addressing.
class merge_index {
 public:
  explicit merge_index(std::size_t merges = 0) : slots_(std::bit_ceil(merges * 2 + 2)) {}

  /// @return false when the pair is there already
  bool insert(std::int32_t left, std::int32_t right, token_merge merge) {
    slot& found = slots_[slot_of(left, right)];
    if (found.merge.result >= 0) return false;
    found = {left, right, merge};
    return true;
  }

  /// @return the merge; result is -1 when the pair does not merge
  token_merge find(std::int32_t left, std::int32_t right) const { return slots_[slot_of(left, right)].merge; }

 private:
  struct slot {
    std::int32_t left = -1, right = -1;
    token_merge merge{0, -1};
  };
  std::size_t slot_of(std::int32_t left, std::int32_t right) const {
    const std::uint64_t key =
        static_cast<std::uint64_t>(static_cast<std::uint32_t>(left)) << 32 | static_cast<std::uint32_t>(right);
    for (std::size_t i = mix(key ^ seed_) & (slots_.size() - 1);; i = (i + 1) & (slots_.size() - 1))
      if (slots_[i].merge.result < 0 || (slots_[i].left == left && slots_[i].right == right)) return i;
  }
  std::vector<slot> slots_;
  std::uint64_t seed_ = hash_seed();
};

}  // namespace intaglio::io
