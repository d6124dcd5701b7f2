import pg from "pg";

const keepAliveAfterMs = 10_000;
const int8 = 20;

export interface PostgresPlace {
  readonly config: pg.ClientConfig;
  /** The class of clients for it. */
  readonly Client: typeof pg.Client;
  /** Without user and password. */
  readonly where: string;
}

export interface PostgresAddress {
  readonly url: string;
  readonly applicationName?: string | undefined;
  readonly readPassword?: (() => Promise<string>) | undefined;
}

/** How to connect to the server of a URL. Throws a `TypeError`, which does not repeat the URL, if it is not valid. */
export function findPostgres({ url, applicationName = "sluice", readPassword }: PostgresAddress): PostgresPlace {
  const config: pg.ClientConfig = {
    connectionString: url,
    application_name: applicationName,
    keepAlive: true,
    keepAliveInitialDelayMillis: keepAliveAfterMs,
    types: { getTypeParser: (type, format) => (type === int8 ? parseInt8 : pg.types.getTypeParser(type, format)) },
  };
  try {
    const { host, port, database } = new pg.Client(config);
    const Client = readPassword === undefined ? pg.Client : clientThatReads(readPassword);
    return { config, Client, where: `postgres://${host.includes(":") ? `[${host}]` : host}:${port}/${database ?? ""}` };
  } catch (error) {
    throw new TypeError(`the policy store's postgres URL is not valid: ${(error as Error).message}`);
  }
}

/** `pg` takes a function for the password, but not next to a URL, whose password wins even if it is empty. */
function clientThatReads(readPassword: () => Promise<string>): typeof pg.Client {
  return class extends pg.Client {
    constructor(config?: string | pg.ClientConfig) {
      super(config);
      Object.assign(this, { password: readPassword });
    }
  };
}

/** Cuts a connection at once, and rejects what was asked on it. */
export function cutConnection(client: pg.Client | pg.PoolClient): void {
  (client as pg.Client).connection.stream.destroy();
}

function parseInt8(digits: string): number {
  const number = Number(digits);
  if (!Number.isSafeInteger(number)) throw new RangeError(`the policy store holds ${digits}, which is beyond 2^53`);
  return number;
}
