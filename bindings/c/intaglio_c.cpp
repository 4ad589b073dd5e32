// SPDX-License-Identifier: MIT
// libintaglio: the C face over the library, with the planner that runs when a model is opened.
#define INTAGLIO_C_BUILDING
#define INTAGLIO_IMPLEMENTATION
#include <intaglio/c.h>
#include <intaglio/core/version.hpp>
#include <intaglio/families/file_types.hpp>
#include <intaglio/families/planned_family.hpp>
#include <intaglio/io/jinja.hpp>
#include <intaglio/platform/path_text.hpp>
#include <intaglio/runtime/basic_session.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

using namespace intaglio;

namespace {

/// The plans of one file, for CPU drivers and for any GPU.
struct plans {
  plan::planned cpu, portable;
  static plans of(const io::checkpoint& file, std::uint32_t context) {
    const families::weight_types types = families::types_of(file).types;
    const std::string name = platform::path_of(file.path()).lexically_normal().stem().string();
    const auto by = [&](const plan::profile& target) {
      return families::planned_of(file.config(), types, name, target, context);
    };
    return {by(plan::profiles::cpu), by(plan::profiles::portable)};
  }
  const plan::table& table(const gpu::device& on) const {
    const std::array<const plan::table*, 2> both{&cpu.table(), &portable.table()};
    return runtime::choose_table(both, runtime::class_of(on));
  }
};

/// With the context that was asked for, or one that the device has memory for.
plans plans_for(const io::checkpoint& file, std::uint32_t wanted, const gpu::device& on) {
  constexpr std::uint32_t most = 16'384, least = 512;
  const std::uint32_t own = file.config().max_position_embeddings;
  if (wanted > own)
    throw argument_error("context", "at most " + std::to_string(own) + " (the model's)", std::to_string(wanted));
  std::uint32_t context = wanted != 0 ? wanted : (std::min)(own, most);
  const std::uint64_t available = runtime::available_memory(on);
  for (;;) {
    plans out = plans::of(file, context);
    if (wanted != 0 || context / 2 < least || runtime::needed_memory(out.table(on)).total() <= available) return out;
    context /= 2;
  }
}

thread_local std::array<char, 512> last_error{};

int failed(int status, std::string_view what) noexcept {
  const std::size_t length = (std::min)(what.size(), last_error.size() - 1);
  std::memcpy(last_error.data(), what.data(), length);
  last_error[length] = '\0';
  return status;
}

/// Runs a call; what it throws becomes a status and a sentence.
template <class Call>
int guarded(Call&& call) noexcept {
  try {
    return call();
  } catch (const device_lost& problem) {
    return failed(INTAGLIO_DEVICE_LOST, problem.what());
  } catch (const out_of_memory& problem) {
    return failed(INTAGLIO_OUT_OF_MEMORY, problem.what());
  } catch (const device_error& problem) {
    return failed(INTAGLIO_DEVICE_ERROR, problem.what());
  } catch (const file_error& problem) {
    return failed(INTAGLIO_BAD_FILE, problem.what());
  } catch (const argument_error& problem) {
    return failed(INTAGLIO_BAD_ARGUMENT, problem.what());
  } catch (const std::bad_alloc&) {
    return failed(INTAGLIO_OUT_OF_MEMORY, "the host has no memory left");
  } catch (const std::exception& problem) { return failed(INTAGLIO_INTERNAL, problem.what()); } catch (...) {
    return failed(INTAGLIO_INTERNAL, "an exception of no known kind");
  }
}

template <class Pointer>
void expect(Pointer pointer, const char* name) {
  if (pointer == nullptr) throw argument_error(name, "a pointer", "NULL");
}

/// As many bytes of a caller's struct as both know; the rest has its defaults.
template <class Options>
Options known(const Options* from, void (*init)(Options*)) {
  Options out;
  init(&out);
  if (from == nullptr) return out;
  if (from->size < sizeof(from->size) || from->size > 4096)
    throw argument_error("size", "the options' own, as the init function sets it", std::to_string(from->size));
  std::memcpy(&out, from, (std::min)(from->size, sizeof out));
  out.size = sizeof out;
  return out;
}

generate_options options_of(const intaglio_generate_options* given) {
  const intaglio_generate_options from = known(given, &intaglio_generate_options_init);
  generate_options out;
  out.temperature = from.temperature;
  if (from.top_k != 0) out.top_k = from.top_k;
  out.top_p = from.top_p;
  out.min_p = from.min_p;
  out.repeat_penalty = from.repeat_penalty;
  if (from.repeat_last_n < -1) throw argument_error("repeat_last_n", "-1 or more", std::to_string(from.repeat_last_n));
  if (from.repeat_last_n >= 0) out.repeat_last_n = static_cast<std::uint32_t>(from.repeat_last_n);
  out.seed = std::uint64_t{from.seed_high} << 32 | from.seed_low;
  if (from.max_tokens != 0) out.max_tokens = from.max_tokens;
  if (from.stop_count != 0) expect(from.stop, "stop");
  if (from.stop_count > 16) throw argument_error("stop_count", "at most 16", std::to_string(from.stop_count));
  for (std::size_t i = 0; i < from.stop_count; ++i) {
    expect(from.stop[i], "stop");
    out.stop.emplace_back(from.stop[i]);
  }
  return out;
}

void write_result(const generation& from, intaglio_result& to) {
  intaglio_result out{};
  out.finish = static_cast<int>(from.finish);
  out.prompt_tokens = from.timings.prompt_tokens;
  out.cached_tokens = from.timings.cached_tokens;
  out.generated_tokens = from.timings.generated_tokens;
  out.prompt_ms = from.timings.prompt_ms;
  out.decode_ms = from.timings.decode_ms;
  const std::size_t size = (std::min)(to.size, sizeof out);
  if (size < sizeof out.size) throw argument_error("result.size", "the struct's own", std::to_string(to.size));
  out.size = to.size;
  std::memcpy(&to, &out, size);
}

/// Copies where there is room and says how much is needed.
template <class Item>
int hand_over(std::span<const Item> from, Item* to, std::size_t& count, const char* what) {
  const std::size_t room = count;
  count = from.size();
  if (room < from.size())
    return failed(INTAGLIO_NO_ROOM, std::string(what) + ": expected room for " + std::to_string(from.size()) +
                                        ", found " + std::to_string(room));
  if (!from.empty()) {
    expect(to, what);
    std::copy(from.begin(), from.end(), to);
  }
  return INTAGLIO_OK;
}

static_assert(sizeof(int) == sizeof(std::int32_t));
static_assert(INTAGLIO_FINISH_STOP == static_cast<int>(finish_reason::stop) &&
              INTAGLIO_FINISH_LENGTH == static_cast<int>(finish_reason::length));
std::span<const std::int32_t> tokens_of(const int* ids, std::size_t count) {
  if (count != 0) expect(ids, "ids");
  return {ids, count};
}

}  // namespace

struct intaglio_model {
  std::unique_ptr<const plans> plan;  // the session points into it
  gpu::device device;
  basic_session session;
};
struct intaglio_stream {
  text_stream text;
  std::string piece;
};

namespace {

basic_session& session_of(intaglio_model* model) {
  expect(model, "model");
  return model->session;
}
const decoder_config& config_of(const intaglio_model& model) { return *model.session.table().config; }

}  // namespace

const char* intaglio_version_text(void) {
  static const std::string text =
      std::to_string(version_major) + "." + std::to_string(version_minor) + "." + std::to_string(version_patch);
  return text.c_str();
}
unsigned intaglio_c_version(void) { return INTAGLIO_C_VERSION_MAJOR * 1000 + INTAGLIO_C_VERSION_MINOR; }
const char* intaglio_last_error(void) { return last_error.data(); }

void intaglio_model_options_init(intaglio_model_options* options) {
  if (options != nullptr) *options = {sizeof *options, nullptr, 1, 0};
}
void intaglio_generate_options_init(intaglio_generate_options* options) {
  if (options != nullptr) *options = {sizeof *options, 0, 0, 1, 0, 1, -1, 0, 0, 0, nullptr, 0};
}

int intaglio_model_open(const char* path, const intaglio_model_options* options, intaglio_model** model) {
  return guarded([&] {
    expect(model, "model");
    *model = nullptr;
    expect(path, "path");
    const intaglio_model_options wanted = known(options, &intaglio_model_options_init);
    const io::checkpoint file = io::checkpoint::open(platform::path_of(path));
    gpu::device_options on;
    if (wanted.device != nullptr) on.selector = wanted.device;
    on.allow_cpu = wanted.allow_cpu != 0;
    gpu::device device(on);
    auto made = std::make_unique<const plans>(plans_for(file, wanted.context, device));
    const std::array<const plan::table*, 2> tables{&made->cpu.table(), &made->portable.table()};
    session_options of_session;
    of_session.templates = io::jinja_renderer();
    basic_session session(device, tables, file, of_session);
    *model = new intaglio_model{std::move(made), std::move(device), std::move(session)};
    return int{INTAGLIO_OK};
  });
}
void intaglio_model_close(intaglio_model* model) { delete model; }

unsigned intaglio_model_context(const intaglio_model* model) { return model != nullptr ? model->session.context() : 0; }
unsigned intaglio_model_position(const intaglio_model* model) {
  return model != nullptr ? model->session.position() : 0;
}
unsigned intaglio_model_vocab_size(const intaglio_model* model) {
  return model != nullptr ? config_of(*model).vocab_size : 0;
}
unsigned intaglio_model_hidden_size(const intaglio_model* model) {
  return model != nullptr ? config_of(*model).hidden_size : 0;
}
const char* intaglio_model_device(const intaglio_model* model) {
  return model != nullptr ? model->device.label().c_str() : nullptr;
}

int intaglio_tokenize(intaglio_model* model, const char* text, size_t length, int special, int* ids, size_t* count) {
  return guarded([&] {
    expect(count, "count");
    if (length != 0) expect(text, "text");
    const auto found = session_of(model).encode(std::string_view(text, length),
                                                special != 0 ? io::prompt_markup::read : io::prompt_markup::plain);
    return hand_over(std::span<const std::int32_t>(found), ids, *count, "ids");
  });
}
int intaglio_tokenize_chat(intaglio_model* model, const intaglio_message* messages, size_t message_count, int* ids,
                           size_t* count) {
  return guarded([&] {
    expect(count, "count");
    if (message_count != 0) expect(messages, "messages");
    std::vector<io::chat_message> conversation;
    for (std::size_t i = 0; i < message_count; ++i) {
      expect(messages[i].role, "role");
      expect(messages[i].content, "content");
      conversation.push_back({messages[i].role, messages[i].content});
    }
    const auto found = session_of(model).encode(std::span<const io::chat_message>(conversation));
    return hand_over(std::span<const std::int32_t>(found), ids, *count, "ids");
  });
}
int intaglio_detokenize(intaglio_model* model, const int* ids, size_t count, char* text, size_t* length) {
  return guarded([&] {
    expect(length, "length");
    const std::string found = session_of(model).tokenizer().decode(tokens_of(ids, count));
    return hand_over(std::span<const char>(found), text, *length, "text");
  });
}

int intaglio_generate(intaglio_model* model, const int* ids, size_t count, const intaglio_generate_options* options,
                      intaglio_piece_callback callback, void* user, intaglio_result* result) {
  return guarded([&] {
    text_stream text = session_of(model).begin(tokens_of(ids, count), options_of(options));
    while (text.next())
      if (callback != nullptr && callback(text.piece().data(), text.piece().size(), user) != 0) {
        text.cancel();
        break;
      }
    if (result != nullptr) write_result(text.result(), *result);
    return int{INTAGLIO_OK};
  });
}
int intaglio_stream_open(intaglio_model* model, const int* ids, size_t count, const intaglio_generate_options* options,
                         intaglio_stream** stream) {
  return guarded([&] {
    expect(stream, "stream");
    *stream = nullptr;
    *stream = new intaglio_stream{session_of(model).begin(tokens_of(ids, count), options_of(options)), {}};
    return int{INTAGLIO_OK};
  });
}
int intaglio_stream_next(intaglio_stream* stream, const char** piece, size_t* length) {
  return guarded([&] {
    expect(stream, "stream");
    expect(piece, "piece");
    expect(length, "length");
    const bool more = stream->text.next();
    stream->piece = more ? std::string(stream->text.piece()) : std::string();
    *piece = stream->piece.c_str();
    *length = stream->piece.size();
    return int{more ? INTAGLIO_OK : INTAGLIO_END};
  });
}
int intaglio_stream_result(const intaglio_stream* stream, intaglio_result* result) {
  return guarded([&] {
    expect(stream, "stream");
    expect(result, "result");
    write_result(stream->text.result(), *result);
    return int{INTAGLIO_OK};
  });
}
void intaglio_stream_close(intaglio_stream* stream) { delete stream; }

int intaglio_logits(intaglio_model* model, const int* ids, size_t count, float* logits, size_t room) {
  return guarded([&] {
    basic_session& session = session_of(model);
    const std::size_t width = config_of(*model).vocab_size;
    if (count > session.context()) throw argument_error("count", "at most the context", std::to_string(count));
    if (room < count * width)
      return failed(INTAGLIO_NO_ROOM, "logits: expected room for " + std::to_string(count * width) + " floats, found " +
                                          std::to_string(room));
    const logits_result found = session.logits(tokens_of(ids, count));
    expect(logits, "logits");
    std::copy(found.logits.begin(), found.logits.end(), logits);
    return int{INTAGLIO_OK};
  });
}
int intaglio_embed(intaglio_model* model, const char* text, size_t length, float* vector, size_t room) {
  return guarded([&] {
    if (length != 0) expect(text, "text");
    const std::vector<float> found = session_of(model).embed(std::string_view(text, length));
    std::size_t count = room;
    return hand_over(std::span<const float>(found), vector, count, "vector");
  });
}
int intaglio_reset(intaglio_model* model) {
  return guarded([&] {
    session_of(model).reset();
    return int{INTAGLIO_OK};
  });
}
