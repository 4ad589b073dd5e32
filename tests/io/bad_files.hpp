// SPDX-License-Identifier: MIT
// Feeds malformed files to check() and judges what comes of it: verdict, form of the message, time, memory.
#pragma once

#include <sys/resource.h>

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <filesystem>
#include <string>
#include <vector>

#include "bad_gguf_files.hpp"
#include "intaglio/io/check.hpp"
#include "stopwatch.hpp"

class bad_file_judge {
 public:
  static std::uint64_t peak_kib() {
    ::rusage usage{};
    ::getrusage(RUSAGE_SELF, &usage);
    return static_cast<std::uint64_t>(usage.ru_maxrss);
  }

  /// @param path what to check; the fault has just been put there
  /// @param size bytes of the file (the largest one)
  void judge(const std::string& name, const std::filesystem::path& path, std::uint64_t size, verdict expected) {
    ++count_;
    const auto before = peak_kib();
    intaglio::io::check_report report;
    const auto timed = [&] {
      const intaglio::testing::stopwatch watch;
      report = intaglio::io::check(path);
      return watch.seconds();
    };
    double seconds = timed();
    for (int again = 0; again < 2 && seconds > 1.0; ++again)
      seconds = std::min(seconds, timed());  // the machine itself may pause
    times_.push_back(seconds);
    INFO(name);
    if (expected == verdict::refused) CHECK_FALSE(report.ok());
    else {
      CHECK(report.ok());
      CHECK_FALSE(report.warnings.empty());
    }
    for (const auto& finding : report.errors) {
      INFO(finding.text);
      CHECK(finding.text.starts_with(path.string()));
      for (std::size_t at = 0; at < finding.text.size();) {
        const std::size_t end = std::min(finding.text.find('\n', at), finding.text.size());
        CHECK(end - at <= 400 + path.string().size());
        at = end + 1;
      }
      CHECK(std::none_of(finding.text.begin(), finding.text.end(),
                         [](char c) { return static_cast<unsigned char>(c) < 0x20 && c != '\n'; }));
    }
    // The peak only ever rises, so a rise beyond the limit belongs to this file. Sanitizers slow everything down, but
    // keep these limits too.
    CHECK(seconds <= 1.0);
    CHECK((peak_kib() - before) * 1024 <= (std::uint64_t{64} << 20) + size);
  }

  std::size_t count() const { return count_; }
  double median() {
    std::sort(times_.begin(), times_.end());
    return times_.empty() ? 0.0 : times_[times_.size() / 2];
  }
  double worst() const { return *std::max_element(times_.begin(), times_.end()); }

 private:
  std::size_t count_ = 0;
  std::vector<double> times_;
};
