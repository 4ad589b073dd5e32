// SPDX-License-Identifier: MIT
// Downloads a file by libcurl, which is loaded at run time: streams it to disk, resumes a broken download, and compares
// size and SHA-256 with the expected ones.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace intaglio::tool {

/// An address of a model file. Only https, or http to this machine.
struct model_url {
  std::string address;                ///< without its fragment
  std::optional<std::string> sha256;  ///< of `#sha256=`, lower case
  std::string file_name;              ///< the path's last part, safe to use as a name
};

/// True for http://, https:// and hf: (hub.hpp).
bool is_url(const std::string& model);
/// @throws argument_error naming the fault; input_error: there is no libcurl
model_url parse_url(const std::string& text);

/// What the server reported about a file; kept between runs, so that a broken download can be resumed.
struct download_state {
  std::string validator;  ///< a strong ETag or a date of Last-Modified, for If-Range; empty: none
  std::optional<std::uint64_t> size;
  std::optional<std::string> sha256;  ///< as the server states it
};

/// Callbacks of an observer of a download on another thread.
struct download_watch {
  std::function<void(std::uint64_t done, std::optional<std::uint64_t> size)>
      progress;                ///< the first `done` bytes are in the file
  std::function<void()> anew;  ///< the earlier part is gone: the download starts again
  std::function<bool()> ends;  ///< true: it is not wanted any more
};

/// Appends to `path` until the whole file is there.
/// @param state where a former run stood, the present one's afterwards; `keep` is called whenever it has changed
/// @return the file's SHA-256, which equals the checksums of the address and of the server, where these state one
/// @throws file_error: the disk, a wrong length or checksum; input_error: the net; interrupted: a signal. What is there
/// stays for the next run, but not after a wrong
///         checksum
std::string download(const model_url& from, const std::string& path, download_state& state,
                     const std::function<void()>& keep, const download_watch& watch = {});

/// A small text, of at most 64 MiB. @throws as download()
std::string download_text(const model_url& from);

}  // namespace intaglio::tool
