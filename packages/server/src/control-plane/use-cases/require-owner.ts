import { SluiceError } from "sluice";
import type { Caller } from "../../data-plane/access/access.ts";

/** The team that an editor writes for; undefined for actors that may change every policy. */
export function findTeam(caller: Caller): string | undefined {
  return caller.may.has("administer") ? undefined : (caller.team ?? "");
}

/** Throws `permission_denied` if the caller may not change a policy with this owner. */
export function requireOwner(caller: Caller, id: string, owner: string | undefined): void {
  const team = findTeam(caller);
  if (team === undefined || (team !== "" && owner === team)) return;
  if (team === "")
    throw new SluiceError("permission_denied", `${caller.name} has no team, and so may change no policy`);
  throw new SluiceError(
    "permission_denied",
    owner === undefined
      ? `policy ${id} has no owner, and ${caller.name} may change only what team ${team} owns`
      : `policy ${id} is owned by ${owner}, and ${caller.name} may change only what team ${team} owns`,
  );
}
