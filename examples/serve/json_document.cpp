// SPDX-License-Identifier: MIT
#include "json_document.hpp"

#include "api_error.hpp"

namespace intaglio::serve {
namespace {

/// Builds the document from the parser's events, and stops the parser where a limit is passed.
class document_builder : public nlohmann::json_sax<json> {
 public:
  explicit document_builder(const limits& limit) : limit_(limit) {}
  json take() { return std::move(root_); }

  bool null() override { return put(json(nullptr)); }
  bool boolean(bool value) override { return put(json(value)); }
  bool number_integer(number_integer_t value) override { return put(json(value)); }
  bool number_unsigned(number_unsigned_t value) override { return put(json(value)); }
  bool number_float(number_float_t value, const string_t&) override { return put(json(value)); }
  bool string(string_t& value) override { return put(json(std::move(value))); }
  bool binary(binary_t&) override { return false; }
  bool start_object(std::size_t) override { return open(json::object()); }
  bool start_array(std::size_t) override { return open(json::array()); }
  bool end_object() override { return stack_.pop_back(), true; }
  bool end_array() override { return stack_.pop_back(), true; }
  bool key(string_t& name) override {
    auto& members = stack_.back()->get_ref<json::object_t&>();
    if (members.size() >= limit_.json_members)
      refuse("objects of at most " + std::to_string(limit_.json_members) + " members");
    if (members.find(name) != members.end()) refuse("each key once in an object");
    count();
    members.push_back({std::move(name), json(nullptr)});
    slot_ = &members.back().second;
    return true;
  }
  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception&) override {
    throw api_error(400, "the body is not valid JSON at byte " + std::to_string(position == 0 ? 0 : position - 1), {},
                    "invalid_json");
  }

 private:
  [[noreturn]] static void refuse(const std::string& expected) {
    throw api_error(400, "the body: expected " + expected + ", found more", {}, "invalid_json");
  }
  void count() {
    if (++values_ > limit_.json_values) refuse("JSON of at most " + std::to_string(limit_.json_values) + " values");
  }
  json* append(json&& value) {
    count();
    if (stack_.empty()) return root_ = std::move(value), &root_;
    if (stack_.back()->is_array()) return stack_.back()->push_back(std::move(value)), &stack_.back()->back();
    return *slot_ = std::move(value), slot_;
  }
  bool put(json&& value) { return append(std::move(value)) != nullptr; }
  bool open(json&& value) {
    if (stack_.size() >= limit_.json_depth)
      refuse("JSON nested at most " + std::to_string(limit_.json_depth) + " deep");
    stack_.push_back(append(std::move(value)));
    return true;
  }

  const limits& limit_;
  json root_;
  std::vector<json*>
      stack_;  ///< open containers: the content of the last one does not move while it grows only at its end
  json* slot_ = nullptr;
  std::size_t values_ = 0;
};

}  // namespace

json parse_json(std::string_view text, const limits& limit) {
  // The lexer takes NUL for the end of the text and would ignore what follows.
  if (text.find('\0') != std::string_view::npos)
    throw api_error(400, "the body: expected JSON, found a NUL byte", {}, "invalid_json");
  document_builder builder(limit);
  json::sax_parse(text.begin(), text.end(), &builder);
  return builder.take();
}

std::string json_text(const json& value) { return value.dump(-1, ' ', false, json::error_handler_t::replace); }

}  // namespace intaglio::serve
