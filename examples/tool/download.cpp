// SPDX-License-Identifier: MIT
#include "download.hpp"

#include <intaglio/core/error.hpp>
#include <intaglio/core/version.hpp>
#include <intaglio/gpu/cache_file.hpp>
#include <intaglio/platform/files.hpp>
#include <intaglio/platform/path_text.hpp>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <system_error>
#include <thread>
#include <vector>

#include "console.hpp"
#include "curl_library.hpp"
#include "hub.hpp"
#include "partial_file.hpp"
#include "web_address.hpp"
#include "web_answer.hpp"

namespace intaglio::tool {

bool is_url(const std::string& model) {
  return model.starts_with("http://") || model.starts_with("https://") || model.starts_with("hf:");
}

#ifdef INTAGLIO_HAS_LIBCURL
namespace {

/// One file on its way.
class transfer_run {
 public:
  transfer_run(const model_url& from, const std::string& path, download_state& state, const std::function<void()>& keep,
               const download_watch& watch)
      : from_(from), state_(state), keep_(keep), watch_(watch), bar_("downloading"), file_(path) {
    if (state_.validator.empty() || (state_.size && file_.size() > *state_.size)) start_anew();
  }
  transfer_run(const transfer_run&) = delete;
  transfer_run& operator=(const transfer_run&) = delete;

  std::string run() {
    const graceful_stop guard;
    std::string why;
    constexpr int attempts = 5;  // in a row without a new byte
    for (int left = attempts, all = 0; !whole();) {
      const std::uint64_t before = file_.size();
      if (watch_.progress) watch_.progress(file_.size(), state_.size);
      why = attempt();
      if (ends()) throw interrupted(SIGTERM);
      if (graceful_stop::received() != 0) {
        bar_.clear();
        note("stopped with " + bytes_text(static_cast<double>(file_.size())) + "; the next run goes on from there");
        throw interrupted(graceful_stop::received());
      }
      if (why.empty() && !state_.size)
        state_.size = file_.size();  // a server that states no length ends the file by its end
      if (whole()) break;
      if (why.empty()) why = "the server ended the file early";
      left = file_.size() > before && ++all < 200 ? attempts : left - 1;
      if (left == 0) {
        bar_.clear();
        if (state_.size)
          throw file_error(from_.address, file_.size(),
                           "length of the file, after " + std::to_string(attempts) + " failed attempts (" + why + ")",
                           std::to_string(*state_.size) + " bytes", std::to_string(file_.size()));
        throw input_error(printable(from_.address, 240) + ": " + why);
      }
      bar_.clear();
      note(why + " at " + bytes_text(static_cast<double>(file_.size())) + ", trying again");
      std::this_thread::sleep_for(std::chrono::milliseconds(100 << (attempts - left)));
    }
    bar_.clear();
    return checked();
  }

 private:
  using clock = std::chrono::steady_clock;

  bool whole() const { return state_.size && file_.size() == *state_.size; }
  bool ends() const { return watch_.ends && watch_.ends(); }

  void start_anew() {
    if (watch_.anew) watch_.anew();
    empty();
  }
  void empty() {
    file_.empty();
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

  /// One request, of what the file lacks. @return why it ended early, or empty
  std::string request(const std::string& address) {
    const curl_library& of = curl();
    CURL* const handle = of.curl_easy_init();
    if (handle == nullptr) throw input_error("libcurl cannot start");
    char problem[CURL_ERROR_SIZE] = "";
    of.curl_easy_setopt(handle, CURLOPT_URL, address.c_str());
    of.curl_easy_setopt(handle, CURLOPT_ERRORBUFFER, problem);
    set_options(of, handle);
    curl_slist* const headers = asked_headers(of, address);
    if (headers != nullptr) of.curl_easy_setopt(handle, CURLOPT_HTTPHEADER, headers);
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
    return why_ended(address, code, status, problem);
  }

  void set_options(const curl_library& of, CURL* handle) {
    const auto set = [&](CURLoption what, auto value) { of.curl_easy_setopt(handle, what, value); };
    const std::string agent = "intaglio/" + std::to_string(version_major) + "." + std::to_string(version_minor);
    const char* const stall = std::getenv("INTAGLIO_STALL_SECONDS");
    const auto seconds = number_of(stall == nullptr ? "" : stall);
    stall_limit_ = std::chrono::seconds(seconds && *seconds > 0 && *seconds < 86'400 ? *seconds : 30);
    last_ = clock::now();
    stalled_ = false;
    set(CURLOPT_PROTOCOLS_STR, "http,https");
    set(CURLOPT_FOLLOWLOCATION, 0L);
    set(CURLOPT_NOSIGNAL, 1L);
    set(CURLOPT_CONNECTTIMEOUT, 20L);
    set(CURLOPT_LOW_SPEED_LIMIT, 100L);  // bytes a second
    set(CURLOPT_LOW_SPEED_TIME, static_cast<long>(stall_limit_.count()));
    set(CURLOPT_USERAGENT, agent.c_str());  // libcurl copies it
    set(CURLOPT_HEADERFUNCTION, &transfer_run::on_header);
    set(CURLOPT_HEADERDATA, this);
    set(CURLOPT_WRITEFUNCTION, &transfer_run::on_bytes);
    set(CURLOPT_WRITEDATA, this);
    set(CURLOPT_NOPROGRESS, 0L);
    set(CURLOPT_XFERINFOFUNCTION, &transfer_run::on_progress);
    set(CURLOPT_XFERINFODATA, this);
  }

  /// @return a list to be freed, or nullptr
  curl_slist* asked_headers(const curl_library& of, const std::string& address) {
    curl_slist* headers = nullptr;
    asked_from_ = state_.validator.empty() ? 0 : file_.size();
    if (asked_from_ != 0) {
      headers = of.curl_slist_append(headers, ("Range: bytes=" + std::to_string(asked_from_) + "-").c_str());
      headers = of.curl_slist_append(headers, ("If-Range: " + state_.validator).c_str());
    }
    // Only the hub gets the token, not the hosts that it redirects to.
    if (const char* const token = std::getenv("HF_TOKEN");
        token != nullptr && *token != '\0' && address.starts_with(hub_endpoint() + "/"))
      headers = of.curl_slist_append(headers, (std::string("Authorization: Bearer ") + token).c_str());
    return headers;
  }

  /// Returns an error that a later attempt may mend; an error that no attempt can mend ends the download.
  /// @return empty where the request ended as it should  @throws input_error
  std::string why_ended(const std::string& address, CURLcode code, long status, const char* problem) {
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
      throw input_error(printable(address, 240) + ": " + printable(problem, 200));
    return *problem != '\0' ? printable(problem, 200) : curl().curl_easy_strerror(code);
  }

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
    answer_.add(line);
    // Answers that only point elsewhere may state size and checksum, too.
    if (answer_.status >= 300 && answer_.status < 400) {
      if (answer_.sha256) linked_sha256_ = answer_.sha256;
      if (answer_.linked_size) linked_size_ = answer_.linked_size;
    }
  }

  [[noreturn]] void refuse(const std::string& what, const std::string& expected, const std::string& found) const {
    throw file_error(from_.address, std::nullopt, what, expected, found);
  }

  /// The headers are all there: what does the body hold?
  void begin_body() {
    answer_.read = true;
    if (!answer_.encoding.empty() && lower_case(answer_.encoding) != "identity")
      refuse("content-encoding", "none", printable(answer_.encoding, 40));
    std::optional<std::uint64_t> size = answer_.length;
    if (answer_.status == 206) {
      const web_answer::part part = answer_.content_range();
      if (asked_from_ == 0 || part.first != asked_from_)
        refuse("content-range", "bytes " + std::to_string(asked_from_) + "-", "'" + printable(answer_.range, 60) + "'");
      size = part.size;
    } else if (file_.size() != 0) {  // the file has changed, or the server knows no ranges
      start_anew();
    }
    if (linked_size_) {
      if (size && *size != *linked_size_)
        refuse("length of the file", std::to_string(*linked_size_) + " bytes", std::to_string(*size));
      size = linked_size_;
    }
    if (state_.size && size && *size != *state_.size) {
      const std::uint64_t before = *state_.size;
      empty();
      refuse("length of the file", std::to_string(before) + " bytes, as the server said before", std::to_string(*size));
    }
    if (size) state_.size = size;
    state_.validator = !answer_.etag.empty() && !answer_.etag.starts_with("W/") ? answer_.etag : answer_.modified;
    if (answer_.sha256) state_.sha256 = answer_.sha256;
    if (linked_sha256_) state_.sha256 = linked_sha256_;
    keep_();
    if (state_.size) {
      std::error_code unknown;
      const auto space = std::filesystem::space(platform::path_of(file_.path()).parent_path(), unknown);
      if (!unknown && *state_.size - file_.size() > space.available)
        throw file_error(file_.path(), file_.size(), "no room on the disk",
                         bytes_text(static_cast<double>(*state_.size - file_.size())),
                         bytes_text(static_cast<double>(space.available)));
    }
  }

  void bytes(std::string_view data) {
    if (answer_.status != 200 && answer_.status != 206) return;  // the body of a refusal
    if (!answer_.read) begin_body();
    last_ = clock::now();
    if (state_.size && data.size() > *state_.size - file_.size())
      refuse("length of the file", std::to_string(*state_.size) + " bytes", "more");
    file_.append(data);
    if (watch_.progress) watch_.progress(file_.size(), state_.size);
    const double done = static_cast<double>(file_.size());
    if (state_.size)
      bar_.show(done / static_cast<double>(*state_.size),
                bytes_text(done) + " of " + bytes_text(static_cast<double>(*state_.size)));
    else bar_.show(0, bytes_text(done));
  }

  std::string checked() {
    const std::string found = file_.sha256();
    for (const auto* promised : {&from_.sha256, static_cast<const std::optional<std::string>*>(&state_.sha256)})
      if (*promised && **promised != found) {
        const std::string expected = **promised;
        empty();
        keep_();
        refuse("SHA-256 of the file", expected, found);
      }
    file_.flush();
    return found;
  }

  const model_url& from_;
  download_state& state_;
  const std::function<void()>& keep_;
  const download_watch& watch_;
  progress_bar bar_;
  partial_file file_;
  std::uint64_t asked_from_ = 0;
  web_answer answer_;
  std::optional<std::uint64_t> linked_size_;
  std::optional<std::string> linked_sha256_;
  std::string redirect_;
  clock::time_point last_{};  ///< when something came
  std::chrono::seconds stall_limit_{};
  bool stalled_ = false;
  std::vector<std::exception_ptr> problem_;
};

}  // namespace

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
std::string download(const model_url&, const std::string&, download_state&, const std::function<void()>&,
                     const download_watch&) {
  return parse_url({}).address;
}

#endif

}  // namespace intaglio::tool
