import { parseArgs } from "node:util";
import type { Browser, Page } from "playwright-core";
import { useConsole } from "./console-browser.ts";
import { type ConsoleView, consoleViews } from "./console-views.ts";
import { longestTask, type TaskTime } from "./main-thread.ts";
import { openBrowser } from "./open-browser.ts";
import { seedManyPolicies, seedManySubjects } from "./world/seed-many.ts";
import { seedRollouts } from "./world/seed-rollouts.ts";
import { startConsoleWorld, untilNodesAreCurrent } from "./world/start-console-world.ts";

const { values: args } = parseArgs({
  options: { json: { type: "boolean", default: false }, quick: { type: "boolean", default: false } },
});

/** How much there is to show. A quick run shows that everything works; its numbers mean little. */
const size = args.quick
  ? { policies: 500, subjects: 1_000, minuteHours: 1, views: ["policies", "edit"], settleMs: 200 }
  : { policies: 10_000, subjects: 100_000, minuteHours: 24, views: undefined, settleMs: 2_000 };

/** Keys are pressed about as quickly as a person does. */
const keyEveryMs = 60;
const wheels = 25;
const wheelPixels = 1_500;

type Phase = "load" | "scroll" | "search" | "type";

/** What is typed: first into the field that searches, by its label, and then into the one that a person writes in. */
const fields: Readonly<Record<string, { readonly search?: [string, string]; readonly type?: [string, string] }>> = {
  policies: { search: ["Search by id, owner or description", "service-0042 team"] },
  subjects: { search: ["Find a subject", "customer-0042"] },
  why: { type: ["Request", " user=acme-user-1 ip=192.0.2.7"] },
  edit: { type: ["Policy as YAML", "# a comment, as long as a line of text\n"] },
};

interface Measured {
  readonly view: string;
  /** The longest task of each phase that the view has. */
  readonly longest: Readonly<Partial<Record<Phase, TaskTime>>>;
  /** The most rows that were in the page after a phase. */
  readonly rows: number;
}

async function measureView(
  browser: Browser,
  open: () => Promise<Page>,
  { name, ready, path }: ConsoleView,
): Promise<Measured> {
  const page = await open();
  const longest: Partial<Record<Phase, TaskTime>> = {};
  let rows = 0;
  const phase = async (word: Phase, act: () => Promise<unknown>): Promise<void> => {
    longest[word] = await longestTask(browser, page, async () => {
      await act();
      await page.waitForTimeout(size.settleMs);
    });
    rows = Math.max(rows, await page.getByRole("row").count());
  };
  await phase("load", async () => {
    await page.goto(new URL(path, page.url()).href);
    await ready(page);
  });
  await phase("scroll", () => scroll(page));
  const { search, type } = fields[name] ?? {};
  if (search !== undefined) await phase("search", () => write(page, search));
  if (type !== undefined) await phase("type", () => write(page, type));
  return { view: name, longest, rows };
}

async function scroll(page: Page): Promise<void> {
  await page.mouse.move(720, 600);
  for (let i = 0; i < wheels; i += 1) {
    await page.mouse.wheel(0, i % 5 === 4 ? -wheelPixels : wheelPixels);
    await page.waitForTimeout(keyEveryMs);
  }
}

async function write(page: Page, [label, text]: readonly [string, string]): Promise<void> {
  await page.getByLabel(label).first().click();
  await page.keyboard.type(text, { delay: keyEveryMs });
}

const world = await startConsoleWorld({ days: 30, minuteHours: size.minuteHours, nodes: 2 });
const browser = await openBrowser();
const measured: Measured[] = [];
try {
  await seedRollouts(world);
  await seedManyPolicies(world.store, size.policies);
  await seedManySubjects(world.store, size.subjects);
  await untilNodesAreCurrent(world.admin);
  for (const view of await consoleViews(world)) {
    if (size.views?.includes(view.name) === false) continue;
    const watched = await useConsole(browser, world).openAs("admin", "/sign-in", { reducedMotion: "reduce" });
    measured.push(await measureView(browser, async () => watched.page, view));
    await watched.context.close();
    process.stdout.write(`${render(measured.at(-1)!)}\n`);
  }
} finally {
  await browser.close();
  await world.close();
}
const result = { suite: "console", policies: size.policies, subjects: size.subjects, views: measured };
if (args.json) process.stdout.write(`${JSON.stringify(result)}\n`);
process.exit(0);

function render({ view, longest, rows }: Measured): string {
  const phases = Object.entries(longest).map(([word, { cpuMs, ms }]) => `${word} ${cpuMs} ms (${ms} ms)`);
  return `${view.padEnd(12)} ${phases.map((text) => text.padEnd(24)).join("")} ${rows} rows`;
}
