import { chmodSync } from "node:fs";
import { type AddressInfo, createServer, type Server, type Socket } from "node:net";
import { createServer as createTlsServer, type TLSSocket, type Server as TlsServer } from "node:tls";
import { isMainThread } from "node:worker_threads";
import type { Protocol, TurnedAway } from "../../protocol.ts";
import { AddressCount } from "./address-count.ts";
import { clearSocketPath, SocketPathError } from "./door-socket-path.ts";
import type { Tls } from "./tls.ts";
import type { Transport } from "./transport.ts";

/** Where to listen. */
export type Endpoint =
  | { readonly kind: "port"; readonly host: string; readonly port: number }
  | { readonly kind: "socket"; readonly path: string };

export interface DoorOptions {
  readonly protocol: Protocol;
  readonly endpoints: readonly Endpoint[];
  readonly transport: Pick<Transport, "accept">;
  /** The most open connections, over all endpoints, including those in a TLS handshake. */
  readonly maxConnections: number;
  /**
   * The most from one address, or from one IPv6 network of 64 bits; connections to unix sockets have none. Absent: as
   * many as there may be.
   */
  readonly maxPerAddress?: number | undefined;
  /** Called for connections that were turned away. */
  readonly onTurnedAway: (protocol: Protocol, why: TurnedAway, details: TurnedAwayDetails) => void;
  /** For ports. A unix socket has none: its file permissions decide who may connect. */
  readonly tls?: Tls | undefined;
  /** How long a TLS handshake may take. Absent: 10 s. */
  readonly handshakeWithinMs?: number | undefined;
  /** Whether another process clears socket paths, as when several processes share them. */
  readonly sharesPaths?: boolean | undefined;
}

/** For logs; nothing in here is secret. */
export interface TurnedAwayDetails {
  readonly address?: string | undefined;
  readonly reason?: string | undefined;
}

/** Listens for one transport: ports and unix sockets, bounded in number. */
export interface Door {
  /** Starts listening; resolves with the addresses: `127.0.0.1:8080`, `[::1]:8080`, `unix:/run/sluice.sock`. */
  listen(): Promise<readonly string[]>;
  /** Stops listening, and removes socket paths. Open connections stay open; those in a TLS handshake are closed. */
  close(): Promise<void>;
  readonly connections: number;
}

/** Why a door cannot listen. */
export class ListenError extends Error {
  override readonly name = "ListenError";
  readonly protocol: Protocol;
  readonly endpoint: Endpoint;
  readonly code: string;

  constructor(protocol: Protocol, endpoint: Endpoint, cause: unknown) {
    const { message, code = "" } = cause as NodeJS.ErrnoException;
    super(message, { cause });
    this.protocol = protocol;
    this.endpoint = endpoint;
    this.code = cause instanceof SocketPathError ? "path" : code;
  }
}

/** A connection in its TLS handshake, and the reason it fails, once known. */
interface Unproven {
  readonly socket: Socket;
  reason: string | undefined;
}

const tooSlow = "ERR_TLS_HANDSHAKE_TIMEOUT";

/** The protocol inside TLS, for clients that ask. Redis clients do not. */
const alpn: Readonly<Record<Protocol, readonly string[] | undefined>> = {
  http: ["http/1.1"],
  grpc: ["h2"],
  resp: undefined,
  admin: ["http/1.1"],
};

/** Owner and group may connect. */
const socketMode = 0o660;

export function createDoor(options: DoorOptions): Door {
  return new OpenDoor(options);
}

/**
 * The path of a connection, which may be refused at any step:
 *
 *     admitted (how many, of one address) ──► without TLS ─────────────────────────► the transport
 *                                         └─► unproven ──handshake, client name──► the transport
 */
class OpenDoor implements Door {
  readonly #options: DoorOptions;
  readonly #perAddress: AddressCount;
  readonly #servers: Server[] = [];
  /** Connections in their TLS handshake, by their ends. */
  readonly #unproven = new Map<string, Unproven>();
  #connections = 0;
  #closed = false;
  #forgetTls: (() => void) | undefined;

  constructor(options: DoorOptions) {
    this.#options = options;
    this.#perAddress = new AddressCount(options.maxPerAddress ?? options.maxConnections);
  }

  get connections(): number {
    return this.#connections;
  }

  async listen(): Promise<readonly string[]> {
    const { endpoints, tls } = this.#options;
    const addresses: string[] = [];
    const secure = tls === undefined ? undefined : this.#createSecure(tls);
    try {
      for (const endpoint of endpoints) addresses.push(await this.#open(endpoint, secure));
    } catch (error) {
      await this.close();
      throw error;
    }
    return addresses;
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#forgetTls?.();
    // Not awaited: a server is closed only when its last connection is.
    for (const server of this.#servers.splice(0)) server.close();
    for (const { socket } of this.#unproven.values()) socket.destroy();
  }

  async #open(endpoint: Endpoint, secure: TlsServer | undefined): Promise<string> {
    try {
      if (endpoint.kind === "socket" && this.#options.sharesPaths !== true) await clearSocketPath(endpoint.path);
      const take =
        secure !== undefined && endpoint.kind === "port"
          ? (socket: Socket) => this.#enterSecurely(secure, socket)
          : (socket: Socket) => this.#enter(socket);
      const server = createServer({ noDelay: true }, take);
      this.#servers.push(server);
      await listenOn(server, endpoint);
      // Accepting can fail, for want of file descriptors for instance; the next attempt may not.
      server.on("error", ignore);
      return renderAddress(server.address()!);
    } catch (error) {
      throw new ListenError(this.#options.protocol, endpoint, error);
    }
  }

  #admit(socket: Socket): boolean {
    const { protocol, maxConnections, onTurnedAway } = this.#options;
    const { remoteAddress: address } = socket;
    const isFull = this.#connections >= maxConnections;
    const why = isFull ? "too_many" : this.#perAddress.isFull(address) ? "too_many_of_address" : undefined;
    if (why !== undefined || this.#closed) {
      if (why !== undefined && !this.#closed) onTurnedAway(protocol, why, { address });
      socket.destroy();
      return false;
    }
    this.#connections += 1;
    const leave = this.#perAddress.enter(address);
    socket.once("close", () => {
      this.#connections -= 1;
      leave();
    });
    // Until the transport has taken over, nothing else handles the error of a connection that is reset.
    socket.on("error", ignore);
    return true;
  }

  #enter(socket: Socket): void {
    if (this.#admit(socket)) this.#options.transport.accept(socket);
  }

  #enterSecurely(secure: TlsServer, socket: Socket): void {
    if (!this.#admit(socket)) return;
    const { protocol, onTurnedAway } = this.#options;
    const ends = renderEnds(socket);
    const entry: Unproven = { socket, reason: undefined };
    const address = socket.remoteAddress;
    this.#unproven.set(ends, entry);
    socket.once("close", () => {
      if (this.#unproven.get(ends) !== entry) return;
      this.#unproven.delete(ends);
      // A client that connects and leaves silently, as load balancer probes do, did not fail at TLS.
      const silent = socket.bytesRead === 0 && entry.reason !== tooSlow;
      if (!(silent || this.#closed)) onTurnedAway(protocol, "tls", { address, reason: entry.reason });
    });
    secure.emit("connection", socket);
  }

  #createSecure(tls: Tls): TlsServer {
    const { protocol, handshakeWithinMs = 10_000 } = this.#options;
    const secure = createTlsServer({
      ...tls.options,
      handshakeTimeout: handshakeWithinMs,
      ...(alpn[protocol] === undefined ? undefined : { ALPNProtocols: [...alpn[protocol]] }),
    });
    secure.on("secureConnection", (socket: TLSSocket) => this.#enterProven(socket, tls));
    secure.on("tlsClientError", (error: NodeJS.ErrnoException, socket: TLSSocket) => {
      const entry = this.#unproven.get(renderEnds(socket));
      if (entry !== undefined) entry.reason ??= error.code ?? error.message;
      socket.destroy();
    });
    this.#forgetTls = tls.onChange((context) => secure.setSecureContext(context));
    return secure;
  }

  #enterProven(socket: TLSSocket, { options, clientNames }: Tls): void {
    const { protocol, transport, onTurnedAway } = this.#options;
    socket.on("error", ignore);
    if (!this.#unproven.delete(renderEnds(socket)) || this.#closed) {
      socket.destroy();
      return;
    }
    const why = options.requestCert === true ? whyUnwelcome(socket, clientNames) : undefined;
    if (why === undefined) {
      transport.accept(socket);
      return;
    }
    onTurnedAway(protocol, why, { address: socket.remoteAddress, reason: namesIn(socket) });
    socket.destroy();
  }
}

function ignore(): void {}

/** Both ends of a connection: no two open ones have the same. */
function renderEnds({ remoteAddress, remotePort, localAddress, localPort }: Socket): string {
  return `${remoteAddress} ${remotePort} ${localAddress} ${localPort}`;
}

/** OpenSSL has accepted the client; this checks once more, and its names. */
function whyUnwelcome(socket: TLSSocket, clientNames: Tls["clientNames"]): TurnedAway | undefined {
  const certificate = socket.getPeerX509Certificate();
  if (!socket.authorized || certificate === undefined) return "tls";
  return clientNames === undefined || clientNames.admits(certificate) ? undefined : "client_name";
}

const maxNamesLogged = 500;

function namesIn(socket: TLSSocket): string {
  return (socket.getPeerX509Certificate()?.subjectAltName ?? "no names").slice(0, maxNamesLogged);
}

function listenOn(server: Server, endpoint: Endpoint): Promise<void> {
  return new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    const ready = (): void => {
      server.off("error", reject);
      try {
        if (endpoint.kind === "socket") chmodSync(endpoint.path, socketMode);
        resolve();
      } catch (error) {
        reject(error);
      }
    };
    if (endpoint.kind === "port") {
      server.listen({ host: endpoint.host, port: endpoint.port }, ready);
      return;
    }
    // The file is created within this call, and is never open to others, not even for a moment.
    const umask = isMainThread ? process.umask(0o777 & ~socketMode) : undefined;
    try {
      // As `path`: a bare text such as `8080` would be a port, on every address.
      server.listen({ path: endpoint.path }, ready);
    } finally {
      if (umask !== undefined) process.umask(umask);
    }
  });
}

function renderAddress(address: AddressInfo | string): string {
  if (typeof address === "string") return `unix:${address}`;
  return `${address.family === "IPv6" ? `[${address.address}]` : address.address}:${address.port}`;
}
