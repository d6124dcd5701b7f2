import type { NewTokenBody, Role, TokenChangeBody, TokenListBody } from "@sluice/protocol/admin";
import type { ChangeOptions } from "./admin.ts";
import { ask, part } from "./ask.ts";

export interface NewToken {
  readonly name: string;
  readonly role: Role;
  readonly team?: string | undefined;
  readonly expires_ms?: number | undefined;
}

export const tokens = {
  list: (signal?: AbortSignal) => ask<TokenListBody>("GET", "tokens", { signal }),
  make: (token: NewToken, options: ChangeOptions) => ask<NewTokenBody>("POST", "tokens", { body: token, ...options }),
  revoke: (id: string, options: ChangeOptions) => ask<TokenChangeBody>("DELETE", `tokens/${part(id)}`, options),
} as const;
