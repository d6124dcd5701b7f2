import { describe, expect, it } from "vitest";
import type { ConsoleBrowser } from "../console-browser.ts";

export function describeRestart(use: () => ConsoleBrowser): void {
  describe("survives a restart of its server", () => {
    it("under an open page, which says that it is not live, and then goes on", async () => {
      const { world } = use();
      const watched = await use().openAs("viewer", "/operations");
      const { page } = watched;
      await page.getByText("Live", { exact: true }).waitFor();
      await page.getByRole("region", { name: "Nodes" }).getByText("berlin-1").waitFor();
      await watched.allowing(/ERR_|Failed to load|503|network/i, async () => {
        await world.stopFirst();
        await page.getByText(/^(Connecting|Not live)$/).waitFor();
        await world.startFirst();
        await page.getByText("Live", { exact: true }).waitFor({ timeout: 60_000 });
      });
      await page.getByRole("link", { name: "Audit" }).click();
      await page.getByRole("table", { name: "Audit" }).getByRole("row").nth(1).waitFor();
      expect(page.url()).toContain("/audit");
      await watched.close();
    }, 180_000);
  });
}
