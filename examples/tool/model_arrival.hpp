// SPDX-License-Identifier: MIT
// A model file from the net that is read while it comes.
#pragma once

#include <intaglio/io/file_arrival.hpp>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>

namespace intaglio::tool {

/// What was read of a file is not what the server has by now.
class file_replaced : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Downloads a model on its own thread, and stops when destroyed; the part that arrived stays for the next time.
class model_arrival : public io::file_arrival {
 public:
  /// @param address as --model has it
  explicit model_arrival(const std::string& address);
  ~model_arrival() override;

  /// Waits until the file's length is known and its first bytes are there, or all is over.
  /// @return where it is being written; nothing where it is whole, or comes without a length: local_model() has it then
  /// @throws as local_model()
  std::optional<std::string> begin() const;

  std::uint64_t size() const override;
  /// @throws as local_model(); file_replaced
  void wait(std::uint64_t end) const override;
  void finish() const override;

  /// Whether there is one that still fetches.
  static bool under_way() { return under_way_ != 0; }

 private:
  void run(const std::string& address);
  void require_good() const;  ///< under the mutex

  mutable std::mutex mutex_;
  mutable std::condition_variable news_;
  std::string part_;
  std::uint64_t done_ = 0;
  std::optional<std::uint64_t> size_;
  mutable bool read_ = false;  ///< some caller relies on its facts or bytes
  bool replaced_ = false, over_ = false;
  std::exception_ptr problem_;
  std::atomic<bool> ends_{false};
  static inline std::atomic<int> under_way_{0};
  std::thread thread_;  // the last: it uses all of the above
};

}  // namespace intaglio::tool
