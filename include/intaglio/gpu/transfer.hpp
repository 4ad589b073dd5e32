// SPDX-License-Identifier: MIT
// Copies bytes between host and device: directly where both see the memory, else through two staging buffers, one being
// filled while the other is copied. No other host memory is used, whatever the size.
#pragma once

#include <intaglio/gpu/queue.hpp>
#include <intaglio/gpu/recorder.hpp>

#include <functional>

namespace intaglio::gpu {

/// Uploads and downloads on one device, for one thread. The destructor waits for the copies, so the object should be
/// destroyed before its buffers.
class transfer {
 public:
  /// Fills `into` with the bytes at offset `at` of the upload. It may throw, which ends the upload.
  using producer = std::function<void(std::span<std::byte> into, std::uint64_t at)>;

  /// @param staging_bytes size of each of the staging buffers, which are made when first needed
  /// @param direct false: use staging buffers even where host and device share memory
  explicit transfer(const device& on, std::uint64_t staging_bytes = std::uint64_t{16} << 20U, bool direct = true)
      : device_(on), line_(on), staging_bytes_((std::max<std::uint64_t>)(staging_bytes, 4096)), direct_(direct) {}

  /// Writes [offset, offset + size) of a buffer with the bytes that `produce` gives, piece by piece. The copies may
  /// still run when it returns: later submissions on this device see them, finish() waits for them. The device must not
  /// be using the range.
  /// @error argument_error: the range ends outside the buffer; out_of_memory, device_lost; exceptions of `produce`
  void upload(const buffer& to, std::uint64_t offset, std::uint64_t size_bytes, const producer& produce) {
    check_range(to, offset, size_bytes);
    if (size_bytes == 0) return;
    if (const auto direct = to.mapped(); direct_ && !direct.empty()) {
      for (std::uint64_t at = 0; at < size_bytes; at += staging_bytes_)
        produce(direct.subspan(static_cast<std::size_t>(offset + at),
                               static_cast<std::size_t>((std::min)(staging_bytes_, size_bytes - at))),
                at);
      return;
    }
    translated([&] {
      for (std::uint64_t at = 0; at < size_bytes; at += staging_bytes_) {
        const std::uint64_t piece = (std::min)(staging_bytes_, size_bytes - at);
        stage& slot = free(writing_[turn_++ % writing_.size()]);
        produce(slot.memory.mapped().first(static_cast<std::size_t>(piece)), at);
        recorder commands(device_, "upload", std::move(slot.commands));
        commands.copy(slot.memory, 0, to, offset + at, piece).full_barrier();
        slot.commands = commands.finish();
        slot.submission = submit(slot);
      }
    });
  }

  void upload(const buffer& to, std::uint64_t offset, std::span<const std::byte> bytes) {
    upload(to, offset, bytes.size(), [&](std::span<std::byte> into, std::uint64_t at) {
      std::memcpy(into.data(), bytes.data() + at, into.size());
    });
  }

  /// Waits until every upload is done.
  /// @error device_lost
  void finish() { line_.wait(line_.submitted()); }

  /// Reads [offset, offset + into.size()) of a buffer after all work submitted so far.
  /// @error argument_error: the range ends outside the buffer; out_of_memory, device_lost
  void download(const buffer& from, std::uint64_t offset, std::span<std::byte> into) {
    check_range(from, offset, into.size());
    if (into.empty()) return;
    translated([&] {
      if (const auto direct = from.mapped(); direct_ && !direct.empty()) {
        line_.wait(reading_.submission);
        reading_.commands =
            recorder(device_, "download").finish();  // only its barriers: device writes become visible here
        reading_.submission = submit(reading_);
        line_.wait(reading_.submission);
        std::memcpy(into.data(), direct.data() + offset, into.size());
        return;
      }
      for (std::uint64_t at = 0; at < into.size(); at += staging_bytes_) {
        const std::uint64_t piece = (std::min<std::uint64_t>)(staging_bytes_, into.size() - at);
        stage& slot = free(reading_);
        recorder commands(device_, "download", std::move(slot.commands));
        commands.copy(from, offset + at, slot.memory, 0, piece);
        slot.commands = commands.finish();
        slot.submission = submit(slot);
        line_.wait(slot.submission);
        std::memcpy(into.data() + at, slot.memory.mapped().data(), static_cast<std::size_t>(piece));
      }
    });
  }

 private:
  struct stage {
    buffer memory;
    recording commands;
    std::uint64_t submission = 0;
  };

  static void check_range(const buffer& of, std::uint64_t offset, std::uint64_t size) {
    if (offset > of.size_bytes() || size > of.size_bytes() - offset)
      throw argument_error("range to transfer", "a range inside " + std::to_string(of.size_bytes()) + " bytes",
                           std::to_string(size) + " bytes at " + std::to_string(offset));
  }

  /// A staging buffer whose last copy is done. It is cached by the host, which may read it again; devices copy from it
  /// as fast as from any other memory.
  stage& free(stage& slot) {
    line_.wait(slot.submission);
    if (!slot.memory) slot.memory = buffer(device_, staging_bytes_, placement::readback, "staging");
    return slot;
  }

  std::uint64_t submit(const stage& slot) {
    const VkCommandBuffer handle = slot.commands.handle();
    return line_.submit({&handle, 1}, slot.commands.name());
  }

  device device_;
  std::array<stage, 2> writing_;
  stage reading_;
  std::size_t turn_ = 0;
  queue line_;  // destroyed first, and waits: the members above may be in flight
  std::uint64_t staging_bytes_;
  bool direct_;
};

}  // namespace intaglio::gpu
