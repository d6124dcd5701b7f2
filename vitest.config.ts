import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { defineConfig, type Plugin } from "vitest/config";
import { LongestFirst } from "./tests/longest-first.ts";

// Tests start hundreds of processes from source. They share what Node makes of a module: that halves the start of a server.
process.env.NODE_COMPILE_CACHE ??= fileURLToPath(new URL("node_modules/.cache/compile", import.meta.url));

// Workspace packages run from source, as they do under `node -C source`; the rest are Vite's own for servers.
const conditions = ["source", "module", "node", "development|production"];

const oldest = new URL("./tests/oldest/package.json", import.meta.url);
const { dependencies } = JSON.parse(readFileSync(oldest, "utf8")) as { dependencies: Record<string, string> };

/** Finds frameworks where `tests/oldest` has them: the same tests on the oldest majors that are supported. */
const onOldestMajors: Plugin = {
  name: "oldest-majors",
  enforce: "pre",
  resolveId(source) {
    const name = source.split("/", source.startsWith("@") ? 2 : 1).join("/");
    return name in dependencies ? this.resolve(source, fileURLToPath(oldest), { skipSelf: true }) : null;
  },
};

const exclude = ["**/node_modules/**", "**/dist/**"];

/**
 * Tests beside their source share a process, and with it the modules that all of them load; so do the guards of the repository. The
 * exceptions measure memory, stop time or change what all modules share, or keep threads and processes busy.
 */
const sharing = ["packages/*/src/**/*.test.ts", "tests/repository/**/*.test.ts"];
const alone = [
  "packages/core/src/counters/{counter-table,memory-bounds}.test.ts",
  "packages/core/src/{hot-keys/hot-keys,policy-text/parse-policy-text}.test.ts",
  "packages/cli/src/main.test.ts",
  "packages/console/src/**/*.test.ts",
  "packages/redis/src/ask/starved-lane.test.ts",
  "packages/server/src/boot/**/*.test.ts",
  "packages/server/src/control-plane/{admin-api/heavy-bodies,worker-thread/worker-thread}.test.ts",
  "packages/server/src/data-plane/transports/{door,flood}.test.ts",
  "packages/server/src/observe/usage-events/public-subject.test.ts",
  "packages/server/src/data-plane/transports/grpc/{attacks,grpc-js/suites,http2/*attacks,http2/fuzz,http2/slow-clients}.test.ts",
  "packages/server/src/data-plane/transports/resp/command-reader.test.ts",
];

export default defineConfig({
  resolve: { conditions },
  ssr: { resolve: { conditions, externalConditions: ["source", "node", "module-sync"] } },
  test: {
    allowOnly: false,
    globals: false,
    // One more than there are cores on a small machine: many tests wait for servers that they stopped.
    maxWorkers: 3,
    pool: "forks",
    sequence: { sequencer: LongestFirst },
    setupFiles: ["./tests/seed-properties.ts"],
    // Long enough for a machine that is busy with other work: a timeout is for what hangs, not for what is slow.
    testTimeout: 60_000,
    hookTimeout: 60_000,
    // `expect.poll` gives up after a second by default, which a busy machine exceeds.
    expect: { poll: { timeout: 30_000 } },
    projects: [
      {
        extends: true,
        test: {
          name: "sluice",
          include: [...alone, "tests/**/*.test.ts", "bench/**/*.test.ts", "examples/**/*.test.ts"],
          exclude: [...exclude, "tests/repository/**"],
          provide: { majors: "newest" },
        },
      },
      {
        extends: true,
        test: {
          name: "shared",
          include: sharing,
          exclude: [...exclude, ...alone],
          isolate: false,
          provide: { majors: "newest" },
        },
      },
      {
        extends: true,
        plugins: [onOldestMajors],
        test: {
          name: "oldest",
          include: ["tests/frameworks/*.test.ts", "tests/remote/asking.test.ts", "tests/remote/network.test.ts"],
          // There is one major of Next, and building an app takes a while. Drop-ins do what the newest originals do. The others
          // start processes, which find the newest majors.
          exclude: [
            ...exclude,
            ...["next", "process-ends", "same-as-*"].map((name) => `tests/frameworks/${name}.test.ts`),
          ],
          provide: { majors: "oldest" },
        },
      },
    ],
  },
});
