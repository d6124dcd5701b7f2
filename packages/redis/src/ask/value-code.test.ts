import { flavors, startServer, type TestServer } from "@sluice/test-servers";
import { distinctError, leastValues } from "sluice/internal";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { encodeValue } from "./value-code.ts";

describe.each(flavors)("the value of a request on %s", (flavor) => {
  let server: TestServer;
  beforeAll(async () => {
    server = await startServer({ flavor });
  });
  afterAll(() => server.close());

  it("raises the register that we expect, to the number that we expect, and is new exactly if it does", async () => {
    const dense = Buffer.alloc(12_304);
    dense.write("HYLL", 0, "latin1");
    dense[15] = 128;
    await server.command("SET", "sketch", dense);
    const known = new Map<number, number>();
    for (let i = 0; i < 3000; i++) {
      const { bytes, place } = encodeValue(`user ${i}`);
      const [register, rank] = [Math.floor(place / 64), place % 64];
      const isNew = (known.get(register) ?? 0) < rank;
      if (isNew) known.set(register, rank);
      expect(await server.command("PFADD", "sketch", bytes), `user ${i}`).toBe(isNew ? 1 : 0);
    }
    expect(Number(await server.command("PFCOUNT", "sketch"))).toBeGreaterThan(2900);
  });

  it("is counted by the server on the low side from 10 to 1 000 000 values, in a tenth of a set", async () => {
    const add = `for i = ARGV[1] + 1, ARGV[2], 1000 do
      local some = {}
      for n = i, math.min(i + 999, ARGV[2]) do some[#some + 1] = n end
      redis.call('PFADD', KEYS[1], unpack(some))
    end
    return redis.call('PFCOUNT', KEYS[1])`;
    let before = 0;
    for (const size of [10, 100, 1000, 10_000, 100_000, 1e6]) {
      const count = leastValues(Number(await server.command("EVAL", add, 1, "many", before, size)));
      expect(count, `${size}`).toBeLessThanOrEqual(size);
      expect(count, `${size}`).toBeGreaterThanOrEqual(Math.floor(size / (1 + distinctError)));
      before = size;
    }
    const fill = "for i = 1, 10000 do redis.call('SADD', KEYS[1], 'user-' .. i) end";
    await server.command("EVAL", fill, 1, "set");
    const [sketch, set] = [
      await server.command("MEMORY", "USAGE", "many"),
      await server.command("MEMORY", "USAGE", "set"),
    ];
    expect(Number(sketch)).toBeLessThan(Number(set) / 10);
  });
});
