import { flavors, startServer } from "@sluice/test-servers";
import { describe, expect, it } from "vitest";
import { scripts } from "./scripts.generated.ts";

describe.each(flavors)("the scripts on %s", (flavor) => {
  it("are known there by the digests that they are called by", async () => {
    const server = await startServer({ flavor });
    try {
      for (const [name, { source, digest }] of Object.entries(scripts)) {
        expect([name, await server.command("SCRIPT", "LOAD", source)]).toEqual([name, digest]);
      }
      const digests = Object.values(scripts).map(({ digest }) => digest);
      expect(await server.command("SCRIPT", "EXISTS", ...digests)).toEqual(digests.map(() => 1));
      expect(digests.length).toBeGreaterThan(4);
    } finally {
      await server.close();
    }
  });
});
