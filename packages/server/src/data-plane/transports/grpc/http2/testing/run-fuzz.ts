import { inspect, parseArgs } from "node:util";
import { CheckRequest, RateLimiterDefinition as service } from "@sluice/protocol";
import { createLimiter } from "sluice";
import { connectForTest } from "../../../../../testing/grpc-client.ts";
import { createTestService, listenForTest, silentLog } from "../../../../../testing/test-service.ts";
import { wholeGrpcServer } from "../../../../../testing/whole-servers.ts";
import { fuzzFrames } from "./fuzz-frames.ts";

// npm run fuzz: conversations by the grammar of frames, until the time is over or one of them does harm.
const { values } = parseArgs({
  options: { minutes: { type: "string", default: "10" }, seed: { type: "string" } },
});
const first = values.seed === undefined ? Math.floor(Math.random() * 2 ** 31) : Number(values.seed);
const endsMs = performance.now() + Number(values.minutes) * 60_000;
const together = 16;
const printEveryMs = 10_000;
const conversationsPerRound = 1_000;

const errors: unknown[] = [];
const log = { ...silentLog, error: (event: string, fields?: object) => void errors.push({ event, ...fields }) };
const transport = wholeGrpcServer(createTestService(createLimiter({}), { log }), { engine: "sluice" });
const listening = await listenForTest("grpc", transport);
const neighbour = connectForTest(listening.address);
const request = CheckRequest.fromPartial({ dimensions: { user: "neighbour" } });
const ended = new Map<number | undefined, number>();
let frames = 0;
let seed = first;
let printedMs = performance.now();

say(`fuzzing frames for ${values.minutes} minutes, from seed ${first}`);
try {
  while (performance.now() < endsMs) {
    const from = seed;
    seed += together;
    const seeds = Array.from({ length: together }, (_, i) => from + i);
    const longest = from % conversationsPerRound < together ? 2_000 : 60;
    const outcomes = await Promise.all(seeds.map((one) => fuzzFrames(listening.port, one, longest)));
    for (const { goAway, frames: sent } of outcomes) {
      ended.set(goAway, (ended.get(goAway) ?? 0) + 1);
      frames += sent;
    }
    const { allowed } = await neighbour.call(service, "check", request, { deadline: Date.now() + 10_000 });
    if (!allowed || errors.length > 0) throw new Error(`seeds ${from} to ${seed - 1} did harm`, { cause: errors });
    if (performance.now() - printedMs < printEveryMs) continue;
    printedMs = performance.now();
    print();
  }
  print();
} catch (error) {
  say(`${inspect(error)}\ngo on from there with --seed ${seed - together}`);
  process.exitCode = 1;
} finally {
  neighbour.close();
  await listening.close();
}

function say(line: string): void {
  process.stdout.write(`${line}\n`);
}

function print(): void {
  const codes = [...ended].map(([code, count]) => `${code ?? "none"}: ${count}`).join(", ");
  const mebibytes = Math.round(process.memoryUsage.rss() / 2 ** 20);
  say(`${seed - first} conversations, ${frames} frames answered; GOAWAY ${codes}; ${mebibytes} MiB`);
}
