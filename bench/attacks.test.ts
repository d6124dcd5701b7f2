import { execFile } from "node:child_process";
import path from "node:path";
import { promisify } from "node:util";
import { expect, it } from "vitest";

const measurements = {
  rss_before_mib: expect.any(Number),
  peak_rss_mib: expect.any(Number),
  livez_max_ms: expect.any(Number),
};

it("npm run bench -- attacks runs every attack, and prints one JSON object last", { timeout: 180_000 }, async () => {
  const file = path.join(import.meta.dirname, "attacks.ts");
  const { stdout } = await promisify(execFile)(process.execPath, ["-C", "source", file, "--quick", "--json"]);
  expect(JSON.parse(stdout.trimEnd().split("\n").at(-1)!)).toEqual({
    ...{ suite: "attacks", for_ms: 1_000, no_attack: measurements },
    ...{ half_sent_grpc_messages: measurements, unread_pipelined_http: measurements },
    ...{ yaml_merge_key_bomb: measurements, log_redaction_of_errors: measurements },
  });
});
