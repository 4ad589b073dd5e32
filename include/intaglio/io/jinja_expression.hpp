// SPDX-License-Identifier: MIT
// Expressions of Jinja, parsed into functions of the names in scope. Grammar and precedence: jinja2's parser.py.
#pragma once

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "intaglio/core/checked.hpp"
#include "intaglio/core/number_text.hpp"
#include "intaglio/io/jinja_filters.hpp"
#include "intaglio/io/jinja_lexer.hpp"

namespace intaglio::io::jinja {

/// Names and their values: those of a template, of a macro's call, or of one iteration of a loop.
struct scope {
  std::vector<std::pair<std::string, value>> names;
  std::shared_ptr<scope> outer;

  value find(const std::string& name) const {
    for (const scope* at = this; at != nullptr; at = at->outer.get())
      for (const auto& [known, found] : at->names)
        if (known == name) return found;
    return undefined{name};
  }
  void set(const std::string& name, value to) {
    for (auto& [known, found] : names)
      if (known == name) {
        found = std::move(to);
        return;
      }
    names.emplace_back(name, std::move(to));
  }
};

/// A compiled expression, which gives its value in a scope.
using expression = std::function<value(const std::shared_ptr<scope>&)>;

/// The operator ~: both operands as text.
inline value concatenated(const value& a, const value& b) { return a.print() + b.print(); }

/// The operator **.
inline value power(const value& a, const value& b) {
  if (a.is_float() || b.is_float() || b.integer() < 0) return std::pow(a.number(), b.number());
  const std::int64_t base = a.integer(), exponent = b.integer();
  if (base == 0 || base == 1) return exponent == 0 ? std::int64_t{1} : base;
  if (base == -1) return exponent % 2 == 0 ? std::int64_t{1} : std::int64_t{-1};
  std::int64_t out = 1;
  for (std::int64_t i = 0; i < exponent; ++i)
    if (product_overflows(out, base, out)) throw template_error("**: the number is too large");
  return out;
}

/// Python's arithmetic: + - * / // %.
inline value arithmetic(const std::string& sign, const value& a, const value& b) {
  if (a.is_safe() && sign == "%") throw template_error("%: not for a text of the filters safe and escape");
  if (sign == "%" && a.is_string()) return formatted(a.text(), b.is_list() ? b.items() : list{b});
  if (sign == "+" && a.is_string() && b.is_string())
    return a.is_safe() || b.is_safe() ? value::safe(escaped(a) + escaped(b)) : value(a.text() + b.text());
  if (sign == "+" && a.is_list() && b.is_list()) {
    list out = a.items();
    out.insert(out.end(), b.items().begin(), b.items().end());
    return out;
  }
  if (sign == "*" && (a.is_string() || b.is_string())) {
    const std::string& text = a.is_string() ? a.text() : b.text();
    const std::int64_t count = (a.is_string() ? b : a).integer();
    if (count > 0 && text.size() > (std::size_t{1} << 24) / static_cast<std::size_t>(count))
      throw template_error("*: the text is too long");
    std::string out;
    for (std::int64_t i = 0; i < count; ++i) out += text;
    return a.is_safe() || b.is_safe() ? value::safe(std::move(out)) : value(std::move(out));
  }
  if (!a.is_number() || !b.is_number()) {
    if (a.is_undefined()) (void)a.text();
    if (b.is_undefined()) (void)b.text();
    throw template_error(sign + ": not for " + a.kind() + " and " + b.kind());
  }
  const bool divides = sign == "/" || sign == "//" || sign == "%";
  if (divides && b.number() == 0) throw template_error(sign + ": division by zero");
  if (a.is_float() || b.is_float() || sign == "/") {
    const double x = a.number(), y = b.number();
    return sign == "+"    ? x + y
           : sign == "-"  ? x - y
           : sign == "*"  ? x * y
           : sign == "/"  ? x / y
           : sign == "//" ? std::floor(x / y)
                          : x - y * std::floor(x / y);
  }
  const std::int64_t x = a.integer(), y = b.integer();
  std::int64_t out = 0;
  const bool over = sign == "+"   ? sum_overflows(x, y, out)
                    : sign == "-" ? difference_overflows(x, y, out)
                    : sign == "*" ? product_overflows(x, y, out)
                                  : y == -1 && difference_overflows(0, x, out);
  if (over) throw template_error(sign + ": the number is too large");
  if (!divides) return out;
  if (y == -1) return sign == "//" ? value(out) : value(std::int64_t{0});
  const std::int64_t rest = x % y, floor = x / y - (rest != 0 && (rest < 0) != (y < 0) ? 1 : 0);
  return sign == "//" ? floor : x - floor * y;
}

/// A comparison by its sign: ==, !=, <, >, <= or >=.
inline bool compared(const std::string& sign, const value& a, const value& b) {
  if (sign == "==") return a == b;
  if (sign == "!=") return !(a == b);
  if (a.is_undefined()) (void)a.text();
  if (b.is_undefined()) (void)b.text();
  return sign == "<" ? less(a, b) : sign == ">" ? less(b, a) : sign == "<=" ? !less(b, a) : !less(a, b);
}

/// Reads tokens in order; the base of the parser of whole templates.
class expression_parser {
 public:
  explicit expression_parser(std::vector<token> tokens) : tokens_(std::move(tokens)) {}

 protected:
  const token& now() const { return tokens_[at_]; }
  const token& ahead() const { return tokens_[(std::min)(at_ + 1, tokens_.size() - 1)]; }
  token take() { return tokens_[at_ + 1 < tokens_.size() ? at_++ : at_]; }
  bool is_sign(std::string_view text) const { return now().kind == token_kind::sign && now().text == text; }
  bool is_name(std::string_view text) const { return now().kind == token_kind::name && now().text == text; }
  bool accept(std::string_view sign) { return is_sign(sign) && (take(), true); }
  bool accept_name(std::string_view name) { return is_name(name) && (take(), true); }
  void expect(std::string_view sign) {
    if (!accept(sign)) refuse("expected '" + std::string(sign) + "'");
  }
  std::string expect_name() {
    if (now().kind != token_kind::name) refuse("expected a name");
    return take().text;
  }
  [[noreturn]] void refuse(const std::string& what) const {
    throw template_error("line " + std::to_string(now().line) + ": " + what +
                         (now().kind == token_kind::end ? ", found the end" : ", found '" + now().text + "'"));
  }

  expression parse_expression() {
    if (++depth_ > most_depth) refuse("nested too deeply");
    expression out = parse_or();
    while (accept_name("if")) {
      const expression condition = parse_or(), otherwise = accept_name("else") ? parse_expression() : expression{};
      out = [then = std::move(out), condition, otherwise](const auto& s) -> value {
        if (condition(s).truth()) return then(s);
        return otherwise ? otherwise(s) : value(undefined{"the else of an inline if"});
      };
    }
    --depth_;
    return out;
  }
  /// Parses an expression without an inline `if`.
  expression parse_without_if() { return parse_or(); }
  /// Parses a, b, c: a list where there is a comma.
  expression parse_tuple() {
    std::vector<expression> parts;
    bool comma = false;
    while (!is_sign(")") && now().kind != token_kind::block_end && now().kind != token_kind::print_end &&
           !is_name("recursive")) {
      parts.push_back(parse_expression());
      if (!accept(",")) break;
      comma = true;
    }
    if (!comma && parts.size() == 1) return parts.front();
    if (parts.empty() && !is_sign(")")) refuse("expected an expression");
    return list_of(std::move(parts));
  }
  struct call_arguments {
    std::vector<expression> positional;
    std::vector<std::pair<std::string, expression>> named;
    expression more, more_named;  ///< *list and **dict

    arguments of(const std::shared_ptr<scope>& s) const {
      arguments out;
      for (const auto& each : positional) out.positional.push_back(each(s));
      for (const auto& [name, each] : named) out.named.emplace_back(name, each(s));
      if (more)
        for (const value& each : elements(more(s))) out.positional.push_back(each);
      if (more_named)
        for (const auto& [key, each] : more_named(s).members().members) out.named.emplace_back(key.text(), each);
      return out;
    }
  };
  /// Parses the arguments after the opening bracket.
  call_arguments parse_arguments() {
    call_arguments out;
    while (!accept(")")) {
      if (accept("**")) out.more_named = parse_expression();
      else if (accept("*")) out.more = parse_expression();
      else if (now().kind == token_kind::name && ahead().kind == token_kind::sign && ahead().text == "=") {
        std::string name = take().text;
        take();
        out.named.emplace_back(std::move(name), parse_expression());
      } else out.positional.push_back(parse_expression());
      if (!is_sign(")")) expect(",");
    }
    return out;
  }
  /// Parses filters and their arguments after a value.
  expression parse_filter(expression of) {
    std::string name = expect_name();
    while (accept(".")) name += "." + expect_name();
    const call_arguments given = accept("(") ? parse_arguments() : call_arguments{};
    return [of, name, given, line = now().line](const auto& s) {
      arguments all = given.of(s);
      all.positional.insert(all.positional.begin(), of(s));
      return at_line(line, [&] { return run_filter(name, all); });
    };
  }

 private:
  static constexpr int most_depth = 200;

  /// Converts the error of a missing argument.
  template <class Work>
  static value at_line(std::size_t line, Work&& work) {
    try {
      return work();
    } catch (const std::out_of_range&) {
      throw template_error("line " + std::to_string(line) + ": an argument is missing");
    }
  }
  static expression list_of(std::vector<expression> parts) {
    return [parts = std::move(parts)](const auto& s) -> value {
      list out;
      for (const expression& each : parts) out.push_back(each(s));
      return out;
    };
  }

  expression parse_or() {
    expression out = parse_and();
    while (accept_name("or"))
      out = [a = std::move(out), b = parse_and()](const auto& s) {
        value left = a(s);
        return left.truth() ? left : b(s);
      };
    return out;
  }
  expression parse_and() {
    expression out = parse_not();
    while (accept_name("and"))
      out = [a = std::move(out), b = parse_not()](const auto& s) {
        value left = a(s);
        return left.truth() ? b(s) : left;
      };
    return out;
  }
  expression parse_not() {
    if (!accept_name("not")) return parse_comparison();
    if (++depth_ > most_depth) refuse("nested too deeply");
    expression of = parse_not();
    --depth_;
    return [of = std::move(of)](const auto& s) -> value { return !of(s).truth(); };
  }
  expression parse_comparison() {
    const expression first = parse_sum();
    std::vector<std::pair<std::string, expression>> others;
    for (;;) {
      const bool signs = now().kind == token_kind::sign &&
                         std::string_view(" == != < > <= >= ").find(" " + now().text + " ") != std::string_view::npos;
      if (signs) {
        std::string sign = take().text;
        others.emplace_back(std::move(sign), parse_sum());
      } else if (accept_name("in")) others.emplace_back("in", parse_sum());
      else if (is_name("not") && ahead().kind == token_kind::name && ahead().text == "in") {
        take(), take();
        others.emplace_back("not in", parse_sum());
      } else break;
    }
    if (others.empty()) return first;
    return [first, others](const auto& s) -> value {
      value left = first(s);
      for (const auto& [sign, other] : others) {
        const value right = other(s);
        const bool holds = sign == "in"       ? run_test("in", left, {{right}, {}})
                           : sign == "not in" ? !run_test("in", left, {{right}, {}})
                                              : compared(sign, left, right);
        if (!holds) return false;
        left = right;
      }
      return true;
    };
  }
  template <class Next, class Apply>
  expression parse_chain(std::string_view signs, Next&& next, Apply&& apply) {
    expression out = next();
    while (now().kind == token_kind::sign && signs.find(" " + now().text + " ") != std::string_view::npos) {
      const std::string sign = take().text;
      out = [a = std::move(out), b = next(), sign, apply](const auto& s) {
        const value left = a(s);
        return apply(sign, left, b(s));
      };
    }
    return out;
  }
  expression parse_sum() {
    return parse_chain(
        " + - ", [this] { return parse_concatenation(); }, arithmetic);
  }
  expression parse_concatenation() {
    return parse_chain(
        " ~ ", [this] { return parse_product(); },
        [](const std::string&, const value& a, const value& b) { return concatenated(a, b); });
  }
  expression parse_product() {
    return parse_chain(
        " * / // % ", [this] { return parse_power(); }, arithmetic);
  }
  expression parse_power() {
    return parse_chain(
        " ** ", [this] { return parse_unary(true); },
        [](const std::string&, const value& a, const value& b) { return power(a, b); });
  }
  expression parse_unary(bool filtered) {
    if (++depth_ > most_depth) refuse("nested too deeply");
    expression out;
    if (is_sign("-") || is_sign("+")) {
      const bool minus = take().text == "-";
      out = [of = parse_unary(false), minus](const auto& s) -> value {
        const value found = of(s);
        return minus ? arithmetic("-", std::int64_t{0}, found) : arithmetic("+", std::int64_t{0}, found);
      };
    } else {
      out = parse_primary();
    }
    out = parse_postfix(std::move(out));
    while (filtered) {
      if (accept("|")) out = parse_filter(std::move(out));
      else if (accept_name("is")) out = parse_test(std::move(out));
      else if (is_sign("(")) out = parse_postfix(std::move(out));
      else break;
    }
    --depth_;
    return out;
  }
  expression parse_test(expression of) {
    const bool inverted = accept_name("not");
    std::string name = now().kind == token_kind::sign ? take().text : expect_name();
    call_arguments given;
    const bool value_follows = now().kind == token_kind::name || now().kind == token_kind::string ||
                               now().kind == token_kind::integer || now().kind == token_kind::real || is_sign("[") ||
                               is_sign("{");
    const bool word = is_name("else") || is_name("or") || is_name("and") || is_name("if") || is_name("is") ||
                      is_name("in") || is_name("not") || is_name("recursive");
    if (accept("(")) given = parse_arguments();
    else if (value_follows && !word) given.positional.push_back(parse_postfix(parse_primary()));
    return
        [of, inverted, name, given](const auto& s) -> value { return run_test(name, of(s), given.of(s)) != inverted; };
  }

  expression parse_postfix(expression of) {
    for (;;) {
      if (accept(".")) {
        if (now().kind != token_kind::name && now().kind != token_kind::integer) refuse("expected a name");
        const token part = take();
        if (part.kind == token_kind::integer) of = [of, key = whole(part)](const auto& s) { return item(of(s), key); };
        else of = [of, name = part.text](const auto& s) { return attribute(of(s), name); };
      } else if (accept("[")) {
        of = parse_subscript(std::move(of));
      } else if (accept("(")) {
        of = [of, given = parse_arguments(), line = now().line](const auto& s) {
          const value called = of(s);
          const arguments all = given.of(s);
          return at_line(line, [&] { return called.call(all); });
        };
      } else {
        return of;
      }
    }
  }
  expression parse_subscript(expression of) {
    std::vector<expression> parts(1);
    bool slices = false;
    while (!accept("]")) {
      if (accept(":")) {
        slices = true;
        parts.emplace_back();
        if (parts.size() > 3) refuse("expected ']'");
      } else {
        if (parts.back()) refuse("expected ']'");
        parts.back() = parse_expression();
      }
    }
    if (!slices) {
      if (!parts[0]) refuse("expected an index");
      return [of, key = parts[0]](const auto& s) {
        const value found = of(s), wanted = key(s);
        const value out = item(found, wanted);
        if (!out.is_undefined() || !wanted.is_string()) return out;
        return attribute(found, wanted.text());
      };
    }
    parts.resize(3);
    return [of, parts](const auto& s) -> value {
      const auto bound = [&](const expression& each) { return each ? each(s) : value(nullptr); };
      const value found = of(s);
      if (found.is_generator()) throw template_error("a slice: expected a list, found a generator");
      const list all = elements(found);
      list out;
      for (const std::size_t i : sliced(all.size(), bound(parts[0]), bound(parts[1]), bound(parts[2])))
        out.push_back(all[i]);
      if (!found.is_string()) return out;
      std::string text;
      for (const value& each : out) text += each.text();
      return text;
    };
  }

  value whole(const token& of) const {
    std::int64_t out = 0;
    const auto [end, problem] = std::from_chars(of.text.data(), of.text.data() + of.text.size(), out);
    if (problem != std::errc{} || end != of.text.data() + of.text.size()) refuse("a number that is too large");
    return out;
  }
  expression parse_primary() {
    const auto constant = [](value v) -> expression { return [v = std::move(v)](const auto&) { return v; }; };
    if (now().kind == token_kind::string) {
      std::string text;
      while (now().kind == token_kind::string) text += take().text;
      return constant(std::move(text));
    }
    if (now().kind == token_kind::integer) return constant(whole(take()));
    if (now().kind == token_kind::real) return constant(number_of_text(take().text).value_or(0));
    if (accept("(")) {
      expression out = parse_tuple();
      expect(")");
      return out;
    }
    if (accept("[")) {
      std::vector<expression> parts;
      while (!accept("]")) {
        parts.push_back(parse_expression());
        if (!is_sign("]")) expect(",");
      }
      return list_of(std::move(parts));
    }
    if (accept("{")) return parse_dict();
    if (now().kind != token_kind::name) refuse("expected an expression");
    const std::string name = take().text;
    if (name == "true" || name == "True") return constant(true);
    if (name == "false" || name == "False") return constant(false);
    if (name == "none" || name == "None") return constant(nullptr);
    return [name](const auto& s) { return s->find(name); };
  }
  expression parse_dict() {
    std::vector<std::pair<expression, expression>> parts;
    while (!accept("}")) {
      expression key = parse_expression();
      expect(":");
      parts.emplace_back(std::move(key), parse_expression());
      if (!is_sign("}")) expect(",");
    }
    return [parts = std::move(parts)](const auto& s) -> value {
      auto out = std::make_shared<dict>();
      for (const auto& [key, each] : parts) out->set(key(s), each(s));
      return out;
    };
  }

  std::vector<token> tokens_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace intaglio::io::jinja
