// SPDX-License-Identifier: MIT
// Marks the stretch of a test that earns the validation layer's messages on purpose by a planted mistake. The
// validation step of
// ./dev test leaves out what stands between the marks.
#pragma once

#include <cstdio>

class planted_messages {
 public:
  planted_messages() { mark("<<<<planted"); }
  ~planted_messages() { mark(">>>>planted"); }
  planted_messages(const planted_messages&) = delete;
  planted_messages& operator=(const planted_messages&) = delete;

 private:
  static void mark(const char* text) {
    std::fflush(stdout);
    std::fprintf(stdout, "\n%s\n", text);
    std::fflush(stdout);
  }
};
