import { type LiveChangesBody, liveChanges } from "@sluice/protocol/admin";
import type { AuditRecord } from "@sluice/sql";
import type { StoreReport } from "../../data-plane/status/store-report.ts";
import { sluiceItself } from "../audit/audit-entry.ts";
import type { ControlPlane } from "../control-plane.ts";
import { storeView } from "./live-overview.ts";

export interface LiveChangesOptions {
  readonly control: Pick<ControlPlane, "nodes" | "audit">;
  readonly storeStatus: () => StoreReport | undefined;
}

const maxChanges = 50;

/** What was read last, by which the next event is made. */
export interface SeenChanges {
  readonly body: LiveChangesBody;
  readonly generation: number;
  /** Everything but the time and the changes, to notice a difference. */
  readonly state: string;
}

/** The state that views depend on: generation, kill switch, nodes, and what was changed since the last reading. */
export class LiveChanges {
  readonly #options: LiveChangesOptions;

  constructor(options: LiveChangesOptions) {
    this.#options = options;
  }

  /** Undefined if nothing differs. While the store is unavailable, nodes are as last seen. */
  async read(seen: SeenChanges | undefined): Promise<SeenChanges | undefined> {
    const { control, storeStatus } = this.#options;
    const listed = await control.nodes.list(sluiceItself).catch(() => undefined);
    const store = storeStatus();
    const generation = Math.max(seen?.generation ?? 0, listed?.generation ?? store?.newest ?? 0);
    const isNew = seen !== undefined && generation > seen.generation;
    const records = isNew ? await this.#readAudit(seen.generation) : [];
    const body = liveChanges.render({
      atMs: Date.now(),
      store: store && storeView(store),
      killSwitch: store?.killSwitch,
      nodes: listed?.nodes ?? seen?.body.nodes ?? [],
      changes: records.slice(0, maxChanges),
      more: records.length > maxChanges,
    });
    const { at_ms: _, changes, more: _more, ...rest } = body;
    const state = JSON.stringify([generation, rest]);
    if (seen !== undefined && state === seen.state && changes.length === 0) return undefined;
    return { body, generation, state };
  }

  /** At most one more than is shown. */
  async #readAudit(since: number): Promise<readonly AuditRecord[]> {
    const query = { outcome: "done", limit: maxChanges + 1 } as const;
    const page = await this.#options.control.audit.list(sluiceItself, query).catch(() => undefined);
    return page?.items.filter(({ generation = 0 }) => generation > since) ?? [];
  }
}
