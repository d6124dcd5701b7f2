import { describe, expect, it, test } from "vitest";
import type { DayResult } from "./game-day.ts";
import { gameDays } from "./game-days.ts";
import { findBroken, playGameDay } from "./play-game-day.ts";
import { readOrders } from "./read-orders.ts";
import { type Played, renderGameDayPage } from "./render-game-day-page.ts";

/**
 * The others have a test elsewhere: whale and traffic-shapes in tests/leases, rollout, kill-switch and store-lost in
 * tests/control-plane, and soak in bench/service.test.ts.
 */
const playedHere = ["chaos", "upgrade", "clock", "disk-full"];

describe("in its bounded form, the game day", () => {
  const days = gameDays.filter(({ name }) => playedHere.includes(name));

  test.each(days)("$name keeps the promises that do not depend on the machine", { timeout: 300_000 }, async (day) => {
    const result = await playGameDay(day, { form: "bounded", soakMinutes: 0.2 });
    expect(findBroken(result, { timed: false })).toEqual([]);
  });
});

const read = (...args: readonly string[]) => readOrders(args, gameDays);
const all = gameDays.map(({ name }) => name);

describe("npm run gameday", () => {
  it("plays all days in full without arguments, and days that are named in the order of the page", () => {
    const orders = read();
    expect(orders).toMatchObject({
      kind: "play",
      options: { form: "full", soakMinutes: 30 },
      write: false,
      json: false,
    });
    expect(orders.kind === "play" && orders.days.map(({ name }) => name)).toEqual(all);
    const some = read("whale", "chaos", "--bounded", "--json");
    expect(some).toMatchObject({ kind: "play", options: { form: "bounded" }, json: true });
    expect(some.kind === "play" && some.days.map(({ name }) => name)).toEqual(["chaos", "whale"]);
  });

  it("uses each option", () => {
    expect(read("upgrade", "--from", "v1.0.0")).toMatchObject({ options: { upgradeFrom: "v1.0.0" } });
    expect(read("soak", "--soak-minutes", "5", "--write")).toMatchObject({ options: { soakMinutes: 5 }, write: true });
    expect(read("clock", "--list", "--json")).toMatchObject({ kind: "list", json: true, days: [{ name: "clock" }] });
    const help = read("--help");
    for (const name of all) expect(help).toMatchObject({ kind: "help", text: expect.stringContaining(name) });
  });

  it.each([
    [["whales"], 'there is no game day "whales"'],
    [["--rounds", "3"], "--rounds"],
    [["--soak-minutes", "0"], "a number up to 1440"],
    [["--soak-minutes", "ten"], "a number up to 1440"],
    [["chaos", "--soak-minutes", "5"], "--soak-minutes is for soak"],
    [["chaos", "--from", "HEAD"], "--from is for upgrade"],
    [["--write", "--bounded"], "leave out --bounded"],
    [["--list", "--write"], "--list plays nothing"],
  ])("refuses %j", (args, why) => {
    expect(read(...args)).toEqual({ kind: "problem", message: expect.stringContaining(why) });
  });
});

const createPlayed = (day: string, held: boolean, timed?: true): Played => {
  const verdict = { text: "it holds | bends", held, measured: "3 of 4", ...(timed && { timed }) };
  const plot = { name: day, title: "Over time", x: "seconds", y: "checks", series: [] };
  const result: DayResult = {
    day,
    form: "full",
    tookMs: 1500,
    verdicts: [verdict],
    facts: [{ text: "it was quiet", timed: false }],
    plots: [plot],
  };
  return {
    title: `The ${day}`,
    done: ["Something breaks."],
    result,
    at: "2026-01-02T03:04:05Z",
    commit: "c0ffee",
    machine: "2 cores",
  };
};

describe("the page about game days", () => {
  it("has what was done, promised and measured, with plots, the commit, the command and the machine", () => {
    const page = renderGameDayPage("", createPlayed("whale", true, true), gameDays);
    expect(page).toContain("| `whale` | [The whale](#the-whale) | 1 of 1 | 2026-01-02 |");
    expect(page).toContain("| it holds \\| bends † | 3 of 4 | yes |");
    for (const part of ["Something breaks.", "- it was quiet.", "![Over time](images/game-days/whale.svg)"])
      expect(page).toContain(part);
    expect(page).toContain("Played by `npm run gameday -- whale` on 2026-01-02, in 1.5 s, at commit c0ffee.");
    expect(page).toContain("The machine: 2 cores.");
  });

  it("keeps the reports of days that are not played again, in the order of days", () => {
    const whale = renderGameDayPage("", createPlayed("whale", true), gameDays);
    const both = renderGameDayPage(whale, createPlayed("chaos", false), gameDays);
    expect(both).toContain(
      "| [The chaos](#the-chaos) | 0 of 1 ✗ | 2026-01-02 |\n| `whale` | [The whale](#the-whale) | 1 of 1 |",
    );
    expect(both.indexOf("## The chaos")).toBeLessThan(both.indexOf("## The whale"));
    const again = renderGameDayPage(both, createPlayed("chaos", false, true), gameDays);
    expect(again).toContain("| [The chaos](#the-chaos) | 0 of 1 † | 2026-01-02 |\n");
    expect(again.match(/## The /g)).toHaveLength(2);
    expect(renderGameDayPage(again, createPlayed("chaos", false, true), gameDays)).toBe(again);
  });
});

describe("a game day", () => {
  const options = { form: "bounded", soakMinutes: 1 } as const;
  const day = { name: "drill", title: "A drill", done: () => [], promises: { kept: { text: "it is kept" } } };

  it("that fails closes what it opened, and breaks what it did not measure", async () => {
    const closed: string[] = [];
    const result = await playGameDay(
      {
        ...day,
        play: async (notes) => {
          for (const name of ["first", "last"]) notes.opened({ close: async () => closed.push(name) });
          throw new Error("no server");
        },
      },
      options,
    );
    expect(closed).toEqual(["last", "first"]);
    expect(findBroken(result)).toEqual([
      expect.stringContaining("drill could not be played to its end: Error: no server"),
      "drill: it is kept: was not measured",
    ]);
  });

  it("that cannot be closed has its verdicts, and says so", async () => {
    const result = await playGameDay(
      {
        ...day,
        play: async (notes) => {
          notes.opened({ close: () => Promise.reject(new Error("stuck")) });
          notes.judge("kept", true, "it was");
        },
      },
      options,
    );
    expect(result.verdicts).toMatchObject([{ held: true, measured: "it was" }]);
    expect(findBroken(result)).toEqual([expect.stringContaining("stuck")]);
  });
});
