// SPDX-License-Identifier: MIT
// A cut plan as one self-contained HTML page: the passes of the stages side by side in time, then each stage's sequence
// in a lane of its own, with what crosses between two lanes.
#pragma once

#include <intaglio/plan/explain_cut.hpp>

#include "plan_drawing.hpp"

#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace intaglio::tool {

/// Writes the page of one cut.
class cut_page : plan_drawing {
 public:
  using stage_list = std::span<const std::shared_ptr<const plan::stage>>;
  /// @param devices as in plan::explain_cut
  cut_page(stage_list stages, std::span<const std::string> devices, std::string_view model)
      : stages_(stages), devices_(devices), model_(model) {}

  std::string text() const {
    const plan::table& first = stages_.front()->table();
    const bool resident = std::any_of(stages_.begin(), stages_.end(),
                                      [](const auto& each) { return !each->table().resident_decode.resident.empty(); });
    std::string out = head(model_ + ", cut into " + std::to_string(stages_.size()) + " stages") + header() +
                      tabs(resident, first.prefill.max_tokens) + section_of("decode", &plan::table::decode);
    if (resident) out += section_of("resident_decode", &plan::table::resident_decode);
    out += section_of("prefill", &plan::table::prefill);
    for (std::size_t i = 0; i < stages_.size(); ++i) out += memory(stages_[i]->table(), " of " + short_name(i));
    return out + "</main>\n</body>\n</html>\n";
  }

 private:
  static constexpr double lane_height = 58, lane_left = 132, crossing_width = 28, crossing_height = 44;

  std::string title(std::size_t index) const {
    return plan::explanation::stage_title(index, *stages_[index], devices_);
  }
  static std::string short_name(std::size_t index) { return "stage " + std::to_string(index); }
  /// A stage without a resident dispatch runs its chain.
  const plan::sequence& sequence_of(std::size_t index, plan::sequence plan::table::*which) const {
    const plan::table& t = stages_[index]->table();
    return (t.*which).layers != 0 ? t.*which : t.decode;
  }

  std::string header() const {
    std::string out = "<header><p class=\"mark\">intaglio plan</p><h1>" + html_escaped(model_) + "</h1>";
    for (std::size_t i = 0; i < stages_.size(); ++i) out += "<p>" + html_escaped(title(i)) + ".</p>";
    out += "<div class=\"figures\">" + figure(std::to_string(stages_.size()), "stages");
    for (std::size_t i = 0; i < stages_.size(); ++i)
      out += figure(size_text(stages_[i]->table().decode.weight_bytes()), "weights read a token, " + short_name(i));
    return out +
           figure(size_text(plan::crossing_of(stages_[0]->table(), stages_[0]->table().decode).bytes()),
                  "cross a cut a token") +
           "</div></header>\n";
  }

  std::string section_of(const std::string& id, plan::sequence plan::table::*which) const {
    const bool chunks = which == &plan::table::prefill;
    std::string out =
        "<section id=\"" + id + "\">\n<h2>The stages side by side in time</h2>\n<p>Time runs to the right. A box is " +
        "one pass of a stage, as wide as the weights that it reads. A line is what crosses to the next stage" +
        (chunks ? "; a stage computes a chunk while the next stage computes the chunk before.</p>\n"
                : "; the token that the last stage samples is the input of the first stage's next pass.</p>\n");
    out += "<div class=\"scroll\">" + schedule(which) + "</div>\n<h2>The sequence of each stage</h2>\n<p>The lanes " +
           "are one below the other, and each begins where the lane above it ends. Bars are the weights that a " +
           "dispatch reads in one pass.</p>\n<div class=\"scroll\">" + lanes(which) + "</div>\n";
    for (std::size_t i = 0; i < stages_.size(); ++i)
      out += "<p>" + html_escaped(title(i)) + "</p>" + listing(columns(sequence_of(i, which)), nullptr);
    return out + "</section>\n";
  }

  static std::string crossing_line(double x, double y, double to_x, double to_y, const std::string& tip) {
    return "<path class=\"crossing\" d=\"M" + px(x) + " " + px(y) + " L" + px(to_x) + " " + px(to_y) + "\"><title>" +
           html_escaped(tip) + "</title></path>";
  }
  std::string crossing_text(std::size_t index, plan::sequence plan::table::*which) const {
    const plan::table& t = stages_[index]->table();
    const plan::crossing rows = plan::crossing_of(t, sequence_of(index, which));
    return plan::explanation::number(rows.bytes()) + " bytes, " + plan::explanation::crossing_wait(index, rows);
  }

  /// Some passes of all stages. A decode pass waits for the token of the pass before it.
  std::string schedule(plan::sequence plan::table::*which) const {
    const bool chunks = which == &plan::table::prefill;
    const std::size_t passes = chunks ? 4 : 2, count = stages_.size();
    double largest = 1;
    for (std::size_t i = 0; i < count; ++i)
      largest = std::max(largest, static_cast<double>(sequence_of(i, which).weight_bytes()));
    std::vector<double> free_at(count, lane_left);
    double token_at = lane_left;
    std::string boxes, lines;
    for (std::size_t pass = 0; pass < passes; ++pass) {
      double ready = chunks ? lane_left : token_at;
      for (std::size_t i = 0; i < count; ++i) {
        const double y = static_cast<double>(i) * lane_height, x = std::max(ready, free_at[i]);
        const double wide = 64 + 160 * static_cast<double>(sequence_of(i, which).weight_bytes()) / largest;
        const std::string name = (chunks ? "chunk " : "token ") + std::to_string(pass + 1);
        boxes += box(x, y + 6, wide, lane_height - 14, "pass", name + ", " + short_name(i)) +
                 label(x + 10, y + lane_height / 2 + 3, "kernel", name);
        free_at[i] = x + wide;
        ready = x + wide + crossing_width;
        if (i + 1 < count)
          lines += crossing_line(x + wide, y + lane_height / 2, std::max(ready, free_at[i + 1]), y + lane_height * 1.5,
                                 crossing_text(i, which));
      }
      token_at = ready;
      if (!chunks && pass + 1 < passes)
        lines += crossing_line(ready - crossing_width, (static_cast<double>(count) - 0.5) * lane_height, ready,
                               lane_height / 2, "the sampled token, the host waits for it");
    }
    std::string out;
    const double width = *std::max_element(free_at.begin(), free_at.end()) + gap,
                 height = static_cast<double>(count) * lane_height;
    for (std::size_t i = 0; i < count; ++i) {
      const double y = static_cast<double>(i) * lane_height;
      out += box(lane_left, y + 2, width - lane_left, lane_height - 6, "period") +
             label(lane_left - 12, y + lane_height / 2, "axis", short_name(i)) +
             label(lane_left - 12, y + lane_height / 2 + 14, "axis",
                   "layers " + std::to_string(stages_[i]->layers().first) + " to " +
                       std::to_string(stages_[i]->layers().end - 1));
    }
    return svg_of(out + boxes + lines, width, height, "passes of the stages");
  }

  /// The stages' sequences, one below the other, and what crosses.
  std::string lanes(plan::sequence plan::table::*which) const {
    double scale = 0, x = 0, y = 0, width = 0;
    for (std::size_t i = 0; i < stages_.size(); ++i)
      scale = std::max(scale, largest_of(columns(sequence_of(i, which)), nullptr));
    std::string out;
    for (std::size_t i = 0; i < stages_.size(); ++i) {
      const plan::sequence& s = sequence_of(i, which);
      const drawn lane = picture(s, columns(s), nullptr, scale);
      out += label(x + left, y + 14, "kernel", title(i)) + "<g transform=\"translate(" + px(x) + " " + px(y + 20) +
             ")\">" + lane.svg + "</g>";
      width = std::max(width, x + lane.width);
      x += lane.width - gap, y += lane.height + 20;
      if (i + 1 == stages_.size()) break;
      out += crossing_line(x, y - lane.height, x, y + crossing_height, crossing_text(i, which)) +
             label(x + 8, y + crossing_height / 2 + 4, "crossing-text",
                   plan::explanation::crossing_rows(stages_[i]->table()) + "; " +
                       plan::explanation::crossing_wait(i, plan::crossing_of(stages_[i]->table(), s)));
      width = std::max(width, x + 760);
      x += crossing_width - left, y += crossing_height;
    }
    return svg_of(out, width, y, "sequences of the stages");
  }

  static std::string svg_of(const std::string& content, double width, double height, const std::string& name) {
    return "<svg role=\"img\" aria-label=\"" + name + "\" width=\"" + px(width) + "\" height=\"" + px(height) +
           "\" viewBox=\"0 0 " + px(width) + " " + px(height) + "\">\n" + content + "</svg>";
  }

  stage_list stages_;
  std::span<const std::string> devices_;
  std::string model_;
};

}  // namespace intaglio::tool
