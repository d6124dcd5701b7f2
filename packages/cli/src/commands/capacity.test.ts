import { EventEmitter } from "node:events";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { startServer } from "@sluice/test-servers";
import { describe, expect, it } from "vitest";
import { runProgram, type World } from "../program.ts";

interface Outcome {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

async function run(words: string, terminal: Partial<World["terminal"]["stdout"]> = {}): Promise<Outcome> {
  let out = "";
  let err = "";
  const code = await runProgram({
    args: ["capacity", ...words.split(" ").filter((word) => word !== "")],
    env: {},
    terminal: {
      stdout: { write: (text: string) => (out += text), ...terminal },
      stderr: { write: (text: string) => (err += text) },
    },
    signals: new EventEmitter(),
  });
  return { code, out, err };
}

async function document(words: string): Promise<Record<string, Record<string, unknown>>> {
  const { code, out, err } = await run(`${words} --json`);
  expect([code, err]).toEqual([0, ""]);
  return JSON.parse(out);
}

describe("sluice capacity", () => {
  it("needs no option, and says what each quantity is made of", async () => {
    const { code, out, err } = await run("");
    expect([code, err]).toEqual([0, ""]);
    for (const line of [
      /^At the peak$/m,
      /^ {2}checks +20 000\/s {2}10 000 on average × 2$/m,
      /^ {2}pods +3 {2}/m,
      /^ {2}on_failure: closed +96\.8933 % {2}/m,
      /^note: without leases;/m,
      /^10 000\/s {2}#+x+ +3 pods {2}/m,
    ])
      expect(out).toMatch(line);
  });

  it("prints what was given, the plan, and the plan for other loads, as one document", async () => {
    const { input, plan, load, measured, estimates } = await document("--rate 1M --pods 12 --pod-cores 4 --leases 80%");
    expect(input).toMatchObject({
      demand: { checks_per_second: 1e6, lease_share: 0.8 },
      layout: { pods: 12, cores_per_pod: 4 },
    });
    expect(plan).toMatchObject({ servers: { pods: 12 }, peak: { checks_per_second: 2e6 } });
    expect((load as unknown as { factor: number }[]).map(({ factor }) => factor)).toContain(1);
    expect([measured, estimates]).toEqual([undefined, undefined]);
  });

  it("fits into the width of a terminal", async () => {
    const { out } = await run("--estimates", { isTTY: true, columns: 100 });
    // biome-ignore lint/suspicious/noControlCharactersInRegex: colours
    const lines = out.replaceAll(/\u001b\[\d+m/g, "").split("\n");
    for (const line of lines.filter((one) => !one.startsWith("note:")))
      expect(line.length, line).toBeLessThanOrEqual(120);
  });

  it("compares estimates of earlier designs on request", async () => {
    expect((await run("")).out).not.toContain("it says");
    expect((await run("--estimates")).out).toMatch(/^gateway +shards with 80 % local +100 +80 /m);
    expect((await document("--estimates")).estimates).toHaveLength(17);
  });

  it.each([
    ["--rate", "--rate <checks>"],
    ["--rate 0", '--rate is "0"; it should be a number such as 250, 100k or 1.5M, from 0.001 to'],
    ["--leases 80", '--leases is "80"; it should be a share such as 80% or 0.8'],
    ["--zones 1.5", '--zones is "1.5"; it should be a whole number'],
    ["--transport smtp", "Allowed choices are grpc, grpc-batch, http"],
    ["--redis redis://127.0.0.1:6379", "--redis is about measuring; add --measure, or leave it out"],
    ["--rate 1G --limits 100", "use more regions or cells, or larger shards"],
    ["--measure --redis redis+cluster://127.0.0.1:1", "--measure needs a single Valkey or Redis"],
  ])("refuses %s", async (words, message) => {
    const { code, out, err } = await run(words);
    expect([code, out]).toEqual([2, ""]);
    expect(err).toContain(message);
  });
});

describe("sluice capacity --measure", () => {
  it("measures servers and a real store, and computes with that", async () => {
    const store = await startServer({ flavor: "valkey" });
    try {
      const { code, out, err } = await run(`--measure --quick --redis ${store.url} --transport http --json`);
      expect(code, err).toBe(0);
      expect(err).toContain("measuring: http\n");
      const { measured, input } = JSON.parse(out);
      for (const us of Object.values(measured.server_us_per_check)) expect(us).toBeGreaterThan(0);
      // A check and its answer hold the subject and the decision at least.
      for (const transport of ["grpc", "grpc-batch", "http", "resp", "resp-pipeline"])
        expect(measured.client_bytes_per_check[transport], transport).toBeGreaterThan(50);
      expect(measured.client_bytes_per_check.http).toBeGreaterThan(measured.client_bytes_per_check.grpc);
      expect(measured.store.product).toMatch(/^valkey \d/);
      expect(measured.store.store_us_per_take).toBeGreaterThan(0);
      // The key alone has some 30 bytes.
      expect(measured.store.counter_bytes).toBeGreaterThan(50);
      expect(measured.store.counter_bytes).toBeLessThan(500);
      expect(input.figures).toMatchObject({
        server_us_per_check: measured.server_us_per_check.http,
        counter_bytes: measured.store.counter_bytes,
        // The store has no replica to measure.
        replication_bytes_per_take: 59,
      });
    } finally {
      await store.close();
    }
  }, 60_000);

  it("says which store cannot be reached", async () => {
    const { code, err } = await run("--measure --quick --redis redis://127.0.0.1:1");
    expect(code).toBe(2);
    expect(err).toContain("the store to measure cannot be reached");
  }, 60_000);
});

describe("docs/capacity.md", () => {
  /** A command, and what it prints. */
  const shown = /```sh\n(sluice capacity[^\n]*)\n```\n\n```text\n([^`]*)```\n/g;

  it("shows what its commands print (after a change: npx vitest run packages/cli/src/commands/capacity.test.ts -u)", async () => {
    const path = fileURLToPath(new URL("../../../../docs/capacity.md", import.meta.url));
    const page = readFileSync(path, "utf8");
    let text = page;
    const examples = [...page.matchAll(shown)];
    expect(examples.length).toBeGreaterThanOrEqual(3);
    for (const [example, command = ""] of examples) {
      const { code, out } = await run(command.replace("sluice capacity", ""));
      expect(code, command).toBe(0);
      text = text.replace(example, () => `\`\`\`sh\n${command}\n\`\`\`\n\n\`\`\`text\n${out}\`\`\`\n`);
    }
    await expect(text).toMatchFileSnapshot(path);
  });
});
