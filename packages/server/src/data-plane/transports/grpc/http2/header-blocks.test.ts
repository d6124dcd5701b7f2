import { describe, expect, it } from "vitest";
import { HeaderBlocks } from "./header-blocks.ts";

/** `:method POST`, `:scheme http`, `:path /` of the static table. */
const block = Buffer.from([0x83, 0x86, 0x84]);

describe("header blocks", () => {
  it("are read if a part has no bytes, however often that happens", () => {
    const blocks = new HeaderBlocks();
    for (let i = 0; i < 50; i++) {
      blocks.addPart(block, 0, 0);
      expect(blocks.readHead(block, 0, block.length)).toMatchObject({ method: "POST", path: "/", malformed: false });
    }
    expect(blocks.readHead(block, 0, block.length)).toMatchObject({ method: "POST" });
  });

  it("are refused in too many parts", () => {
    const blocks = new HeaderBlocks();
    expect(() => {
      for (let i = 0; i < 100; i++) blocks.addPart(block, 0, 0);
    }).toThrow("too many parts");
  });

  it("that came before are recognized, and mean the same", () => {
    const blocks = new HeaderBlocks();
    const head = blocks.readHead(block, 0, block.length);
    expect(blocks.readHead(Buffer.from(block), 0, block.length)).toBe(head);
  });
});
