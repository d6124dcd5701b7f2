import { SluiceError } from "sluice";
import { leastRole, type Permission, type Role } from "./roles.ts";

/** Who asks, as far as is known. */
export interface Caller {
  /** The name of their token, for logs; `anonymous` where there are none. */
  readonly name: string;
  readonly may: ReadonlySet<Permission>;
  /** Undefined for who has no token. */
  readonly role?: Role | undefined;
  /** The team whose policies an editor may change. */
  readonly team?: string | undefined;
  /** The id of their token, where it is kept in the policy store. */
  readonly tokenId?: string | undefined;
}

/** Tells callers by their tokens. */
export interface Access {
  /** Who is behind a token. Throws `unauthenticated` where one is needed, and it is missing or not known. */
  identify(token: string | undefined): Caller;
}

/**
 * Without tokens: whoever reaches us may ask and look. Changing counters always needs a token, because everybody on a
 * machine reaches its loopback. So does a credit, which empties counters bit by bit; a receipt proves whose charge it undoes.
 */
export const openAccess: Access = {
  identify: () => anonymous,
};

const anonymous: Caller = { name: "anonymous", may: new Set<Permission>(["check", "read"]) };

/** A caller without a token, of a server that knows tokens and does not ask for one in order to check and look. */
export const tokenless: Caller = { name: "anonymous", may: anonymous.may };

/** Who asks what needs no permission: nobody looks at their token. */
export const unasked: Caller = { name: "anonymous", may: new Set() };

/** Throws `permission_denied` where a caller may not do this, and `unauthenticated` where a token would change that. */
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
