import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { renderDenialCsv, renderUsageCsv } from "./csv.ts";
import type { UsagePeriodBody } from "./usage.ts";

const period: UsagePeriodBody = {
  ...{ start_ms: Date.parse("2026-11-01T00:00:00Z"), decided: 5, allowed: 3, denied: 2, cost: -1, degraded: 0 },
  ...{ shadow_denied: 0, denials: [{ reason: "over_limit", window: "5/s", denied: 2 }] },
};

/** A reader of RFC 4180, which knows nothing of how the text was written. */
function parseCsv(text: string): readonly (readonly string[])[] {
  const rows: string[][] = [];
  let row: string[] = [];
  let at = 0;
  while (at < text.length) {
    let cell = "";
    if (text[at] === '"') {
      for (at += 1; text[at] !== '"' || text[at + 1] === '"'; at += 1) {
        if (text[at] === '"') at += 1;
        cell += text[at];
      }
      at += 1;
    } else for (; text[at] !== "," && text[at] !== "\r"; at += 1) cell += text[at];
    row.push(cell);
    if (text[at] === ",") at += 1;
    else {
      expect(text.slice(at, at + 2)).toBe("\r\n");
      at += 2;
      rows.push(row);
      row = [];
    }
  }
  return rows;
}

describe("CSV", () => {
  it("has a line of titles and one for each period, and numbers are numbers", () => {
    expect(renderUsageCsv([period])).toBe(
      "start,policy,limit,subject,decided,allowed,denied,cost,degraded,shadow_denied,denials\r\n" +
        "2026-11-01T00:00:00.000Z,,,,5,3,2,-1,0,0,over_limit 5/s: 2\r\n",
    );
    expect(renderUsageCsv([])).toMatch(/^start,[a-z_,]+\r\n$/);
  });

  it.each(["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", " =1", "\uff1d1"])("makes %j harmless", (subject) => {
    const [, row] = parseCsv(renderUsageCsv([{ ...period, subject }]));
    expect(row![3]).toBe(`'${subject}`);
  });

  it("reads as what was written, whatever callers call themselves", () => {
    const text = fc.string({ unit: fc.constantFrom('"', ",", "\r", "\n", "a", "=", "-", "ü", " ", "\t") });
    fc.assert(
      fc.property(fc.array(fc.record({ policy: text, subject: text }), { maxLength: 5 }), (names) => {
        const rows = parseCsv(renderUsageCsv(names.map((name) => ({ ...period, ...name })))).slice(1);
        expect(rows.map(([, policy, , subject]) => [policy, subject])).toEqual(
          names.map(({ policy, subject }) => [harmless(policy), harmless(subject)]),
        );
        for (const cell of rows.flatMap((row) => [row[1]!, row[3]!])) expect(cell).not.toMatch(/^\s*[=+\-@]/);
      }),
    );
  });

  it("says of a denial who was denied by what, and how many it stands for", () => {
    const csv = renderDenialCsv([
      {
        ...{ at_ms: 0, since_ms: 0, node: "n", policy: "api", version: 2, limit: "calls", by: ["tenant", "user"] },
        ...{ dimensions: { tenant: "acme", user: "u,1", endpoint: "/v1" }, reason: "over_limit", window: "5/s" },
        ...{ cost: 1, shadow: false, denials: 12, mixed: false },
      },
    ]);
    const [titles, row] = parseCsv(csv);
    const shown = Object.fromEntries(titles!.map((title, i) => [title, row![i]]));
    expect(shown).toMatchObject({
      ...{ at: "1970-01-01T00:00:00.000Z", denials: "12", mixed: "false", subject: "tenant=acme user=u,1" },
      ...{ policy: "api", version: "2", remaining: "", dimensions: '{"tenant":"acme","user":"u,1","endpoint":"/v1"}' },
    });
  });
});

function harmless(text: string): string {
  return /^\s*[=+\-@\t\r]/.test(text) ? `'${text}` : text;
}
