import type { HotKeysBody } from "@sluice/protocol/admin";
import type { Paint } from "../terminal/paint.ts";
import { renderBar } from "../terminal/progress-line.ts";
import { renderTable } from "../terminal/render-table.ts";

const barWidth = 20;

/** The hot keys, as a table under a line about all of them together. */
export function renderHotKeys(body: HotKeysBody, width: number | undefined, paint: Paint): string {
  const { by, items, total } = body;
  const hashed = "hashed" in body && body.hashed;
  const summary = `${renderNodes(body)}: ${renderRate(total.per_second)} decisions a second, ${renderRate(total.denied_per_second)} denied.`;
  if (items.length === 0) return `${summary}\n\n${emptyWords[by]}\n`;
  const most = by === "rate" ? total.per_second : total.denied_per_second;
  const table = renderTable(
    [
      { title: "policy", flexible: true },
      { title: "scope", flexible: true },
      { title: "subject", flexible: true },
      { title: "per second", align: "right" },
      { title: "denied/s", align: "right" },
      { title: by === "rate" ? "share" : "share of denials" },
    ],
    items.map((item) => [
      item.policy,
      item.scope,
      item.subject === "" ? "(all requests)" : item.subject,
      renderCertainty(item) + renderRate(item.per_second),
      item.denied_per_second === 0 ? "-" : renderRate(item.denied_per_second),
      renderShare(by === "rate" ? item.per_second : item.denied_per_second, most),
    ]),
    width,
  );
  const [head = "", ...rows] = table.split("\n");
  const note = hashed === true ? "\nSubjects are hashes, because the server was asked without a token.\n" : "";
  return `${summary}\n\n${paint.strong(head)}\n${rows.join("\n")}${note}`;
}

const emptyWords: Readonly<Record<HotKeysBody["by"], string>> = {
  rate: "Nothing was asked for more than once in the last seconds.",
  denials: "No denials in the last few seconds.",
};

/** `2 nodes, reported up to 4 s ago` */
function renderNodes({ nodes: { reported, silent, oldest_ms: oldestMs } }: HotKeysBody): string {
  const count = reported === 1 ? "1 node" : `${reported} nodes`;
  const age = oldestMs < 1_000 ? "" : `, reported up to ${Math.round(oldestMs / 1_000)} s ago`;
  const others = silent === undefined || silent === 0 ? "" : `, ${silent} more did not report`;
  return count + age + others;
}

/** A mark where more than a tenth may be another subject's. */
function renderCertainty({ per_second: rate, error_per_second: error }: HotKeysBody["items"][number]): string {
  return error > rate / 10 ? "~" : "";
}

/** Three digits are enough for a rate that changes all the time; whole numbers are shown whole. */
function renderRate(perSecond: number): string {
  return perSecond >= 99.95 || perSecond === 0 ? String(Math.round(perSecond)) : perSecond.toFixed(1);
}

function renderShare(part: number, whole: number): string {
  const share = whole > 0 ? Math.min(1, part / whole) : 0;
  return `${renderBar(share, barWidth)} ${String(Math.round(share * 100)).padStart(3)}%`;
}
