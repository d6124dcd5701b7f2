import { setTimeout as sleep } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { type Flavor, startServer, type TestServer } from "@sluice/test-servers";
import type { FaultResult } from "./fault-result.ts";
import type { FaultScenario } from "./fault-scenario.ts";
import { countDegraded } from "./judge-traffic.ts";
import { playScene, type Scene } from "./play-scene.ts";
import { ServerWitness } from "./server-witness.ts";

export const singleServerFaults: readonly FaultScenario[] = [
  {
    name: "crash and restart",
    fault: "The server is killed with SIGKILL and started again one second later, empty.",
    beside: "At most one burst more is admitted. 20 000 checks against a dead server leave no heap behind.",
    play: (flavor) =>
      onServer("crash and restart", flavor, {}, async (scene, server) => {
        await scene.losing("all", () => server.kill());
        await sleep(200);
        const heapBefore = heapBytes();
        const answers = await scene.traffic.flood("tight/open", 20_000);
        const degraded = countDegraded(answers).storage_unavailable;
        // This test keeps the checks themselves, some hundred bytes each.
        const grownBytes = heapBytes() - heapBefore;
        scene.fact(
          `the heap grew by ${Math.max(grownBytes / 2 ** 20, 0).toFixed(0)} MiB, with the test's own notes of 20 000 checks`,
        );
        scene.expect(grownBytes < 64 * 2 ** 20, `the heap grew by ${grownBytes} bytes over 20 000 checks`);
        scene.expect(degraded === answers.length, `${degraded} of 20 000 checks said that the storage is unavailable`);
        await sleep(600);
        await server.restart();
        scene.heal();
        await scene.untilEnforced();
      }),
  },
  {
    name: "stuck server",
    fault: "The server is stopped with SIGSTOP for two seconds: connections stay, and nothing is answered.",
    beside: "No more is admitted than without the fault: when the server continues, it recognizes late requests.",
    play: (flavor) =>
      onServer("stuck server", flavor, {}, async (scene, server) => {
        server.pause();
        await sleep(2000);
        server.resume();
        scene.heal();
        await scene.untilEnforced();
      }),
  },
  {
    name: "forgotten scripts",
    fault: "SCRIPT FLUSH every 20 ms for three seconds.",
    beside: "It degrades no more than one check in a hundred.",
    play: (flavor) =>
      onServer("forgotten scripts", flavor, {}, async (scene, server) => {
        const witness = new ServerWitness(server);
        await sleep(200);
        const from = scene.traffic.checks.length;
        for (let i = 0; i < 150; i++) {
          await server.command("SCRIPT", "FLUSH");
          await sleep(20);
        }
        await expectFewTimeouts(scene, from, witness);
        scene.fact(`${scene.counters.stats.loads} scripts were sent again`);
        // While a breaker is open nothing is sent; whether its timeouts were the machine's is judged above.
        const opened = scene.counters.stats.shards.some(({ figures }) => figures.breakerOpened > 0);
        scene.expect(scene.counters.stats.loads >= 100 || opened, "the scripts were hardly ever forgotten");
        scene.heal();
        await scene.untilEnforced();
      }),
  },
  {
    name: "own stalls",
    fault: "The store is healthy, and the caller's own event loop stalls for 40 ms, again and again.",
    beside: "No server is blamed for it: no more than one check in a hundred is degraded.",
    play: (flavor) =>
      onServer("own stalls", flavor, {}, async (scene, server) => {
        const witness = new ServerWitness(server);
        await sleep(200);
        const from = scene.traffic.checks.length;
        for (let i = 0; i < 40; i++) {
          standStill(40);
          await sleep(40);
        }
        await expectFewTimeouts(scene, from, witness);
        scene.heal();
        await scene.untilEnforced();
      }),
  },
  {
    name: "late start",
    fault: "There is no server when the counters are opened; it starts two seconds later.",
    beside: "Until then every check is answered the way its policy says.",
    play: (flavor) =>
      onServer("late start", flavor, { connected: false }, async (scene, server) => {
        await sleep(2000);
        const early = scene.traffic.checks.filter(({ settledMs }) => settledMs !== undefined);
        const degraded = early.filter(({ decision }) => decision?.degraded !== undefined).length;
        scene.expect(degraded === early.length, `${early.length - degraded} checks were answered by no server`);
        await server.restart();
        scene.heal();
        await scene.untilEnforced();
      }),
  },
];

async function onServer(
  scenario: string,
  flavor: Flavor,
  { connected = true }: { readonly connected?: boolean },
  play: (scene: Scene, server: TestServer) => Promise<void>,
): Promise<FaultResult> {
  const server = await startServer({ flavor });
  try {
    if (!connected) await server.kill();
    const options = { scenario, flavor, servers: server.url, allServers: [server], connected };
    return await playScene(options, (scene) => play(scene, server));
  } finally {
    await server.close();
  }
}

/** Timeouts that a slow machine explains do not count, nor do their consequences. */
async function expectFewTimeouts(
  { traffic, expect, fact }: Scene,
  from: number,
  witness: ServerWitness,
): Promise<void> {
  await sleep(100);
  const checks = traffic.checks.slice(from);
  const degraded = checks.filter(({ decision }) => decision?.degraded !== undefined);
  const late = degraded.filter(({ decision }) => decision?.degraded === "storage_timeout");
  const starved = degraded.filter(({ decision }) => decision?.degraded === "process_starved");
  const unexplained = [...late, ...starved].filter(
    ({ startedMs, settledMs }) => !witness.sawSlowness(startedMs, settledMs!),
  );
  fact(
    `${degraded.length} of ${checks.length} checks degraded` +
      (late.length + starved.length === 0
        ? ""
        : `, ${unexplained.length} of ${late.length + starved.length} late ones while the server answered promptly`),
  );
  expect(
    unexplained.length <= 0.01 * checks.length,
    `${unexplained.length} of ${checks.length} checks were given up although the server answered promptly`,
  );
  const others = degraded.length - late.length - starved.length;
  expect(late.length > unexplained.length || others === 0, `${others} checks were degraded`);
  await witness.close();
}

function standStill(ms: number): void {
  const untilMs = performance.now() + ms;
  while (performance.now() < untilMs);
}

function heapBytes(): number {
  setFlagsFromString("--expose-gc");
  (runInNewContext("gc") as () => void)();
  return process.memoryUsage().heapUsed;
}
