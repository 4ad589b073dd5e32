// SPDX-License-Identifier: MIT
// Commands that compute with a model: run, embed, chat, bench, tune.
#pragma once

#include "bench_variants.hpp"
#include "command_parsers.hpp"
#include "option_groups.hpp"

#include <CLI/CLI.hpp>
#include <functional>
#include <string>

namespace intaglio::tool {

/// Commands that compute with a model: run, embed, chat, bench, tune.
class story_commands : public command_parsers {
 protected:
  void add_story_commands() {
    add_run();
    add_embed();
    add_chat();
    add_bench();
    add_tune();
  }

 private:
  void add_run() {
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
    add_lora(*c, run_.model);
    add_budget(*c, run_.model);
    add_devices(*c, run_.model);
    add_mpi(*c, run_.model);
    auto* prompt = c->add_option("-p,--prompt", run_.prompt,
                                 "text to continue, as it is, after one BOS token where the model wants it; "
                                 "control tokens written in it count as such")
                       ->type_name("TEXT");
    auto* file = c->add_option("-f,--file", run_.file, "file with the text to continue; - is stdin")
                     ->type_name("FILE")
                     ->excludes(prompt);
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
  }
  void add_embed() {
    auto* c = add(
        "embed", "Turn texts into vectors, one JSON object a line", [this] { tool::embed(embed_, common_); },
        "  intaglio embed -m MODEL.gguf --text \"a brave mouse\"\n  intaglio embed -m FOLDER --text \"a mouse\" --text "
        "\"a cat\" --pooling mean\n  cat notes.txt | intaglio embed -m MODEL.gguf --file -\n\n"
        "Prints {\"embedding\": [...], \"tokens\": N} for each text: the states of its tokens after the last norm, "
        "pooled. A text is fed between\nthe tokens that the model's tokenizer puts around one.");
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
  }
  void add_chat() {
    auto* c = add(
        "chat", "Talk with the model; /help shows the commands, /quit leaves, Ctrl-C stops a reply",
        [this] { tool::chat(chat_, common_); },
        "  intaglio chat\n  intaglio chat -m MODEL.gguf --system \"You are a pirate.\" --temperature 0.7\n\n"
        "Commands: /system /reset /retry /save /load /stats /model /help /quit. On a terminal lines are edited and "
        "kept between runs, in\n"
        "$XDG_STATE_HOME/intaglio/chat_history.");
    add_model(*c, chat_.model);
    add_context(*c, chat_.model);
    add_codec(*c, chat_.model);
    add_lora(*c, chat_.model);
    add_budget(*c, chat_.model);
    add_devices(*c, chat_.model);
    c->add_option("--system", chat_.system, "system message")->type_name("TEXT");
    c->add_option("-n,--tokens", chat_.tokens, "tokens a reply at most")->type_name("N");
    add_sampling(*c, chat_.sampling);
  }
  void add_bench_lengths(CLI::App& to) {
    to.add_option("-p,--prompt", bench_.prompt, "tokens of the prompt; cut to what the context takes")
        ->type_name("N")
        ->capture_default_str();
    to.add_option("--chunk", bench_.chunk, "tokens of the prompt fed at once; by default the plan's")
        ->type_name("N")
        ->check(counts_from_one);
    to.add_option("-n,--tokens", bench_.tokens, "tokens to decode")->type_name("N")->capture_default_str();
    to.add_option("--context", bench_.context, "tokens in the KV cache before decode is measured")
        ->type_name("N")
        ->capture_default_str();
    to.add_option("--positions", bench_.positions,
                  "positions that the KV cache has room for; by default the model's, at most 16,384")
        ->type_name("N")
        ->check(counts_from_one);
  }
  void add_bench() {
    auto* c = add(
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
    add_devices(*c, bench_.model, "; measures the whole, and each stage's part of a token");
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
                  "with --synthetic: share of gates that are zero after a ReLU, 0 to 1; by default about half")
        ->type_name("X")
        ->check(CLI::Range(0.0, 1.0))
        ->needs(synthetic);
    c->add_option("--weights", bench_.storage,
                  "where the device reads the weights of a packed file: in its memory (copied), where the file is "
                  "mapped (mapped), the FFNs' alone there\n"
                  "(features_mapped); by default mapped where host and device share memory")
        ->type_name("MEMORY")
        ->check(CLI::IsMember({"automatic", "copied", "mapped", "features_mapped"}))
        ->excludes(synthetic);
    std::string pairs = "compare two ways to decode, run in turns; may be given again:";
    for (const ab_pair& each : ab_pairs) pairs += "\n" + std::string(each.name) + ": " + std::string(each.about);
    c->add_option("--ab", bench_.ab, pairs)
        ->type_name("VARIANT")
        ->take_all()
        ->allow_extra_args(false)
        ->check(CLI::IsMember(ab_names()));
    add_bench_lengths(*c);
    add_cache_type(*c, bench_.model.cache_type);
    c->add_option("-r,--runs", bench_.runs, "runs, of which the median counts")
        ->type_name("N")
        ->check(CLI::Range(1u, 1000u))
        ->capture_default_str();
    c->add_flag("--json", bench_.json, "one JSON object");
    c->add_option("--html", bench_.html, "write the plan's page with the measured times too")->type_name("FILE");
  }
  void add_tune() {
    auto* c = add(
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

  embed_command_options embed_;
  run_options run_;
  chat_options chat_;
  bench_options bench_;
  tune_options tune_;
};

}  // namespace intaglio::tool
