import { describe, expect, it } from "vitest";
import type { ConsoleBrowser } from "../console-browser.ts";

const minuteMs = 60_000;

/** A policy that a steady crowd uses, far below its limit. */
const document = (perHour: number): Record<string, unknown> => ({
  id: "feed",
  owner: "search",
  match: { endpoint: "/v1/feed" },
  limits: [{ by: ["user"], algorithm: "fixed_window", windows: [`${perHour}/h`] }],
  on_failure: "open",
});

export function describeRollouts(use: () => ConsoleBrowser): void {
  describe("shows rollouts", () => {
    it("of a version that denies too much: its steps, the comparison, and that it was rolled back", async () => {
      const { admin, traffic } = use().world;
      await admin.policies.put("feed", document(1_000_000) as never, { expected: 0 });
      traffic.add(
        Array.from({ length: 20 }, (_, i) => ({ dimensions: { endpoint: "/v1/feed", user: `reader-${i}` } })),
      );
      const rollout = {
        by: "user",
        observe_for_ms: 8 * minuteMs,
        steps: [50, 100].map((percent) => ({ percent, hold_ms: 120 * minuteMs })),
      };
      const { policy } = await admin.policies.put("feed", document(2) as never, { expected: 1, rollout });
      const watched = await use().openAs("editor", "/rollouts");
      const { page } = watched;
      await page.getByRole("table", { name: "Rollouts underway" }).getByText("1 → 2").click();
      await page.getByRole("heading", { level: 1, name: /feed/ }).waitFor();
      await page.getByText("observing").or(page.getByText("running")).first().waitFor();
      await page.getByRole("button", { name: "Roll back" }).waitFor();
      await page.getByText("rolled back", { exact: true }).first().waitFor({ timeout: 90_000 });
      await page.getByText("rolled back here").waitFor();
      await page
        .getByText(/3 times in a row/)
        .first()
        .waitFor();
      await page.getByRole("figure", { name: /Share of denials per minute/ }).waitFor();
      expect(await page.getByRole("button", { name: "Advance" }).count()).toBe(0);
      expect(await admin.rollouts.get(policy.rollout!.id)).toMatchObject({ state: "rolled_back" });
      await watched.close();
    }, 150_000);

    it("and pauses one, with an undo", async () => {
      const { admin } = use().world;
      await admin.policies.put("news", { ...document(1_000), id: "news", match: { endpoint: "/v1/news" } } as never, {
        expected: 0,
      });
      const next = { ...document(2_000), id: "news", match: { endpoint: "/v1/news" } } as never;
      const rollout = {
        observe_for_ms: 0,
        steps: [
          { percent: 10, hold_ms: 0 },
          { percent: 100, hold_ms: 0 },
        ],
      };
      const { policy } = await admin.policies.put("news", next, { expected: 1, rollout });
      const watched = await use().openAs("editor", `/rollouts/${policy.rollout!.id}`);
      const { page } = watched;
      await page.getByRole("button", { name: "Pause" }).click();
      await page.getByRole("dialog").getByLabel("Reason").fill("look first");
      await page.getByRole("dialog").getByRole("button", { name: "Pause" }).click();
      await page.getByRole("heading", { level: 1 }).getByText("paused").waitFor();
      await page.getByRole("button", { name: "Undo" }).click();
      await page.getByRole("heading", { level: 1 }).getByText("running").waitFor();
      expect(await admin.rollouts.get(policy.rollout!.id)).toMatchObject({ state: "running" });
      await watched.close();
    });
  });
}
