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
  /** One more certificate of the same authority, with subject alternative names as openssl writes them: `DNS:a,URI:b`. */
  issue(name: string, subjectAltName?: string): Promise<IssuedCertificate>;
  /** Removes the folder. */
  close(): Promise<void>;
}

export interface IssuedCertificate {
  readonly cert: string;
  readonly key: string;
}

const openssl = promisify(execFile);

/** A certificate authority, and a server and a client that it vouches for, for two days. */
export async function createCertificates(): Promise<TestCertificates> {
  const folder = await mkdtemp(path.join(tmpdir(), "sluice-certificates-"));
  const file = (name: string): string => path.join(folder, name);
  const create = async (name: string, ...more: readonly string[]): Promise<IssuedCertificate> => {
    const issued = { cert: file(`${name}.crt`), key: file(`${name}.key`) };
    await openssl("openssl", [
      ...["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"],
      ...["-subj", `/CN=Sluice test ${name}`, "-keyout", issued.key, "-out", issued.cert, ...more],
    ]);
    return issued;
  };
  const signed = ["-CA", file("ca.crt"), "-CAkey", file("ca.key"), "-addext", "basicConstraints=critical,CA:FALSE"];
  const issue = (name: string, subjectAltName?: string): Promise<IssuedCertificate> =>
    create(name, ...signed, ...(subjectAltName === undefined ? [] : ["-addext", `subjectAltName=${subjectAltName}`]));
  try {
    await create("ca");
    const [server, client] = await Promise.all([issue("server", "DNS:localhost,IP:127.0.0.1"), issue("client")]);
    return {
      folder,
      ca: file("ca.crt"),
      ...server,
      clientCert: client.cert,
      clientKey: client.key,
      issue,
      close: () => rm(folder, { recursive: true, force: true }),
    };
  } catch (error) {
    await rm(folder, { recursive: true, force: true });
    throw error;
  }
}
