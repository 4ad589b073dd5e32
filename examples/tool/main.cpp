// SPDX-License-Identifier: MIT
// The tool's command line: what each command takes, and which exit code its end has.
#include "bench_variants.hpp"
#include "commands.hpp"
#include "console.hpp"
#include "download.hpp"
#include "model_cache.hpp"
#include "ranks.hpp"
#include "shell_words.hpp"

#include <intaglio/core/error.hpp>
#include <intaglio/core/version.hpp>

#include <CLI/CLI.hpp>

#include <unistd.h>

#include <charconv>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <new>
#include <string_view>
#include <system_error>

namespace {

using namespace intaglio;
using namespace intaglio::tool;

constexpr const char* footer = R"(Examples:
  intaglio run                                            a story by the model that the tool carries
  intaglio run --model MODEL.gguf --chat --prompt "Why is the sky blue?"
  intaglio check MODEL.gguf                               is the file sound, to the last tensor?
  intaglio engrave MODEL.gguf -o mine                     build mine/bin/intaglio for another model
  intaglio plan fable --html plan.html                    the command sequence as a picture

MODEL is a GGUF file or a folder: Hugging Face's (config.json with safetensors or pytorch_model.bin), or Meta's and Mistral's own
(params.json with consolidated.*.pth), or a file of `intaglio pack`, or the https address of a GGUF or packed file, which is fetched once and
kept (`intaglio cache`); #sha256=DIGITS behind it says what it must be. Without --model the tool uses fable, the story teller inside it.
Exit codes: 0 done, 1 bad input, 2 usage, 3 device, 128 + n ended by signal n. Data goes to stdout, everything else to stderr.)";

void add_model(CLI::App& to, model_options& model) {
  to.add_option("-m,--model", model.path,
                "GGUF file or folder, or a file's https address; without it: the embedded fable")
      ->type_name("MODEL")
      ->check([](const std::string& path) { return path.empty() ? "expected a model's path, found ''" : ""; });
  to.add_option_function<std::string>(
        "--hf", [&model](const std::string& name) { model.path = "hf:" + name; },
        "a model of the Hugging Face hub by its name, also -hf; QUANTISATION as its files name it, else Q4_K_M")
      ->type_name("OWNER/REPO[:QUANTISATION]")
      ->excludes("--model");
  to.add_option("--i2s-layout", model.i2s_layout, "order of the codes in I2_S tensors, which no file states")
      ->type_name("LAYOUT")
      ->check(CLI::IsMember({"block128", "block64", "rows4"}))
      ->default_str("block128");
}

void add_codec(CLI::App& to, model_options& model) {
  to.add_option("--codec", model.codec,
                "compute the layers' matrices in this codec where the file's is another, which changes their values; "
                "embedding\nand head stay as the file has them; default: the file's own")
      ->type_name("C");
}

void add_budget(CLI::App& to, model_options& model) {
  to.add_option("--weight-budget", model.weight_budget,
                "device memory that weights may take (6GB, 900MB): the FFNs of the last layers that it does not take "
                "lie in the\n"
                "host's memory and are read across the bus, slower; the same text")
      ->transform(CLI::AsSizeValue(true))
      ->type_name("SIZE");
}

void add_context(CLI::App& to, model_options& model) {
  to.add_option("--context", model.context,
                "positions that the KV cache has room for, at most the model's own; by default those that a model was "
                "engraved\nwith, else as many as fit, up to 16,384")
      ->type_name("N")
      ->check(CLI::PositiveNumber);
}

/// @param more what else the help says
void add_devices(CLI::App& to, model_options& model, const char* more = "") {
  to.add_option("--devices", model.devices,
                "cut the model over several devices: their numbers, UUIDs or parts of their names, with commas, in the "
                "order of the\nlayers" +
                    std::string(more))
      ->type_name("LIST")
      ->delimiter(',')
      ->excludes("--device");
  to.add_option("--cut", model.cut,
                "layers in front of each cut, with commas: 16 ends the first stage behind layer 15; by default as the "
                "devices' memory\nand rates have it")
      ->type_name("LIST")
      ->delimiter(',');
}

void add_mpi(CLI::App& to, model_options& model) {
  to.add_flag(
        "--mpi", model.mpi,
        "cut the model over the ranks of MPI, each with its own device and the same file: mpirun -n 2 intaglio run "
        "--mpi; for hosts\nthat trust each other")
      ->excludes("--devices");
}

void add_sampling(CLI::App& to, sampling_flags& flags) {
  to.add_option("--temperature", flags.temperature, "0 takes the most probable token (the default)")->type_name("T");
  to.add_option("--top-k", flags.top_k, "draw from the K most probable tokens")->type_name("K");
  to.add_option("--top-p", flags.top_p, "draw from the most probable tokens that hold P of the probability together")
      ->type_name("P");
  to.add_option("--min-p", flags.min_p, "leave out tokens under P times the most probable one's probability")
      ->type_name("P");
  to.add_option("--repeat-penalty", flags.repeat_penalty,
                "make tokens of the last 64 positions less probable; 1 is off")
      ->type_name("R");
  to.add_option("--prompt-lookup", flags.prompt_lookup,
                "draft N tokens at once from what the text has said before: the same text, sooner where it repeats "
                "itself; 0 is off")
      ->type_name("N");
  to.add_option("--gpu-idle", flags.gpu_idle,
                "leave the device idle for this share of the time, 0 to 0.95: slower, cooler, and others get their "
                "turn; the same text")
      ->type_name("SHARE");
  to.add_option("--seed", flags.seed, "the same seed gives the same text; by default a random one, which is printed")
      ->type_name("N")
      ->check([](const std::string& text) {  // CLI11 takes a larger number for the largest
        std::uint64_t seed = 0;
        const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), seed);
        return problem == std::errc{} && end == text.data() + text.size()
                   ? std::string{}
                   : "expected a number 0 .. 18446744073709551615, found '" + printable(text, 40) + "'";
      });
}

/// A subcommand's parser and what to do when it was chosen.
class command_line {
 public:
  command_line() {
    app_.require_subcommand(0, 1);
    app_.set_version_flag("--version", "intaglio " + std::to_string(version_major) + "." +
                                           std::to_string(version_minor) + "." + std::to_string(version_patch));
    app_.footer(footer);
    add_common(app_);
    app_.get_formatter()->column_width(34);
    add_story_commands();
    add_file_commands();
    add_walk_commands();
    add_device_commands();
    add_shell_commands();
  }

  exit_code run(int argc, char** argv) {
    try {
      std::vector<std::string> arguments(argv + (argc == 0 ? 0 : 1), argv + argc);
      for (std::string& each : arguments)
        if (each == "-hf") each = "--hf";  // as other programs have it
      std::reverse(arguments.begin(), arguments.end());
      app_.parse(std::move(arguments));
    } catch (const CLI::CallForHelp&) {
      print(chosen()->help());
      return flush_output(), exit_code::done;
    } catch (const CLI::CallForVersion&) {
      print_line(app_.version());
      return flush_output(), exit_code::done;
    } catch (const CLI::ParseError& error) {
      const std::string command = name_of(chosen());
      show_error((command.empty() ? "" : command + ": ") + printable(error.what(), 340) + "\nsee: intaglio" +
                 (command.empty() ? "" : " " + command) + " --help");
      return exit_code::usage;
    }
    if (common_.quiet) set_quiet();
    if (common_.all) set_all();
    if (chosen() == &app_) {
      show_error("expected a command, found none\nsee: intaglio --help");
      return exit_code::usage;
    }
    for (auto& [parser, work] : commands_)
      if (parser == chosen()) work();
    flush_output();
    return exit_code::done;
  }

 private:
  /// The command that was named, or one of its own.
  CLI::App* chosen() {
    CLI::App* out = &app_;
    while (!out->get_subcommands().empty()) out = out->get_subcommands().front();
    return out;
  }
  static std::string name_of(const CLI::App* of) {
    std::string out;
    for (; of->get_parent() != nullptr; of = of->get_parent()) out = of->get_name() + (out.empty() ? "" : " ") + out;
    return out;
  }

  void add_common(CLI::App& to) {
    to.add_option("--device", common_.device,
                  "which device: its number, UUID or a part of its name, as `intaglio devices` shows them")
        ->type_name("DEVICE")
        ->group("Everywhere");
    to.add_flag("--validate", common_.validate,
                "run with Vulkan's validation layer, any message of it is an error; name the layer where numbers end")
        ->group("Everywhere");
    to.add_flag("--quiet", common_.quiet, "no notes, warnings and progress")->group("Everywhere");
    to.add_flag("--all", common_.all, "all that is wrong with a file, a line each, not the first alone")
        ->group("Everywhere");
  }

  CLI::App* add(const char* name, const char* description, std::function<void()> work, const char* examples) {
    return add(app_, name, description, std::move(work), examples);
  }
  CLI::App* add(CLI::App& under, const char* name, const char* description, std::function<void()> work,
                const char* examples) {
    CLI::App* out = under.add_subcommand(name, description);
    add_common(*out);
    out->footer(std::string("Examples:\n") + examples);
    commands_.emplace_back(out, std::move(work));
    return out;
  }

  void add_story_commands() {
    auto* c = add(
        "run", "Continue a text; without a prompt the embedded model tells a story",
        [this] { tool::run(run_, common_); },
        "  intaglio run\n  intaglio run --prompt \"Once upon a time\" -n 100\n  intaglio run -m MODEL.gguf --chat "
        "--system \"Be brief.\" "
        "--prompt \"Why is the sky "
        "blue?\" --temperature 0.7\n  intaglio run -m MODEL.gguf --ids 1,2,3 --json\n  cat notes.txt | intaglio run -m "
        "MODEL.gguf --file - "
        "--stop END");
    add_model(*c, run_.model);
    add_context(*c, run_.model);
    add_codec(*c, run_.model);
    add_budget(*c, run_.model);
    add_devices(*c, run_.model);
    add_mpi(*c, run_.model);
    auto* prompt = c->add_option("-p,--prompt", run_.prompt,
                                 "text to continue, as it is, behind one BOS token where the model wants it; "
                                 "control tokens written in it count as such")
                       ->type_name("TEXT");
    auto* file =
        c->add_option("-f,--file", run_.file, "the same from a file; - is stdin")->type_name("FILE")->excludes(prompt);
    auto* ids = c->add_option("--ids", run_.ids, "the prompt as token ids, taken as they are: 1,2,3")
                    ->type_name("LIST")
                    ->excludes(prompt)
                    ->excludes(file);
    auto* chat =
        c->add_flag("--chat", run_.chat, "the prompt is a user's message: wrap it in the model's chat template")
            ->excludes(ids);
    auto* system =
        c->add_option("--system", run_.system, "system message; implies --chat")->type_name("TEXT")->excludes(ids);
    c->add_flag("--plain", run_.plain, "control tokens written in the prompt are plain text")
        ->excludes(ids)
        ->excludes(chat)
        ->excludes(system);
    c->add_option("-n,--tokens", run_.tokens,
                  "new tokens at most; by default until the model ends or the context is full")
        ->type_name("N");
    add_sampling(*c, run_.sampling);
    c->add_option("--stop", run_.stop, "end before this text; may be given up to 16 times")
        ->type_name("TEXT")
        ->take_all()
        ->allow_extra_args(false);
    c->add_option("--chunk", run_.chunk, "tokens of the prompt fed at once; changes nothing but speed")->type_name("N");
    c->add_option("--tokens-per-submit", run_.tokens_per_submit, "passes in one submission; changes nothing but speed")
        ->type_name("N");
    c->add_flag("--json", run_.json,
                "no stream, one line at the end: {\"text\", \"ids\", \"finish_reason\", \"timings\"}");

    c = add(
        "embed", "Turn texts into vectors, one JSON object a line", [this] { tool::embed(embed_, common_); },
        "  intaglio embed -m MODEL.gguf --text \"a brave mouse\"\n  intaglio embed -m FOLDER --text \"a mouse\" --text "
        "\"a cat\" --pooling mean\n  cat notes.txt | intaglio embed -m MODEL.gguf --file -\n\n"
        "Prints {\"embedding\": [...], \"tokens\": N} for each text: the states of its tokens behind the last norm, "
        "pooled. A text stands between\nthe tokens that the model's tokenizer puts around one.");
    add_model(*c, embed_.model);
    add_context(*c, embed_.model);
    add_codec(*c, embed_.model);
    add_budget(*c, embed_.model);
    auto* texts = c->add_option("--text", embed_.texts, "a text; may be given again")
                      ->type_name("TEXT")
                      ->take_all()
                      ->allow_extra_args(false);
    auto* text_file =
        c->add_option("-f,--file", embed_.file, "a text from a file; - is stdin")->type_name("FILE")->excludes(texts);
    auto* text_ids = c->add_option("--ids", embed_.ids, "a text as token ids, taken as they are: 1,2,3")
                         ->type_name("LIST")
                         ->excludes(texts)
                         ->excludes(text_file);
    c->callback([texts, text_file, text_ids] {
      if (texts->empty() && text_file->empty() && text_ids->empty())
        throw CLI::RequiredError("--text, --file or --ids");
    });
    c->add_option("--pooling", embed_.pooling,
                  "whose states: the last token's, the mean of all, the first token's; default: as the model's files "
                  "say, else last")
        ->type_name("P")
        ->check(CLI::IsMember({"last", "mean", "first"}));
    c->add_flag("--normalize,!--no-normalize", embed_.normalize,
                "scale vectors to a length of 1 (the default), or not");
    c->add_option("--chunk", embed_.chunk, "tokens fed at once; changes nothing but speed")->type_name("N");

    c = add(
        "chat", "Talk with the model; /help shows the commands, /quit leaves, Ctrl-C stops a reply",
        [this] { tool::chat(chat_, common_); },
        "  intaglio chat\n  intaglio chat -m MODEL.gguf --system \"You are a pirate.\" --temperature 0.7\n\n"
        "Commands: /system /reset /retry /save /load /stats /model /help /quit. On a terminal lines are edited and "
        "kept between runs, in\n"
        "$XDG_STATE_HOME/intaglio/chat_history.");
    add_model(*c, chat_.model);
    add_context(*c, chat_.model);
    add_codec(*c, chat_.model);
    add_budget(*c, chat_.model);
    add_devices(*c, chat_.model);
    c->add_option("--system", chat_.system, "system message")->type_name("TEXT");
    c->add_option("-n,--tokens", chat_.tokens, "tokens a reply at most")->type_name("N");
    add_sampling(*c, chat_.sampling);

    c = add(
        "bench", "Measure prompt and decode speed, the host's share, and both against a streaming read",
        [this] { tool::bench(bench_, common_); },
        "  intaglio bench\n  intaglio bench -m MODEL.gguf -p 512 -n 128 --json\n  intaglio bench --synthetic "
        "bitnet_2b_4t --codec i2_s "
        "--context 4000\n  intaglio bench --ab record --html plan.html\n\n"
        "Medians over the runs. The cold start finds no compiled pipelines and proves the kernels, the warm start "
        "finds them; both begin\n"
        "with opening the device. Figures of the host are for one decoded token.");
    add_model(*c, bench_.model);
    add_budget(*c, bench_.model);
    add_devices(*c, bench_.model, "; measured is the whole, and each stage's part of a token");
    auto* synthetic =
        c->add_option("--synthetic", bench_.synthetic, "random weights of an engraved model instead of a file")
            ->type_name("NAME")
            ->excludes("--model");
    c->add_option(
         "--codec", bench_.codec,
         "codec of the matrices; default: the file's, with --synthetic the engraved one, for models that come in "
         "several q8_0")
        ->type_name("C");
    c->add_option("--relu-zeros", bench_.relu_zeros,
                  "with --synthetic: share of gates that are zero behind a ReLU, 0 to 1; by default about half")
        ->type_name("X")
        ->check(CLI::Range(0.0, 1.0))
        ->needs(synthetic);
    c->add_option("--weights", bench_.place,
                  "where the device reads the weights of a packed file: in its memory (copied), where the file is "
                  "mapped (mapped), the FFNs' alone there\n"
                  "(features_mapped); by default mapped where host and device share memory")
        ->type_name("PLACE")
        ->check(CLI::IsMember({"automatic", "copied", "mapped", "features_mapped"}))
        ->excludes(synthetic);
    std::string pairs = "compare two ways to decode, run in turns; may be given again:";
    for (const ab_pair& each : ab_pairs) pairs += "\n" + std::string(each.name) + ": " + std::string(each.about);
    c->add_option("--ab", bench_.ab, pairs)
        ->type_name("VARIANT")
        ->take_all()
        ->allow_extra_args(false)
        ->check(CLI::IsMember(ab_names()));
    c->add_option("-p,--prompt", bench_.prompt, "tokens of the prompt; cut to what the context takes")
        ->type_name("N")
        ->capture_default_str();
    c->add_option("-n,--tokens", bench_.tokens, "tokens to decode")->type_name("N")->capture_default_str();
    c->add_option("--context", bench_.context, "tokens in the KV cache before decode is measured")
        ->type_name("N")
        ->capture_default_str();
    c->add_option("-r,--runs", bench_.runs, "runs, of which the median counts")
        ->type_name("N")
        ->check(CLI::Range(1u, 1000u))
        ->capture_default_str();
    c->add_flag("--json", bench_.json, "one JSON object");
    c->add_option("--html", bench_.html, "write the plan's page with the measured times too")->type_name("FILE");

    c = add(
        "tune",
        "Measure which kernels and workgroups are fastest for a model on this device, and keep that for every later "
        "start",
        [this] { tool::tune(tune_, common_); },
        "  intaglio tune\n  intaglio tune -m MODEL.gguf\n  intaglio tune --synthetic mistral_7b --codec q4_0\n  "
        "intaglio tune --forget\n\n"
        "Kept beside the compiled pipelines, for this device, driver and model. The text stays the same, bit for bit.");
    add_model(*c, tune_.model);
    c->add_option("--synthetic", tune_.synthetic,
                  "random weights of an engraved model instead of a file; counts for files of it too")
        ->type_name("NAME")
        ->excludes("--model");
    c->add_option("--codec", tune_.codec, "codec of the matrices; default: the file's")->type_name("C");
    c->add_option("--trial-ms", tune_.trial_ms, "time of one run of a shape")
        ->type_name("MS")
        ->check(CLI::Range(0.1, 60000.0))
        ->capture_default_str();
    c->add_option("--turns", tune_.turns, "runs of each side, of which the medians count")
        ->type_name("N")
        ->check(CLI::Range(1u, 1000u))
        ->capture_default_str();
    c->add_flag("--forget", tune_.forget, "delete what is kept, measure nothing");
    c->add_flag("--json", tune_.json, "one JSON object");
  }

  void add_file_commands() {
    auto* c = add(
        "inspect", "Show what a model file says of itself: config, tokenizer, tensors",
        [this] { tool::inspect(inspect_); },
        "  intaglio inspect MODEL.gguf\n  intaglio inspect MODEL.gguf --tensors\n  intaglio inspect FOLDER --json");
    c->add_option("FILE", inspect_.file, "GGUF file or folder")->required();
    c->add_flag("--tensors", inspect_.tensors, "list every tensor");
    c->add_flag("--json", inspect_.json, "one JSON object, tensors and metadata in it");

    c = add(
        "check", "Validate structure, model, tokenizer and every value of a model file",
        [this] { tool::check(check_); }, "  intaglio check MODEL.gguf\n  intaglio check FOLDER && echo sound");
    c->add_option("FILE", check_.file, "GGUF file or folder")->required();
    c->add_option("--i2s-layout", check_.i2s_layout, "order of the codes in I2_S tensors")
        ->type_name("LAYOUT")
        ->check(CLI::IsMember({"block128", "block64", "rows4"}))
        ->default_str("block128");

    c = add(
        "tokenize", "Turn text into token ids", [this] { tool::tokenize(tokenize_); },
        "  intaglio tokenize --text \"Once upon a time\"\n  intaglio tokenize -m MODEL.gguf --file notes.txt --json\n\n"
        "With --json: {\"ids\":[...],\"pieces\":[...]}. A piece that is no UTF-8 by itself shows U+FFFD for its bytes; "
        "the ids are exact.");
    add_model(*c, tokenize_.model);
    auto* text = c->add_option("--text", tokenize_.text, "the text")->type_name("TEXT");
    auto* file =
        c->add_option("--file", tokenize_.file, "the text from a file; - is stdin")->type_name("FILE")->excludes(text);
    c->callback([text, file] {
      if (text->empty() && file->empty()) throw CLI::RequiredError("--text or --file");
    });
    c->add_flag("--special", tokenize_.special,
                "texts of special tokens become those tokens; else they are plain text");
    c->add_flag("--bos", tokenize_.bos, "put the model's BOS token in front");
    c->add_flag("--json", tokenize_.json, "one JSON object instead of ids with commas");

    c = add(
        "detokenize", "Turn token ids into text, byte for byte", [this] { tool::detokenize(detokenize_); },
        "  intaglio detokenize --ids 453,466,258,418\n  intaglio detokenize --ids \"$(intaglio tokenize --file "
        "notes.txt)\" | cmp - "
        "notes.txt");
    add_model(*c, detokenize_.model);
    c->add_option("--ids", detokenize_.ids, "token ids: 1,2,3")->type_name("LIST")->required();
    c->add_flag("--json", detokenize_.json, "{\"text\": ...} instead of the bytes");

    c = add(
        "logits", "Write the logits of every position, and hidden states, as NumPy arrays",
        [this] { tool::logits(logits_, common_); },
        "  intaglio logits -m MODEL.gguf --ids 1,2,3 --out out --hidden\n\n"
        "Writes OUT/logits.npy, float32 [tokens, vocabulary], and OUT/hidden.npy, float32 [layers + 1, tokens, width]: "
        "the embedding's "
        "output, then\n"
        "the output of each layer, before the final norm.");
    add_model(*c, logits_.model);
    add_context(*c, logits_.model);
    add_codec(*c, logits_.model);
    add_devices(*c, logits_.model);
    c->add_option("--ids", logits_.ids, "token ids, taken as they are: 1,2,3")->type_name("LIST")->required();
    c->add_option("-o,--out", logits_.out, "folder for the arrays; made where it is missing")
        ->type_name("DIR")
        ->required();
    c->add_flag("--hidden", logits_.hidden, "hidden states too");
    c->add_option("--chunk", logits_.chunk, "tokens fed at once; changes nothing but speed")->type_name("N");

    c = add(
        "convert", "Write a model in another codec, and tell what that cost", [this] { tool::convert(convert_); },
        "  intaglio convert FOLDER MODEL.gguf --codec q4_k\n  intaglio convert MODEL.gguf SMALLER.gguf --codec tq1_0\n"
        "  intaglio convert MODEL.gguf model.safetensors --codec bf16\n\n"
        "Norms stay f32. Tensors that have the codec already are copied. Prints for each kind of tensor and for all "
        "the largest and the root mean\n"
        "square difference of its values, absolute and as a part of the values' own.");
    c->add_option("IN", convert_.in, "GGUF file or folder")->required();
    c->add_option("OUT", convert_.out, "GGUF file, or *.safetensors for the tensors alone; written whole or not at all")
        ->required();
    c->add_option(
         "--codec", convert_.codec,
         "f32, f16, bf16, q8_0, q4_0, q4_1, q5_0, q5_1, q2_k, q3_k, q4_k, q5_k, q6_k, iq4_nl, mxfp4, bcml1, tq1_0, "
         "tq2_0 or i2_s")
        ->type_name("C")
        ->required();
    c->add_option("--embedding", convert_.embedding,
                  "codec of embedding and head; default: the same, but f16 beside ternary codecs and bcml1")
        ->type_name("C");
    c->add_option("--threads", convert_.threads, "threads that read and encode; default: one for each of the machine's")
        ->type_name("N");
    c->add_flag("--json", convert_.json, "one JSON object instead of the table");
    c->add_option("--i2s-layout", convert_.i2s_layout, "order of the codes in the input's I2_S tensors")
        ->type_name("LAYOUT")
        ->check(CLI::IsMember({"block128", "block64", "rows4"}))
        ->default_str("block128");

    c = add(
        "index", "Write a model's FFNs feature by feature, for walks: files to be mapped, and a manifest",
        [this] { tool::index(index_); },
        "  intaglio index MODEL.gguf -o index\n  intaglio index FOLDER -o index --codec bf16\n"
        "  intaglio index index -o vindex --larql && intaglio index vindex -o again\n  intaglio index MODEL.gguf -o "
        "index --hnsw\n\n"
        "A feature has three vectors: gate, up and down. Started again with the same arguments, it goes on behind the "
        "layers that are there\n"
        "and whole. The codec own keeps gate and up as the model has them, and down too unless its blocks run across "
        "features (then f32).\n"
        "A graph (--hnsw) stands beside the index, for `walk knn --hnsw`. At sizes up to 10,240 features plain search "
        "is faster.");
    c->add_option("MODEL", index_.in,
                  "GGUF file or folder of a model with gated FFNs; or LARQL's index of one; or with --larql an index")
        ->required();
    c->add_option("-o,--out", index_.out, "folder of the index; made where it is missing")
        ->type_name("DIR")
        ->required();
    auto* codec =
        c->add_option("--codec", index_.codec, "own, f32, f16 or bf16")->type_name("C")->capture_default_str();
    c->add_flag("--larql", index_.larql,
                "write an index in LARQL's layout: gate_vectors, up_features, down_features and index.json")
        ->excludes(codec);
    auto* graph = c->add_flag("--hnsw", index_.hnsw, "make, or go on making, a graph over the gates too (HNSW)")
                      ->excludes("--larql");
    c->add_option("--links", index_.links, "of a feature in the graph; default: 16")->type_name("N")->needs(graph);
    c->add_option("--construction", index_.construction, "candidates for a new feature's links; default: 40")
        ->type_name("N")
        ->needs(graph);
    c->add_option("--search", index_.search, "candidates of a search; may change later; default: 2000")
        ->type_name("N")
        ->needs(graph);
    c->add_option("--threads", index_.threads, "threads that read and encode; default: one for each of the machine's")
        ->type_name("N");
    c->add_flag("--json", index_.json, "one JSON object instead of a line");
    c->add_option("--i2s-layout", index_.i2s_layout, "order of the codes in the model's I2_S tensors")
        ->type_name("LAYOUT")
        ->check(CLI::IsMember({"block128", "block64", "rows4"}))
        ->default_str("block128");

    c = add(
        "pack",
        "Write a model as one file that loads by copying, or is read in place: config, tokenizer and weights as this "
        "tool's kernels take them",
        [this] { tool::pack(pack_); },
        "  intaglio pack MODEL.gguf -o MODEL.packed && intaglio run -m MODEL.packed --prompt Hello\n\n"
        "The file holds checksums of all its bytes. A program whose kernels lay weights out otherwise refuses it: then "
        "pack the model again.");
    c->add_option("FILE", pack_.file, "GGUF file or folder")->required();
    c->add_option("--codec", pack_.codec,
                  "pack the matrices in this codec where the file's is another, which changes their values")
        ->type_name("C");
    c->add_option("-o,--out", pack_.out, "file to write; whole or not at all")->type_name("FILE")->required();
    c->add_option("--threads", pack_.threads, "threads that read and repack; default: one for each of the machine's")
        ->type_name("N");
    c->add_option("--i2s-layout", pack_.i2s_layout, "order of the codes in the model's I2_S tensors")
        ->type_name("LAYOUT")
        ->check(CLI::IsMember({"block128", "block64", "rows4"}))
        ->default_str("block128");

    c = add(
        "cache", "List or delete models that were fetched from the net", [this] { tool::cache(cache_); },
        "  intaglio cache list\n  intaglio cache delete https://host/MODEL.gguf\n  intaglio cache delete --all\n\n"
        "They stand in $XDG_CACHE_HOME/intaglio/models (else ~/.cache). A download that broke off goes on in the next "
        "run.");
    c->add_option("ACTION", cache_.action, "list or delete")->required()->check(CLI::IsMember({"list", "delete"}));
    c->add_option("WHICH", cache_.which, "what to delete: addresses, keys or file names of the list");
    c->remove_option(c->get_option("--all"));  // of errors, which are never several here
    c->add_flag("--all", cache_.all, "delete all");
    c->add_flag("--json", cache_.json, "list as one JSON array");

    c = add(
        "pull", "Fetch a model from the net into the cache, and print where it is",
        [this] { print_line(local_model(pulled_)); },
        "  intaglio pull hf:OWNER/REPO:Q4_0\n  intaglio pull https://host/MODEL.gguf");
    c->add_option("MODEL", pulled_, "https address, or hf:OWNER/REPO[:QUANTISATION]")
        ->required()
        ->check([](const std::string& model) {
          return is_url(model) ? std::string()
                               : "expected an address or hf:OWNER/REPO, found '" + printable(model, 80) + "'";
        });
    c = add(
        "list", "List models that were fetched, as cache list does",
        [this] {
          cache_.action = "list";
          tool::cache(cache_);
        },
        "  intaglio list --json");
    c->add_flag("--json", cache_.json, "one JSON array");
    c = add(
        "rm", "Delete models that were fetched, as cache delete does",
        [this] {
          cache_.action = "delete";
          tool::cache(cache_);
        },
        "  intaglio rm hf:OWNER/REPO\n  intaglio rm --all");
    c->add_option("WHICH", cache_.which, "addresses, keys or file names of the list");
    c->remove_option(c->get_option("--all"));  // of errors, which are never several here
    c->add_flag("--all", cache_.all, "delete all");

    c = add(
        "engrave", "Build a tool for another model: writes its config and DIR/bin/intaglio",
        [this] { tool::engrave(engrave_); },
        "  intaglio engrave MODEL.gguf -o mine && mine/bin/intaglio run -m MODEL.gguf --prompt Hello\n\n"
        "Needs CMake, a C++20 compiler and the tool's sources, which stand beside an installed or built intaglio "
        "(else: environment\n"
        "INTAGLIO_SOURCE, the source tree).");
    c->add_option("FILE", engrave_.file, "GGUF file or folder")->required();
    c->add_option("-o,--out", engrave_.directory, "folder to build in; default: engraved/NAME")->type_name("DIR");
    c->add_option("--codec", engrave_.codec,
                  "codec of the layers' matrices, f32 to q4_0; default: the file's, if it has one. Tensors of "
                  "another one are encoded anew on loading")
        ->type_name("C");
    c->add_option("--name", engrave_.name, "name of the model in C++; default: from the file's name")
        ->type_name("NAME");
  }

  void add_walk_commands() {
    CLI::App* walk = app_.add_subcommand(
        "walk", "Read, trace, search and edit the features of a model's FFNs, over an index of them");
    walk->require_subcommand(1);
    walk->footer(
        "INDEX is a folder of `intaglio index`, MODEL the model that it was made of. What `walk edit` changed counts "
        "unless --base is given.\nWalks run on the CPU reference, exact, not fast; `trace --on-device` decodes on the "
        "device.");
    const auto prompt = [this](CLI::App& to) {
      auto* text =
          to.add_option("-p,--prompt", walk_.prompt, "text, behind the model's BOS token; default: Once upon a time")
              ->type_name("TEXT");
      to.add_option("--ids", walk_.ids, "the same as token ids: 1,2,3")->type_name("LIST")->excludes(text);
    };
    const auto command = [&](const char* name, const char* description, void (*work)(const walk_options&),
                             const char* examples) {
      CLI::App* c = add(
          *walk, name, description,
          [this, work] {
            walk_.common = common_;
            work(walk_);
          },
          examples);
      c->add_option("INDEX", walk_.index, "folder of the index")->required();
      add_model(*c, walk_.model);
      add_codec(*c, walk_.model);
      prompt(*c);
      c->add_flag("--base", walk_.base, "the index as it was made, without its journal");
      c->add_flag("--json", walk_.json, "one JSON object or array");
      return c;
    };
    const auto tokens = [this](CLI::App& to, const char* what) {
      to.add_option("-n,--tokens", walk_.tokens, what)->type_name("N")->capture_default_str();
    };
    const auto count = [this](CLI::App& to, const char* what) {
      to.add_option("-k,--count", walk_.count, what)->type_name("K");
    };
    const auto page = [this](CLI::App& to, const char* what) {
      to.add_option("--html", walk_.html, what)->type_name("FILE");
    };

    auto* c = command("run", "Continue a text by a walk, greedily", walk_run,
                      "  intaglio index fable.gguf -o index && intaglio walk run index -m fable.gguf -p \"One day, a "
                      "little cat named\"");
    tokens(*c, "new tokens at most");
    count(*c, "features of a layer; default: all that are not off");
    c = command("bench", "Time dense, full, exact and sparse walks, by layer and by part", walk_bench,
                "  intaglio walk bench index -m MODEL.gguf -n 16 -k 256");
    tokens(*c, "tokens behind the prompt");
    count(*c, "features of the sparse walk; default: a quarter");
    c->add_flag("--hnsw", walk_.hnsw, "recall@10 and time of the graph over the gates against plain search");
    c = command("sweep", "Error of walks against dense: full from layer B on, and sparse for growing K", walk_sweep,
                "  intaglio walk sweep index -m MODEL.gguf --html curve.html");
    tokens(*c, "tokens behind the prompt");
    page(*c, "write the curve as a page");
    command("memory", "Memory without the dense FFN against all of it", walk_memory,
            "  intaglio walk memory index -m MODEL.gguf");
    c = command("knn", "The features nearest to the gate input behind a text", walk_knn,
                "  intaglio walk knn index -m MODEL.gguf -p \"the cat\" --layer 4 --top 5");
    c->add_option("--layer", walk_.layer, "one layer alone")->type_name("N");
    c->add_option("--top", walk_.top, "features of a layer")->type_name("N")->capture_default_str();
    auto* graph = c->add_flag("--hnsw", walk_.hnsw,
                              "search by the graph of `index --hnsw`; recall and time against plain search are shown");
    c->add_flag("--each", walk_.each, "behind every token of the text, not the last alone");
    c->add_flag("--on-device", walk_.on_device,
                "score the gates on the device (--device names one), all tokens at once")
        ->excludes(graph);
    c = command("trace", "Which features fired, by token and layer, with gate score and what they add", walk_trace,
                "  intaglio walk trace index -m MODEL.gguf -p \"the cat\" --html trace.html");
    tokens(*c, "tokens behind the prompt");
    count(*c, "features of a layer that are walked; default: all that are not off");
    c->add_option("--top", walk_.top, "features of a token and layer, those that add most; on a device 64 at most")
        ->type_name("N")
        ->capture_default_str();
    c->add_flag("--on-device", walk_.on_device, "decode on the device: of all features, told by the device itself");
    page(*c, "write a heat map, layers by tokens, instead of JSON");

    c = add(
        *walk, "router",
        "Parts of a layer's features as experts, and walks of those alone that a router chooses for a token",
        [this] { tool::walk_router(walk_router_); },
        "  intaglio walk router index build --experts 16\n  intaglio walk router index run -m MODEL.gguf -p \"the "
        "cat\" --top-k 4");
    c->add_option("INDEX", walk_router_.index, "folder of the index")->required();
    c->add_option(
         "ACTION", walk_router_.action,
         "build: write the routers of all layers; run: continue a text by them, greedily, and say who was chosen")
        ->required()
        ->check(CLI::IsMember({"build", "run"}));
    add_model(*c, walk_router_.model);
    c->add_option("--file", walk_router_.file, "of the routers; default: router.bin in the index's folder")
        ->type_name("FILE");
    c->add_option("--experts", walk_router_.experts, "build: experts of a layer; a mixture (with -m) has its own")
        ->type_name("N")
        ->capture_default_str();
    c->add_option("--method", walk_router_.method, "build: clusters of gate vectors, or contiguous features")
        ->check(CLI::IsMember({"clusters", "contiguous"}))
        ->capture_default_str();
    c->add_option("--rounds", walk_router_.rounds, "build: of k-means at most")->type_name("N")->capture_default_str();
    c->add_option("--top-k", walk_router_.top_k, "run: experts of a token and layer; all of them are the full walk")
        ->type_name("K")
        ->capture_default_str();
    auto* routed_text = c->add_option("-p,--prompt", walk_router_.prompt,
                                      "run: text, behind the model's BOS token; default: Once upon a time")
                            ->type_name("TEXT");
    c->add_option("--ids", walk_router_.ids, "run: the same as token ids: 1,2,3")
        ->type_name("LIST")
        ->excludes(routed_text);
    c->add_option("-n,--tokens", walk_router_.tokens, "run: new tokens")->type_name("N")->capture_default_str();
    c->add_flag("--base", walk_router_.base, "run: the index as it was made, without its journal");
    c->add_flag("--json", walk_router_.json, "one JSON object");

    c = add(
        *walk, "edit", "Insert, update, remove or restore features; the index itself stays as it is",
        [this] { tool::walk_edit(walk_edit_); },
        "  intaglio walk edit index list\n  intaglio walk edit index insert -m MODEL.gguf --layer 4 --prompt \"One "
        "day, a little cat named\" --says \" Bob\"\n"
        "  intaglio walk edit index remove -m MODEL.gguf --layer 4 --feature 17\n\n"
        "Each change is appended to INDEX/patch.journal and on the disk before the command ends.");
    c->add_option("INDEX", walk_edit_.index, "folder of the index")->required();
    c->add_option("ACTION", walk_edit_.action, "list, insert, update, remove or restore")
        ->required()
        ->check(CLI::IsMember({"list", "insert", "update", "remove", "restore"}));
    add_model(*c, walk_edit_.model);
    c->add_option("--layer", walk_edit_.layer, "of the feature")->type_name("N");
    c->add_option("--feature", walk_edit_.feature, "its number; where an inserted one goes says the index by default")
        ->type_name("N");
    auto* vectors = c->add_option("--vectors", walk_edit_.vectors,
                                  "JSON file with gate, up and down as arrays of hidden_size numbers")
                        ->type_name("FILE");
    auto* text = c->add_option("-p,--prompt", walk_edit_.prompt, "a feature that fires behind this text")
                     ->type_name("TEXT")
                     ->excludes(vectors);
    c->add_option("--says", walk_edit_.says, "and writes the first token of this one over the one that stood there")
        ->type_name("TEXT")
        ->needs(text);
    c->add_option("--strength", walk_edit_.strength, "size of what it writes; ternary models have scales of their own")
        ->type_name("X")
        ->capture_default_str();
    c->add_flag("--json", walk_edit_.json, "one JSON object");

    c = add(
        "fold", "Write a model with the changes of an index's journal in it", [this] { tool::fold(fold_); },
        "  intaglio fold MODEL.gguf index -o CHANGED.gguf && intaglio run -m CHANGED.gguf");
    c->add_option("MODEL", fold_.model,
                  "GGUF file, or Hugging Face folder with safetensors, that the index was made of")
        ->required();
    c->add_option("INDEX", fold_.index, "folder of the index")->required();
    c->add_option("-o,--out", fold_.out, "GGUF file or, of a folder, a new folder; written whole or not at all")
        ->type_name("FILE")
        ->required();
    c->add_flag("--json", fold_.json, "one JSON object instead of a line");
    c->add_option("--i2s-layout", fold_.i2s_layout, "order of the codes in the model's I2_S tensors")
        ->type_name("LAYOUT")
        ->check(CLI::IsMember({"block128", "block64", "rows4"}))
        ->default_str("block128");
  }

  void add_device_commands() {
    auto* c = add(
        "plan", "Print an engraved command sequence", [this] { tool::plan(plan_, common_); },
        "  intaglio plan fable\n  intaglio plan MODEL.gguf --profile portable\n  intaglio plan bitnet_2b_4t --profile "
        "portable --json\n  intaglio bench --json "
        ">bench.json && intaglio "
        "plan fable --html plan.html --bench bench.json\n  intaglio plan MODEL.gguf --devices 0,1\n  intaglio plan "
        "mistral_7b --cut 16");
    c->add_option("NAME", plan_.name, "name of an engraved model, e.g. fable, or a model's file or folder")->required();
    c->add_option("--codec", plan_.codec, "codec of the matrices, where a model comes in several")->type_name("C");
    c->add_option("--profile", plan_.profile,
                  "which kind of device the plan is for; exact is portable whose chunks leave decode's bits, screened "
                  "has a screened head")
        ->check(CLI::IsMember({"cpu", "portable", "exact", "screened"}))
        ->capture_default_str();
    add_devices(*c, plan_.over, "; the stages are said, with their bytes");
    auto* json = c->add_flag("--json", plan_.json, "one JSON object");
    c->add_option("--html", plan_.html, "write a page with timeline, memory map and fusions")
        ->type_name("FILE")
        ->excludes(json);
    c->add_option("--bench", plan_.bench, "output of bench --json, whose times the page then shows")
        ->type_name("FILE")
        ->needs("--html");

    // Only so that it is listed: the server has its own options.
    app_.add_subcommand(
        "serve",
        "Serve a model by OpenAI's, Anthropic's and Ollama's APIs and a web page: intaglio-serve, with its options");

    c = add(
        "devices", "List the Vulkan devices", [this] { tool::devices(devices_); },
        "  intaglio devices\n  intaglio devices --json");
    c->add_flag("--json", devices_.json, "one JSON array");

    c = add(
        "doctor", "Report on device, driver and kernels, fit for a bug report",
        [this] { tool::doctor(doctor_, common_); },
        "  intaglio doctor\n  intaglio doctor --device 1\n  intaglio doctor --report >report.json");
    c->add_flag("--json", doctor_.json, "one JSON object");
    c->add_flag("--report", doctor_.report,
                "one JSON object with limits, features, proofs, times of kernels, workgroups at once and benches");
  }

  /// What shells and man read; installed with the program.
  void add_shell_commands() {
    auto* c = add(
        "completion", "Print a script by which a shell completes commands and options",
        [this] { print(completion_script(app_, shell_)); }, "  source <(intaglio completion bash)");
    c->add_option("SHELL", shell_, "bash, zsh or fish")->required()->check(CLI::IsMember({"bash", "zsh", "fish"}));
    c = add(
        "man", "Write the pages of the manual, made from this help", [this] { write_man(); },
        "  intaglio man -o share/man/man1");
    c->add_option("-o,--out", man_folder_, "folder to write them in")->type_name("DIR")->required();
  }
  void write_man() {
    std::error_code problem;
    std::filesystem::create_directories(man_folder_, problem);
    for (const auto& [name, text] : man_pages(app_, app_.version())) {
      const std::filesystem::path path = std::filesystem::path(man_folder_) / name;
      std::ofstream out(path, std::ios::binary);
      if (!(out << text).flush()) throw file_error(path.string(), std::nullopt, "cannot write");
    }
  }

  CLI::App app_{"Language models engraved by the C++ compiler, run by Vulkan", "intaglio"};
  common_options common_;
  std::vector<std::pair<CLI::App*, std::function<void()>>> commands_;
  inspect_options inspect_;
  check_options check_;
  tokenize_options tokenize_;
  detokenize_options detokenize_;
  embed_command_options embed_;
  logits_options logits_;
  run_options run_;
  chat_options chat_;
  plan_options plan_;
  bench_options bench_;
  tune_options tune_;
  convert_options convert_;
  index_options index_;
  walk_options walk_;
  walk_edit_options walk_edit_;
  walk_router_options walk_router_;
  fold_options fold_;
  pack_command_options pack_;
  engrave_options engrave_;
  cache_options cache_;
  devices_options devices_;
  doctor_options doctor_;
  std::string shell_, man_folder_, pulled_;
};

/// The server, beside this program or on the PATH, takes the place of this process.
[[noreturn]] void become_server(char** argv) {
  std::error_code problem;
  const std::filesystem::path own = std::filesystem::read_symlink("/proc/self/exe", problem);
  const std::string beside = problem ? std::string() : (own.parent_path() / "intaglio-serve").string();
  if (!beside.empty()) ::execv(beside.c_str(), argv + 1);
  ::execvp("intaglio-serve", argv + 1);
  throw input_error("serve: expected the program intaglio-serve beside this one or on the PATH, found none");
}

int guarded(int argc, char** argv) {
  const auto end = [](exit_code code, const char* what) {
    try {
      flush_output();                  // what came before the error
    } catch (const std::exception&) {  // the first error counts
    }
    show_error(what);
    return static_cast<int>(code);
  };
  try {
    if (argc > 1 && std::string_view(argv[1]) == "serve") become_server(argv);
    return static_cast<int>(command_line().run(argc, argv));
  } catch (const stage_served&) { return 0; } catch (const interrupted& stop) {
    try {
      flush_output();
    } catch (const std::exception&) {}
    return 128 + stop.signal;
  } catch (const device_error& error) {
    return end(exit_code::device, error.what());
  } catch (const argument_error& error) { return end(exit_code::usage, error.what()); } catch (const error& problem) {
    return end(exit_code::bad_input, error_text(problem.what(), problem.details()).c_str());
  } catch (const std::bad_alloc&) {
    return end(exit_code::bad_input, "out of host memory");
  } catch (const std::exception& error) { return end(exit_code::bad_input, error.what()); }
}

}  // namespace

int main(int argc, char** argv) {
  intaglio::tool::watch_signals();
  const int code = guarded(argc, argv);
  intaglio::tool::show_notes();
  intaglio::tool::end_ranks(code);
  return code;
}
