import { AxeBuilder } from "@axe-core/playwright";
import type { Page } from "playwright-core";
import { describe, expect, it } from "vitest";
import type { ConsoleBrowser } from "../console-browser.ts";
import { consoleViews } from "../console-views.ts";
import { seedSimulation } from "../world/seed-simulation.ts";

const rules = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"];

/** Pages that have axe already: loading its half a megabyte takes longer than most rules, and a builder loads it twice. */
const equipped = new WeakSet<Page>();

/** What axe finds in what is shown. In the dark theme only colours differ, so only their contrast is looked at. */
async function violationsIn(page: Page, name: string, part?: string): Promise<string[]> {
  const found: string[] = [];
  for (const colorScheme of ["light", "dark"] as const) {
    await page.emulateMedia({ colorScheme });
    await expect.poll(() => page.evaluate("document.documentElement.dataset.theme")).toBe(colorScheme);
    // Colours may change slowly.
    await expect.poll(() => page.evaluate("document.getAnimations().length")).toBe(0);
    // In the page itself: it has no frames, and a second page for the report would take as long as the rules.
    const axe = new AxeBuilder(equipped.has(page) ? { page, axeSource: "void 0" } : { page })
      .setLegacyMode()
      .options({ resultTypes: ["violations"] });
    if (part !== undefined) axe.include(part);
    const asked = colorScheme === "light" ? axe.withTags(rules) : axe.withRules("color-contrast");
    const { violations } = await asked.analyze();
    equipped.add(page);
    for (const { id, help, nodes } of violations)
      found.push(`${name}, ${colorScheme}: ${id} (${help}): ${nodes.map(({ target }) => target.join(" ")).join("; ")}`);
  }
  return found;
}

/** Goes to another view as a link in the page does: loading the page again would take longer than looking at it. */
async function follow(page: Page, path: string): Promise<void> {
  await page.getByRole("heading", { level: 1 }).waitFor();
  await page.evaluate(
    `history.pushState({}, "", ${JSON.stringify(path)}); dispatchEvent(new PopStateEvent("popstate"))`,
  );
}

/** Everything that opens over a view: where it is, and what opens it. */
const overViews: Readonly<Record<string, readonly [path: string, open: (page: Page) => Promise<unknown>]>> = {
  "the palette": ["/audit", (page) => page.keyboard.press("Control+k")],
  "the account menu": ["/audit", (page) => page.getByRole("button", { name: "Account" }).click()],
  "an entry of the audit": ["/audit?kind=policy", (page) => page.getByRole("row").nth(1).click()],
  "an override": ["/subjects/tenant/acme", (page) => page.getByRole("button", { name: "Override…" }).click()],
  "the menu of a subject": ["/subjects/tenant/acme", (page) => page.getByRole("button", { name: "More" }).click()],
  "a reset": [
    "/subjects/tenant/acme",
    async (page) => {
      await page.getByRole("button", { name: "More" }).click();
      await page.getByRole("menuitem", { name: "Reset counters…" }).click();
    },
  ],
  "a plan": ["/plans", (page) => page.getByRole("button", { name: "Edit plan pro" }).click()],
  "a new token": ["/access", (page) => page.getByRole("button", { name: "Make a token…" }).click()],
  "the kill switch": ["/operations", (page) => page.getByRole("button", { name: "Allow everything…" }).click()],
  "a policy to switch off": ["/operations", (page) => page.getByRole("button", { name: /^Switch off/ }).click()],
};

export function describeAccessibility(use: () => ConsoleBrowser): void {
  describe("is accessible (WCAG AA) in both themes", () => {
    const context = { reducedMotion: "reduce" } as const;

    it("in every view, with the result of a simulation", async () => {
      await seedSimulation(use().world, 1);
      const watched = await use().openAs("admin", "/", context);
      const found: string[] = [];
      for (const { path, ready } of await consoleViews(use().world)) {
        await follow(watched.page, path);
        await ready(watched.page);
        found.push(...(await violationsIn(watched.page, path)));
      }
      expect(found).toEqual([]);
      await watched.close();
    }, 300_000);

    it("in everything that opens over a view", async () => {
      const watched = await use().openAs("admin", "/", context);
      const { page } = watched;
      const found: string[] = [];
      for (const [name, [path, open]] of Object.entries(overViews)) {
        await follow(page, path);
        await open(page);
        await page.getByRole("dialog").or(page.getByRole("menu")).first().waitFor();
        found.push(...(await violationsIn(page, name, "[role=dialog], [role=menu]")));
        await page.keyboard.press("Escape");
        await page.getByRole("dialog").or(page.getByRole("menu")).first().waitFor({ state: "hidden" });
      }
      expect(found).toEqual([]);
      await watched.close();
    }, 300_000);

    it("where one signs in", async () => {
      const watched = await use().openStranger(context);
      const { page } = watched;
      await watched.allowing(/401/, async () => {
        await page.goto(`${use().world.url}/sign-in`);
        await page.getByRole("button", { name: "Sign in" }).waitFor();
      });
      expect(await violationsIn(page, "/sign-in")).toEqual([]);
      await watched.close();
    });
  });
}
