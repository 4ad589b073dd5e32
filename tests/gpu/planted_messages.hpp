// SPDX-License-Identifier: MIT
// Marks the part of a test that causes messages of the validation layer on purpose by a planted mistake. The validation
// step of ./dev test leaves out the lines between the marks.
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
