import { mkdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { repositoryRoot } from "../repository/source-tree.ts";
import { useConsole } from "./console-browser.ts";
import { consoleViews } from "./console-views.ts";
import { openBrowser } from "./open-browser.ts";
import { continueHistory } from "./world/seed-history.ts";
import { seedRollouts } from "./world/seed-rollouts.ts";
import { seedSimulation } from "./world/seed-simulation.ts";
import { startConsoleWorld } from "./world/start-console-world.ts";

const usage = `npm run screenshots [-- --all FOLDER]
  Takes the pictures of docs/console.md and writes them to docs/images/console.
  --all FOLDER  takes every view in both themes, and writes them to that folder
`;

/** The pictures that pages show, by view, with their theme. */
const onPages: Readonly<Record<string, readonly ("light" | "dark")[]>> = {
  overview: ["light", "dark"],
  policies: ["light"],
  policy: ["light"],
  subject: ["light"],
  why: ["light"],
  rollout: ["light"],
  "what-if-result": ["light"],
  operations: ["light", "dark"],
};

/** Traffic has filled the live graphs by then. */
const settleMs = 20_000;
const themes = ["light", "dark"] as const;

const { values } = parseArgs({ options: { all: { type: "string" }, help: { type: "boolean", short: "h" } } });
if (values.help === true) {
  process.stdout.write(usage);
  process.exit(0);
}
const folder = values.all ?? join(repositoryRoot, "docs/images/console");
await mkdir(folder, { recursive: true });

const world = await startConsoleWorld({ days: 30, minuteHours: 26, nodes: 2 });
const browser = await openBrowser();
try {
  await seedRollouts(world);
  await seedSimulation(world, 24);
  const { recording } = await world.admin.recordings.start({ forMs: 600_000 });
  await new Promise((resolve) => setTimeout(resolve, settleMs));
  await world.admin.recordings.stop(recording.id);
  await continueHistory(world.store, world.historyMs);
  for (const colorScheme of themes)
    for (const { name, path, ready } of await consoleViews(world)) {
      if (values.all === undefined && onPages[name]?.includes(colorScheme) !== true) continue;
      const context = { colorScheme, reducedMotion: "reduce", viewport: { width: 1280, height: 760 } } as const;
      const watched = await useConsole(browser, world).openAs("admin", path, context);
      await ready(watched.page);
      // Charts and live numbers appear a moment after the view.
      await watched.page.waitForTimeout(3_000);
      const file = join(folder, `${name}-${colorScheme}.png`);
      await watched.page.screenshot({ path: file });
      process.stdout.write(
        `${file} ${Math.round((await stat(file)).size / 1_024)} KiB ${watched.problems.join("; ")}\n`,
      );
      await watched.context.close();
    }
} finally {
  await browser.close();
  await world.close();
}
process.exit(0);
