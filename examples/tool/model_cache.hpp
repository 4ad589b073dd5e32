// SPDX-License-Identifier: MIT
// Models from the net, kept in $XDG_CACHE_HOME/intaglio/models: a folder an address, with the file or what there is of
// it, and what the server said.
#pragma once

#include "download.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace intaglio::tool {

/// One address of the cache.
struct cached_model {
  std::string key;  ///< the folder's name
  std::string address, path, sha256;
  std::uint64_t bytes = 0;
  std::optional<std::uint64_t> size;  ///< of the whole file, as far as known
  bool whole = false;
};

/// The file behind --model: a path as it is; of an address the cached file, fetched first where it is not there.
/// @throws as download(); file_error: the cache's folder
std::string local_model(const std::string& model);
/// Like the function above; `begins` receives the path of the file during the download, before its first byte arrives.
std::string local_model(const std::string& model, const std::function<void(const std::string& part)>& begins,
                        const download_watch& watch);

/// What is in the cache, by address.
std::vector<cached_model> cached_models();

/// Deletes entries by address, key or file name.
/// @return how many bytes became free
/// @throws argument_error: one that is not there; file_error: in use, or it cannot be deleted
std::uint64_t delete_cached(const std::vector<std::string>& which, bool all);

}  // namespace intaglio::tool
