import { type PolicyStore, PolicyStoreUnavailable } from "@sluice/sql";

/** A store that may be opened later, once it is available. */
export interface ReopeningStore extends PolicyStore {
  /** Opens it now, unless it is open. Rejects with the store's error. */
  open(): Promise<void>;
}

export interface ReopeningStoreOptions {
  readonly kind: PolicyStore["kind"];
  readonly where: string;
  readonly open: () => Promise<PolicyStore>;
  /** How long after a failed attempt the next one is made. Absent: a second. */
  readonly everyMs?: number | undefined;
}

/**
 * A store that need not be available at first: every use tries to open it, at bounded intervals, and in between fails
 * with the last error.
 */
export function createReopeningStore({ kind, where, open, everyMs = 1_000 }: ReopeningStoreOptions): ReopeningStore {
  let store: PolicyStore | undefined;
  let opening: Promise<PolicyStore> | undefined;
  let failed: { readonly error: unknown; readonly atMs: number } | undefined;
  let closed = false;

  async function openNow(): Promise<PolicyStore> {
    try {
      // Closing waits for it.
      store = await open();
      return store;
    } catch (error) {
      failed = { error, atMs: performance.now() };
      throw error;
    }
  }

  function opened(now: boolean): Promise<PolicyStore> {
    if (closed) return Promise.reject(new PolicyStoreUnavailable(`the policy store ${where} is closed`));
    if (store !== undefined) return Promise.resolve(store);
    if (opening !== undefined) return opening;
    if (!now && failed !== undefined && performance.now() - failed.atMs < everyMs) return Promise.reject(failed.error);
    opening = openNow().finally(() => {
      opening = undefined;
    });
    return opening;
  }

  return {
    kind,
    where,
    async open(): Promise<void> {
      await opened(true);
    },
    readPulse: async () => (await opened(false)).readPulse(),
    read: async (work) => (await opened(false)).read(work),
    change: async (work, options) => (await opened(false)).change(work, options),
    note: async (work) => (await opened(false)).note(work),
    upkeep: async (work) => (await opened(false)).upkeep(work),
    lead: async (node, forMs) => (await opened(false)).lead(node, forMs),
    async close(): Promise<void> {
      closed = true;
      await opening?.catch(() => undefined);
      await store?.close();
    },
  };
}
