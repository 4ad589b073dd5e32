// SPDX-License-Identifier: MIT
// What a session does: loading, prompts, generation, logits. The code is the same for every model; session.hpp adds the
// type.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "intaglio/io/checkpoint.hpp"
#include "intaglio/io/prompt.hpp"
#include "intaglio/plan/adapters.hpp"
#include "intaglio/runtime/load_session.hpp"
#include "intaglio/runtime/saved_session.hpp"
#include "intaglio/runtime/text_stream.hpp"

namespace intaglio {

INTAGLIO_DEFINITION basic_session::basic_session(const gpu::device& on, std::span<const plan::table* const> tables,
                                                 const io::checkpoint& from, const session_options& options,
                                                 runtime::module_source source)
    : body_(runtime::load_session(on, tables, from, options, source)) {}

INTAGLIO_DEFINITION basic_session::basic_session(const gpu::device& on, std::span<const plan::table* const> tables,
                                                 const std::filesystem::path& path, const session_options& options,
                                                 runtime::module_source source)
    : basic_session(on, tables, gpu::translated([&] { return io::checkpoint::open(path, options.checkpoint); }),
                    options, source) {}

INTAGLIO_DEFINITION basic_session::basic_session(std::shared_ptr<runtime::session_body> body)
    : body_(std::move(body)) {}

INTAGLIO_DEFINITION std::uint32_t basic_session::context() const { return body().table->context; }

INTAGLIO_DEFINITION std::uint32_t basic_session::position() const { return body().size(); }

INTAGLIO_DEFINITION const std::vector<std::int32_t>& basic_session::history() const { return body().history; }

INTAGLIO_DEFINITION const plan::table& basic_session::table() const { return *body().table; }

INTAGLIO_DEFINITION const gpu::device& basic_session::device() const { return body().device; }

INTAGLIO_DEFINITION const runtime::executor& basic_session::executor() const { return *body().run; }

INTAGLIO_DEFINITION bool basic_session::has_tokenizer() const { return body().tokens.has_value(); }

INTAGLIO_DEFINITION const io::tokenizer& basic_session::tokenizer() const { return body().tokenizer(); }

INTAGLIO_DEFINITION const std::vector<std::string>& basic_session::warnings() const { return body().warnings; }

INTAGLIO_DEFINITION void basic_session::reset() {
  runtime::session_use use(body_);
  use->history.clear();
  use->cached = 0;
}

INTAGLIO_DEFINITION void basic_session::use_adapter(const adapter_choice& choice) {
  runtime::session_use use(body_);
  const adapter_choice to = runtime::checked_adapter(choice, plan::adapters_of(*use->table));
  if (to == use->run->adapter()) return;
  use->run->choose(to);
  use->cached = 0;
}

INTAGLIO_DEFINITION void basic_session::save(const std::filesystem::path& path, const session_note& note) {
  gpu::translated([&] {
    runtime::session_use use(body_);
    runtime::save_session(*use, path, note);
  });
}

INTAGLIO_DEFINITION session_note basic_session::restore(const std::filesystem::path& path) {
  return gpu::translated([&] {
    runtime::session_use use(body_);
    return runtime::restore_session(*use, path);
  });
}

INTAGLIO_DEFINITION trace_result basic_session::take_trace() {
  return gpu::translated([&] {
    runtime::session_use use(body_);
    return use->run->take_trace(use->size());
  });
}

INTAGLIO_DEFINITION void basic_session::prefill(std::span<const std::int32_t> ids, std::uint32_t chunk) {
  gpu::translated([&] {
    runtime::session_use use(body_);
    const std::uint32_t step = use->fed_chunk(chunk);
    append(*use, ids);
    use->feed_until(use->size() - 1, step);
  });
}

INTAGLIO_DEFINITION void basic_session::prompt(std::span<const std::int32_t> ids) {
  gpu::translated([&] {
    runtime::session_use use(body_);
    set_prompt(*use, ids);
  });
}

INTAGLIO_DEFINITION text_stream basic_session::begin(const generate_options& options) {
  return gpu::translated([&] {
    runtime::session_use use(body_);
    use->require_head();
    return text_stream(std::move(use), options);
  });
}

INTAGLIO_DEFINITION text_stream basic_session::begin(std::span<const std::int32_t> ids,
                                                     const generate_options& options) {
  return gpu::translated([&] {
    runtime::session_use use(body_);
    set_prompt(*use, ids);
    return text_stream(std::move(use), options);
  });
}

INTAGLIO_DEFINITION text_stream basic_session::complete(std::string_view text, const generate_options& options) {
  return begin(encode(text), options);
}

INTAGLIO_DEFINITION text_stream basic_session::reply(std::string_view text, const generate_options& options) {
  return gpu::translated([&] {
    const io::chat_message message{"user", std::string(text)};
    return reply(std::span(&message, 1), options);
  });
}

INTAGLIO_DEFINITION text_stream basic_session::reply(std::span<const io::chat_message> conversation,
                                                     const generate_options& options) {
  return gpu::translated([&] { return begin(encode(conversation), options); });
}

INTAGLIO_DEFINITION generation basic_session::generate(const generate_options& options,
                                                       const std::function<void(std::string_view)>& each) {
  return finished(begin(options), each);
}

INTAGLIO_DEFINITION generation basic_session::generate(std::span<const std::int32_t> ids,
                                                       const generate_options& options,
                                                       const std::function<void(std::string_view)>& each) {
  return finished(begin(ids, options), each);
}

INTAGLIO_DEFINITION std::vector<std::int32_t> basic_session::encode(std::string_view text,
                                                                    io::prompt_markup markup) const {
  return gpu::translated([&] { return io::encode_prompt(tokenizer(), text, markup); });
}

INTAGLIO_DEFINITION std::vector<std::int32_t> basic_session::encode(
    std::span<const io::chat_message> conversation) const {
  return gpu::translated([&] { return body().encode(conversation); });
}

INTAGLIO_DEFINITION logits_result basic_session::logits(std::span<const std::int32_t> ids, std::uint32_t chunk,
                                                        bool hidden) {
  return gpu::translated([&] {
    runtime::session_use use(body_);
    return runtime::feed_for_logits<logits_result>(*use, ids, use->checked_chunk(chunk), hidden,
                                                   [&] { append(*use, ids); });
  });
}

INTAGLIO_DEFINITION std::vector<float> basic_session::embed(std::span<const std::int32_t> ids,
                                                            const embed_options& options) {
  return gpu::translated([&] {
    runtime::session_use use(body_);
    if (ids.empty()) throw argument_error("text to embed", "at least one token", "none");
    use->check_ids(ids);
    use->check_room(ids.size());
    const std::uint32_t chunk = use->checked_chunk_of(options.chunk, ids.size());
    return runtime::embed_text(*use, ids, chunk, options);
  });
}

INTAGLIO_DEFINITION std::vector<float> basic_session::embed(std::string_view text, const embed_options& options) {
  return embed(gpu::translated([&] { return io::encode_for_embedding(tokenizer(), text); }), options);
}

INTAGLIO_DEFINITION bool basic_session::has_score() const { return body().score.has_value(); }

INTAGLIO_DEFINITION float basic_session::score(std::span<const std::int32_t> ids, std::uint32_t second) {
  return gpu::translated([&] {
    runtime::session_use use(body_);
    if (!use->score)
      throw argument_error("model", "one that scores two texts together, with a head for one number",
                           "one without (" + std::string(name(use->table->config->model_type)) + ")");
    if (second == 0 || second >= ids.size())
      throw argument_error("second text", "a beginning from 1 to " + std::to_string(ids.empty() ? 0 : ids.size() - 1),
                           std::to_string(second));
    use->check_ids(ids);
    use->check_room(ids.size());
    const std::uint32_t chunk = use->checked_chunk_of(0, ids.size());
    return (*use->score)(
        runtime::embed_text(*use, ids, chunk, {.pooling = pooling::first, .normalize = false}, second));
  });
}

INTAGLIO_DEFINITION float basic_session::score(std::string_view first, std::string_view second) {
  const io::text_pair both = gpu::translated([&] { return io::encode_pair(tokenizer(), first, second); });
  return score(both.ids, both.second);
}

INTAGLIO_DEFINITION std::vector<runtime::dispatch_time> basic_session::measure(std::uint32_t tokens) {
  return gpu::translated([&] {
    runtime::session_use use(body_);
    const bool decode = tokens == 1;
    if (tokens == 0 || (!decode && tokens > use->table->prefill.max_tokens))
      throw argument_error("tokens of the timed pass", "1 .. " + std::to_string(use->table->prefill.max_tokens),
                           std::to_string(tokens));
    use->check_room(std::size_t{use->size()} + tokens);
    const std::vector<std::uint32_t> ids(tokens, 0);
    return use->recovering([&] {
      return use->run->measure(decode ? runtime::pass_kind::decode : runtime::pass_kind::prefill, use->size(), ids);
    });
  });
}

INTAGLIO_DEFINITION runtime::session_body& basic_session::body() const {
  if (!body_) throw argument_error("session", "one with a model", "one that was moved from");
  return *body_;
}

INTAGLIO_DEFINITION void basic_session::append(runtime::session_body& to, std::span<const std::int32_t> ids) {
  to.require_head();
  if (ids.empty()) throw argument_error("prompt", "at least one token", "none");
  to.check_ids(ids);
  to.check_room(to.history.size() + ids.size());
  to.history.insert(to.history.end(), ids.begin(), ids.end());
}

INTAGLIO_DEFINITION void basic_session::set_prompt(runtime::session_body& to, std::span<const std::int32_t> ids) {
  to.require_head();
  if (ids.empty()) throw argument_error("prompt", "at least one token", "none");
  to.check_ids(ids);
  to.check_room(ids.size());
  to.replace(ids);
}

INTAGLIO_DEFINITION generation basic_session::finished(text_stream stream,
                                                       const std::function<void(std::string_view)>& each) {
  while (stream.next())
    if (each) each(stream.piece());
  return gpu::translated([&] { return stream.result(); });
}

}  // namespace intaglio
