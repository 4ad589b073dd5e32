// SPDX-License-Identifier: MIT
// Commands on the features of FFNs: walk and its own, fold.
#pragma once

#include "file_commands.hpp"
#include "option_groups.hpp"

#include <CLI/CLI.hpp>
#include <functional>

namespace intaglio::tool {

/// Commands on the features of FFNs: walk and its own, fold.
class walk_commands : public file_commands {
 protected:
  void add_walk_commands() {
    walk_parser_ = app_.add_subcommand(
        "walk", "Read, trace, search and edit the features of a model's FFNs, over an index of them");
    walk_parser_->require_subcommand(1);
    walk_parser_->footer(
        "INDEX is a folder of `intaglio index`, MODEL the model that it was made of. What `walk edit` changed counts "
        "unless --base is given.\nWalks run on the CPU reference, exact, not fast; `trace --on-device` decodes on the "
        "device.");
    add_walks();
    add_router();
    add_edit();
    add_fold();
  }

 private:
  CLI::App* command(const char* name, const char* description, void (*work)(const walk_options&),
                    const char* examples) {
    CLI::App* c = add(
        *walk_parser_, name, description,
        [this, work] {
          walk_.common = common_;
          work(walk_);
        },
        examples);
    c->add_option("INDEX", walk_.index, "folder of the index")->required();
    add_model(*c, walk_.model);
    add_codec(*c, walk_.model);
    auto* text =
        c->add_option("-p,--prompt", walk_.prompt, "text, after the model's BOS token; default: Once upon a time")
            ->type_name("TEXT");
    c->add_option("--ids", walk_.ids, "the same as token ids: 1,2,3")->type_name("LIST")->excludes(text);
    c->add_flag("--base", walk_.base, "the index as it was made, without its journal");
    c->add_flag("--json", walk_.json, "one JSON object or array");
    return c;
  }
  void add_walks() {
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
    tokens(*c, "tokens after the prompt");
    count(*c, "features of the sparse walk; default: a quarter");
    c->add_flag("--hnsw", walk_.hnsw, "recall@10 and time of the graph over the gates against plain search");
    c = command("sweep", "Error of walks against dense: full from layer B on, and sparse for growing K", walk_sweep,
                "  intaglio walk sweep index -m MODEL.gguf --html curve.html");
    tokens(*c, "tokens after the prompt");
    page(*c, "write the curve as a page");
    command("memory", "Memory without the dense FFN against all of it", walk_memory,
            "  intaglio walk memory index -m MODEL.gguf");
    c = command("knn", "The features nearest to the gate input after a text", walk_knn,
                "  intaglio walk knn index -m MODEL.gguf -p \"the cat\" --layer 4 --top 5");
    c->add_option("--layer", walk_.layer, "one layer alone")->type_name("N");
    c->add_option("--top", walk_.top, "features of a layer")->type_name("N")->capture_default_str();
    auto* graph = c->add_flag("--hnsw", walk_.hnsw,
                              "search by the graph of `index --hnsw`; recall and time against plain search are shown");
    c->add_flag("--each", walk_.each, "after every token of the text, not the last alone");
    c->add_flag("--on-device", walk_.on_device,
                "score the gates on the device (--device names one), all tokens at once")
        ->excludes(graph);
    c = command("trace", "Which features fired, by token and layer, with gate score and what they add", walk_trace,
                "  intaglio walk trace index -m MODEL.gguf -p \"the cat\" --html trace.html");
    tokens(*c, "tokens after the prompt");
    count(*c, "features of a layer that are walked; default: all that are not off");
    c->add_option("--top", walk_.top, "features of a token and layer, those that add most; on a device 64 at most")
        ->type_name("N")
        ->capture_default_str();
    c->add_flag("--on-device", walk_.on_device,
                "decode on the device, which names the features that fired among all of them");
    page(*c, "write a heat map, layers by tokens, instead of JSON");
  }
  void add_router() {
    auto* c = add(
        *walk_parser_, "router",
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
                                      "run: text, after the model's BOS token; default: Once upon a time")
                            ->type_name("TEXT");
    c->add_option("--ids", walk_router_.ids, "run: the same as token ids: 1,2,3")
        ->type_name("LIST")
        ->excludes(routed_text);
    c->add_option("-n,--tokens", walk_router_.tokens, "run: new tokens")->type_name("N")->capture_default_str();
    c->add_flag("--base", walk_router_.base, "run: the index as it was made, without its journal");
    c->add_flag("--json", walk_router_.json, "one JSON object");
  }
  void add_edit() {
    auto* c = add(
        *walk_parser_, "edit", "Insert, update, remove or restore features; the index itself stays as it is",
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
    c->add_option("--feature", walk_edit_.feature,
                  "its number; by default an inserted one goes where the index has room")
        ->type_name("N");
    auto* vectors = c->add_option("--vectors", walk_edit_.vectors,
                                  "JSON file with gate, up and down as arrays of hidden_size numbers")
                        ->type_name("FILE");
    auto* text = c->add_option("-p,--prompt", walk_edit_.prompt, "text after which the feature fires")
                     ->type_name("TEXT")
                     ->excludes(vectors);
    c->add_option("--says", walk_edit_.says, "text whose first token the feature makes the likeliest after the prompt")
        ->type_name("TEXT")
        ->needs(text);
    c->add_option("--strength", walk_edit_.strength, "size of what it writes; ternary models have scales of their own")
        ->type_name("X")
        ->capture_default_str();
    c->add_flag("--json", walk_edit_.json, "one JSON object");
  }
  void add_fold() {
    auto* c = add(
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

  CLI::App* walk_parser_ = nullptr;
  walk_options walk_;
  walk_edit_options walk_edit_;
  walk_router_options walk_router_;
  fold_options fold_;
};

}  // namespace intaglio::tool
