// SPDX-License-Identifier: MIT
#include "http_server.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/connect.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#ifdef INTAGLIO_SERVE_TLS
#include <boost/asio/ssl.hpp>
#endif

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdlib>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <utility>

#include <intaglio/platform/console.hpp>
#include <intaglio/platform/sockets.hpp>

#include "api_error.hpp"
#include "uri.hpp"

namespace intaglio::serve {

bool is_address(const std::string& text) {
  boost::system::error_code problem;
  boost::asio::ip::make_address(text, problem);
  return !problem;
}

namespace {

namespace net = boost::asio;
namespace http = boost::beast::http;
using boost::system::error_code;
using net::ip::tcp;
using clock = std::chrono::steady_clock;
template <class T>
using task = net::awaitable<T>;

/// Ends a connection without an answer.
struct connection_over {};

std::string_view reason_of(int status) {
  const auto known = http::obsolete_reason(static_cast<http::status>(status));
  return {known.data(), known.size()};
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

/// Whose connections are counted together: an address, of IPv6 its network of 64 bits.
std::string address_group(const net::ip::address& of) {
  if (of.is_v4()) return of.to_string();
  const net::ip::address_v6 six = of.to_v6();
  if (six.is_v4_mapped()) return net::ip::make_address_v4(net::ip::v4_mapped, six).to_string();
  const auto bytes = six.to_bytes();
  return std::string(bytes.begin(), bytes.begin() + 8);
}

/// A socket, with TLS or without.
class socket_stream {
 public:
#ifdef INTAGLIO_SERVE_TLS
  socket_stream(tcp::socket socket, net::ssl::context* tls) : socket_(std::move(socket)) {
    if (tls != nullptr) secure_.emplace(socket_, *tls);
  }
#else
  explicit socket_stream(tcp::socket socket) : socket_(std::move(socket)) {}
#endif

  task<void> handshake() {
#ifdef INTAGLIO_SERVE_TLS
    error_code problem;
    if (secure_)
      co_await secure_->async_handshake(net::ssl::stream_base::server,
                                        net::redirect_error(net::use_awaitable, problem));
    if (problem) throw connection_over();
#endif
    co_return;
  }
  /// @return 0 at the end
  task<std::size_t> read_some(net::mutable_buffer into) {
    error_code problem;
    std::size_t count = 0;
#ifdef INTAGLIO_SERVE_TLS
    if (secure_) count = co_await secure_->async_read_some(into, net::redirect_error(net::use_awaitable, problem));
    else
#endif
      count = co_await socket_.async_read_some(into, net::redirect_error(net::use_awaitable, problem));
    co_return problem ? 0 : count;
  }
  task<void> write(std::string_view bytes) {
    error_code problem;
    const auto all = net::buffer(bytes.data(), bytes.size());
#ifdef INTAGLIO_SERVE_TLS
    if (secure_) co_await net::async_write(*secure_, all, net::redirect_error(net::use_awaitable, problem));
    else
#endif
      co_await net::async_write(socket_, all, net::redirect_error(net::use_awaitable, problem));
    if (problem) throw connection_over();
  }
  task<void> shut_down() {
    error_code ignored;
#ifdef INTAGLIO_SERVE_TLS
    if (secure_) co_await secure_->async_shutdown(net::redirect_error(net::use_awaitable, ignored));
#endif
    socket_.shutdown(tcp::socket::shutdown_send, ignored);
    co_return;
  }
  bool is_secure() const {
#ifdef INTAGLIO_SERVE_TLS
    return secure_.has_value();
#else
    return false;
#endif
  }
  void close() {
    error_code ignored;
    socket_.close(ignored);
  }

  platform::peer_state look() { return platform::state_of_peer(socket_.native_handle()); }

 private:
  tcp::socket socket_;
#ifdef INTAGLIO_SERVE_TLS
  std::optional<net::ssl::stream<tcp::socket&>> secure_;
#endif
};

class connection;

/// What all connections share.
struct server_core {
  server_core(http_application& of, const listen_options& options, const limits& limit,
              std::atomic<std::uint64_t>& open)
      : application(of), options(options), limit(limit), connections(open), signals(sockets, SIGTERM, SIGINT),
        over(sockets), workers(options.workers), light_worker(1) {}

  http_application& application;
  listen_options options;
  limits limit;
  std::atomic<std::uint64_t>& connections;
  net::io_context sockets{1};
  tcp::acceptor acceptor{sockets};
  net::signal_set signals;
  net::steady_timer over;  ///< ends the draining
#ifdef INTAGLIO_SERVE_TLS
  std::optional<net::ssl::context> tls;
#endif
  net::thread_pool workers, light_worker;
  bool stopping = false;
  std::set<connection*> open;
  std::map<std::string, std::size_t> by_address;  ///< open connections

  void enter(connection* one);
  void leave(connection* one);
  bool make_room(const std::string* address);
  void listen();
  task<void> accept();
};

/// One client. Lives as long as its coroutine.
class connection : public std::enable_shared_from_this<connection> {
 public:
  connection(server_core& of, tcp::socket socket, std::string peer, std::string address);
  ~connection();
  task<void> serve();
  /// No request runs: it may be closed when the server stops.
  bool is_idle() const { return idle_; }
  void close() { stream_.close(); }
  /// No request of it has been admitted that is not answered.
  bool is_waiting() const { return waiting_; }
  /// Which of those that wait is closed first where there are too many: who never had a request admitted, then who
  /// waits longest.
  std::pair<bool, clock::time_point> worth() const { return {known_, waiting_since_}; }
  const std::string& address() const { return address_; }

 private:
  task<void> watch();
  void due_in(clock::duration time);
  task<bool> one_request();
  task<void> read_head(http::request_parser<http::string_body>& parser);
  task<void> read_body(http::request_parser<http::string_body>& parser);
  http_request head_of(const http::request_parser<http::string_body>& parser) const;
  task<void> send(const http_request& request, const http_reply& reply, bool keep);
  task<bool> send_events(const http_request& request, pending_reply& pending);
  task<bool> wait_for_news(std::string_view probe);

  server_core& server_;
  socket_stream stream_;
  net::steady_timer watchdog_, news_;
  clock::time_point due_, waiting_since_ = clock::now();
  std::string in_;  ///< read and not yet parsed
  std::string peer_, address_;
  bool waiting_ = true, known_ = false;
  bool idle_ = true, news_came_ = false, over_ = false, probed_ = false, http_10_ = false;
};

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

/// Closes the socket when what is being waited for is overdue; the coroutine then ends by itself.
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
  } catch (const std::exception&) {  // nothing that one connection meets ends the server
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

/// @return true where the connection stays open
task<bool> connection::one_request() {
  http::request_parser<http::string_body> parser;
  parser.header_limit(server_.limit.head_bytes);
  parser.body_limit(server_.limit.body_bytes);
  http_request request;
  http_reply reply;
  bool keep = false, read = false;
  int status = 0;
  const auto answered = [&](clock::time_point since) {
    server_.application.answered(request, status, std::chrono::duration<double>(clock::now() - since).count());
  };
  probed_ = false;
  waiting_ = true;
  waiting_since_ = clock::now();
  std::optional<api_error> refusal;
  clock::time_point start = clock::now();
  try {
    co_await read_head(parser);
    start = clock::now();
    http_10_ = parser.get().version() < 11;
    request = head_of(parser);
    server_.application.admit(request);
    const bool light = server_.application.is_light(request);
    waiting_ = false;
    known_ = known_ || !light;
    if (const auto length = parser.content_length(); length && *length > server_.limit.body_bytes)
      throw api_error(413, "the body: expected at most " + std::to_string(server_.limit.body_bytes) + " bytes, found " +
                               std::to_string(*length));
    if (!request.field("content-encoding").empty() && request.field("content-encoding") != "identity")
      throw api_error(415, "content-encoding: expected none, found another");
    if (const auto expect = request.field("expect"); !expect.empty() && in_.empty())
      co_await stream_.write("HTTP/1.1 100 Continue\r\n\r\n");
    co_await read_body(parser);
    read = true;
    request.body = std::move(parser.get().body());
    keep = parser.get().keep_alive() && !server_.stopping;
    due_in(std::chrono::hours(24 * 365));  // from here on the client waits for us
    start = clock::now();
    const auto self = shared_from_this();
    const std::function<void()> wake = [weak = weak_from_this(), &sockets = server_.sockets] {
      net::post(sockets, [weak] {
        if (const auto alive = weak.lock()) alive->news_came_ = true, alive->news_.cancel();
      });
    };
    // Reading JSON and finding tokens may take a while.
    reply = co_await net::co_spawn(
        light ? server_.light_worker : server_.workers,
        [&]() -> task<http_reply> { co_return server_.application.answer(request, wake); }, net::use_awaitable);
    while (reply.pending) {  // what is waited for may be followed by more to wait for
      const std::shared_ptr<pending_reply> pending = reply.pending;
      if (pending->streams()) {
        status = 200;
        const bool whole = co_await send_events(request, *pending);
        if (!whole) status = 0;
        answered(start);
        co_return whole&& keep && !http_10_;
      }
      for (;;) {
        pending->poll();
        if (pending->done()) break;
        if (co_await wait_for_news("HTTP/1.1 102 Processing\r\n\r\n")) continue;
        pending->cancel();
        answered(start);
        throw connection_over();
      }
      reply = co_await net::co_spawn(
          server_.workers, [&]() -> task<http_reply> { co_return pending->reply(); }, net::use_awaitable);
    }
  } catch (const api_error& error) { refusal = error; } catch (const connection_over&) {
    throw;
  } catch (const std::exception&) { refusal = api_error(500, "the server failed to answer"); }
  if (refusal) {
    reply = server_.application.error_reply(*refusal, request);
    keep = keep && read;
  }
  status = reply.status;
  try {
    co_await send(request, reply, keep);
  } catch (const connection_over&) { status = 0; }
  answered(start);
  if (status == 0) throw connection_over();
  co_return keep;
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
  // A slow reader is dropped when a piece of the answer takes too long, not when all of it does.
  for (std::size_t at = 0; at < out.size(); at += 65536) {
    due_in(server_.limit.write);
    co_await stream_.write(std::string_view(out).substr(at, 65536));
  }
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
    due_in(server_.limit.write);
    co_await stream_.write(head);
    auto last = clock::now();
    // A comment, or an empty line: proxies and clients see that the answer still comes.
    const std::string_view nothing = pending.stream_type() == "text/event-stream" ? ": \n\n" : "\n";
    const std::string probe = piece(nothing);
    for (;;) {
      const std::string text = pending.poll();
      const bool done = pending.done();
      const bool ping = text.empty() && clock::now() - last > std::chrono::seconds(15);
      if (!text.empty() || ping) {
        due_in(server_.limit.write);
        const std::string next =
            ping ? probe : piece(text);  // g++ 12 destroys a temporary of a conditional in co_await twice
        co_await stream_.write(next);
        due_in(std::chrono::hours(24 * 365));
        last = clock::now();
      }
      if (done) break;
      if (!co_await wait_for_news(probe)) {
        gone = true;
        break;
      }
    }
    if (!gone && !http_10_) {
      due_in(server_.limit.write);
      co_await stream_.write("0\r\n\r\n");
    }
  } catch (const connection_over&) { gone = true; }
  if (gone) pending.cancel();
  co_return !gone;
}

/// Until there may be news, 50 ms at most. Who has closed its side may still listen: a probe that nobody takes tells.
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
    due_in(server_.limit.write);
    try {
      co_await stream_.write(probe);
    } catch (const connection_over&) { co_return false; }
    due_in(std::chrono::hours(24 * 365));
  }
  co_return true;
}

void server_core::enter(connection* one) {
  open.insert(one);
  ++by_address[one->address()];
  connections = open.size();
}
void server_core::leave(connection* one) {
  if (open.erase(one) == 0) return;
  const auto at = by_address.find(one->address());
  if (--at->second == 0) by_address.erase(at);
  connections = open.size();
}

/// Closes the connection that is worth least among those that wait, of one address or of all.
/// @return false: none of them waits
bool server_core::make_room(const std::string* address) {
  connection* least = nullptr;
  for (connection* each : open)
    if (each->is_waiting() && (address == nullptr || each->address() == *address) &&
        (least == nullptr || each->worth() < least->worth()))
      least = each;
  if (least == nullptr) return false;
  leave(least);
  least->close();
  return true;
}

void server_core::listen() {
  error_code problem;
  const auto address = net::ip::make_address(options.address, problem);
  if (problem) throw std::runtime_error("--host: expected an IP address or localhost, found '" + options.address + "'");
  const tcp::endpoint at(address, options.port);
  const std::string where = options.address + " port " + std::to_string(options.port);
  acceptor.open(at.protocol(), problem);
  if (!problem) acceptor.set_option(tcp::acceptor::reuse_address(true), problem);
  if (!problem) acceptor.bind(at, problem);
  if (!problem) acceptor.listen(1024, problem);
  if (problem) throw std::runtime_error("cannot listen on " + where + ": " + problem.message());
  // As many descriptors as the connections need.
  platform::allow_open_files(limit.connections + 256u);
  platform::ignore_broken_pipes();
#ifdef INTAGLIO_SERVE_TLS
  if (!options.certificate.empty()) {
    tls.emplace(net::ssl::context::tls_server);
    tls->set_options(net::ssl::context::default_workarounds | net::ssl::context::no_tlsv1 |
                     net::ssl::context::no_tlsv1_1);
    tls->use_certificate_chain_file(options.certificate, problem);
    if (problem) throw std::runtime_error(options.certificate + ": cannot read the certificate: " + problem.message());
    tls->use_private_key_file(options.private_key, net::ssl::context::pem, problem);
    if (problem) throw std::runtime_error(options.private_key + ": cannot read the private key: " + problem.message());
  }
#endif
}

task<void> server_core::accept() {
  while (acceptor.is_open()) {
    error_code problem;
    net::steady_timer pause(sockets);
    if (open.size() >= limit.connections && !make_room(nullptr)) {  // the others wait in the system's queue
      pause.expires_after(std::chrono::milliseconds(20));
      co_await pause.async_wait(net::redirect_error(net::use_awaitable, problem));
      continue;
    }
    tcp::endpoint from;
    tcp::socket socket(sockets);
    co_await acceptor.async_accept(socket, from, net::redirect_error(net::use_awaitable, problem));
    if (problem == net::error::operation_aborted) co_return;
    if (problem) {  // out of descriptors
      pause.expires_after(std::chrono::milliseconds(100));
      co_await pause.async_wait(net::redirect_error(net::use_awaitable, problem));
      continue;
    }
    const std::string group = address_group(from.address());
    if (const auto known = by_address.find(group);
        known != by_address.end() && known->second >= limit.connections_per_address && !make_room(&group))
      continue;  // closes it
    error_code ignored;
    socket.set_option(tcp::no_delay(true), ignored);
    socket.set_option(tcp::socket::send_buffer_size(limit.send_buffer_bytes), ignored);
    const auto client = std::make_shared<connection>(*this, std::move(socket), from.address().to_string(), group);
    net::co_spawn(
        sockets, [client]() -> task<void> { co_await client->serve(); }, net::detached);
  }
}

}  // namespace

struct http_server::parts : server_core {
  using server_core::server_core;
};

bool has_tls() {
#ifdef INTAGLIO_SERVE_TLS
  return true;
#else
  return false;
#endif
}

http_server::http_server(http_application& application, const listen_options& options, const limits& limit,
                         std::atomic<std::uint64_t>& connections)
    : parts_(std::make_unique<parts>(application, options, limit, connections)) {
  parts_->listen();
}
http_server::~http_server() = default;

std::uint16_t http_server::port() const { return parts_->acceptor.local_endpoint().port(); }

void http_server::run(const std::function<void()>& draining, const std::function<void()>& overdue) {
  parts& server = *parts_;
  net::co_spawn(
      server.sockets, [&server]() -> task<void> { co_await server.accept(); }, net::detached);
  server.signals.async_wait([&](const error_code& problem, int) {
    if (problem) return;
    // From here on a signal ends the process as it would without us.
    server.signals.clear();
    server.stopping = true;
    error_code ignored;
    server.acceptor.close(ignored);
    draining();
    for (connection* each : server.open)
      if (each->is_idle()) each->close();
    server.over.expires_after(server.options.drain);
    server.over.async_wait([&](const error_code& cancelled) {
      if (cancelled) return;
      overdue();
      server.over.expires_after(std::chrono::seconds(2));
      server.over.async_wait([&](const error_code& early) {
        if (early) return;
        for (connection* each : server.open) each->close();
      });
    });
    // When the last connection is gone, nothing keeps the sockets' thread but this timer.
    net::co_spawn(
        server.sockets,
        [&server]() -> task<void> {
          net::steady_timer pause(server.sockets);
          while (!server.open.empty()) {
            error_code woken;
            pause.expires_after(std::chrono::milliseconds(10));
            co_await pause.async_wait(net::redirect_error(net::use_awaitable, woken));
          }
          server.over.cancel();
        },
        net::detached);
  });
  server.sockets.run();
  server.workers.join();
  server.light_worker.join();
}

}  // namespace intaglio::serve
