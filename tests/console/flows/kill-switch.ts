import { describe, expect, it } from "vitest";
import type { ConsoleBrowser } from "../console-browser.ts";

export function describeKillSwitch(use: () => ConsoleBrowser): void {
  describe("has a kill switch", () => {
    it("that needs a typed word, shows a banner in every view, and is turned off there", async () => {
      const { admin } = use().world;
      const watched = await use().openAs("operator", "/operations");
      const { page } = watched;
      await page.getByRole("button", { name: "Allow everything…" }).click();
      const dialog = page.getByRole("dialog");
      const action = dialog.getByRole("button", { name: "Allow everything", exact: true });
      await dialog.getByLabel("Reason").fill("The counters answer nonsense");
      expect(await action.isDisabled()).toBe(true);
      await dialog.getByLabel("Type allow everything to confirm").fill("allow everything");
      await dialog.getByLabel("Ends after").selectOption({ label: "5 minutes" });
      await action.click();
      const banner = page.getByRole("alert").filter({ hasText: "The kill switch is on: every check is allowed." });
      await banner.waitFor();
      expect(await admin.killSwitch.get()).toMatchObject({ mode: "open", reason: "The counters answer nonsense" });

      await page.getByRole("link", { name: "Hot keys" }).click();
      await page.getByRole("heading", { level: 1, name: "Hot keys and leases" }).waitFor();
      await banner.getByRole("button", { name: "Turn off" }).click();
      await dialog.getByLabel("Reason").fill("repaired");
      await dialog.getByRole("button", { name: "Turn off" }).click();
      await expect.poll(() => admin.killSwitch.get()).toMatchObject({ mode: "off" });
      await banner.waitFor({ state: "hidden" });
      await watched.close();
    });
  });
}
