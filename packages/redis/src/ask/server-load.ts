/** What a server reports about its own load. */
export interface ServerLoad {
  /** The share of a core that the thread which runs commands used since the last sample. Undefined at the first. */
  readonly cpu: number | undefined;
  readonly operationsPerSecond: number;
  /** Keys that it evicted since it started. */
  readonly evictedKeys: number;
  readonly memoryBytes: number;
  /** 0: as much memory as the machine has. */
  readonly maxMemoryBytes: number;
  /** Its replicas that are online, `host:port` as it reaches them. */
  readonly replicas: readonly string[];
}

/** Compares what a server says at one time with what it said before. */
export class LoadSampler {
  #cpuSeconds: number | undefined;
  #sampledMs = 0;

  /** `info` is its answer to INFO. `atMs` is monotonic. */
  read(info: string, atMs: number): ServerLoad {
    const fields = parseFields(info);
    const number = (name: string): number => Number(fields.get(name) ?? 0);
    // Servers before 7.0 know only the whole process, whose other threads do little.
    const of = fields.has("used_cpu_user_main_thread") ? "_main_thread" : "";
    const cpuSeconds = number(`used_cpu_user${of}`) + number(`used_cpu_sys${of}`);
    const used = this.#cpuSeconds === undefined ? undefined : cpuSeconds - this.#cpuSeconds;
    const seconds = (atMs - this.#sampledMs) / 1_000;
    this.#cpuSeconds = cpuSeconds;
    this.#sampledMs = atMs;
    return {
      // It falls only if another server answers under the same name.
      cpu: used === undefined || used < 0 || seconds <= 0 ? undefined : used / seconds,
      operationsPerSecond: number("instantaneous_ops_per_sec"),
      evictedKeys: number("evicted_keys"),
      memoryBytes: number("used_memory"),
      maxMemoryBytes: number("maxmemory"),
      replicas: [...fields].flatMap(([name, value]) => (/^slave\d+$/.test(name) ? parseReplica(value) : [])),
    };
  }
}

/** `ip=10.0.0.2,port=6379,state=online,offset=14,lag=0`. */
function parseReplica(text: string): readonly string[] {
  const { ip = "", port, state } = Object.fromEntries(text.split(",").map((one) => one.split("=", 2)));
  return state === "online" ? [`${ip.includes(":") ? `[${ip}]` : ip}:${port}`] : [];
}

function parseFields(info: string): ReadonlyMap<string, string> {
  const lines = info.split(/\r?\n/).filter((line) => line.includes(":"));
  return new Map(lines.map((line) => [line.slice(0, line.indexOf(":")), line.slice(line.indexOf(":") + 1)]));
}
