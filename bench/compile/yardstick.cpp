// SPDX-License-Identifier: MIT
// About a second of a compiler's work that has nothing to do with the library (bench/compile/measure --hold).
#include <regex>
#include <string>

int main(int, char** arguments) {
  return std::regex_match(std::string(arguments[0]), std::regex("[a-z]+(/[a-z]+)*")) ? 0 : 1;
}
