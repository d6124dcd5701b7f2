import { setTimeout as sleep } from "node:timers/promises";
import { SluiceError } from "sluice";
import { type Access, type Caller, demand, unasked } from "../../data-plane/access/access.ts";
import type { Actor } from "../../data-plane/access/actor.ts";
import type { OwnLimits } from "../../data-plane/access/limit-own-api.ts";
import type { Credential } from "../../data-plane/transports/http/exchange.ts";
import type { Logger } from "../../observe/telemetry/logger.ts";
import { sluiceItself } from "../audit/audit-entry.ts";
import type { ControlPlane } from "../control-plane.ts";
import { isConsoleToken } from "../use-cases/control-tokens.ts";
import type { SignInCode, SignInCodes } from "./sign-in-codes.ts";

export type SignInWith = { readonly token: string } | { readonly code: string };

export interface Sessions {
  /**
   * The caller that a token or a code stands for, and the token for its cookie. Throws `unauthenticated`, `permission_denied` if it
   * may not read, and `rate_limited` after too many failures from its address.
   */
  signIn(using: SignInWith, from: string): Promise<{ readonly caller: Caller; readonly token: string }>;
  /** Revokes the token if it was made for this session alone. Never throws: a token that cannot be revoked is logged. */
  signOut(caller: Caller, from: string): Promise<void>;
  /** A code for a session with the rights of the caller, and no others. */
  makeCode(caller: Caller, credential: Credential): SignInCode;
}

export interface SessionsOptions {
  readonly access: Access;
  readonly control: ControlPlane;
  readonly limits: OwnLimits;
  readonly codes: SignInCodes;
  readonly log: Logger;
}

/** How long a new token may take to reach all nodes, and how often to look. */
const spreadWithinMs = 3_000;
const lookEveryMs = 50;

const audited = { action: "session.start", kind: "session" } as const;

export function createSessions({ access, control, limits, codes, log }: SessionsOptions): Sessions {
  /** The caller of a token that may read, at least. */
  function identify(token: string): Caller {
    const caller = access.identify(token);
    if (caller.role === undefined) throw new SluiceError("unauthenticated", "this token is not known here");
    demand(caller, "read");
    return caller;
  }

  /** Waits until the token is known here, and to the other nodes behind the same address. */
  async function spread(token: string, generation: number | undefined): Promise<void> {
    const untilMs = performance.now() + spreadWithinMs;
    while (performance.now() < untilMs) {
      const { nodes } = await control.nodes.list(sluiceItself);
      const isEverywhere = nodes.every((node) => !node.alive || node.generation >= (generation ?? 0));
      if (isEverywhere && isKnown(token)) return;
      await sleep(lookEveryMs);
    }
  }

  function isKnown(token: string): boolean {
    try {
      return access.identify(token).role !== undefined;
    } catch {
      return false;
    }
  }

  async function findToken(using: SignInWith, from: string, countFailure: () => void): Promise<string> {
    if ("token" in using) return using.token;
    const grant = await codes.take(using.code, countFailure);
    if (grant === undefined)
      throw new SluiceError(
        "unauthenticated",
        "this link was used before, or is older than five minutes; ask for another with sluice console",
      );
    if (grant.kind === "token") return grant.token;
    const { value, generation } = await control.tokens.makeForConsole({ ...sluiceItself, from });
    await spread(value.token, generation);
    return value.token;
  }

  return {
    async signIn(using, from) {
      let isCounted = false;
      // Before other workers are asked for a code, too: guesses that arrive together must not keep all of them busy.
      const countFailure = (): void => {
        if (!isCounted) limits.countFailedLogin(from);
        isCounted = true;
      };
      try {
        const token = await findToken(using, from, countFailure);
        const caller = identify(token);
        // Each writes to the audit.
        limits.take(caller, "write");
        await control.audit.done({ caller, from }, { ...audited, target: caller.name });
        return { caller, token };
      } catch (error) {
        const code = error instanceof SluiceError ? error.code : "internal";
        if (code !== "unauthenticated" && code !== "permission_denied") throw error;
        countFailure();
        control.audit.refused({ caller: unasked, from }, audited.action, audited.kind, "", (error as Error).message);
        throw error;
      }
    },

    async signOut(caller, from) {
      const actor: Actor = { caller, from };
      await control.audit.done(actor, { action: "session.end", kind: "session", target: caller.name });
      if (caller.tokenId === undefined || !isConsoleToken(caller.name)) return;
      try {
        await control.tokens.revoke(actor, caller.tokenId, { why: "signed out" });
      } catch (error) {
        const reason = error instanceof Error ? error.message : String(error);
        log.error("session.revoke_failed", { caller: caller.name, token: caller.tokenId, reason });
      }
    },

    makeCode(caller, { token }) {
      const made = codes.make({ kind: "token", token }, caller.tokenId ?? caller.name);
      if (made !== undefined) return made;
      throw new SluiceError("overloaded", "too many codes wait to be used; they expire within five minutes");
    },
  };
}
