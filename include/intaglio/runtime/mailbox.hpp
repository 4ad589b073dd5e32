// SPDX-License-Identifier: MIT
// A buffer that the host writes, and commands that copy it to where kernels read it: positions, tokens, sampling.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>

#include "intaglio/gpu/recorder.hpp"

namespace intaglio::runtime {

/// Memory that the host writes and recorded commands copy to the session's state.
class mailbox {
 public:
  mailbox() = default;
  /// Makes a mailbox of zeros. @error out_of_memory, device_lost
  mailbox(const gpu::device& on, std::uint64_t bytes) : buffer_(on, bytes, gpu::placement::shared, "the mailbox") {
    std::memset(buffer_.mapped().data(), 0, buffer_.mapped().size());
  }

  std::span<std::byte> mapped() const { return buffer_.mapped(); }
  /// @param at in bytes, a multiple of 4
  std::span<std::uint32_t> words(std::uint64_t at, std::size_t count) const {
    return {reinterpret_cast<std::uint32_t*>(buffer_.mapped().data() + at), count};
  }
  /// Records commands that copy `bytes` from an offset of the mailbox to an offset of a buffer.
  gpu::recording feed(const gpu::device& on, const std::string& owner, std::uint64_t from, const gpu::buffer& to,
                      std::uint64_t at, std::uint64_t bytes) const {
    gpu::recorder record(on, "mailbox of " + owner);
    copy(record, from, to, at, bytes);
    return record.finish();
  }
  /// Records a copy of `bytes` from an offset of the mailbox to an offset of a buffer.
  void copy(gpu::recorder& record, std::uint64_t from, const gpu::buffer& to, std::uint64_t at,
            std::uint64_t bytes) const {
    record.copy(buffer_, from, to, at, bytes);
  }

 private:
  gpu::buffer buffer_;
};

}  // namespace intaglio::runtime
