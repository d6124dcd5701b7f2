import { type BodyOf, choice, described, epochMs, listOf, text } from "../shapes/body-shape.ts";
import { objectOf, optional } from "../shapes/object-body.ts";
import { roles } from "./token.ts";

/**
 * What a caller may do: decide, charge, and undo that by a receipt; credit counters without one; read; simulate, which
 * takes memory and CPU time of a node; change policies of its team; change counters, subjects and the kill switch; change everything.
 */
export const permissions = ["check", "credit", "read", "simulate", "edit", "operate", "administer"] as const;
export type Permission = (typeof permissions)[number];

/** Who is signed in, and what it may do. The token itself is never in it. */
export const session = objectOf({
  name: described(text, "The name of the token, as the audit shows it."),
  role: choice(roles),
  team: optional(described(text, "The team whose policies an editor may change.")),
  expires_ms: optional(
    described(epochMs, "When the token expires, in epoch milliseconds. Absent: never. The cookie may end before that."),
  ),
  may: described(listOf(choice(permissions)), "What the role permits. Do not offer what is not in it."),
  by: described(choice(["cookie", "bearer"]), "How the caller is signed in."),
});
export type SessionBody = BodyOf<typeof session>;

/** A code that signs in once. */
export const sessionCode = objectOf({
  code: described(text, "Put it behind `#code=` in the link to the console: a fragment reaches no server and no log."),
  expires_ms: epochMs,
});
export type SessionCodeBody = BodyOf<typeof sessionCode>;
