// SPDX-License-Identifier: MIT
// System calls that a server needs besides its socket library.
#pragma once

#include "intaglio/core/compiler.hpp"

#include <algorithm>
#include <cstddef>

#if defined(_WIN32)
#include <winsock2.h>

#include "intaglio/platform/windows_headers.hpp"
#else
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <cerrno>
#endif

namespace intaglio::platform {
/// State of a connection's other side.
enum class peer_state { there, half_closed, gone };

#if defined(_WIN32)
using socket_number = ::SOCKET;  ///< a socket of the system
#else
using socket_number = int;
#endif

/// Whether the other side of a TCP connection has closed it for sending or is gone. It never waits. Outside of Linux a
/// close after unread bytes is not seen.
inline peer_state state_of_peer(socket_number socket) {
#if defined(__linux__)
  ::tcp_info info{};
  ::socklen_t size = sizeof info;
  if (::getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return peer_state::gone;
  return info.tcpi_state == TCP_CLOSE        ? peer_state::gone
         : info.tcpi_state == TCP_CLOSE_WAIT ? peer_state::half_closed
                                             : peer_state::there;
#else
  char byte = 0;
#if defined(_WIN32)
  ::fd_set reading{};
  reading.fd_count = 1;
  reading.fd_array[0] = socket;
  ::timeval none{};
  if (::select(0, &reading, nullptr, nullptr, &none) == 0) return peer_state::there;
  const int count = ::recv(socket, &byte, 1, MSG_PEEK);
  const bool nothing = count < 0 && ::WSAGetLastError() == WSAEWOULDBLOCK;
#else
  const ::ssize_t count = ::recv(socket, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  const bool nothing = count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR);
#endif
  return count > 0 || nothing ? peer_state::there : count == 0 ? peer_state::half_closed : peer_state::gone;
#endif
}

/// Raises the process's limit of open files and sockets to this number, as far as the system allows.
inline void allow_open_files([[maybe_unused]] std::size_t count) {
#if !defined(_WIN32)
  ::rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_cur >= count) return;
  files.rlim_cur = (std::min)(files.rlim_max, static_cast<::rlim_t>(count));
  ::setrlimit(RLIMIT_NOFILE, &files);
#endif
}

}  // namespace intaglio::platform
