import { CheckBatchRequest } from "@sluice/protocol";
import { describe, expect, it } from "vitest";
import { unasked } from "../../../access/access.ts";
import { Turns } from "../../turns.ts";
import { HeldConnection } from "../call-bytes.ts";
import type { GrpcContext, MessageStream, Method } from "../method.ts";
import { MethodRunner } from "../method-runner.ts";
import type { CallHost } from "./call-host.ts";
import { GrpcCall } from "./grpc-call.ts";
import { RequestHead } from "./request-head.ts";
import { Stream, type StreamCarrier } from "./stream.ts";
import { message } from "./testing/raw-client.ts";

const carrier = {
  sendWindow: 65_535,
  writeHeaders() {},
  writeReset() {},
  writeWindowUpdate() {},
  touch() {},
  block() {},
  answeredEarly() {},
  remove() {},
  owe() {},
} as unknown as StreamCarrier;

const withinMs = 30_000;

function streamCall(taken: Uint8Array[]): { call: GrpcCall; host: { heardMs: number } } {
  const context = { metrics: { countGrpcCall() {} } } as unknown as GrpcContext;
  const definition = { path: "/any/Stream", requestDeserialize: (bytes: Buffer) => bytes, responseSerialize: () => {} };
  const handle = (stream: MessageStream): void =>
    stream.read(
      (bytes) => taken.push(Buffer.from(bytes)),
      () => {},
    );
  const method = { definition, needs: "nothing", kind: "stream", handle } as unknown as Method;
  const turns = new Turns();
  const host = {
    context,
    held: new HeldConnection(() => {}, turns),
    turns,
    remoteAddress: undefined,
    heardMs: 1_000,
    messageWithinMs: withinMs,
    hasRoom: true,
    hold: () => true,
    answered() {},
  } satisfies CallHost;
  const stream = new Stream(1, carrier, 65_535);
  const call = new GrpcCall(
    stream,
    new RequestHead(),
    new MethodRunner(method, context),
    unasked,
    host,
    Infinity,
    1_000_000,
  );
  call.begin();
  return { call, host };
}

describe("a stream whose frames never end with a message", () => {
  const one = message(CheckBatchRequest.encode({ sequence: 1, checks: [], deadlineMs: 0 }).finish());
  /** The rest of one message, and the beginning of the next. */
  const frameBytes = Buffer.concat([one.subarray(3), one.subarray(0, 3)]);

  it("goes on as long as messages arrive", () => {
    const taken: Uint8Array[] = [];
    const { call, host } = streamCall(taken);
    call.data(one, 0, 3, false);
    for (let i = 0; i < 10; i++) {
      host.heardMs += withinMs / 2;
      call.data(frameBytes, 0, frameBytes.length, false);
      call.tick(host.heardMs + 1_000);
    }
    expect([taken.length, call.isOver]).toEqual([10, false]);
  });

  it("is ended if one of them does not", () => {
    const { call, host } = streamCall([]);
    call.data(one, 0, 3, false);
    for (let i = 0; i < 10; i++) {
      host.heardMs += withinMs / 2;
      call.data(one, 3, 3, false);
      call.tick(host.heardMs + 1_000);
    }
    expect(call.isOver).toBe(true);
  });
});
