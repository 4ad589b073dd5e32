// SPDX-License-Identifier: MIT
// One client's connection, and what all connections of a server share.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>

#include <atomic>
#include <csignal>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "http_server.hpp"
#include "socket_stream.hpp"

namespace intaglio::serve {

namespace http = boost::beast::http;

class connection;

/// What all connections share.
struct server_core {
  server_core(http_application& of, const listen_options& options, const limits& limit,
              std::atomic<std::uint64_t>& count)
      : application(of), options(options), limit(limit), connections(count), signals(sockets, SIGTERM, SIGINT),
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
  /// Whether each admitted request of the connection is answered.
  bool is_waiting() const { return waiting_; }
  /// The order in which waiting connections are closed where there are too many: first those that never had a request
  /// admitted, then the one that has waited longest.
  std::pair<bool, clock::time_point> worth() const { return {known_, waiting_since_}; }
  const std::string& address() const { return address_; }

 private:
  /// One request on its way to its answer.
  struct exchange {
    http::request_parser<http::string_body> parser;
    http_request request;
    http_reply reply;
    bool light = false, keep = false, read = false;
    clock::time_point start = clock::now();
  };

  task<void> watch();
  void due_in(clock::duration time);
  task<bool> one_request();
  task<void> read_request(exchange& of);
  std::function<void()> waker();
  task<std::optional<bool>> answer(exchange& of);
  void answered(const exchange& of, int status);
  task<void> read_head(http::request_parser<http::string_body>& parser);
  task<void> read_body(http::request_parser<http::string_body>& parser);
  http_request head_of(const http::request_parser<http::string_body>& parser) const;
  task<void> send(const http_request& request, const http_reply& reply, bool keep);
  task<void> write_in_time(std::string_view text);
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

}  // namespace intaglio::serve
