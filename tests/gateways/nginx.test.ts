import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { startNginx, type TestGateway } from "@sluice/test-servers";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { describeGateway } from "./gateway-contract.ts";
import { askFrom, readExample, startApp, startSluice, type TestApp } from "./gateway-under-test.ts";

const policies = fileURLToPath(new URL("policies.yaml", import.meta.url));
const example = await readExample("nginx.conf");

describeGateway({
  name: "nginx",
  start: (addressesFor) => startNginx({ httpFor: (port) => example(addressesFor(port)) }),
  statusesWhileAway: [503],
  headersTo: "client",
});

describe("nginx with auth_basic", () => {
  it("passes users to Sluice once they are authenticated", async () => {
    const folder = await mkdtemp(join(tmpdir(), "sluice-nginx-"));
    const users = join(folder, "users");
    await writeFile(users, "ada:{PLAIN}right\nbob:{PLAIN}right\n");
    const app = await startApp();
    const sluice = await startSluice(policies);
    const withUsers = (text: string): string => {
      const line = /# (proxy_set_header X-User-Id +\$remote_user;)/;
      expect(text).toMatch(line);
      return text
        .replace(line, "$1")
        .replace("location / {", `location / { auth_basic x; auth_basic_user_file ${users};`);
    };
    const gateway = await startNginx({
      httpFor: (port) => withUsers(example({ sluice: sluice.address, app: app.address, gateway: `127.0.0.1:${port}` })),
    });
    const readStatus = async (access: string): Promise<number> => {
      const authorization = `Basic ${Buffer.from(access).toString("base64")}`;
      return (await askFrom("127.0.0.1", gateway, "/v1/orders/7", { headers: { authorization } })).status;
    };
    try {
      for (const status of [200, 200, 200, 429]) expect(await readStatus("ada:right")).toBe(status);
      // A client cannot spend another user's limit by giving that name.
      for (let times = 0; times < 4; times++) expect(await readStatus("bob:wrong")).toBe(401);
      expect(await readStatus("bob:right")).toBe(200);
    } finally {
      await gateway.close();
      await sluice.close();
      await app.close();
      await rm(folder, { recursive: true });
    }
  });
});

describe("nginx without Sluice", () => {
  let app: TestApp;
  let open: TestGateway;
  let closed: TestGateway;
  /** No server listens there. */
  const nowhere = "127.0.0.1:9";

  beforeAll(async () => {
    app = await startApp();
    const httpFor = (port: number): string =>
      example({ sluice: nowhere, app: app.address, gateway: `127.0.0.1:${port}` });
    closed = await startNginx({ httpFor });
    const letPass = (text: string): string => {
      expect(text.split("return 500;")).toHaveLength(2);
      return text.replace("return 500;", "return 204;");
    };
    open = await startNginx({ httpFor: (port) => letPass(httpFor(port)) });
  });

  afterAll(async () => {
    await open?.close();
    await closed?.close();
    await app.close();
  });

  it("refuses by 503 and a wait", async () => {
    const { status, headers, text } = await askFrom("127.0.0.1", closed, "/x");
    expect(status).toBe(503);
    expect(headers["retry-after"]).toBe("5");
    expect(JSON.parse(text)).toMatchObject({ status: 503 });
    expect(app.seen).toEqual([]);
  });

  it("passes everything if the one line is changed", async () => {
    const { status, headers, text } = await askFrom("127.0.0.1", open, "/x");
    expect([status, text]).toEqual([200, "app answered 200"]);
    expect(headers.ratelimit).toBeUndefined();
  });
});
