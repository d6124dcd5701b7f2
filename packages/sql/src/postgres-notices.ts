import pg from "pg";
import { cutConnection, findPostgres } from "./postgres-client.ts";

const firstPauseMs = 100;
const maxPauseMs = 5_000;
/** Syntax error, feature not supported. */
const unknownStates = new Set(["42601", "0A000"]);

export interface PostgresListenerOptions {
  readonly url: string;
  readonly channel: string;
  readonly applicationName?: string | undefined;
  /** How often the server is asked whether it is there. */
  readonly probeEveryMs?: number | undefined;
  /** How long connecting and answering may take. */
  readonly answerWithinMs?: number | undefined;
  /** Hears what a NOTIFY said. */
  onMessage(payload: string): void;
  /**
   * listening: from now on it hears everything; what was told before may have been missed, so look again. lost: it hears nothing,
   * and tries to connect again by itself. refused: the server knows no LISTEN, it hears nothing, and tries no more.
   */
  onState?(state: ListenerState, why?: string): void;
}

export type ListenerState = "listening" | "lost" | "refused";

export interface PostgresListener {
  close(): Promise<void>;
}

/**
 * Hears what is told on a channel, on a connection of its own that is opened again when it breaks. It asks now and then whether the
 * server is there, because a network that lost its way says nothing. Throws a `TypeError` where the URL is none; a server that is
 * not there yet is waited for, and one that knows no LISTEN is left alone.
 */
export function openPostgresListener(options: PostgresListenerOptions): PostgresListener {
  const place = findPostgres(options.url, options.applicationName);
  const listener = new Listener(options, place.config);
  listener.open();
  return listener;
}

class Listener implements PostgresListener {
  readonly #options: PostgresListenerOptions;
  readonly #config: pg.ClientConfig;
  readonly #probeEveryMs: number;
  readonly #answerWithinMs: number;
  #client: pg.Client | undefined;
  #timer: NodeJS.Timeout | undefined;
  #failures = 0;
  #told: ListenerState | undefined;
  #closed = false;

  constructor(options: PostgresListenerOptions, config: pg.ClientConfig) {
    this.#options = options;
    this.#config = config;
    this.#probeEveryMs = options.probeEveryMs ?? 15_000;
    this.#answerWithinMs = options.answerWithinMs ?? 5_000;
  }

  open(): void {
    const client = new pg.Client({ ...this.#config, connectionTimeoutMillis: this.#answerWithinMs });
    this.#client = client;
    client.on("notification", ({ payload }) => this.#options.onMessage(payload ?? ""));
    client.on("error", (error) => this.#lose(client, error.message));
    client.on("end", () => this.#lose(client, "the connection ended"));
    this.#listen(client).catch((error: unknown) => this.#lose(client, (error as Error).message));
  }

  async close(): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#timer);
    const client = this.#client;
    this.#client = undefined;
    if (client !== undefined) cutConnection(client);
  }

  async #listen(client: pg.Client): Promise<void> {
    await client.connect();
    const refusal = await this.#findRefusal(client, `listen ${pg.escapeIdentifier(this.#options.channel)}`);
    if (client !== this.#client) return;
    if (refusal !== undefined) {
      await this.close();
      this.#tell("refused", refusal);
      return;
    }
    this.#failures = 0;
    this.#tell("listening");
    this.#probeLater(client);
  }

  /** What the server says where it knows no such statement. CockroachDB says so by an error, or beside a success. */
  async #findRefusal(client: pg.Client, statement: string): Promise<string | undefined> {
    let refusal: string | undefined;
    const hear = ({ code = "", message = code }: Said): void => {
      if (unknownStates.has(code)) refusal = message;
    };
    client.on("notice", hear);
    try {
      await this.#ask(client, statement);
    } catch (error) {
      hear(error as Error);
      if (refusal === undefined) throw error;
    } finally {
      client.off("notice", hear);
    }
    return refusal;
  }

  #probeLater(client: pg.Client): void {
    this.#timer = setTimeout(() => {
      this.#ask(client, "select 1").then(
        () => {
          if (client === this.#client) this.#probeLater(client);
        },
        (error: unknown) => this.#lose(client, (error as Error).message),
      );
    }, this.#probeEveryMs);
  }

  #tell(state: ListenerState, why?: string): void {
    if (state === this.#told) return;
    this.#told = state;
    this.#options.onState?.(state, why);
  }

  async #ask(client: pg.Client, statement: string): Promise<void> {
    const timer = setTimeout(() => cutConnection(client), this.#answerWithinMs);
    try {
      await client.query(statement);
    } finally {
      clearTimeout(timer);
    }
  }

  #lose(client: pg.Client, why: string): void {
    if (client !== this.#client || this.#closed) return;
    this.#client = undefined;
    clearTimeout(this.#timer);
    cutConnection(client);
    this.#tell("lost", why);
    const pauseMs = Math.min(maxPauseMs, firstPauseMs * 2 ** this.#failures);
    this.#failures += 1;
    // Nodes that lost the same server do not come back all at once.
    this.#timer = setTimeout(() => this.open(), pauseMs * (0.5 + Math.random() / 2));
  }
}

/** What an error and a notice have in common. */
interface Said {
  readonly code?: string | undefined;
  readonly message?: string | undefined;
}
