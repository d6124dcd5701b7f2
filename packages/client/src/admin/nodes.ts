import type { HotKeysBody, NodesBody } from "@sluice/protocol/admin";
import type { HotKeyOrder, StatusBody } from "@sluice/protocol/http";
import type { AdminRequests, CallOptions } from "./admin-requests.ts";

/** Which hot keys to show. */
export interface HotKeysFilter extends CallOptions {
  /** Absent: `rate`. */
  readonly by?: HotKeyOrder | undefined;
  /** 1 to 100. Absent: 20. */
  readonly count?: number | undefined;
  /** Only those of one node, by its id or name. */
  readonly node?: string | undefined;
}

/** The servers on this policy store. */
export class AdminNodes {
  readonly #requests: AdminRequests;

  constructor(requests: AdminRequests) {
    this.#requests = requests;
  }

  /** Which there are, and by which generation each decides. */
  list(options?: CallOptions): Promise<NodesBody> {
    return this.#requests.ask("GET", "nodes", { options });
  }

  /** The state of the node that answers: policy store, counters, queue, sinks, connections. */
  status(options?: CallOptions): Promise<StatusBody> {
    return this.#requests.ask("GET", "status", { options });
  }

  /** The hottest counters of all nodes together. */
  hotKeys({ by, count, node, ...options }: HotKeysFilter = {}): Promise<HotKeysBody> {
    return this.#requests.ask("GET", "hot-keys", { query: { by, count, node }, options });
  }
}
