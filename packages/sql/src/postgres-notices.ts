import pg from "pg";
import { cutConnection, findPostgres, type PostgresPlace } from "./postgres-client.ts";

const firstPauseMs = 100;
const maxPauseMs = 5_000;
/** Syntax error, feature not supported. */
const unknownStates = new Set(["42601", "0A000"]);

export interface PostgresListenerOptions {
  readonly url: string;
  readonly channel: string;
  readonly applicationName?: string | undefined;
  /** Reads the password, for each new connection, if the URL has none. */
  readonly readPassword?: (() => Promise<string>) | undefined;
  /** How often to check that the server answers. */
  readonly probeEveryMs?: number | undefined;
  /** How long connecting and answering may take. */
  readonly answerWithinMs?: number | undefined;
  /** Called with the payload of every NOTIFY. */
  onMessage(payload: string): void;
  /**
   * listening: every message arrives, starting now; earlier ones may have been missed, so read again. lost: no messages arrive
   * until it has reconnected, which it does automatically. refused: the server has no LISTEN, and it does not try again.
   */
  onState?(state: ListenerState, why?: string): void;
}

export type ListenerState = "listening" | "lost" | "refused";

export interface PostgresListener {
  close(): Promise<void>;
}

/**
 * Listens on a channel with a dedicated connection, and reconnects when that breaks. It checks the server at intervals, because a
 * broken network reports no error. Throws a `TypeError` if the URL is not valid; waits for a server that is not up yet, and gives
 * up on one that has no LISTEN.
 */
export function openPostgresListener(options: PostgresListenerOptions): PostgresListener {
  const listener = new Listener(options, findPostgres(options));
  listener.open();
  return listener;
}

class Listener implements PostgresListener {
  readonly #options: PostgresListenerOptions;
  readonly #place: PostgresPlace;
  readonly #probeEveryMs: number;
  readonly #answerWithinMs: number;
  #client: pg.Client | undefined;
  #timer: NodeJS.Timeout | undefined;
  #failures = 0;
  #reported: ListenerState | undefined;
  #closed = false;

  constructor(options: PostgresListenerOptions, place: PostgresPlace) {
    this.#options = options;
    this.#place = place;
    this.#probeEveryMs = options.probeEveryMs ?? 15_000;
    this.#answerWithinMs = options.answerWithinMs ?? 5_000;
  }

  open(): void {
    const { Client, config } = this.#place;
    const client = new Client({ ...config, connectionTimeoutMillis: this.#answerWithinMs });
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
      this.#report("refused", refusal);
      return;
    }
    this.#failures = 0;
    this.#report("listening");
    this.#probeLater(client);
  }

  /** The server's message if it does not know the statement. CockroachDB sends an error, or a notice and success. */
  async #findRefusal(client: pg.Client, statement: string): Promise<string | undefined> {
    let refusal: string | undefined;
    const hear = ({ code = "", message = code }: ServerMessage): void => {
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

  #report(state: ListenerState, why?: string): void {
    if (state === this.#reported) return;
    this.#reported = state;
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
    this.#report("lost", why);
    const pauseMs = Math.min(maxPauseMs, firstPauseMs * 2 ** this.#failures);
    this.#failures += 1;
    // Nodes that lost the same server do not reconnect all at once.
    this.#timer = setTimeout(() => this.open(), pauseMs * (0.5 + Math.random() / 2));
  }
}

/** What errors and notices have in common. */
interface ServerMessage {
  readonly code?: string | undefined;
  readonly message?: string | undefined;
}
