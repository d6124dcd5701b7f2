import { setTimeout as sleep } from "node:timers/promises";
import { createFaultyProxy, type FaultyProxy, type Flavor, startServer } from "@sluice/test-servers";
import type { FaultResult } from "./fault-result.ts";
import type { FaultScenario } from "./fault-scenario.ts";
import { chargedTo, playScene, type Scene } from "./play-scene.ts";

export const proxyFaults: readonly FaultScenario[] = [
  {
    name: "lost replies",
    fault: "Connections are reset between request and reply, twice: the server did the work.",
    beside:
      "100 requests with ids, each repeated by its caller until it is answered, are charged once each, no more and no less.",
    play: (flavor) =>
      throughProxy("lost replies", flavor, async (scene, proxy) => {
        const { repeated, replayed } = await askUntilAnswered(scene, 100, (number) => {
          if (number % 50 === 20) proxy.dropRepliesOnce();
        });
        proxy.heal();
        scene.fact(`100 ids, ${repeated} of them asked more than once, ${replayed} found to be charged already`);
        scene.heal();
        await scene.untilEnforced();
        const breaches: string[] = [];
        const charged = await chargedTo(scene.limiter, "probe/plan", idUser, breaches);
        for (const breach of breaches) scene.expect(false, breach);
        scene.expect(charged === 100, `100 requests with ids were charged ${charged} times`);
        scene.expect(replayed > 0, "no request was charged whose answer was lost");
      }),
  },
  {
    name: "late replies",
    fault: "Every reply comes 200 ms late, for four seconds: eight times the deadline.",
    beside: "While the breaker is open, 3 000 checks are answered without asking the server.",
    play: (flavor) =>
      throughProxy("late replies", flavor, async (scene, proxy) => {
        proxy.delayMs = 200;
        await expectQuietWhileOpen(scene, proxy);
        await sleep(500);
        proxy.heal();
        scene.heal();
        await scene.untilEnforced();
      }),
  },
  {
    name: "black hole",
    fault: "The network swallows everything in both directions and closes nothing, for four seconds.",
    beside: "While the breaker is open, 3 000 checks are answered without asking the server.",
    play: (flavor) =>
      throughProxy("black hole", flavor, async (scene, proxy) => {
        proxy.blackhole();
        await expectQuietWhileOpen(scene, proxy);
        await sleep(500);
        proxy.heal();
        scene.heal();
        await scene.untilEnforced();
      }),
  },
  {
    name: "refused connections",
    fault: "Every connection is reset, and new ones are refused for three seconds.",
    beside: "Checks meanwhile are answered without waiting for a connection.",
    play: (flavor) =>
      throughProxy("refused connections", flavor, async (scene, proxy) => {
        proxy.refuse();
        proxy.resetAll();
        await sleep(300);
        const asked = (await scene.traffic.flood("tight/closed", 2000)).filter((one) => one.asked).length;
        scene.expect(asked === 0, `${asked} of 2 000 checks waited although there was no connection`);
        await sleep(2500);
        proxy.heal();
        scene.heal();
        await scene.untilEnforced();
      }),
  },
];

const idUser = "cleo";

async function throughProxy(
  scenario: string,
  flavor: Flavor,
  play: (scene: Scene, proxy: FaultyProxy) => Promise<void>,
): Promise<FaultResult> {
  const server = await startServer({ flavor });
  const proxy = await createFaultyProxy(server);
  try {
    const options = { scenario, flavor, servers: proxy.url, allServers: [server] };
    return await playScene(options, async (scene) => {
      await play(scene, proxy);
    });
  } finally {
    await proxy.close();
    await server.close();
  }
}

/** A caller that repeats its requests until they are answered, two at a time. */
async function askUntilAnswered(
  { traffic, expect }: Scene,
  count: number,
  before: (number: number) => void,
): Promise<{ repeated: number; replayed: number }> {
  let repeated = 0;
  let replayed = 0;
  let next = 0;
  const caller = async (): Promise<void> => {
    while (next < count) {
      const number = next++;
      const id = `request-${number}`;
      before(number);
      for (let attempt = 0; ; attempt++) {
        const { decision } = await traffic.check("probe/plan", idUser, id);
        if (decision !== undefined && decision.degraded === undefined) {
          expect(decision.allowed, `${id} was denied`);
          if (decision.replayed) replayed += 1;
          break;
        }
        if (attempt === 0) repeated += 1;
        if (attempt === 400) {
          expect(false, `${id} was never answered`);
          return;
        }
        await sleep(25);
      }
      await sleep(20);
    }
  };
  await Promise.all([caller(), caller()]);
  return { repeated, replayed };
}

/** Once the breaker is open, and its new connection is quiet, checks cost the server nothing. */
async function expectQuietWhileOpen(scene: Scene, proxy: FaultyProxy): Promise<void> {
  const isOpen = (): boolean => scene.counters.stats.shards.every(({ breaker }) => breaker === "open");
  await scene.waitFor("the breaker opens", 5000, isOpen);
  await sleep(1200);
  const bytes = (): number => proxy.bytesToServer + proxy.bytesSwallowed;
  const before = bytes();
  const answers = await scene.traffic.flood("tight/open", 3000);
  const sent = bytes() - before;
  scene.expect(isOpen(), "the breaker closed while nothing was answered");
  // A new connection, or a probe, may fall into this time; a check would take a hundred bytes.
  scene.expect(sent < 1024, `${sent} bytes went out while the breaker was open`);
  const asked = answers.filter((one) => one.asked).length;
  scene.expect(asked === 0, `${asked} of 3 000 checks waited although the breaker was open`);
  scene.fact(`${sent} bytes for 3 000 checks under an open breaker`);
  await sleep(1000);
}
