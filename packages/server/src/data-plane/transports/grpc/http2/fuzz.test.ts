import { CheckRequest, RateLimiterDefinition as service } from "@sluice/protocol";
import { createLimiter } from "sluice";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { connectForTest, type GrpcTestClient } from "../../../../testing/grpc-client.ts";
import {
  createTestService,
  type ListeningTransport,
  listenForTest,
  silentLog,
} from "../../../../testing/test-service.ts";
import { wholeGrpcServer } from "../../../../testing/whole-servers.ts";
import { fuzzFrames } from "./testing/fuzz-frames.ts";

/** `npm run fuzz` goes on for longer, with other seeds. */
const conversations = 300;

let listening: ListeningTransport;
let client: GrpcTestClient;
const errors: unknown[] = [];

beforeAll(async () => {
  const log = { ...silentLog, error: (event: string, fields?: object) => void errors.push({ event, ...fields }) };
  const transport = wholeGrpcServer(createTestService(createLimiter({}), { log }), { engine: "sluice" });
  listening = await listenForTest("grpc", transport);
  client = connectForTest(listening.address);
});

afterAll(async () => {
  client.close();
  await listening.close();
});

describe("conversations by the grammar of frames", () => {
  it("are answered with frames alone, and leave the server well", async () => {
    const ended = new Map<number | undefined, number>();
    let frames = 0;
    for (let seed = 0; seed < conversations; seed += 10) {
      const outcomes = await Promise.all(Array.from({ length: 10 }, (_, i) => fuzzFrames(listening.port, seed + i)));
      for (const outcome of outcomes) {
        ended.set(outcome.goAway, (ended.get(outcome.goAway) ?? 0) + 1);
        frames += outcome.frames;
      }
      const request = CheckRequest.fromPartial({ dimensions: { user: "neighbour" } });
      expect(await client.call(service, "check", request), `seeds ${seed} to ${seed + 9}`).toMatchObject({
        allowed: true,
      });
    }
    expect(errors).toEqual([]);
    // Most conversations are long, and some are fatal: the grammar is neither all nonsense nor all good.
    expect(frames).toBeGreaterThan(conversations * 5);
    expect(ended.get(undefined)).toBeGreaterThan(conversations / 10);
    expect(ended.size).toBeGreaterThan(3);
  });
});
