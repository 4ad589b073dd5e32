// SPDX-License-Identifier: MIT
#include "model_file.hpp"

#include "console.hpp"
#include "embedded_model.hpp"
#include "model_arrival.hpp"
#include "model_cache.hpp"

#include <intaglio/io/adapter_set.hpp>
#include <intaglio/io/checkpoint.hpp>
#include <intaglio/io/lora_adapter.hpp>
#include <intaglio/platform/console.hpp>
#include <intaglio/platform/path_text.hpp>

#include <array>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <memory>
#include <span>
#include <system_error>

namespace intaglio::tool {
namespace {

io::checkpoint_options options_of(const model_options& from) {
  io::checkpoint_options out;
  for (const auto layout : {io::i2s_layout::block128, io::i2s_layout::block64, io::i2s_layout::rows4})
    if (name(layout) == from.i2s_layout) out.layout = layout;
  return out;
}

io::checkpoint with_adapters(io::checkpoint of, const model_options& options) {
  for (const std::string& each : options.lora) {
    const io::lora_choice choice(each);
    io::lora_adapter(choice.file).merge_into(of, choice.scale);
  }
  if (options.beside != nullptr) options.beside->hold_in(of);
  return of;
}

io::checkpoint with_warnings(io::checkpoint of) {
  for (const auto& line : of.warnings()) warn(line);
  return of;
}

/// Opens a model that is being downloaded. Nothing where the whole file is needed first.
std::optional<io::checkpoint> open_arriving(const model_options& options) {
  const auto arrival = std::make_shared<const model_arrival>(options.path);
  const std::optional<std::string> part = arrival->begin();
  std::error_code gone;  // it is whole by now, and has its name
  if (!part || !std::filesystem::exists(platform::path_of(*part), gone)) return std::nullopt;
  io::mapped_file file(platform::path_of(*part), arrival);
  std::array<char, 4> magic{};
  file.read(0, std::as_writable_bytes(std::span(magic)));
  if (std::string_view(magic.data(), magic.size()) != "GGUF") {
    arrival->finish();
    return std::nullopt;
  }
  return io::checkpoint::open_gguf(std::move(file), options_of(options));
}

}  // namespace

io::checkpoint open_model(const model_options& options) {
  return with_warnings(with_adapters(
      options.embedded() ? io::checkpoint::open_gguf(embedded_model(), options.shown(), options_of(options))
                         : io::checkpoint::open(platform::path_of(local_model(options.path)), options_of(options)),
      options));
}

void load_model(const model_options& options, const std::function<void(const io::checkpoint&)>& load) {
  if (is_url(options.path) && options.lora.empty() &&
      options.beside == nullptr) {  // adapters are checked against the whole file
    try {
      if (std::optional<io::checkpoint> arriving = open_arriving(options))
        return load(with_warnings(std::move(*arriving)));
    } catch (const file_replaced&) {  // what it has now is fetched whole
    }
  }
  load(open_model(options));
}

bool model_arrives() { return model_arrival::under_way(); }

io::tokenizer open_tokenizer(const io::checkpoint& model) {
  if (!model.vocabulary())
    throw file_error(model.path(), std::nullopt, "the model has no tokenizer",
                     "tokenizer.json or tokenizer.model beside the weights", "none");
  io::tokenizer out(*model.vocabulary(), model.config().vocab_size);
  for (const auto& line : out.warnings()) warn(in_file(model.vocabulary()->source, line));
  return out;
}

std::vector<std::int32_t> parse_ids(const std::string& list) {
  std::vector<std::int32_t> out;
  const char *at = list.data(), *const end = at + list.size();
  const auto skip_blanks = [&] {
    while (at != end && (*at == ' ' || *at == '\t' || *at == '\n' || *at == '\r')) ++at;
  };
  skip_blanks();
  while (at != end) {
    std::int32_t id = 0;
    const auto [after, error] = std::from_chars(at, end, id);
    if (error != std::errc{} || id < 0)
      throw argument_error("--ids", "token ids of 0 or more separated by commas",
                           "'" + printable(std::string_view(at, end), 40) + "' at entry " + std::to_string(out.size()));
    out.push_back(id);
    at = after;
    skip_blanks();
    if (at == end) break;
    if (*at != ',')
      throw argument_error("--ids", "a comma after entry " + std::to_string(out.size() - 1),
                           "'" + printable(std::string_view(at, end), 40) + "'");
    ++at;
    skip_blanks();
    if (at == end) throw argument_error("--ids", "a token id after the last comma", "nothing");
  }
  return out;
}

std::string read_text(const std::string& path) {
  constexpr std::size_t most = std::size_t{1} << 30;
  const bool from_stdin = path == "-";
  const platform::file_number file = from_stdin
                                         ? platform::standard_input
                                         : platform::open_file(platform::path_of(path), platform::file_access::stream);
  if (file < 0) throw file_error(path, std::nullopt, "cannot open: " + platform::system_text(errno));
  std::string out;
  std::array<char, 1 << 16> piece;
  int failure = 0;
  for (;;) {
    const auto room = std::as_writable_bytes(std::span(piece));
    const std::int64_t count = from_stdin ? platform::read_input(room) : platform::read_some(file, room);
    if (count < 0) failure = errno;
    if (count <= 0 || out.size() > most) break;
    out.append(piece.data(), static_cast<std::size_t>(count));
  }
  if (!from_stdin) platform::close_file(file);
  if (failure != 0) throw file_error(path, out.size(), "cannot read: " + platform::system_text(failure));
  if (out.size() > most) throw file_error(path, std::nullopt, "text", "at most 1 GiB", "more");
  return out;
}

void naming_file(const std::string& file, const std::function<void()>& work) {
  try {
    work();
  } catch (const argument_error& error) {
    for (const std::string_view input : {"prompt", "token", "ids", "text", "model"})  // "token id 3" too
      if (error.argument() == input || error.argument().starts_with(std::string(input) + " "))
        throw input_error(printable(file, 240) + ": " + error.what());
    throw;
  }
}

}  // namespace intaglio::tool
