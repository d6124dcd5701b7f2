import { describe, expect, it } from "vitest";
import type { ConsoleBrowser } from "../console-browser.ts";
import { seedManyPolicies, seedManySubjects } from "../world/seed-many.ts";

const mostRows = 200;

export function describeSizes(use: () => ConsoleBrowser): void {
  describe("stays small", () => {
    it("with 10 000 policies and 100 000 subjects: at most 200 rows are in the page", async () => {
      const { store } = use().world;
      await seedManyPolicies(store, 10_000);
      await seedManySubjects(store, 100_000);
      const watched = await use().openAs("viewer", "/access");
      const { page } = watched;
      await page.getByRole("link", { name: "Policies" }).click();
      await page
        .getByText(/10,0\d\d/)
        .first()
        .waitFor();
      await page.getByRole("row").nth(20).waitFor();
      expect(await page.getByRole("row").count()).toBeLessThanOrEqual(mostRows);
      await watched.close();
    }, 180_000);
  });
}
