import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { FrameReader } from "./frame-reader.ts";
import { ConnectionError, frameHeadLength, maxPayload, writeFrameHead } from "./frames.ts";

interface Frame {
  readonly type: number;
  readonly flags: number;
  readonly streamId: number;
  readonly payload: Buffer;
}

function encode({ type, flags, streamId, payload }: Frame): Buffer {
  const frame = Buffer.alloc(frameHeadLength + payload.length);
  frame.set(payload, writeFrameHead(frame, 0, payload.length, type, flags, streamId));
  return frame;
}

/** Reads chunks, and stops after every `stopAfter` frames, as a connection does whose turn is over. */
function readAll(chunks: readonly Buffer[], stopAfter: number): { frames: Frame[]; heldBytes: number } {
  const frames: Frame[] = [];
  const reader = new FrameReader({
    frame(type, flags, streamId, bytes, start, end) {
      frames.push({ type, flags, streamId, payload: Buffer.from(bytes.subarray(start, end)) });
      return frames.length % stopAfter !== 0;
    },
  });
  for (const chunk of chunks) {
    let at = 0;
    do at = reader.read(chunk, at);
    while (at < chunk.length);
  }
  return { frames, heldBytes: reader.heldBytes };
}

const frame: fc.Arbitrary<Frame> = fc.record({
  type: fc.integer({ min: 0, max: 12 }),
  flags: fc.nat(255),
  streamId: fc.nat(2 ** 31 - 1),
  payload: fc.oneof(
    fc.uint8Array({ maxLength: 60 }).map((bytes) => Buffer.from(bytes)),
    fc.constantFrom(Buffer.alloc(0), Buffer.alloc(maxPayload, 7)),
  ),
});

describe("frames", () => {
  it("are found wherever the bytes are cut, and however often reading stops", () => {
    const cuts = fc.array(fc.nat(40_000), { maxLength: 8 });
    fc.assert(
      fc.property(fc.array(frame, { maxLength: 8 }), cuts, fc.integer({ min: 1, max: 4 }), (frames, at, stopAfter) => {
        const bytes = Buffer.concat(frames.map(encode));
        const edges = [...new Set([0, ...at.filter((one) => one < bytes.length), bytes.length])].sort((a, b) => a - b);
        const chunks = edges.slice(1).map((edge, i) => bytes.subarray(edges[i], edge));
        expect(readAll(chunks, stopAfter)).toEqual({ frames, heldBytes: 0 });
      }),
    );
  });

  it("are found when every byte comes alone", () => {
    const frames: Frame[] = [
      { type: 4, flags: 0, streamId: 0, payload: Buffer.alloc(0) },
      { type: 0, flags: 1, streamId: 7, payload: Buffer.from("hello") },
    ];
    const chunks = [...Buffer.concat(frames.map(encode))].map((byte) => Buffer.from([byte]));
    expect(readAll(chunks, 1).frames).toEqual(frames);
  });

  it("that are too large are refused by their head alone", () => {
    const head = Buffer.alloc(frameHeadLength);
    writeFrameHead(head, 0, maxPayload + 1, 0, 0, 1);
    expect(() => readAll([head], 1)).toThrow(ConnectionError);
    expect(() => readAll([head.subarray(0, 4), head.subarray(4)], 1)).toThrow(ConnectionError);
  });

  it("of which a part is missing hold their size, and no more", () => {
    const bytes = encode({ type: 0, flags: 0, streamId: 1, payload: Buffer.alloc(1_000) });
    expect(readAll([bytes.subarray(0, 500)], 1).heldBytes).toBe(bytes.length);
  });
});
