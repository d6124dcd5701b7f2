import { readFile } from "node:fs/promises";
import path from "node:path";
import { type ConnectOptions, connect } from "@sluice/client";
import { connect as connectHttp } from "@sluice/client/http";
import { createCertificates, type TestCertificates } from "@sluice/test-servers";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createTestFiles, type TestFiles } from "./remote-policies.ts";
import { type SluiceProcess, startSluice } from "./sluice-process.ts";

let files: TestFiles;
let certificates: TestCertificates;
let secure: SluiceProcess;
let mutual: SluiceProcess;
let pem: Record<"ca" | "clientCert" | "clientKey", string>;
const sockets = { http: "", grpc: "" };

beforeAll(async () => {
  [files, certificates] = await Promise.all([createTestFiles(), createCertificates()]);
  const read = (file: string): Promise<string> => readFile(file, "utf8");
  const { ca, clientCert, clientKey, cert, key } = certificates;
  pem = { ca: await read(ca), clientCert: await read(clientCert), clientKey: await read(clientKey) };
  sockets.http = path.join(files.folder, "http.sock");
  sockets.grpc = path.join(files.folder, "grpc.sock");
  const tls = ["--config", files.policies, "--tls-cert", cert, "--tls-key", key];
  const paths = ["--http-socket", sockets.http, "--grpc-socket", sockets.grpc];
  [secure, mutual] = await Promise.all([startSluice(...tls), startSluice(...tls, "--tls-client-ca", ca, ...paths)]);
}, 60_000);

afterAll(async () => {
  await Promise.all([secure?.close(), mutual?.close()]);
  await Promise.all([files?.close(), certificates?.close()]);
});

const patientMs = 15_000;
const request = { dimensions: { kind: "api", user: "u1" } };

describe.each(["grpc", "http"] as const)("a remote limiter over %s", (protocol) => {
  async function ask(address: string, options: ConnectOptions, how = connect): Promise<unknown> {
    const why: string[] = [];
    const limiter = how(address, {
      deadlineMs: patientMs,
      whenUnavailable: "closed",
      onChange: (change) => why.push(change.why),
      ...options,
    });
    try {
      const { allowed, degraded } = await limiter.check(request);
      return allowed ? "allowed" : `${degraded}: ${why.join(", ")}`;
    } finally {
      await limiter.close();
    }
  }

  it("speaks TLS with servers that its authorities vouch for", async () => {
    const { ca } = pem;
    expect(secure[protocol]).toMatch(/^(grpc|http)s:/);
    expect(await ask(secure[protocol], { tls: { ca } })).toBe("allowed");
    expect(await ask(secure[protocol], { tls: { ca: Buffer.from(ca) } })).toBe("allowed");
  });

  it("refuses any other server, and one of another name", async () => {
    expect(await ask(secure[protocol], {})).toMatch(/storage_unavailable: .*(certificate|SELF_SIGNED|UNABLE_TO)/i);
    const elsewhere = { ca: pem.ca, serverName: "elsewhere.internal" };
    expect(await ask(secure[protocol], { tls: elsewhere })).toMatch(/storage_unavailable: .*(altnames|ALTNAME)/i);
    expect(await ask(secure[protocol], { tls: { ...elsewhere, serverName: "localhost" } })).toBe("allowed");
  });

  it("presents its certificate if servers require one", async () => {
    const { ca, clientCert: cert, clientKey: key } = pem;
    expect(await ask(mutual[protocol], { tls: { ca, cert, key } })).toBe("allowed");
    expect(await ask(mutual[protocol], { tls: { ca } })).toMatch(/^storage_unavailable/);
  });

  it("reaches a socket of this machine", async () => {
    const plain = await startSluice("--config", files.policies, `--${protocol}-socket`, `${sockets[protocol]}.plain`);
    try {
      expect(await ask(`${protocol}+unix:${sockets[protocol]}.plain`, {})).toBe("allowed");
    } finally {
      await plain.close();
    }
  });
});

it("HTTP alone needs no gRPC", async () => {
  const limiter = connectHttp(secure.http, { deadlineMs: patientMs, tls: { ca: pem.ca }, whenUnavailable: "closed" });
  expect(await limiter.check(request)).toMatchObject({ allowed: true });
  await limiter.close();
  expect(() => connectHttp(secure.grpc)).toThrow('"@sluice/client"');
});
