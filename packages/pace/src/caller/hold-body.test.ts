import { Readable } from "node:stream";
import { expect, it } from "vitest";
import { holdBody } from "./hold-body.ts";

it("reports a stream that breaks, and closes one that is not sent", () => {
  const errors: unknown[] = [];
  const body = new Readable({ read: () => undefined });
  const held = holdBody(body, (error) => errors.push(error));
  body.emit("error", new Error("broken"));
  held.discard(new Error("no turn"));
  expect([errors, body.destroyed]).toEqual([[new Error("broken")], true]);
  // Destroying may fail as well, and no other code listens for that error.
  expect(() => body.emit("error", new Error("later"))).not.toThrow();
  expect(errors).toHaveLength(1);
});

it("leaves a stream alone once it is sent", async () => {
  const errors: unknown[] = [];
  const body = new Readable({ read: () => undefined });
  const held = holdBody(body, (error) => errors.push(error));
  held.release();
  held.discard(new Error("no turn"));
  expect([body.destroyed, body.listenerCount("error")]).toEqual([false, 0]);

  let cancelled = false;
  const web = new ReadableStream({
    cancel() {
      cancelled = true;
    },
  });
  const heldWeb = holdBody(web);
  heldWeb.release();
  heldWeb.discard(new Error("no turn"));
  expect(cancelled).toBe(false);
});

it.each([undefined, null, "text", new Uint8Array(3), {}, { on: 5 }])("needs nothing for other bodies: %s", (body) => {
  const held = holdBody(body);
  held.release();
  held.discard(new Error("no turn"));
});

it("leaves a locked stream alone, and ignores a failing cancel", async () => {
  const locked = new ReadableStream();
  locked.getReader();
  holdBody(locked).discard(new Error("no turn"));
  const failing = new ReadableStream({ cancel: () => Promise.reject(new Error("cannot")) });
  holdBody(failing).discard(new Error("no turn"));
  await new Promise((resolve) => setImmediate(resolve));
});
