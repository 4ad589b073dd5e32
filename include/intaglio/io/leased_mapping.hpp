// SPDX-License-Identifier: MIT
// A file as memory that a device may read in place for long. A page of a mapped file that was cut raises SIGBUS where
// it is touched, and no handler helps in threads that block all signals, as those of Mesa's CPU driver do. So the file
// is leased (fcntl, F_SETLEASE): who opens it for writing or cuts it waits until its bytes have been copied into memory
// of our own, which then takes the mapping's place at the same addresses.
#pragma once

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
#include <memory>
#include <new>
#include <span>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "intaglio/core/checked.hpp"
#include "intaglio/core/error.hpp"
#include "intaglio/io/mapped_file.hpp"

namespace intaglio::io {

/// A mapping whose bytes stay those that were there when it was made. Reading may happen from several threads.
class leased_mapping {
 public:
  /// @param alignment of the first byte and of the size, a power of two; zeros fill up the end
  /// @param refusal where there is none: why not
  /// @return null where the system gives no lease: the file is open for writing, another user's, or on a file system
  /// that has none
  /// @error argument_error: no power of two; file_error: it was replaced or changed since it was opened, or cannot be
  /// mapped
  static std::shared_ptr<const leased_mapping> of(const mapped_file& file, std::uint64_t alignment,
                                                  std::string& refusal) {
    if (alignment == 0 || (alignment & (alignment - 1)) != 0)
      throw argument_error("alignment of a mapping", "a power of two", std::to_string(alignment));
    if (file.in_memory()) {
      refusal = "it is no file";
      return nullptr;
    }
    std::shared_ptr<leased_mapping> out(new leased_mapping(file.reopened()));
    if (const int problem = out->lease(); problem != 0) {
      refusal = problem == EAGAIN   ? "another program has it open for writing"
                : problem == EACCES ? "it belongs to another user, so it cannot be leased"
                                    : "it cannot be leased: " + std::generic_category().message(problem);
      return nullptr;
    }
    out->file_.expect_unchanged();
    out->map(alignment);
    return out;
  }

  leased_mapping(const leased_mapping&) = delete;
  leased_mapping& operator=(const leased_mapping&) = delete;
  ~leased_mapping() {
    if (watcher_.joinable()) {
      if (process_ == ::getpid()) {
        ends_ = true;
        ::pthread_kill(watcher_.native_handle(), SIGIO);
        watcher_.join();
      } else {
        watcher_.detach();  // a forked child has no such thread
      }
    }
    if (whole_.data() != nullptr) ::munmap(whole_.data(), whole_.size());
  }

  const mapped_file& file() const noexcept { return file_; }
  /// The file's, and zeros up to a multiple of the alignment.
  std::span<const std::byte> bytes() const noexcept { return bytes_; }
  /// True once somebody wanted to write: the bytes are a copy now, in memory of the process.
  bool copied() const noexcept { return copied_; }

  /// Has a range in memory, and its pages mapped.
  /// @error file_error: the system cannot read it
  void populate(std::uint64_t from, std::uint64_t count) const {
#ifdef MADV_POPULATE_READ  // of Linux 5.14
    const std::uint64_t begin = from / page() * page();
    if (::madvise(const_cast<std::byte*>(bytes_.data()) + begin, static_cast<std::size_t>(from + count - begin),
                  MADV_POPULATE_READ) != 0 &&
        errno == EFAULT)
      throw file_error(file_.path(), from, "cannot read", std::to_string(count) + " bytes", "an error of the system");
#else
    static_cast<void>(from), static_cast<void>(count);
#endif
  }

  /// @error file_error: the bytes could not be copied before they changed; zeros may be in their place
  void expect_unchanged() const {
    if (lost_.load(std::memory_order_acquire))
      throw file_error(file_.path(), std::nullopt,
                       "the file was cut or written to while it was read in place, faster than it could be copied",
                       "the bytes that were checked", "others");
  }

 private:
  explicit leased_mapping(mapped_file file) : file_(std::move(file)) {}
  static std::uint64_t page() { return static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE)); }

  /// Starts the thread that the system tells of writers; it alone hears of them, so that the program's signals stay its
  /// own.
  /// @return 0 or an errno
  int lease() {
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
  }

  void watch(std::promise<int> started) {
    const int file = file_.descriptor();
    const ::f_owner_ex me{F_OWNER_TID, ::gettid()};
    const int problem = ::fcntl(file, F_SETOWN_EX, &me) != 0 || ::fcntl(file, F_SETLEASE, F_RDLCK) != 0 ? errno : 0;
    started.set_value(problem);
    if (problem != 0) return;
    ::sigset_t told;
    ::sigemptyset(&told);
    ::sigaddset(&told, SIGIO);
    while (!ends_) {
      ::sigwaitinfo(&told, nullptr);
      if (ends_ || ::fcntl(file, F_GETLEASE) == F_RDLCK) continue;
      while (!mapped_ && !ends_) std::this_thread::yield();  // somebody was quicker than map()
      if (!ends_) copy();
      ::fcntl(file, F_SETLEASE, F_UNLCK);  // and the other may go on
      return;
    }
  }

  /// Puts memory with the same bytes in the mapping's place, at once for all threads that read there.
  void copy() noexcept {
    void* const made =
        ::mmap(nullptr, bytes_.size(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    bool whole = made != MAP_FAILED;
    try {
      if (whole) file_.read(0, std::span(static_cast<std::byte*>(made), static_cast<std::size_t>(file_.size())));
    } catch (...) { whole = false; }
    // The system waits for /proc/sys/fs/lease-break-time, 45 s unless set, then lets the other go on.
    if (!whole || file_.changed()) lost_ = true;
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

  void map(std::uint64_t alignment) {
    const std::uint64_t step = (std::max)(alignment, page()),
                        size = (checked_size{file_.size()} + checked_size{step - 1}).value() / step * step;
    // Zeros first, at a place with room to align, then the file over them.
    const auto room = static_cast<std::size_t>((checked_size{size} + checked_size{step - page()}).value());
    void* const place = ::mmap(nullptr, room, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (place == MAP_FAILED)
      throw file_error(file_.path(), std::nullopt, "cannot map: " + std::generic_category().message(errno));
    whole_ = {static_cast<std::byte*>(place), room};
    const std::uint64_t skipped = (step - reinterpret_cast<std::uintptr_t>(place) % step) % step;
    bytes_ = whole_.subspan(static_cast<std::size_t>(skipped), static_cast<std::size_t>(size));
    file_.map_over(bytes_.data());
    mapped_ = true;
  }

  mapped_file file_;
  std::span<std::byte> whole_, bytes_;
  std::atomic<bool> mapped_{false}, copied_{false}, lost_{false}, ends_{false};
  ::pid_t process_ = ::getpid();
  std::thread watcher_;
};

}  // namespace intaglio::io
