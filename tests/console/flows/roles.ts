import { describe, expect, it } from "vitest";
import type { ConsoleBrowser } from "../console-browser.ts";

export function describeRoles(use: () => ConsoleBrowser): void {
  describe("knows roles", () => {
    it("offers a viewer no action, and the server refuses one all the same", async () => {
      const watched = await use().openAs("viewer", "/subjects/tenant/acme");
      const { page } = watched;
      await page.getByRole("region", { name: "Counters" }).getByText("60/m").waitFor();
      for (const name of ["Override…", "More"]) expect(await page.getByRole("button", { name }).count(), name).toBe(0);
      await page.getByRole("link", { name: "Operations" }).click();
      await page
        .getByRole("table", { name: /^Nodes/ })
        .getByText("current")
        .waitFor();
      expect(await page.getByRole("button", { name: /everything…|Switch off/ }).count()).toBe(0);
      await page.getByRole("link", { name: "Access" }).click();
      await page.getByText("Tokens are for admins").waitFor();
      expect(await page.getByRole("button", { name: "Make a token…" }).count()).toBe(0);

      const ask = `fetch("/api/v1/kill-switch", {
        method: "PUT",
        headers: { "content-type": "application/json", "x-sluice-console": "1" },
        body: JSON.stringify({ mode: "open", why: "no" }),
      }).then((answer) => answer.status)`;
      await watched.allowing(/403/, async () => expect(await page.evaluate(ask)).toBe(403));
      await watched.close();
    });

    it("shows a new token once, and revokes it", async () => {
      const watched = await use().openAs("admin", "/access");
      const { page } = watched;
      await page.getByRole("button", { name: "Make a token…" }).click();
      const dialog = page.getByRole("dialog");
      await dialog.getByLabel("Name").fill("a-dashboard");
      await dialog.getByLabel("Reason").fill("for the wall");
      await dialog.getByRole("button", { name: "Make the token" }).click();
      const field = page.getByRole("textbox", { name: "Token" });
      await field.waitFor();
      const secret = await field.inputValue();
      expect(secret).toMatch(/^\S{20,}$/);
      expect(await page.content()).not.toContain(secret);
      watched.keepSecret(secret);
      await page.getByRole("button", { name: "I have stored it" }).click();
      await field.waitFor({ state: "hidden" });

      await page.getByRole("button", { name: "Revoke a-dashboard" }).click();
      await page.getByRole("dialog").getByLabel("Reason").fill("over");
      await page.getByRole("dialog").getByRole("button", { name: "Revoke", exact: true }).click();
      await page.getByRole("row", { name: /a-dashboard.*revoked/ }).waitFor();
      const headers = { authorization: `Bearer ${secret}` };
      const status = async () => (await fetch(`${use().world.url}/api/v1/policies`, { headers })).status;
      await expect.poll(status).toBe(401);

      await page.getByRole("link", { name: "Audit" }).click();
      await page
        .getByRole("row", { name: /token\.revoke/ })
        .first()
        .click();
      await page.getByRole("dialog").getByText("over").waitFor();
      await watched.close();
    });
  });
}
