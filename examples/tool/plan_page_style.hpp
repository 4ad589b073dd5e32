// SPDX-License-Identifier: MIT
// The style sheet of the plan's page.
#pragma once

#include <string_view>

namespace intaglio::tool {

inline constexpr std::string_view plan_page_style = R"css(
:root{--paper:#faf8f4;--ink:#22262b;--soft:#626a73;--line:#ddd8ce;--panel:#fff;--wash:#f1ede4;--accent:#9a5b2b;
--embed:#71808f;--norm_quantize:#c98a25;--ternary_matmul:#3a6fc4;--ternary_float:#5a52b8;--attention:#a3518f;
--dense_matmul:#1f8a7d;--sample:#c2454f}
@media(prefers-color-scheme:dark){:root{--paper:#15171a;--ink:#e7e4de;--soft:#989fa8;--line:#33383e;--panel:#1d2024;
--wash:#1a1d20;--accent:#d9975f;
--embed:#8fa0b1;--norm_quantize:#e0a84a;--ternary_matmul:#6f9ee8;--ternary_float:#948ce6;--attention:#cf84bb;
--dense_matmul:#4fb8ab;--sample:#e57a82}}
*{box-sizing:border-box}
body{margin:0;background:var(--paper);color:var(--ink);
font:15px/1.55 system-ui,"Segoe UI","Helvetica Neue",Arial,sans-serif}
main{max-width:1480px;margin:0 auto;padding:44px 28px 72px}
h1{font:600 40px/1.1 Georgia,"Times New Roman",serif;margin:2px 0 10px;letter-spacing:-.01em}
h2{font:600 22px/1.25 Georgia,"Times New Roman",serif;margin:44px 0 6px}
h3{font:600 14px ui-monospace,Menlo,Consolas,monospace;margin:0 0 4px}
p{max-width:78ch;margin:0 0 12px;color:var(--soft)}
.mark{font-size:12px;letter-spacing:.14em;text-transform:uppercase;color:var(--accent);margin:0}
em{font-style:normal;color:var(--ink)}
.figures{display:flex;flex-wrap:wrap;gap:14px 40px;margin:22px 0 30px;padding:18px 0;border-block:1px solid var(--line)}
.figures b{display:block;font:600 26px/1.2 Georgia,"Times New Roman",serif}
.figures span{color:var(--soft);font-size:13px}
input[name=tab]{position:absolute;opacity:0}
nav{display:flex;gap:4px}
nav label{padding:7px 16px;border:1px solid var(--line);border-radius:7px;color:var(--soft);cursor:pointer}
#tab-decode:checked~nav label[for=tab-decode],#tab-resident_decode:checked~nav label[for=tab-resident_decode],
#tab-prefill:checked~nav label[for=tab-prefill]{background:var(--ink);border-color:var(--ink);color:var(--paper)}
#tab-decode:focus-visible~nav label[for=tab-decode],
#tab-resident_decode:focus-visible~nav label[for=tab-resident_decode],
#tab-prefill:focus-visible~nav label[for=tab-prefill]{outline:2px solid var(--accent);outline-offset:2px}
#tab-decode:checked~#prefill,#tab-decode:checked~#resident_decode,#tab-resident_decode:checked~#decode,
#tab-resident_decode:checked~#prefill,#tab-prefill:checked~#decode,
#tab-prefill:checked~#resident_decode{display:none}
section h2{margin-top:26px}
.scroll{overflow-x:auto;background:var(--panel);border:1px solid var(--line);border-radius:10px;padding:16px 12px}
svg{display:block;font-family:system-ui,"Segoe UI",Arial,sans-serif}
svg text{fill:var(--ink);font-size:12px}
svg .kernel{font-weight:600}
svg .number{fill:var(--soft);font-size:11px;text-anchor:end}
svg .tensors{font:11px ui-monospace,Menlo,Consolas,monospace}
svg .small{fill:var(--soft);font-size:11px}
svg .axis{fill:var(--soft);font-size:11px;text-anchor:end}
svg .bracket-text{fill:var(--soft);text-anchor:middle}
svg .bar-text{fill:var(--soft);font-size:11px;text-anchor:middle}
.bracket{fill:none;stroke:var(--soft)}
.period{fill:var(--wash)}
.pass{fill:var(--accent);fill-opacity:.17;stroke:var(--accent)}
.crossing{fill:none;stroke:var(--accent);stroke-width:1.5;stroke-dasharray:5 3}
svg .crossing-text{fill:var(--accent)}
.grid{stroke:var(--line);stroke-dasharray:2 4}
.barrier{stroke:var(--ink);stroke-width:2.5;stroke-linecap:round}
.limit{stroke:var(--ink);stroke-width:1.5;stroke-dasharray:5 3}
.card{fill-opacity:.16;stroke-width:1.2}
.bar{fill-opacity:.8}
.value{fill:var(--accent);fill-opacity:.17;stroke:var(--accent);stroke-opacity:.75}
svg .value-text{font-size:11px}
.embed{fill:var(--embed);stroke:var(--embed);background:var(--embed)}
.norm_quantize,.rms_norm{fill:var(--norm_quantize);stroke:var(--norm_quantize);background:var(--norm_quantize)}
.ternary_matmul,.ternary_rows{fill:var(--ternary_matmul);stroke:var(--ternary_matmul);background:var(--ternary_matmul)}
.ternary_float{fill:var(--ternary_float);stroke:var(--ternary_float);background:var(--ternary_float)}
.attention{fill:var(--attention);stroke:var(--attention);background:var(--attention)}
.dense_matmul,.dense_rows{fill:var(--dense_matmul);stroke:var(--dense_matmul);background:var(--dense_matmul)}
.sample{fill:var(--sample);stroke:var(--sample);background:var(--sample)}
.bar{stroke:none}
.legend{display:flex;flex-wrap:wrap;gap:6px 20px;margin:12px 2px;font-size:13px;max-width:none}
.legend i{display:inline-block;width:11px;height:11px;border-radius:3px;margin-right:7px}
.legend .wait{width:3px;background:var(--ink);vertical-align:-2px;height:14px}
details{margin-top:4px;color:var(--soft)}
summary{cursor:pointer;margin-bottom:10px}
table{border-collapse:collapse;font-size:13px;color:var(--ink);width:100%}
th{font-weight:600;text-align:left;color:var(--soft)}
th,td{padding:5px 14px 5px 4px;border-bottom:1px solid var(--line);white-space:nowrap;font-variant-numeric:tabular-nums}
.stack{display:flex;height:26px;gap:2px;border-radius:6px;overflow:hidden;margin-top:14px}
.stack div{min-width:3px}
.part0{background:var(--ternary_matmul)}.part1{background:var(--attention)}.part2{background:var(--accent)}
.part3{background:var(--embed)}
.rules{display:grid;grid-template-columns:repeat(auto-fill,minmax(270px,1fr));gap:14px;margin-top:14px}
article{background:var(--panel);border:1px solid var(--line);border-radius:10px;padding:16px 18px}
article p{margin:0 0 6px;font-size:14px}
.merges{color:var(--ink)}
.where{font:11.5px/1.5 ui-monospace,Menlo,Consolas,monospace;color:var(--accent);overflow-wrap:anywhere;margin-top:8px}
.unused{opacity:.6}
)css";

}  // namespace intaglio::tool
