// SPDX-License-Identifier: MIT
#include "connection.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>

#include <algorithm>
#include <array>
#include <cstdio>
#include <random>

#include "api_error.hpp"
#include "uri.hpp"

namespace intaglio::serve {
namespace {

constexpr std::chrono::hours no_limit{24 * 365};

std::string_view reason_of(int status) {
  const auto known = http::obsolete_reason(static_cast<http::status>(status));
  return {known.data(), known.size()};
}

/// Whether a body is in chunks, and in no other coding besides.
bool is_chunked_alone(std::string_view coding) {
  constexpr std::string_view only = "chunked";
  return std::equal(coding.begin(), coding.end(), only.begin(), only.end(),
                    [](char a, char b) { return (a >= 'A' && a <= 'Z' ? a - 'A' + 'a' : a) == b; });
}

/// What a client calls its request, where that can stand in a field and a log; else a name of ours.
std::string request_id(std::string_view wanted) {
  const auto plain = [](char each) {
    return (each >= '0' && each <= '9') || (each >= 'a' && each <= 'z') || (each >= 'A' && each <= 'Z') ||
           each == '-' || each == '_' || each == '.';
  };
  if (!wanted.empty() && wanted.size() <= 128 && std::all_of(wanted.begin(), wanted.end(), plain))
    return std::string(wanted);
  static std::mt19937_64 random{(std::uint64_t{std::random_device{}()} << 32) | std::random_device{}()};
  std::array<char, 24> text{};
  std::snprintf(text.data(), text.size(), "req_%016llx", static_cast<unsigned long long>(random()));
  return text.data();
}

}  // namespace

connection::connection(server_core& of, tcp::socket socket, std::string peer, std::string address)
    : server_(of),
#ifdef INTAGLIO_SERVE_TLS
      stream_(std::move(socket), of.tls ? &*of.tls : nullptr),
#else
      stream_(std::move(socket)),
#endif
      watchdog_(of.sockets), news_(of.sockets), due_(clock::now() + of.limit.head), peer_(std::move(peer)),
      address_(std::move(address)) {
  server_.enter(this);
}
connection::~connection() { server_.leave(this); }

void connection::due_in(clock::duration time) {
  due_ = clock::now() + time;
  watchdog_.cancel();
}

/// Closes the socket when an awaited operation is overdue; the coroutine then ends by itself.
task<void> connection::watch() {
  while (!over_) {
    error_code woken;
    watchdog_.expires_at(due_);
    co_await watchdog_.async_wait(net::redirect_error(net::use_awaitable, woken));
    if (!over_ && clock::now() >= due_) {
      stream_.close();
      co_return;
    }
  }
}

task<void> connection::serve() {
  const auto self = shared_from_this();
  net::co_spawn(
      server_.sockets, [self]() -> task<void> { co_await self->watch(); }, net::detached);
  try {
    co_await stream_.handshake();
    due_in(server_.limit.idle);
    while (co_await one_request()) {
      idle_ = true;
      if (server_.stopping && in_.empty()) break;
      due_in(server_.limit.idle);
    }
    due_in(std::chrono::seconds(2));
    co_await stream_.shut_down();
    // What the client still sends is read, so that it gets the answer instead of a reset; not for long.
    std::array<char, 4096> rest;
    for (int i = 0; i < 64 && co_await stream_.read_some(net::buffer(rest)) != 0; ++i) {}
  } catch (const connection_over&) {
  } catch (const std::exception&) {  // an error of one connection does not end the server
  }
  over_ = true;
  watchdog_.cancel();
  stream_.close();
}

task<void> connection::read_head(http::request_parser<http::string_body>& parser) {
  std::array<char, 8192> piece;
  bool begun = !in_.empty();
  if (begun) due_in(server_.limit.head);
  for (;;) {
    if (!in_.empty()) {
      error_code problem;
      const std::size_t used = parser.put(net::buffer(in_), problem);
      in_.erase(0, used);
      if (problem == http::error::header_limit)
        throw api_error(
            431, "the head: expected at most " + std::to_string(server_.limit.head_bytes) + " bytes, found more");
      if (problem == http::error::body_limit)
        throw api_error(
            413, "the body: expected at most " + std::to_string(server_.limit.body_bytes) + " bytes, found more");
      if (problem && problem != http::error::need_more) throw api_error(400, "the request is not HTTP/1.1");
      if (parser.is_header_done()) co_return;
      if (in_.size() > server_.limit.head_bytes)
        throw api_error(
            431, "the head: expected at most " + std::to_string(server_.limit.head_bytes) + " bytes, found more");
    }
    const std::size_t count = co_await stream_.read_some(net::buffer(piece));
    if (count == 0) throw connection_over();
    idle_ = false;
    if (!begun) due_in(server_.limit.head);
    begun = true;
    in_.append(piece.data(), count);
  }
}

task<void> connection::read_body(http::request_parser<http::string_body>& parser) {
  std::array<char, 65536> piece;
  due_in(server_.limit.body);
  while (!parser.is_done()) {
    if (!in_.empty()) {
      error_code problem;
      const std::size_t used = parser.put(net::buffer(in_), problem);
      in_.erase(0, used);
      if (problem == http::error::body_limit)
        throw api_error(
            413, "the body: expected at most " + std::to_string(server_.limit.body_bytes) + " bytes, found more");
      if (problem && problem != http::error::need_more) throw api_error(400, "the body is not what its head says");
      if (parser.is_done()) break;
      if (used != 0) continue;
      if (in_.size() > piece.size())
        throw api_error(400, "the body is not what its head says");  // a chunk's head without an end
    }
    const std::size_t count = co_await stream_.read_some(net::buffer(piece));
    if (count == 0) throw connection_over();
    in_.append(piece.data(), count);
  }
}

http_request connection::head_of(const http::request_parser<http::string_body>& parser) const {
  const auto& message = parser.get();
  http_request out;
  out.method = std::string(message.method_string().data(), message.method_string().size());
  const std::string_view target(message.target().data(), message.target().size());
  if (target.size() > server_.limit.target_bytes)
    throw api_error(
        414, "the address: expected at most " + std::to_string(server_.limit.target_bytes) + " bytes, found more");
  const std::size_t question = target.find('?');
  const auto path = decoded_path(target.substr(0, question));
  if (!path) throw api_error(400, "the address: expected a path from the root");
  out.path = *path;
  if (question != std::string_view::npos) out.query = target.substr(question + 1);
  for (const auto& field : message) {
    if (out.fields.size() >= server_.limit.head_fields)
      throw api_error(
          431, "the head: expected at most " + std::to_string(server_.limit.head_fields) + " fields, found more");
    std::string name(field.name_string().data(), field.name_string().size());
    for (char& letter : name)
      if (letter >= 'A' && letter <= 'Z') letter = static_cast<char>(letter - 'A' + 'a');
    out.fields.emplace_back(std::move(name), std::string(field.value().data(), field.value().size()));
  }
  out.peer = peer_;
  out.id = request_id(out.field("x-request-id"));
  return out;
}

void connection::answered(const exchange& of, int status) {
  server_.application.answered(of.request, status, std::chrono::duration<double>(clock::now() - of.start).count());
}

/// Reads a request's head, asks whether it may go on, and reads its body.
task<void> connection::read_request(exchange& of) {
  co_await read_head(of.parser);
  of.start = clock::now();
  http_10_ = of.parser.get().version() < 11;
  of.request = head_of(of.parser);
  server_.application.admit(of.request);
  of.light = server_.application.is_light(of.request);
  waiting_ = false;
  known_ = known_ || !of.light;
  if (const auto length = of.parser.content_length(); length && *length > server_.limit.body_bytes)
    throw api_error(413, "the body: expected at most " + std::to_string(server_.limit.body_bytes) + " bytes, found " +
                             std::to_string(*length));
  if (!of.request.field("content-encoding").empty() && of.request.field("content-encoding") != "identity")
    throw api_error(415, "content-encoding: expected none, found another");
  // The end of a body in another coding is unknown: what is after its head would be taken for the next request.
  if (const auto coding = of.request.field("transfer-encoding");
      !coding.empty() && (http_10_ || !is_chunked_alone(coding)))
    throw api_error(501, std::string("transfer-encoding: expected ") + (http_10_ ? "none in HTTP/1.0" : "chunked") +
                             ", found another");
  if (const auto expect = of.request.field("expect"); !expect.empty() && in_.empty())
    co_await stream_.write("HTTP/1.1 100 Continue\r\n\r\n");
  co_await read_body(of.parser);
  of.read = true;
  of.request.body = std::move(of.parser.get().body());
  of.keep = of.parser.get().keep_alive() && !server_.stopping;
  due_in(no_limit);  // from here on the client waits for us
  of.start = clock::now();
}

/// Tells the connection, from any thread and as long as it lives, that there is news.
std::function<void()> connection::waker() {
  return [weak = weak_from_this(), &sockets = server_.sockets] {
    net::post(sockets, [weak] {
      if (const auto alive = weak.lock()) alive->news_came_ = true, alive->news_.cancel();
    });
  };
}

/// Finds the answer, or streams it.
/// @return nothing: the answer is in `of` and is to be sent; else it is sent, and true where the connection stays open
task<std::optional<bool>> connection::answer(exchange& of) {
  const auto self = shared_from_this();
  const std::function<void()> wake = waker();
  // Reading JSON and finding tokens may take a while.
  of.reply = co_await net::co_spawn(
      of.light ? server_.light_worker : server_.workers,
      [&]() -> task<http_reply> { co_return server_.application.answer(of.request, wake); }, net::use_awaitable);
  while (of.reply.pending) {  // the awaited result may be followed by another wait
    const std::shared_ptr<pending_reply> pending = of.reply.pending;
    if (pending->streams()) {
      const bool whole = co_await send_events(of.request, *pending);
      answered(of, whole ? 200 : 0);
      co_return whole&& of.keep && !http_10_;
    }
    for (;;) {
      pending->poll();
      if (pending->done()) break;
      if (co_await wait_for_news("HTTP/1.1 102 Processing\r\n\r\n")) continue;
      pending->cancel();
      answered(of, 0);
      throw connection_over();
    }
    of.reply = co_await net::co_spawn(
        server_.workers, [&]() -> task<http_reply> { co_return pending->reply(); }, net::use_awaitable);
  }
  co_return std::nullopt;
}

/// @return true where the connection stays open
task<bool> connection::one_request() {
  exchange now;
  now.parser.header_limit(server_.limit.head_bytes);
  now.parser.body_limit(server_.limit.body_bytes);
  probed_ = false;
  waiting_ = true;
  waiting_since_ = clock::now();
  std::optional<api_error> refusal;
  try {
    co_await read_request(now);
    const std::optional<bool> streamed = co_await answer(now);
    if (streamed) co_return *streamed;
  } catch (const api_error& error) { refusal = error; } catch (const connection_over&) {
    throw;
  } catch (const std::exception&) { refusal = api_error(500, "the server failed to answer"); }
  if (refusal) {
    now.reply = server_.application.error_reply(*refusal, now.request);
    now.keep = now.keep && now.read;
  }
  bool sent = true;
  try {
    co_await send(now.request, now.reply, now.keep);
  } catch (const connection_over&) { sent = false; }
  answered(now, sent ? now.reply.status : 0);
  if (!sent) throw connection_over();
  co_return now.keep;
}

/// Writes what the client has to take: it is dropped when 64 KiB take too long, not when all of it does. Behind it the
/// client waits for us.
task<void> connection::write_in_time(std::string_view text) {
  for (std::size_t at = 0; at < text.size(); at += 65536) {
    due_in(server_.limit.write);
    co_await stream_.write(text.substr(at, 65536));
  }
  due_in(no_limit);
}

task<void> connection::send(const http_request& request, const http_reply& reply, bool keep) {
  std::string out = "HTTP/1.1 " + std::to_string(reply.status) + ' ';
  out.append(reason_of(reply.status)).append("\r\n");
  const auto field = [&](std::string_view name, std::string_view value) {
    out.append(name).append(": ").append(value).append("\r\n");
  };
  for (const auto& [name, value] : server_.application.common_fields(request)) field(name, value);
  for (const auto& [name, value] : reply.fields) field(name, value);
  if (!reply.content_type.empty()) field("Content-Type", reply.content_type);
  if (reply.status != 204) field("Content-Length", std::to_string(reply.body.size()));
  field("Connection", keep ? "keep-alive" : "close");
  out += "\r\n";
  if (request.method != "HEAD") out += reply.body;
  co_await write_in_time(out);
}

/// @return false where the client went away
task<bool> connection::send_events(const http_request& request, pending_reply& pending) {
  bool gone = false;
  try {
    std::string head = "HTTP/1.1 200 OK\r\nContent-Type: " + std::string(pending.stream_type()) +
                       "\r\nCache-Control: no-cache\r\nX-Accel-Buffering: no\r\n";
    for (const auto& [name, value] : server_.application.common_fields(request))
      head.append(name).append(": ").append(value).append("\r\n");
    head += http_10_ ? "Connection: close\r\n\r\n" : "Transfer-Encoding: chunked\r\n\r\n";
    const auto piece = [&](std::string_view text) {
      if (http_10_) return std::string(text);
      std::array<char, 20> size{};
      std::snprintf(size.data(), size.size(), "%zx\r\n", text.size());
      return std::string(size.data()).append(text).append("\r\n");
    };
    co_await write_in_time(head);
    auto last = clock::now();
    // A comment, or an empty line: proxies and clients see that the answer still comes.
    const std::string_view nothing = pending.stream_type() == "text/event-stream" ? ": \n\n" : "\n";
    const std::string probe = piece(nothing);
    for (;;) {
      const std::string text = pending.poll();
      const bool done = pending.done();
      const bool ping = text.empty() && clock::now() - last > std::chrono::seconds(15);
      if (!text.empty() || ping) {
        const std::string next =
            ping ? probe : piece(text);  // g++ 12 destroys a temporary of a conditional in co_await twice
        co_await write_in_time(next);
        last = clock::now();
      }
      if (done) break;
      if (!co_await wait_for_news(probe)) {
        gone = true;
        break;
      }
    }
    if (!gone && !http_10_) co_await write_in_time("0\r\n\r\n");
  } catch (const connection_over&) { gone = true; }
  if (gone) pending.cancel();
  co_return !gone;
}

/// Waits until there may be news, 50 ms at most. A client that has closed its sending side may still listen: a probe
/// that cannot be sent shows that it is gone.
/// @return false: the client is gone
task<bool> connection::wait_for_news(std::string_view probe) {
  if (!std::exchange(news_came_, false)) {  // else it came while the last piece was on its way
    error_code woken;
    news_.expires_after(std::chrono::milliseconds(50));
    co_await news_.async_wait(net::redirect_error(net::use_awaitable, woken));
    news_came_ = false;
  }
  const auto now = stream_.look();
  if (now == platform::peer_state::gone) co_return false;
  if (now == platform::peer_state::half_closed && stream_.is_secure()) co_return false;
  if (now == platform::peer_state::half_closed && !probed_ && !http_10_) {
    probed_ = true;
    try {
      co_await write_in_time(probe);
    } catch (const connection_over&) { co_return false; }
  }
  co_return true;
}

}  // namespace intaglio::serve
