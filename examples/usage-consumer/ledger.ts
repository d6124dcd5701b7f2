import { DatabaseSync } from "node:sqlite";

/** An entry of the stream: its id there, and its fields. `event` is the CloudEvent in JSON. */
export interface Entry {
  readonly id: string;
  readonly message: { readonly event?: string };
}

export interface Ledger {
  /** Adds the events that it does not have yet, in one transaction. What is not a usage event goes to `rejects`. */
  add(entries: readonly Entry[]): { readonly added: number; readonly rejected: readonly string[] };
  close(): void;
}

const tables = `
  create table if not exists events (source text, id text, day text not null, subject text not null, policy text not null,
    requests integer not null, denied integer not null, cost integer not null, primary key (source, id));
  create table if not exists usage_by_day (day text, subject text, policy text,
    requests integer not null, denied integer not null, cost integer not null, primary key (day, subject, policy));
  create table if not exists rejects (entry text primary key, reason text not null, event text);`;

export function openLedger(file: string): Ledger {
  const database = new DatabaseSync(file, { timeout: 10_000 });
  // What is committed stays, even if the power fails: only then may the stream forget it.
  database.exec(`pragma journal_mode = wal; pragma synchronous = full; ${tables}`);
  const insert = database.prepare("insert into events values (?, ?, ?, ?, ?, ?, ?, ?) on conflict do nothing");
  const sum = database.prepare(`insert into usage_by_day values (?, ?, ?, ?, ?, ?)
    on conflict do update set requests = requests + excluded.requests, denied = denied + excluded.denied,
    cost = cost + excluded.cost`);
  const reject = database.prepare("insert into rejects values (?, ?, ?) on conflict do nothing");

  function addAll(entries: readonly Entry[]): ReturnType<Ledger["add"]> {
    let added = 0;
    const rejected: string[] = [];
    for (const { id: entry, message } of entries) {
      const { event } = message;
      const usage = parseUsage(event);
      if (typeof usage === "string") {
        reject.run(entry, usage, event ?? null);
        rejected.push(`${entry}: ${usage}`);
        continue;
      }
      const { source, id, day, subject, policy, requests, denied, cost } = usage;
      if (insert.run(source, id, day, subject, policy, requests, denied, cost).changes === 0) continue;
      sum.run(day, subject, policy, requests, denied, cost);
      added += 1;
    }
    return { added, rejected };
  }

  return {
    add(entries) {
      database.exec("begin immediate");
      try {
        const result = addAll(entries);
        database.exec("commit");
        return result;
      } finally {
        if (database.isTransaction) database.exec("rollback");
      }
    },
    close: () => database.close(),
  };
}

type Usage = Readonly<
  Record<"source" | "id" | "day" | "subject" | "policy", string> & Record<"requests" | "denied" | "cost", number>
>;

/** What an event adds to the sums, or why it is not a usage event. */
function parseUsage(text: string | undefined): Usage | string {
  if (text === undefined) return "there is no event: written without one, or removed from the stream";
  try {
    const { type, source, id, subject = "", data } = JSON.parse(text);
    if (type !== "io.sluice.usage.v1") return "the type is not io.sluice.usage.v1";
    const { policy = "", allowed, requests, cost, ts } = data;
    if (![source, id, subject, policy].every((value) => typeof value === "string")) return "a name is not a string";
    if (![requests, cost].every((value) => Number.isSafeInteger(value) && value >= 0)) return "a sum is not a count";
    if (typeof allowed !== "boolean" || typeof ts !== "number") return "data.allowed or data.ts is missing";
    const day = new Date(ts).toISOString().slice(0, 10);
    return { source, id, day, subject, policy, requests, denied: allowed ? 0 : requests, cost: allowed ? cost : 0 };
  } catch (error) {
    return (error as Error).message;
  }
}
