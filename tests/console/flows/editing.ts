import { describe, expect, it } from "vitest";
import type { ConsoleBrowser } from "../console-browser.ts";

/** The policy of the editor's team, with another window. */
const yamlWith = (window: string): string => `id: search.next
description: The limit that we would like to have for search
owner: search
match:
  endpoint: /v1/search
mode: shadow
limits:
  - by: [user]
    algorithm: sliding_window
    windows: [${window}]
on_failure: open
`;

export function describeEditing(use: () => ConsoleBrowser): void {
  describe("edits with proof", () => {
    it("shows an error at its line and what changes, publishes, and undoes that", async () => {
      const { admin } = use().world;
      const { version } = await admin.policies.get("search.next");
      const watched = await use().openAs("editor", "/policies/search.next/edit");
      const { page } = watched;
      const yaml = page.getByRole("textbox", { name: "Policy as YAML" });
      const write = async (text: string): Promise<void> => {
        await yaml.click();
        await page.keyboard.press("Control+a");
        await page.keyboard.insertText(text);
      };
      const publish = page.getByRole("button", { name: "Publish…" });
      await write(yamlWith("400/fortnight"));
      await page
        .getByRole("region", { name: "What it means" })
        .getByText(/^Line 10: .*windows/)
        .waitFor();
      await yaml.getByText(/has an unknown unit/).waitFor();
      expect(await publish.isDisabled()).toBe(true);

      await write(yamlWith("500/m"));
      await page.getByText("Ready to publish").waitFor();
      const diff = page.getByRole("region", { name: "Stored version and this edit" });
      await diff
        .getByRole("textbox", { name: `Version ${version}` })
        .getByText("400/m")
        .waitFor();
      await diff.getByRole("textbox", { name: "This edit" }).getByText("500/m").waitFor();
      await publish.click();
      const dialog = page.getByRole("dialog").filter({ has: page.getByLabel("Reason") });
      await dialog.getByLabel("Reason").fill("Searches have become cheaper");
      await dialog.getByRole("button", { name: "Publish", exact: true }).click();
      await page.getByText(`Published version ${version + 1} of search.next`).hover();
      const windowsOf = async () => {
        const { limits } = (await admin.policies.get("search.next")).document as { limits: { windows: string[] }[] };
        return limits[0]!.windows;
      };
      expect(await windowsOf()).toEqual(["500/m"]);
      await page.getByRole("button", { name: "Undo" }).click();
      await expect.poll(windowsOf).toEqual(["400/m"]);
      await watched.close();
    });
  });
}
