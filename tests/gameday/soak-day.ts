import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { type GameDay, gameDay } from "./game-day.ts";

const run = promisify(execFile);
const suite = fileURLToPath(new URL("../../bench/soak.ts", import.meta.url));
const mostPerMinute = 0.25;
/** Rounds go to their end, and the server has to be built. */
const marginMs = 10 * 60_000;

interface Soaked {
  readonly minutes: number;
  readonly checks: number;
  readonly heap_mib: Growth;
  readonly resident_mib: Growth;
  readonly samples: readonly (readonly [minute: number, heap: number, resident: number])[];
}

interface Growth {
  readonly first: number;
  readonly last: number;
  readonly per_minute: number;
}

type Key = "ended" | "heap";

const day: GameDay<Key> = {
  name: "soak",
  title: "Soak: memory over time",
  done: ({ soakMinutes }) => [
    `For ${soakMinutes} minutes \`npm run bench -- soak\` sends a server checks over every protocol, from ever new subjects,`,
    "with connections that open and close and random bytes between them.",
    "After each round it measures the memory that is left after garbage collection.",
  ],
  promises: {
    ended: { text: "the server answers until the end" },
    heap: { text: `in the second half, the heap grows by at most ${mostPerMinute} MiB a minute`, timed: true },
  },
  async play(notes, { form, soakMinutes }) {
    const minutes = form === "full" ? soakMinutes : 0.2;
    const args = ["-C", "source", suite, "--json", "--minutes", String(minutes)];
    const { stdout } = await run(process.execPath, args, { timeout: minutes * 60_000 + marginMs, maxBuffer: 2 ** 26 });
    const { checks, heap_mib, resident_mib, samples, ...soaked } = JSON.parse(
      stdout.trim().split("\n").at(-1)!,
    ) as Soaked;
    notes.judge(
      "ended",
      soaked.minutes >= minutes && samples.length > 1,
      `${checks} checks in ${soaked.minutes.toFixed(1)} minutes`,
    );
    notes.judge("heap", heap_mib.per_minute <= mostPerMinute, `${heap_mib.per_minute} MiB a minute`);
    notes.fact(
      `heap ${heap_mib.first} → ${heap_mib.last} MiB, resident ${resident_mib.first} → ${resident_mib.last} MiB (${resident_mib.per_minute} MiB a minute), in ${samples.length} rounds`,
      "timed",
    );
    notes.plot({
      name: "soak",
      title: "Memory of a server under every kind of traffic",
      x: "minutes",
      y: "MiB",
      series: [
        { name: "resident", points: samples.map(([minute, , resident]) => [minute, resident]) },
        { name: "heap", points: samples.map(([minute, heap]) => [minute, heap]) },
      ],
    });
  },
};

export const soakDay: GameDay = gameDay(day);
