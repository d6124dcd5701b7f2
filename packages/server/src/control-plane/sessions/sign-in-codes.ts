import { randomBytes } from "node:crypto";
import { tokenDigest } from "@sluice/protocol/tokens";
import type { WorkerLink } from "../../observe/worker-link.ts";

/** What a code is exchanged for. */
export type CodeGrant =
  /** A session with this token: that of the caller who asked for the code. */
  | { readonly kind: "token"; readonly token: string }
  /** A session with a new token of role admin: for the person who sees the server start. */
  | { readonly kind: "new admin" };

export interface SignInCode {
  readonly code: string;
  readonly expiresMs: number;
}

export interface SignInCodesOptions {
  /** Set if several processes are behind the same ports: a code of one is taken by whichever is asked. */
  readonly worker?: WorkerLink | undefined;
  readonly nowMs?: (() => number) | undefined;
}

const validForMs = 5 * 60_000;
/** 192 bits. */
const codeBytes = 24;
/** The most codes at a time, of all callers and of one: a new one displaces that caller's oldest. */
const maxCodes = 1_000;
const maxOfCaller = 10;

interface KeptCode {
  readonly grant: CodeGrant;
  readonly caller: string;
  readonly expiresMs: number;
}

/**
 * Codes that sign in once. They are in memory alone, by their digests, so nothing that is stored or logged signs anyone in.
 *
 *     made ──taken once──► gone      made ──five minutes, displaced, restart──► gone
 */
export class SignInCodes {
  readonly #codes = new Map<string, KeptCode>();
  readonly #worker: WorkerLink | undefined;
  readonly #nowMs: () => number;

  constructor({ worker, nowMs = Date.now }: SignInCodesOptions = {}) {
    this.#worker = worker;
    this.#nowMs = nowMs;
    worker?.answer("sign-in code", async (digest) => {
      const grant = this.#take(digest);
      return grant === undefined ? "" : JSON.stringify(grant);
    });
  }

  /** `caller` is whose codes it counts with. Undefined if there are too many. */
  make(grant: CodeGrant, caller: string): SignInCode | undefined {
    this.#dropExpired();
    const own = [...this.#codes].filter(([, kept]) => kept.caller === caller);
    if (own.length >= maxOfCaller) this.#codes.delete(own[0]![0]);
    if (this.#codes.size >= maxCodes) return undefined;
    const code = randomBytes(codeBytes).toString("base64url");
    const expiresMs = this.#nowMs() + validForMs;
    this.#codes.set(tokenDigest(code), { grant, caller, expiresMs });
    return { code, expiresMs };
  }

  /**
   * What the code is good for, once. Undefined if it is unknown, was taken or has expired. `beforeAsking` is called before the other
   * workers are asked, and keeps them from it if it throws.
   */
  async take(code: string, beforeAsking: () => void = () => {}): Promise<CodeGrant | undefined> {
    if (code.length > 64) return undefined;
    const digest = tokenDigest(code);
    const own = this.#take(digest);
    if (own !== undefined || this.#worker === undefined) return own;
    beforeAsking();
    const answers = await this.#worker.askOthers("sign-in code", digest);
    const found = answers.find((answer) => answer !== "");
    return found === undefined ? undefined : (JSON.parse(found) as CodeGrant);
  }

  #take(digest: string): CodeGrant | undefined {
    this.#dropExpired();
    const kept = this.#codes.get(digest);
    this.#codes.delete(digest);
    return kept?.grant;
  }

  #dropExpired(): void {
    const nowMs = this.#nowMs();
    // In the order in which they were made, so the oldest come first.
    for (const [digest, { expiresMs }] of this.#codes) {
      if (expiresMs > nowMs) return;
      this.#codes.delete(digest);
    }
  }
}
