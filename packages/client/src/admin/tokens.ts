import type { NewTokenBody, Role, TokenBody, TokenChangeBody, TokenListBody } from "@sluice/protocol/admin";
import { type AdminRequests, type CallOptions, type ChangeOptions, pathPart } from "./admin-requests.ts";

/** Whom a token is for. */
export interface NewTokenRequest {
  readonly name: string;
  readonly role: Role;
  /** Whose policies an editor may change. */
  readonly team?: string | undefined;
  /** Absent: in 90 days. */
  readonly expiresMs?: number | undefined;
}

/** Tokens in the policy store. */
export class AdminTokens {
  readonly #requests: AdminRequests;

  constructor(requests: AdminRequests) {
    this.#requests = requests;
  }

  async list(options?: CallOptions): Promise<readonly TokenBody[]> {
    const { items } = await this.#requests.ask<TokenListBody>("GET", "tokens", { options });
    return items;
  }

  /** `token.token` of the answer is the token itself, which is stored nowhere and never shown again. */
  make({ name, role, team, expiresMs }: NewTokenRequest, options: ChangeOptions = {}): Promise<NewTokenBody> {
    return this.#requests.ask("POST", "tokens", { body: { name, role, team, expires_ms: expiresMs }, options });
  }

  revoke(id: string, options: ChangeOptions = {}): Promise<TokenChangeBody> {
    return this.#requests.ask("DELETE", `tokens/${pathPart(id)}`, { options });
  }
}
