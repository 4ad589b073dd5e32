// SPDX-License-Identifier: MIT
// A plan as one self-contained HTML page: the sequence dispatch by dispatch, the arena over time below it, fusions,
// memory.
#pragma once

#include "plan_drawing.hpp"

#include <algorithm>
#include <string>
#include <vector>

namespace intaglio::tool {

/// Writes the page of one plan.
class plan_page : plan_drawing {
 public:
  plan_page(const plan::table& of, std::string_view model, std::vector<measured_times> times)
      : table_(of), model_(model), times_(std::move(times)) {}

  std::string text() const {
    std::string out = head(model_ + ", engraved for " + std::string(table_.profile)) + header();
    const bool resident = !table_.resident_decode.resident.empty();
    out += tabs(resident, table_.prefill.max_tokens) + section_of(table_.decode);
    if (resident) out += section_of(table_.resident_decode);
    out += section_of(table_.prefill);
    out += memory(table_) + rules() + "</main>\n</body>\n</html>\n";
    return out;
  }

 private:
  const measured_times* measured(const plan::sequence& s, std::size_t count) const {
    for (const auto& each : times_)
      if (each.sequence == s.name && each.microseconds.size() == count) return &each;
    return nullptr;
  }

  std::string header() const {
    const decoder_config& c = *table_.config;
    std::string out = "<header><p class=\"mark\">intaglio plan</p><h1>" + html_escaped(model_) + "</h1><p>" +
                      std::to_string(c.num_hidden_layers) + " layers of width " + std::to_string(c.hidden_size) +
                      ", feed-forward " + std::to_string(c.intermediate_size) + ", " +
                      std::to_string(c.num_attention_heads) + " heads on " + std::to_string(c.num_key_value_heads) +
                      ", vocabulary " + std::to_string(c.vocab_size) + ". Laid out by the compiler for profile <em>" +
                      html_escaped(table_.profile) +
                      "</em>; every layer of a kind replays the same period.</p><div class=\"figures\">";
    out += figure(std::to_string(table_.decode.dispatch_count()), "dispatches a token");
    out += figure(std::to_string(table_.decode.block(0).size()), "dispatches a layer");
    out += figure(std::to_string(table_.decode.barrier_count()), "barriers a token");
    out += figure(size_text(table_.decode.weight_bytes()), "weights read a token");
    out += figure(size_text(table_.arena_bytes()), "arena");
    return out + "</div></header>\n";
  }

  std::string section_of(const plan::sequence& s) const {
    const auto all = columns(s);
    const measured_times* const times = measured(s, all.size());
    std::string out = "<section id=\"" + std::string(s.name) +
                      "\">\n<h2>The sequence, and the arena below it</h2>\n<p>Time runs to the right. A line at the "
                      "left of a card is a barrier; the device waits nowhere else. ";
    out += times != nullptr ? "Bars are times in one pass, measured on " + html_escaped(times->device) +
                                  (s.max_tokens == 1 ? "; the dashed line is how long a streaming read of the same "
                                                       "weights takes, the percentage how near that is."
                                                     : ".")
                            : "Bars are the weights that a dispatch reads in one pass.";
    out +=
        " In the arena a value holds its bytes from the dispatch that writes it to the last that reads it; others take "
        "them over.</p>\n";
    out += "<div class=\"scroll\">" + picture(s, all, times).svg + "</div>\n" + legend(all) + listing(all, times) +
           "</section>\n";
    return out;
  }

  std::string rules() const {
    std::string out = "<h2>Fusions: what was merged, and why</h2><div class=\"rules\">";
    for (std::size_t i = 1; i < plan::rules.size(); ++i) {
      const auto& rule = plan::rules[i];
      std::string where;
      for (const auto* s : {&table_.decode, &table_.prefill})
        for (const auto& each : columns(*s))
          if (const auto its = rules_of(*each.call); std::find(its.begin(), its.end(), i) != its.end())
            where += (where.empty() ? "" : ", ") + std::string(s->name) + " " + std::string(each.call->label.view());
      out += "<article" + std::string(where.empty() ? " class=\"unused\"" : "") + "><h3>" + std::string(rule.name) +
             "</h3><p class=\"merges\">" + html_escaped(rule.merges) + "</p><p>" + html_escaped(rule.reason) +
             ".</p><p class=\"where\">" + (where.empty() ? "no dispatch of these sequences" : html_escaped(where)) +
             "</p></article>";
    }
    return out + "</div>\n";
  }

  const plan::table& table_;
  std::string model_;
  std::vector<measured_times> times_;
};

}  // namespace intaglio::tool
