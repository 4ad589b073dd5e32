// SPDX-License-Identifier: MIT
// Whole templates of Jinja: text, for, if, set, macro, call and filter blocks, and the names that transformers gives to
// chat templates. Templates that use other templates (include, import, extends, block) are refused.
#pragma once

#include <ctime>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "intaglio/io/jinja_expression.hpp"
#include "intaglio/platform/clock.hpp"

namespace intaglio::io::jinja {

/// How a part of a template ended.
enum class flow : std::uint8_t { on, next_turn, leave_loop };

/// A compiled part of a template, which appends its text to `out`.
using statement = std::function<flow(const std::shared_ptr<scope>&, std::string& out)>;

/// Compiles a Jinja template into statements.
class template_parser : expression_parser {
 public:
  explicit template_parser(std::string_view source) : expression_parser(lexer(source).tokens()) {}

  statement parse() {
    statement out = parse_until({});
    if (now().kind != token_kind::end) refuse("unexpected tag");
    return out;
  }

 private:
  static constexpr int most_calls = 200;

  /// Parses statements up to a tag of one of these names, and stops at the name.
  statement parse_until(const std::vector<std::string_view>& ends) {
    if (++blocks_ > 100) refuse("nested too deeply");
    std::vector<statement> parts;
    for (;;) {
      if (now().kind == token_kind::data)
        parts.push_back([text = take().text](const auto&, std::string& out) { return out += text, flow::on; });
      else if (now().kind == token_kind::print) {
        take();
        parts.push_back(
            [of = parse_tuple()](const auto& s, std::string& out) { return out += of(s).print(), flow::on; });
        end_of(token_kind::print_end);
      } else if (now().kind == token_kind::block) {
        take();
        if (std::any_of(ends.begin(), ends.end(), [&](std::string_view each) { return is_name(each); })) break;
        parts.push_back(parse_statement());
      } else {
        if (!ends.empty()) refuse("expected '" + std::string(ends.front()) + "'");
        break;
      }
    }
    --blocks_;
    return [parts = std::move(parts)](const auto& s, std::string& out) {
      for (const statement& each : parts)
        if (const flow end = each(s, out); end != flow::on) return end;
      return flow::on;
    };
  }
  void end_of(token_kind kind) {
    if (now().kind != kind) refuse("expected the end of the tag");
    take();
  }
  void end_block() { end_of(token_kind::block_end); }

  statement parse_statement() {
    const std::string name = expect_name();
    if (name == "if") return parse_if();
    if (name == "for") return parse_for();
    if (name == "set") return parse_set();
    if (name == "macro") return parse_macro();
    if (name == "call") return parse_call();
    if (name == "filter") return parse_filter_block();
    if (name == "generation") {  // marks an answer for training
      end_block();
      statement body = parse_until({"endgeneration"});
      take(), end_block();
      return body;
    }
    if (name == "break" || name == "continue") {
      end_block();
      return [end = name == "break" ? flow::leave_loop : flow::next_turn](const auto&, std::string&) { return end; };
    }
    throw template_error("line " + std::to_string(now().line) + ": the tag '" + name + "' is not supported");
  }

  statement parse_if() {
    std::vector<std::pair<expression, statement>> branches;
    expression condition = parse_tuple();
    for (;;) {
      end_block();
      branches.emplace_back(std::move(condition), parse_until({"elif", "else", "endif"}));
      const std::string tag = take().text;
      if (tag == "endif") break;
      if (tag == "elif") condition = parse_tuple();
      else condition = [](const auto&) -> value { return true; };
    }
    end_block();
    return [branches = std::move(branches)](const auto& s, std::string& out) {
      for (const auto& [holds, body] : branches)
        if (holds(s).truth()) return body(s, out);
      return flow::on;
    };
  }

  std::vector<std::string> parse_targets() {
    std::vector<std::string> out;
    const bool bracket = accept("(");
    do out.push_back(expect_name());
    while (accept(",") && now().kind == token_kind::name);
    if (bracket) expect(")");
    return out;
  }
  static void assign(const std::vector<std::string>& targets, const value& of, scope& to) {
    if (targets.size() == 1) return to.set(targets[0], of);
    const list parts = elements(of);
    if (parts.size() != targets.size())
      throw template_error("expected " + std::to_string(targets.size()) + " values, found " +
                           std::to_string(parts.size()));
    for (std::size_t i = 0; i < parts.size(); ++i) to.set(targets[i], parts[i]);
  }

  /// The variable `loop` in a loop's body.
  static value loop_facts(const list& all, std::size_t i, const std::shared_ptr<value>& changed) {
    auto out = std::make_shared<dict>();
    const auto set = [&](const char* name, value to) { out->members.emplace_back(name, std::move(to)); };
    set("index", value::of_size(i + 1)), set("index0", value::of_size(i));
    set("revindex", value::of_size(all.size() - i)), set("revindex0", value::of_size(all.size() - i - 1));
    set("first", i == 0), set("last", i + 1 == all.size()), set("length", value::of_size(all.size()));
    set("depth", std::int64_t{1}), set("depth0", std::int64_t{0});
    set("previtem", i > 0 ? all[i - 1] : value(undefined{"there is no previous item"}));
    set("nextitem", i + 1 < all.size() ? all[i + 1] : value(undefined{"there is no next item"}));
    set("cycle", function([i](const arguments& a) -> value {
          if (a.positional.empty()) throw template_error("cycle: expected values");
          return a.positional[i % a.positional.size()];
        }));
    set("changed", function([changed](const arguments& a) -> value {
          value given = a.positional;
          const bool same = *changed == given;
          *changed = std::move(given);
          return !same;
        }));
    return out;
  }
  statement parse_for() {
    const auto targets = parse_targets();
    if (!accept_name("in")) refuse("expected 'in'");
    expression source = parse_for_source();
    const expression wanted = accept_name("if") ? parse_expression() : expression{};
    if (is_name("recursive")) refuse("recursive loops are not supported");
    end_block();
    statement body = parse_until({"else", "endfor"}), otherwise;
    if (take().text == "else") {
      end_block();
      otherwise = parse_until({"endfor"});
      take();
    }
    end_block();
    return [=](const auto& s, std::string& out) {
      list all;
      for (const value& each : elements(source(s))) {
        if (wanted) {
          const auto inner = std::make_shared<scope>(scope{{}, s});
          assign(targets, each, *inner);
          if (!wanted(inner).truth()) continue;
        }
        all.push_back(each);
      }
      const auto changed = std::make_shared<value>();
      for (std::size_t i = 0; i < all.size(); ++i) {
        const auto inner = std::make_shared<scope>(scope{{}, s});
        inner->set("loop", loop_facts(all, i, changed));
        assign(targets, all[i], *inner);
        if (body(inner, out) == flow::leave_loop) break;
      }
      return all.empty() && otherwise ? otherwise(s, out) : flow::on;
    };
  }
  /// Parses the source of a loop. It has no inline if: that word begins the loop's condition.
  expression parse_for_source() {
    std::vector<expression> parts{parse_without_if()};
    if (!is_sign(",")) return parts[0];
    while (accept(",")) parts.push_back(parse_without_if());
    return [parts](const auto& s) -> value {
      list out;
      for (const expression& each : parts) out.push_back(each(s));
      return out;
    };
  }

  statement parse_set() {
    const bool namespaced = ahead().kind == token_kind::sign && ahead().text == ".";
    std::string owner, member;
    std::vector<std::string> targets;
    if (namespaced) owner = expect_name(), expect("."), member = expect_name();
    else targets = parse_targets();
    const auto store = [=](const std::shared_ptr<scope>& s, const value& to) {
      if (!namespaced) return assign(targets, to, *s);
      const value of = s->find(owner);
      if (!of.is_dict() || !of.members().is_namespace) throw template_error("set: '" + owner + "' is no namespace");
      of.members().set(member, to);
    };
    if (accept("=")) {
      expression of = parse_tuple();
      end_block();
      return [store, of](const auto& s, std::string&) { return store(s, of(s)), flow::on; };
    }
    auto text = std::make_shared<std::string>();
    expression shown = [text](const auto&) -> value { return *text; };
    while (accept("|")) shown = parse_filter(std::move(shown));
    end_block();
    statement body = parse_until({"endset"});
    take(), end_block();
    return [=](const auto& s, std::string&) {
      std::string made;
      body(std::make_shared<scope>(scope{{}, s}), made);
      *text = std::move(made);
      store(s, shown(s));
      return flow::on;
    };
  }

  struct parameter {
    std::string name;
    expression otherwise;
  };
  std::vector<parameter> parse_parameters() {
    std::vector<parameter> out;
    expect("(");
    while (!accept(")")) {
      out.push_back({expect_name(), {}});
      if (accept("=")) out.back().otherwise = parse_expression();
      if (!is_sign(")")) expect(",");
    }
    return out;
  }
  /// Makes a function of a macro, or of the body of a call.
  static value callable(const std::string& name, const std::vector<parameter>& parameters, const statement& body,
                        const std::shared_ptr<scope>& made_in, const std::shared_ptr<int>& calls) {
    // The scope owns the macro, so the macro must not own the scope.
    return function([=, names = std::weak_ptr<scope>(made_in)](const arguments& a) -> value {
      const std::shared_ptr<scope> outer = names.lock();
      if (outer == nullptr) throw template_error("macro '" + name + "' is called after the block that it was made in");
      const auto inner = std::make_shared<scope>(scope{{}, outer});
      if (a.positional.size() > parameters.size())
        throw template_error("macro '" + name + "' takes " + std::to_string(parameters.size()) + " arguments");
      for (const auto& [key, each] : a.named) {
        const bool known =
            key == "caller" || std::any_of(parameters.begin(), parameters.end(),
                                           [&wanted = key](const parameter& p) { return p.name == wanted; });
        if (!known) throw template_error("macro '" + name + "' has no parameter '" + key + "'");
        if (key == "caller") inner->set(key, each);
      }
      for (std::size_t i = 0; i < parameters.size(); ++i) {
        const value* given = a.find(i, parameters[i].name);
        inner->set(parameters[i].name, given != nullptr          ? *given
                                       : parameters[i].otherwise ? parameters[i].otherwise(inner)
                                                                 : value(undefined{parameters[i].name}));
      }
      if (*calls >= most_calls) throw template_error("macro '" + name + "': calls nested too deeply");
      ++*calls;
      std::string out;
      body(inner, out);
      --*calls;
      return out;
    });
  }
  statement parse_macro() {
    const std::string name = expect_name();
    const auto parameters = parse_parameters();
    end_block();
    statement body = parse_until({"endmacro"});
    take();
    if (now().kind == token_kind::name) take();
    end_block();
    return [=, calls = calls_](const auto& s, std::string&) {
      s->set(name, callable(name, parameters, body, s, calls));
      return flow::on;
    };
  }
  statement parse_call() {
    const auto parameters = is_sign("(") ? parse_parameters() : std::vector<parameter>{};
    const std::string name = expect_name();
    expect("(");
    const call_arguments given = parse_arguments();
    end_block();
    statement body = parse_until({"endcall"});
    take(), end_block();
    return [=, calls = calls_](const auto& s, std::string& out) {
      arguments all = given.of(s);
      all.named.emplace_back("caller", callable("caller", parameters, body, s, calls));
      out += s->find(name).call(all).print();
      return flow::on;
    };
  }
  statement parse_filter_block() {
    auto text = std::make_shared<std::string>();
    expression shown = parse_filter([text](const auto&) -> value { return *text; });
    while (accept("|")) shown = parse_filter(std::move(shown));
    end_block();
    statement body = parse_until({"endfilter"});
    take(), end_block();
    return [=](const auto& s, std::string& out) {
      std::string made;
      const flow end = body(std::make_shared<scope>(scope{{}, s}), made);
      *text = std::move(made);
      out += shown(s).print();
      return end;
    };
  }

  std::shared_ptr<int> calls_ = std::make_shared<int>(0);
  int blocks_ = 0;
};

/// Adds range, namespace, dict, raise_exception and strftime_now.
/// @param now the time of strftime_now
inline void add_globals(scope& to, std::time_t now) {
  to.set("range", function([](const arguments& a) -> value {
           const auto at = [&](std::size_t i) { return a.positional.at(i).integer(); };
           const std::size_t count = a.positional.size();
           const std::int64_t from = count > 1 ? at(0) : 0, end = count > 1 ? at(1) : at(0),
                              step = count > 2 ? at(2) : 1;
           if (step == 0) throw template_error("range: step 0");
           list out;
           for (std::int64_t i = from; step > 0 ? i < end : i > end; i += step) {
             if (out.size() == 1'000'000) throw template_error("more than 1000000 numbers in a range");
             out.push_back(i);
           }
           return out;
         }));
  const auto make = [](bool is_namespace) {
    return function([is_namespace](const arguments& a) -> value {
      auto out = std::make_shared<dict>();
      for (const value& each : a.positional)
        for (const auto& [key, member] : each.members().members) out->set(key, member);
      for (const auto& [name, each] : a.named) out->set(name, each);
      out->is_namespace = is_namespace;
      return out;
    });
  };
  to.set("namespace", make(true));
  to.set("dict", make(false));
  to.set("raise_exception", function([](const arguments& a) -> value {
           throw template_error(a.positional.empty() ? "refused" : a.positional[0].print());
         }));
  to.set("strftime_now", function([now](const arguments& a) -> value {
           char out[256] = "";
           if (const auto local = platform::local_time(now))
             std::strftime(out, sizeof out, a.positional.at(0).text().c_str(), &*local);
           return std::string(out);
         }));
}

/// Renders a template. @param names its variables besides the globals, an object
/// @throws template_error with the line, where it is known
inline std::string render(std::string_view source, const nlohmann::ordered_json& names,
                          std::time_t now = std::time(nullptr)) {
  const auto globals = std::make_shared<scope>();
  add_globals(*globals, now);
  const auto top = std::make_shared<scope>(scope{{}, globals});
  for (const auto& [key, each] : names.items()) top->set(key, value::of_json(each));
  std::string out;
  template_parser(source).parse()(top, out);
  return out;
}

}  // namespace intaglio::io::jinja
