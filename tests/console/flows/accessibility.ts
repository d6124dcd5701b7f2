import { AxeBuilder } from "@axe-core/playwright";
import { describe, expect, it } from "vitest";
import type { ConsoleBrowser } from "../console-browser.ts";
import { type ConsoleView, consoleViews } from "../console-views.ts";
import type { WatchedPage } from "../watched-page.ts";

const rules = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"];

/** What axe finds in the view that is shown. In the dark theme only colours differ, so only their contrast is looked at. */
async function violationsIn({ page }: WatchedPage, { path }: ConsoleView, theme: "light" | "dark"): Promise<string[]> {
  const axe = new AxeBuilder({ page });
  const { violations } = await (theme === "light" ? axe.withTags(rules) : axe.withRules("color-contrast")).analyze();
  return violations.map(
    ({ id, help, nodes }) => `${path}: ${id} (${help}): ${nodes.map(({ target }) => target.join(" ")).join("; ")}`,
  );
}

const signIn: ConsoleView = {
  name: "sign-in",
  path: "/sign-in",
  ready: (page) => page.getByRole("button", { name: "Sign in" }).waitFor(),
};

export function describeAccessibility(use: () => ConsoleBrowser): void {
  describe.each(["light", "dark"] as const)("is accessible (WCAG AA) in the %s theme", (colorScheme) => {
    const context = { colorScheme, reducedMotion: "reduce" } as const;

    it("in every view", async () => {
      const watched = await use().openAs("admin", "/", context);
      const found: string[] = [];
      for (const view of await consoleViews(use().world)) {
        await watched.page.goto(use().world.url + view.path);
        await view.ready(watched.page);
        found.push(...(await violationsIn(watched, view, colorScheme)));
      }
      expect(found).toEqual([]);
      await watched.close();
    }, 300_000);

    it("where one signs in", async () => {
      const watched = await use().openStranger(context);
      await watched.allowing(/401/, async () => {
        await watched.page.goto(use().world.url + signIn.path);
        await signIn.ready(watched.page);
      });
      expect(await violationsIn(watched, signIn, colorScheme)).toEqual([]);
      await watched.close();
    });
  });
}
