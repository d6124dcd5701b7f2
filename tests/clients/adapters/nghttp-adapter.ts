import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { promisify } from "node:util";
import type {
  Call,
  ClientAdapter,
  ContractClient,
  Fields,
  Frames,
  Outcome,
  RawAnswer,
  RawRequest,
  Target,
} from "../contract/contract-client.ts";
import { frameMessage, outcomeFromAnswer } from "../contract/grpc-framing.ts";

const run = promisify(execFile);

export const nghttpAdapter: ClientAdapter = {
  name: "nghttp",
  lacks: {
    "bidirectional streams": "it sends a body that is complete",
    cancellation: "it waits for every answer",
    reconnects: "its connection ends with the process",
    "unix sockets": "it has no option for them",
    "server verification": "it warns, and goes on",
    gzip: "it sends bytes as they are",
  },
  async version(): Promise<string> {
    const { stdout } = await run("nghttp", ["--version"]);
    return /nghttp2\/(\S+)/.exec(stdout)?.[1] ?? "unknown";
  },
  open: async () => new NghttpClient(await mkdtemp(path.join(tmpdir(), "sluice-nghttp-"))),
};

const noAnswer: RawAnswer = { status: 0, headers: {}, body: Buffer.alloc(0), trailers: {} };

const frameArgs: Readonly<Record<Frames, readonly string[]>> = {
  padding: ["--padding=100"],
  // 255 bytes for a stream, and the least that a connection may have.
  "small windows": ["--window-bits=8", "--connection-window-bits=16"],
  "no header table": ["--header-table-size=0", "--encoder-header-table-size=0"],
  "request trailers": ["--trailer=x-checksum: none"],
  weights: ["--weight=256"],
};

class NghttpClient implements ContractClient {
  readonly #folder: string;
  #calls = 0;

  constructor(folder: string) {
    this.#folder = folder;
  }

  async call(target: Target, call: Call): Promise<Outcome> {
    return (await this.callTogether(target, call, 1))[0]!;
  }

  async callTogether(target: Target, call: Call, times: number): Promise<readonly Outcome[]> {
    const headers: Record<string, string> = { "content-type": "application/grpc", te: "trailers", ...call.metadata };
    if (call.timeoutMs !== undefined) headers["grpc-timeout"] = `${call.timeoutMs}m`;
    const body = Buffer.concat(call.requests.map((request) => frameMessage(request)));
    const args = call.frames === undefined ? [] : frameArgs[call.frames];
    const answers = await this.#run(target, { path: call.method, headers, body }, [`--multiply=${times}`, ...args]);
    // Without a connection it sends nothing, and prints nothing of it.
    return Array.from({ length: times }, (_, index) => outcomeFromAnswer(answers[index] ?? noAnswer));
  }

  async send(target: Target, request: RawRequest): Promise<RawAnswer> {
    const [answer] = await this.#run(target, request, []);
    return answer ?? noAnswer;
  }

  close(): Promise<void> {
    return rm(this.#folder, { recursive: true, force: true });
  }

  async #run({ address, tls }: Target, request: RawRequest, more: readonly string[]): Promise<readonly RawAnswer[]> {
    this.#calls += 1;
    const args = ["--verbose", "--no-verify-peer", "--timeout=60s", ...more];
    for (const [name, value] of Object.entries(request.headers)) args.push(`--header=${name}: ${value}`);
    if (request.body !== undefined) {
      const file = path.join(this.#folder, `body-${this.#calls}`);
      await writeFile(file, request.body);
      args.push(`--data=${file}`);
    }
    if (request.httpMethod !== undefined || request.body === undefined)
      args.push(`--header=:method: ${request.httpMethod ?? "POST"}`);
    if (tls?.cert !== undefined) args.push(`--cert=${tls.cert}`, `--key=${tls.key}`);
    args.push(`${tls === undefined ? "http" : "https"}://${address}${request.path}`);
    const options = { encoding: "latin1", maxBuffer: 256 * 1024 * 1024 } as const;
    // It exits with 1 if a stream was reset; what it printed says so.
    const { stdout } = await run("nghttp", args, options).catch((error: { stdout: string }) => error);
    return parseTranscript(stdout);
  }
}

/** One answer per request that nghttp sent, in order. */
function parseTranscript(printed: string): readonly RawAnswer[] {
  const answers = new Map<number, { blocks: Record<string, string>[]; body: Buffer[]; inBlock: boolean }>();
  const findAnswer = (id: string) => {
    const known = answers.get(Number(id));
    if (known !== undefined) return known;
    const created = { blocks: [], body: [], inBlock: false };
    answers.set(Number(id), created);
    return created;
  };
  // Frames that it sends count from HEADERS; fields that it receives come line by line, and then the frame that had them.
  const event =
    /\[ *\d+\.\d+\] (?:send HEADERS frame <length=\d+, flags=0x\w+, stream_id=(\d+)>|recv \(stream_id=(\d+)\) ([^\n]*?): ([^\n]*)\n|recv HEADERS frame <length=\d+, flags=0x\w+, stream_id=(\d+)>|recv DATA frame <length=(\d+), flags=0x\w+, stream_id=(\d+)>)/g;
  for (const found of printed.matchAll(event)) {
    const [, sent, fieldStream, name, value, headersStream, length, dataStream] = found;
    if (sent !== undefined) findAnswer(sent);
    if (fieldStream !== undefined) {
      const answer = findAnswer(fieldStream);
      if (!answer.inBlock) answer.blocks.push({});
      answer.inBlock = true;
      answer.blocks.at(-1)![name!] = value!;
    }
    if (headersStream !== undefined) findAnswer(headersStream).inBlock = false;
    // What it received is printed right before the frame that contained it.
    if (dataStream !== undefined)
      findAnswer(dataStream).body.push(Buffer.from(printed.slice(found.index - Number(length), found.index), "latin1"));
  }
  return [...answers.values()].map(({ blocks: [headers = {}, trailers = {}], body }) => ({
    status: Number(headers[":status"] ?? 0),
    headers: headers as Fields,
    body: Buffer.concat(body),
    trailers: trailers as Fields,
  }));
}
