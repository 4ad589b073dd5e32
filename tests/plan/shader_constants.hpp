// SPDX-License-Identifier: MIT
// The unsigned constants of a shader, computed from its text for given specialization constants.
#pragma once

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "paths.hpp"

/// Constants of a shader and of the files that it includes.
class shader_constants {
 public:
  /// @param file in shaders/  @param defines macros of the module  @param specialization values by name
  shader_constants(const std::string& file, std::set<std::string> defines,
                   std::map<std::string, std::uint64_t> specialization)
      : defines_(std::move(defines)), values_(std::move(specialization)) {
    std::string text;
    take(file, text);
    const std::regex constant("const uint ([^;(]*?=[^;]*);");
    for (std::sregex_iterator each(text.begin(), text.end(), constant), none; each != none; ++each)
      take_list((*each)[1]);
  }
  /// @throws std::runtime_error: the shader has no such constant, or computes it in another way
  std::uint64_t operator()(const std::string& name) {
    if (const auto known = values_.find(name); known != values_.end()) return known->second;
    const auto found = expressions_.find(name);
    if (found == expressions_.end()) throw std::runtime_error("the shader has no constant " + name);
    std::string text = found->second;
    const auto outer = std::exchange(left_, &text);
    const std::uint64_t out = choice();
    if (next() != '\0') throw std::runtime_error("cannot compute " + name + ": " + text);
    left_ = outer;
    return values_[name] = out;
  }

 private:
  /// The lines of a file that the defines leave.
  void take(const std::string& file, std::string& out) {
    std::ifstream from(in_source("shaders/" + file));
    if (!from) from.open(in_source("shaders/include/" + file));
    std::string line;
    std::vector<bool> open{true};
    while (std::getline(from, line)) {
      line = line.substr(0, line.find("//"));
      std::istringstream words(line);
      std::string first, second;
      words >> first >> second;
      if (first == "#ifdef" || first == "#ifndef")
        open.push_back(open.back() && defines_.contains(second) == (first == "#ifdef"));
      else if (first == "#if") open.push_back(false);
      else if (first == "#else") open.back() = !open.back() && open[open.size() - 2];
      else if (first == "#endif") open.pop_back();
      else if (first == "#include" && open.back()) take(second.substr(1, second.size() - 2), out);
      else if (open.back()) out += line + ' ';
    }
  }
  void take_list(const std::string& list) {
    int depth = 0;
    std::string one;
    for (const char c : list + ",") {
      depth += c == '(' ? 1 : c == ')' ? -1 : 0;
      if (c != ',' || depth != 0) {
        one += c;
        continue;
      }
      if (const auto sign = one.find('='); sign != std::string::npos) {
        std::string name = one.substr(0, sign);
        name.erase(std::remove(name.begin(), name.end(), ' '), name.end());
        expressions_.emplace(name, one.substr(sign + 1));
      }
      one.clear();
    }
  }

  char next() {
    left_->erase(0, left_->find_first_not_of(' '));
    return left_->empty() ? '\0' : left_->front();
  }
  bool takes(const std::string& sign) {
    next();
    if (!left_->starts_with(sign)) return false;
    left_->erase(0, sign.size());
    return true;
  }
  std::uint64_t choice() {
    const std::uint64_t condition = compared();
    if (!takes("?")) return condition;
    const std::uint64_t yes = choice();
    if (!takes(":")) throw std::runtime_error("expected ':' at " + *left_);
    const std::uint64_t no = choice();
    return condition != 0 ? yes : no;
  }
  std::uint64_t compared() {
    const std::uint64_t a = sum();
    if (takes("==")) return a == sum();
    if (takes("!=")) return a != sum();
    if (takes("<=")) return a <= sum();
    if (takes(">=")) return a >= sum();
    if (takes("<")) return a < sum();
    if (takes(">")) return a > sum();
    return a;
  }
  std::uint64_t sum() {
    for (std::uint64_t out = product();;)
      if (takes("+")) out += product();
      else if (takes("-")) out -= product();
      else return out;
  }
  std::uint64_t product() {
    for (std::uint64_t out = value();;)
      if (takes("*")) out *= value();
      else if (takes("/")) out /= value();
      else if (takes("%")) out %= value();
      else return out;
  }
  std::uint64_t value() {
    if (takes("(")) {
      const std::uint64_t out = choice();
      if (!takes(")")) throw std::runtime_error("expected ')' at " + *left_);
      return out;
    }
    std::string word;
    for (char c = next(); std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
         c = left_->empty() ? '\0' : left_->front()) {
      word += c;
      left_->erase(0, 1);
    }
    if (word.empty()) throw std::runtime_error("expected a number or a constant at " + *left_);
    return std::isdigit(static_cast<unsigned char>(word[0])) != 0 ? std::stoull(word) : (*this)(word);
  }

  std::set<std::string> defines_;
  std::map<std::string, std::uint64_t> values_;
  std::map<std::string, std::string> expressions_;
  std::string* left_ = nullptr;
};
