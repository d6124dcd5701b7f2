import { execFile } from "node:child_process";
import path from "node:path";
import { promisify } from "node:util";
import { expect, it } from "vitest";

const figures = {
  rss_before_mib: expect.any(Number),
  peak_rss_mib: expect.any(Number),
  livez_max_ms: expect.any(Number),
};

it("npm run bench -- attacks plays every attack, and ends with one JSON object", { timeout: 180_000 }, async () => {
  const file = path.join(import.meta.dirname, "attacks.ts");
  const { stdout } = await promisify(execFile)(process.execPath, ["-C", "source", file, "--quick", "--json"]);
  expect(JSON.parse(stdout.trimEnd().split("\n").at(-1)!)).toEqual({
    ...{ suite: "attacks", for_ms: 1_000, no_attack: figures },
    ...{ half_sent_grpc_messages: figures, unread_pipelined_http: figures },
    ...{ yaml_merge_key_bomb: figures, log_redaction_of_errors: figures },
  });
});
