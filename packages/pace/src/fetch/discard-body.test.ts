import { describe, expect, it } from "vitest";
import { settled } from "../testing/manual-time.ts";
import { discardBody } from "./discard-body.ts";

/** A body of chunks, and a log of what happens to it. */
function createBody(chunks: number, chunkBytes: number) {
  const log = { read: 0, cancelled: false };
  const body = new ReadableStream<Uint8Array>(
    {
      pull(controller) {
        if (log.read === chunks) controller.close();
        else {
          log.read += 1;
          controller.enqueue(new Uint8Array(chunkBytes));
        }
      },
      cancel() {
        log.cancelled = true;
      },
    },
    { highWaterMark: 0 },
  );
  return { body, log };
}

describe("a discarded body", () => {
  it("is read to its end", async () => {
    const { body, log } = createBody(60, 1024);
    const end = discardBody(body);
    await settled();
    expect(log).toEqual({ read: 60, cancelled: false });
    end();
    await settled();
    expect(log.cancelled).toBe(false);
  });

  it("is cut off if it is long", async () => {
    const { body, log } = createBody(1000, 1024);
    discardBody(body);
    await settled();
    expect(log).toEqual({ read: 65, cancelled: true });
  });

  it("is cut off when its time is over", async () => {
    let cancelled = false;
    const endless = new ReadableStream({
      cancel() {
        cancelled = true;
      },
    });
    const end = discardBody(endless);
    await settled();
    expect(cancelled).toBe(false);
    end();
    expect(cancelled).toBe(true);
  });

  it("may break, or not be there at all", async () => {
    const broken = new ReadableStream({
      pull() {
        throw new Error("broken");
      },
    });
    const end = discardBody(broken);
    await settled();
    end();
    discardBody(null)();
    discardBody(undefined)();
    await settled();
  });
});
