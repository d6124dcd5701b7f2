// Serves policies, reads them again when they have become many, answers over HTTP, and closes; then it must end. Many
// policies are parsed by a worker, which is a separate file. Prints "done", or fails.
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { createLogger, parseSettings, startDaemon } from "@sluice/server";

/** @param {number} count */
function writePolicies(count) {
  const policies = Array.from({ length: count }, (_, index) => ({
    id: `p${index}`,
    match: { endpoint: `/${index}/${"long".repeat(20)}` },
    limits: [{ by: ["user"], windows: ["1/h"] }],
    on_failure: "open",
  }));
  writeFileSync("policies.yaml", JSON.stringify({ policies }));
}

writePolicies(1);
const reading = parseSettings({}, { config: "policies.yaml", httpPort: "0", grpcPort: "0" });
assert.ok(reading.kind === "settings");
const { settings } = reading;
const { stdout, stderr } = process;
const log = createLogger({ level: "error", format: "text", stdout, stderr });
const daemon = await startDaemon({ settings, log });
writePolicies(2000);
await daemon.reload();
const dimensions = { user: "ada", endpoint: `/1999/${"long".repeat(20)}` };
const statuses = [];
for (let attempt = 1; attempt <= 2; attempt += 1) {
  const response = await fetch(`${daemon.url}/v1/check`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ dimensions }),
  });
  statuses.push(response.status);
  await response.text();
}
assert.deepEqual(statuses, [200, 429]);
await daemon.close();
stdout.write("done\n");
