import type { Page } from "playwright-core";
import { describe, expect, it } from "vitest";
import type { ConsoleBrowser } from "../console-browser.ts";
import type { ConsoleWorld } from "../world/start-console-world.ts";

/** Whether acme may search now: on the decision port, without charging it. */
async function maySearch({ nodes }: ConsoleWorld): Promise<boolean> {
  const response = await fetch(`${nodes[0]!.http}/v1/check`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ dimensions: { tenant: "acme", method: "GET", endpoint: "/v1/search" }, preview: true }),
  });
  return ((await response.json()) as { allowed: boolean }).allowed;
}

async function confirm(page: Page, action: string, why: string): Promise<void> {
  const dialog = page.getByRole("dialog").filter({ has: page.getByLabel("Reason") });
  await dialog.getByLabel("Reason").fill(why);
  await dialog.getByRole("button", { name: action, exact: true }).click();
  // Notices are dialogs, too.
  await dialog.getByLabel("Reason").waitFor({ state: "hidden" });
}

export function describeDenials(use: () => ConsoleBrowser): void {
  describe("explains denials", () => {
    it("shows why acme is denied, overrides its limit, shows it pass, and undoes that", async () => {
      const { world } = use();
      const watched = await use().openAs("operator", "/denials?dimension=tenant&subject=acme&policy=search");
      const { page } = watched;
      const denials = page.getByRole("table", { name: "Denials" });
      await denials.getByText("limit of 60/m reached").first().waitFor();
      await denials.getByRole("row").nth(1).getByText("GET /v1/search").click();

      await page.getByRole("heading", { level: 1, name: "Why" }).waitFor();
      await page.getByRole("region", { name: "Decision" }).getByText("Denied").waitFor();
      const windows = page.getByRole("region", { name: "Windows" });
      await windows.getByText("decides").waitFor();
      expect(await windows.getByRole("listitem").first().textContent()).toContain("search / per-tenant");

      await page.getByRole("link", { name: "acme", exact: true }).first().click();
      await page.getByRole("heading", { level: 1, name: /acme/ }).waitFor();
      await page.getByRole("region", { name: "Counters" }).getByText("60/m").waitFor();
      await page.getByRole("button", { name: "Override…" }).click();
      const dialog = page.getByRole("dialog");
      await dialog.getByLabel("Policy").selectOption("search");
      await dialog.getByLabel("Windows").fill("9000/m");
      await confirm(page, "Set the override", "They pay for more");
      // A notice stays for as long as the pointer is on it.
      await page.getByText("acme has 9000/m").hover();
      await page.getByRole("region", { name: "Custom limits" }).getByText("9000/m").waitFor();
      await expect.poll(() => maySearch(world)).toBe(true);
      await page.getByRole("region", { name: "Counters" }).getByText("override", { exact: true }).waitFor();

      await page.getByRole("button", { name: "Undo" }).click();
      await page.getByRole("region", { name: "Custom limits" }).getByText("No custom limit").waitFor();
      await expect.poll(() => maySearch(world)).toBe(false);
      const { items } = (await world.admin.audit.list({ kind: "subject", target: "tenant:acme" }).pages().next())
        .value!;
      expect(items.slice(0, 2).map(({ action, why }) => [action, why])).toEqual([
        [expect.stringMatching(/^subject\./), "Undone in the console"],
        ["subject.override", "They pay for more"],
      ]);
      await watched.close();
    });

    it("explains a pasted command, without its credentials", async () => {
      const watched = await use().openAs("viewer", "/why");
      const { page } = watched;
      watched.keepSecret("a-very-secret-key");
      const command =
        "curl https://api.example/v1/exports -X POST -H 'X-Tenant: hooli' -H 'Authorization: Bearer a-very-secret-key'";
      await page.getByRole("textbox", { name: "Request" }).fill(command);
      await page.getByText("authorization was left out").waitFor();
      await page.getByRole("button", { name: "Explain" }).click();
      await page.getByRole("region", { name: "Decision" }).getByText("Allowed").waitFor();
      await page.getByRole("region", { name: "Policies that apply" }).getByRole("link", { name: "export" }).waitFor();
      expect(decodeURIComponent(page.url())).toContain("tenant=hooli");
      await watched.close();
    });

    it("shows decisions live, filtered, and stops when it is paused", async () => {
      const watched = await use().openAs("viewer", "/live?answer=denied&dimension=tenant&subject=acme");
      const { page } = watched;
      const table = page.getByRole("table", { name: "Live decisions" });
      await table.getByText("denied").first().waitFor();
      expect(await table.getByText("allowed", { exact: true }).count()).toBe(0);
      await page.getByText(/shown of \d+ decided by berlin-1/).waitFor();
      await page.getByRole("button", { name: "Pause" }).click();
      await page.getByText("paused").waitFor();
      await watched.close();
    });
  });
}
