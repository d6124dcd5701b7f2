import type { KillSwitchBody, KillSwitchChangeBody } from "@sluice/protocol/admin";
import type { AdminRequests, CallOptions, ChangeOptions } from "./admin-requests.ts";

/** Allows or denies every request, on every node, for a limited time. */
export class AdminKillSwitch {
  readonly #requests: AdminRequests;

  constructor(requests: AdminRequests) {
    this.#requests = requests;
  }

  get(options?: CallOptions): Promise<KillSwitchBody> {
    return this.#requests.ask("GET", "kill-switch", { options });
  }

  /** `open` allows everything, `closed` denies everything. `why` is required. `forMs` absent: an hour. */
  on(
    mode: "open" | "closed",
    { forMs, ...options }: ChangeOptions & { readonly why: string; readonly forMs?: number | undefined },
  ): Promise<KillSwitchChangeBody> {
    return this.#requests.ask("PUT", "kill-switch", { body: { mode, for_ms: forMs }, options });
  }

  /** Policies decide again. */
  off(options: ChangeOptions = {}): Promise<KillSwitchChangeBody> {
    return this.#requests.ask("DELETE", "kill-switch", { options });
  }
}
