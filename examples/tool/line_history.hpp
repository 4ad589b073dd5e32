// SPDX-License-Identifier: MIT
// What was typed in earlier runs: one entry a line in a file that several runs may add to at once.
#pragma once

#include <intaglio/core/error.hpp>
#include <intaglio/io/atomic_file.hpp>
#include <intaglio/platform/files.hpp>
#include <intaglio/platform/path_text.hpp>

#include <cerrno>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace intaglio::tool {

/// Entries, oldest first; nothing here throws: without a file there is just no history.
class line_history {
 public:
  static constexpr std::size_t most = 1000;  ///< entries kept

  /// @param path empty: only of this run
  explicit line_history(const std::string& path) : path_(platform::path_of(path)) {
    if (path_.empty()) return;
    std::error_code failure;
    const auto folder = path_.parent_path();
    std::filesystem::create_directories(folder, failure);
    if (!failure) load();
    else warning_ = folder.string() + ": cannot make the folder: " + failure.message();
    if (!warning_.empty()) path_.clear();
  }

  const std::vector<std::string>& all() const { return entries_; }
  /// Why there is no file, or empty.
  const std::string& warning() const { return warning_; }

  /// @return false where the entry is the last one again, or empty
  bool add(const std::string& entry) {
    if (entry.empty() || (!entries_.empty() && entries_.back() == entry)) return false;
    entries_.push_back(entry);
    if (path_.empty()) return true;
    // One write at the end of the file, so that entries of two runs do not mix.
    const platform::file_number file = platform::open_file(path_, platform::file_access::append_private);
    if (file < 0) return true;
    const std::string line = entry + "\n";
    platform::write_some(file, std::as_bytes(std::span(line)));  // a full disk loses the entry, no more
    platform::close_file(file);
    return true;
  }

 private:
  void load() {
    const platform::file_number file = platform::open_file(path_, platform::file_access::read);
    if (file < 0) {
      if (errno != ENOENT) warning_ = path_.string() + ": cannot be read: " + platform::system_text(errno);
      return;
    }
    std::string text(std::size_t{4} << 20, '\0');
    std::size_t size = 0;
    for (std::int64_t count = 1; count > 0 && size < text.size(); size += static_cast<std::size_t>(count))
      if ((count = platform::read_some(file, std::as_writable_bytes(std::span(text)).subspan(size))) < 0) break;
    platform::close_file(file);
    text.resize(size);
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t end = text.find('\n', at);
      if (end == std::string::npos) break;  // cut off
      if (std::string entry = text.substr(at, end - at); !entry.empty() && is_printable(entry))
        entries_.push_back(std::move(entry));
      at = end + 1;
    }
    if (entries_.size() > 2 * most) shorten();
  }

  void shorten() {
    entries_.erase(entries_.begin(), entries_.end() - static_cast<std::ptrdiff_t>(most));
    try {
      io::atomic_file file(path_);
      for (const std::string& each : entries_) {
        const std::string line = each + "\n";
        file.write(std::as_bytes(std::span(line)));
      }
      file.commit();
    } catch (const file_error&) {  // it stays long
    }
  }

  std::filesystem::path path_;
  std::string warning_;
  std::vector<std::string> entries_;
};

}  // namespace intaglio::tool
