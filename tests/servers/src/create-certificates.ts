import { execFile } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { promisify } from "node:util";

/** Files in PEM. */
export interface TestCertificates {
  readonly folder: string;
  /** The authority that signed both certificates. */
  readonly ca: string;
  /** The server's, for `localhost` and `127.0.0.1`. */
  readonly cert: string;
  readonly key: string;
  readonly clientCert: string;
  readonly clientKey: string;
  /** Removes the folder. */
  close(): Promise<void>;
}

const openssl = promisify(execFile);

/** A certificate authority, and a server and a client that it vouches for, for two days. */
export async function createCertificates(): Promise<TestCertificates> {
  const folder = await mkdtemp(path.join(tmpdir(), "sluice-certificates-"));
  const file = (name: string): string => path.join(folder, name);
  const create = (name: string, ...more: readonly string[]): Promise<unknown> =>
    openssl("openssl", [
      ...["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"],
      ...["-subj", `/CN=Sluice test ${name}`, "-keyout", file(`${name}.key`), "-out", file(`${name}.crt`), ...more],
    ]);
  const signed = ["-CA", file("ca.crt"), "-CAkey", file("ca.key"), "-addext", "basicConstraints=critical,CA:FALSE"];
  try {
    await create("ca");
    await Promise.all([
      create("server", ...signed, "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"),
      create("client", ...signed),
    ]);
  } catch (error) {
    await rm(folder, { recursive: true, force: true });
    throw error;
  }
  return {
    folder,
    ca: file("ca.crt"),
    cert: file("server.crt"),
    key: file("server.key"),
    clientCert: file("client.crt"),
    clientKey: file("client.key"),
    close: () => rm(folder, { recursive: true, force: true }),
  };
}
