import { status } from "@grpc/grpc-js";
import { Policy, PolicyAdminDefinition } from "@sluice/protocol";
import { afterEach, beforeEach, expect, it } from "vitest";
import { type StartedAdmin, startAdmin, tokenForRole } from "../control-plane/admin-api/testing/start-admin.ts";
import { parseSettings } from "../settings/parse-settings.ts";
import { connectForTest } from "../testing/grpc-client.ts";
import { createTransports, type Transports } from "./create-transports.ts";

let admin: StartedAdmin;
let transports: Transports;

beforeEach(async () => {
  admin = await startAdmin();
  const reading = parseSettings({}, { httpPort: "0", grpcPort: "0", adminPort: "0", store: "sqlite::memory:" });
  if (reading.kind === "problems") throw new Error(JSON.stringify(reading.problems));
  transports = await createTransports(admin.service, reading.settings, { control: admin.control, live: admin.live });
});

afterEach(async () => {
  await transports.close(0);
  await admin.close();
});

it("count a token's calls to the control plane together, over HTTP and over gRPC", async () => {
  const addresses = await transports.listen();
  const client = connectForTest(new URL(addresses.grpc[0]!).host);
  const options = { token: tokenForRole("editor") };
  const configure = async (): Promise<number> =>
    (await client.fail(PolicyAdminDefinition, "configurePolicy", Policy.fromPartial({}), options)).code;
  expect(await Promise.all(Array.from({ length: 300 }, configure))).toContain(status.RESOURCE_EXHAUSTED);
  // Some may have come back meanwhile, but not a hundred.
  const remaining: number[] = [];
  for (let times = 0; times < 3; times++) {
    const { headers } = await fetch(`${addresses.admin[0]}/api/v1/policies/p?dry_run=true`, {
      method: "DELETE",
      headers: { authorization: `Bearer ${options.token}` },
    });
    remaining.push(Number(headers.get("x-ratelimit-remaining")));
  }
  client.close();
  expect(Math.max(...remaining)).toBeLessThan(50);
});
