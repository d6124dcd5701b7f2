/** Everything is in the page: it asks no host for anything, and its policy forbids it to. */
const policy = "default-src 'none'; style-src 'unsafe-inline'";

const style = `
:root { color-scheme: light dark; --ink: #1c2024; --paper: #fff; --faint: #6b7480; --rule: #d8dde3;
  --demand: #4c8dd6; --denied: #d64550; --now: #b58a2c; --limit: #7a4fc4; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e9ed; --paper: #15181c; --faint: #97a1ad; --rule: #343a42;
  --demand: #5fa0ea; --denied: #f0626c; --now: #d9b155; --limit: #b08cf0; } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper);
  max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.15rem; margin-top: 2.2rem; }
table { border-collapse: collapse; width: 100%; } th, td { padding: .25rem .6rem; border-bottom: 1px solid var(--rule);
  text-align: left; } th.n, td.n { text-align: right; font-variant-numeric: tabular-nums; }
td { overflow-wrap: anywhere; } figure { margin: 1rem 0; } svg { width: 100%; height: auto; }
small, text, .faint { color: var(--faint); fill: var(--faint); font-size: 12px; }
.cards { display: grid; grid-template-columns: repeat(auto-fit, minmax(10.5rem, 1fr)); gap: .75rem; margin: 1.2rem 0; }
.cards > div { border: 1px solid var(--rule); border-radius: .5rem; padding: .7rem .9rem; } .cards dd { margin: 0; }
.cards dt { color: var(--faint); font-size: 13px; }
.big { font-size: 1.7rem; font-variant-numeric: tabular-nums; } .bad { color: var(--denied); }
.grid { stroke: var(--rule); } .limit { stroke: var(--limit); stroke-dasharray: 6 4; } .mark { stroke: var(--limit); }
polyline { fill: none; stroke-width: 1.6; } polygon { stroke: none; }
polyline.demand, polyline.curve { stroke: var(--demand); } polyline.denied { stroke: var(--denied); }
polyline.denied-now { stroke: var(--now); stroke-width: 1; opacity: .8; } polygon.demand { fill: var(--demand); opacity: .35; }
polygon.denied { fill: var(--denied); opacity: .7; }
.key { display: inline-block; width: .8em; height: .8em; margin: 0 .3em 0 .8em; background: var(--demand); }
.key.denied { background: var(--denied); } .key.denied-now { background: var(--now); }
li { margin: .3rem 0; }`;

/** A whole page; `title` and `body` are HTML already. */
export function renderPage(title: string, body: string): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title}</title>
<style>${style}
</style>
</head>
<body>
${body}
</body>
</html>
`;
}

/** Columns whose name begins with `#` hold numbers. Cells are HTML already. */
export function renderHtmlTable(columns: readonly string[], rows: readonly (readonly string[])[]): string {
  const kind = (index: number): string => (columns[index]!.startsWith("#") ? ' class="n"' : "");
  const head = columns.map((name, index) => `<th${kind(index)}>${name.replace("#", "")}</th>`).join("");
  const body = rows.map((row) => `<tr>${row.map((cell, index) => `<td${kind(index)}>${cell}</td>`).join("")}</tr>`);
  return `<table><thead><tr>${head}</tr></thead><tbody>${body.join("\n")}</tbody></table>`;
}
