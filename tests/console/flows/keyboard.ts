import { describe, expect, it } from "vitest";
import type { ConsoleBrowser } from "../console-browser.ts";

export function describeKeyboard(use: () => ConsoleBrowser): void {
  describe("works by keyboard alone", () => {
    it("from the palette to a list, and through its table to an entry", async () => {
      const watched = await use().openAs("viewer", "/hot-keys");
      const { page } = watched;
      await page.getByRole("heading", { level: 1, name: "Hot keys and leases" }).waitFor();
      await page.keyboard.press("Control+k");
      await page.getByRole("combobox", { name: /^Search views/ }).waitFor();
      await page.keyboard.type("audit");
      await page.getByRole("option", { name: /Audit/, selected: true }).waitFor();
      await page.keyboard.press("Enter");
      await page.getByRole("heading", { level: 1, name: "Audit" }).waitFor();
      const rows = page.getByRole("table", { name: "Audit" }).getByRole("row");
      await rows.nth(3).waitFor();
      await rows.nth(1).focus();
      await page.keyboard.press("ArrowDown");
      await expect.poll(() => page.evaluate("document.activeElement?.getAttribute('data-row')")).toBe("1");
      await page.keyboard.press("Enter");
      await page.getByRole("dialog").getByText("Outcome").waitFor();
      await page.keyboard.press("Escape");
      await page.getByRole("dialog").getByText("Outcome").waitFor({ state: "hidden" });
      await watched.close();
    });
  });
}
