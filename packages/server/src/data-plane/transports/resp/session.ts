import { SluiceError } from "sluice";
import type { Access, Caller } from "../../access/access.ts";
import type { RespVersion } from "./replies.ts";

/** How long a revoked token may keep working on a connection that used it. */
const askAgainMs = 1_000;

/** What is known of a client between its commands. */
export class Session {
  readonly id: number;
  /** `127.0.0.1:50312`; empty for a unix socket. */
  readonly address: string;
  readonly sinceMs: number;
  version: RespVersion = 2;
  /** The client's name for itself, for CLIENT LIST. */
  name = "";
  libraryName = "";
  libraryVersion = "";
  /** Set by QUIT: nothing after it is read. */
  isOver = false;
  /** Since when the client has been unauthenticated; Infinity while it is authenticated. */
  strangerSinceMs: number;
  readonly #access: Access;
  #token: string | undefined;
  #caller: Caller | undefined;
  #askedMs = Number.NEGATIVE_INFINITY;

  constructor(id: number, address: string, access: Access, nowMs: number) {
    this.id = id;
    this.address = address;
    this.#access = access;
    this.sinceMs = nowMs;
    this.strangerSinceMs = nowMs;
  }

  /** The address without its port. */
  get host(): string {
    return this.address.replace(/:\d+$/, "");
  }

  /** The caller. Undefined until it has authenticated, if that is required. */
  get caller(): Caller | undefined {
    return this.#caller;
  }

  /** Checks now and then whether the token is still valid: tokens are revoked while connections are open. */
  refresh(nowMs: number): void {
    if (nowMs - this.#askedMs < askAgainMs) return;
    this.#askedMs = nowMs;
    try {
      this.#know(this.#identify(this.#token));
    } catch {
      // Whatever is wrong with tokens, no client gets in because of it.
      this.#know(undefined);
    }
  }

  /**
   * Accepts a token. `unknown` if no caller has it, or another one than `user`; `needless` if the server has no tokens
   * at all.
   */
  authenticate(user: string | undefined, token: string): "known" | "unknown" | "needless" {
    const caller = this.#identify(token);
    if (caller === undefined) return "unknown";
    if (caller === this.#identify(undefined)) return "needless";
    if (user !== undefined && user !== "default" && user !== caller.name) return "unknown";
    this.#token = token;
    this.#know(caller);
    return "known";
  }

  /** Forgets everything that the client said, as if it had just connected. */
  reset(): void {
    this.version = 2;
    this.name = "";
    this.libraryName = "";
    this.libraryVersion = "";
    this.#token = undefined;
    this.#know(this.#identify(undefined));
  }

  #know(caller: Caller | undefined): void {
    this.#caller = caller;
    if (caller !== undefined) this.strangerSinceMs = Number.POSITIVE_INFINITY;
    else if (this.strangerSinceMs === Number.POSITIVE_INFINITY) this.strangerSinceMs = performance.now();
  }

  #identify(token: string | undefined): Caller | undefined {
    try {
      return this.#access.identify(token);
    } catch (error) {
      if (error instanceof SluiceError) return undefined;
      throw error;
    }
  }
}
