import type { SessionBody, SessionCodeBody } from "@sluice/protocol/admin";
import type { AdminRequests, CallOptions } from "./admin-requests.ts";

/** The caller itself, and codes that sign in a browser in its name. */
export class AdminSession {
  readonly #requests: AdminRequests;

  constructor(requests: AdminRequests) {
    this.#requests = requests;
  }

  /** Who the token belongs to, and what it may do. */
  get(options?: CallOptions): Promise<SessionBody> {
    return this.#requests.ask("GET", "session", { options });
  }

  /** A code for a link to the console. It signs in once, with the rights of the token, within five minutes. */
  makeCode(options?: CallOptions): Promise<SessionCodeBody> {
    return this.#requests.ask("POST", "session/codes", { options });
  }
}
