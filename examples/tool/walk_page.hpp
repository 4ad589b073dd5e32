// SPDX-License-Identifier: MIT
// Pages of the walk commands, each one self-contained HTML file: the curve of a sweep, and which features fired as a
// heat map of layers and tokens.
#pragma once

#include "console.hpp"
#include "html_text.hpp"

#include <intaglio/runtime/trace.hpp>
#include <intaglio/runtime/walked_model.hpp>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace intaglio::tool {

struct boundary_point {
  std::uint32_t first_layer;
  runtime::walk_error error;
};
struct count_point {
  std::size_t count;
  runtime::walk_error error;
};

inline constexpr std::string_view walk_page_style = R"css(
:root{--paper:#faf8f4;--ink:#22262b;--soft:#626a73;--line:#ddd8ce;--panel:#fff;--accent:#9a5b2b;--heat:154,91,43;
--second:#3a6fc4;--third:#1f8a7d}
@media(prefers-color-scheme:dark){:root{--paper:#15171a;--ink:#e7e4de;--soft:#989fa8;--line:#33383e;--panel:#1d2024;
--accent:#d9975f;--heat:217,151,95;--second:#6f9ee8;--third:#4fb8ab}}
*{box-sizing:border-box}
body{margin:0;background:var(--paper);color:var(--ink);
font:15px/1.55 system-ui,"Segoe UI","Helvetica Neue",Arial,sans-serif}
main{max-width:1180px;margin:0 auto;padding:44px 28px 72px}
h1{font:600 36px/1.1 Georgia,"Times New Roman",serif;margin:2px 0 10px}
h2{font:600 21px/1.25 Georgia,"Times New Roman",serif;margin:36px 0 6px}
p{max-width:78ch;margin:0 0 12px;color:var(--soft)}
.panel{overflow-x:auto;background:var(--panel);border:1px solid var(--line);border-radius:10px;padding:16px 12px}
svg{display:block}svg text{fill:var(--soft);font-size:11px}
.grid{stroke:var(--line);fill:none}.a{stroke:var(--accent)}.b{stroke:var(--second)}.c{stroke:var(--third)}
.curve{fill:none;stroke-width:2}
.dot{stroke:none}.dot.a{fill:var(--accent)}.dot.b{fill:var(--second)}.dot.c{fill:var(--third)}
svg .name.a{fill:var(--accent);stroke:none}svg .name.b{fill:var(--second);stroke:none}
svg .name.c{fill:var(--third);stroke:none}
table{border-collapse:collapse;font-variant-numeric:tabular-nums;font-size:13px}
td,th{padding:3px 14px 3px 0;text-align:right;border-bottom:1px solid var(--line)}
.map{display:grid;gap:2px;font:11px ui-monospace,Menlo,Consolas,monospace}
.cell{height:20px;border-radius:3px;border:0;padding:0;background:rgba(var(--heat),var(--v));
outline:1px solid var(--line);outline-offset:-1px}
.cell:hover,.cell:focus{outline:2px solid var(--ink)}
.token{writing-mode:vertical-rl;transform:rotate(180deg);white-space:pre;max-height:110px;overflow:hidden}
.layer{color:var(--soft);align-self:center;text-align:right;padding-right:6px}
#detail{position:sticky;bottom:0;min-height:150px;margin-top:14px;background:var(--panel);
border:1px solid var(--line);border-radius:10px;padding:12px 16px;font-size:13px}
code{font:12px ui-monospace,Menlo,Consolas,monospace;background:var(--paper);border:1px solid var(--line);
border-radius:4px;padding:0 4px;white-space:pre}
)css";

inline std::string html_head(const std::string& title) {
  return "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" "
         "content=\"width=device-width, initial-scale=1\">\n<title>" +
         html_escaped(title) + "</title>\n<style>" + std::string(walk_page_style) +
         "</style>\n</head>\n<body>\n<main>\n<h1>" + html_escaped(title) + "</h1>\n";
}

/// Curves over K on a logarithmic axis: agreement and cosine from 0 to 1 at the left, KL on a logarithmic one at the
/// right.
inline std::string sweep_curve(std::size_t features, const std::vector<count_point>& curve) {
  constexpr double left = 48, right = 700, top = 16, bottom = 296;
  const double first = std::log2(static_cast<double>(curve.front().count)),
               last = std::max(first + 1, std::log2(static_cast<double>(features)));
  const auto x = [&](std::size_t k) {
    return left + (std::log2(static_cast<double>(k)) - first) / (last - first) * (right - left);
  };
  const auto y = [&](double share) { return bottom - std::clamp(share, 0., 1.) * (bottom - top); };
  const auto decades = [](double kl) { return (std::log10(std::clamp(kl, 1e-8, 10.)) + 8) / 9; };
  std::string out =
      "<svg role=\"img\" aria-label=\"error against the number of features\" width=\"780\" height=\"340\" viewBox=\"0 "
      "0 780 340\">\n";
  for (int i = 0; i <= 4; ++i)
    out += "<path class=\"grid\" d=\"M" + fixed(left, 1) + " " + fixed(y(i / 4.), 1) + "H" + fixed(right, 1) +
           "\"/><text x=\"" + fixed(left - 8, 1) + "\" y=\"" + fixed(y(i / 4.) + 4, 1) + "\" text-anchor=\"end\">" +
           fixed(i / 4., 2) + "</text>";
  for (int decade = -8; decade <= 1; decade += 3)
    out += "<text x=\"" + fixed(right + 8, 1) + "\" y=\"" + fixed(y(decades(std::pow(10., decade))) + 4, 1) + "\">1e" +
           std::to_string(decade) + "</text>";
  for (const auto& each : curve)
    if ((each.count & (each.count - 1)) == 0 || each.count == features)
      out += "<text x=\"" + fixed(x(each.count), 1) + "\" y=\"314\" text-anchor=\"middle\">" +
             std::to_string(each.count) + "</text>";
  const auto line = [&](const char* style, const char* name, double name_y,
                        const std::function<double(const count_point&)>& of) {
    std::string path, dots;
    for (const auto& each : curve) {
      const std::string px = fixed(x(each.count), 1), py = fixed(y(of(each)), 1);
      path += (path.empty() ? "M" : "L") + px + " " + py;
      dots += std::string("<circle class=\"dot ") + style + "\" cx=\"" + px + "\" cy=\"" + py +
              "\" r=\"3.5\"><title>K = " + std::to_string(each.count) + ": top-1 " +
              fixed(100 * each.error.agreement(), 1) + " %, cosine " + fixed(each.error.cosine, 5) + ", KL " +
              fixed(each.error.divergence, 6) + " nats</title></circle>";
    }
    out += std::string("<path class=\"curve ") + style + "\" d=\"" + path + "\"/>" + dots + "<text class=\"name " +
           style + "\" x=\"" + fixed(left + 12, 1) + "\" y=\"" + fixed(name_y, 1) + "\">" + name + "</text>\n";
  };
  line("a", "top-1 agreement", 34, [](const count_point& p) { return p.error.agreement(); });
  line("b", "cosine of the logits", 50, [](const count_point& p) { return p.error.cosine; });
  line("c", "KL in nats (right axis, logarithmic)", 66,
       [&](const count_point& p) { return decades(p.error.divergence); });
  return out + "<text x=\"374\" y=\"332\" text-anchor=\"middle\">features of each layer</text></svg>\n";
}

inline std::string sweep_page(std::string_view model, std::size_t tokens, std::size_t features,
                              const std::vector<boundary_point>& boundaries, const std::vector<count_point>& curve) {
  const auto table = [](const char* first, const auto& points, const auto& key) {
    std::string out = std::string("<table><tr><th>") + first +
                      "</th><th>same top-1</th><th>relative error</th><th>cosine</th><th>KL, nats</th></tr>\n";
    char text[128];
    for (const auto& each : points) {
      std::snprintf(text, sizeof text, "<td>%.3e</td><td>%.6f</td><td>%.3e</td></tr>\n", each.error.relative(),
                    each.error.cosine, each.error.divergence);
      out += "<tr><td>" + std::to_string(key(each)) + "</td><td>" + std::to_string(each.error.same_top) + " of " +
             std::to_string(each.error.positions) + "</td>" + text;
    }
    return out + "</table>\n";
  };
  std::string out = html_head("Sparse walk of " + std::string(model));
  out += "<p>The K features of a layer with the largest gate score against all " + std::to_string(features) +
         ", over the logits after " + std::to_string(tokens) + " tokens.</p>\n<div class=\"panel\">" +
         sweep_curve(features, curve) + "</div>\n<h2>Features of a layer</h2>\n" +
         table("K", curve, [](const count_point& p) { return p.count; });
  out += "<h2>Full walk from a layer on</h2>\n<p>Layers below B are dense.</p>\n" +
         table("B", boundaries, [](const boundary_point& p) { return p.first_layer; });
  return out + "</main>\n</body>\n</html>\n";
}

/// A heat map, layers by tokens: the size of what a layer's features added; under the pointer those that added most,
/// and the tokens that they promote.
/// @param pieces of the tokens  @param trace of all of them  @param promoted tokens by (layer, feature)
inline std::string trace_page(
    std::string_view model, const std::vector<std::string>& pieces, const trace_result& trace,
    const std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<std::string>>& promoted) {
  const std::size_t layers = trace.tokens.front().sizes.size();
  float most = 1e-9f;
  for (const traced_token& each : trace.tokens)
    for (const float value : each.sizes) most = std::max(most, value);
  std::string out = html_head("Features of " + std::string(model));
  out +=
      "<p>The size of what each layer's features add to the stream at each token, each by itself, darker for more. "
      "Point at a cell, or walk there with the tab key, for its features: gate score, the size of what it "
      "adds, "
      "and the tokens that its down vector promotes.</p>\n<div class=\"panel\"><div class=\"map\" "
      "style=\"grid-template-columns:56px repeat(" +
      std::to_string(pieces.size()) + ",minmax(20px,1fr))\">\n";
  for (std::size_t layer = layers; layer-- > 0;) {
    out += "<div class=\"layer\">layer " + std::to_string(layer) + "</div>";
    for (std::size_t at = 0; at < pieces.size(); ++at)
      out += "<button class=\"cell\" style=\"--v:" + fixed(std::sqrt(trace.tokens[at].sizes[layer] / most), 3) +
             "\" data-d=\"d" + std::to_string(at) + "-" + std::to_string(layer) + "\" aria-label=\"layer " +
             std::to_string(layer) + ", token " + std::to_string(at) + "\"></button>";
    out += "\n";
  }
  out += "<div></div>";
  for (const auto& each : pieces) out += "<div class=\"token\">" + html_escaped(each) + "</div>";
  out += "</div></div>\n<div id=\"detail\">\u00a0</div>\n";
  std::map<std::pair<std::size_t, std::size_t>, std::string> details;
  for (std::size_t at = 0; at < trace.tokens.size(); ++at)
    for (std::uint32_t layer = 0; layer < layers; ++layer)
      for (const fired_feature& each : trace.tokens[at].layers[layer]) {
        std::string tokens;
        if (const auto found = promoted.find({layer, each.feature}); found != promoted.end())
          for (const auto& token : found->second) tokens += " <code>" + html_escaped(token) + "</code>";
        details[{at, layer}] += "<tr><td>" + std::to_string(each.feature) + "</td><td>" + fixed(each.score, 3) +
                                "</td><td>" + fixed(each.contribution, 3) + "</td><td style=\"text-align:left\">" +
                                tokens + "</td></tr>";
      }
  for (const auto& [at, rows] : details)
    out += "<template id=\"d" + std::to_string(at.first) + "-" + std::to_string(at.second) + "\"><b>layer " +
           std::to_string(at.second) + "</b>, token " + std::to_string(at.first) + " <code>" +
           html_escaped(pieces[at.first]) +
           "</code><table><tr><th>feature</th><th>gate score</th><th>adds</th><th "
           "style=\"text-align:left\">promotes</th></tr>" +
           rows + "</table></template>\n";
  out +=
      "<script>const d=document.getElementById('detail');for(const b of document.querySelectorAll('.cell'))for(const e "
      "of ['pointerenter','focus'])b.addEventListener(e,()=>{const "
      "t=document.getElementById(b.dataset.d);d.replaceChildren(t?t.content.cloneNode(true):'nothing fired "
      "here')})</script>\n";
  return out + "</main>\n</body>\n</html>\n";
}

}  // namespace intaglio::tool
