import type { PlannedPolicyBody, RolloutBody } from "@sluice/protocol/admin";
import { printable } from "sluice/internal";
import { describe, expect, it } from "vitest";
import {
  renderPlannedRollout,
  renderRollout,
  renderRolloutProgress,
  renderRollouts,
} from "../control/render-rollout.ts";
import { findReach, renderReach } from "../control/wait-for-nodes.ts";
import { noPaint, paintFor } from "../terminal/paint.ts";
import { createProgressLine, renderBar } from "../terminal/progress-line.ts";
import { renderFields, renderTable } from "../terminal/render-table.ts";
import { renderInstant, renderMoment, renderSpan } from "../terminal/render-time.ts";
import { renderAudit } from "./audit.ts";
import { renderKillSwitch } from "./kill-switch.ts";
import { renderNodes } from "./nodes.ts";
import { renderOverrides } from "./overrides.ts";
import { renderHistory, renderPolicies } from "./policy-read.ts";
import { renderDiff, renderPlan } from "./render-plan.ts";
import { renderSubject } from "./subjects.ts";
import { renderTokens } from "./tokens.ts";

const nowMs = Date.parse("2026-01-31T12:00:00Z");
const minuteMs = 60_000;
const wide = undefined;

describe("a table", () => {
  const columns = [{ title: "name" }, { title: "count", align: "right" as const }, { title: "why", flexible: true }];

  it("has columns as wide as their longest text", () => {
    expect(
      renderTable(columns, [
        ["a", "5", "because"],
        ["longer", "12345678", ""],
      ]),
    ).toBe("name       count  why\na              5  because\nlonger  12345678\n");
  });

  it("gives two columns to characters that take two", () => {
    expect(
      renderTable(
        [{ title: "name" }, { title: "n" }],
        [
          ["東京", "1"],
          ["é😀", "2"],
          ["abcd", "3"],
        ],
      ),
    ).toBe("name  n\n東京  1\né😀   2\nabcd  3\n");
    expect(renderTable([{ title: "why", flexible: true }], [["東京東京東京"]], 8)).toBe("why\n東京東…\n");
  });

  it("cuts flexible columns off to fit into a terminal, and only those", () => {
    const table = renderTable(columns, [["name-of-it", "5", "a very long reason indeed"]], 36);
    expect(table).toBe("name        count  why\nname-of-it      5  a very long reas…\n");
    expect(renderTable(columns, [["a-name-that-is-longer-than-the-line", "5", "x"]], 20)).toContain(
      "a-name-that-is-longer-than-the-line      5  x",
    );
  });

  it("counts what people see as one character once", () => {
    const rows = [
      ["Zoe\u0308", "1"],
      ["Anna", "2"],
    ];
    const [, first, second] = renderTable([{ title: "who" }, { title: "x" }], rows).split("\n");
    expect(first).toBe("Zoe\u0308   1");
    expect(second).toBe("Anna  2");
  });

  it("lets no text from outside control the terminal, or break a row", () => {
    const nasty = "\u001b[31mred\u001b[0m\nnext\u0007\u009b2J line\u202e";
    const escaped = "\\u001b[31mred\\u001b[0m next\\u0007\\u009b2J line\\u202e";
    expect(printable(nasty)).toBe(escaped);
    const table = renderTable([{ title: "why" }], [[nasty]]);
    expect(table).toBe(`why\n${escaped}\n`);
    expect(renderFields([["why", nasty]])).toBe(`why  ${escaped}\n`);
  });
});

describe("a moment", () => {
  it.each([
    [nowMs, "now"],
    [nowMs - 5_000, "5s ago"],
    [nowMs + 2 * 60 * minuteMs - 40, "in 2h"],
    [nowMs - 90 * minuteMs, "1h 30m ago"],
    [nowMs - 26 * 60 * minuteMs, "1d 2h ago"],
    [nowMs + 90 * 24 * 60 * minuteMs, "2026-05-01"],
    [undefined, "-"],
  ])("at %s is %s", (atMs, text) => {
    expect(renderMoment(atMs, nowMs)).toBe(text);
  });

  it("is told to the second, and a while by its two largest units", () => {
    expect(renderInstant(nowMs)).toBe("2026-01-31 12:00:00 UTC");
    expect([400, 59_999, 60_000, 3_600_000 + 1_000, 90_061_000].map(renderSpan)).toEqual([
      "0s",
      "59s",
      "1m",
      "1h",
      "1d 1h",
    ]);
  });
});

describe("a plan", () => {
  const plan: readonly PlannedPolicyBody[] = [
    { policy: "fresh", action: "create", version: 0, diff: "+id: fresh\n+unlimited: true\n" },
    {
      policy: "login",
      action: "change",
      version: 3,
      diff: " id: login\n owner: identity\n limits:\n   - by:\n       - ip\n     windows:\n-      - 5/m\n+      - 3/m\n",
    },
    { policy: "same", action: "unchanged", version: 2 },
    { policy: "old", action: "delete", version: 1, diff: "-id: old\n-unlimited: true\n" },
  ];

  it("shows what changes in each, and counts what does not", () => {
    expect(renderPlan(plan, noPaint, wide)).toBe(
      [
        "   policy  action  version   lines",
        "+  fresh   create  new       +2 −0",
        "~  login   change  3 → new   +1 −1",
        "-  old     delete  1 → gone  +0 −2",
        "",
        "fresh:",
        "  + id: fresh",
        "  + unlimited: true",
        "",
        "login:",
        "    …",
        "          - ip",
        "        windows:",
        "  -       - 5/m",
        "  +       - 3/m",
        "",
        "1 to create, 1 to change, 1 to delete, 1 unchanged",
        "",
      ].join("\n"),
    );
  });

  it("stops at so many lines, and says how many policies are left out", () => {
    const many = Array.from({ length: 9 }, (_, index): PlannedPolicyBody => {
      const diff = `+id: p${index}\n+unlimited: true\n`;
      return { policy: `p${index}`, action: "create", version: 0, diff };
    });
    const text = renderPlan(many, noPaint, wide, 5);
    expect(text).toContain("… and 7 more policies");
    expect(text.match(/unlimited: true/g)).toHaveLength(2);
  });

  it("keeps indentation, and nothing that a terminal obeys", () => {
    expect(renderDiff(["-  a: \u001b[2Jx", "+    b: y"], noPaint)).toBe("  -   a: \\u001b[2Jx\n  +     b: y\n");
  });
});

const rollout: RolloutBody = {
  id: "r1",
  policy: "login",
  from_version: 3,
  to_version: 4,
  state: "running",
  shadow: false,
  by: "ip",
  steps: [
    { percent: 1, hold_ms: 10 * minuteMs },
    { percent: 10, hold_ms: 10 * minuteMs },
    { percent: 100, hold_ms: 0 },
  ],
  step: 1,
  step_since_ms: nowMs - 4 * minuteMs,
  starts_ms: nowMs - 14 * minuteMs,
  observe_for_ms: 0,
  expect_more_denials: false,
  strikes: 0,
  percent: 10,
  waits_for: { code: "hold", until_ms: nowMs + 6 * minuteMs },
  reason: "began",
  author: "alice",
  created_ms: nowMs - 14 * minuteMs,
  changed_ms: nowMs - 4 * minuteMs,
};
const compared = {
  decided: 10_811,
  denied: 140,
  rate: 0.01295,
  baseline: 0.0124,
  baseline_minutes: 3,
  baseline_decided: 12,
  others: 1,
  sigma: 0.0011,
  threshold: 0.0174,
};

describe("a rollout", () => {
  it("is shown with its steps, and what was seen at the latest look", () => {
    const figures = {
      minute: 0,
      minutes: 1,
      verdict: "fine" as const,
      sentence: "as usual",
      looks: 3,
      strikes: 0,
      total: compared,
      rings: [{ ...compared, step: 1, judged: false }],
    };
    expect(renderRollout({ ...rollout, figures }, nowMs, wide)).toBe(
      [
        "rollout      r1",
        "policy       login, 3 → 4, by ip",
        "state        running: began",
        "steps        1 % for 10m, [10 % for 10m], 100 % by hand",
        "subjects     10 % under version 4",
        "next         in 6m",
        "created      14m ago by alice",
        "latest look  fine: as usual",
        "looks        3 on this step, 0 in a row beyond what is usual",
        "",
        "joined at   decided  denied    rate   usual   sigma  strike above",
        "10 %          10811     140  1.29 %  1.24 %  0.11 %        1.74 %  not compared: 12 requests in 3 minutes under the old version",
        "all judged    10811     140  1.29 %  1.24 %  0.11 %        1.74 %",
        "",
      ].join("\n"),
    );
  });

  const inTwo = nowMs + 2 * minuteMs;
  const seen = { minutes: 3, minutes_needed: 5, decided: 12, decided_needed: 20 };
  it.each([
    [{ code: "start", until_ms: inTwo }, "in 2m", "in 2m"],
    [
      { code: "observation", until_ms: inTwo, ...seen },
      "in 2m; so far 12 of 20 requests in 3 of 5 minutes from those who join first",
      "in 2m",
    ],
    [
      { code: "baseline", until_ms: inTwo, ...seen },
      "waits for traffic under the old version: 12 of 20 requests in 3 of 5 minutes from those who join first; goes on without a comparison in 2m",
      "at 12 of 20 requests, 3 of 5 minutes",
    ],
    [
      { code: "looks", until_ms: inTwo, looks: 1, looks_needed: 3 },
      "waits for minutes to compare: 1 of 3 on this step; goes on without them in 2m",
      "at 1 of 3 looks",
    ],
    [
      { code: "fine_look", strikes: 2, strikes_to_roll_back: 3 },
      "waits for a minute with no more denials than usual: 2 in a row had more, 3 roll it back",
      "after a fine look",
    ],
    [
      { code: "traffic", decided: 4, decided_needed: 10 },
      "waits for traffic under the new version: 4 of 10 requests since the latest look",
      "at 4 of 10 requests",
    ],
    [{ code: "kill_switch", until_ms: inTwo }, "waits for the end of the kill switch, in 2m", "after the kill switch"],
    [{ code: "operator" }, "by hand: sluice policy rollout login --advance", "by hand"],
    [{ code: "due" }, "now", "now"],
    [undefined, "-", "-"],
  ] as const)("says when it goes on, or what it waits for and how much is missing: %j", (waits_for, long, brief) => {
    const waiting = { ...rollout, waits_for };
    expect(renderRollout(waiting, nowMs, wide).split("\n")).toContain(`next      ${long}`);
    expect(renderRollouts([waiting], nowMs, wide)).toContain(brief);
  });

  it("says how a paused one goes on", () => {
    const paused = { ...rollout, state: "paused", waits_for: { code: "operator" } } as const;
    expect(renderRollout(paused, nowMs, wide)).toContain("by hand: sluice policy rollout login --resume");
  });

  it("is planned in one line", () => {
    const planned = { ...rollout, state: "observing", step: -1, observe_for_ms: 10 * minuteMs } as const;
    expect(renderPlannedRollout({ ...planned, starts_ms: planned.created_ms }, nowMs)).toBe(
      "Rollout of login, 3 → 4, by ip: observe 10m, 1 % for 10m, 10 % for 10m, 100 % by hand\n",
    );
    expect(renderPlannedRollout({ ...planned, starts_ms: nowMs + minuteMs, expect_more_denials: true }, nowMs)).toMatch(
      /by ip, beginning in 1m: observe .*; more denials are expected, and do not roll it back\n$/,
    );
  });

  it("is listed, and followed on one line", () => {
    expect(renderRollouts([{ ...rollout, from_version: 0, shadow: true }], nowMs, wide).split("\n")[1]).toMatch(
      /^login +new → 4 +running \(shadow\) +2 of 3 +10 % +in 6m +4m ago +r1 +began$/,
    );
    expect(renderRollouts([], nowMs, wide)).toBe("There is no rollout.\n");
    expect(renderRolloutProgress(rollout, "nodes 2 of 3", nowMs)).toBe(
      "[#####-----] login running, 10 %, step 2 of 3, next in 6m; nodes 2 of 3",
    );
  });
});

describe("progress", () => {
  const written = (isTTY: boolean, shown: (readonly [string, string?])[]): string => {
    let text = "";
    const line = createProgressLine({ write: (part) => (text += part), isTTY, columns: 12 });
    for (const [one, what] of shown) line.show(one, what);
    line.end();
    return text;
  };

  it("is written over in a terminal, and no longer than its line", () => {
    expect(written(true, [["one"], ["one"], ["two that is too long"]])).toBe("\r\u001b[2Kone\r\u001b[2Ktwo that is\n");
  });

  it("is a line in a file, and only where something changed", () => {
    const shown = [
      ["step 1, in 9s", "step 1"],
      ["step 1, in 8s", "step 1"],
      ["step 2", "step 2"],
    ] as const;
    expect(written(false, [...shown])).toBe("step 1, in 9s\nstep 2\n");
  });

  it("counts live nodes alone", () => {
    const node = {
      id: "",
      name: "a",
      version: "",
      started_ms: 0,
      seen_ms: 0,
      applied_ms: 0,
      current: true,
      alive: true,
      details: {},
    };
    const nodes = [
      { ...node, generation: 7 },
      { ...node, generation: 5, current: false },
      { ...node, generation: 1, alive: false },
    ];
    expect(renderReach(findReach({ generation: 7, nodes }, 6), 6)).toBe(
      "nodes [##########----------] 1 of 2 at generation 6",
    );
    expect(renderBar(2)).toBe(`[${"#".repeat(20)}]`);
    const text = renderNodes({ generation: 7, nodes }, nowMs, wide, noPaint);
    expect(text).toContain("Generation 7: 1 of 2 live nodes decide by it.");
    expect(text.split("\n").map((line) => line.split(/ +/)[1])).toEqual([
      "state",
      "current",
      "behind",
      "gone",
      undefined,
      "7:",
      undefined,
    ]);
  });
});

describe("the kill switch", () => {
  it("cannot be overlooked while it is on", () => {
    const on = {
      mode: "closed",
      since_ms: nowMs,
      until_ms: nowMs + minuteMs,
      reason: "attack\u001b[2J",
      author: "ops",
    } as const;
    const lines = renderKillSwitch(on, nowMs, noPaint).trimEnd().split("\n");
    expect(lines[0]).toBe("KILL SWITCH CLOSED: every request is denied");
    expect(lines.join("\n")).toMatch(
      /2026-01-31 12:01:00 UTC \(in 1m\)[\s\S]*by ops[\s\S]*reason {2}attack\\u001b\[2J$/m,
    );
    expect(renderKillSwitch({ mode: "off" }, nowMs, noPaint)).toBe("The kill switch is off; policies decide.\n");
  });
});

describe("tables of what there is", () => {
  it("has policies, and what keeps one from being in force", () => {
    const policy = { id: "login", version: 2, document: {}, author: "al", why: "w", changed_ms: nowMs };
    const states = [
      policy,
      { ...policy, overridden_by: "file" as const },
      { ...policy, rollout },
      { ...policy, document: { mode: "shadow" } },
    ];
    expect(
      renderPolicies(states, nowMs, wide)
        .split("\n")
        .map((line) => line.slice(24, 36).trim()),
    ).toEqual(["state", "in force", "a file wins", "10 % have 4", "shadow", ""]);
    expect(renderPolicies([], nowMs, wide)).toContain("sluice policy apply");
  });

  it("has versions, with the current one marked", () => {
    const version = {
      ...{ policy: "p", version: 3, document: {}, deleted: false },
      ...{ author: "al", why: "", at_ms: nowMs, current: true },
    };
    const { document: _document, ...deleted } = { ...version, version: 2, deleted: true, current: false };
    const reverted = { ...version, version: 1, revert_of: 7, current: false };
    const lines = renderHistory([version, deleted, reverted], nowMs, wide).split("\n");
    expect(lines[1]).toMatch(/^\* +3 +now +al +written$/);
    expect(lines[2]).toMatch(/^ +2 +now +al +deleted$/);
    expect(lines[3]).toMatch(/^ +1 +now +al +reverted to 7$/);
  });

  it("has subjects, with where each number comes from", () => {
    const limit = { policy: "p", version: 1, limit: "user", by: ["user"], algorithm: "gcra", mode: "enforce" as const };
    const windows = [{ limit: 100, per: "1s", burst: 200 }];
    const usage = [{ window: windows[0]!, used: 3, remaining: 197, reset_after_ms: 2_000 }];
    const effective = [
      { ...limit, windows, source: { kind: "override" as const, until_ms: nowMs + minuteMs }, usage },
      {
        ...limit,
        windows,
        source: { kind: "tier" as const, tier: "gold" },
        by: ["user", "ip"],
        mode: "shadow" as const,
      },
      { ...limit, windows, source: { kind: "custom" as const } },
      { ...limit, windows, source: { kind: "policy" as const } },
    ];
    const subject = { dimension: "user", value: "u1", version: 1, tier: "gold", limits: [], effective };
    const [, , , , ...rows] = renderSubject(subject, nowMs, wide).split("\n");
    expect(rows[0]).toMatch(/^p \/ user +1 +100\/s burst 200 +an override that ends in 1m +3, 197 left, as new in 2s$/);
    expect(rows[1]).toMatch(/tier gold, by user and ip +- +shadow$/);
    expect(rows[2]).toMatch(/its own +-$/);
    expect(rows[3]).toMatch(/the policy +-$/);
    expect(renderSubject({ ...subject, effective: [] }, nowMs, wide)).toContain("No policy limits by user.");
  });

  it("has overrides, tokens and the audit", () => {
    const own = {
      policy: "p",
      limit: "l",
      windows: ["1/s"],
      until_ms: nowMs + minuteMs,
      reason: "r",
      author: "al",
      at_ms: nowMs,
    };
    const subject = { dimension: "user", value: "u1", version: 1, limits: [own, { ...own, until_ms: undefined }] };
    const rows = renderOverrides([subject], nowMs, wide).split("\n");
    expect(rows[1]).toMatch(/^user=u1 +p \/ l +1\/s +in 1m +al +r$/);
    expect(rows[2]).toMatch(/^user=u1 +p \/ l +1\/s +for good +al +r$/);
    const token = { id: "t1", name: "ci", role: "editor", team: "a", created_ms: nowMs, created_by: "al" } as const;
    const tokens = [token, { ...token, expires_ms: nowMs }, { ...token, revoked_ms: nowMs, last_used_ms: nowMs }];
    expect(renderTokens(tokens, nowMs, wide).split("\n").slice(1, 4)).toEqual([
      expect.stringMatching(/in use +- +never/),
      expect.stringMatching(/ended +now +never/),
      expect.stringMatching(/revoked +- +now/),
    ]);
    const record = {
      id: "a",
      at_ms: nowMs,
      actor: "ci",
      role: "editor",
      from: "",
      action: "policy.put",
      kind: "policy",
    };
    const refused = { ...record, target: "login", outcome: "refused" as const, why: "no" };
    const paint = paintFor({ write: () => true, isTTY: true }, {});
    expect(renderAudit([refused], nowMs, wide, paint)).toContain(
      "\u001b[31mnow   ci (editor)  -     policy.put  login",
    );
    expect(
      renderAudit([refused], nowMs, wide, paintFor({ write: () => true, isTTY: true }, { NO_COLOR: "1" })),
    ).not.toContain("\u001b");
    expect(renderAudit([refused], nowMs, wide, paintFor({ write: () => true }, {}))).not.toContain("\u001b");
  });
});
