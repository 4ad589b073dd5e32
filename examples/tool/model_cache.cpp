// SPDX-License-Identifier: MIT
#include "model_cache.hpp"

#include "commands.hpp"
#include "console.hpp"
#include "hub.hpp"

#include <intaglio/core/error.hpp>
#include <intaglio/gpu/cache_file.hpp>
#include <intaglio/io/atomic_file.hpp>
#include <intaglio/io/sha256.hpp>
#include <intaglio/platform/files.hpp>
#include <intaglio/platform/path_text.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>

namespace intaglio::tool {
namespace {

namespace fs = std::filesystem;

fs::path model_cache_folder() {
  const std::string cache = gpu::default_cache_folder();
  if (cache.empty())
    throw input_error(std::string("models from the net need a cache: expected an absolute path in ") +
                      platform::home_variables + ", found none");
  return platform::path_of(cache) / "models";
}

/// Held while a process fetches or deletes an entry.
class entry_lock {
 public:
  explicit entry_lock(const fs::path& folder)
      : file_(platform::open_file(folder / "lock", platform::file_access::journal)) {
    if (file_ < 0)
      throw file_error((folder / "lock").string(), std::nullopt, "cannot open: " + platform::system_text(errno));
  }
  entry_lock(const entry_lock&) = delete;
  entry_lock& operator=(const entry_lock&) = delete;
  ~entry_lock() { platform::close_file(file_); }
  bool try_take() { return platform::lock_file(file_); }
  void take() { platform::lock_file(file_, true); }

 private:
  platform::file_number file_;
};

/// model.json of an entry: the facts about an address and its file.
struct cache_entry {
  fs::path folder;
  std::string address, file_name, sha256;  ///< sha256 of the file as it was fetched; empty until it is whole
  download_state state;

  fs::path whole() const { return folder / platform::path_of(file_name); }
  fs::path part() const { return folder / platform::path_of(file_name + ".part"); }

  void write() const {
    nlohmann::ordered_json out{
        {"address", address}, {"file", file_name}, {"sha256", sha256}, {"validator", state.validator}};
    if (state.size) out["size"] = *state.size;
    if (state.sha256) out["told_sha256"] = *state.sha256;
    const std::string text = out.dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
    io::atomic_file file(folder / "model.json");
    file.write(std::as_bytes(std::span(text)));
    file.commit();
  }
  /// Nothing where there is none, or a broken one.
  static std::optional<cache_entry> read(const fs::path& folder) {
    std::ifstream file(folder / "model.json", std::ios::binary);
    const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    const auto parsed = nlohmann::json::parse(text, nullptr, false);
    const auto word = [&](const char* name) {
      return parsed.is_object() && parsed.contains(name) && parsed[name].is_string() ? parsed[name].get<std::string>()
                                                                                     : std::string{};
    };
    cache_entry out{folder, word("address"), word("file"), word("sha256"), {}};
    if (out.address.empty() || out.file_name.empty() || out.file_name.find('/') != std::string::npos ||
        out.file_name.front() == '.')
      return std::nullopt;
    out.state.validator = word("validator");
    if (parsed.contains("size") && parsed["size"].is_number_unsigned())
      out.state.size = parsed["size"].get<std::uint64_t>();
    if (!word("told_sha256").empty()) out.state.sha256 = word("told_sha256");
    return out;
  }
};

std::string key_of(const std::string& address) {
  io::sha256 sum;
  sum.add(std::as_bytes(std::span(address)));
  return sum.hex().substr(0, 16);
}

std::uint64_t size_or_none(const fs::path& path) {
  std::error_code missing;
  const auto size = fs::file_size(path, missing);
  return missing ? 0 : size;
}

/// The cached file of an address, fetched first where it is not there.
std::string fetched(const model_url& from, const std::function<void(const std::string&)>& begins,
                    const download_watch& watch) {
  const fs::path folder = model_cache_folder() / platform::path_of(key_of(from.address));
  std::error_code failure;
  fs::create_directories(folder, failure);
  if (failure) throw file_error(folder.string(), std::nullopt, "cannot make the folder: " + failure.message());
  entry_lock lock(folder);
  if (!lock.try_take()) {
    note("another run fetches " + printable(from.address, 200) + ": waiting for it");
    lock.take();
  }
  cache_entry entry = cache_entry::read(folder).value_or(cache_entry{folder, from.address, from.file_name, {}, {}});
  entry.address = from.address;
  entry.file_name = from.file_name;
  if (!entry.sha256.empty() && entry.state.size && size_or_none(entry.whole()) == *entry.state.size) {
    if (!from.sha256 || *from.sha256 == entry.sha256) return entry.whole().string();
    note("the cached file is not the one asked for: fetching it again");
  }
  fs::remove(entry.whole(), failure);
  entry.sha256.clear();
  entry.write();
  if (begins) begins(entry.part().string());
  entry.sha256 = download(
      from, entry.part().string(), entry.state, [&] { entry.write(); }, watch);
  if (!platform::replace_file(entry.part(), entry.whole()))
    throw file_error(entry.part().string(), std::nullopt, "cannot rename: " + platform::system_text(errno));
  entry.write();
  note("kept as " + printable(entry.whole().string(), 240) + ", SHA-256 " + entry.sha256);
  return entry.whole().string();
}

constexpr std::string_view hub_prefix = "hf:";

/// The address of a model on the hub; where that does not answer, of one that the cache has whole.
std::string hub_model(const std::string& text) {
  try {
    return hub_address(text);
  } catch (const input_error& net) {
    const hub_name name = parse_hub_name(text);
    const std::string begin = hub_endpoint() + "/" + name.owner + "/" + name.repository + "/resolve/main/";
    std::vector<std::string> files;
    for (const cached_model& each : cached_models())
      if (each.whole && each.address.starts_with(begin)) files.push_back(each.address.substr(begin.size()));
    std::string address = begin;
    try {
      address += choose_hub_file(files, name.quantisation);
    } catch (const argument_error&) {  // the cache does not have the requested file either
      throw net;
    }
    note(std::string(net.what()) + "; taking what the cache has of " + printable(address, 200));
    return address;
  }
}

/// All parts of a split file, each an entry of its own, with links to the others beside the first.
std::string split_model(const model_url& first, const std::vector<std::string>& parts) {
  const std::string folder = first.address.substr(0, first.address.size() - first.file_name.size());
  std::vector<fs::path> files;
  for (const std::string& part : parts) {
    model_url from = first;
    from.address = folder + part;
    from.file_name = part;
    if (!files.empty()) from.sha256.reset();
    files.push_back(platform::path_of(fetched(from, {}, {})));
  }
  for (std::size_t i = 1; i < files.size(); ++i) {
    const fs::path link = files.front().parent_path() / platform::path_of(parts[i]);
    std::error_code failure;
    fs::remove(link, failure);
    fs::create_symlink(files[i], link, failure);
    if (failure) throw file_error(link.string(), std::nullopt, "cannot link: " + failure.message());
  }
  return files.front().string();
}

}  // namespace

std::string local_model(const std::string& model) { return local_model(model, {}, {}); }

std::string local_model(const std::string& model, const std::function<void(const std::string&)>& begins,
                        const download_watch& watch) {
  if (!is_url(model)) return model;
  const bool on_hub = model.starts_with(hub_prefix);
  const model_url from = parse_url(on_hub ? hub_model(model.substr(hub_prefix.size())) : model);
  const std::vector<std::string> parts = split_parts(from.file_name);
  if (parts.size() > 1 && parts.front() == from.file_name && from.address.ends_with(from.file_name))
    return split_model(from, parts);
  return fetched(from, begins, watch);
}

std::vector<cached_model> cached_models() {
  std::vector<cached_model> out;
  std::error_code failure;
  for (fs::directory_iterator at(model_cache_folder(), failure), end; !failure && at != end; at.increment(failure)) {
    const auto entry = cache_entry::read(at->path());
    if (!entry) continue;
    cached_model& model = out.emplace_back();
    model.key = at->path().filename().string();
    model.address = entry->address;
    model.sha256 = entry->sha256;
    model.size = entry->state.size;
    model.whole = !entry->sha256.empty() && model.size && size_or_none(entry->whole()) == *model.size;
    model.path = (model.whole ? entry->whole() : entry->part()).string();
    model.bytes = size_or_none(platform::path_of(model.path));
  }
  std::sort(out.begin(), out.end(), [](const cached_model& a, const cached_model& b) { return a.address < b.address; });
  return out;
}

std::uint64_t delete_cached(const std::vector<std::string>& which, bool all) {
  std::uint64_t out = 0;
  const std::vector<cached_model> models = cached_models();
  std::vector<bool> found(which.size());
  for (const cached_model& each : models) {
    bool meant = all;
    for (std::size_t i = 0; i < which.size(); ++i)
      if (which[i] == each.key || which[i] == each.address ||
          which[i] == platform::path_of(each.path).filename().string())
        meant = found[i] = true;
    if (!meant) continue;
    const fs::path folder = model_cache_folder() / platform::path_of(each.key);
    entry_lock lock(folder);
    if (!lock.try_take())
      throw file_error(folder.string(), std::nullopt, "cannot be deleted", "an address that nobody fetches",
                       "one that is being fetched");
    std::error_code failure;
    fs::remove_all(folder, failure);
    if (failure) throw file_error(folder.string(), std::nullopt, "cannot be deleted: " + failure.message());
    out += each.bytes;
  }
  for (std::size_t i = 0; i < which.size(); ++i)
    if (!found[i])
      throw argument_error("cache delete", "an address, key or file name of `intaglio cache list`",
                           "'" + printable(which[i], 160) + "'");
  return out;
}

void cache(const cache_options& options) {
  if (options.action == "delete") {
    if (options.which.empty() != options.all)
      throw argument_error("cache delete", "addresses, keys or file names, or --all", options.all ? "both" : "none");
    const std::uint64_t freed = delete_cached(options.which, options.all);
    note(bytes_text(static_cast<double>(freed)) + " freed");
    return;
  }
  if (!options.which.empty() || options.all)
    throw argument_error("cache list", "nothing after it",
                         options.all ? "--all" : "'" + printable(options.which.front(), 80) + "'");
  const std::vector<cached_model> models = cached_models();
  if (options.json) {
    auto out = nlohmann::ordered_json::array();
    for (const cached_model& each : models) {
      nlohmann::ordered_json one{{"key", each.key},     {"address", each.address}, {"path", each.path},
                                 {"bytes", each.bytes}, {"whole", each.whole},     {"sha256", each.sha256}};
      one["size"] = each.size ? nlohmann::ordered_json(*each.size) : nlohmann::ordered_json(nullptr);
      out.push_back(std::move(one));
    }
    return print_line(out.dump());
  }
  for (const cached_model& each : models)
    print_line(each.key + "  " + padded(bytes_text(static_cast<double>(each.bytes)), 10) +
               padded(each.whole  ? "whole"
                      : each.size ? "of " + bytes_text(static_cast<double>(*each.size))
                                  : "part",
                      14) +
               printable(each.address, 400));
  if (models.empty()) note("nothing is cached in " + printable(model_cache_folder().string(), 240));
}

}  // namespace intaglio::tool
