// SPDX-License-Identifier: MIT
// intaglio-serve: a model behind OpenAI's API and a web page. Options come by flags, environment and one file.
#include <CLI/CLI.hpp>

#include <intaglio/core/version.hpp>
#include <intaglio/kernels/cache_layout.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>

#include <intaglio/platform/console.hpp>
#include <intaglio/platform/path_text.hpp>

#include "../tool/download.hpp"
#include "api.hpp"
#include "batch_engine.hpp"
#include "http_server.hpp"
#include "log.hpp"
#include "model_set.hpp"
#include "pages.hpp"
#include "rank_job.hpp"

namespace serve = intaglio::serve;

namespace {

bool is_loopback(const std::string& address) { return address.starts_with("127.") || address == "::1"; }

/// Where a browser on this machine finds the server.
std::string url_of(const serve::listen_options& listen, std::uint16_t port) {
  const bool any = listen.address == "0.0.0.0" || listen.address == "::";
  const std::string host = any                                             ? "localhost"
                           : listen.address.find(':') != std::string::npos ? '[' + listen.address + ']'
                                                                           : listen.address;
  return (listen.certificate.empty() ? "http://" : "https://") + host + ':' + std::to_string(port) + '/';
}

std::string version_text() {
  return "intaglio-serve " + std::to_string(intaglio::version_major) + '.' + std::to_string(intaglio::version_minor) +
         '.' + std::to_string(intaglio::version_patch);
}

/// The first line of a file that only its owner should read.
std::string read_key(const std::string& path) {
  std::ifstream file(intaglio::platform::path_of(path));
  std::string line;
  std::getline(file, line);
  while (!line.empty() && std::string_view(" \t\r").find(line.back()) != std::string_view::npos) line.pop_back();
  if (line.empty()) throw std::runtime_error(path + ": expected a key on the first line, found none");
  return line;
}

/// Refuses unknown environment variables: a misspelt name would silently leave out a setting, such as the key.
void refuse_unknown_environment(const CLI::App& app) {
  for (char** each = ::environ; *each != nullptr; ++each) {
    const std::string_view line = *each;
    const std::string name(line.substr(0, line.find('=')));
    if (!name.starts_with("INTAGLIO_SERVE_")) continue;
    const auto options = app.get_options();
    if (std::none_of(options.begin(), options.end(), [&](const auto* option) { return option->get_envname() == name; }))
      throw std::runtime_error(
          name + ": expected the name of an option in the environment (--help lists them), found another");
  }
}

struct settings {
  serve::engine_options engine;
  serve::listen_options listen;
  serve::api_options api;
  std::string api_key_file, index, models;
  std::uint64_t memory = 0;
  unsigned idle_seconds = 60, read_seconds = 30, drain_seconds = 10, mpi_seconds = 120;
  bool allow_without_key = false, quiet = false, mpi = false;
};

/// What is wrong with a number of slots; empty: nothing.
std::string slots_problem(const std::string& text) {
  std::uint32_t count = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), count);
  const bool good = problem == std::errc{} && end == text.data() + text.size() &&
                    (count == 0 || (count >= 2 && count <= 256 && (count <= 8 || count % 16 == 0)));
  return good ? "" : "expected 0, 2 .. 8, or a multiple of 16 of at most 256, found '" + text + "'";
}
std::vector<std::string> cache_types() {
  std::vector<std::string> out;
  for (const intaglio::kernels::cache_codec& each : intaglio::kernels::cache_codecs) out.emplace_back(each.name);
  return out;
}

/// Adds options that the environment sets too.
struct option_adder {
  CLI::App& app;
  const char* group;
  CLI::Option* operator()(const char* name, auto& value, const char* help) const {
    std::string variable = "INTAGLIO_SERVE_";
    for (const char* at = std::strstr(name, "--") + 2; *at != '\0'; ++at)
      variable += *at == '-' ? '_' : static_cast<char>(*at - (*at >= 'a' && *at <= 'z' ? 'a' - 'A' : 0));
    CLI::Option* const made = app.add_option(name, value, help)->envname(variable)->group(group)->capture_default_str();
    return made->get_expected_max() > 1 ? made : made->take_last();
  }
};

void add_model_options(CLI::App& app, settings& to) {
  const option_adder add{app, "Model"};
  add("-m,--model", to.engine.model,
      "GGUF file, Hugging Face folder, .pth folder, packed file or address of a GGUF file (https://...); none: the "
      "story teller inside");
  add("--models", to.models,
      "Folder of GGUF files and of Hugging Face folders: a request's model says which, and it is loaded for it")
      ->type_name("DIR");
  add("--memory", to.memory,
      "Bytes that the models of --models take together at most (8G, 500M); the least recently used is unloaded for "
      "another; 0: seven eighths of what the device has free at first")
      ->transform(CLI::AsSizeValue(true))
      ->type_name("BYTES");
  add("--lora", to.engine.lora,
      "LoRA adapter, a GGUF file that is merged into the GGUF model as it is loaded, scaled by SCALE; may be repeated")
      ->type_name("FILE[:SCALE]");
  add("--lora-by-request", to.engine.lora_by_request,
      "LoRA adapter, a GGUF file that stays beside the GGUF model: requests choose it by its name as their model, or "
      "by "
      "its number, 0 for the first one, in \"lora\"; without NAME it is the file's stem; may be repeated")
      ->type_name("[NAME=]FILE");
  add("--model-name", to.engine.name, "Name that /v1/models gives; none: the engraved model's");
  add("--model-alias", to.engine.aliases, "Other names that requests may ask for");
  app.add_flag("--any-model-name", to.engine.any_name,
               "Where there is one model, take requests for any other name as requests for it")
      ->envname("INTAGLIO_SERVE_ANY_MODEL_NAME")
      ->group("Model");
}

void add_engine_options(CLI::App& app, settings& to) {
  const option_adder add{app, "Model"};
  add("--context", to.engine.context, "Positions of the context; 0: the model's, at most 16,384")->type_name("N");
  add("--cache-type", to.engine.cache_type,
      "How the KV cache holds keys and values: f16 (by default; on CPU drivers f32), q8_0 or q4_0")
      ->check(CLI::IsMember(cache_types()));
  add("--slots", to.engine.slot_count,
      "Generations at once; others wait. 0: 16, or those that --batch-products f16 takes")
      ->type_name("N")
      ->check(slots_problem);
  add("--codec", to.engine.codec, "Compute the matrices in this codec where the file's is another")->type_name("C");
  add("--i2s-layout", to.engine.i2s_layout, "How an I2_S file is laid out")
      ->check(CLI::IsMember({"block128", "block64", "rows4"}));
  add("--index", to.index,
      "Folder with the index of the model's features, for /v1/infer and /v1/trace; made there where there is none");
  add("--slot-save-path", to.api.slot_folder, "Folder that POST /slots/ID?action=save writes to and restore reads from")
      ->check(CLI::ExistingDirectory)
      ->type_name("DIR");
  add("--chat-template", to.engine.chat_template,
      "Chat template in place of the model's: a file with one in Jinja, chatml, or a family (bitnet, llama3, "
      "mistral-v1, mistral-v0.1, mistral-v0.2, gemma2, gemma3)")
      ->type_name("FILE|NAME");
  add("--device", to.engine.device, "Index, UUID or part of the name of the device");
  add("--batch-products", to.engine.batch_products,
      "How generations that run together multiply on GPUs: exact has the bits of one generation alone; f16 uses f16 "
      "matrices, which is faster for several and a little slower for one")
      ->check(CLI::IsMember({"exact", "f16"}));
  add("--prompt-lookup", to.engine.prompt_lookup,
      "Tokens that are drafted at once where a text repeats itself, while there are vacant slots: the same text, "
      "sooner if drafts are right; 0: none")
      ->check(CLI::Range(0, 255))
      ->type_name("N");
  CLI::Option* const draft =
      add("--draft", to.engine.draft,
          "Smaller model with the same tokens, as --model takes one: it drafts the next tokens while there are vacant "
          "slots: the same text, sooner if drafts are right")
          ->type_name("FILE");
  add("--draft-max", to.engine.draft_max, "Tokens that --draft drafts at most for a pass of one generation")
      ->check(CLI::Range(1, 255))
      ->type_name("N")
      ->needs(draft);
  add("--gpu-idle", to.engine.gpu_idle,
      "Share of the time to leave the device idle: slower, cooler, and others get their turn; the same texts")
      ->check(CLI::Range(0.0, 0.95));
}

/// Where a model is computed that is cut between layers.
void add_cut_options(CLI::App& app, settings& to) {
  const option_adder add{app, "Model"};
  add("--devices", to.engine.devices,
      "Cut the model over several devices: indices, UUIDs or parts of their names, with commas, in the order of the "
      "layers")
      ->type_name("LIST")
      ->delimiter(',')
      ->excludes("--device");
  app.add_flag("--mpi", to.mpi,
               "Cut the model over the ranks of MPI, each with its own device and the same file: mpirun -n 2 "
               "intaglio-serve --mpi; rank 0 serves; for hosts that trust each other")
      ->envname("INTAGLIO_SERVE_MPI")
      ->group("Model");
  add("--mpi-seconds", to.mpi_seconds,
      "Seconds that a rank may take to answer or to end; it may take five times as many to load")
      ->check(CLI::Range(1, 3600))
      ->type_name("N")
      ->needs("--mpi");
  add("--cut", to.engine.cut,
      "Layers in front of each cut of --devices or --mpi, with commas; by default by the devices' memory and, on "
      "one host, their rates")
      ->type_name("LIST")
      ->delimiter(',');
}

void add_network_options(CLI::App& app, settings& to) {
  option_adder add{app, "Network"};
  add("--host", to.listen.address, "Address to listen on, or localhost");
  add("--port", to.listen.port, "Port to listen on; 0: any that is free, which the log names");
  add("--tls-certificate", to.listen.certificate, "PEM file with the certificate chain");
  add("--tls-key", to.listen.private_key, "PEM file with the private key");
  add.group = "Access";
  add("--api-key", to.api.access.api_key,
      "Key that every path but /health and the page's files asks for (others see arguments: better --api-key-file or "
      "the environment)");
  add("--api-key-file", to.api_key_file, "File whose first line is the key");
  add("--allow-host", to.api.access.hosts,
      "Names that clients may call the server by, besides localhost and addresses");
  add("--cors-origin", to.api.access.origins, "Origins whose pages may ask, such as https://chat.example; '*': any");
  app.add_flag("--allow-without-key", to.allow_without_key, "Listen to other machines without a key")
      ->envname("INTAGLIO_SERVE_ALLOW_WITHOUT_KEY")
      ->group("Access");
}

void add_limit_options(CLI::App& app, settings& to) {
  const option_adder add{app, "Limits"};
  serve::limits& limit = to.api.limit;
  add("--max-body-bytes", limit.body_bytes, "Bytes of a request's body")->check(CLI::Range(1024.0, 1e9));
  add("--max-connections", limit.connections, "Connections at once; the one that waits longest is closed for the next")
      ->check(CLI::Range(1, 60'000));
  add("--max-connections-per-address", limit.connections_per_address,
      "Connections at once of one address (of IPv6: of one /64); the one that waits longest is closed for the next")
      ->check(CLI::Range(1, 60'000));
  add("--max-n", limit.n, "Choices of a request (n)")->check(CLI::Range(1, 128));
  add("--max-prompt-tokens", limit.prompt_tokens, "Tokens of a prompt; 0: what the context has room for");
  add("--max-completion-tokens", limit.completion_tokens, "Tokens of an answer; 0: what the context has room for");
  add("--queue", limit.queue, "Generations that wait; more are answered with 429")->check(CLI::Range(1, 100'000));
  add("--idle-seconds", to.idle_seconds, "Seconds that a connection may stay open without a request")
      ->check(CLI::Range(1, 86'400));
  add("--read-seconds", to.read_seconds, "Seconds that a client may take to read a piece of its answer")
      ->check(CLI::Range(1, 3600));
  add("--drain-seconds", to.drain_seconds, "Seconds that running requests get when the server is asked to stop")
      ->check(CLI::Range(0, 3600));
  app.add_flag("--ignore-unknown", limit.ignore_unknown,
               "Pass over fields and query names of requests that are not known, instead of refusing them by name")
      ->envname("INTAGLIO_SERVE_IGNORE_UNKNOWN")
      ->group("Limits");
  app.add_flag("--quiet", to.quiet, "Log warnings and errors alone")->envname("INTAGLIO_SERVE_QUIET")->group("Other");
}

void add_options(CLI::App& app, settings& to) {
  app.set_version_flag("--version", version_text());
  app.allow_config_extras(CLI::config_extras_mode::error);
  app.set_config("--config", "",
                 "File of options: NAME = VALUE lines, names as the flags without dashes; flags and environment win")
      ->envname("INTAGLIO_SERVE_CONFIG");
  add_model_options(app, to);
  add_engine_options(app, to);
  add_cut_options(app, to);
  add_network_options(app, to);
  add_limit_options(app, to);
}

/// The environment in front of the flags, so that flags win over it and it over the file; last to first, as the parser
/// takes them.
std::vector<std::string> with_environment(const CLI::App& app, const std::vector<std::string>& flags) {
  std::vector<std::string> out;
  for (const CLI::Option* each : app.get_options())
    if (const char* const value = each->get_envname().empty() ? nullptr : std::getenv(each->get_envname().c_str()))
      out.push_back(each->get_name() + '=' + value);
  out.insert(out.end(), flags.begin(), flags.end());
  return {out.rbegin(), out.rend()};
}

/// A family's name or chatml as it is, else what the file of that name has.
std::string template_of(const std::string& wanted) {
  if (wanted.empty() || serve::is_template_name(wanted)) return wanted;
  std::ifstream in(intaglio::platform::path_of(wanted), std::ios::binary);
  std::string out{std::istreambuf_iterator<char>(in), {}};
  if (!in && out.empty())
    throw std::runtime_error("--chat-template: expected a file, chatml or a family, found '" + wanted + "'");
  if (out.size() > std::size_t{1} << 20)
    throw std::runtime_error("--chat-template: expected at most 1 MiB, found " + std::to_string(out.size()) + " bytes");
  return out;
}

void check_models(const settings& of) {
  if (of.models.empty()) {
    if (of.memory != 0) throw std::runtime_error("--memory: expected --models beside it, found none");
    return;
  }
  const auto alone = [](const char* name, bool is_there) {
    if (is_there) throw std::runtime_error(std::string(name) + ": expected nothing beside --models, found a value");
  };
  alone("--model", !of.engine.model.empty());
  alone("--index", !of.index.empty());
  alone("--lora", !of.engine.lora.empty());
  alone("--lora-by-request", !of.engine.lora_by_request.empty());
  alone("--draft", !of.engine.draft.empty());
  alone("--chat-template", !of.engine.chat_template.empty());
  alone("--model-name", !of.engine.name.empty());
  alone("--model-alias", !of.engine.aliases.empty());
}

void check_cut(const settings& of) {
  if (!of.engine.cut.empty() && of.engine.devices.empty() && !of.mpi)
    throw std::runtime_error("--cut: expected --devices or --mpi beside it, found neither");
  if (!of.mpi && of.engine.devices.empty()) return;
  const char* const by = of.mpi ? "--mpi" : "--devices";
  const auto alone = [&](const char* name, bool is_there) {
    if (is_there) throw std::runtime_error(std::string(name) + ": expected nothing beside " + by + ", found a value");
  };
  alone("--slot-save-path", !of.api.slot_folder.empty());
  alone("--lora-by-request", !of.engine.lora_by_request.empty());
  if (!of.mpi) return;
  alone("--devices", !of.engine.devices.empty());
  alone("--models", !of.models.empty());
  alone("--draft", !of.engine.draft.empty());
  alone("--prompt-lookup", of.engine.prompt_lookup != 0);
  if (intaglio::tool::is_url(of.engine.model))
    throw std::runtime_error("--model: expected a file that each rank has, beside --mpi, found an address");
}

void check_drafts(const settings& of) {
  if (of.engine.batch_products != "f16") return;
  for (const auto& [name, is_there] :
       {std::pair("--draft", !of.engine.draft.empty()), std::pair("--prompt-lookup", of.engine.prompt_lookup != 0)})
    if (is_there)
      throw std::runtime_error("--batch-products: expected exact beside " + std::string(name) +
                               ", whose texts are those without drafts, found f16");
}

// A script whose variable is not set gives one.
void refuse_empty_texts(const CLI::App& app) {
  for (const char* each : {"--model", "--models", "--draft", "--index", "--api-key", "--api-key-file"})
    if (app.count(each) != 0 && app.get_option(each)->as<std::string>().empty())
      throw std::runtime_error(std::string(each) + ": expected a text, found an empty one");
}

void check(settings& of, const CLI::App& app) {
  if (!of.engine.lora.empty() && !of.index.empty())
    throw std::runtime_error("--index: expected nothing beside --lora, whose changes it does not have, found a folder");
  refuse_unknown_environment(app);
  refuse_empty_texts(app);
  check_models(of);
  check_cut(of);
  check_drafts(of);
  if (of.listen.address == "localhost") of.listen.address = "127.0.0.1";
  if (app.count("--api-key") != 0 && !of.api_key_file.empty())
    throw std::runtime_error("--api-key, --api-key-file: expected one of them, found both");
  if (!of.api_key_file.empty()) of.api.access.api_key = read_key(of.api_key_file);
  if (of.listen.certificate.empty() != of.listen.private_key.empty())
    throw std::runtime_error("--tls-certificate, --tls-key: expected both or none, found one");
  if (!of.listen.certificate.empty() && !serve::has_tls())
    throw std::runtime_error(
        "--tls-certificate: this build has no TLS: build it where OpenSSL's headers are (libssl-dev)");
  if (!serve::is_address(of.listen.address))
    throw std::runtime_error("--host: expected an IP address or localhost, found '" + of.listen.address + "'");
  if (!is_loopback(of.listen.address) && of.api.access.api_key.empty() && !of.allow_without_key)
    throw std::runtime_error(
        "--host " + of.listen.address +
        ": others can reach this address: expected --api-key-file, or --allow-without-key if that is meant");
  of.engine.chat_template = template_of(of.engine.chat_template);
  of.api.limit.idle = std::chrono::seconds(of.idle_seconds);
  of.api.limit.write = std::chrono::seconds(of.read_seconds);
  of.listen.drain = std::chrono::seconds(of.drain_seconds);
  of.engine.queue = of.api.limit.queue;
  of.api.pages = serve::page_files();
}

serve::engine_options options_of(const settings& wanted, const std::string& path) {
  serve::engine_options out = wanted.engine;
  out.model = path;
  return out;
}

serve::model_set models_of(const settings& wanted, serve::metrics& counts) {
  if (wanted.models.empty()) return serve::model_set(serve::make_batch_engine(wanted.engine, counts));
  const serve::model_set::engine_maker make = [&](const serve::model_set::file& of, auto make_room) {
    serve::engine_options options = options_of(wanted, of.path);
    options.name = of.name;
    options.make_room = std::move(make_room);
    options.load_failed = nullptr;  // the others go on
    options.log = [&](const std::string& event, const std::string& text) {
      wanted.engine.log(event, of.name + ": " + text);
    };
    return serve::make_batch_engine(options, counts);
  };
  return {wanted.models, wanted.memory, wanted.engine.any_name, wanted.engine.queue, make};
}

void set_logs(settings& of) {
  of.engine.log = [](const std::string& event, const std::string& text) {
    serve::log_line(event == "loading" || event.ends_with("ready") ? "info"
                    : event.ends_with("failed")                    ? "error"
                                                                   : "warning",
                    event, {{"detail", text}});
  };
  of.api.log = [](const serve::http_request& request, int status, double seconds) {
    serve::log_line("info", "request",
                    {{"id", request.id},
                     {"peer", request.peer},
                     {"method", request.method},
                     {"path", request.path.substr(0, 200)},
                     {"status", std::int64_t{status}},
                     {"seconds", seconds}});
  };
}

/// Until a signal asks for the end, or the model cannot be loaded. @return the exit code
int serve_models(settings& wanted) {
  std::atomic<bool> failed{false};
  wanted.engine.load_failed = [&] {
    failed = true;
    intaglio::platform::ask_to_stop();  // the same way out as by hand
  };
  serve::metrics counts;
  wanted.api.read_head = [&](const std::string& path) { return serve::read_model_head(options_of(wanted, path)); };
  serve::model_set models = models_of(wanted, counts);
  std::optional<serve::walk_service> walks;
  if (!wanted.index.empty())
    wanted.api.walks = &walks.emplace(intaglio::tool::model_options{wanted.engine.model, wanted.engine.i2s_layout},
                                      wanted.index, wanted.engine.log);
  serve::api application(models, counts, wanted.api);
  serve::http_server server(application, wanted.listen, wanted.api.limit, counts.connections);
  serve::log_line("info", "listening",
                  {{"url", url_of(wanted.listen, server.port())},
                   {"address", wanted.listen.address},
                   {"port", std::int64_t{server.port()}},
                   {"tls", wanted.listen.certificate.empty() ? "no" : "yes"}});
  models.start();
  if (!wanted.models.empty())
    serve::log_line("info", "ready",
                    {{"detail", "models of " + wanted.models + " are loaded when they are asked for"}});
  server.run(
      [&] {
        serve::log_line("info", "draining", {});
        models.refuse_more();
      },
      [&] { models.end_all(); });
  models.end_all();
  serve::log_line("info", "stopped", {});
  return failed ? 3 : 0;
}

/// A rank's part: rank 0 serves, the others compute. @return the exit code
int run_rank(settings& wanted) {
  serve::rank_job ranks({std::chrono::seconds(wanted.mpi_seconds), wanted.listen.drain});
  wanted.engine.ranks = &ranks;
  int code = 0;
  try {
    if (ranks.rank() == 0) code = serve_models(wanted);
    else ranks.serve_stage(wanted.engine);
  } catch (const std::exception& problem) {
    serve::log_line("error", "ranks_failed", {{"detail", problem.what()}});
    code = ranks.rank() == 0 ? 1 : 3;
  }
  return ranks.end(code);
}

}  // namespace

int main(int count, char** arguments) {
  intaglio::platform::console console(count, arguments);
  CLI::App app(
      "A language model behind OpenAI's, Anthropic's and Ollama's APIs and a web page, engraved for Vulkan.\nPaths: / "
      "(chat) "
      "/v1/chat/completions /v1/completions /v1/responses /v1/messages /v1/models /v1/infer /v1/trace /api/chat "
      "/api/generate /api/tags /api/show /tokenize /detokenize /apply-template /pdf-text /props /slots /health "
      "/metrics /plan",
      "intaglio-serve");
  settings wanted;
  add_options(app, wanted);
  app.footer(
      "Every flag can be set by the environment: --max-n by INTAGLIO_SERVE_MAX_N, and so on.\nExit codes: 0 stopped by "
      "SIGTERM or SIGINT, 1 bad option, file or address, 3 no device or "
      "model to serve.");
  try {
    app.parse(with_environment(app, {console.words() + 1, console.words() + console.count()}));
  } catch (const CLI::ParseError& refusal) { return app.exit(refusal) == 0 ? 0 : 1; }
  try {
    check(wanted, app);
    if (wanted.quiet) serve::set_quiet_log();
    set_logs(wanted);
    return wanted.mpi ? run_rank(wanted) : serve_models(wanted);
  } catch (const std::exception& problem) {
    serve::log_line("error", "refused", {{"detail", problem.what()}});
    return 1;
  }
}
