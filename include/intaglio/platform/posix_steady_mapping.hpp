// SPDX-License-Identifier: MIT
// platform/steady_mapping.hpp on POSIX systems. Only that header includes it. Touching a page of a mapped file that was
// shortened raises SIGBUS, and no handler helps in threads that block all signals, as those of Mesa's CPU driver do. So
// the file is leased (fcntl, F_SETLEASE) until its bytes have been copied into memory of the process, which then
// replaces the mapping at the same addresses.
#pragma once

#include "intaglio/core/compiler.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <future>
#include <span>
#include <system_error>
#include <thread>
#include <utility>

#include "intaglio/core/checked.hpp"
#include "intaglio/platform/files.hpp"
#include "intaglio/platform/process.hpp"

namespace intaglio::platform {

/// A mapping whose bytes do not change. Several threads may read. One thread calls lease(), and map() where lease()
/// gave 0.
class steady_mapping {
 public:
  /// @param file open until the end, opened only for this object
  steady_mapping(file_number file, std::uint64_t size, whole_reader read)
      : file_(file), size_(size), read_(std::move(read)) {}
  steady_mapping(const steady_mapping&) = delete;
  steady_mapping& operator=(const steady_mapping&) = delete;
  ~steady_mapping() {
#if defined(F_SETLEASE)
    if (watcher_.joinable()) {
      if (process_ == process_id()) {
        ends_ = true;
        ::pthread_kill(watcher_.native_handle(), SIGIO);
        watcher_.join();
      } else {
        watcher_.detach();  // a forked child has no such thread
      }
    }
#endif
    if (whole_.data() != nullptr) ::munmap(whole_.data(), whole_.size());
  }

  /// Takes the lease: from here on nobody can write to the file before its bytes were copied.
  /// @return 0 or an errno: EAGAIN where somebody has it open for writing, EACCES where it is another user's, ENOTSUP
  /// where the system has no leases
  int lease() {
#if defined(F_SETLEASE)
    // The thread that the system's signal about writers goes to. Only this thread receives it, so the program's own
    // signals are not affected.
    std::promise<int> started;
    std::future<int> answer = started.get_future();
    ::sigset_t all, before;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before);
    try {
      watcher_ = std::thread([this, promise = std::move(started)]() mutable { watch(std::move(promise)); });
    } catch (const std::system_error& problem) {
      ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
      return problem.code().value();
    }
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return answer.get();
#else
    return ENOTSUP;
#endif
  }

  /// Maps the file. @param alignment of the first byte and of the size, a power of two; zeros fill the end
  /// @return 0 or an errno
  int map(std::uint64_t alignment) {
    const std::uint64_t step = (std::max)(alignment, page_size()),
                        size = (checked_size{size_} + checked_size{step - 1}).value() / step * step;
    // First zeros at an address with room to align, then the file over them.
    const auto room = static_cast<std::size_t>((checked_size{size} + checked_size{step - page_size()}).value());
    void* const base = ::mmap(nullptr, room, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED) return errno;
    whole_ = {static_cast<std::byte*>(base), room};
    const std::uint64_t skipped = (step - reinterpret_cast<std::uintptr_t>(base) % step) % step;
    bytes_ = whole_.subspan(static_cast<std::size_t>(skipped), static_cast<std::size_t>(size));
    if (::mmap(bytes_.data(), static_cast<std::size_t>(size_), PROT_READ, MAP_PRIVATE | MAP_FIXED, file_, 0) ==
        MAP_FAILED)
      return errno;
    mapped_ = true;
    return 0;
  }

  /// The file's bytes, and zeros up to a multiple of the alignment.
  std::span<const std::byte> bytes() const noexcept { return bytes_; }
  /// True once somebody opened the file for writing: the bytes are now a copy in memory of the process.
  bool copied() const noexcept { return copied_; }
  /// Whether the bytes could not be copied before they changed. Zeros may replace them.
  bool lost() const noexcept { return lost_.load(std::memory_order_acquire); }

  /// Reads a range into memory and maps its pages, where the system can do that. @return false: the file cannot be read
  /// there
  bool populate(std::uint64_t from, std::uint64_t count) const {
#ifdef MADV_POPULATE_READ  // Linux 5.14 and newer
    const std::uint64_t begin = from / page_size() * page_size();
    return ::madvise(const_cast<std::byte*>(bytes_.data()) + begin, static_cast<std::size_t>(from + count - begin),
                     MADV_POPULATE_READ) == 0 ||
           errno != EFAULT;
#else
    return static_cast<void>(from), static_cast<void>(count), true;
#endif
  }

 private:
#if defined(F_SETLEASE)
  void watch(std::promise<int> started) {
    const ::f_owner_ex me{F_OWNER_TID, ::gettid()};
    const int problem = ::fcntl(file_, F_SETOWN_EX, &me) != 0 || ::fcntl(file_, F_SETLEASE, F_RDLCK) != 0 ? errno : 0;
    started.set_value(problem);
    if (problem != 0) return;
    ::sigset_t awaited;
    ::sigemptyset(&awaited);
    ::sigaddset(&awaited, SIGIO);
    while (!ends_) {
      ::sigwaitinfo(&awaited, nullptr);
      if (ends_ || ::fcntl(file_, F_GETLEASE) == F_RDLCK) continue;
      while (!mapped_ && !ends_) std::this_thread::yield();  // a writer came before map()
      if (!ends_) copy();
      ::fcntl(file_, F_SETLEASE, F_UNLCK);  // lets the writer go on
      return;
    }
  }

  /// Replaces the mapping by memory with the same bytes, atomically for all threads that read there.
  void copy() noexcept {
    void* const made =
        ::mmap(nullptr, bytes_.size(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    bool whole = made != MAP_FAILED, unchanged = false;
    try {
      if (whole) unchanged = read_(std::span(static_cast<std::byte*>(made), static_cast<std::size_t>(size_)));
    } catch (...) { whole = false; }
    // The system waits for /proc/sys/fs/lease-break-time, 45 s by default, and then lets the writer go on.
    if (!unchanged) lost_ = true;
    if (whole) {
      ::mprotect(made, bytes_.size(), PROT_READ);
      whole = ::mremap(made, bytes_.size(), bytes_.size(), MREMAP_MAYMOVE | MREMAP_FIXED, bytes_.data()) != MAP_FAILED;
    }
    if (!whole) {
      lost_ = true;
      ::mmap(bytes_.data(), bytes_.size(), PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
      if (made != MAP_FAILED) ::munmap(made, bytes_.size());
    }
    copied_ = true;
  }
#endif

  file_number file_;
  std::uint64_t size_;
  whole_reader read_;
  std::span<std::byte> whole_, bytes_;
  std::atomic<bool> mapped_{false}, copied_{false}, lost_{false}, ends_{false};
#if defined(F_SETLEASE)
  process_number process_ = process_id();
  std::thread watcher_;
#endif
};

}  // namespace intaglio::platform
