import { flavors, startCluster, startServer, type TestCluster, type TestServer } from "@sluice/test-servers";
import {
  centralCountersContract,
  counterStoreContract,
  distinctContract,
  holdsContract,
  type StoreUnderTest,
} from "sluice/testing";
import { afterAll, afterEach, beforeAll, describe, test } from "vitest";
import { RedisCounters } from "./redis-counters.ts";
import { scriptsOnTestTime, testTime } from "./testing/scripts-on-test-time.ts";

const contract = [...counterStoreContract, ...centralCountersContract, ...holdsContract, ...distinctContract];
let opened: RedisCounters[] = [];
let number = 0;

afterEach(async () => {
  await Promise.all(opened.map((store) => store.close()));
  opened = [];
});

async function open(servers: string): Promise<StoreUnderTest> {
  const clock = testTime();
  number += 1;
  const store = new RedisCounters({
    servers,
    prefix: `t${process.pid}-${number}`,
    deadlineMs: 5000,
    tune: scriptsOnTestTime(clock),
  });
  opened.push(store);
  await store.connected();
  return {
    store,
    advance: (ms) => {
      clock.advance(ms);
      // What this process would do within a second.
      return store.holds.expire();
    },
  };
}

describe.each(flavors)("counters on one %s server", (flavor) => {
  let server: TestServer;
  beforeAll(async () => {
    server = await startServer({ flavor });
  });
  afterAll(() => server.close());

  test.each(contract)("$name", ({ run }) => run(() => open(server.url)));
});

describe.each(flavors)("counters on a %s cluster", (flavor) => {
  let cluster: TestCluster;
  beforeAll(async () => {
    cluster = await startCluster({ flavor });
  });
  afterAll(() => cluster.close());

  const url = (): string => `redis+cluster://${cluster.nodes.map(({ host, port }) => `${host}:${port}`).join(",")}`;
  test.each(contract)("$name", ({ run }) => run(() => open(url())));
});
