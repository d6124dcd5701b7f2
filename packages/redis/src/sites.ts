import { StoreUnavailable } from "sluice";
import type { CircuitBreakerOptions, LimitOfSubject, ResolvedLimit } from "sluice/store";
import type { RedisServers } from "./connect/redis-servers.ts";
import { type Cell, findCell } from "./place/cells.ts";
import type { PlacedLane, ShardStatus, Site } from "./site.ts";
import { type Part, splitByLane } from "./take-across.ts";

/** How long replaced servers have to finish their pending questions. */
const drainMs = 30_000;

export interface SitesOptions {
  readonly servers: RedisServers;
  readonly cells: readonly { readonly cell: Cell; readonly servers: RedisServers }[];
  readonly openSite: (servers: RedisServers) => Site;
}

/** The open sites: the main one, and those of cells. */
interface OpenSites {
  readonly main: Site;
  readonly cells: readonly { readonly cell: Cell; readonly site: Site }[];
}

const noSites = { main: undefined, cells: [] };

/**
 * Which servers are asked about which counter, and their life cycle:
 *
 *     nothing open ──open──► main and cells ──replace──► another main; the old one drains ──close──► all closed
 */
export class Sites {
  readonly #options: SitesOptions;
  readonly #draining = new Set<Site>();
  /** Undefined until there is something to ask. */
  #opened: OpenSites | undefined;
  #swaps = 0;
  #closed = false;

  constructor(options: SitesOptions) {
    this.#options = options;
  }

  get closed(): boolean {
    return this.#closed;
  }

  /** Nothing was ever opened, and nothing will be. */
  get neverOpened(): boolean {
    return this.#closed && this.#opened === undefined;
  }

  /** Whether every counter has a connected server with its breaker closed. False until something is opened. */
  get ready(): boolean {
    return !this.#closed && this.#opened !== undefined && this.all.every((site) => site.ready);
  }

  /** The open sites, the main one first. */
  get all(): readonly Site[] {
    return this.#opened === undefined ? [] : [this.#opened.main, ...this.#opened.cells.map(({ site }) => site)];
  }

  get shards(): readonly (ShardStatus & { readonly cell: string | undefined })[] {
    const { main, cells } = this.#opened ?? noSites;
    const ofMain = (main?.shards ?? []).map((shard) => ({ ...shard, cell: undefined }));
    return [
      ...ofMain,
      ...cells.flatMap(({ cell, site }) => site.shards.map((shard) => ({ ...shard, cell: cell.name }))),
    ];
  }

  open(): OpenSites {
    if (this.#opened !== undefined) return this.#opened;
    if (this.#closed) throw closedError();
    const main = this.#options.openSite(this.#options.servers);
    this.#opened = { main, cells: this.#openCells() };
    return this.#opened;
  }

  /** Opens, and resolves when every server is connected. */
  async connected(withinMs: number): Promise<void> {
    this.open();
    await reached(this.all, withinMs);
  }

  /**
   * Switches to another main site once that is connected, and lets the old one finish its pending questions. Rejects,
   * and stays with the old one, if the new one cannot be reached.
   */
  async replace(servers: RedisServers, withinMs: number): Promise<void> {
    const next = this.#options.openSite(servers);
    this.#swaps += 1;
    const swap = this.#swaps;
    try {
      await reached([next], withinMs);
      if (swap !== this.#swaps)
        throw new StoreUnavailable("storage_unavailable", "it was switched to other servers again meanwhile");
      if (this.#closed) throw new StoreUnavailable("storage_unavailable", "the counters were closed meanwhile");
    } catch (error) {
      next.close();
      throw error;
    }
    const before = this.#opened;
    this.#opened = { main: next, cells: before?.cells ?? this.#openCells() };
    if (before !== undefined) this.#drain(before.main);
  }

  useBreaker(options: CircuitBreakerOptions): void {
    for (const site of this.all) site.useBreaker(options);
  }

  measure(): void {
    if (!this.#closed) for (const site of this.all) site.measure();
  }

  sampleLoad(): void {
    if (!this.#closed) for (const site of this.all) site.sampleLoad();
  }

  close(): void {
    this.#closed = true;
    for (const site of [...this.all, ...this.#draining]) site.close();
    this.#draining.clear();
  }

  /** Where one counter lives. */
  findLane(limit: ResolvedLimit): PlacedLane {
    const { main, cells } = this.open();
    const site = cells.length === 0 ? main : (findCell(limit, cells)?.site ?? main);
    return site.findLane(limit);
  }

  /** The server that holds it; undefined while that is not known. */
  findShard(limit: LimitOfSubject): { readonly name: string; readonly cell: string | undefined } | undefined {
    const { main, cells } = this.#opened ?? noSites;
    const own = cells.length === 0 ? undefined : findCell(limit, cells);
    const name = (own?.site ?? main)?.findShard(limit);
    return name === undefined ? undefined : { name, cell: own?.cell.name };
  }

  /** The one lane that holds all of a request, if there is one. */
  findOnlyLane(limits: readonly ResolvedLimit[]): PlacedLane | undefined {
    const { main, cells } = this.open();
    if (limits.length === 0 || (cells.length === 0 && main.lanes.length === 1)) return main.lanes[0]!;
    const first = this.findLane(limits[0]!);
    return limits.every((limit) => this.findLane(limit) === first) ? first : undefined;
  }

  /** A request by lanes, whatever its groups. */
  laneParts(limits: readonly ResolvedLimit[]): readonly Pick<Part, "lane" | "limits" | "indexes">[] {
    return this.parts(limits.map((limit) => ({ ...limit, group: 0 })));
  }

  /** A request by lanes and groups. */
  parts(limits: readonly ResolvedLimit[]): readonly Part[] {
    return splitByLane(limits, (limit) => this.findLane(limit));
  }

  /** The number of a site in receipts: 0 is the main one, cells are counted from 1. */
  siteNumber(site: Site): number {
    return this.open().cells.findIndex((one) => one.site === site) + 1;
  }

  findByNumber(number: number): Site | undefined {
    const { main, cells } = this.open();
    return number === 0 ? main : cells[number - 1]?.site;
  }

  #openCells(): OpenSites["cells"] {
    return this.#options.cells.map(({ cell, servers }) => ({ cell, site: this.#options.openSite(servers) }));
  }

  #drain(site: Site): void {
    this.#draining.add(site);
    const untilMs = performance.now() + drainMs;
    const look = (): void => {
      if (!this.#draining.has(site)) return;
      if (!site.idle && performance.now() < untilMs) {
        setTimeout(look, 50);
        return;
      }
      this.#draining.delete(site);
      site.close();
    };
    look();
  }
}

export function closedError(): StoreUnavailable {
  return new StoreUnavailable("storage_unavailable", "the counters were closed");
}

async function reached(sites: readonly Site[], withinMs: number): Promise<void> {
  const untilMs = performance.now() + withinMs;
  while (!sites.every((site) => site.ready)) {
    if (performance.now() > untilMs) {
      const cause = sites.find((site) => !site.ready)?.lastError;
      throw new StoreUnavailable("storage_unavailable", `the servers could not be reached within ${withinMs} ms`, {
        cause,
      });
    }
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
}
