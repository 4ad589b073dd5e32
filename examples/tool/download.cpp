// SPDX-License-Identifier: MIT
#include "download.hpp"

#include "console.hpp"
#include "curl_library.hpp"
#include "hub.hpp"

#include <intaglio/core/error.hpp>
#include <intaglio/core/version.hpp>
#include <intaglio/gpu/cache_file.hpp>
#include <intaglio/io/sha256.hpp>
#include <intaglio/platform/files.hpp>
#include <intaglio/platform/path_text.hpp>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <span>
#include <system_error>
#include <thread>
#include <vector>

namespace intaglio::tool {

bool is_url(const std::string& model) {
  return model.starts_with("http://") || model.starts_with("https://") || model.starts_with("hf:");
}

#ifdef INTAGLIO_HAS_LIBCURL
namespace {

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}
bool is_sha256(const std::string& text) {
  return text.size() == 64 &&
         std::all_of(text.begin(), text.end(), [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

/// Scheme, host and path of an address. @throws argument_error: it is none
struct url_parts {
  std::string scheme, host, path, user, fragment;

  explicit url_parts(const std::string& text) {
    const curl_library& of = curl();
    CURLU* const url = of.curl_url();
    const bool sound = url != nullptr && of.curl_url_set(url, CURLUPART_URL, text.c_str(), 0) == CURLUE_OK;
    if (sound) {
      const auto part = [&](CURLUPart which) {
        char* found = nullptr;
        if (of.curl_url_get(url, which, &found, 0) != CURLUE_OK || found == nullptr) return std::string{};
        std::string out(found);
        of.curl_free(found);
        return out;
      };
      scheme = part(CURLUPART_SCHEME), host = lower(part(CURLUPART_HOST)), path = part(CURLUPART_PATH),
      user = part(CURLUPART_USER), fragment = part(CURLUPART_FRAGMENT);
    }
    if (url != nullptr) of.curl_url_cleanup(url);
    if (!sound || host.empty())
      throw argument_error("--model", "an address https://HOST/PATH", "'" + printable(text, 200) + "'");
  }
  bool on_this_machine() const {
    if (host == "localhost" || host == "[::1]" || host == "::1") return true;
    return host.starts_with("127.") && std::count(host.begin(), host.end(), '.') == 3 &&
           host.find_first_not_of("0123456789.") == std::string::npos;
  }
  void require_safe(const std::string& text) const {
    if (scheme != "https" && !(scheme == "http" && on_this_machine()))
      throw argument_error("--model", "an https address, or http to this machine", "'" + printable(text, 200) + "'");
  }
};

std::string without_fragment(const std::string& text) { return text.substr(0, text.find('#')); }

/// Bytes of "sha-256=:BASE64:" or "sha-256=BASE64" as hexadecimal.
std::optional<std::string> sha256_of_digest(const std::string& header) {
  const std::size_t at = lower(header).find("sha-256=");
  if (at == std::string::npos) return std::nullopt;
  std::string bits, out;
  for (std::size_t i = at + 8; i < header.size() && header[i] != ','; ++i) {
    constexpr std::string_view letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const std::size_t value = letters.find(header[i]);
    if (value == std::string_view::npos) continue;
    for (int bit = 5; bit >= 0; --bit) bits += (value >> bit & 1) != 0 ? '1' : '0';
  }
  for (std::size_t i = 0; i + 4 <= bits.size() && out.size() < 64; i += 4)
    out += "0123456789abcdef"[std::stoul(bits.substr(i, 4), nullptr, 2)];
  if (!is_sha256(out)) return std::nullopt;
  return out;
}

std::optional<std::uint64_t> number_of(std::string_view text) {
  std::uint64_t out = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (fault != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return out;
}

/// One file on its way.
class transfer_run {
 public:
  transfer_run(const model_url& from, const std::string& path, download_state& state, const std::function<void()>& keep,
               const download_watch& watch)
      : from_(from), path_(path), state_(state), keep_(keep), watch_(watch), bar_("downloading") {
    file_ = platform::open_file(path, platform::file_access::journal_no_link);
    if (file_ < 0) fail_file("cannot open", errno);
    hash_what_is_there();
    if (state_.validator.empty() || (state_.size && done_ > *state_.size)) start_anew();
  }
  transfer_run(const transfer_run&) = delete;
  transfer_run& operator=(const transfer_run&) = delete;
  ~transfer_run() {
    if (file_ >= 0) platform::close_file(file_);
  }

  std::string run() {
    const graceful_stop guard;
    std::string why;
    constexpr int attempts = 5;  // in a row without a new byte
    for (int left = attempts, all = 0; !whole();) {
      const std::uint64_t before = done_;
      if (watch_.progress) watch_.progress(done_, state_.size);
      why = attempt();
      if (ends()) throw interrupted(SIGTERM);
      if (graceful_stop::received() != 0) {
        bar_.clear();
        note("stopped with " + bytes_text(static_cast<double>(done_)) + "; the next run goes on from there");
        throw interrupted(graceful_stop::received());
      }
      if (why.empty() && !state_.size) state_.size = done_;  // a server that tells no length ends the file by its end
      if (whole()) break;
      if (why.empty()) why = "the server ended the file early";
      left = done_ > before && ++all < 200 ? attempts : left - 1;
      if (left == 0) {
        bar_.clear();
        if (state_.size)
          throw file_error(from_.address, done_,
                           "length of the file, after " + std::to_string(attempts) + " failed attempts (" + why + ")",
                           std::to_string(*state_.size) + " bytes", std::to_string(done_));
        throw input_error(printable(from_.address, 240) + ": " + why);
      }
      bar_.clear();
      note(why + " at " + bytes_text(static_cast<double>(done_)) + ", trying again");
      std::this_thread::sleep_for(std::chrono::milliseconds(100 << (attempts - left)));
    }
    bar_.clear();
    return checked();
  }

 private:
  using clock = std::chrono::steady_clock;

  bool whole() const { return state_.size && done_ == *state_.size; }
  bool ends() const { return watch_.ends && watch_.ends(); }

  [[noreturn]] void fail_file(const std::string& what, int number) const {
    throw file_error(path_, done_,
                     what + ": " + platform::system_text(number) +
                         (platform::is_full(number) ? "; what is there is kept, the next run goes on from it" : ""));
  }
  void hash_what_is_there() {
    std::vector<std::byte> piece(std::size_t{1} << 20);
    for (;;) {
      const std::int64_t count = platform::read_at(file_, done_, piece);
      if (count < 0) fail_file("cannot read", errno);
      if (count == 0) break;
      hash_.add(std::span(piece).first(static_cast<std::size_t>(count)));
      done_ += static_cast<std::uint64_t>(count);
    }
  }
  void start_anew() {
    if (watch_.anew) watch_.anew();
    empty();
  }
  void empty() {
    if (!platform::cut_file(file_, 0)) fail_file("cannot be emptied", errno);
    done_ = 0;
    hash_ = {};
    state_ = {};
  }

  /// One request, redirects among it. @return why it ended early, or empty
  std::string attempt() {
    std::string at = from_.address;
    for (int redirects = 0; redirects <= 5; ++redirects) {
      const std::string why = request(at);
      if (!problem_.empty()) std::rethrow_exception(take_problem());
      if (!why.empty()) return why;
      if (redirect_.empty()) return {};
      const url_parts here(at), next(redirect_);
      if (next.scheme != "https" && !(here.scheme == "http" && next.scheme == "http" && next.on_this_machine()))
        throw input_error(printable(at, 160) + ": redirects to '" + printable(redirect_, 160) +
                          "': expected an https address");
      at = without_fragment(redirect_);
    }
    throw input_error(printable(from_.address, 240) + ": expected at most 5 redirects, found more");
  }

  std::string request(const std::string& address) {
    const curl_library& of = curl();
    CURL* const handle = of.curl_easy_init();
    if (handle == nullptr) throw input_error("libcurl cannot start");
    const auto set = [&](CURLoption what, auto value) { of.curl_easy_setopt(handle, what, value); };
    char told[CURL_ERROR_SIZE] = "";
    const std::string agent = "intaglio/" + std::to_string(version_major) + "." + std::to_string(version_minor);
    const char* const stall = std::getenv("INTAGLIO_STALL_SECONDS");
    const auto seconds = number_of(stall == nullptr ? "" : stall);
    set(CURLOPT_URL, address.c_str());
    set(CURLOPT_PROTOCOLS_STR, "http,https");
    set(CURLOPT_FOLLOWLOCATION, 0L);
    set(CURLOPT_NOSIGNAL, 1L);
    set(CURLOPT_CONNECTTIMEOUT, 20L);
    set(CURLOPT_LOW_SPEED_LIMIT, 100L);  // bytes a second
    stall_limit_ = std::chrono::seconds(seconds && *seconds > 0 && *seconds < 86'400 ? *seconds : 30);
    last_ = clock::now();
    stalled_ = false;
    set(CURLOPT_LOW_SPEED_TIME, static_cast<long>(stall_limit_.count()));
    set(CURLOPT_USERAGENT, agent.c_str());
    set(CURLOPT_ERRORBUFFER, told);
    set(CURLOPT_HEADERFUNCTION, &transfer_run::on_header);
    set(CURLOPT_HEADERDATA, this);
    set(CURLOPT_WRITEFUNCTION, &transfer_run::on_bytes);
    set(CURLOPT_WRITEDATA, this);
    set(CURLOPT_NOPROGRESS, 0L);
    set(CURLOPT_XFERINFOFUNCTION, &transfer_run::on_progress);
    set(CURLOPT_XFERINFODATA, this);
    curl_slist* headers = nullptr;
    asked_from_ = state_.validator.empty() ? 0 : done_;
    if (asked_from_ != 0) {
      headers = of.curl_slist_append(headers, ("Range: bytes=" + std::to_string(asked_from_) + "-").c_str());
      headers = of.curl_slist_append(headers, ("If-Range: " + state_.validator).c_str());
    }
    // The hub alone hears of the token, not who it redirects to.
    if (const char* const token = std::getenv("HF_TOKEN");
        token != nullptr && *token != '\0' && address.starts_with(hub_endpoint() + "/"))
      headers = of.curl_slist_append(headers, (std::string("Authorization: Bearer ") + token).c_str());
    if (headers != nullptr) set(CURLOPT_HTTPHEADER, headers);
    answer_ = {};
    redirect_.clear();
    const CURLcode code = of.curl_easy_perform(handle);
    long status = 0;
    of.curl_easy_getinfo(handle, CURLINFO_RESPONSE_CODE, &status);
    char* next = nullptr;
    of.curl_easy_getinfo(handle, CURLINFO_REDIRECT_URL, &next);
    if (status >= 300 && status < 400 && next != nullptr) redirect_ = next;
    of.curl_easy_cleanup(handle);
    of.curl_slist_free_all(headers);
    if (graceful_stop::received() != 0 || ends()) return "a signal came";
    if (status == 416 && asked_from_ != 0) {
      start_anew();
      return "the server has no such range";
    }
    if (status >= 400 && status != 408 && status != 429 && status < 500)
      throw input_error(printable(from_.address, 240) + ": the server answered " + std::to_string(status));
    if (status >= 400) return "the server answered " + std::to_string(status);
    if (code == CURLE_OK || !redirect_.empty()) return {};
    if (stalled_ || (code == CURLE_OPERATION_TIMEDOUT && status != 0)) return "no data came for a while";
    if (code == CURLE_PARTIAL_FILE || code == CURLE_RECV_ERROR || code == CURLE_GOT_NOTHING)
      return "the connection broke off";
    if (code == CURLE_PEER_FAILED_VERIFICATION || code == CURLE_UNSUPPORTED_PROTOCOL)
      throw input_error(printable(address, 240) + ": " + printable(told, 200));
    return *told != '\0' ? printable(told, 200) : of.curl_easy_strerror(code);
  }

  /// What the headers of one answer say.
  struct answer_headers {
    int status = 0;
    bool read = false;  ///< a body began
    std::string etag, modified, range, encoding;
    std::optional<std::uint64_t> length, linked_size;
    std::optional<std::string> sha256;
  };

  static std::size_t on_header(char* data, std::size_t one, std::size_t count, void* self) noexcept {
    return static_cast<transfer_run*>(self)->guarded(count * one, [&](transfer_run& to) {
      to.header({data, count * one});
    });
  }
  static std::size_t on_bytes(char* data, std::size_t one, std::size_t count, void* self) noexcept {
    return static_cast<transfer_run*>(self)->guarded(count * one, [&](transfer_run& to) {
      to.bytes({data, count * one});
    });
  }
  static int on_progress(void* self, curl_off_t, curl_off_t, curl_off_t, curl_off_t) noexcept {
    auto& of = *static_cast<transfer_run*>(self);
    of.stalled_ = clock::now() - of.last_ > of.stall_limit_;  // libcurl's own limit is on the mean of some seconds
    return of.stalled_ || of.ends() || graceful_stop::received() != 0;
  }

  /// No exception passes through C. @return 0 ends the transfer
  template <class Work>
  std::size_t guarded(std::size_t size, Work&& work) noexcept {
    try {
      work(*this);
      return size;
    } catch (...) {
      problem_.assign(1, std::current_exception());
      return 0;
    }
  }
  std::exception_ptr take_problem() {
    std::exception_ptr out = problem_.front();
    problem_.clear();
    return out;
  }

  void header(std::string_view line) {
    last_ = clock::now();
    while (!line.empty() && (line.back() == '\r' || line.back() == '\n' || line.back() == ' ')) line.remove_suffix(1);
    if (line.starts_with("HTTP/")) {
      answer_ = {};
      if (const std::size_t blank = line.find(' '); blank != std::string_view::npos)
        answer_.status = static_cast<int>(number_of(line.substr(blank + 1, 3)).value_or(0));
      return;
    }
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos) return;
    const std::string name = lower(std::string(line.substr(0, colon)));
    std::string value(line.substr(colon + 1));
    value.erase(0, value.find_first_not_of(' '));
    if (name == "etag") answer_.etag = value;
    else if (name == "last-modified") answer_.modified = value;
    else if (name == "content-range") answer_.range = value;
    else if (name == "content-encoding") answer_.encoding = value;
    else if (name == "content-length") answer_.length = number_of(value);
    else if (name == "x-linked-size") answer_.linked_size = number_of(value);
    else if (name == "repr-digest" || name == "digest") answer_.sha256 = sha256_of_digest(value);
    else if (name == "x-linked-etag" && value.size() == 66 && is_sha256(lower(value.substr(1, 64))))
      answer_.sha256 = lower(value.substr(1, 64));  // a file of Git LFS
    // Answers that only point elsewhere may tell size and checksum, too.
    if (answer_.status >= 300 && answer_.status < 400) {
      if (answer_.sha256) told_sha256_ = answer_.sha256;
      if (answer_.linked_size) told_size_ = answer_.linked_size;
    }
  }

  [[noreturn]] void refuse(const std::string& what, const std::string& expected, const std::string& found) const {
    throw file_error(from_.address, std::nullopt, what, expected, found);
  }

  /// The headers are all there: what does the body hold?
  void begin_body() {
    answer_.read = true;
    if (!answer_.encoding.empty() && lower(answer_.encoding) != "identity")
      refuse("content-encoding", "none", printable(answer_.encoding, 40));
    std::optional<std::uint64_t> size = answer_.length;
    if (answer_.status == 206) {
      // bytes FIRST-LAST/ALL
      const std::string_view range = answer_.range;
      const std::size_t dash = range.find('-'), slash = range.find('/');
      const bool sound = range.starts_with("bytes ") && dash != std::string_view::npos &&
                         slash != std::string_view::npos && dash < slash;
      const auto first = sound ? number_of(range.substr(6, dash - 6)) : std::nullopt;
      if (asked_from_ == 0 || first != asked_from_)
        refuse("content-range", "bytes " + std::to_string(asked_from_) + "-", "'" + printable(range, 60) + "'");
      size = number_of(range.substr(slash + 1));
    } else if (done_ != 0) {  // the file has changed, or the server knows no ranges
      start_anew();
    }
    if (told_size_) {
      if (size && *size != *told_size_)
        refuse("length of the file", std::to_string(*told_size_) + " bytes", std::to_string(*size));
      size = told_size_;
    }
    if (state_.size && size && *size != *state_.size) {
      const std::uint64_t before = *state_.size;
      empty();
      refuse("length of the file", std::to_string(before) + " bytes, as the server said before", std::to_string(*size));
    }
    if (size) state_.size = size;
    state_.validator = !answer_.etag.empty() && !answer_.etag.starts_with("W/") ? answer_.etag : answer_.modified;
    if (answer_.sha256) state_.sha256 = answer_.sha256;
    if (told_sha256_) state_.sha256 = told_sha256_;
    keep_();
    if (state_.size) {
      std::error_code unknown;
      const auto space = std::filesystem::space(platform::path_of(path_).parent_path(), unknown);
      if (!unknown && *state_.size - done_ > space.available)
        throw file_error(path_, done_, "no room on the disk", bytes_text(static_cast<double>(*state_.size - done_)),
                         bytes_text(static_cast<double>(space.available)));
    }
  }

  void bytes(std::string_view data) {
    if (answer_.status != 200 && answer_.status != 206) return;  // the body of a refusal
    if (!answer_.read) begin_body();
    last_ = clock::now();
    if (state_.size && data.size() > *state_.size - done_)
      refuse("length of the file", std::to_string(*state_.size) + " bytes", "more");
    for (std::string_view left = data; !left.empty();) {
      const std::int64_t count = platform::write_at(file_, done_, std::as_bytes(std::span(left)));
      if (count <= 0) fail_file("cannot write", errno);
      hash_.add(std::as_bytes(std::span(left.data(), static_cast<std::size_t>(count))));
      done_ += static_cast<std::uint64_t>(count);
      left.remove_prefix(static_cast<std::size_t>(count));
    }
    if (watch_.progress) watch_.progress(done_, state_.size);
    const double done = static_cast<double>(done_);
    if (state_.size)
      bar_.show(done / static_cast<double>(*state_.size),
                bytes_text(done) + " of " + bytes_text(static_cast<double>(*state_.size)));
    else bar_.show(0, bytes_text(done));
  }

  std::string checked() {
    const std::string found = hash_.hex();
    for (const auto* promised : {&from_.sha256, static_cast<const std::optional<std::string>*>(&state_.sha256)})
      if (*promised && **promised != found) {
        const std::string expected = **promised;
        empty();
        keep_();
        refuse("SHA-256 of the file", expected, found);
      }
    if (!platform::flush_file(file_)) fail_file("cannot flush", errno);
    return found;
  }

  const model_url& from_;
  std::string path_;
  download_state& state_;
  const std::function<void()>& keep_;
  const download_watch& watch_;
  progress_bar bar_;
  platform::file_number file_ = -1;
  std::uint64_t done_ = 0, asked_from_ = 0;
  io::sha256 hash_;
  answer_headers answer_;
  std::optional<std::uint64_t> told_size_;
  std::optional<std::string> told_sha256_;
  std::string redirect_;
  clock::time_point last_{};  ///< when something came
  std::chrono::seconds stall_limit_{};
  bool stalled_ = false;
  std::vector<std::exception_ptr> problem_;
};

}  // namespace

model_url parse_url(const std::string& text) {
  const url_parts parts(text);
  parts.require_safe(text);
  if (!parts.user.empty())
    throw argument_error("--model", "an address without a user", "'" + printable(parts.user, 40) + "@'");
  model_url out;
  out.address = without_fragment(text);
  if (!parts.fragment.empty()) {
    const std::string sum = parts.fragment.starts_with("sha256=") ? lower(parts.fragment.substr(7)) : std::string{};
    if (!is_sha256(sum))
      throw argument_error("--model", "behind # of an address sha256= and 64 digits",
                           "'" + printable(parts.fragment, 100) + "'");
    out.sha256 = sum;
  }
  const std::string last = parts.path.substr(parts.path.rfind('/') + 1);
  for (const char c : last)
    out.file_name +=
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '-' || c == '_'
            ? c
            : '_';
  if (out.file_name.empty() || out.file_name.front() == '.') out.file_name.insert(0, "model");
  if (out.file_name.size() > 120) out.file_name.erase(0, out.file_name.size() - 120);
  return out;
}

std::string download(const model_url& from, const std::string& path, download_state& state,
                     const std::function<void()>& keep, const download_watch& watch) {
  return transfer_run(from, path, state, keep, watch).run();
}

std::string download_text(const model_url& from) {
  std::string path = (std::filesystem::temp_directory_path() / "intaglio").string();
  const platform::file_number made = platform::make_private_file(path);
  if (made < 0) throw file_error(path, std::nullopt, "cannot create: " + platform::system_text(errno));
  platform::close_file(made);
  const struct removing {
    const std::string& path;
    ~removing() { platform::remove_file(path); }
  } leftover{path};
  download_state state;
  download(from, path, state, [] {});
  std::string out, problem = gpu::detail::read_whole_file(path, out);
  if (!problem.empty()) throw file_error(from.address, std::nullopt, problem);
  return out;
}

#else

std::string download_text(const model_url& from) { return from.address; }
model_url parse_url(const std::string&) {
  throw input_error("this tool was built without libcurl: models from the net cannot be fetched");
}
std::string download(const model_url&, const std::string&, download_state&, const std::function<void()>&,
                     const download_watch&) {
  return parse_url({}).address;
}

#endif

}  // namespace intaglio::tool
