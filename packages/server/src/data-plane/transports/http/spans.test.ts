import { createLimiter } from "sluice";
import { describe, expect, it } from "vitest";
import type { Decide } from "../../../decide.ts";
import type { Tracing } from "../../../observe/telemetry/tracing.ts";
import { startHttp } from "./testing/start-http.ts";

describe("a span of a request", () => {
  it("ends once with the status, and as an error exactly if the fault is ours", async () => {
    const ended: unknown[] = [];
    const carriers: unknown[] = [];
    const tracing: Tracing = {
      start: (protocol, name, carrier) => {
        carriers.push([protocol, name, carrier]);
        return { around: (decide) => decide, end: (outcome) => ended.push(outcome) };
      },
      spans: { exported: 0, dropped: 0 },
      close: async () => {},
    };
    const limiter = createLimiter({ policies: { policies: [{ id: "p", limits: [{ windows: ["1/h"] }] }] } });
    const decide: Decide = {
      one: (request) => {
        if (request.dimensions?.user === "unlucky") throw new Error("a fault");
        return limiter.checkSync(request);
      },
      together: () => [],
      pending: 0,
    };
    const server = await startHttp(limiter, { tracing, decide });
    const headers = { "content-type": "application/json", traceparent: "t", tracestate: "s" };
    const ask = (body: string): Promise<Response> => fetch(`${server.url}/v1/check`, { method: "POST", headers, body });
    try {
      const bodies = ["{}", "{}", "{", '{"policies":["nowhere"]}', '{"dimensions":{"user":"unlucky"}}'];
      for (const body of bodies) await (await ask(body)).arrayBuffer();
      expect(ended).toEqual([
        { status: 200 },
        { status: 429 },
        { status: 400 },
        { status: 400 },
        { status: 500, error: "internal" },
      ]);
      expect(carriers[0]).toEqual(["http", "POST /v1/check", { traceparent: "t", tracestate: "s" }]);
    } finally {
      await server.close();
    }
  });
});
