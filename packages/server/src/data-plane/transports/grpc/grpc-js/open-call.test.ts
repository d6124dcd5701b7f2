import { EventEmitter } from "node:events";
import type { ServerHttp2Stream } from "node:http2";
import { describe, expect, it } from "vitest";
import { grpcMethods } from "../../../../boot/api-tables.ts";
import { unasked } from "../../../access/access.ts";
import { Turns } from "../../turns.ts";
import { CallBytes } from "../call-bytes.ts";
import { OpenCall } from "./open-call.ts";

/** As much of a stream as a call that is answered needs. */
class AnsweredStream extends EventEmitter {
  readonly closedWith: number[] = [];
  readonly pushed: unknown[] = [];
  readonly writableFinished = true;
  readonly destroyed = false;
  closed = false;
  sentTrailers: object | undefined;

  push(chunk: unknown): boolean {
    this.pushed.push(chunk);
    return true;
  }

  close(code: number): void {
    this.closed = true;
    this.closedWith.push(code);
  }
}

describe("an answered call whose client is still sending", () => {
  it("is closed only after its status has been sent, and keeps nothing of what arrives", () => {
    const stream = new AnsweredStream();
    const held = new CallBytes({ perConnection: 1e6, unknownCallers: 1e6, knownCallers: 1e6 }, new Turns());
    new OpenCall({
      id: "1",
      stream: stream as unknown as ServerHttp2Stream,
      headers: {},
      method: grpcMethods(undefined).find(({ kind }) => kind === "stream")!,
      caller: unasked,
      held,
      connection: held.open(() => {}),
      maxMessageBytes: 1024,
      onTooMuch: () => {},
      onHalfReceived: () => {},
      onClose: () => {},
    });
    stream.push(Buffer.alloc(100));
    expect(stream.closedWith).toEqual([]);
    stream.sentTrailers = {};
    stream.push(Buffer.alloc(100));
    expect(stream.closedWith).toEqual([0]);
    expect(stream.pushed).toEqual([]);
  });
});
