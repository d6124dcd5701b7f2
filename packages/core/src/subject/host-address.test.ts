import { describe, expect, it } from "vitest";
import { isLoopback } from "./host-address.ts";

describe("a host", () => {
  it("is loopback in all its spellings", () => {
    const own = ["127.0.0.1", "127.1.2.3", "::1", "[::1]", "0:0:0:0:0:0:0:1", "localhost", "LOCALHOST", "[localhost]"];
    for (const host of [...own, "::ffff:127.0.0.1", "::FFFF:7f00:1"]) expect(isLoopback(host), host).toBe(true);
    const others = ["", "0.0.0.0", "::", "::ffff:0.0.0.0", "128.0.0.1", "::127.0.0.1", "fe80::1%lo", "0", "127.1"];
    // A name that is not an address is looked up, and the name server may answer anything.
    const names = ["127.0.0.999", "127.0.0.1.example", "localhost.example", "localhost."];
    for (const host of [...others, ...names]) expect(isLoopback(host), host).toBe(false);
  });
});
