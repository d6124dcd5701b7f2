import assert from "node:assert/strict";
import { gzipSync } from "node:zlib";
import { Decision } from "@sluice/protocol";
import { type ContractCase, checkCall, checkPath, code, decisionFrom } from "./contract-case.ts";
import type { ContractClient, Fields, RawAnswer, Target } from "./contract-client.ts";
import { bulkLimit, newName } from "./contract-world.ts";
import { frameMessage, splitMessages } from "./grpc-framing.ts";

const grpcHeaders = { "content-type": "application/grpc", te: "trailers" };

/** What only a client that shows headers and bytes can see, and frames that libraries do not send. */
export const rawCases: readonly ContractCase[] = [
  {
    name: "answers with headers, one message and trailers",
    needs: ["raw requests"],
    async run(client, { open }) {
      const answer = await sendCheck(client, open.target, newName());
      assert.equal(answer.status, 200);
      assert.match(answer.headers["content-type"]!, /^application\/grpc(\+proto)?$/);
      assert.equal(answer.trailers["grpc-status"], "0");
      assert.equal(Decision.decode(splitMessages(answer.body)[0]!).remaining, bulkLimit - 1);
    },
  },
  {
    name: "percent-encodes error messages by UTF-8, with printable ASCII alone",
    needs: ["raw requests"],
    async run(client, { open }) {
      const body = frameMessage(checkCall({ policies: ["名 100%"] }).requests[0]!);
      const answer = await client.send(open.target, { path: checkPath, headers: grpcHeaders, body });
      const message = { ...answer.headers, ...answer.trailers }["grpc-message"] ?? "";
      assert.match(message, /^[\x20-\x7e]+$/);
      assert.ok(message.includes("%E5%90%8D"), message);
      assert.ok(message.includes("100%25"), message);
    },
  },
  {
    name: "reads timeouts in every unit of gRPC",
    needs: ["raw requests"],
    async run(client, { open }) {
      for (const timeout of ["1H", "10M", "60S", "60000m", "60000000u"]) {
        const answer = await sendCheck(client, open.target, newName(), { "grpc-timeout": timeout });
        assert.equal(answer.trailers["grpc-status"], "0", timeout);
      }
    },
  },
  {
    name: "answers DEADLINE_EXCEEDED to a call whose time was over before it came, and charges nothing",
    needs: ["raw requests", "early answers"],
    async run(client, { open }) {
      const user = newName();
      const answer = await sendCheck(client, open.target, user, { "grpc-timeout": "1n" });
      assert.equal({ ...answer.headers, ...answer.trailers }["grpc-status"], String(code.deadlineExceeded));
      assert.equal(await open.charged(user), 0);
    },
  },
  {
    name: "answers UNIMPLEMENTED to an encoding that it does not read, and names those that it does",
    needs: ["raw requests"],
    async run(client, { open, engine }) {
      const user = newName();
      const { requests } = checkCall({ domain: "bulk", dimensions: { user } });
      const headers = { ...grpcHeaders, "grpc-encoding": "snappy" };
      const body = frameMessage(requests[0]!, 1);
      const answer = await client.send(open.target, { path: checkPath, headers, body });
      const fields = { ...answer.headers, ...answer.trailers };
      assert.equal(fields["grpc-status"], String(code.unimplemented));
      if (engine.namesEncodings) assert.match(fields["grpc-accept-encoding"] ?? "", /\bidentity\b/);
      assert.equal(await open.charged(user), 0);
    },
  },
  {
    name: "reads gzip, or answers UNIMPLEMENTED with what it reads",
    needs: ["raw requests"],
    async run(client, { open, engine }) {
      const user = newName();
      const { requests } = checkCall({ domain: "bulk", dimensions: { user } });
      const headers = { ...grpcHeaders, "grpc-encoding": "gzip" };
      const body = frameMessage(gzipSync(requests[0]!), 1);
      const answer = await client.send(open.target, { path: checkPath, headers, body });
      const fields = { ...answer.headers, ...answer.trailers };
      const reads = engine.gzip === "reads";
      assert.equal(fields["grpc-status"], String(reads ? code.ok : code.unimplemented));
      assert.match(fields["grpc-accept-encoding"] ?? "", /\bidentity\b/);
      assert.equal(await open.charged(user), reads ? 1 : 0);
    },
  },
  {
    name: "answers HTTP 415 to a content type that is not gRPC's",
    needs: ["raw requests"],
    async run(client, { open }) {
      const headers = { ...grpcHeaders, "content-type": "application/json" };
      const { status } = await client.send(open.target, { path: checkPath, headers });
      assert.equal(status, 415);
    },
  },
  ...(["padding", "small windows", "no header table", "request trailers", "weights"] as const).map(
    (frames): ContractCase => ({
      name: `answers a client with unusual frames: ${frames}`,
      needs: ["frames"],
      async run(client, { open }) {
        const call = checkCall({ domain: "bulk", dimensions: { user: newName() }, details: true }, { frames });
        assert.equal(decisionFrom(await client.call(open.target, call)).remaining, bulkLimit - 1);
      },
    }),
  ),
];

function sendCheck(client: ContractClient, target: Target, user: string, more: Fields = {}): Promise<RawAnswer> {
  const body = frameMessage(checkCall({ domain: "bulk", dimensions: { user } }).requests[0]!);
  return client.send(target, { path: checkPath, headers: { ...grpcHeaders, ...more }, body });
}
