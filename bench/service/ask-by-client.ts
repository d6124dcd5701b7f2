import { Client, credentials } from "@grpc/grpc-js";
import { connect } from "@sluice/client";
import { CheckRequest, Decision } from "@sluice/protocol";
import type { Load } from "./load-tools.ts";

const concurrency = 64;
const createDimensions = (i: number): Record<string, string> => ({
  tenant: `t${i % 7}`,
  user: `user-${i % 1000}`,
  endpoint: "/v1/orders",
});

interface Asked {
  readonly checks: number;
  readonly load: Load;
}

/** A fixed number at a time until all are done; the first denial, or answer without counters, ends it. */
async function askAll(count: number, ask: (i: number) => Promise<boolean>): Promise<Asked> {
  let next = 0;
  const started = performance.now();
  await Promise.all(
    Array.from({ length: concurrency }, async () => {
      while (next < count) if (!(await ask(next++))) throw new Error("a check was not decided as expected");
    }),
  );
  return { checks: count, load: { perSecond: count / ((performance.now() - started) / 1000) } };
}

/** With the remote client, which sends the checks of one tick together. */
export async function askTogether(port: number, count: number): Promise<Asked> {
  const limiter = connect(`grpc://127.0.0.1:${port}`, { whenUnavailable: "closed", deadlineMs: 10_000 });
  try {
    return await askAll(count, async (i) => {
      const { allowed, degraded } = await limiter.check({ dimensions: createDimensions(i) });
      return allowed && degraded === undefined;
    });
  } finally {
    await limiter.close();
  }
}

/** With a separate call for each check. */
export async function askOneByOne(port: number, count: number): Promise<Asked> {
  const client = new Client(`127.0.0.1:${port}`, credentials.createInsecure());
  const serialize = (message: CheckRequest): Buffer => Buffer.from(CheckRequest.encode(message).finish());
  const ask = (i: number): Promise<boolean> =>
    new Promise((resolve, reject) => {
      const request = CheckRequest.fromPartial({ dimensions: createDimensions(i) });
      client.makeUnaryRequest("/sluice.v1.RateLimiter/Check", serialize, Decision.decode, request, (error, answer) =>
        error === null ? resolve(answer?.allowed === true) : reject(error),
      );
    });
  try {
    return await askAll(count, ask);
  } finally {
    client.close();
  }
}
