// SPDX-License-Identifier: MIT
#include "model_arrival.hpp"

#include "model_cache.hpp"

namespace intaglio::tool {

model_arrival::model_arrival(const std::string& address) {
  ++under_way_;
  thread_ = std::thread([this, address] { run(address); });
}
model_arrival::~model_arrival() {
  ends_ = true;
  thread_.join();
}

void model_arrival::run(const std::string& address) {
  const auto under_mutex = [this](auto&& change) {
    {
      const std::lock_guard lock(mutex_);
      change();
    }
    news_.notify_all();
  };
  download_watch watch;
  watch.progress = [&](std::uint64_t done, std::optional<std::uint64_t> size) {
    under_mutex([&] { done_ = done, size_ = size; });
  };
  watch.anew = [&] { under_mutex([&] { done_ = 0, replaced_ = replaced_ || read_; }); };
  watch.ends = [this] { return ends_.load(); };
  std::exception_ptr problem;
  try {
    local_model(
        address, [&](const std::string& part) { under_mutex([&] { part_ = part; }); }, watch);
  } catch (...) { problem = std::current_exception(); }
  --under_way_;
  under_mutex([&] { problem_ = problem, over_ = true; });
}

void model_arrival::require_good() const {
  if (problem_) std::rethrow_exception(problem_);
  if (replaced_) throw file_replaced("the server has another file by now");
}

std::optional<std::string> model_arrival::begin() const {
  constexpr std::uint64_t head = 4;  // says what kind of file it is
  std::unique_lock lock(mutex_);
  news_.wait(lock, [&] { return over_ || (size_ && done_ >= head); });
  require_good();
  if (over_ || *size_ < head) return std::nullopt;
  return part_;
}

std::uint64_t model_arrival::size() const {
  const std::lock_guard lock(mutex_);
  read_ = true;
  return size_.value_or(0);
}

void model_arrival::wait(std::uint64_t end) const {
  std::unique_lock lock(mutex_);
  news_.wait(lock, [&] { return over_ || replaced_ || done_ >= end; });
  if (done_ < end || replaced_) require_good();
  read_ = true;
}

void model_arrival::finish() const {
  std::unique_lock lock(mutex_);
  news_.wait(lock, [&] { return over_ || replaced_; });
  require_good();
}

}  // namespace intaglio::tool
