import { SluiceError } from "sluice";
import { leastRole, type Permission, type Role } from "./roles.ts";

/** A caller, as far as it is known. */
export interface Caller {
  /** The name of its token, for logs; `anonymous` without one. */
  readonly name: string;
  readonly may: ReadonlySet<Permission>;
  /** Undefined without a token. */
  readonly role?: Role | undefined;
  /** The team whose policies an editor may change. */
  readonly team?: string | undefined;
  /** The id of its token, if it is in the policy store. */
  readonly tokenId?: string | undefined;
  /** When its token expires, in epoch milliseconds. Undefined: never, or there is none. */
  readonly expiresMs?: number | undefined;
}

/** Identifies callers by their tokens. */
export interface Access {
  /** The caller behind a token. Throws `unauthenticated` if one is needed, and it is missing or unknown. */
  identify(token: string | undefined): Caller;
}

/**
 * Without tokens: any client that reaches us may check and read. Changing counters always needs a token, because every
 * user of a machine reaches its loopback. So does a credit, which empties counters bit by bit; a receipt proves whose
 * charge it undoes.
 */
export const openAccess: Access = {
  identify: () => anonymous,
};

const anonymous: Caller = { name: "anonymous", may: new Set<Permission>(["check", "read"]) };

/** A caller without a token, on a server that has tokens but does not require one to check and read. */
export const tokenless: Caller = { name: "anonymous", may: anonymous.may };

/** The caller of something that needs no permission: its token is not examined. */
export const unasked: Caller = { name: "anonymous", may: new Set() };

/** Throws `permission_denied` if a caller may not do this, and `unauthenticated` if a token would change that. */
export function demand(caller: Caller, permission: Permission): void {
  if (caller.may.has(permission)) return;
  const role = leastRole[permission];
  if (caller === tokenless)
    throw new SluiceError("unauthenticated", `this needs a token of role ${role}; send Authorization: Bearer TOKEN`);
  throw new SluiceError(
    "permission_denied",
    caller === anonymous
      ? `this needs a token of role ${role}, and the server knows no tokens; start it with --tokens FILE, or with a policy store (--store)`
      : caller.role === undefined
        ? `this needs role ${role}, which ${caller.name} does not have`
        : `this needs role ${role}, and ${caller.name} has role ${caller.role}`,
  );
}
