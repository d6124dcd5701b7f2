import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { CheckBatchRequest, CheckRequest } from "@sluice/protocol";
import { framed } from "./framed.ts";

/** Policies and request bodies in a temporary folder, for servers and load tools to read. */
export interface ChecksOnDisk {
  readonly folder: string;
  /** A policy whose limit is never reached. Text is added to it as it is, such as `deadline: 3ms`. */
  policies(more?: string): string;
  /** One check, as a gRPC message and as JSON. */
  readonly grpc: string;
  readonly http: string;
  /** Messages of a `CheckStream` call, and how many checks they hold together. */
  readonly stream: string;
  readonly checksPerStream: number;
  remove(): void;
}

const perBatch = 64;
const messagesPerStream = 50;

export function writeChecks(): ChecksOnDisk {
  const folder = mkdtempSync(path.join(tmpdir(), "sluice-bench-"));
  const write = (name: string, content: string | Uint8Array): string => {
    const file = path.join(folder, name);
    writeFileSync(file, content);
    return file;
  };
  const dimensions = (user: number): Record<string, string> => ({
    tenant: `t${user % 7}`,
    user: `user-${user}`,
    endpoint: "/v1/orders",
  });
  const batch = (sequence: number): Uint8Array =>
    framed(
      CheckBatchRequest.encode({
        sequence,
        checks: Array.from({ length: perBatch }, (_, i) =>
          CheckRequest.fromPartial({ dimensions: dimensions(sequence * perBatch + i) }),
        ),
        deadlineMs: 0,
      }).finish(),
    );
  return {
    folder,
    policies: (more = "") =>
      write(
        `policies-${more.replaceAll(/\W/g, "")}.yaml`,
        `policies: [{ id: orders, match: { endpoint: /v1/orders }, limits: [{ by: [user], windows: [1M/s] }], on_failure: open${
          more === "" ? "" : `, ${more}`
        } }]\n`,
      ),
    grpc: write(
      "check.bin",
      framed(CheckRequest.encode(CheckRequest.fromPartial({ dimensions: dimensions(7) })).finish()),
    ),
    http: write("check.json", JSON.stringify({ dimensions: dimensions(7) })),
    stream: write("stream.bin", Buffer.concat(Array.from({ length: messagesPerStream }, (_, i) => batch(i)))),
    checksPerStream: perBatch * messagesPerStream,
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}
