import assert from "node:assert/strict";
import { CheckBatchRequest, CheckBatchResponse, Reason } from "@sluice/protocol";
import { BadRequest, ErrorInfo, Status } from "@sluice/protocol/status";
import { assertCode, type ContractCase, checkCall, checkPath, code, decisionFrom } from "./contract-case.ts";
import { bulkLimit, newName } from "./contract-world.ts";

/** Single calls: decisions, refusals and bounds. */
export const callCases: readonly ContractCase[] = [
  {
    name: "allows what is within a limit, and denies what is not, both with OK",
    needs: [],
    async run(client, { open }) {
      const call = checkCall({ dimensions: { user: newName() }, cost: 2 });
      const allowed = decisionFrom(await client.call(open.target, call));
      assert.deepEqual([allowed.allowed, allowed.policy, allowed.remaining], [true, "few", 0]);
      const denied = decisionFrom(await client.call(open.target, call));
      assert.deepEqual([denied.allowed, denied.reason], [false, Reason.OVER_LIMIT]);
      assert.ok(Number(denied.retryAfterMs) > 0);
    },
  },
  {
    name: "reads a message without a byte",
    needs: [],
    async run(client, { open }) {
      const { allowed } = decisionFrom(await client.call(open.target, checkCall({ domain: "" })));
      assert.equal(typeof allowed, "boolean");
    },
  },
  {
    name: "refuses a call without a token, by trailers alone",
    needs: [],
    async run(client, { guarded }) {
      const user = newName();
      const call = checkCall({ domain: "bulk", dimensions: { user } }, { headersSuffice: true });
      const outcome = await client.call(guarded.target, call);
      assertCode(outcome, code.unauthenticated);
      assert.equal(outcome.trailers["sluice-code"], "unauthenticated");
      assert.notEqual(outcome.trailersOnly, false);
      assert.equal(await guarded.charged(user), 0);
    },
  },
  {
    name: "refuses a call with a wrong token, by trailers alone",
    needs: [],
    async run(client, { guarded }) {
      const metadata = { authorization: "Bearer wrong" };
      const call = checkCall({ dimensions: { user: newName() } }, { metadata, headersSuffice: true });
      const outcome = await client.call(guarded.target, call);
      assertCode(outcome, code.unauthenticated);
      assert.notEqual(outcome.trailersOnly, false);
    },
  },
  {
    name: "refuses a token whose role is too small, and admits one that suffices",
    needs: [],
    async run(client, { guarded, tokens }) {
      const as = (token: string) => ({ metadata: { authorization: `Bearer ${token}` } });
      const request = { dimensions: { user: newName() } };
      const refused = checkCall(request, { ...as(tokens.viewer), headersSuffice: true });
      assertCode(await client.call(guarded.target, refused), code.permissionDenied);
      assert.equal(decisionFrom(await client.call(guarded.target, checkCall(request, as(tokens.check)))).allowed, true);
    },
  },
  {
    name: "answers UNIMPLEMENTED to methods and services that it does not have",
    needs: [],
    async run(client, { open }) {
      for (const method of ["/sluice.v1.RateLimiter/Guess", "/no.such.Service/Check"]) {
        const call = { ...checkCall({}), method, headersSuffice: true };
        assertCode(await client.call(open.target, call), code.unimplemented);
      }
    },
  },
  {
    name: "refuses bytes that are no message",
    needs: [],
    async run(client, { open }) {
      const outcome = await client.call(open.target, { method: checkPath, requests: [Buffer.from([0xff, 0xff])] });
      assertCode(outcome, code.invalidArgument);
      assert.equal(outcome.trailers["sluice-code"], "invalid_request");
    },
  },
  {
    name: "sends error messages in any script, percent-encoded",
    needs: [],
    async run(client, { open }) {
      const outcome = await client.call(open.target, checkCall({ policies: ["名前 100% ü"] }));
      assertCode(outcome, code.notFound);
      assert.ok(outcome.message.includes("名前 100% ü"), outcome.message);
    },
  },
  {
    name: "sends the details of an error as bytes",
    needs: [],
    async run(client, { open }) {
      const outcome = await client.call(open.target, checkCall({ dimensions: { ip: "x" } }));
      assertCode(outcome, code.invalidArgument);
      const { details } = Status.decode(Buffer.from(outcome.trailers["grpc-status-details-bin"]!, "base64"));
      assert.equal(ErrorInfo.decode(details[0]!.value).reason, "invalid_request");
      assert.equal(BadRequest.decode(details[1]!.value).fieldViolations[0]!.field, "dimensions.ip");
    },
  },
  {
    name: "reads a message of 1 MiB, for which flow-control windows must grow",
    needs: [],
    async run(client, { open }) {
      const { requests } = checkCall({ dimensions: { user: newName() } });
      const message = paddedTo(1024 * 1024, requests[0]!);
      const outcome = await client.call(open.target, { method: checkPath, requests: [message] });
      assert.equal(decisionFrom(outcome).allowed, true);
    },
  },
  {
    name: "refuses a larger message with RESOURCE_EXHAUSTED, and serves the next call",
    needs: ["early answers"],
    async run(client, { open }) {
      const user = newName();
      const { requests } = checkCall({ domain: "bulk", dimensions: { user } });
      const message = paddedTo(1024 * 1024 + 1, requests[0]!);
      const outcome = await client.call(open.target, { method: checkPath, requests: [message] });
      assertCode(outcome, code.resourceExhausted);
      assert.equal(await open.charged(user), 0);
      const next = checkCall({ domain: "bulk", dimensions: { user } });
      assert.equal(decisionFrom(await client.call(open.target, next)).allowed, true);
    },
  },
  {
    name: "sends an answer that is larger than the client's windows",
    needs: [],
    async run(client, { open }) {
      const user = newName();
      const checks = Array.from({ length: 1_000 }, () => ({ domain: "bulk", dimensions: { user }, details: true }));
      const batch = CheckBatchRequest.encode(CheckBatchRequest.fromPartial({ sequence: 7, checks })).finish();
      const outcome = await client.call(open.target, {
        method: "/sluice.v1.RateLimiter/CheckBatch",
        requests: [batch],
      });
      assertCode(outcome, code.ok);
      assert.ok(outcome.responses[0]!.length > 65_535);
      const { results } = CheckBatchResponse.decode(outcome.responses[0]!);
      assert.equal(results.filter(({ decision }) => decision?.allowed).length, 1_000);
      assert.equal(await open.charged(user), 1_000);
    },
  },
  {
    name: "reads metadata of 10 KiB",
    needs: [],
    async run(client, { open }) {
      const metadata = Object.fromEntries(Array.from({ length: 80 }, (_, i) => [`x-field-${i}`, "v".repeat(100)]));
      const call = checkCall({ dimensions: { user: newName() } }, { metadata });
      assert.equal(decisionFrom(await client.call(open.target, call)).allowed, true);
      assert.equal(decisionFrom(await client.call(open.target, call)).allowed, true);
    },
  },
  {
    name: "refuses metadata beyond 16 KiB, charges nothing, and serves the next call",
    needs: [],
    async run(client, { open }) {
      const user = newName();
      const metadata = Object.fromEntries(Array.from({ length: 40 }, (_, i) => [`x-field-${i}`, "v".repeat(500)]));
      const request = { domain: "bulk", dimensions: { user } };
      const outcome = await client.call(open.target, checkCall(request, { metadata, headersSuffice: true }));
      assert.notEqual(outcome.code, code.ok);
      assert.equal(await open.charged(user), 0);
      assert.equal(decisionFrom(await client.call(open.target, checkCall(request))).remaining, bulkLimit - 1);
    },
  },
  {
    name: "answers a call with plenty of time left, and reports a deadline that is over",
    needs: ["server streams"],
    async run(client, { open }) {
      const call = checkCall({ dimensions: { user: newName() } }, { timeoutMs: 60_000 });
      assert.equal(decisionFrom(await client.call(open.target, call)).allowed, true);
      // Health reports a change when there is one, and so this call lasts until its deadline.
      const watch = { method: "/grpc.health.v1.Health/Watch", kind: "server stream" as const, timeoutMs: 400 };
      const outcome = await client.call(open.target, { ...watch, requests: [new Uint8Array()] });
      assertCode(outcome, code.deadlineExceeded);
    },
  },
  {
    name: "reads a message compressed with gzip, or answers UNIMPLEMENTED with what it reads",
    needs: ["gzip"],
    async run(client, { open, engine }) {
      const user = newName().repeat(6);
      const call = checkCall({ domain: "bulk", dimensions: { user } }, { gzip: true });
      const outcome = await client.call(open.target, call);
      if (engine.gzip === "reads") {
        assert.equal(decisionFrom(outcome).allowed, true);
        return;
      }
      assertCode(outcome, code.unimplemented);
      assert.equal(await open.charged(user), 0);
    },
  },
];

/** A message that ends with a field that no reader knows, so that it has this length. */
function paddedTo(length: number, message: Uint8Array): Uint8Array {
  // Field 1000, with its length in three bytes.
  const head = Buffer.from([0xc2, 0x3e, 0, 0, 0]);
  const rest = length - message.length - head.length;
  head[2] = (rest & 0x7f) | 0x80;
  head[3] = ((rest >> 7) & 0x7f) | 0x80;
  head[4] = rest >> 14;
  return Buffer.concat([message, head, Buffer.alloc(rest, 0x61)]);
}
