import { type BodyOf, choice, described, epochMs, fromView, listOf, text, type ViewOf } from "../shapes/body-shape.ts";
import { objectOf, optional } from "../shapes/object-body.ts";
import { changeShape } from "./change.ts";

/** What a token's holder may do; `rolePermissions` in the server says what each is. */
export const roles = ["check", "viewer", "editor", "operator", "admin"] as const;
export type Role = (typeof roles)[number];

const tokenFields = {
  id: text,
  name: text,
  role: choice(roles),
  team: optional(text),
  created_ms: epochMs,
  created_by: text,
  expires_ms: optional(epochMs),
  revoked_ms: optional(epochMs),
  last_used_ms: optional(epochMs),
};

/** A token, without its secret, which is not stored. */
export const token = objectOf(tokenFields);
export type TokenBody = BodyOf<typeof token>;

export const tokenList = objectOf({ items: listOf(token) });
export type TokenListBody = BodyOf<typeof tokenList>;

export const tokenChange = changeShape({ token });
export type TokenChangeBody = BodyOf<typeof tokenChange>;

const shownToken = objectOf({
  ...tokenFields,
  token: optional(described(text, "Shown only in this answer. Absent in a dry run.")),
});

/** The only answer with the token itself. Empty in a view: a dry run created none. */
export const newToken = changeShape({
  token: fromView(shownToken, (view: ViewOf<typeof token> & { readonly token: string }) => ({
    ...view,
    token: view.token === "" ? undefined : view.token,
  })),
});
export type NewTokenBody = BodyOf<typeof newToken>;
