import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { promisify } from "node:util";
import {
  type Call,
  type ClientAdapter,
  type ContractClient,
  type Fields,
  type Outcome,
  type RawAnswer,
  type RawRequest,
  type Target,
  unable,
} from "../contract/contract-client.ts";
import { frameMessage, outcomeFromAnswer } from "../contract/grpc-framing.ts";

const run = promisify(execFile);
const connection = "each call is a separate process with its own connection";

export const curlAdapter: ClientAdapter = {
  name: "curl",
  lacks: {
    "bidirectional streams": "it sends a body that is complete",
    cancellation: connection,
    "one connection": connection,
    reconnects: connection,
    "answers past GOAWAY": "curl 7.88 loses what comes after it",
    "early answers": "curl 7.88 loses an answer that comes before it has sent its body",
    gzip: "it sends bytes as they are",
    frames: "libcurl writes frames",
  },
  async version(): Promise<string> {
    const { stdout } = await run("curl", ["--version"]);
    return /^curl (\S+)/.exec(stdout)?.[1] ?? "unknown";
  },
  open: async () => new CurlClient(await mkdtemp(path.join(tmpdir(), "sluice-curl-"))),
};

class CurlClient implements ContractClient {
  readonly #folder: string;
  #calls = 0;

  constructor(folder: string) {
    this.#folder = folder;
  }

  async call(target: Target, call: Call): Promise<Outcome> {
    const headers: Record<string, string> = { "content-type": "application/grpc", te: "trailers", ...call.metadata };
    if (call.timeoutMs !== undefined) headers["grpc-timeout"] = `${call.timeoutMs}m`;
    const body = Buffer.concat(call.requests.map((request) => frameMessage(request)));
    const sent = call.headersSuffice === true ? {} : { body };
    return outcomeFromAnswer(await this.send(target, { path: call.method, headers, ...sent }));
  }

  callTogether(): Promise<never> {
    return unable("curl", "one connection");
  }

  async send({ address, tls }: Target, { path: asked, headers, body, httpMethod }: RawRequest): Promise<RawAnswer> {
    this.#calls += 1;
    const file = (kind: string): string => path.join(this.#folder, `${kind}-${this.#calls}`);
    const socket = address.startsWith("unix:") ? address.slice("unix:".length) : undefined;
    const args = [
      "--silent",
      "--show-error",
      "--max-time",
      "60",
      "--dump-header",
      file("head"),
      "--output",
      file("body"),
    ];
    for (const [name, value] of Object.entries(headers)) args.push("--header", `${name}: ${value}`);
    if (socket !== undefined) args.push("--unix-socket", socket);
    if (tls === undefined) args.push("--http2-prior-knowledge");
    else args.push("--http2", "--cacert", tls.ca);
    if (tls?.cert !== undefined) args.push("--cert", tls.cert, "--key", tls.key!);
    if (body !== undefined) {
      await writeFile(file("sent"), body);
      args.push("--data-binary", `@${file("sent")}`);
    }
    if (httpMethod !== undefined || body === undefined) args.push("--request", httpMethod ?? "POST");
    args.push(`${tls === undefined ? "http" : "https"}://${socket === undefined ? address : "localhost"}${asked}`);
    const failed = await run("curl", args).then(
      () => false,
      () => true,
    );
    const head = await readFile(file("head"), "latin1").catch(() => "");
    const answer = await readFile(file("body")).catch(() => Buffer.alloc(0));
    return { ...parseHead(failed && !head.includes("grpc-status") ? "" : head), body: answer };
  }

  close(): Promise<void> {
    return rm(this.#folder, { recursive: true, force: true });
  }
}

/** curl dumps headers, an empty line, and then trailers. */
function parseHead(head: string): Omit<RawAnswer, "body"> {
  const [first = "", second = ""] = head.split(/\r\n\r\n/);
  const [statusLine = "", ...lines] = first.split("\r\n");
  return {
    status: Number(/^HTTP\/\S+ (\d+)/.exec(statusLine)?.[1] ?? 0),
    headers: fieldsFrom(lines),
    trailers: fieldsFrom(second.split("\r\n")),
  };
}

function fieldsFrom(lines: readonly string[]): Fields {
  return Object.fromEntries(
    lines.flatMap((line) => {
      const found = /^([^:]+): ?(.*)$/.exec(line);
      return found === null ? [] : [[found[1]!.toLowerCase(), found[2]!]];
    }),
  );
}
