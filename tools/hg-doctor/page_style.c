/* How the page looks: two schemes of colours, one column, no font of its own. */
#include "page.h"

const char *const page_style[] = {
    ":root{color-scheme:light dark;--paper:#f7f6f2;--card:#fff;--ink:#1c1d21;--soft:#6b6962;--line:#e2dfd6;--grid:#eeece5;--bar:#4263eb;--bar2:#a5a39b;"
    "--bad:#c92a2a;--badbg:#fdeaea;--warn:#b35900;--warnbg:#fdf1da;--good:#237a36;--goodbg:#e4f5e6;--accent:#364fc7;--accentbg:#e9edfd}\n",
    "@media (prefers-color-scheme:dark){:root{--paper:#121316;--card:#1a1c20;--ink:#e9e8e4;--soft:#9b9992;--line:#2f3238;--grid:#25282d;--bar:#748ffc;"
    "--bar2:#6b6a66;--bad:#ff8a8a;--badbg:#3d1f22;--warn:#ffbe6b;--warnbg:#3a2d16;--good:#86d993;--goodbg:#1b3522;--accent:#91a7ff;--accentbg:#232b47}}\n",
    "*{box-sizing:border-box}\n",
    "body{margin:0;background:var(--paper);color:var(--ink);font:15px/1.55 ui-sans-serif,system-ui,-apple-system,'Segoe UI',Roboto,'Helvetica Neue',Arial,"
    "sans-serif;font-variant-numeric:tabular-nums;-webkit-text-size-adjust:100%}\n",
    "main,header,footer{max-width:1100px;margin:0 auto;padding:0 24px}\n",
    "header{padding-top:40px}footer{padding-top:8px;padding-bottom:56px;color:var(--soft);font-size:13px}\n",
    "h1{font-size:30px;line-height:1.2;font-weight:650;letter-spacing:-.015em;margin:10px 0 12px;text-wrap:balance}\n",
    "h2{font-size:18px;font-weight:650;letter-spacing:-.005em;margin:0 0 2px}h3{font-size:14px;font-weight:650;margin:26px 0 8px}\n",
    "p{margin:0 0 10px;max-width:78ch}.lead{font-size:17px;line-height:1.5}.soft{color:var(--soft)}.small{font-size:13px}\n",
    "code,.mono{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,'Liberation Mono',monospace;font-size:.92em}\n",
    ".brand{display:flex;align-items:center;gap:10px;font-weight:600}.brand svg{width:26px;height:26px;flex:none}\n",
    ".badge{display:inline-block;border-radius:999px;padding:1px 11px;font-size:13px;font-weight:600;white-space:nowrap}\n",
    ".badge.good{background:var(--goodbg);color:var(--good)}.badge.bad{background:var(--badbg);color:var(--bad)}.badge.warn{background:var(--warnbg);"
    "color:var(--warn)}.badge.plain{background:var(--grid);color:var(--soft)}\n",
    ".brand .badge{margin-left:auto}\n",
    ".strip{display:flex;flex-wrap:wrap;gap:1px;background:var(--line);border:1px solid var(--line);border-radius:12px;overflow:hidden;margin:22px 0 4px}\n",
    ".strip div{flex:1 1 150px;background:var(--card);padding:12px 16px}.strip "
    "b{display:block;font-size:20px;line-height:1.25;font-weight:620;letter-spacing:-.01em}\n",
    ".strip span{display:block;color:var(--soft);font-size:12.5px;overflow-wrap:anywhere}\n",
    "section{background:var(--card);border:1px solid var(--line);border-radius:14px;padding:24px 26px;margin:20px 0}\n",
    "section.fault{border-top:3px solid var(--bad)}\n",
    ".two{display:grid;grid-template-columns:minmax(0,5fr) minmax(0,6fr);gap:28px;align-items:start;margin-top:18px}\n",
    "@media (max-width:820px){.two{grid-template-columns:1fr}main,header,footer{padding-left:14px;padding-right:14px}section{padding:18px 16px}}\n",
    "dl{display:grid;grid-template-columns:max-content minmax(0,1fr);gap:7px 18px;margin:0}dt{color:var(--soft)}dd{margin:0;overflow-wrap:anywhere}\n",
    ".remedy{display:grid;grid-template-columns:max-content minmax(0,1fr);gap:2px 14px;padding:11px 0;border-top:1px solid var(--line)}\n",
    ".remedy .badge{grid-row:span 2;align-self:start;min-width:86px;text-align:center;margin-top:1px}.remedy .soft{font-size:13.5px}\n",
    "code.option{background:var(--accentbg);color:var(--accent);border-radius:6px;padding:2px 8px;font-weight:600;overflow-wrap:anywhere}\n",
    ".chain{display:flex;flex-wrap:wrap;gap:6px 0;align-items:center;padding:0;margin:0;list-style:none}.chain li{display:flex;align-items:center}\n",
    ".chain li+li:before{content:'\\2192';color:var(--soft);margin:0 8px}.chain span{border:1px solid var(--line);border-radius:8px;padding:3px 10px;"
    "font-size:13px}.chain .origin{border-color:var(--bad);background:var(--badbg)}.chain i{font-style:normal;color:var(--soft);"
    "margin-left:7px;font-size:12px}\n",
    ".wide{overflow-x:auto;margin-top:14px}.wide>svg{min-width:860px}.reach{margin:12px 0 0}svg{display:block;max-width:100%;height:auto}svg "
    "text{fill:var(--ink);font-size:12px}\n",
    "svg .t2{fill:var(--soft);font-size:11px}svg .halo{paint-order:stroke;stroke:var(--card);stroke-width:4px}svg .end{text-anchor:end}svg "
    ".mid{text-anchor:middle}svg .bold{font-weight:650}\n",
    "svg .grid{stroke:var(--grid);fill:none}svg .axis{stroke:var(--line);fill:none}svg .card{fill:var(--card);stroke:var(--line)}\n",
    "svg .bar{fill:var(--bar)}svg .bar2{fill:var(--bar2)}svg .sub{fill:var(--warn)}svg .over{fill:var(--bad)}\n",
    "svg .subbg{fill:var(--warnbg)}svg .overbg{fill:var(--badbg)}svg .box{fill:var(--grid)}\n",
    "svg .line{stroke:var(--bar);stroke-width:1.8;fill:none;stroke-linejoin:round}svg .scale{stroke:var(--good);stroke-width:1.8;fill:none}\n",
    "svg .skip{stroke:var(--warn);stroke-width:1.5}svg .floor{stroke:var(--bad);stroke-width:1.5}\n",
    "svg .amax{stroke:var(--ink);stroke-width:1.6;fill:none}svg .bound{stroke:var(--soft);stroke-width:1.4;stroke-dasharray:2.5 2;fill:none}\n",
    "svg .edge{stroke:var(--bar2);stroke-width:1.3;fill:none}svg .saved{stroke:var(--line);stroke-dasharray:2 4;fill:none}\n",
    "svg .hot{stroke:var(--bad);stroke-width:2.2;fill:none}svg .node{fill:var(--card);stroke:var(--bar2)}svg .node.hotbox{stroke:var(--bad);stroke-width:2.2;"
    "fill:var(--badbg)}svg .band{fill:var(--paper)}\n",
    "svg .good{fill:var(--good)}svg .warn{fill:var(--warn)}svg .bad{fill:var(--bad)}svg .tip{fill:var(--bar2)}svg .hottip{fill:var(--bad)}\n",
    "svg .num{fill:var(--card);font-size:10.5px;font-weight:700;text-anchor:middle}svg .spoke{stroke:var(--bar);stroke-linecap:round;opacity:.55}\n",
    "svg .more{fill:none;stroke:var(--bar2);stroke-dasharray:3 3}svg .hub{fill:var(--badbg);stroke:var(--bad);stroke-width:2.2}\n",
    "svg .peer{fill:var(--accentbg);stroke:var(--accent)}svg .hit:hover{stroke:var(--ink);stroke-width:2}\n",
    "table{border-collapse:collapse;width:100%;font-size:13.5px}th{text-align:left;font-weight:600;color:var(--soft);font-size:12px;padding:0 12px 5px 0;"
    "vertical-align:bottom}\n",
    "td{padding:5px 12px 5px 0;border-top:1px solid var(--grid);vertical-align:middle}td.r,th.r{text-align:right;padding-right:0}td "
    "svg{min-width:416px}.tensors{table-layout:fixed;min-width:960px}\n",
    "td .who{font-weight:560;overflow-wrap:anywhere}tr.origin td{background:var(--badbg)}tr.origin td:first-child{box-shadow:-10px 0 0 var(--badbg),"
    "inset 3px 0 0 var(--bad);padding-left:12px}\n",
    "td.good{color:var(--good)}td.warn{color:var(--warn)}td.bad{color:var(--bad);font-weight:650}\n",
    ".legend{display:flex;flex-wrap:wrap;gap:4px 20px;font-size:12.5px;color:var(--soft);margin:8px 0 2px}.legend "
    "span{display:flex;align-items:center;gap:7px}\n",
    ".legend svg{flex:none}\n",
    "@media print{body{background:#fff}section{break-inside:avoid}}\n",
    NULL};
