import { readFile } from "node:fs/promises";
import { request as ask, createServer, type IncomingHttpHeaders, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { fileURLToPath } from "node:url";
import { parseSettings, startDaemon } from "@sluice/server";
import type { TestGateway } from "@sluice/test-servers";

const examples = fileURLToPath(new URL("../../examples/gateways/", import.meta.url));

/** An example as it is shipped, with the addresses of this run in place of its own, and longer timeouts: test machines are slow. */
export async function readExample(name: string): Promise<(addresses: Addresses) => string> {
  const text = await readFile(examples + name, "utf8");
  return ({ sluice, app, gateway }) => {
    const written = { "127.0.0.1:8080": sluice, "127.0.0.1:3000": app, "127.0.0.1:8000": gateway, " 1s": " 4s" };
    let filled = text;
    for (const [own, actual] of Object.entries(written)) {
      const places = filled.split(own).length - 1;
      if (places > 1 || (places === 0 && own === "127.0.0.1:8080"))
        throw new Error(`${name} has ${own} in ${places} places`);
      filled = filled.replace(own, actual);
    }
    return filled;
  };
}

export interface Addresses {
  readonly sluice: string;
  readonly app: string;
  readonly gateway: string;
}

/** An app that remembers what reached it, and answers what `/status/N` asks for. */
export interface TestApp {
  readonly address: string;
  readonly seen: readonly { readonly method: string; readonly url: string; readonly headers: IncomingHttpHeaders }[];
  close(): Promise<void>;
}

export async function startApp(): Promise<TestApp> {
  const seen: TestApp["seen"][number][] = [];
  const server = createServer((request: IncomingMessage, response) => {
    const { method = "", url = "", headers } = request;
    seen.push({ method, url, headers });
    request.resume().on("end", () => {
      const status = Number(/^\/status\/(\d+)/.exec(url)?.[1] ?? 200);
      response.writeHead(status, { "content-type": "text/plain", "x-app": "yes" }).end(`app answered ${status}`);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    address: `127.0.0.1:${(server.address() as AddressInfo).port}`,
    seen,
    async close(): Promise<void> {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

export interface TestSluice {
  readonly address: string;
  close(): Promise<void>;
}

/** The whole service, as `sluice serve` starts it. */
export async function startSluice(
  config: string,
  port = 0,
  more: Readonly<Record<string, string>> = {},
): Promise<TestSluice> {
  const flags = { config, httpPort: String(port), grpcPort: "off", authorizeDimensions: "user=x-user-id", ...more };
  const reading = parseSettings({}, flags);
  if (reading.kind === "problems") throw new Error(JSON.stringify(reading.problems));
  const log = { debug() {}, info() {}, warn() {}, error() {} };
  const daemon = await startDaemon({ settings: reading.settings, log });
  return { address: new URL(daemon.url).host, close: () => daemon.close() };
}

export interface Reply {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
}

/** Asks from an address of loopback of one's own, so that each is another client. */
export function askFrom(
  localAddress: string,
  gateway: Pick<TestGateway, "port">,
  path: string,
  { method = "GET", headers = {}, body }: { method?: string; headers?: Record<string, string>; body?: string } = {},
): Promise<Reply> {
  return new Promise((resolve, reject) => {
    // As it is written: a URL would undo its tricks.
    const where = { host: "127.0.0.1", port: gateway.port, path, localAddress };
    const sent = ask({ ...where, method, headers, agent: false }, (response) => {
      let text = "";
      response.setEncoding("utf8").on("data", (chunk: string) => {
        text += chunk;
      });
      response.on("end", () => resolve({ status: response.statusCode ?? 0, headers: response.headers, text }));
    });
    sent.on("error", reject).end(body);
  });
}
