import type { TestCertificates } from "./create-certificates.ts";
import { loopback } from "./find-free-port.ts";
import { type ServerPlace, startProcess } from "./server-process.ts";
import type { Flavor, TestServer } from "./test-server.ts";

export interface StandaloneOptions {
  readonly flavor: Flavor;
  /** More of the command line, such as `["--maxmemory", "2mb"]`. The last value of an option wins. */
  readonly args?: readonly string[];
  /** Makes the port speak TLS alone. A client may show a certificate; with `--tls-auth-clients yes` it has to. */
  readonly tls?: TestCertificates;
}

/** One server that keeps nothing on disk. */
export function startServer({ flavor, args = [], tls }: StandaloneOptions): Promise<TestServer> {
  return startProcess({
    flavor,
    tls: tls !== undefined,
    argsFor: async (place) => [
      ...basicArgs(place),
      ...forgetfulArgs,
      ...(tls === undefined ? [] : tlsArgs(place, tls)),
      ...args,
    ],
  });
}

/** Where to listen and to write; true of servers and sentinels. */
export function basicArgs({ folder, port, unixSocket }: ServerPlace): readonly string[] {
  return [
    ...["--bind", loopback, "--port", String(port), "--unixsocket", unixSocket, "--dir", folder],
    ...["--daemonize", "no", "--loglevel", "warning"],
  ];
}

const forgetfulArgs = ["--save", "", "--appendonly", "no"];

function tlsArgs({ port }: ServerPlace, tls: TestCertificates): readonly string[] {
  return [
    ...["--port", "0", "--tls-port", String(port), "--tls-auth-clients", "optional"],
    ...["--tls-cert-file", tls.cert, "--tls-key-file", tls.key, "--tls-ca-cert-file", tls.ca],
  ];
}
