import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe } from "vitest";
import { type ConsoleBrowser, useConsole } from "./console-browser.ts";
import { describeAccessibility } from "./flows/accessibility.ts";
import { describeDenials } from "./flows/denials.ts";
import { describeEditing } from "./flows/editing.ts";
import { describeKeyboard } from "./flows/keyboard.ts";
import { describeKillSwitch } from "./flows/kill-switch.ts";
import { describeRestart } from "./flows/restart.ts";
import { describeRoles } from "./flows/roles.ts";
import { describeRollouts } from "./flows/rollouts.ts";
import { describeSignIn } from "./flows/sign-in.ts";
import { describeSizes } from "./flows/sizes.ts";
import { openBrowser } from "./open-browser.ts";
import { type ConsoleWorld, startConsoleWorld } from "./world/start-console-world.ts";

let browser: Browser;
let world: ConsoleWorld;
/** The same servers, with another store in which time passes quickly. */
let fastWorld: ConsoleWorld;

/** One world and one browser for all flows: they take most of the time to start. */
const use = (): ConsoleBrowser => useConsole(browser, world);
const useFast = (): ConsoleBrowser => useConsole(browser, fastWorld);

beforeAll(async () => {
  world = await startConsoleWorld();
  [browser, fastWorld] = await Promise.all([openBrowser(), startConsoleWorld({ within: world, days: 0, speed: 60 })]);
}, 180_000);

afterAll(async () => {
  await browser?.close();
  await fastWorld?.close();
  await world?.close();
});

describe("the console, in Chromium on a real server under traffic,", () => {
  describeSignIn(use);
  describeDenials(use);
  describeEditing(use);
  describeRollouts(useFast);
  describeRoles(use);
  describeAccessibility(use);
  describeKeyboard(use);
  describeSizes(use);
  describeKillSwitch(use);
  describeRestart(use);
});
