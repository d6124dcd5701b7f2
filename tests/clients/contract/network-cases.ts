import assert from "node:assert/strict";
import { assertCode, type ContractCase, checkCall, code, decisionFrom, eventually } from "./contract-case.ts";
import { newName } from "./contract-world.ts";
import { createSwitchboard } from "./create-switchboard.ts";
import { sequencesFrom, streamCall } from "./stream-cases.ts";

/** Connections: TLS, unix sockets, and servers that stop. */
export const networkCases: readonly ContractCase[] = [
  {
    name: "speaks TLS, and agrees on h2",
    needs: [],
    async run(client, { tls }) {
      const call = checkCall({ dimensions: { user: newName() } });
      assert.equal(decisionFrom(await client.call(tls.target, call)).allowed, true);
    },
  },
  {
    name: "is refused by a client that does not trust its certificate",
    needs: ["server verification"],
    async run(client, { tls, certificates }) {
      const target = { ...tls.target, tls: { ca: certificates.clientCert } };
      const call = checkCall({ dimensions: { user: newName() } }, { timeoutMs: 20_000 });
      assert.notEqual((await client.call(target, call)).code, code.ok);
    },
  },
  {
    name: "admits a client that shows a certificate, and no other",
    needs: [],
    async run(client, { mutual, certificates }) {
      const call = checkCall({ dimensions: { user: newName() } }, { timeoutMs: 20_000 });
      const { ca, clientCert: cert, clientKey: key } = certificates;
      const target = { ...mutual.target, tls: { ca, cert, key } };
      assert.equal(decisionFrom(await client.call(target, call)).allowed, true);
      assert.notEqual((await client.call(mutual.target, call)).code, code.ok);
    },
  },
  {
    name: "answers over a unix socket",
    needs: ["unix sockets"],
    async run(client, { open }) {
      const call = checkCall({ dimensions: { user: newName() } });
      assert.equal(decisionFrom(await client.call(open.socket, call)).allowed, true);
    },
  },
  {
    name: "ends a stream with OK when it stops, after the last answer",
    needs: ["bidirectional streams"],
    async run(client, { start }) {
      const server = await start();
      const user = newName();
      const streaming = client.call(server.target, { ...streamCall(user, 3, 2), holdOpen: true });
      await eventually("all batches are decided", async () => (await server.charged(user)) === 6);
      await server.drain();
      const outcome = await streaming;
      assertCode(outcome, code.ok);
      assert.deepEqual(sequencesFrom(outcome.responses), [1, 2, 3]);
    },
  },
  {
    name: "stops under traffic, by GOAWAY, without a failed call",
    needs: ["reconnects"],
    async run(client, { start }) {
      const [first, second] = [await start(), await start()];
      const switchboard = await createSwitchboard(first.target.address);
      try {
        const call = checkCall({ domain: "bulk", dimensions: { user: newName() } });
        let [answered, stopped] = [0, false];
        const callers = Array.from({ length: 8 }, async () => {
          while (!stopped) {
            decisionFrom(await client.call({ address: switchboard.address }, call));
            answered += 1;
          }
        });
        const failed = Promise.all(callers);
        const goOn = (calls: number): Promise<unknown> => {
          const aim = answered + calls;
          return Promise.race([failed, eventually(`${calls} more answers`, () => answered >= aim)]);
        };
        await goOn(100);
        switchboard.connectTo(second.target.address);
        await Promise.all([first.drain(), goOn(100)]);
        await goOn(100);
        stopped = true;
        await failed;
      } finally {
        await switchboard.close();
      }
    },
  },
];
